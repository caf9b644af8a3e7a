#include "tenon/formats/gguf.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tenon/base/error.h"
#include "tenon/formats/gguf_writer.h"

namespace tenon::formats {
namespace {

const quant::BlockFormat& f32_format() { return quant::block_format(quant::Encoding::kF32); }

GgufWriter sample(std::span<const float> data) {
  GgufWriter writer;
  writer.set_string("general.architecture", "llama");
  writer.set_u32("llama.block_count", 30);
  writer.set_u64("wide", 1ull << 40);
  writer.set_u64("too_wide", 1ull << 63);
  writer.set_i32("negative", -5);
  writer.set_f32("epsilon", 1e-5f);
  writer.set_bool("flag", true);
  writer.set_strings("tokens", {"a", "", "\xc4\xa0the"});
  writer.set_i32s("types", {1, 3, -1});
  writer.set_f32s("scores", {0.5f, -1.0f});
  writer.add_tensor("first", f32_format(), {2, 3}, std::as_bytes(data.first(6)));
  writer.add_tensor("second", f32_format(), {1}, std::as_bytes(data.subspan(6, 1)));
  return writer;
}

const float kData[] = {0, 1, 2, 3, 4, 5, 6};

std::string refusal(auto&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Gguf, ReadsWhatWasWritten) {
  std::vector<std::byte> bytes = sample(kData).bytes();
  auto file = GgufFile::parse(bytes, "sample");
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(file->alignment(), 32u);
  EXPECT_EQ(file->metadata().size(), 10u);
  EXPECT_EQ(file->metadata()[1].key, "llama.block_count");
  EXPECT_EQ(file->get_string("general.architecture"), "llama");
  EXPECT_EQ(file->get_int("llama.block_count"), 30);
  EXPECT_EQ(file->get_int("wide"), int64_t{1} << 40);
  EXPECT_EQ(file->get_int("negative"), -5);
  EXPECT_EQ(file->get_float("epsilon"), static_cast<double>(1e-5f));
  EXPECT_EQ(file->get_bool("flag"), true);
  EXPECT_EQ(file->get_strings("tokens"), (std::vector<std::string_view>{"a", "", "\xc4\xa0the"}));
  EXPECT_EQ(file->get_ints("types"), (std::vector<int64_t>{1, 3, -1}));
  EXPECT_EQ(file->get_floats("scores"), (std::vector<double>{0.5, -1.0}));
  EXPECT_EQ(file->get_int("absent"), std::nullopt);

  ASSERT_EQ(file->tensors().size(), 2u);
  const GgufTensor& first = file->require_tensor("first");
  EXPECT_EQ(first.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(first.format, &f32_format());
  EXPECT_EQ((first.data.data() - bytes.data()) % 32, 0);
  std::vector<float> values(6);
  first.decode(values);
  EXPECT_EQ(values, std::vector<float>(kData, kData + 6));
  EXPECT_EQ(file->find_tensor("third"), nullptr);
}

TEST(Gguf, ErrorsNameFileKeyAndType) {
  std::vector<std::byte> bytes = sample(kData).bytes();
  auto file = GgufFile::parse(bytes, "sample.gguf");
  EXPECT_EQ(refusal([&] { file->require_int("absent"); }), "sample.gguf: key absent is missing");
  EXPECT_EQ(refusal([&] { file->get_int("epsilon"); }),
            "sample.gguf: key epsilon is f32, expected an integer of at most 63 bits");
  EXPECT_EQ(refusal([&] { file->get_int("too_wide"); }),
            "sample.gguf: key too_wide is u64, expected an integer of at most 63 bits");
  EXPECT_EQ(refusal([&] { file->get_string("tokens"); }),
            "sample.gguf: key tokens is array of 3 string, expected a string");
  EXPECT_EQ(refusal([&] { file->get_ints("scores"); }),
            "sample.gguf: key scores is array of 2 f32, expected an array of integers of at most "
            "63 bits");
  EXPECT_EQ(refusal([&] { file->get_bool("wide"); }),
            "sample.gguf: key wide is u64, expected a bool");
  EXPECT_EQ(refusal([&] { file->require_tensor("third"); }),
            "sample.gguf: tensor third is missing");
  bytes.resize(bytes.size() - 32);
  EXPECT_EQ(refusal([&] { GgufFile::parse(bytes, "cut.gguf"); }),
            fmt::format("cut.gguf: tensor second ends at {} of a file of {} bytes (truncated)",
                        bytes.size() + 4, bytes.size()));
  EXPECT_EQ(refusal([&] { GgufFile::parse({}, "empty.gguf"); }), "empty.gguf: not a GGUF file");
  bytes[4] = std::byte{1};
  EXPECT_EQ(refusal([&] { GgufFile::parse(bytes, "old.gguf"); }),
            "old.gguf: GGUF version 1, only 2 and 3 are read");
}

TEST(Gguf, VersionTwoAndMissingLastPadding) {
  std::vector<std::byte> bytes = sample(kData).bytes();
  bytes[4] = std::byte{2};
  bytes.resize(bytes.size() - 28);  // the last tensor's four bytes stay
  EXPECT_EQ(GgufFile::parse(bytes, "v2")->version(), 2u);
  bytes[4] = std::byte{0};
  bytes[7] = std::byte{3};
  EXPECT_EQ(refusal([&] { GgufFile::parse(bytes, "big"); }),
            "big: a big-endian GGUF file, only little-endian ones are read");
}

TEST(Gguf, AnEmptyFileOfMetadataIsRight) {
  GgufWriter writer;
  std::vector<std::byte> bytes = writer.bytes();
  auto file = GgufFile::parse(bytes, "nothing");
  EXPECT_TRUE(file->metadata().empty());
  EXPECT_TRUE(file->tensors().empty());
}

TEST(Gguf, WriterKeepsAlignmentAndCopies) {
  GgufWriter writer = sample(kData);
  writer.set_alignment(256);
  std::vector<std::byte> bytes = writer.bytes();
  auto file = GgufFile::parse(bytes, "aligned");
  EXPECT_EQ(file->alignment(), 256u);
  GgufWriter again;
  for (const GgufEntry& entry : file->metadata()) again.copy(entry);
  for (const GgufTensor& tensor : file->tensors()) {
    again.add_tensor(tensor.name, *tensor.format, tensor.shape, tensor.data);
  }
  EXPECT_EQ(again.bytes(), bytes);

  std::string path = testing::TempDir() + "tenon_gguf_test.gguf";
  again.write(path);
  EXPECT_EQ(GgufFile::open(path)->size(), bytes.size());
  std::remove(path.c_str());
}

TEST(Gguf, WriterRefusesWhatTheReaderWould) {
  GgufWriter writer = sample(kData);
  EXPECT_THROW(writer.set_u32("wide", 1), ValueError);
  EXPECT_THROW(writer.set_u32("", 1), ValueError);
  EXPECT_THROW(writer.set_u32(std::string("a\0b", 3), 1), ValueError);
  EXPECT_THROW(writer.set_u32("\xff", 1), ValueError);
  EXPECT_THROW(writer.set_alignment(24), ValueError);
  EXPECT_THROW(writer.set_u32("general.alignment", 1), ValueError);
  auto data = std::as_bytes(std::span(kData));
  EXPECT_THROW(writer.add_tensor("first", f32_format(), {7}, data), ValueError);
  EXPECT_THROW(writer.add_tensor(std::string(65, 'n'), f32_format(), {7}, data), ValueError);
  EXPECT_THROW(writer.add_tensor("t", f32_format(), {8}, data), ValueError);
  EXPECT_THROW(writer.add_tensor("t", f32_format(), {0}, {}), ValueError);
  EXPECT_THROW(writer.add_tensor("t", f32_format(), {}, data.first(4)), ValueError);
  EXPECT_THROW(writer.add_tensor("t", quant::block_format(quant::Encoding::kQ4_0), {33}, data),
               ValueError);
}

}  // namespace
}  // namespace tenon::formats
