// Machine code of kernels by content: in memory for the process, on disk between processes.
//
// The key is a digest of everything that the code depends on: the kernel's canonical text, the
// level, and the sources of the code generator. An entry on disk holds its own digest, which is
// checked before its code is used; entries are written to a temporary file and renamed, so readers
// see whole entries only. The folder is private to the user (0700); a folder that others could
// write to is not used. Failing to read or write it is never an error: the kernel is compiled.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/base/hash.h"

namespace tenon::compiler {

// One kernel's position-independent code; `entry` is the offset of its function.
struct KernelCode {
  std::vector<std::byte> bytes;
  uint64_t entry = 0;
};
using KernelCodePtr = std::shared_ptr<const KernelCode>;

// TENON_CACHE_DIR, else $XDG_CACHE_HOME/tenon, else $HOME/.cache/tenon; empty when none is set or
// TENON_CACHE_DIR is empty (which turns the disk cache off).
std::string cache_folder();
// That folder, made when it is missing; empty when there is none or others could write to it.
std::string own_cache_folder();

// Thread-safe. Null when absent; `on_disk` permits the second level.
KernelCodePtr find_kernel(const Digest& key, bool on_disk);
void store_kernel(const Digest& key, const KernelCodePtr& code, bool on_disk);

}  // namespace tenon::compiler
