// tenon quantize: a GGUF file with its matrices in another block format.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "tenon/base/error.h"
#include "tenon/cli/command.h"
#include "tenon/cli/progress.h"
#include "tenon/pipelines/requantize.h"
#include "tenon/program/inspect.h"

namespace tenon::cli {
namespace {

struct QuantizeOptions {
  std::string in, out, type, output_type;
};

std::string format_names() {
  std::vector<std::string_view> names;
  for (const quant::BlockFormat& format : quant::block_formats()) names.push_back(format.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const quant::BlockFormat* find_format(const char* option, const std::string& name) {
  const quant::BlockFormat* format = quant::find_block_format(name);
  if (format == nullptr) {
    throw ValueError(fmt::format("quantize: {} {} is not a block format", option, name),
                     {.label = "quantize_type", .hint = "one of " + format_names()});
  }
  return format;
}

void print_report(const pipelines::RequantizeReport& report) {
  bool twice = false;
  for (const pipelines::RequantizedGroup& group : report.groups) {
    std::string change = group.from == group.to ? "kept" : fmt::format("from {}", group.from->name);
    fmt::print("  {:>5} tensor{} {:<5} {}{}\n", group.tensors, group.tensors == 1 ? " " : "s",
               group.to->name, change,
               group.instead ? ": its rows are not whole blocks of the type asked for" : "");
    twice = twice || (group.from != group.to && group.from->is_quantized());
  }
  if (twice) {
    fmt::print(
        "  what the weights lost before stays lost; an F16 or F32 file makes a better one\n");
  }
}

void run_quantize(const QuantizeOptions& options) {
  pipelines::RequantizeOptions work;
  work.format = find_format("--type", options.type);
  if (!options.output_type.empty()) {
    work.output_format = find_format("--output-type", options.output_type);
  }
  std::error_code none;
  if (std::filesystem::equivalent(options.in, options.out, none)) {
    throw ValueError("quantize: IN and OUT are the same file: " + options.in,
                     {.label = "quantize_same_file", .hint = "write to another path"});
  }
  const auto start = std::chrono::steady_clock::now();
  const auto file = formats::GgufFile::open(options.in);
  pipelines::RequantizeReport report;
  {
    ProgressLine line("quantizing");
    work.progress = [&](uint64_t done, uint64_t total) { line.update(done, total); };
    report = pipelines::requantize(*file, options.out, work);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  fmt::print("{}: {}, {:.2f} bits a weight (from {}), in {:.1f} s\n", options.out,
             program::bytes_text(report.bytes),
             8.0 * static_cast<double>(report.bytes) / static_cast<double>(report.elements),
             program::bytes_text(file->size()), taken.count());
  print_report(report);
}

}  // namespace

void add_quantize(CLI::App& app) {
  auto options = std::make_shared<QuantizeOptions>();
  CLI::App* command =
      add_command(app, "quantize", "Writes a GGUF file with its weights in another format",
                  "tenon quantize model.F16.gguf model.Q4_K.gguf --type Q4_K");
  command->add_option("IN", options->in, "a GGUF file")->required();
  command->add_option("OUT", options->out, "the file to write")->required();
  command->add_option("--type", options->type, "format of every matrix: " + format_names())
      ->required();
  command->add_option("--output-type", options->output_type,
                      "format of the matrix that gives the logits, if another");
  command->callback([options] { run_quantize(*options); });
}

}  // namespace tenon::cli
