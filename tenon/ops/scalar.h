// The scalar functions that the rows of unary.def and binary.def are written in, for numbers. A row
// is one expression over these; symbolic.h has the same functions for kernel values, so that a row
// is both the reference evaluation and the kernel's code.
//
// Number types: float, double (arithmetic and functions), int64_t and uint64_t (integers of every
// width: stored results wrap), bool, complex<float>. Integers wrap; nothing here is undefined.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>

namespace tenon::ops::elt {

using Complex = std::complex<float>;
template <class T>
concept Float = std::same_as<T, float> || std::same_as<T, double>;
template <class T>
concept Int = std::same_as<T, int64_t> || std::same_as<T, uint64_t>;
template <class T>
concept Number = Float<T> || Int<T> || std::same_as<T, bool> || std::same_as<T, Complex>;

// False for unsigned types, without a comparison that compilers would question.
template <Number T>
bool below_zero(T x) {
  if constexpr (std::same_as<T, uint64_t> || std::same_as<T, bool> || std::same_as<T, Complex>) {
    return false;
  } else {
    return x < T(0);
  }
}

// A constant of the type of `like`.
template <Number T>
T num(T, double value) {
  return static_cast<T>(value);
}
template <Number T>
T select(bool condition, T a, T b) {
  return condition ? a : b;
}

// --- arithmetic ---
template <Number T>
T plus(T x, T y) {
  if constexpr (Int<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  } else {
    return static_cast<T>(x + y);
  }
}
template <Number T>
T minus(T x, T y) {
  if constexpr (Int<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
  } else {
    return static_cast<T>(x - y);
  }
}
template <Number T>
T times(T x, T y) {
  if constexpr (Int<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  } else if constexpr (std::same_as<T, bool>) {
    return x && y;
  } else {
    return x * y;
  }
}
template <Number T>
T negate(T x) {
  if constexpr (Int<T>) {
    return static_cast<T>(0 - static_cast<uint64_t>(x));
  } else {
    return -x;
  }
}
template <class T>
requires Float<T> || std::same_as<T, Complex> T divide(T x, T y) { return x / y; }
template <Float T>
T magnitude(T x) {
  return std::fabs(x);
}
template <Int T>
T magnitude(T x) {
  return below_zero(x) ? negate(x) : x;
}
inline float magnitude(Complex x) { return std::hypot(x.real(), x.imag()); }
template <Number T>
T sign(T x) {
  return x > T(0) ? T(1) : below_zero(x) ? static_cast<T>(-1) : x == T(0) ? T(0) : x;
}

// --- choice: NaN wins in larger/smaller, -0 < +0 ---
template <Number T>
bool is_nan(T x) {
  if constexpr (Float<T>) {
    return std::isnan(x);
  } else {
    return false;
  }
}
template <Number T>
T larger(T x, T y) {
  if constexpr (Float<T>) {
    if (x != x) return x;
    if (x == y) return std::signbit(x) ? y : x;
    return x > y ? x : y;
  } else {
    return std::max(x, y);
  }
}
template <Number T>
T smaller(T x, T y) {
  if constexpr (Float<T>) {
    if (x != x) return x;
    if (x == y) return std::signbit(x) ? x : y;
    return y != y ? y : x < y ? x : y;
  } else {
    return std::min(x, y);
  }
}
template <Float T>
T with_sign(T x, T y) {
  return std::copysign(x, y);
}
template <Number T>
bool is_inf(T x) {
  if constexpr (Float<T>) {
    return std::isinf(x);
  } else {
    return false;
  }
}
template <Number T>
bool sign_bit(T x) {
  if constexpr (Float<T>) {
    return std::signbit(x);
  } else {
    return below_zero(x);
  }
}

// --- integer division: by zero gives 0, the minimum by -1 wraps ---
template <Int T>
T quotient(T x, T y) {  // toward zero
  if (y == 0) return 0;
  if constexpr (std::same_as<T, int64_t>) {
    if (y == -1) return negate(x);
  }
  return x / y;
}
template <Int T>
T remainder(T x, T y) {  // sign of x
  return y == 0 ? T(0) : minus(x, times(quotient(x, y), y));
}
template <Int T>
T floor_quotient(T x, T y) {
  const T q = quotient(x, y);
  const T r = remainder(x, y);
  return (r != 0 && below_zero<T>(r ^ y)) ? q - 1 : q;
}
template <Int T>
T modulo(T x, T y) {  // sign of y
  const T r = remainder(x, y);
  return (r != 0 && below_zero<T>(r ^ y)) ? r + y : r;
}
template <Float T>
T remainder(T x, T y) {
  return std::fmod(x, y);
}
template <Float T>
T modulo(T x, T y) {
  const T r = std::fmod(x, y);
  if (r == 0) return std::copysign(T(0), y);
  return ((y < 0) != (r < 0)) ? r + y : r;
}
// NumPy's: floor(x / y) as if without rounding, consistent with modulo.
template <Float T>
T floor_quotient(T x, T y) {
  const T r = std::fmod(x, y);
  const bool fix = r != 0 && ((y < 0) != (r < 0));
  const T d = (x - r) / y;
  const T q = fix ? d - T(1) : d;
  const T f = std::floor(q);
  const T near = q - f > T(0.5) ? f + T(1) : f;
  const T whole = q == 0 ? std::copysign(T(0), x / y) : near;
  return y == 0 ? x / y : whole;
}

// --- bits ---
template <Int T>
T bit_not(T x) {
  return static_cast<T>(~x);
}
inline bool bit_not(bool x) { return !x; }
// Shifts by at least the width, and by negative amounts, move every bit out.
template <Int T>
T shift_left(T x, T y) {
  const auto n = static_cast<uint64_t>(y);
  return n < 64 ? static_cast<T>(static_cast<uint64_t>(x) << n) : T(0);
}
template <Int T>
T shift_right(T x, T y) {
  const auto n = static_cast<uint64_t>(y);
  return n < 64 ? x >> n : (below_zero(x) ? static_cast<T>(-1) : T(0));
}
template <class T>
requires Int<T> || std::same_as<T, bool> T bit_and(T x, T y) { return x & y; }
template <class T>
requires Int<T> || std::same_as<T, bool> T bit_or(T x, T y) { return x | y; }
template <class T>
requires Int<T> || std::same_as<T, bool> T bit_xor(T x, T y) { return x ^ y; }

// --- comparison ---
template <Number T>
bool eq(T x, T y) {
  return x == y;
}
template <Number T>
bool lt(T x, T y) {
  return x < y;
}
template <Number T>
bool le(T x, T y) {
  return x <= y;
}
inline bool both(bool a, bool b) { return a && b; }
inline bool either(bool a, bool b) { return a || b; }
inline bool negation(bool a) { return !a; }

// --- rounding: integers are whole already ---
#define TENON_ROUNDING(name, function) \
  template <Number T> \
  T name(T x) { \
    if constexpr (Float<T>) { \
      return function(x); \
    } else { \
      return x; \
    } \
  }
TENON_ROUNDING(round_down, std::floor)
TENON_ROUNDING(round_up, std::ceil)
TENON_ROUNDING(round_to_zero, std::trunc)
TENON_ROUNDING(round_to_even, std::nearbyint)
#undef TENON_ROUNDING

// --- functions of floats ---
template <Float T>
T square_root(T x) {
  return std::sqrt(x);
}
#define TENON_FUNCTION(name) \
  inline double name(double x) { return std::name(x); }
TENON_FUNCTION(exp)
TENON_FUNCTION(exp2)
TENON_FUNCTION(expm1)
TENON_FUNCTION(log)
TENON_FUNCTION(log2)
TENON_FUNCTION(log10)
TENON_FUNCTION(log1p)
TENON_FUNCTION(sin)
TENON_FUNCTION(cos)
TENON_FUNCTION(tan)
TENON_FUNCTION(asin)
TENON_FUNCTION(acos)
TENON_FUNCTION(atan)
TENON_FUNCTION(sinh)
TENON_FUNCTION(cosh)
TENON_FUNCTION(tanh)
TENON_FUNCTION(asinh)
TENON_FUNCTION(acosh)
TENON_FUNCTION(atanh)
TENON_FUNCTION(erf)
TENON_FUNCTION(erfc)
TENON_FUNCTION(cbrt)
#undef TENON_FUNCTION
inline double atan2(double y, double x) { return std::atan2(y, x); }
inline double hypot(double x, double y) { return std::hypot(x, y); }
double erfinv(double x);
// x * Φ(x); through erfc in long double, since the tail cancels and amplifies rounding.
double gelu(double x);
inline double sigmoid(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}
inline double power(double x, double y) { return std::pow(x, y); }
// By squaring, wrapping. A negative exponent gives the truncated quotient 1 / x^-y: 0 but for ±1.
template <Int T>
T power(T x, T y) {
  if (below_zero(y))
    return x == T(1) ? T(1) : x == static_cast<T>(-1) ? ((y & 1) ? x : T(1)) : T(0);
  T result = 1;
  for (auto n = static_cast<uint64_t>(y); n != 0; n >>= 1) {
    if (n & 1) result = times(result, x);
    x = times(x, x);
  }
  return result;
}

}  // namespace tenon::ops::elt
