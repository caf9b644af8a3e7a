// Every pure operation on every type, at every tail length, against the reference evaluator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernel_harness.h"
#include "tenon/base/half.h"
#include "tenon/kir/scalar.h"

namespace tenon::codegen {
namespace {

using kir::Builder;
using kir::Kernel;
using kir::Op;
using kir::Pred;
using kir::Type;
using kir::Val;
using test::Call;

constexpr int kMaxLength = 70;

struct Case {
  std::string name;
  std::vector<DType> inputs;
  DType output;
  std::function<Val(Builder&, std::span<const Val>)> body;
  bool integer_divisor = false;  // the second input is neither 0 nor -1
  bool shift_amount = false;     // the second input is below the width
};

// Random bits, ordinary values and the corners of the type.
std::vector<std::byte> random_values(DType dtype, size_t count, std::mt19937_64& random) {
  size_t size = size_of(dtype);
  std::vector<std::byte> bytes(count * size);
  for (size_t k = 0; k < count; ++k) {
    uint64_t bits = random();
    uint64_t kind = random() % 8;
    if (dtype == DType::kBool) {
      bits &= 1;
    } else if (is_float(dtype)) {
      static constexpr double kCorners[] = {0.0,           -0.0,
                                            1.0,           -1.0,
                                            0.5,           1.5,
                                            2.5,           -2.5,
                                            INFINITY,      -INFINITY,
                                            NAN,           65504,
                                            65520,         1e-8,
                                            0x1p-24,       2147483648.0,
                                            -2147483649.0, 4294967296.0,
                                            0x1p63,        -0x1p63,
                                            0x1p64,        0x1.fffffep127,
                                            0x1p-149,      127.5,
                                            -128.9,        255.9,
                                            0x1p-25,       1 + 0x1p-11 + 0x1p-40};
      double value = static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-60;
      if (kind == 0) value = kCorners[random() % std::size(kCorners)];
      if (kind == 1) value *= 1000000;
      if (kind != 2) {
        if (dtype == DType::kF64) bits = std::bit_cast<uint64_t>(value);
        if (dtype == DType::kF32) bits = std::bit_cast<uint32_t>(static_cast<float>(value));
        if (dtype == DType::kF16) bits = f16_from_double(value);
        if (dtype == DType::kBF16) bits = bf16_from_float(static_cast<float>(value));
      }
    } else if (kind == 0) {
      static constexpr int64_t kCorners[] = {0,
                                             1,
                                             -1,
                                             127,
                                             -128,
                                             32767,
                                             -32768,
                                             2147483647,
                                             -2147483648LL,
                                             std::numeric_limits<int64_t>::max(),
                                             std::numeric_limits<int64_t>::min()};
      bits = static_cast<uint64_t>(kCorners[random() % std::size(kCorners)]);
    } else if (kind < 3) {
      bits = static_cast<uint64_t>(static_cast<int64_t>(bits) % 100);
    }
    std::memcpy(bytes.data() + k * size, &bits, size);
  }
  return bytes;
}

void limit_second_input(const Case& c, std::vector<std::byte>& bytes) {
  size_t size = size_of(c.inputs[1]);
  for (size_t at = 0; at < bytes.size(); at += size) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, size);
    uint64_t ones = ~uint64_t{0} >> (64 - 8 * size);
    if (c.shift_amount) bits %= 8 * size;
    if (c.integer_divisor && (bits == 0 || bits == ones)) bits = 3;
    std::memcpy(bytes.data() + at, &bits, size);
  }
}

// out[i] = body(in0[i], …) for i in begin..end, vectorised or not.
Kernel make_kernel(const Case& c, bool vector) {
  Kernel kernel;
  kernel.name = c.name;
  Builder b(kernel);
  std::vector<uint32_t> inputs;
  for (DType dtype : c.inputs) inputs.push_back(b.add_buffer("in", dtype, false));
  uint32_t output = b.add_buffer("out", c.output, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = vector}, [&](Val i) {
    std::vector<Val> args;
    for (uint32_t input : inputs) args.push_back(b.load(input, i));
    b.store(output, i, c.body(b, args));
  });
  return kernel;
}

