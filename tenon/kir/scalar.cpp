#include "tenon/kir/scalar.h"

#include <bit>
#include <cmath>
#include <limits>

#include "tenon/base/error.h"
#include "tenon/base/half.h"
#include "tenon/kir/reference_math.h"

namespace tenon::kir {

namespace {

uint64_t mask_of(Type type) {
  int width = bits(type);
  return width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
}

template <class F>
Bits pack(F value) {
  if constexpr (sizeof(F) == 4)
    return std::bit_cast<uint32_t>(value);
  else
    return std::bit_cast<uint64_t>(value);
}

template <class F>
F unpack(Bits value) {
  if constexpr (sizeof(F) == 4)
    return std::bit_cast<float>(static_cast<uint32_t>(value));
  else
    return std::bit_cast<double>(value);
}

template <class F>
F min_of(F a, F b) {
  if (a != a || b != b) return a + b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <class F>
F max_of(F a, F b) {
  if (a != a || b != b) return a + b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class F>
F mul_add(F a, F b, F c, bool fused) {
  if (fused) return std::fma(a, b, c);
  volatile F product = a * b;
  return product + c;
}

// Unfused as generated code does it: the product of floats is exact in double, that of the halves
// of doubles in double (Dekker, "A floating-point technique for extending the available precision",
// 1971).
float residual(float a, float b, float c, bool fused) {
  if (fused) return std::fma(a, b, c);
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) +
                            static_cast<double>(c));
}

double upper_half(double x) {
  return std::bit_cast<double>((std::bit_cast<uint64_t>(x) + kHalfStep) & ~(2 * kHalfStep - 1));
}

double residual(double a, double b, double c, bool fused) {
  if (fused) return std::fma(a, b, c);
  double a_high = upper_half(a), b_high = upper_half(b);
  double a_low = a - a_high, b_low = b - b_high;
  return ((a_high * b_high + c) + a_high * b_low + a_low * b_high) + a_low * b_low;
}

template <class F>
Bits eval_float(Op op, std::span<const Bits> args, const ScalarOptions& options) {
  constexpr uint64_t kSign = uint64_t{1} << (sizeof(F) * 8 - 1);
  F a = unpack<F>(args[0]);
  F b = args.size() > 1 ? unpack<F>(args[1]) : F{};
  F c = args.size() > 2 ? unpack<F>(args[2]) : F{};
  switch (op) {
    case Op::kAdd: return pack(a + b);
    case Op::kSub: return pack(a - b);
    case Op::kMul: return pack(a * b);
    case Op::kDiv: return pack(a / b);
    case Op::kNeg: return args[0] ^ kSign;
    case Op::kAbs: return args[0] & ~kSign;
    case Op::kCopySign: return (args[0] & ~kSign) | (args[1] & kSign);
    case Op::kScale: return pack(a != a ? a : std::ldexp(a, static_cast<int>(b)));
    case Op::kResidual: return pack(residual(a, b, c, options.fused));
    case Op::kMulAdd: return pack(mul_add(a, b, c, options.fused));
    case Op::kSqrt: return pack(std::sqrt(a));
    case Op::kFloor: return pack(std::floor(a));
    case Op::kCeil: return pack(std::ceil(a));
    case Op::kTrunc: return pack(std::trunc(a));
    case Op::kRint: return pack(std::nearbyint(a));
    case Op::kFMin: return pack(min_of(a, b));
    case Op::kFMax: return pack(max_of(a, b));
    case Op::kFMinFast: return a < b ? args[0] : args[1];
    case Op::kFMaxFast: return a > b ? args[0] : args[1];
    default: break;
  }
  if (is_math(op)) return pack(reference_math(op, a, b));
  throw InternalError(fmt::format("{}: not defined on floats", name(op)));
}

uint64_t mul_high(Type type, uint64_t a, uint64_t b) {
  if (type == Type::kI32) return (a * b) >> 32;
  uint64_t a_lo = a & 0xffffffffu, a_hi = a >> 32, b_lo = b & 0xffffffffu, b_hi = b >> 32;
  uint64_t low = a_lo * b_lo;
  uint64_t mid = a_hi * b_lo + (low >> 32);
  uint64_t mid2 = a_lo * b_hi + (mid & 0xffffffffu);
  return a_hi * b_hi + (mid >> 32) + (mid2 >> 32);
}

Bits divide(Op op, Type type, std::span<const Bits> args) {
  uint64_t a = args[0], b = args[1];
  int64_t sa = signed_of(type, a), sb = signed_of(type, b);
  if (b == 0) throw InternalError(fmt::format("{}: division by zero", name(op)));
  switch (op) {
    case Op::kUDiv: return a / b;
    case Op::kURem: return a % b;
    case Op::kSDiv:
      return sb == -1 ? bits_of_int(type, static_cast<int64_t>(0 - static_cast<uint64_t>(sa)))
                      : bits_of_int(type, sa / sb);
    default: return sb == -1 ? 0 : bits_of_int(type, sa % sb);
  }
}

Bits eval_int(Op op, Type type, std::span<const Bits> args) {
  uint64_t mask = mask_of(type);
  uint64_t a = args[0];
  uint64_t b = args.size() > 1 ? args[1] : 0;
  int64_t sa = signed_of(type, a);
  int64_t sb = signed_of(type, b);
  switch (op) {
    case Op::kAdd: return (a + b) & mask;
    case Op::kSub: return (a - b) & mask;
    case Op::kMul: return (a * b) & mask;
    case Op::kNeg: return (0 - a) & mask;
    case Op::kAbs: return (sa < 0 ? 0 - a : a) & mask;
    case Op::kSDiv:
    case Op::kUDiv:
    case Op::kSRem:
    case Op::kURem: return divide(op, type, args);
    case Op::kSMin: return sa < sb ? a : b;
    case Op::kSMax: return sa > sb ? a : b;
    case Op::kUMin: return a < b ? a : b;
    case Op::kUMax: return a > b ? a : b;
    case Op::kAnd: return a & b;
    case Op::kOr: return a | b;
    case Op::kXor: return a ^ b;
    case Op::kShl: return (a << b) & mask;
    case Op::kLShr: return a >> b;
    case Op::kAShr: return static_cast<uint64_t>(sa >> b) & mask;
    case Op::kUMulHi: return mul_high(type, a, b);
    case Op::kPopCount: return static_cast<uint64_t>(std::popcount(a));
    case Op::kClz: return static_cast<uint64_t>(std::countl_zero(a) - (64 - bits(type)));
    default: throw InternalError(fmt::format("{}: not defined on integers", name(op)));
  }
}

Bits dot_bytes(std::span<const Bits> args) {
  auto sum = static_cast<uint32_t>(args[0]);
  for (int shift = 0; shift < 32; shift += 8) {
    auto a = static_cast<uint8_t>(args[1] >> shift);
    auto b = static_cast<int8_t>(args[2] >> shift);
    sum += static_cast<uint32_t>(a * b);
  }
  return sum;
}

Bits dot_bf16(std::span<const Bits> args, const ScalarOptions& options) {
  auto sum = unpack<float>(args[0]);
  for (int shift = 16; shift >= 0; shift -= 16) {
    float a = bf16_to_float(static_cast<uint16_t>(args[1] >> shift));
    float b = bf16_to_float(static_cast<uint16_t>(args[2] >> shift));
    sum = mul_add(a, b, sum, options.fused);
  }
  return pack(sum);
}

bool compare(Pred pred, Type type, Bits a, Bits b) {
  if (is_float(type)) {
    double x = float_of(type, a), y = float_of(type, b);
    switch (pred) {
      case Pred::kEq: return x == y;
      case Pred::kNe: return x != y;
      case Pred::kFLt: return x < y;
      case Pred::kFLe: return x <= y;
      case Pred::kFGt: return x > y;
      case Pred::kFGe: return x >= y;
      case Pred::kUno: return x != x || y != y;
      default: throw InternalError("cmp: an integer predicate on floats");
    }
  }
  int64_t x = signed_of(type, a), y = signed_of(type, b);
  switch (pred) {
    case Pred::kEq: return a == b;
    case Pred::kNe: return a != b;
    case Pred::kSLt: return x < y;
    case Pred::kSLe: return x <= y;
    case Pred::kSGt: return x > y;
    case Pred::kSGe: return x >= y;
    case Pred::kULt: return a < b;
    case Pred::kULe: return a <= b;
    case Pred::kUGt: return a > b;
    case Pred::kUGe: return a >= b;
    default: throw InternalError("cmp: a float predicate on integers");
  }
}

Bits to_signed(Type type, double value) {
  int width = bits(type);
  if (value != value) return 0;
  double limit = std::ldexp(1.0, width - 1);
  if (value >= limit) return (uint64_t{1} << (width - 1)) - 1;
  if (value < -limit) return uint64_t{1} << (width - 1);
  return bits_of_int(type, static_cast<int64_t>(value));
}

Bits to_unsigned(Type type, double value) {
  if (!(value > 0)) return 0;
  if (value >= std::ldexp(1.0, bits(type))) return mask_of(type);
  return static_cast<uint64_t>(value);
}

// Straight from the integer: going through double would round twice.
Bits from_int(Op op, Type type, Type operand, Bits value) {
  if (op == Op::kSToF) {
    int64_t v = signed_of(operand, value);
    return type == Type::kF32 ? pack(static_cast<float>(v)) : pack(static_cast<double>(v));
  }
  return type == Type::kF32 ? pack(static_cast<float>(value)) : pack(static_cast<double>(value));
}

Bits convert(Op op, Type type, Type operand, Bits value) {
  switch (op) {
    case Op::kSExt: return bits_of_int(type, signed_of(operand, value));
    case Op::kZExt:
    case Op::kBitcast: return value;
    case Op::kIntTrunc: return value & mask_of(type);
    case Op::kFExt:
    case Op::kFTrunc: return bits_of_float(type, float_of(operand, value));
    case Op::kSToF:
    case Op::kUToF: return from_int(op, type, operand, value);
    case Op::kFToS: return to_signed(type, float_of(operand, value));
    default: return to_unsigned(type, float_of(operand, value));
  }
}

}  // namespace

Bits bits_of_int(Type type, int64_t value) { return static_cast<uint64_t>(value) & mask_of(type); }

Bits bits_of_float(Type type, double value) {
  switch (type) {
    case Type::kF16: return f16_from_double(value);
    case Type::kBF16: {
      // Round to odd first, so that the second rounding sees what the first dropped.
      float f = static_cast<float>(value);
      if (static_cast<double>(f) != value && std::isfinite(f)) {
        uint32_t u = std::bit_cast<uint32_t>(f);
        if (std::fabs(static_cast<double>(f)) > std::fabs(value)) --u;
        f = std::bit_cast<float>(u | 1u);
      }
      return bf16_from_float(f);
    }
    case Type::kF32: return pack(static_cast<float>(value));
    case Type::kF64: return pack(value);
    default: throw InternalError(fmt::format("kernel: {} is not a float type", name(type)));
  }
}

int64_t signed_of(Type type, Bits value) {
  int shift = 64 - bits(type);
  return static_cast<int64_t>(value << shift) >> shift;
}

double float_of(Type type, Bits value) {
  switch (type) {
    case Type::kF16: return static_cast<double>(f16_to_float(static_cast<uint16_t>(value)));
    case Type::kBF16: return static_cast<double>(bf16_to_float(static_cast<uint16_t>(value)));
    case Type::kF32: return static_cast<double>(unpack<float>(value));
    case Type::kF64: return unpack<double>(value);
    default: throw InternalError(fmt::format("kernel: {} is not a float type", name(type)));
  }
}

Bits bits_of_const(const Inst& inst) {
  return is_float(inst.type) ? bits_of_float(inst.type, inst.imm_float)
                             : bits_of_int(inst.type, inst.imm_int);
}

Bits eval_scalar(Op op, Type type, Type operand, Pred pred, std::span<const Bits> args,
                 const ScalarOptions& options) {
  if (op == Op::kCmp) return compare(pred, operand, args[0], args[1]) ? 1 : 0;
  if (op == Op::kSelect) return args[0] != 0 ? args[1] : args[2];
  if (op >= Op::kSExt && op <= Op::kBitcast) return convert(op, type, operand, args[0]);
  if (op == Op::kDot4) return dot_bytes(args);
  if (op == Op::kDot2) return dot_bf16(args, options);
  if (operand == Type::kF32) return eval_float<float>(op, args, options);
  if (operand == Type::kF64) return eval_float<double>(op, args, options);
  if (is_float(operand))
    throw InternalError(fmt::format("{}: no arithmetic in {}", name(op), name(operand)));
  return eval_int(op, type, args);
}

}  // namespace tenon::kir
