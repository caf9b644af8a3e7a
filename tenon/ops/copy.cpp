#include "tenon/ops/copy.h"

#include <array>
#include <cstring>

namespace tenon::ops {
namespace {

// Calls f with an array type of the element's size.
template <class F>
void visit_bytes(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1: return f(std::array<std::byte, 1>{});
    case 2: return f(std::array<std::byte, 2>{});
    case 4: return f(std::array<std::byte, 4>{});
    default: return f(std::array<std::byte, 8>{});
  }
}

}  // namespace

Literal copy_strided(const Literal& from, int64_t first, std::span<const int64_t> strides,
                     const ir::ConcreteType& to) {
  Literal result(to.dtype, to.dims);
  visit_bytes(to.dtype, [&]<class E>(E) {
    const E* in = from.as<E>() + first;
    E* out = result.as_mutable<E>();
    for_each_run(to.dims, {{strides.begin(), strides.end()}}, [&](const Run& run) {
      const E* p = in + run.at[0];
      E* q = out + run.first;
      if (run.step[0] == 1) {
        std::memcpy(static_cast<void*>(q), p, static_cast<size_t>(run.count) * sizeof(E));
      } else {
        for (int64_t i = 0; i < run.count; ++i) q[i] = p[i * run.step[0]];
      }
    });
  });
  return result;
}

void write_strided(const Literal& from, Literal& to, int64_t first,
                   std::span<const int64_t> strides) {
  visit_bytes(to.dtype(), [&]<class E>(E) {
    const E* in = from.as<E>();
    E* out = to.as_mutable<E>() + first;
    for_each_run(from.dims(), {{strides.begin(), strides.end()}}, [&](const Run& run) {
      for (int64_t i = 0; i < run.count; ++i) {
        out[run.at[0] + i * run.step[0]] = in[run.first + i];
      }
    });
  });
}

Literal clone(const Literal& x) {
  Literal result(x.dtype(), x.dims());
  if (x.bytes() > 0) std::memcpy(result.mutable_data(), x.data(), x.bytes());
  return result;
}

}  // namespace tenon::ops
