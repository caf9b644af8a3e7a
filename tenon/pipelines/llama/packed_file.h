// What a model's programs compute from its weights when these are bound, kept on disk: packed codes
// and scales, about as large as the model's file. A later process maps them in place of packing.
//
// The file lies in the folder of the kernel cache under a digest of the programs and of the model's
// file (MappedFile::identity). Its table holds its own digest; a file that is not
// whole is not used. What stands in the model's file as it is stays there.
#pragma once

#include <memory>
#include <string>

#include "tenon/formats/gguf.h"
#include "tenon/runtime/executor.h"

namespace tenon::pipelines {

// Where the results of the programs saved at `programs` for this file are kept; empty for a file
// that was not opened by its path.
std::string packed_path(const std::string& programs, const formats::GgufFile& file);
// Empty when there is none, or none that is whole.
runtime::SetupResults read_packed(const std::string& path, const formats::GgufFile& file);
// Failing to write is no error: the next process packs again.
void write_packed(const std::string& path, const formats::GgufFile& file,
                  const runtime::SetupResults& results);

}  // namespace tenon::pipelines
