#include "tenon/runtime/image.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>

#include "tenon/base/error.h"

namespace tenon::runtime {
namespace {

#if defined(__x86_64__)
// mov rax, [rdi + 24] (status); mov [rax], rsi; ret
constexpr std::array<unsigned char, 8> kCode = {0x48, 0x8b, 0x47, 0x18, 0x48, 0x89, 0x30, 0xc3};

TEST(Image, RunsAndIsNeverWritableAndExecutable) {
  std::array<std::byte, 64> bytes{};
  for (size_t i = 0; i < kCode.size(); ++i) bytes[16 + i] = std::byte{kCode[i]};
  std::shared_ptr<const LoadedImage> image = LoadedImage::load(bytes);
  int64_t status = 0;
  abi::KernelArgs args{nullptr, nullptr, nullptr, &status, nullptr};
  image->function(16)(&args, 42, 43);
  EXPECT_EQ(status, 42);
  EXPECT_THROW(image->function(64), ValueError);
  EXPECT_THROW(LoadedImage::load({}), ValueError);

  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    EXPECT_EQ(line.find("rwxp"), std::string::npos) << line;
  }
}
#endif

}  // namespace
}  // namespace tenon::runtime
