// tenon run llama: text from a model.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/cli/command.h"
#include "tenon/cli/progress.h"
#include "tenon/formats/gguf.h"
#include "tenon/pipelines/chat_template.h"
#include "tenon/pipelines/generate.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct RunOptions {
  std::string model_path;
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_tokens;
  std::optional<std::string> system;
  bool no_chat = false;
  std::string weights = "file";
  bool exact = false;
  bool keep_packed = false;
  int threads = 0;
  std::string output = "text";
  pipelines::GenerateOptions generate;
};

std::vector<int32_t> parse_tokens(const std::string& text) {
  try {
    return Json::parse(text).get<std::vector<int32_t>>();
  } catch (const nlohmann::json::exception&) {
    throw ValueError("run: --prompt-tokens: expected an array of ids, got " + text,
                     {.hint = "for example --prompt-tokens \"[504, 2365]\""});
  }
}

std::vector<int32_t> encode_prompt(const RunOptions& options, const formats::GgufFile& file,
                                   const pipelines::Tokenizer& tokenizer) {
  if (options.prompt_tokens) return parse_tokens(*options.prompt_tokens);
  std::optional<pipelines::ChatTemplate> chat;
  if (!options.no_chat) chat = pipelines::ChatTemplate::from_gguf(file, tokenizer);
  if (!chat) {
    if (options.system) {
      throw ValueError(
          "run: --system needs a chat template",
          {.hint = options.no_chat ? "leave out --no-chat" : "the model's file has none"});
    }
    return tokenizer.encode(*options.prompt, {.parse_special = true, .add_special = true});
  }
  std::vector<pipelines::ChatMessage> messages;
  if (options.system) messages.push_back({"system", *options.system});
  messages.push_back({"user", *options.prompt});
  return tokenizer.encode(chat->render(messages), {.parse_special = true});
}

pipelines::MatrixForm matrix_form(const RunOptions& options, const formats::GgufFile& file) {
  if (options.weights == "f32") return DType::kF32;
  if (options.weights == "bf16") return DType::kBF16;
  return pipelines::MatrixForm::of_file(file,
                                        options.exact ? Activations::kExact : Activations::kInt8);
}

void print_metrics(const pipelines::GenerateMetrics& m, double startup_ms) {
  fmt::print(stderr, "\n");
  fmt::print(stderr, "Prompt size: {} tokens\n", m.prompt_size);
  fmt::print(stderr, "Output size: {} tokens\n", m.output_size);
  fmt::print(stderr, "Startup time: {:.1f} ms\n", startup_ms);
  fmt::print(stderr, "Time to first token: {:.1f} ms\n", m.time_to_first_token_ms);
  fmt::print(stderr, "Prompt throughput: {:.1f} tokens per second\n", m.prompt_tokens_per_second);
  fmt::print(stderr, "Generation throughput: {:.1f} tokens per second\n",
             m.generation_tokens_per_second);
}

Json to_json(const std::vector<int32_t>& prompt, const pipelines::Generation& out,
             double startup_ms) {
  const pipelines::GenerateMetrics& m = out.metrics;
  Json metrics = {{"prompt_size", m.prompt_size},
                  {"output_size", m.output_size},
                  {"startup_ms", startup_ms},
                  {"time_to_first_token_ms", m.time_to_first_token_ms},
                  {"prompt_tokens_per_second", m.prompt_tokens_per_second},
                  {"generation_tokens_per_second", m.generation_tokens_per_second}};
  return {{"prompt_tokens", prompt},
          {"tokens", out.tokens},
          {"text", out.text},
          {"metrics", std::move(metrics)}};
}

