#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/base/mmap.h"
#include "tenon/program/artifact.h"
#include "tenon/program/artifact_header.h"
#include "tenon/program/encode.h"
#include "tenon/program/version.h"
#include "tenon/runtime/cpu.h"

namespace tenon::program {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::Vector;

struct Pending {
  fb::SectionKind kind;
  std::string name;
  std::vector<std::byte> owned;         // the bytes, or:
  std::span<const std::byte> borrowed;  // of a literal or an image
  std::span<const std::byte> bytes() const { return owned.empty() ? borrowed : owned; }
};

class Writer {
 public:
  explicit Writer(const SaveOptions& options) : options_(options) {}

  void run(const std::string& path, std::span<const ProgramData> programs) {
    // The shared constants are section 0 and constants of their own follow at once, so that their
    // numbers are known while tables are encoded.
    std::vector<std::vector<std::byte>> graphs, modules, eval_graphs;
    for (const ProgramData& program : programs) {
      graphs.push_back(
          encode_graphs(ir::reachable_graphs(program.graph), options_.locations, pool_));
      bool has_module = program.module != nullptr;
      modules.push_back(has_module ? encode_module(*program.module, pool_)
                                   : std::vector<std::byte>());
      eval_graphs.push_back(has_module && uses_eval(*program.module)
                                ? encode_graphs(program.graphs, false, pool_)
                                : std::vector<std::byte>());
    }
    add(fb::SectionKind::Constants, "constants", pool_.shared());
    for (size_t i = 0; i < pool_.own().size(); ++i) {
      sections_.push_back({fb::SectionKind::Constants,
                           fmt::format("constant {}", i + 1),
                           {},
                           pool_.own()[i].span()});
    }
    std::vector<Offset<fb::Program>> tables;
    for (size_t i = 0; i < programs.size(); ++i) {
      tables.push_back(encode(programs[i], std::move(graphs[i]), std::move(modules[i]),
                              std::move(eval_graphs[i])));
    }
    write(path, tables);
  }

 private:
  static bool uses_eval(const abi::Module& module) {
    for (const abi::Program& program : module.programs) {
      for (const abi::Step& step : program.steps) {
        if (std::holds_alternative<abi::EvalStep>(step)) return true;
      }
    }
    return false;
  }

  uint32_t add(fb::SectionKind kind, std::string name, std::vector<std::byte> bytes) {
    sections_.push_back({kind, std::move(name), std::move(bytes), {}});
    return static_cast<uint32_t>(sections_.size() - 1);
  }

  Offset<fb::Program> encode(const ProgramData& program, std::vector<std::byte> graph,
                             std::vector<std::byte> module, std::vector<std::byte> eval_graphs) {
    const std::string& name = program.signature.function;
    bool has_module = program.module != nullptr, has_eval = !eval_graphs.empty();
    uint32_t graph_section = add(fb::SectionKind::Graph, "graph of " + name, std::move(graph));
    uint32_t module_section = 0, eval_section = 0;
    if (has_module) {
      module_section = add(fb::SectionKind::Module, "plan of " + name, std::move(module));
    }
    if (has_eval) {
      eval_section =
          add(fb::SectionKind::Graph, "evaluated graphs of " + name, std::move(eval_graphs));
    }
    std::vector<Offset<fb::Code>> code;
    for (const abi::Image& image : has_module ? program.module->images : kNoImages) {
      sections_.push_back({fb::SectionKind::Code,
                           fmt::format("code[{}] of {}", runtime::short_name(image.level), name),
                           {},
                           image.bytes});
      auto level = b_.CreateString(image.level);
      code.push_back(fb::CreateCode(b_, level, static_cast<uint32_t>(sections_.size() - 1),
                                    b_.CreateVector(image.offsets)));
    }
    Ranges ranges;
    std::vector<Offset<fb::Weight>> weights;
    for (const Weight& weight : externals_of(program.graph)) {
      auto weight_name = b_.CreateString(weight.name);
      weights.push_back(
          fb::CreateWeight(b_, weight_name, encode_type(b_, weight.dtype, weight.shape, ranges)));
    }
    uint64_t nodes = 0;
    for (const ir::GraphPtr& g : ir::reachable_graphs(program.graph)) {
      nodes += g->nodes().size() - g->params.size();
    }
    auto signature = encode(program.signature);
    auto weight_vector = b_.CreateVector(weights);
    auto code_vector = b_.CreateVector(code);
    return fb::CreateProgram(b_, signature, weight_vector, nodes, graph_section, has_module,
                             module_section, has_eval, eval_section, code_vector);
  }

