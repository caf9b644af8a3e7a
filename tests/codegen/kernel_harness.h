// Runs kernels two ways: through generated code and through the reference evaluator. Buffers end at
// a page that must not be touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/abi/kernel_abi.h"
#include "tenon/codegen/codegen.h"
#include "tenon/kir/builder.h"

namespace tenon::codegen::test {

// Memory whose last byte stands before an inaccessible page.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t size);
  ~GuardedBytes();
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* map_ = nullptr;
  size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// An image ready to run: mapped read-and-execute, or kept for the emulator.
class LoadedImage {
 public:
  LoadedImage(Image image, Isa isa);
  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

  const Image& image() const { return image_; }
  bool is_emulated() const { return map_ == nullptr; }
  abi::KernelFn entry(size_t k) const;

 private:
  Image image_;
  void* map_ = nullptr;
  size_t mapped_ = 0;
};

// The levels that this CPU runs, best first, and NEON where it can be emulated; only the one in
// TENON_TEST_ISA when that is set.
std::vector<Isa> runnable_isas();

// Contents of the buffers of one call, and the values of Kernel::dims.
struct Call {
  std::vector<std::vector<std::byte>> buffers;
  std::vector<int64_t> dims;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t scratch_bytes = 0;
  int64_t status = 0;  // after the call
};

// Each runs the kernel on a copy of `call` and returns what is in memory afterwards.
Call run_reference(const kir::Kernel& kernel, const Call& call, bool fused);
Call run_image(const LoadedImage& image, size_t entry, const Call& call);

// Makes every call on every level that runs here and expects what the reference evaluator computes,
// in all buffers and the status.
void expect_like_reference(const kir::Kernel& kernel, const std::vector<Call>& calls);

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  auto view = std::as_bytes(std::span<const T>(values));
  return {view.begin(), view.end()};
}
template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Whether two buffers of `dtype` hold the same values: bit for bit, all NaNs alike. The first
// difference is described in `what`.
bool same_values(DType dtype, const std::vector<std::byte>& a, const std::vector<std::byte>& b,
                 std::string* what);

}  // namespace tenon::codegen::test
