// Compiled programs of a model between processes: an artifact in the folder of the kernel cache, so
// that a model which ran before starts without tracing and compiling.
//
// The file's name is a digest of what the programs follow from: this executable (its build id), the
// CPU's level, the model's sizes and the form of its matrices. Without a build id, or a cache
// folder of the user's own, nothing is kept. A file that cannot be read is made anew.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tenon/pipelines/llama/config.h"
#include "tenon/pipelines/llama/weights.h"
#include "tenon/program/artifact.h"

namespace tenon::pipelines {

// The artifact for these, made by `save(path)` when there is none yet; null when it cannot be kept.
std::shared_ptr<const program::Artifact> cached_programs(
    const LlamaConfig& config, const MatrixForm& form,
    const std::function<void(const std::string& path)>& save);

}  // namespace tenon::pipelines
