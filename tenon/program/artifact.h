// A program as data, and the file that holds programs: docs/artifact.md describes it byte by byte.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/abi/module.h"
#include "tenon/ir/graph.h"
#include "tenon/program/signature.h"
#include "tenon/program/weights.h"

namespace tenon::program {

// Everything a program is.
struct ProgramData {
  Signature signature;
  ir::GraphPtr graph;                         // the portable graph, as it was traced
  std::shared_ptr<const abi::Module> module;  // null: the interpreter runs the graph
  std::vector<ir::GraphPtr> graphs;           // what EvalStep::graph indexes
};

struct SaveOptions {
  bool locations = true;  // of graph nodes
};

// Writes programs into one file, whole or not at all (base/mmap.h). Constants that several programs
// hold are stored once. Raises IoError naming the path, ValueError for two programs of one name.
void save_artifact(const std::string& path, std::span<const ProgramData> programs,
                   const SaveOptions& options = {});

// True when the file begins as an artifact does. Raises IoError when it cannot be read.
bool is_artifact(const std::string& path);

struct CodeInfo {
  std::string level;
  uint64_t bytes;
};

struct ProgramInfo {
  Signature signature;
  std::vector<Weight> weights;
  uint64_t nodes = 0;  // of the portable graph
  uint64_t graph_bytes = 0;
  bool has_module = false;
  std::vector<CodeInfo> code;
};

struct SectionInfo {
  std::string name;  // "graph", "module", "code[avx512]", "constants"
  uint64_t offset;
  uint64_t bytes;
  std::string digest;  // hexadecimal
};

// An artifact that is open. Opening checks header, manifest, structure, padding, and the digests of
// sections up to 1 MB; larger ones are checked when they are first used. Thread-safe.
class Artifact {
 public:
  // Raises IoError when the file cannot be read; FormatError naming path and reason when it is no
  // artifact, of a newer format, truncated, or damaged.
  static std::shared_ptr<const Artifact> open(const std::string& path);
  ~Artifact();

  const std::string& path() const;
  uint64_t bytes() const;
  uint32_t format() const;
  const std::string& tenon_version() const;
  const std::vector<ProgramInfo>& programs() const;
  const std::vector<SectionInfo>& sections() const;
  // Index of the program of that function name; the only one for an empty name. Raises KeyError
  // listing the names.
  size_t find(const std::string& name) const;

  // The parts of a program, digests checked, everything in range. Raise FormatError.
  ir::GraphPtr graph(size_t program) const;
  std::shared_ptr<const abi::Module> module(size_t program) const;  // null when there is none
  std::vector<ir::GraphPtr> eval_graphs(size_t program) const;
  // Checks the digest of every section. Raises FormatError naming the first wrong one.
  void check_all() const;

 private:
  Artifact();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::program
