// Images: position-independent, complete, several kernels in one.
#include "tenon/codegen/image_layout.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "kernel_harness.h"
#include "tenon/base/error.h"

namespace tenon::codegen {
namespace {

using kir::Builder;
using kir::Kernel;
using kir::Type;
using kir::Val;
using test::Call;

// out[i] = table[i % entries] * factor: a constant and a table beside the code.
Kernel table_kernel(float factor, size_t entries) {
  Kernel kernel;
  kernel.name = "table kernel";
  Builder b(kernel);
  uint32_t out = b.add_buffer("out", DType::kF32, true);
  std::vector<uint64_t> bits;
  for (size_t k = 0; k < entries; ++k) {
    bits.push_back(std::bit_cast<uint32_t>(static_cast<float>(k)));
  }
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
    Val narrow = b.convert(kir::Op::kIntTrunc, Type::kI32, i);
    Val entry = b.binary(kir::Op::kURem, narrow, b.constant_int(Type::kI32, entries));
    b.store(out, i, b.mul(b.table(Type::kF32, bits, entry), b.constant_float(Type::kF32, factor)));
  });
  return kernel;
}

TEST(ImageLayout, SeveralKernelsRunAtAnyAddress) {
  Kernel first = table_kernel(3, 50);
  Kernel second = table_kernel(7, 100);
  const Kernel* both[] = {&first, &second};
  Call call;
  call.end = 200;
  call.buffers = {std::vector<std::byte>(800)};
  for (Isa isa : test::runnable_isas()) {
    Image image = compile(both, {.isa = isa});
    ASSERT_EQ(image.offsets.size(), 2u);
    EXPECT_NE(image.offsets[0], image.offsets[1]);
    for (uint64_t offset : image.offsets) EXPECT_LT(offset, image.bytes.size());
    test::LoadedImage here(image, isa);
    test::LoadedImage there(image, isa);
    for (size_t k = 0; k < 2; ++k) {
      Call expected = test::run_reference(*both[k], call, true);
      EXPECT_EQ(test::run_image(here, k, call).buffers[0], expected.buffers[0]) << name(isa);
      EXPECT_EQ(test::run_image(there, k, call).buffers[0], expected.buffers[0]) << name(isa);
    }
  }
}

TEST(ImageLayout, EqualInputGivesEqualBytes) {
  Kernel kernel = table_kernel(3, 50);
  const Kernel* one = &kernel;
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
    EXPECT_EQ(compile({&one, 1}, {.isa = isa}).bytes, compile({&one, 1}, {.isa = isa}).bytes);
  }
}

TEST(ImageLayout, CodeWithoutPassesComputesTheSame) {
  Kernel kernel = table_kernel(5, 70);
  const Kernel* one = &kernel;
  Call call;
  call.end = 77;
  call.buffers = {std::vector<std::byte>(4 * 77)};
  Call expected = test::run_reference(kernel, call, true);
  for (Isa isa : test::runnable_isas()) {
    test::LoadedImage image(compile({&one, 1}, {.isa = isa, .optimize = false}), isa);
    EXPECT_EQ(test::run_image(image, 0, call).buffers[0], expected.buffers[0]) << name(isa);
  }
}

// An image of several kernels is their images one after another.
TEST(ImageLayout, ComputesTheSameAtEveryMultipleOf64) {
  Kernel kernel = table_kernel(5, 70);
  const Kernel* one = &kernel;
  Call call;
  call.end = 77;
  call.buffers = {std::vector<std::byte>(4 * 77)};
  Call expected = test::run_reference(kernel, call, true);
  for (Isa isa : test::runnable_isas()) {
    for (size_t shift : {64, 192, 4032}) {
      Image image = compile({&one, 1}, {.isa = isa});
      image.bytes.insert(image.bytes.begin(), shift, std::byte{0});
      image.offsets[0] += shift;
      test::LoadedImage loaded(image, isa);
      EXPECT_EQ(test::run_image(loaded, 0, call).buffers[0], expected.buffers[0]) << name(isa);
    }
  }
}

TEST(ImageLayout, ThreadsCompileAtOnce) {
  Kernel kernel = table_kernel(3, 50);
  const Kernel* one = &kernel;
  Image expected = compile({&one, 1}, {.isa = Isa::kAvx2});
  std::vector<std::thread> threads;
  std::vector<int> same(4, 0);
  for (size_t t = 0; t < same.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) {
        same[t] += compile({&one, 1}, {.isa = Isa::kAvx2}).bytes == expected.bytes;
        compile({&one, 1}, {.isa = Isa::kNeon});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int count : same) EXPECT_EQ(count, 5);
}

TEST(ImageLayout, NoKernelsGiveAnEmptyImage) {
  Image image = compile({}, {.isa = Isa::kBaseline});
  EXPECT_TRUE(image.bytes.empty());
  EXPECT_TRUE(image.offsets.empty());
}

#ifdef TENON_CLANG

// The relocatable object of a piece of C.
std::vector<std::byte> object_of(const std::string& source, const std::string& target) {
  std::string stem = testing::TempDir() + "tenon_layout_" + std::to_string(getpid());
  std::ofstream(stem + ".c") << source;
  std::string command = std::string(TENON_CLANG) + " --target=" + target +
                        "-linux-gnu -O1 -fPIC -fno-asynchronous-unwind-tables -ffreestanding -c " +
                        stem + ".c -o " + stem + ".o";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream in(stem + ".o", std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), {}};
  auto view = std::as_bytes(std::span<const char>(content));
  std::remove((stem + ".c").c_str());
  std::remove((stem + ".o").c_str());
  return {view.begin(), view.end()};
}

void expect_refused(const std::string& source, const std::string& target, const std::string& why) {
  auto object = object_of(source, target);
  std::vector<std::string> entries = {"f"};
  try {
    layout_image(object, entries);
    FAIL() << "taken: " << source;
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

TEST(ImageLayout, RefusesWhatCannotStandAlone) {
  for (const char* target : {"x86_64", "aarch64"}) {
    expect_refused("extern int g(int); int f(int x) { return g(x) + 1; }", target,
                   "symbol g is undefined");
    expect_refused("static int n; int f(void) { return ++n; }", target, "is writable");
    expect_refused("static int n = 3; int f(void) { return ++n; }", target, "is writable");
    expect_refused("int h(void) { return 1; }", target, "function f is missing");
    expect_refused(
        "extern const int a, b; const int* const p[2] = {&a, &b}; "
        "const int* f(int i) { return p[i]; }",
        target, "is writable");
  }
}

TEST(ImageLayout, RefusesWhatIsNoObject) {
  std::vector<std::byte> noise(100, std::byte{1});
  EXPECT_THROW(layout_image(noise, {}), InternalError);
}

TEST(ImageLayout, AppliesRelocationsAcrossSections) {
  auto object = object_of(
      "static const int t[5] = {5, 4, 3, 2, 1};"
      "__attribute__((noinline)) static int g(int i) { return t[i] * 2; }"
      "__attribute__((section(\".text.other\"))) int f(int i) { return g(i) + 1; }",
      "x86_64");
  std::vector<std::string> entries = {"f"};
  Image image = layout_image(object, entries);
#ifdef __x86_64__
  test::LoadedImage loaded(image, Isa::kBaseline);
  auto f = reinterpret_cast<int (*)(int)>(reinterpret_cast<void*>(loaded.entry(0)));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f(i), (5 - i) * 2 + 1);
#endif
}

#endif

}  // namespace
}  // namespace tenon::codegen
