// The table of docs/math.md: the largest error of every mathematical function through generated
// code. One-argument f32 functions are run over every TENON_MATH_STRIDE-th bit pattern: 1 is all of
// them. TENON_UPDATE_GOLDEN=1 writes the table, with TENON_MATH_FUNCTION=erf the row of that
// function alone (run it with TENON_MATH_STRIDE=1 when the function has changed); else what is
// measured must not be above what stands there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "math_kernel.h"
#include "vector_reference.h"

namespace tenon::codegen {
namespace {

using kir::test::MathCase;
using kir::test::WorstError;
using test::MathCode;

bool updating() {
  const char* update = std::getenv("TENON_UPDATE_GOLDEN");
  return update != nullptr && std::string_view(update) == "1";
}

uint64_t stride() {
  if (const char* text = std::getenv("TENON_MATH_STRIDE")) return std::strtoull(text, nullptr, 10);
  return updating() ? 1021 : 65537;
}

// Whether TENON_MATH_FUNCTION leaves `function` out.
bool left_out(const std::string& function) {
  const char* chosen = std::getenv("TENON_MATH_FUNCTION");
  return chosen != nullptr && function != chosen;
}

std::string doc_path() {
  const char* root = std::getenv("TENON_SOURCE_DIR");
  return std::string(root != nullptr ? root : ".") + "/docs/math.md";
}

// Two columns of the table each: the first kind of code with fused multiply-add that this CPU runs
// (all of them compute the same bits, see math_test.cpp), and the kind without it.
struct Kind {
  bool fused;
  Isa isa;
};

std::vector<Kind> kinds() {
  std::vector<Kind> kinds;
  for (Isa isa : test::runnable_isas()) {
    bool fused = isa != Isa::kBaseline;
    bool seen = std::any_of(kinds.begin(), kinds.end(), [&](Kind k) { return k.fused == fused; });
    if (isa != Isa::kNeon && !seen) kinds.push_back({fused, isa});
  }
  return kinds;
}

template <class F>
WorstError<F> sampled(const MathCase& one, const MathCode& code, size_t count) {
  auto samples = kir::test::math_samples<F>(one, count, 20);
  std::vector<F> out(samples.a.size());
  code.run(samples.a, samples.b, out);
  WorstError<F> worst;
  for (size_t k = 0; k < out.size(); ++k) worst.see(one.op, samples.a[k], samples.b[k], out[k]);
  return worst;
}

// Bit patterns 0, stride, 2*stride … on all cores: the largest error of each of `codes`.
std::vector<WorstError<float>> swept(const MathCase& one, const std::deque<MathCode>& codes) {
  constexpr uint64_t kChunk = 1 << 14;
  const uint64_t step = stride();
  const uint64_t count = ((uint64_t{1} << 32) + step - 1) / step;
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  std::vector<WorstError<float>> worst(codes.size());
  auto work = [&] {
    std::vector<WorstError<float>> mine(codes.size());
    std::vector<float> in(kChunk), out(kChunk);
    std::vector<double> wanted(kChunk);
    for (uint64_t at = next.fetch_add(kChunk); at < count; at = next.fetch_add(kChunk)) {
      in.resize(std::min(kChunk, count - at));
      for (uint64_t k = 0; k < in.size(); ++k)
        in[k] = std::bit_cast<float>(static_cast<uint32_t>((at + k) * step));
      test::vector_reference(one.op, in, wanted);
      for (size_t c = 0; c < codes.size(); ++c) {
        codes[c].run(in, in, out);
        kir::test::see_all(mine[c], one.op, in, out, wanted);
      }
    }
    std::lock_guard lock(mutex);
    for (size_t c = 0; c < codes.size(); ++c)
      if (mine[c].ulp > worst[c].ulp) worst[c] = mine[c];
  };
  std::vector<std::thread> threads;
  for (unsigned k = 1; k < std::thread::hardware_concurrency(); ++k) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return worst;
}

// Errors in the order of the table's columns, and how many arguments of f32 were run.
constexpr std::array<const char*, 4> kColumns = {"f32", "f64", "f32 without", "f64 without"};
struct Row {
  std::array<double, kColumns.size()> ulp{};
  std::string coverage;
};

// Rows of the table in docs/math.md by function.
std::map<std::string, Row> documented() {
  std::map<std::string, Row> rows;
  std::ifstream file(doc_path());
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::istringstream cells(line);
    std::string bar, name, coverage;
    Row row;
    cells >> bar >> name >> bar;
    for (double& ulp : row.ulp) cells >> ulp >> bar;
    std::getline(cells >> std::ws, coverage, '|');
    row.coverage = coverage.substr(0, coverage.find_last_not_of(' ') + 1);
    rows[name.substr(1, name.size() - 2)] = row;
  }
  return rows;
}

constexpr std::string_view kHeader = R"(# Mathematical functions

Every function is written once, as arithmetic on kernel IR (`tenon/kir/math/`), for f32 and f64, and serves every target.
f16 and bf16 go through f32. Results are right for subnormals, infinities, NaN, signed zeros and arguments of any size; the
caller's rounding mode and flags are left alone. Coefficients come from the scripts in `tools/math`.

The promise is 2.5 ulp on every target, and an exact `fmod`. The table is written by the test `math_table` (`./dev golden`): the
largest error seen, in units in the last place, with fused multiply-add (AVX-512, AVX2, NEON) and without (plain x86-64).
One-argument f32 functions are swept over the bit patterns of all floats, the others sampled over all exponents and around
special values. The test `math_exhaustive` (label `exhaustive`, about a quarter of an hour of two cores) runs all 2^32 arguments of
each one-argument f32 function, and of roots, reciprocals and roundings, which are exact; when a function has changed, its row is
made again by `TENON_UPDATE_GOLDEN=1 TENON_MATH_STRIDE=1 TENON_MATH_FUNCTION=erf math_table_test`. Errors are measured against
double precision: the C library's vector functions where it has them find candidates, its scalar ones decide.

Processors take a hundred cycles for a product or quotient of subnormal numbers. Functions avoid them: subnormal arguments and
results take at most twice the usual time (`fmod` 1.6 times with AVX-512, 1.7 without AVX, 2.0 with AVX2; `hypot` 1.2, 1.8
and 1.9), which the test `math_speed` (label `exhaustive`) measures. `silu` is `x * sigmoid(x)` in two steps, with the error of both.

| function | f32 | f64 | f32 without | f64 without | f32 arguments |
|---|---|---|---|---|---|
)";

