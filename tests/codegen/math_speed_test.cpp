// No mathematical function is much slower where arguments are subnormal than in the middle of its
// domain, nor where results are subnormal than with arguments three quarters as large. Prints the
// times of an element in ns. TENON_MATH_FUNCTION=erf chooses one function.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "math_kernel.h"

namespace tenon::codegen {
namespace {

using kir::Op;
using kir::test::MathCase;
using test::MathCode;

constexpr size_t kCount = 2048;
constexpr double kSlower = 2;
constexpr double kSlowerFmod = 2.1;  // little work besides

template <class F>
struct Arguments {
  std::vector<F> a;
  std::vector<F> b;
};

// Where a function is used: the ends of its domain are left out.
template <class F>
Arguments<F> ordinary(Op op, std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(0.05, 0.95);
  double shift = op == Op::kAcosh ? 1 : 0;
  Arguments<F> args;
  for (size_t k = 0; k < kCount; ++k) {
    args.a.push_back(static_cast<F>(unit(random) + shift));
    args.b.push_back(static_cast<F>(unit(random)));
  }
  return args;
}

template <class F>
F subnormal(std::mt19937_64& random) {
  using U = std::conditional_t<sizeof(F) == 4, uint32_t, uint64_t>;
  constexpr int kFraction = std::numeric_limits<F>::digits - 1;
  U bits = static_cast<U>(random()) & ((U{1} << kFraction) - 1);
  return std::bit_cast<F>(static_cast<U>(bits | 1));
}

template <class F>
Arguments<F> subnormal_arguments(std::mt19937_64& random) {
  Arguments<F> args;
  for (size_t k = 0; k < kCount; ++k) {
    args.a.push_back(subnormal<F>(random));
    args.b.push_back(subnormal<F>(random));
  }
  return args;
}

// Normal arguments with subnormal results, of as many as a search finds; repeated to kCount.
template <class F>
Arguments<F> subnormal_results(Op op, const MathCode& code, std::mt19937_64& random) {
  constexpr size_t kTries = 1 << 17;
  Arguments<F> tried, found;
  std::uniform_real_distribution<double> size(-10.5, 10.5);
  for (size_t k = 0; k < kTries; ++k) {
    auto value = [&] {
      double magnitude = std::exp2(size(random));
      return static_cast<F>(random() % 2 == 0 ? magnitude : -magnitude);
    };
    tried.a.push_back(value());
    tried.b.push_back(kir::test::has_two_arguments(op) ? value() : F(0));
  }
  std::vector<F> out(kTries);
  code.run(tried.a, tried.b, out);
  for (size_t k = 0; k < kTries; ++k) {
    if (std::fpclassify(out[k]) != FP_SUBNORMAL) continue;
    found.a.push_back(tried.a[k]);
    found.b.push_back(tried.b[k]);
  }
  size_t distinct = found.a.size();
  if (distinct < 16) return {};
  for (size_t k = 0; found.a.size() < kCount; ++k) {
    found.a.push_back(found.a[k % distinct]);
    found.b.push_back(found.b[k % distinct]);
  }
  found.a.resize(kCount);
  found.b.resize(kCount);
  return found;
}

// ns an element, the least of many runs.
template <class F>
double time_of(const MathCode& code, const Arguments<F>& args) {
  using Clock = std::chrono::steady_clock;
  std::vector<F> out(kCount);
  double least = 1e30;
  for (int round = 0; round < 1000; ++round) {
    auto start = Clock::now();
    code.run(args.a, args.b, out);
    std::chrono::duration<double, std::nano> took = Clock::now() - start;
    least = std::min(least, took.count() / kCount);
  }
  return least;
}

template <class F>
void check(Op op, DType dtype, Isa isa) {
  std::mt19937_64 random(7);
  MathCode code(op, dtype, isa);
  double usual = time_of(code, ordinary<F>(op, random));
  double arguments = time_of(code, subnormal_arguments<F>(random));
  auto tiny = subnormal_results<F>(op, code, random);
  double results = 0, near = usual;
  if (!tiny.a.empty()) {
    results = time_of(code, tiny);
    for (F& a : tiny.a) a *= F(0.75);
    near = time_of(code, tiny);
  }
  double limit = op == Op::kFmod ? kSlowerFmod : kSlower;
  std::printf("%-8s %s %-9s %7.3f, subnormal arguments %7.3f; near the end %7.3f, beyond %7.3f%s\n",
              std::string(name(op)).c_str(), std::string(tenon::name(dtype)).c_str(),
              std::string(name(isa)).c_str(), usual, arguments, near, results,
              arguments > limit * usual || results > limit * near ? "  slow" : "");
  EXPECT_LE(arguments, limit * usual) << name(op) << " of subnormal " << tenon::name(dtype);
  EXPECT_LE(results, limit * near) << name(op) << " to subnormal " << tenon::name(dtype);
}

TEST(MathSpeed, SubnormalsAreNotMuchSlower) {
  const char* chosen = std::getenv("TENON_MATH_FUNCTION");
  for (const MathCase& one : kir::test::math_cases()) {
    if (chosen != nullptr && name(one.op) != chosen) continue;
    for (Isa isa : test::runnable_isas()) {
      if (isa == Isa::kNeon || isa == Isa::kAmx || isa == Isa::kAvx512Dot) continue;
      check<float>(one.op, DType::kF32, isa);
      check<double>(one.op, DType::kF64, isa);
    }
  }
}

}  // namespace
}  // namespace tenon::codegen
