// The floating-point mode that kernels are written for: round to nearest even, no flushing of
// subnormals, no traps. Set around a call and given back, so that the caller's mode is untouched.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::runtime {

class FloatMode {
 public:
#if defined(__x86_64__)
  FloatMode() : saved_(_mm_getcsr()) {
    if ((saved_ & kControl) != kDefault) _mm_setcsr(kDefault);
  }
  ~FloatMode() {
    if ((saved_ & kControl) != kDefault) _mm_setcsr(saved_);
  }

 private:
  static constexpr uint32_t kDefault = 0x1f80;
  static constexpr uint32_t kControl = 0xffc0;  // all but the sticky flags
  uint32_t saved_;
#elif defined(__aarch64__)
  FloatMode() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
    if (saved_ != 0) __asm__ volatile("msr fpcr, %0" ::"r"(uint64_t{0}));
  }
  ~FloatMode() {
    if (saved_ != 0) __asm__ volatile("msr fpcr, %0" ::"r"(saved_));
  }

 private:
  uint64_t saved_;
#else
  FloatMode() {}
#endif

 public:
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;
};

}  // namespace tenon::runtime