void check_case(const Case& c, Isa isa, std::mt19937_64& random) {
  Kernel vector = make_kernel(c, true);
  Kernel scalar = make_kernel(c, false);
  const Kernel* both[] = {&vector, &scalar};
  test::LoadedImage image(compile(both, {.isa = isa}), isa);
  for (int length = 0; length <= kMaxLength; ++length) {
    Call call;
    call.end = length;
    for (size_t k = 0; k < c.inputs.size(); ++k) {
      call.buffers.push_back(random_values(c.inputs[k], static_cast<size_t>(length), random));
      if (k == 1) limit_second_input(c, call.buffers[1]);
    }
    call.buffers.emplace_back(static_cast<size_t>(length) * size_of(c.output));
    Call expected = test::run_reference(vector, call, isa != Isa::kBaseline);
    for (size_t entry = 0; entry < 2; ++entry) {
      Call got = test::run_image(image, entry, call);
      std::string what;
      ASSERT_TRUE(test::same_values(c.output, got.buffers.back(), expected.buffers.back(), &what))
          << c.name << " on " << name(isa) << (entry == 0 ? " vector" : " scalar") << ": " << what;
    }
  }
}

DType dtype_of(Type type) {
  switch (type) {
    case Type::kI1: return DType::kBool;
    case Type::kI8: return DType::kI8;
    case Type::kI16: return DType::kI16;
    case Type::kI32: return DType::kI32;
    case Type::kI64: return DType::kI64;
    case Type::kF16: return DType::kF16;
    case Type::kBF16: return DType::kBF16;
    case Type::kF32: return DType::kF32;
    default: return DType::kF64;
  }
}

Case simple(Op op, Type type, int arity) {
  Case c;
  c.name = fmt::format("{}_{}", name(op), name(type));
  c.inputs.assign(static_cast<size_t>(arity), dtype_of(type));
  c.output = dtype_of(type);
  c.body = [op, arity](Builder& b, std::span<const Val> x) {
    if (arity == 1) return b.unary(op, x[0]);
    return arity == 2 ? b.binary(op, x[0], x[1]) : b.ternary(op, x[0], x[1], x[2]);
  };
  c.integer_divisor = op == Op::kSDiv || op == Op::kUDiv || op == Op::kSRem || op == Op::kURem;
  c.shift_amount = op == Op::kShl || op == Op::kLShr || op == Op::kAShr;
  return c;
}

// Pairs of bf16 of small whole numbers, whose dot products are exact in any order.
Case dot_of_whole_numbers() {
  Case c;
  c.name = "dot2bf16";
  c.inputs.assign(3, DType::kI32);
  c.output = DType::kF32;
  c.body = [](Builder& b, std::span<const Val> x) {
    auto whole = [&](Val word, int64_t shift) {
      Val byte = b.convert(Op::kIntTrunc, Type::kI8,
                           b.binary(Op::kLShr, word, b.constant_int(Type::kI32, shift)));
      return b.convert(Op::kSToF, Type::kF32, byte);
    };
    auto half = [&](Val word, int64_t shift) {
      Val narrow = b.convert(Op::kFTrunc, Type::kBF16, whole(word, shift));
      return b.convert(Op::kZExt, Type::kI32, b.convert(Op::kBitcast, Type::kI16, narrow));
    };
    auto pair = [&](Val word) {
      Val high = b.binary(Op::kShl, half(word, 8), b.constant_int(Type::kI32, 16));
      return b.binary(Op::kOr, high, half(word, 0));
    };
    return b.ternary(Op::kDot2, whole(x[0], 0), pair(x[1]), pair(x[2]));
  };
  return c;
}

// Numbers from 1/4 to 4 of either sign, and NaN, by powers of two over the whole range.
Case scale_by_powers(Type type) {
  Case c;
  c.name = fmt::format("scale_{}", name(type));
  c.inputs.assign(2, dtype_of(type));
  c.output = dtype_of(type);
  c.body = [type](Builder& b, std::span<const Val> x) {
    const bool twofold = type == Type::kF64;
    const Type word = twofold ? Type::kI64 : Type::kI32;
    const int64_t most = twofold ? 2040 : 250;
    auto whole = [&](int64_t value) { return b.constant_int(word, value); };
    auto number = [&](Val bits) { return b.convert(Op::kBitcast, type, bits); };
    Val bits = b.convert(Op::kBitcast, word, x[0]);
    Val fraction = b.binary(Op::kAnd, bits, whole(twofold ? (int64_t{1} << 52) - 1 : 0x7fffff));
    Val one = b.convert(Op::kBitcast, word, b.constant_float(type, 1));
    Val near_one = b.binary(Op::kCopySign, number(b.binary(Op::kOr, fraction, one)), x[0]);
    Val is_nan = b.cmp(Pred::kUno, x[0], x[0]);
    Val power = b.binary(Op::kURem, b.convert(Op::kBitcast, word, x[1]), whole(2 * most + 1));
    return b.binary(Op::kScale, b.select(is_nan, x[0], near_one),
                    b.convert(Op::kSToF, type, b.sub(power, whole(most))));
  };
  return c;
}