template <class F>
WorstError<F> worse(const WorstError<F>& a, const WorstError<F>& b) {
  return a.ulp < b.ulp ? b : a;
}

Row measure(const MathCase& one, const std::vector<Kind>& kinds, const Row& known) {
  bool two = kir::test::has_two_arguments(one.op);
  size_t count = updating() ? 100000 : 4000;
  Row row = known;  // of the columns that this CPU cannot run
  row.coverage = two ? "sampled" : stride() == 1 ? "all" : fmt::format("1 in {}", stride());
  std::deque<MathCode> narrow;
  for (Kind kind : kinds) narrow.emplace_back(one.op, DType::kF32, kind.isa);
  std::vector<WorstError<float>> all(kinds.size());
  if (!two) all = swept(one, narrow);
  for (size_t k = 0; k < kinds.size(); ++k) {
    MathCode wide(one.op, DType::kF64, kinds[k].isa);
    auto f32 = worse(all[k], sampled<float>(one, narrow[k], count));
    auto f64 = sampled<double>(one, wide, count);
    std::string what = fmt::format("{} on {}", name(one.op), name(kinds[k].isa));
    EXPECT_LE(f32.ulp, one.limit) << what << ", f32 of " << f32.a << ", " << f32.b;
    EXPECT_LE(f64.ulp, one.limit) << what << ", f64 of " << f64.a << ", " << f64.b;
    size_t column = kinds[k].fused ? 0 : 2;
    row.ulp[column] = f32.ulp;
    row.ulp[column + 1] = f64.ulp;
  }
  return row;
}

TEST(MathTable, ErrorsAreThoseOfTheDocumentation) {
  auto known = documented();
  std::string text(kHeader);
  for (const MathCase& one : kir::test::math_cases()) {
    std::string function(name(one.op));
    Row row = known[function];
    if (!left_out(function)) {
      row = measure(one, kinds(), known[function]);
      std::printf("%-8s %.3f %.3f, without fma %.3f %.3f\n", function.c_str(), row.ulp[0],
                  row.ulp[1], row.ulp[2], row.ulp[3]);
      std::fflush(stdout);
    }
    text +=
        fmt::format("| `{}` | {:.2f} | {} |\n", function, fmt::join(row.ulp, " | "), row.coverage);
    if (updating()) continue;
    ASSERT_NE(known[function].coverage, "") << function << " is missing in docs/math.md";
    for (size_t k = 0; k < kColumns.size(); ++k) {
      double slack = k % 2 == 0 ? 0.1 : 0.3;
      EXPECT_LE(row.ulp[k], known[function].ulp[k] + slack) << function << " " << kColumns[k];
    }
  }
  if (updating()) std::ofstream(doc_path()) << text;
}

