// Which mathematical functions are tested, how exact they must be, where they are sampled, and how
// an error is measured.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "tenon/kir/reference_math.h"

namespace tenon::kir::test {

struct MathCase {
  Op op;
  double limit = 2.5;  // ulp
};

// The order of docs/math.md.
inline std::vector<MathCase> math_cases() {
  std::vector<MathCase> cases;
  for (int k = static_cast<int>(Op::kExp); k <= static_cast<int>(Op::kHypot); ++k) {
    auto op = static_cast<Op>(k);
    cases.push_back({op, op == Op::kFmod ? 0 : 2.5});
  }
  return cases;
}

inline bool has_two_arguments(Op op) { return op >= Op::kPow; }

// Distance of `got` from the exact value `wanted` in units of the last place of F there; infinite
// where NaN, infinities, or the sign of a zero that is exact, differ.
template <class F, class W>
double ulp_error(F got, W wanted) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  F rounded = static_cast<F>(wanted);
  if (rounded != rounded || got != got) return (rounded != rounded) == (got != got) ? 0 : kWrong;
  if (wanted == 0) return got == 0 && std::signbit(got) == std::signbit(wanted) ? 0 : kWrong;
  if (std::isinf(rounded) && got == rounded) return 0;
  if (std::isinf(got) != std::isinf(rounded)) {
    // Just below the largest number an error of an ulp may overflow.
    F finite = std::isinf(got) ? rounded : got;
    return std::fabs(finite) == std::numeric_limits<F>::max() && (got > 0) == (rounded > 0)
               ? 1
               : kWrong;
  }
  if (std::isinf(got)) return kWrong;
  int exponent = 0;
  std::frexp(rounded == 0 ? std::numeric_limits<F>::denorm_min() : rounded, &exponent);
  int last = std::max(exponent - std::numeric_limits<F>::digits,
                      std::numeric_limits<F>::min_exponent - std::numeric_limits<F>::digits);
  return static_cast<double>(std::fabs(static_cast<W>(got) - wanted) /
                             std::ldexp(static_cast<W>(1), last));
}

// Zeros, infinities, NaN, the ends of the range and of the subnormals, multiples of pi/2, where
// results overflow and underflow.
template <class F>
std::vector<F> special_values() {
  std::vector<F> values;
  double corners[] = {0,
                      0.5,
                      1,
                      2,
                      3,
                      1e-40,
                      88.72,
                      88.73,
                      89,
                      103.9,
                      104,
                      127.99,
                      149,
                      149.5,
                      150,
                      151,
                      709.78,
                      710,
                      745.1,
                      746,
                      1022,
                      1074.5,
                      1e22,
                      6400,
                      0x1p20,
                      0x1.921fb6p0,
                      0x1.921fb54442d18p1,
                      6381956970095103.0 * 0x1p797,
                      16367173.0 * 0x1p72,
                      0x1.fffffep-1,
                      0x1.fffffffffffffp-1,
                      1 + 0x1p-23,
                      9.1,
                      10.06,
                      13.2,
                      14.2,
                      26.5,
                      27.2,
                      38.4};
  for (double c : corners) values.push_back(static_cast<F>(c));
  using Limits = std::numeric_limits<F>;
  for (F c : {Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::min(),
              Limits::denorm_min(), Limits::min() - Limits::denorm_min(), Limits::epsilon()})
    values.push_back(c);
  size_t count = values.size();
  for (size_t k = 0; k < count; ++k) values.push_back(-values[k]);
  return values;
}

// `count` values: random bits (every exponent), and numbers between 2^-16 and 2^10.
template <class F>
std::vector<F> random_arguments(size_t count, std::mt19937_64& random) {
  using U = std::conditional_t<sizeof(F) == 4, uint32_t, uint64_t>;
  std::vector<F> values;
  while (values.size() < count) {
    values.push_back(std::bit_cast<F>(static_cast<U>(random())));
    double unit = static_cast<double>(static_cast<int64_t>(random())) * 0x1p-63;
    values.push_back(static_cast<F>(std::ldexp(unit, static_cast<int>(random() % 26) - 15)));
    values.push_back(static_cast<F>(unit));
  }
  return values;
}

template <class F>
struct MathSamples {
  std::vector<F> a;
  std::vector<F> b;
};

template <class F>
MathSamples<F> math_samples(const MathCase& test, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  MathSamples<F> samples;
  std::vector<F> special = special_values<F>();
  if (!has_two_arguments(test.op)) {
    samples.a = special;
    for (F v : random_arguments<F>(count, random)) samples.a.push_back(v);
    samples.b.assign(samples.a.size(), 0);
    return samples;
  }
  for (F x : special) {
    for (F y : special) {
      samples.a.push_back(x);
      samples.b.push_back(y);
    }
  }
  for (F v : random_arguments<F>(count, random)) samples.a.push_back(v);
  for (F v : random_arguments<F>(count, random)) samples.b.push_back(v);
  std::shuffle(samples.b.end() - static_cast<ptrdiff_t>(count), samples.b.end(), random);
  size_t size = std::min(samples.a.size(), samples.b.size());
  samples.a.resize(size);
  samples.b.resize(size);
  return samples;
}

template <class F>
struct WorstError {
  double ulp = 0;
  F a = 0;
  F b = 0;
  F got = 0;

  using W = std::conditional_t<sizeof(F) == 4, double, long double>;

  void see(Op op, F x, F y, F result) {
    see(x, y, result, wide_reference_math(op, static_cast<W>(x), static_cast<W>(y)));
  }

  void see(F x, F y, F result, W wanted) {
    double error = ulp_error(result, wanted);
    if (error > ulp) *this = {error, x, y, result};
  }
};

// Takes in results of a one-argument function: most are seen by a few instructions to be no worse
// than what `worst` holds; the others are measured against the scalar reference. The unit in the
// last place is that of `wanted`, which is never more than that of the number it rounds to.
inline void see_all(WorstError<float>& worst, Op op, std::span<const float> x,
                    std::span<const float> results, std::span<const double> wanted) {
  constexpr uint64_t kExponent = uint64_t{0x7ff} << 52;
  constexpr uint64_t kLeast = uint64_t{1023 - 126} << 52;
  for (size_t k = 0; k < x.size(); ++k) {
    uint64_t exponent = std::max(std::bit_cast<uint64_t>(wanted[k]) & kExponent, kLeast);
    double units = std::bit_cast<double>((uint64_t{2 * 1023 + 23} << 52) - exponent);
    double error = std::fabs(static_cast<double>(results[k]) - wanted[k]) * units;
    bool nearest = results[k] == static_cast<float>(wanted[k]);
    bool zero = results[k] == 0 && std::signbit(results[k]) == std::signbit(wanted[k]);
    bool fine = wanted[k] != wanted[k] ? results[k] != results[k]
                : wanted[k] == 0       ? zero
                                       : error <= worst.ulp || (nearest && worst.ulp >= 0.5);
    if (!fine) worst.see(op, x[k], 0, results[k]);
  }
}

}  // namespace tenon::kir::test