std::vector<Case> arithmetic_cases() {
  std::vector<Case> cases;
  for (Type type : {Type::kF32, Type::kF64}) {
    for (Op op : {Op::kNeg, Op::kAbs, Op::kSqrt, Op::kFloor, Op::kCeil, Op::kTrunc, Op::kRint}) {
      cases.push_back(simple(op, type, 1));
    }
    for (Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kCopySign, Op::kFMin, Op::kFMax,
                  Op::kFMinFast, Op::kFMaxFast}) {
      cases.push_back(simple(op, type, 2));
    }
    cases.push_back(scale_by_powers(type));
    cases.push_back(simple(Op::kResidual, type, 3));
    cases.push_back(simple(Op::kMulAdd, type, 3));
  }
  for (Type type : {Type::kI8, Type::kI16, Type::kI32, Type::kI64}) {
    for (Op op : {Op::kNeg, Op::kAbs, Op::kPopCount, Op::kClz}) {
      cases.push_back(simple(op, type, 1));
    }
    for (Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kSDiv, Op::kUDiv, Op::kSRem, Op::kURem,
                  Op::kSMin, Op::kSMax, Op::kUMin, Op::kUMax, Op::kAnd, Op::kOr, Op::kXor, Op::kShl,
                  Op::kLShr, Op::kAShr}) {
      cases.push_back(simple(op, type, 2));
    }
  }
  for (Type type : {Type::kI32, Type::kI64}) cases.push_back(simple(Op::kUMulHi, type, 2));
  for (Op op : {Op::kAnd, Op::kOr, Op::kXor}) cases.push_back(simple(op, Type::kI1, 2));
  cases.push_back(simple(Op::kDot4, Type::kI32, 3));
  cases.push_back(dot_of_whole_numbers());
  return cases;
}

// Every pair of zeros, infinities, NaNs of either sign and numbers, of each float type, under each
// extremum: in f16 and bf16 with the conversions around it.
TEST(Elementwise, ExtremaOfEveryPair) {
  constexpr double kValues[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, -NAN, 0x1p-14, 2.5};
  constexpr size_t kCount = std::size(kValues);
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    const Type stored = kir::type_of(dtype);
    const Type type = dtype == DType::kF64 ? Type::kF64 : Type::kF32;
    std::vector<std::byte> a(kCount * kCount * size_of(dtype)), b = a;
    for (size_t i = 0; i < kCount * kCount; ++i) {
      const uint64_t x = kir::bits_of_float(stored, kValues[i / kCount]);
      const uint64_t y = kir::bits_of_float(stored, kValues[i % kCount]);
      std::memcpy(a.data() + i * size_of(dtype), &x, size_of(dtype));
      std::memcpy(b.data() + i * size_of(dtype), &y, size_of(dtype));
    }
    for (Op op : {Op::kFMin, Op::kFMax}) {
      Case c = simple(op, stored, 2);
      c.body = [=](Builder& builder, std::span<const Val> x) {
        auto wide = [&](Val v) { return stored == type ? v : builder.convert(Op::kFExt, type, v); };
        Val result = builder.binary(op, wide(x[0]), wide(x[1]));
        return stored == type ? result : builder.convert(Op::kFTrunc, stored, result);
      };
      Kernel vector = make_kernel(c, true);
      Kernel scalar = make_kernel(c, false);
      const Kernel* both[] = {&vector, &scalar};
      Call call;
      call.end = kCount * kCount;
      call.buffers = {a, b, std::vector<std::byte>(a.size())};
      const Call expected = test::run_reference(vector, call, true);
      for (Isa isa : test::runnable_isas()) {
        test::LoadedImage image(compile(both, {.isa = isa}), isa);
        for (size_t entry = 0; entry < 2; ++entry) {
          const Call got = test::run_image(image, entry, call);
          std::string what;
          EXPECT_TRUE(test::same_values(dtype, got.buffers.back(), expected.buffers.back(), &what))
              << c.name << " on " << name(isa) << (entry == 0 ? " vector" : " scalar") << ": "
              << what;
        }
      }
    }
  }
}

