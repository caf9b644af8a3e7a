// Random kernels: vector loops over mixed types with gathers, predicates, inner loops and
// reductions, against the reference evaluator. TENON_RANDOM_KERNELS sets how many.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "kernel_harness.h"

namespace tenon::codegen {
namespace {

using kir::Builder;
using kir::CarriedSpec;
using kir::Combine;
using kir::Kernel;
using kir::Op;
using kir::Pred;
using kir::Type;
using kir::Val;
using test::Call;

constexpr int64_t kTableSize = 64;

class Generator {
 public:
  Generator(Kernel& kernel, uint64_t seed) : b_(kernel), random_(seed) {}

  void build() {
    reals_in_ = b_.add_buffer("reals", DType::kF32, false);
    words_in_ = b_.add_buffer("words", DType::kI32, false);
    flags_in_ = b_.add_buffer("flags", DType::kBool, false);
    table_ = b_.add_buffer("table", DType::kF32, false);
    uint32_t reals_out = b_.add_buffer("reals_out", DType::kF32, true);
    uint32_t words_out = b_.add_buffer("words_out", DType::kI32, true);
    uint32_t totals = b_.add_buffer("totals", DType::kI32, true);
    Val scale = b_.convert(Op::kIntTrunc, Type::kI32, b_.dim(Dim("scale")));
    std::vector<CarriedSpec> carried = {{b_.constant_int(Type::kI32, 5), Combine::kAdd},
                                        {b_.constant_int(Type::kI32, -9), Combine::kSMax}};
    kir::LoopSpec spec{.vector = true, .interleave = static_cast<int>(below(3))};
    auto results = b_.loop(b_.begin(), b_.end(), spec, carried, [&](Val i, std::span<const Val> c) {
      reals_ = {b_.load(reals_in_, i), b_.convert(Op::kSToF, Type::kF32, scale),
                b_.constant_float(Type::kF32, 1.5)};
      words_ = {b_.load(words_in_, i), scale, b_.convert(Op::kIntTrunc, Type::kI32, i),
                b_.constant_int(Type::kI32, 3)};
      flags_ = {b_.load(flags_in_, i)};
      for (uint64_t steps = 16 + below(32); steps > 0; --steps) step(true);
      b_.store(reals_out, i, reals_.back());
      b_.store_if(words_out, i, words_.back(), flags_.back());
      return std::vector<Val>{b_.add(c[0], pick(words_)), b_.binary(Op::kSMax, c[1], pick(words_))};
    });
    b_.store(totals, b_.i64(0), results[0]);
    b_.store(totals, b_.i64(1), results[1]);
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  Val pick(const std::vector<Val>& from) { return from[below(from.size())]; }

  // A word that depends on every value computed.
  Val digest() {
    Val mix = b_.constant_int(Type::kI32, 1);
    for (Val value : words_) mix = b_.add(b_.mul(mix, b_.constant_int(Type::kI32, 31)), value);
    for (Val value : reals_) {
      mix = b_.binary(Op::kXor, mix, b_.convert(Op::kFToS, Type::kI32, value));
    }
    return mix;
  }

  void step(bool may_loop) {
    switch (below(may_loop ? 10 : 9)) {
      case 0: return real(b_.add(pick(reals_), pick(reals_)));
      case 1: return real_operation();
      case 2: return word_operation();
      case 3: return flags_.push_back(comparison());
      case 4: return real(b_.select(pick(flags_), pick(reals_), pick(reals_)));
      case 5: return word(b_.select(pick(flags_), pick(words_), pick(words_)));
      case 6: return real(b_.convert(Op::kSToF, Type::kF32, pick(words_)));
      case 7: return word(b_.convert(Op::kFToS, Type::kI32, pick(reals_)));
      case 8: return lookup();
      default: return inner_loop();
    }
  }

  void real(Val value) { reals_.push_back(value); }
  void word(Val value) { words_.push_back(value); }

  void real_operation() {
    static constexpr Op kOps[] = {Op::kSub, Op::kMul, Op::kFMin, Op::kFMax, Op::kFMinFast};
    static constexpr Op kUnary[] = {Op::kNeg, Op::kAbs, Op::kFloor, Op::kRint, Op::kTrunc};
    uint64_t kind = below(3);
    if (kind == 0) return real(b_.unary(kUnary[below(std::size(kUnary))], pick(reals_)));
    if (kind == 1) return real(b_.binary(kOps[below(std::size(kOps))], pick(reals_), pick(reals_)));
    real(b_.ternary(below(2) ? Op::kResidual : Op::kMulAdd, pick(reals_), pick(reals_),
                    pick(reals_)));
  }

  void word_operation() {
    static constexpr Op kOps[] = {Op::kAdd, Op::kSub,  Op::kMul,  Op::kAnd,   Op::kOr,
                                  Op::kXor, Op::kSMin, Op::kUMax, Op::kUMulHi};
    uint64_t kind = below(4);
    Val a = pick(words_);
    Val b = pick(words_);
    if (kind == 0) {
      Val divisor = b_.binary(Op::kOr, b_.binary(Op::kAnd, b, b_.constant_int(Type::kI32, 255)),
                              b_.constant_int(Type::kI32, 1));
      return word(b_.binary(below(2) ? Op::kSDiv : Op::kURem, a, divisor));
    }
    if (kind == 1) {
      Val amount = b_.binary(Op::kAnd, b, b_.constant_int(Type::kI32, 31));
      return word(b_.binary(below(2) ? Op::kShl : Op::kAShr, a, amount));
    }
    word(b_.binary(kOps[below(std::size(kOps))], a, b));
  }

  Val comparison() {
    static constexpr Pred kReal[] = {Pred::kFLt, Pred::kFGe, Pred::kNe, Pred::kUno};
    static constexpr Pred kWord[] = {Pred::kSLt, Pred::kULe, Pred::kEq, Pred::kUGt};
    if (below(2)) return b_.cmp(kReal[below(4)], pick(reals_), pick(reals_));
    return b_.cmp(kWord[below(4)], pick(words_), pick(words_));
  }

  // A table read at a place that depends on data, inside it or predicated.
  void lookup() {
    int64_t mask = below(2) ? kTableSize - 1 : 2 * kTableSize - 1;
    Val narrow = b_.binary(Op::kAnd, pick(words_), b_.constant_int(Type::kI32, mask));
    Val at = b_.convert(Op::kZExt, Type::kI64, narrow);
    if (mask < kTableSize) return real(b_.load(table_, at));
    Val inside = b_.cmp(Pred::kSLt, at, b_.i64(kTableSize));
    real(b_.load_if(table_, at, inside, pick(reals_)));
  }

  void inner_loop() {
    std::vector<CarriedSpec> carried = {{pick(reals_)}, {pick(words_)}};
    auto saved = std::tuple(reals_, words_, flags_);
    auto results =
        b_.loop(b_.i64(0), b_.i64(static_cast<int64_t>(below(4))), {}, carried,
                [&](Val k, std::span<const Val> c) {
                  reals_.insert(reals_.end(), {c[0], b_.load(table_, k)});
                  words_.insert(words_.end(), {c[1], b_.convert(Op::kIntTrunc, Type::kI32, k)});
                  for (int steps = 0; steps < 4; ++steps) step(false);
                  return std::vector<Val>{pick(reals_), pick(words_)};
                });
    std::tie(reals_, words_, flags_) = saved;
    real(results[0]);
    word(results[1]);
  }

  Builder b_;
  std::mt19937_64 random_;
  uint32_t reals_in_ = 0, words_in_ = 0, flags_in_ = 0, table_ = 0;
  std::vector<Val> reals_, words_, flags_;
};

template <class T, class Make>
std::vector<std::byte> filled(size_t count, const Make& make) {
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(make());
  return test::bytes_of(values);
}

TEST(RandomKernels, MatchTheEvaluator) {
  const char* wanted = std::getenv("TENON_RANDOM_KERNELS");
  int count = wanted ? std::atoi(wanted) : 60;
  for (int k = 0; k < count; ++k) {
    uint64_t seed = 1000 + static_cast<uint64_t>(k);
    Kernel kernel;
    kernel.name = fmt::format("random_{}", seed);
    Generator(kernel, seed).build();
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0, 10);
    std::vector<Call> calls;
    for (size_t n : {0u, 1u, 15u, 37u, 64u, 131u}) {
      Call call;
      call.end = static_cast<int64_t>(n);
      call.dims = {static_cast<int64_t>(random() % 100) - 50};
      call.buffers = {filled<float>(n, [&] { return normal(random); }),
                      filled<int32_t>(n, [&] { return random() >> (random() % 32); }),
                      filled<uint8_t>(n, [&] { return random() % 2; }),
                      filled<float>(kTableSize, [&] { return normal(random); }),
                      std::vector<std::byte>(4 * n),
                      std::vector<std::byte>(4 * n),
                      std::vector<std::byte>(8)};
      calls.push_back(std::move(call));
    }
    test::expect_like_reference(kernel, calls);
    if (HasFailure()) FAIL() << "seed " << seed << "\n" << print(kernel);
  }
}

}  // namespace
}  // namespace tenon::codegen