void run_llama(const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  if (!options.prompt && !options.prompt_tokens) {
    throw CLI::RequiredError("one of --prompt and --prompt-tokens");
  }
  if (options.threads > 0) {
    ::setenv("TENON_NUM_THREADS", std::to_string(options.threads).c_str(), 1);
  }
  pipelines::Sampler check(options.generate.sampler);  // refuses bad options before the long work
  auto file = formats::GgufFile::open(options.model_path);
  auto tokenizer = pipelines::Tokenizer::from_gguf(*file);
  const std::vector<int32_t> prompt = encode_prompt(options, *file, *tokenizer);
  pipelines::check_prompt(pipelines::LlamaConfig::from_gguf(*file), prompt);
  std::shared_ptr<pipelines::LlamaModel> model;
  {
    ProgressLine line("loading " + options.model_path);
    model = pipelines::LlamaModel::load(
        *file, matrix_form(options, *file),
        [&line](uint64_t done, uint64_t total) { line.update(done, total); }, options.keep_packed);
  }
  const std::chrono::duration<double, std::milli> startup =
      std::chrono::steady_clock::now() - start;
  const bool json = options.output == "json";
  pipelines::Generation out = pipelines::generate(
      *model, tokenizer, prompt, options.generate, [json](std::string_view text) {
        if (json) return;
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
      });
  if (json) {
    fmt::print("{}\n", to_json(prompt, out, startup.count()).dump());
    return;
  }
  fmt::print("\n");
  std::fflush(stdout);
  print_metrics(out.metrics, startup.count());
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* run = add_command(app, "run", "Runs a pipeline",
                              "tenon run llama --model-path F.gguf --prompt \"Hello\"");
  run->require_subcommand(1);
  CLI::App* llama =
      add_command(*run, "llama", "Text from a GGUF file of the Llama family",
                  "tenon run llama --model-path F.gguf --prompt \"What is the sea?\"");
  auto options = std::make_shared<RunOptions>();
  pipelines::GenerateOptions& generate = options->generate;
  llama->add_option("--model-path", options->model_path, "the GGUF file")->required();
  CLI::Option* prompt =
      llama->add_option("--prompt", options->prompt, "what the model answers or continues");
  llama->add_option("--prompt-tokens", options->prompt_tokens, "ids in its place: \"[1,2]\"")
      ->excludes(prompt);
  llama->add_option("--system", options->system, "the system message of the chat");
  llama->add_flag("--no-chat", options->no_chat, "continue the prompt as it is, without template");
  llama->add_option("--max-new-tokens", generate.max_new_tokens, "at most so many; -1: no limit")
      ->check(CLI::Range(int64_t{-1}, int64_t{1} << 31))
      ->capture_default_str();
  llama->add_option("--temperature", generate.sampler.temperature, "0: greedy")
      ->capture_default_str();
  llama->add_option("--top-k", generate.sampler.top_k, "of the so many likeliest tokens; 0: all")
      ->capture_default_str();
  llama
      ->add_option("--top-p", generate.sampler.top_p,
                   "of the likeliest tokens that make up this probability; 1: all")
      ->capture_default_str();
  llama
      ->add_option("--min-p", generate.sampler.min_p,
                   "of tokens at least so likely, as a part of the likeliest; 0: all")
      ->capture_default_str();
  llama->add_option("--repetition-penalty", generate.sampler.repetition_penalty, "1: off")
      ->capture_default_str();
  llama->add_option("--seed", generate.sampler.seed, "the same seed draws the same tokens")
      ->capture_default_str();
  llama->add_flag("--ignore-eos", generate.ignore_eos, "go on after the end of the answer");
  llama
      ->add_option("--weights", options->weights,
                   "as they stand in the file, or decoded to a dtype")
      ->check(CLI::IsMember({"file", "f32", "bf16"}))
      ->capture_default_str();
  llama->add_flag("--exact", options->exact,
                  "with the file's weights: activations are not rounded to 8 bits");
  llama->add_flag("--keep-packed", options->keep_packed,
                  "with the file's weights: keep their packed form on disk for the next start");
  llama->add_option("--threads", options->threads, "0: as many as the machine gives")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  llama->add_option("--output", options->output, "text as it grows, or one JSON object")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  llama->callback([options] { run_llama(*options); });
}

}  // namespace tenon::cli
