// Files that a reader must refuse or accept, as expected.json of their folder says.
// TENON_GGUF_HOSTILE names another folder of the same form.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tenon/base/error.h"
#include "tenon/base/mmap.h"
#include "tenon/formats/gguf.h"
#include "tests/test_data.h"

namespace tenon::formats {
namespace {

std::string folder() { return data_path("TENON_GGUF_HOSTILE", "tests/data/gguf-hostile"); }

nlohmann::json expected() {
  auto file = MappedFile::open(folder() + "/expected.json");
  const auto* text = reinterpret_cast<const char*>(file->bytes().data());
  return nlohmann::json::parse(text, text + file->bytes().size());
}

TEST(GgufHostile, RefusesEachNamingFileAndReason) {
  nlohmann::json names = expected().at("reject");
  EXPECT_GT(names.size(), 0u);
  std::set<std::string> reasons;
  for (const std::string name : names) {
    std::string path = folder() + "/" + name + ".gguf";
    try {
      GgufFile::open(path);
      ADD_FAILURE() << name << " was accepted";
    } catch (const FormatError& e) {
      std::string text = e.what();
      EXPECT_TRUE(text.starts_with(path + ": ")) << text;
      EXPECT_LT(text.size(), path.size() + 300) << name;
      reasons.insert(text.substr(path.size()));
    }
  }
  EXPECT_GT(reasons.size(), names.size() / 2);
}

TEST(GgufHostile, AcceptsTheRightOnes) {
  nlohmann::json names = expected().at("accept");
  EXPECT_GT(names.size(), 0u);
  for (const std::string name : names) {
    auto file = GgufFile::open(folder() + "/" + name + ".gguf");
    EXPECT_FALSE(file->tensors().empty()) << name;
    for (const GgufTensor& tensor : file->tensors()) {
      std::vector<float> values(static_cast<size_t>(tensor.elements));
      tensor.decode(values);
    }
  }
}

// Every prefix of a right file, and every byte of its head changed, is read or refused, nothing
// else.
TEST(GgufHostile, CutAndChangedFiles) {
  const nlohmann::json names = expected().at("accept");
  for (const std::string name : names) {
    auto file = MappedFile::open(folder() + "/" + name + ".gguf");
    std::vector<std::byte> bytes(file->bytes().begin(), file->bytes().end());
    int accepted = 0;
    auto attempt = [&](std::span<const std::byte> data) {
      // An own allocation of the exact size, so that a sanitizer sees a step beyond it.
      std::vector<std::byte> copy(data.begin(), data.end());
      try {
        GgufFile::parse(copy, "memory");
        ++accepted;
      } catch (const FormatError&) {
      }
    };
    for (size_t cut = 0; cut < bytes.size(); ++cut) attempt(std::span(bytes).first(cut));
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (int flip : {0x01, 0x80, 0xff}) {
        bytes[at] ^= static_cast<std::byte>(flip);
        attempt(bytes);
        bytes[at] ^= static_cast<std::byte>(flip);
      }
    }
    EXPECT_GT(accepted, 0)
        << name;  // changes of data and of names are no damage that a reader can see
  }
}

}  // namespace
}  // namespace tenon::formats
