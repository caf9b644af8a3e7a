#include "tenon/base/hash.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <vector>

namespace tenon {
namespace {

// The input of the algorithm's published test vectors: 0, 1, …, 250, 0, 1, …
std::vector<std::byte> pattern(size_t size) {
  std::vector<std::byte> out(size);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i % 251);
  return out;
}

TEST(Hash, KnownVectors) {
  EXPECT_EQ(to_hex(hash_text("")),
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
  EXPECT_EQ(to_hex(hash_text("abc")),
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
  struct Case {
    size_t size;
    const char* hex;
  } cases[] = {
      {1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
      {64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
      {65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee"},
      {1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
      {1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
      {1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
      {2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
      {2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
      {3072, "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2"},
      {4096, "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969"},
      {5121, "628bd2cb2004694adaab7bbd778a25df25c47b9d4155a55f8fbd79f2fe154cff"},
      {8192, "aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63"},
      {31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
      {102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
  };
  for (const Case& c : cases) EXPECT_EQ(to_hex(hash_bytes(pattern(c.size))), c.hex) << c.size;
}

TEST(Hash, PiecesGiveTheSameDigest) {
  std::vector<std::byte> data = pattern(20000);
  for (size_t piece : {1, 7, 63, 64, 65, 1023, 1024, 1025, 5000}) {
    Hasher hasher;
    for (size_t at = 0; at < data.size(); at += piece) {
      hasher.update(std::span(data).subspan(at, std::min(piece, data.size() - at)));
      if (at == piece) hasher.finish();  // looking does not disturb
    }
    EXPECT_EQ(hasher.finish(), hash_bytes(data)) << piece;
  }
}

TEST(Hash, ValuesHashTheirBytes) {
  uint32_t value = 0x04030201;
  EXPECT_EQ(Hasher().update_value(value).finish(), hash_text(std::string_view("\x01\x02\x03\x04")));
}

// Debian's b3sum as an oracle, over every size where blocks, chunks and trees change shape.
TEST(Hash, AgreesWithB3sum) {
  ASSERT_EQ(std::system("b3sum --version > /dev/null"), 0) << "b3sum is missing: run ./dev setup";
  std::string folder = testing::TempDir() + "tenon_hash_test";
  std::string files;
  std::vector<size_t> sizes;
  for (size_t chunks : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100}) {
    for (int around : {-1, 0, 1, 500}) {
      if (chunks * 1024 + static_cast<size_t>(around) < size_t{1} << 40)
        sizes.push_back(chunks * 1024 + around);
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::string path = folder + "." + std::to_string(i);
    std::vector<std::byte> data = pattern(sizes[i]);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(data.data()),
               static_cast<std::streamsize>(data.size()));
    files += " '" + path + "'";
  }
  FILE* pipe = popen(("b3sum --no-names" + files).c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char line[128];
  for (size_t size : sizes) {
    ASSERT_NE(fgets(line, sizeof line, pipe), nullptr);
    EXPECT_EQ(std::string(line, 64), to_hex(hash_bytes(pattern(size)))) << size;
  }
  EXPECT_EQ(pclose(pipe), 0);
  for (size_t i = 0; i < sizes.size(); ++i) std::remove((folder + "." + std::to_string(i)).c_str());
}

}  // namespace
}  // namespace tenon
