#include "tenon/pipelines/requantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "../refusal.h"
#include "tenon/formats/gguf_writer.h"

namespace tenon::pipelines {
namespace {

using formats::GgufFile;
using formats::GgufWriter;
using quant::block_format;
using quant::Encoding;

struct Matrix {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(values)); }
};

Matrix matrix(std::string name, std::vector<int64_t> shape) {
  Matrix m{std::move(name), std::move(shape), {}};
  int64_t count = 1;
  for (int64_t dim : m.shape) count *= dim;
  for (int64_t i = 0; i < count; ++i) {
    m.values.push_back(std::sin(static_cast<float>(i) * 0.37f) * 0.1f);
  }
  return m;
}

std::shared_ptr<const GgufFile> file_of(const std::vector<Matrix>& matrices) {
  GgufWriter writer;
  writer.set_string("general.architecture", "llama");
  writer.set_u32("general.file_type", 0);
  writer.set_strings("tokenizer.ggml.tokens", {"a", "b c", ""});
  writer.set_f32s("scores", {1.5f, -2});
  writer.set_alignment(64);
  for (const Matrix& m : matrices) {
    writer.add_tensor(m.name, block_format(Encoding::kF32), m.shape, m.bytes());
  }
  auto bytes = std::make_shared<std::vector<std::byte>>(writer.bytes());
  return GgufFile::parse(*bytes, "made.gguf", bytes);
}

std::string out_path() { return testing::TempDir() + "requantized.gguf"; }

std::vector<std::byte> encoded(const Matrix& m, const quant::BlockFormat& format) {
  std::vector<std::byte> out(
      static_cast<size_t>(format.bytes_of(static_cast<int64_t>(m.values.size()))));
  quant::encode(format, m.values, out);
  return out;
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

const std::vector<Matrix>& model() {
  static const std::vector<Matrix> matrices = {
      matrix("token_embd.weight", {7, 256}), matrix("norm.weight", {256}),
      matrix("wide.weight", {300, 512}),     matrix("experts.weight", {2, 3, 256}),
      matrix("narrow.weight", {5, 288}),     matrix("odd.weight", {3, 40})};
  return matrices;
}

// In every format: matrices hold the reference quantiser's bytes, rows without whole blocks take
// the format in its place, vectors stay, and the metadata is the file's.
TEST(Requantize, EveryFormat) {
  const auto in = file_of(model());
  for (const quant::BlockFormat& format : quant::block_formats()) {
    SCOPED_TRACE(format.name);
    uint64_t last = 0;
    RequantizeOptions options{.format = &format};
    options.progress = [&](uint64_t done, uint64_t total) {
      EXPECT_LE(last, done);
      EXPECT_LE(done, total);
      last = done;
    };
    const RequantizeReport report = requantize(*in, out_path(), options);
    const auto out = GgufFile::open(out_path());
    EXPECT_EQ(report.bytes, out->size());
    EXPECT_EQ(out->alignment(), 64u);
    EXPECT_EQ(out->get_string("general.architecture"), "llama");
    EXPECT_EQ(out->get_strings("tokenizer.ggml.tokens")->at(1), "b c");
    EXPECT_EQ(out->get_int("general.quantization_version"), 2);
    ASSERT_EQ(out->tensors().size(), model().size());
    for (const Matrix& m : model()) {
      const formats::GgufTensor& tensor = out->require_tensor(m.name);
      const quant::BlockFormat& expected = m.shape.size() == 1
                                               ? block_format(Encoding::kF32)
                                               : format_for_columns(format, m.shape.back());
      EXPECT_EQ(tensor.format, &expected) << m.name;
      EXPECT_EQ(tensor.shape, m.shape);
      EXPECT_TRUE(equal(tensor.data, encoded(m, expected))) << m.name;
    }
  }
}

TEST(Requantize, FormatForColumns) {
  auto taken = [](Encoding wanted, int64_t columns) {
    return std::string(format_for_columns(block_format(wanted), columns).name);
  };
  EXPECT_EQ(taken(Encoding::kQ4_K, 512), "Q4_K");
  EXPECT_EQ(taken(Encoding::kQ4_K, 576), "Q5_0");
  EXPECT_EQ(taken(Encoding::kQ5_K, 576), "Q5_1");
  EXPECT_EQ(taken(Encoding::kQ6_K, 576), "Q8_0");
  EXPECT_EQ(taken(Encoding::kQ6_K, 40), "F16");
  EXPECT_EQ(taken(Encoding::kQ4_0, 40), "F16");
  EXPECT_EQ(taken(Encoding::kBF16, 40), "BF16");
}

// A file that has the format already is passed through; the head may have a format of its own.
TEST(Requantize, KeepsBytesAndSetsTheHeadApart) {
  RequantizeOptions options{.format = &block_format(Encoding::kQ4_K),
                            .output_format = &block_format(Encoding::kQ6_K)};
  const RequantizeReport first = requantize(*file_of(model()), out_path(), options);
  const auto once = GgufFile::open(out_path());
  EXPECT_EQ(once->require_tensor("token_embd.weight").format->name, "Q6_K");
  EXPECT_EQ(once->require_tensor("wide.weight").format->name, "Q4_K");
  EXPECT_EQ(once->get_int("general.file_type"), 14);
  const std::string again = testing::TempDir() + "requantized_again.gguf";
  const RequantizeReport second = requantize(*once, again, options);
  EXPECT_EQ(second.bytes, first.bytes);
  for (const RequantizedGroup& group : second.groups) EXPECT_EQ(group.from, group.to);
  const auto twice = GgufFile::open(again);
  for (const formats::GgufTensor& tensor : once->tensors()) {
    EXPECT_TRUE(equal(tensor.data, twice->require_tensor(tensor.name).data)) << tensor.name;
  }
  std::vector<Matrix> untied = model();
  untied.push_back(matrix("output.weight", {7, 256}));
  requantize(*file_of(untied), out_path(), options);
  EXPECT_EQ(GgufFile::open(out_path())->require_tensor("output.weight").format->name, "Q6_K");
  EXPECT_EQ(GgufFile::open(out_path())->require_tensor("token_embd.weight").format->name, "Q4_K");
}

TEST(Requantize, RefusesWhatDoesNotFitAndLeavesTheFile) {
  requantize(*file_of(model()), out_path(), {.format = &block_format(Encoding::kQ8_0)});
  const uint64_t before = std::filesystem::file_size(out_path());
  std::vector<Matrix> bad = model();
  bad[2].values[70000] = NAN;
  auto refused = [&](Encoding encoding) {
    return refusal(
        [&] { requantize(*file_of(bad), out_path(), {.format = &block_format(encoding)}); });
  };
  EXPECT_NE(refused(Encoding::kQ4_0)
                .find("ValueError: tensor wide.weight: encode: element 70000 is nan, which Q4_0 "
                      "cannot hold"),
            std::string::npos)
      << refused(Encoding::kQ4_0);
  bad[2].values[70000] = -70000;
  EXPECT_EQ(refused(Encoding::kF16),
            "ValueError: tensor wide.weight: encode: -70000 does not fit F16, whose largest value "
            "is 65504 [encode_range]\n  hint: BF16 holds it");
  EXPECT_EQ(std::filesystem::file_size(out_path()), before);
  EXPECT_NE(refusal([&] {
              requantize(*file_of(model()), "/nonexistent/x.gguf",
                         {.format = &block_format(Encoding::kF16)});
            }).find("IoError: /nonexistent/x.gguf"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::pipelines
