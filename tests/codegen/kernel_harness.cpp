#include "kernel_harness.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "arm_emulator.h"
#include "tenon/base/half.h"
#include "tenon/kir/evaluate.h"
#include "tenon/runtime/cpu.h"

namespace tenon::codegen::test {
namespace {

constexpr size_t kPage = 4096;

size_t round_up(size_t n) { return (n + kPage - 1) / kPage * kPage; }

std::byte* map(size_t size) {
  void* where = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (where == MAP_FAILED) std::abort();
  return static_cast<std::byte*>(where);
}

bool cpu_runs(Isa isa) {
  if (isa == Isa::kNeon) return has_arm_emulator();
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kBaseline: return true;
    case Isa::kAvx2: return __builtin_cpu_supports("x86-64-v3");
    case Isa::kAvx512: return __builtin_cpu_supports("x86-64-v4");
    case Isa::kAvx512Dot:
      return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni") &&
             __builtin_cpu_supports("avx512bf16");
    case Isa::kAmx: {
      const auto levels = runtime::usable_levels();
      return std::find(levels.begin(), levels.end(), "x86-64-v4-amx") != levels.end();
    }
    case Isa::kNeon: return false;
  }
#endif
  return false;
}

double as_double(DType dtype, const std::byte* at) {
  uint16_t half = 0;
  float single = 0;
  double wide = 0;
  switch (dtype) {
    case DType::kF16: std::memcpy(&half, at, 2); return f16_to_float(half);
    case DType::kBF16: std::memcpy(&half, at, 2); return bf16_to_float(half);
    case DType::kF32: std::memcpy(&single, at, 4); return single;
    default: std::memcpy(&wide, at, 8); return wide;
  }
}

}  // namespace

GuardedBytes::GuardedBytes(size_t size) : size_(size) {
  size_t body = round_up(size + kPage);
  mapped_ = body + 2 * kPage;
  map_ = map(mapped_);
  mprotect(map_, kPage, PROT_NONE);
  mprotect(map_ + kPage + body, kPage, PROT_NONE);
  data_ = map_ + kPage + body - size;
}

GuardedBytes::~GuardedBytes() { munmap(map_, mapped_); }

LoadedImage::LoadedImage(Image image, Isa isa) : image_(std::move(image)) {
  if (isa == Isa::kNeon) return;
  mapped_ = round_up(std::max<size_t>(image_.bytes.size(), 1));
  map_ = map(mapped_);
  std::memcpy(map_, image_.bytes.data(), image_.bytes.size());
  mprotect(map_, mapped_, PROT_READ | PROT_EXEC);
}

LoadedImage::~LoadedImage() {
  if (map_) munmap(map_, mapped_);
}

abi::KernelFn LoadedImage::entry(size_t k) const {
  return reinterpret_cast<abi::KernelFn>(static_cast<std::byte*>(map_) + image_.offsets.at(k));
}

std::vector<Isa> runnable_isas() {
  const char* wanted = std::getenv("TENON_TEST_ISA");
  std::vector<Isa> result;
  for (Isa isa :
       {Isa::kAmx, Isa::kAvx512Dot, Isa::kAvx512, Isa::kAvx2, Isa::kBaseline, Isa::kNeon}) {
    if (cpu_runs(isa) && (!wanted || name(isa) == wanted)) result.push_back(isa);
  }
  return result;
}

Call run_reference(const kir::Kernel& kernel, const Call& call, bool fused) {
  Call result = call;
  std::vector<void*> pointers;
  for (auto& buffer : result.buffers) pointers.push_back(buffer.data());
  std::vector<std::byte> scratch(static_cast<size_t>(call.scratch_bytes));
  kir::EvalArgs args{.buffers = pointers.data(),
                     .dims = result.dims.data(),
                     .scratch = scratch.data(),
                     .status = &result.status};
  kir::evaluate(kernel, args, call.begin, call.end, {.fused = fused});
  return result;
}

Call run_image(const LoadedImage& image, size_t entry, const Call& call) {
  if (image.is_emulated()) return run_emulated(image.image(), entry, call);
  Call result = call;
  std::vector<std::unique_ptr<GuardedBytes>> memory;
  std::vector<void*> pointers;
  for (const auto& buffer : call.buffers) {
    memory.push_back(std::make_unique<GuardedBytes>(buffer.size()));
    std::copy(buffer.begin(), buffer.end(), memory.back()->data());
    pointers.push_back(memory.back()->data());
  }
  GuardedBytes scratch(static_cast<size_t>((call.scratch_bytes + 63) / 64 * 64));
  abi::KernelArgs args{.buffers = pointers.data(),
                       .dims = result.dims.data(),
                       .scratch = scratch.data(),
                       .status = &result.status,
                       .table = nullptr};
  image.entry(entry)(&args, call.begin, call.end);
  for (size_t k = 0; k < memory.size(); ++k) {
    std::copy_n(memory[k]->data(), result.buffers[k].size(), result.buffers[k].begin());
  }
  return result;
}

void expect_like_reference(const kir::Kernel& kernel, const std::vector<Call>& calls) {
  const kir::Kernel* one = &kernel;
  for (Isa isa : runnable_isas()) {
    LoadedImage image(compile({&one, 1}, {.isa = isa}), isa);
    for (const Call& call : calls) {
      Call expected = run_reference(kernel, call, isa != Isa::kBaseline);
      Call got = run_image(image, 0, call);
      std::string place = fmt::format("{} on {}, {} to {}, dims {}", kernel.name, name(isa),
                                      call.begin, call.end, fmt::join(call.dims, " "));
      EXPECT_EQ(got.status, expected.status) << place;
      for (size_t k = 0; k < call.buffers.size(); ++k) {
        std::string what;
        DType dtype = kernel.buffers[k].dtype;
        EXPECT_TRUE(same_values(dtype, got.buffers[k], expected.buffers[k], &what))
            << place << ", buffer " << k << ": " << what;
      }
    }
  }
}

bool same_values(DType dtype, const std::vector<std::byte>& a, const std::vector<std::byte>& b,
                 std::string* what) {
  size_t size = size_of(dtype);
  for (size_t k = 0; k * size < a.size(); ++k) {
    const std::byte* x = a.data() + k * size;
    const std::byte* y = b.data() + k * size;
    if (std::memcmp(x, y, size) == 0) continue;
    if (is_float(dtype) && std::isnan(as_double(dtype, x)) && std::isnan(as_double(dtype, y))) {
      continue;
    }
    uint64_t u = 0;
    uint64_t v = 0;
    std::memcpy(&u, x, size);
    std::memcpy(&v, y, size);
    *what = fmt::format("element {} of {}: {:#x} and {:#x}", k, a.size() / size, u, v);
    if (is_float(dtype)) {
      *what += fmt::format(" ({} and {})", as_double(dtype, x), as_double(dtype, y));
    }
    return false;
  }
  return true;
}

}  // namespace tenon::codegen::test