  Offset<Vector<Offset<fb::Token>>> encode(const Structure& structure) {
    std::vector<Offset<fb::Token>> out;
    for (size_t i = 0; i < structure.size(); ++i) {
      Token token = structure.token(i);
      auto text = b_.CreateSharedString(token.text.data(), token.text.size());
      out.push_back(fb::CreateToken(b_, static_cast<uint8_t>(token.kind), token.count, text));
    }
    return b_.CreateVector(out);
  }

  Offset<Vector<Offset<fb::Tensor>>> encode(const std::vector<TensorGuard>& tensors,
                                            Ranges& ranges) {
    std::vector<Offset<fb::Tensor>> out;
    for (const TensorGuard& t : tensors) {
      auto type = encode_type(b_, t.dtype, t.shape, ranges);
      auto location = b_.CreateSharedString(options_.locations ? t.location : "");
      out.push_back(fb::CreateTensor(b_, type, t.writable, location));
    }
    return b_.CreateVector(out);
  }

  Offset<Vector<Offset<fb::Static>>> encode(const std::vector<StaticValue>& statics) {
    std::vector<Offset<fb::Static>> out;
    for (const StaticValue& s : statics) {
      out.push_back(fb::CreateStatic(b_, static_cast<uint8_t>(s.kind), s.bits,
                                     b_.CreateSharedString(s.text)));
    }
    return b_.CreateVector(out);
  }

  Offset<fb::Signature> encode(const Signature& s) {
    Ranges ranges;
    auto function = b_.CreateString(s.function);
    auto names = encode_strings(b_, s.names);
    auto arguments = encode(s.arguments);
    auto tensors = encode(s.tensors, ranges);
    auto statics = encode(s.statics);
    auto results = encode(s.results);
    auto result_tensors = encode(s.result_tensors, ranges);
    auto result_statics = encode(s.result_statics);
    return fb::CreateSignature(b_, function, names, arguments, tensors, statics, results,
                               result_tensors, result_statics, encode_ranges(b_, ranges));
  }

  void write(const std::string& path, const std::vector<Offset<fb::Program>>& programs) {
    static constexpr std::array<std::byte, kSectionAlignment> kZeros{};
    std::vector<std::span<const std::byte>> pieces(1);  // the header's place
    uint64_t at = kHeaderBytes;
    std::vector<Offset<fb::Section>> table;
    for (const Pending& section : sections_) {
      std::span<const std::byte> bytes = section.bytes();
      Digest digest = hash_bytes(bytes);
      auto name = b_.CreateString(section.name);
      auto digest_vector = b_.CreateVector(digest.data(), digest.size());
      table.push_back(fb::CreateSection(b_, section.kind, name, at, bytes.size(), digest_vector));
      pieces.push_back(bytes);
      size_t padding = (kSectionAlignment - bytes.size() % kSectionAlignment) % kSectionAlignment;
      pieces.push_back(std::span(kZeros).first(padding));
      at += bytes.size() + padding;
    }
    auto version = b_.CreateString(kVersion);
    auto program_vector = b_.CreateVector(programs);
    b_.Finish(fb::CreateManifest(b_, version, program_vector, b_.CreateVector(table)));
    std::span manifest(reinterpret_cast<const std::byte*>(b_.GetBufferPointer()), b_.GetSize());
    pieces.push_back(manifest);
    auto header = write_header({at + manifest.size(), at, manifest.size(), hash_bytes(manifest)});
    pieces[0] = header;
    write_pieces_atomic(path, pieces);
  }

  static inline const std::vector<abi::Image> kNoImages;
  const SaveOptions options_;
  ConstantPool pool_;
  FlatBufferBuilder b_;
  std::vector<Pending> sections_;
};

}  // namespace

void save_artifact(const std::string& path, std::span<const ProgramData> programs,
                   const SaveOptions& options) {
  for (size_t i = 0; i < programs.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (programs[i].signature.function != programs[k].signature.function) continue;
      throw ValueError(
          fmt::format("save: two programs are named {}", programs[i].signature.function),
          {.label = "artifact_name"});
    }
    if (programs[i].signature.tensors.size() != programs[i].graph->params.size() ||
        programs[i].signature.result_tensors.size() != programs[i].graph->results.size()) {
      throw InternalError("internal: a signature does not fit its graph");
    }
  }
  Writer(options).run(path, programs);
}

}  // namespace tenon::program