// Functions that IEEE defines to the bit, or that are one or two such operations.
struct ExactCase {
  const char* name;
  test::MathBody body;
  float (*reference)(float);
};

std::vector<ExactCase> exact_cases() {
  using kir::Builder;
  using kir::Op;
  using kir::Val;
  auto unary = [](Op op) { return [op](Builder& b, Val x, Val) { return b.unary(op, x); }; };
  auto one_over = [](Builder& b, Val x) {
    return b.binary(Op::kDiv, b.constant_float(kir::Type::kF32, 1), x);
  };
  return {
      {"abs", unary(Op::kAbs), [](float x) { return std::fabs(x); }},
      {"neg", unary(Op::kNeg), [](float x) { return -x; }},
      {"sqrt", unary(Op::kSqrt), [](float x) { return std::sqrt(x); }},
      {"floor", unary(Op::kFloor), [](float x) { return std::floor(x); }},
      {"ceil", unary(Op::kCeil), [](float x) { return std::ceil(x); }},
      {"trunc", unary(Op::kTrunc), [](float x) { return std::trunc(x); }},
      {"round", unary(Op::kRint), [](float x) { return std::nearbyint(x); }},
      {"square", [](Builder& b, Val x, Val) { return b.mul(x, x); }, [](float x) { return x * x; }},
      {"reciprocal", [=](Builder& b, Val x, Val) { return one_over(b, x); },
       [](float x) { return 1 / x; }},
      {"rsqrt", [=](Builder& b, Val x, Val) { return one_over(b, b.unary(Op::kSqrt, x)); },
       [](float x) { return 1 / std::sqrt(x); }},
  };
}

TEST(MathTable, ExactFunctionsAreExact) {
  constexpr uint64_t kChunk = 1 << 14;
  const uint64_t step = stride(), count = ((uint64_t{1} << 32) + step - 1) / step;
  std::vector<float> in(kChunk), out(kChunk), wanted(kChunk);
  for (const ExactCase& one : exact_cases()) {
    if (left_out(one.name)) continue;
    std::deque<MathCode> codes;
    for (Isa isa : test::runnable_isas()) {
      if (isa == Isa::kNeon) continue;
      codes.emplace_back(test::math_kernel(one.name, DType::kF32, one.body), isa);
    }
    uint64_t wrong = 0;
    for (uint64_t at = 0; at < count && wrong == 0; at += kChunk) {
      for (uint64_t k = 0; k < kChunk; ++k) {
        in[k] = std::bit_cast<float>(static_cast<uint32_t>((at + k) * step));
        wanted[k] = one.reference(in[k]);
      }
      for (const MathCode& code : codes) {
        code.run(in, in, out);
        for (uint64_t k = 0; k < kChunk; ++k) {
          bool same = std::bit_cast<uint32_t>(out[k]) == std::bit_cast<uint32_t>(wanted[k]);
          wrong += same || (out[k] != out[k] && wanted[k] != wanted[k]) ? 0 : 1;
        }
      }
    }
    EXPECT_EQ(wrong, 0u) << one.name;
  }
}

// Numbers around and below the least normal one, with one large one among many.
template <class F>
void check_small_remainders(DType dtype) {
  constexpr size_t kCount = 1 << 16;
  constexpr int kLeast = std::numeric_limits<F>::min_exponent - std::numeric_limits<F>::digits;
  std::mt19937_64 random(3);
  auto value = [&] {
    const int up =
        random() % 50 == 0 ? static_cast<int>(random() % 1000) : static_cast<int>(random() % 80);
    const auto size = std::ldexp(static_cast<F>(random() % 5000), kLeast + up);
    return random() % 2 == 0 ? size : -size;
  };
  std::vector<F> a(kCount), b(kCount), out(kCount);
  for (size_t k = 0; k < kCount; ++k) {
    a[k] = value();
    b[k] = value();
  }
  for (Isa isa : test::runnable_isas()) {
    if (isa == Isa::kNeon) continue;
    test::MathCode(kir::Op::kFmod, dtype, isa).run(a, b, out);
    size_t wrong = 0;
    for (size_t k = 0; k < kCount; ++k) {
      const F want = std::fmod(a[k], b[k]);
      const bool same = std::isnan(want)
                            ? std::isnan(out[k])
                            : out[k] == want && std::signbit(out[k]) == std::signbit(want);
      wrong += same ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0u) << tenon::name(dtype) << " on " << name(isa);
  }
}

TEST(MathTable, RemaindersOfSmallNumbersAreExact) {
  check_small_remainders<float>(DType::kF32);
  check_small_remainders<double>(DType::kF64);
}

}  // namespace
}  // namespace tenon::codegen
