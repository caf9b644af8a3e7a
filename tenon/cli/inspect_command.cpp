// tenon inspect: what is inside a file; runs nothing of it.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "tenon/base/error.h"
#include "tenon/cli/command.h"
#include "tenon/formats/gguf.h"
#include "tenon/program/inspect.h"

namespace tenon::cli {
namespace {

constexpr size_t kShownText = 60;

struct InspectOptions {
  std::string path;
  bool guards = false;
};

bool is_gguf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4> begin{};
  file.read(begin.data(), begin.size());
  return file.gcount() == 4 && std::memcmp(begin.data(), "GGUF", 4) == 0;
}

// A length of eight bytes, then JSON of that length.
bool is_safetensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<unsigned char, 9> begin{};
  file.read(reinterpret_cast<char*>(begin.data()), begin.size());
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | begin[i];
  return file.gcount() == 9 && begin[8] == '{' && length < std::filesystem::file_size(path);
}

template <class T>
std::string number(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
  return fmt::format("{}", value);
}

// A text on one line, shortened, without what a terminal would act on.
std::string shown(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, kShownText)) {
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 32 || c == 127) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return text.size() > kShownText ? fmt::format("\"{}…\" ({} bytes)", out, text.size())
                                  : fmt::format("\"{}\"", out);
}

std::string value_text(const formats::GgufValue& value) {
  using formats::GgufType;
  switch (value.type) {
    case GgufType::kU8: return number<uint8_t>(value.bytes);
    case GgufType::kI8: return number<int8_t>(value.bytes);
    case GgufType::kU16: return number<uint16_t>(value.bytes);
    case GgufType::kI16: return number<int16_t>(value.bytes);
    case GgufType::kU32: return number<uint32_t>(value.bytes);
    case GgufType::kI32: return number<int32_t>(value.bytes);
    case GgufType::kF32: return number<float>(value.bytes);
    case GgufType::kBool: return number<bool>(value.bytes);
    case GgufType::kU64: return number<uint64_t>(value.bytes);
    case GgufType::kI64: return number<int64_t>(value.bytes);
    case GgufType::kF64: return number<double>(value.bytes);
    case GgufType::kString:
      return shown({reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()});
    case GgufType::kArray: break;
  }
  return value.type_text();
}

void inspect_gguf(const std::string& path) {
  const auto file = formats::GgufFile::open(path);
  fmt::print("{:<34}GGUF, version {}, {}\n", std::filesystem::path(path).filename().string(),
             file->version(), program::bytes_text(file->size()));
  fmt::print("metadata                          {} values\n", file->metadata().size());
  for (const formats::GgufEntry& entry : file->metadata()) {
    fmt::print("  {:<40}{}\n", entry.key, value_text(entry.value));
  }
  int64_t elements = 0;
  for (const formats::GgufTensor& tensor : file->tensors()) elements += tensor.elements;
  fmt::print("tensors                           {}, {} elements\n", file->tensors().size(),
             elements);
  for (const formats::GgufTensor& tensor : file->tensors()) {
    fmt::print("  {:<40}{}[{}] {}\n", tensor.name, tensor.format->name,
               fmt::join(tensor.shape, ", "), program::bytes_text(tensor.data.size()));
  }
}

void run_inspect(const InspectOptions& options) {
  if (std::filesystem::is_directory(options.path)) {
    throw IoError(options.path + ": is a folder");
  }
  if (program::is_artifact(options.path)) {
    fmt::print("{}", program::inspect_text(*program::Artifact::open(options.path), options.guards));
    return;
  }
  if (is_gguf(options.path)) return inspect_gguf(options.path);
  if (is_safetensors(options.path)) {
    throw UnsupportedError(options.path + ": safetensors files are not read yet");
  }
  throw FormatError(fmt::format("{}: neither a Tenon artifact nor GGUF", options.path),
                    {.hint = "a graph's text is printed by `tenon ir`"});
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command =
      add_command(app, "inspect", "Shows what is inside an artifact or a GGUF file; runs nothing",
                  "tenon inspect step.tenon --guards");
  command->add_option("FILE", options->path, "an artifact (.tenon) or GGUF file")->required();
  command->add_flag("--guards", options->guards, "list every guard and weight of an artifact");
  command->callback([options] { run_inspect(*options); });
}

}  // namespace tenon::cli
