#include "tenon/program/inspect.h"

#include <algorithm>
#include <filesystem>

#include "tenon/runtime/cpu.h"

namespace tenon::program {
namespace {

std::string line(std::string_view head, const std::string& text) {
  return fmt::format("{:<22}{}\n", head, text);
}

std::string guards_text(const std::vector<Guard>& guards, bool list) {
  std::string counts;
  for (Guard::Kind kind :
       {Guard::Kind::kStructure, Guard::Kind::kStatic, Guard::Kind::kDtype, Guard::Kind::kShape}) {
    const auto n = std::count_if(guards.begin(), guards.end(),
                                 [kind](const Guard& guard) { return guard.kind == kind; });
    if (n > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", name(kind), n);
  }
  std::string text = line("guards", fmt::format("{}: {}{}", guards.size(), counts,
                                                list ? "" : "        (--guards lists them)"));
  if (!list) return text;
  for (const Guard& guard : guards) {
    text += fmt::format("  {:<20}{:<12}{} [{}]\n", guard.route, name(guard.kind), guard.expected,
                        guard.label);
  }
  return text;
}

std::string code_text(const std::vector<CodeInfo>& code) {
  if (code.empty()) return line("code", "none: the interpreter runs the graph");
  std::string best;
  for (const std::string& level : runtime::usable_levels()) {
    const bool there = std::any_of(code.begin(), code.end(),
                                   [&](const CodeInfo& info) { return info.level == level; });
    if (best.empty() && there) best = level;
  }
  std::string text;
  for (const CodeInfo& info : code) {
    const std::string_view name = runtime::short_name(info.level);
    const std::string level =
        name == info.level ? info.level : fmt::format("{} ({})", info.level, name);
    text += line(text.empty() ? "code" : "",
                 fmt::format("{:<20}{:>9}{}", level, bytes_text(info.bytes),
                             info.level == best ? "   ← this machine" : ""));
  }
  return text;
}

std::string weights_text(const std::vector<Weight>& weights, uint64_t inside, bool list) {
  std::string text = line(
      "weights", fmt::format("{} inside, {} external", inside == 0 ? "none" : bytes_text(inside),
                             weights.empty() ? "none" : fmt::format("{}", weights.size())));
  if (!list) return text;
  for (const Weight& weight : weights) {
    text += fmt::format("  {:<40}{}{}\n", weight.name, name(weight.dtype), str(weight.shape));
  }
  return text;
}

}  // namespace

std::string bytes_text(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  if (bytes < 1000 * 1000) return fmt::format("{:.1f} KB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string inspect_text(const Artifact& artifact, bool guards) {
  artifact.check_all();
  uint64_t inside = 0;
  for (const SectionInfo& section : artifact.sections()) {
    if (section.name.starts_with("constant")) inside += section.bytes;
  }
  std::string text =
      line(std::filesystem::path(artifact.path()).filename().string(),
           fmt::format("Tenon artifact, format {}, written by tenon {}, {}", artifact.format(),
                       artifact.tenon_version(), bytes_text(artifact.bytes())));
  for (const ProgramInfo& program : artifact.programs()) {
    if (artifact.programs().size() > 1) text += line("program", program.signature.function);
    text += line("signature", program.signature.str());
    text += guards_text(program.signature.guards(), guards);
    text += weights_text(program.weights, inside, guards);
    text += line("graph",
                 fmt::format("{} operations, {}", program.nodes, bytes_text(program.graph_bytes)));
    text += code_text(program.code);
  }
  text +=
      line("digests", fmt::format("all {} sections right (blake3)", artifact.sections().size()));
  return text;
}

}  // namespace tenon::program
