// `tenon run llama`, `tokenize` and `detokenize` as a user meets them: output, errors, exit status.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/test_data.h"

namespace tenon {
namespace {

using Json = nlohmann::json;

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Runs `tenon` with arguments in the shell's spelling, its input from a file of that text.
Outcome tenon(const std::string& arguments, const std::string& input = "") {
  const auto folder = std::filesystem::path(testing::TempDir());
  const std::string in = (folder / "cli.in").string();
  const std::string out = (folder / "cli.out").string();
  const std::string err = (folder / "cli.err").string();
  std::ofstream(in, std::ios::binary) << input;
  const std::string command = std::string("'") + TENON_CLI + "' " + arguments + " < '" + in +
                              "' > '" + out + "' 2> '" + err + "'";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): a shell is wanted
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
}

std::string model_option() { return " --model-path '" + model_path() + "' "; }

TEST(LlamaCli, EveryCommandHasHelpWithAnExample) {
  for (const std::string command : {"run", "run llama", "tokenize", "detokenize", "quantize"}) {
    SCOPED_TRACE(command);
    const Outcome help = tenon(command + " --help");
    EXPECT_EQ(help.status, 0);
    EXPECT_NE(help.out.find("example:\n  "), std::string::npos) << help.out;
    EXPECT_EQ(help.err, "");
  }
  const std::string llama = tenon("run llama --help").out;
  for (const std::string option :
       {"--model-path", "--prompt", "--prompt-tokens", "--system", "--no-chat", "--max-new-tokens",
        "--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty", "--seed",
        "--ignore-eos", "--weights", "--exact", "--keep-packed", "--threads", "--output"}) {
    EXPECT_NE(llama.find(option + " "), std::string::npos) << option;
  }
}

TEST(LlamaCli, WrongUsageIsStatusTwo) {
  for (const std::string arguments :
       {"walk", "run", "run llama --prompt x", "run llama --model-path a.gguf",
        "run llama --model-path a.gguf --prompt x --prompt-tokens [1]",
        "run llama --model-path a.gguf --prompt x --weights f16",
        "run llama --model-path a.gguf --prompt x --output xml",
        "run llama --model-path a.gguf --prompt x --max-new-tokens many",
        "run llama --model-path a.gguf --prompt x --frequency 1", "tokenize", "detokenize"}) {
    SCOPED_TRACE(arguments);
    const Outcome wrong = tenon(arguments);
    EXPECT_EQ(wrong.status, 2);
    EXPECT_EQ(wrong.out, "");
    EXPECT_NE(wrong.err, "");
  }
}

// A model in another format still writes; the file says what it holds.
TEST(LlamaCli, QuantizedByTheCommand) {
  const std::string path = testing::TempDir() + "quantized.gguf";
  const Outcome made = tenon("quantize '" + model_path() + "' '" + path + "' --type q8_0");
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(made.err, "");
  EXPECT_NE(made.out.find(" bits a weight (from 98.4 MB)"), std::string::npos) << made.out;
  EXPECT_NE(made.out.find("\n    210 tensors Q8_0  from Q4_1\n"), std::string::npos) << made.out;
  EXPECT_NE(
      tenon("inspect '" + path + "'").out.find("blk.0.attn_k.weight                     Q8_0"),
      std::string::npos);
  const std::string words = " --prompt 'The capital of France is' --no-chat --max-new-tokens 4";
  const Outcome was = tenon("run llama" + model_option() + words);
  const Outcome is = tenon("run llama --model-path '" + path + "'" + words);
  EXPECT_EQ(is.status, 0) << is.err;
  EXPECT_EQ(is.out, was.out);
  std::filesystem::remove(path);
}

TEST(LlamaCli, ARefusalIsStatusOneAndOneParagraph) {
  const std::string run = "run llama" + model_option();
  for (const auto& [arguments, text] : std::vector<std::pair<std::string, std::string>>{
           {"run llama --model-path none.gguf --prompt x", "tenon::IoError: none.gguf"},
           {run + "--prompt x --temperature -1", "temperature"},
           {run + "--prompt x --top-p 0", "top_p"},
           {run + "--prompt-tokens '[1, \"two\"]'", "expected an array of ids"},
           {run + "--prompt-tokens '[49152]'", "token 49152 is outside the vocabulary of 49152"},
           {run + "--prompt '' --no-chat", "the prompt has no tokens"},
           {run + "--prompt x --no-chat --system y", "--system needs a chat template"}}) {
    SCOPED_TRACE(arguments);
    const Outcome refused = tenon(arguments);
    EXPECT_EQ(refused.status, 1);
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(refused.err.substr(0, 7), "tenon::") << refused.err;
    EXPECT_NE(refused.err.find(text), std::string::npos) << refused.err;
    EXPECT_EQ(refused.err.find("\n\n"), std::string::npos);
  }
}

TEST(LlamaCli, TokenizeAndDetokenizeAreLinesOfJson) {
  const Outcome ids = tenon("tokenize" + model_option(), "\"Hello, wörld\"\n\n\"<|im_end|>\"\n");
  EXPECT_EQ(ids.status, 0) << ids.err;
  std::istringstream lines(ids.out);
  std::string first;
  std::string second;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_GT(Json::parse(second).size(), 1u);  // plain text without --parse-special
  const Outcome special = tenon("tokenize --parse-special" + model_option(), "\"<|im_end|>\"\n");
  EXPECT_EQ(special.out, "[2]\n");
  const Outcome text = tenon("detokenize" + model_option(), ids.out);
  EXPECT_EQ(text.out, "\"Hello, wörld\"\n\"<|im_end|>\"\n");
  // Bytes that are no text.
  const Outcome bytes = tenon("tokenize --hex" + model_option(), "\"48c3\"\n");
  EXPECT_EQ(bytes.status, 0);
  EXPECT_EQ(tenon("detokenize --hex" + model_option(), first + "\n").out,
            "\"48656c6c6f2c2077c3b6726c64\"\n");
  const Outcome damaged = tenon("tokenize" + model_option(), "\"right\"\n\"open\n");
  EXPECT_EQ(damaged.status, 1);
  EXPECT_NE(damaged.err.find("tokenize: line 2:"), std::string::npos) << damaged.err;
  const Outcome outside = tenon("detokenize" + model_option(), "[49152]\n");
  EXPECT_EQ(outside.status, 1);
  EXPECT_EQ(outside.err.substr(0, 17), "tenon::IndexError");
}

TEST(LlamaCli, RunPrintsTextOrOneJsonObject) {
  const std::string run = "run llama" + model_option() + "--max-new-tokens 6 ";
  const Outcome json = tenon(run + "--prompt 'What is the sea?' --output json");
  ASSERT_EQ(json.status, 0) << json.err;
  const Json object = Json::parse(json.out);
  EXPECT_EQ(object.size(), 4u);
  EXPECT_EQ(object.at("tokens").size(), 6u);
  const Json& metrics = object.at("metrics");
  EXPECT_EQ(metrics.at("prompt_size"), object.at("prompt_tokens").size());
  EXPECT_EQ(metrics.at("output_size"), 6);
  for (const char* name : {"startup_ms", "time_to_first_token_ms", "prompt_tokens_per_second",
                           "generation_tokens_per_second"}) {
    EXPECT_GT(metrics.at(name).get<double>(), 0) << name;
  }
  // The same prompt by its ids; progress is for terminals.
  const Outcome text = tenon(run + "--prompt-tokens '" + object.at("prompt_tokens").dump() + "'");
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.out, object.at("text").get<std::string>() + "\n");
  EXPECT_EQ(text.err.find('\r'), std::string::npos);
  for (const char* line : {"Prompt size:", "Output size:", "Startup time:", "Time to first token:",
                           "Prompt throughput:", "Generation throughput:"}) {
    EXPECT_NE(text.err.find(line), std::string::npos) << line;
  }
}

TEST(LlamaCli, TheSameSeedDrawsTheSameTokens) {
  const std::string run = "run llama" + model_option() +
                          "--prompt 'Once upon' --no-chat --weights bf16 --max-new-tokens 8 "
                          "--temperature 1.5 --top-k 100 --output json --seed ";
  const auto tokens = [&](const std::string& seed) {
    return Json::parse(tenon(run + seed).out).at("tokens");
  };
  const Json first = tokens("1");
  EXPECT_EQ(first, tokens("1"));
  EXPECT_NE(first, tokens("2"));
}

}  // namespace
}  // namespace tenon
