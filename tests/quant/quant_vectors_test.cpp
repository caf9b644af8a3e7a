// The reference vectors of the block formats (tests/data/quant-vectors/README.md): encoding and
// decoding give every byte. TENON_QUANT_VECTORS names another folder of the same form.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/base/mmap.h"
#include "tenon/quant/block_format.h"
#include "tests/test_data.h"

namespace tenon::quant {
namespace {

std::string vectors_folder() {
  return data_path("TENON_QUANT_VECTORS", "tests/data/quant-vectors");
}

const nlohmann::json& vector_index() {
  static const nlohmann::json index = [] {
    auto file = MappedFile::open(vectors_folder() + "/index.json");
    const auto* text = reinterpret_cast<const char*>(file->bytes().data());
    return nlohmann::json::parse(text, text + file->bytes().size());
  }();
  return index;
}

// The generator of the inputs.
class Draw {
 public:
  explicit Draw(uint64_t stream)
      : state_(std::stoull(vector_index().at("seed").get<std::string>()) ^
               (0x9E3779B97F4A7C15ull * (stream + 1))) {}
  double u() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<double>(state_ >> 40) / 16777216.0;
  }
  double bell() {
    double sum = u();
    for (int i = 0; i < 3; ++i) sum += u();
    return sum - 2;
  }

 private:
  uint64_t state_;
};

double edge(int i, double r) {
  switch (i / 128) {
    case 2: return 0.25;
    case 3: return -0.25;
    case 4: return (2 * r - 1) / 1073741824.0;
    case 5: return (2 * r - 1) / 1048576.0;
    case 6: return i % 32 == 7 ? 1 : 0;
    case 7: return i % 2 ? 0 : 2 * r - 1;
    default: return 0;
  }
}

double element(int kind, int i, Draw& draw) {
  switch (kind) {
    case 0: return draw.bell() / 32;
    case 1: return 2 * draw.u() - 1;
    case 2: return 0.5 * draw.u() + 0.25;
    case 3: return draw.bell() / 32 * (i % 37 == 5 ? 32 : 1);
    case 4: return edge(i, draw.u());
    case 5: return (std::trunc(33 * draw.u()) - 16) / 16;
    case 6: return -draw.u();
    default: return draw.bell() * 32768;
  }
}

std::vector<float> input(int kind, int n) {
  Draw draw(static_cast<uint64_t>(kind));
  std::vector<float> x(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i)
    x[static_cast<size_t>(i)] = static_cast<float>(element(kind, i, draw));
  return x;
}

std::vector<float> activation(int kind, int n) {
  Draw draw(1000 + static_cast<uint64_t>(kind));
  std::vector<float> a(static_cast<size_t>(n));
  for (float& v : a) v = static_cast<float>(draw.bell());
  return a;
}

std::string fnv1a64(const std::vector<float>& values) {
  uint64_t hash = 1469598103934665603ull;
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t i = 0; i < values.size() * 4; ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
  return fmt::format("{:016x}", hash);
}

TEST(QuantVectors, TheGeneratorMakesTheirInputs) {
  ASSERT_EQ(vector_index().at("cases").size(), 8u);
  for (const auto& c : vector_index().at("cases")) {
    int kind = c.at("id");
    EXPECT_EQ(fnv1a64(input(kind, c.at("n"))), c.at("x_fnv1a64")) << c.at("name");
    EXPECT_EQ(fnv1a64(activation(kind, c.at("n"))), c.at("a_fnv1a64")) << c.at("name");
  }
}

struct Header {
  uint32_t kind, n, bytes, zero;
};

class QuantVectors : public testing::TestWithParam<const char*> {};

TEST_P(QuantVectors, EveryByte) {
  const BlockFormat* format = find_block_format(GetParam());
  ASSERT_NE(format, nullptr);
  auto file = MappedFile::open(vectors_folder() + "/" + GetParam() + ".bin");
  std::span<const std::byte> rest = file->bytes();
  int records = 0;
  while (!rest.empty()) {
    Header header;
    ASSERT_GE(rest.size(), sizeof header + 8);
    std::memcpy(&header, rest.data(), sizeof header);
    double dot;
    std::memcpy(&dot, rest.data() + sizeof header, 8);
    rest = rest.subspan(sizeof header + 8);
    SCOPED_TRACE(testing::Message() << "case " << header.kind);
    ASSERT_EQ(format->bytes_of(header.n), header.bytes);
    ASSERT_GE(rest.size(), header.bytes + header.n * 4);

    std::vector<std::byte> bytes(header.bytes);
    encode(*format, input(static_cast<int>(header.kind), static_cast<int>(header.n)), bytes);
    EXPECT_EQ(std::memcmp(bytes.data(), rest.data(), bytes.size()), 0) << "encoded bytes differ";

    std::vector<float> values(header.n);
    decode(*format, rest.first(header.bytes), values);
    EXPECT_EQ(std::memcmp(values.data(), rest.data() + header.bytes, header.n * 4), 0)
        << "decoded values differ";
    std::vector<float> a = activation(static_cast<int>(header.kind), static_cast<int>(header.n));
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      sum += static_cast<double>(values[i]) * static_cast<double>(a[i]);
    }
    EXPECT_EQ(sum, dot);
    rest = rest.subspan(header.bytes + header.n * 4);
    ++records;
  }
  EXPECT_EQ(records, 8);
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantVectors,
                         testing::Values("q4_0", "q4_1", "q5_0", "q8_0", "q4_k", "q5_k", "q6_k",
                                         "bf16", "f16"),
                         [](const auto& info) { return std::string(info.param); });

// Q5_1 has no file: its codes are those of its definition, worked out here in double.
TEST(QuantVectors, Q51ByDefinition) {
  const BlockFormat& format = block_format(Encoding::kQ5_1);
  for (int kind = 0; kind < 8; ++kind) {
    std::vector<float> x = input(kind, 1024);
    std::vector<std::byte> bytes(static_cast<size_t>(format.bytes_of(1024)));
    encode(format, x, bytes);
    std::vector<float> back(1024);
    decode(format, bytes, back);
    for (size_t block = 0; block < 32; ++block) {
      const float* in = x.data() + 32 * block;
      float low = *std::min_element(in, in + 32);
      float high = *std::max_element(in, in + 32);
      for (size_t j = 0; j < 32; ++j) {
        // Half a step, and the rounding of scale and minimum to half floats.
        double bound =
            (high - low) / 62.0 + (high - low) * 0x1p-11 + std::fabs(low) * 0x1p-11 + 0x1p-24 * 32;
        EXPECT_NEAR(back[32 * block + j], in[j], bound * 1.001) << kind << " " << block << " " << j;
      }
    }
  }
}

}  // namespace
}  // namespace tenon::quant
