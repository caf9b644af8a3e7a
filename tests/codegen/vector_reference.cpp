#include "vector_reference.h"

#include <fmt/format.h>

#include <string>

#include "tenon/kir/reference_math.h"

#if defined(__x86_64__) && defined(__GLIBC__)
#include <dlfcn.h>
#include <immintrin.h>
#define TENON_VECTOR_LIBM 1
#endif

namespace tenon::codegen::test {

namespace {

#ifdef TENON_VECTOR_LIBM
using Vector = __m512d;
using Function = Vector (*)(Vector);
constexpr size_t kLanes = 8;

// The name is that of the vector ABI: AVX-512, no mask, eight lanes, one vector argument.
Function vector_function(kir::Op op) {
  static void* library = __builtin_cpu_supports("avx512f") != 0
                             ? dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL)
                             : nullptr;
  if (library == nullptr) return nullptr;
  std::string symbol = fmt::format("_ZGVeN8v_{}", kir::name(op));
  return reinterpret_cast<Function>(dlsym(library, symbol.c_str()));
}

// How many leading elements were computed.
__attribute__((target("avx512f"))) size_t by_vectors(kir::Op op, std::span<const float> in,
                                                     std::span<double> out) {
  Function function = vector_function(op);
  if (function == nullptr) return 0;
  size_t whole = in.size() / kLanes * kLanes;
  for (size_t k = 0; k < whole; k += kLanes) {
    Vector wide = _mm512_cvtps_pd(_mm256_loadu_ps(in.data() + k));
    _mm512_storeu_pd(out.data() + k, function(wide));
  }
  return whole;
}
#else
size_t by_vectors(kir::Op, std::span<const float>, std::span<double>) { return 0; }
#endif

}  // namespace

void vector_reference(kir::Op op, std::span<const float> in, std::span<double> out) {
  for (size_t k = by_vectors(op, in, out); k < in.size(); ++k)
    out[k] = kir::wide_reference_math(op, static_cast<double>(in[k]), 0.0);
}

}  // namespace tenon::codegen::test