std::vector<Case> comparison_cases() {
  std::vector<Case> cases;
  auto add = [&](Type type, Pred pred) {
    Case c;
    c.name = fmt::format("cmp_{}_{}", name(pred), name(type));
    c.inputs = {dtype_of(type), dtype_of(type)};
    c.output = DType::kBool;
    c.body = [pred](Builder& b, std::span<const Val> x) { return b.cmp(pred, x[0], x[1]); };
    cases.push_back(c);
    c.name = "select_" + c.name;
    c.output = dtype_of(type);
    c.body = [pred](Builder& b, std::span<const Val> x) {
      return b.select(b.cmp(pred, x[0], x[1]), x[1], x[0]);
    };
    cases.push_back(c);
  };
  for (Type type : {Type::kF32, Type::kF64}) {
    for (Pred pred :
         {Pred::kEq, Pred::kNe, Pred::kFLt, Pred::kFLe, Pred::kFGt, Pred::kFGe, Pred::kUno}) {
      add(type, pred);
    }
  }
  for (Type type : {Type::kI8, Type::kI16, Type::kI32, Type::kI64}) {
    for (Pred pred : {Pred::kEq, Pred::kNe, Pred::kSLt, Pred::kSLe, Pred::kSGt, Pred::kSGe,
                      Pred::kULt, Pred::kULe, Pred::kUGt, Pred::kUGe}) {
      add(type, pred);
    }
  }
  return cases;
}

std::vector<Case> conversion_cases() {
  std::vector<Case> cases;
  auto add = [&](Op op, Type from, Type to) {
    Case c;
    c.name = fmt::format("{}_{}_{}", name(op), name(from), name(to));
    c.inputs = {dtype_of(from)};
    c.output = dtype_of(to);
    c.body = [op, to](Builder& b, std::span<const Val> x) { return b.convert(op, to, x[0]); };
    cases.push_back(c);
  };
  const std::vector<Type> ints = {Type::kI8, Type::kI16, Type::kI32, Type::kI64};
  const std::vector<Type> reals = {Type::kF16, Type::kBF16, Type::kF32, Type::kF64};
  for (Type from : ints) {
    for (Type to : ints) {
      if (kir::bits(from) < kir::bits(to)) {
        add(Op::kSExt, from, to);
        add(Op::kZExt, from, to);
      }
      if (kir::bits(from) > kir::bits(to)) add(Op::kIntTrunc, from, to);
    }
    add(Op::kZExt, Type::kI1, from);
    for (Type real : {Type::kF32, Type::kF64}) {
      add(Op::kSToF, from, real);
      add(Op::kUToF, from, real);
      add(Op::kFToS, real, from);
      add(Op::kFToU, real, from);
    }
  }
  for (Type from : reals) {
    for (Type to : reals) {
      if (kir::bits(from) < kir::bits(to)) add(Op::kFExt, from, to);
      if (kir::bits(from) > kir::bits(to)) add(Op::kFTrunc, from, to);
    }
  }
  add(Op::kBitcast, Type::kF32, Type::kI32);
  add(Op::kBitcast, Type::kI32, Type::kF32);
  add(Op::kBitcast, Type::kF64, Type::kI64);
  add(Op::kBitcast, Type::kI64, Type::kF64);
  add(Op::kBitcast, Type::kF16, Type::kI16);
  add(Op::kBitcast, Type::kI16, Type::kBF16);
  return cases;
}

void check_all(const std::vector<Case>& cases) {
  constexpr uint64_t kSeed = 20240611;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  for (Isa isa : test::runnable_isas()) {
    std::mt19937_64 random(kSeed);
    for (const Case& c : cases) check_case(c, isa, random);
  }
}

TEST(Elementwise, Arithmetic) { check_all(arithmetic_cases()); }
TEST(Elementwise, Comparison) { check_all(comparison_cases()); }
TEST(Elementwise, Conversion) { check_all(conversion_cases()); }

}  // namespace
}  // namespace tenon::codegen
