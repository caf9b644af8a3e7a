// tenon tokenize, tenon detokenize: one JSON value a line in, one a line out.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/cli/command.h"
#include "tenon/formats/gguf.h"
#include "tenon/pipelines/tokenizer.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::json;

struct TokenizeOptions {
  std::string model_path;
  bool parse_special = false;
  bool hex = false;
};

// Calls `work` with each line that is not empty; errors name the line.
template <class Work>
void for_each_line(const char* command, const Work& work) {
  std::string line;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    if (line.empty()) continue;
    try {
      work(Json::parse(line));
    } catch (const nlohmann::json::exception& error) {
      throw FormatError(fmt::format("{}: line {}: {}", command, number, error.what()));
    }
  }
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  const auto digit = [&text](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    throw FormatError("tokenize: not hexadecimal: " + text);
  };
  if (text.size() % 2 != 0) throw FormatError("tokenize: odd number of digits: " + text);
  for (size_t i = 0; i < text.size(); i += 2) {
    bytes += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  }
  return bytes;
}

std::string to_hex_text(std::string_view bytes) {
  std::string text;
  for (char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

std::shared_ptr<const pipelines::Tokenizer> open_tokenizer(const std::string& path) {
  auto tokenizer = pipelines::Tokenizer::from_gguf(*formats::GgufFile::open(path));
  if (!tokenizer->warning().empty()) fmt::print(stderr, "note: {}\n", tokenizer->warning());
  return tokenizer;
}

void run_tokenize(const TokenizeOptions& options) {
  auto tokenizer = open_tokenizer(options.model_path);
  for_each_line("tokenize", [&](const Json& value) {
    const auto text = value.get<std::string>();
    const std::vector<int32_t> ids = tokenizer->encode(options.hex ? from_hex(text) : text,
                                                       {.parse_special = options.parse_special});
    fmt::print("{}\n", Json(ids).dump());
  });
}

void run_detokenize(const TokenizeOptions& options) {
  auto tokenizer = open_tokenizer(options.model_path);
  for_each_line("detokenize", [&](const Json& value) {
    const std::string bytes = tokenizer->decode(value.get<std::vector<int32_t>>());
    const Json text = options.hex ? to_hex_text(bytes) : bytes;
    fmt::print("{}\n", text.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace));
  });
}

}  // namespace

void add_tokenize(CLI::App& app) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* tokenize = add_command(app, "tokenize", "JSON strings, one a line, to arrays of ids",
                                   "echo '\"Hello\"' | tenon tokenize --model-path F.gguf");
  tokenize->add_option("--model-path", options->model_path, "the GGUF file")->required();
  tokenize->add_flag("--parse-special", options->parse_special,
                     "control tokens in the text become their ids");
  tokenize->add_flag("--hex", options->hex, "strings are bytes in hexadecimal");
  tokenize->callback([options] { run_tokenize(*options); });
  CLI::App* detokenize =
      add_command(app, "detokenize", "arrays of ids, one a line, to JSON strings",
                  "echo '[19556]' | tenon detokenize --model-path F.gguf");
  detokenize->add_option("--model-path", options->model_path, "the GGUF file")->required();
  detokenize->add_flag("--hex", options->hex, "print bytes in hexadecimal");
  detokenize->callback([options] { run_detokenize(*options); });
}

}  // namespace tenon::cli
