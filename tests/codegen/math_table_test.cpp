// The table of docs/math.md: the largest error of every mathematical function through generated
// code. One-argument f32 functions are run over every TENON_MATH_STRIDE-th bit pattern: 1 is all of
// them. TENON_UPDATE_GOLDEN=1 writes the table, with TENON_MATH_FUNCTION=erf the row of that
// function alone (run it with TENON_MATH_STRIDE=1 when the function has changed); else what is
// measured must not be above what stands there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "math_kernel.h"

namespace tenon::codegen {
namespace {

using kir::test::MathCase;
using kir::test::WorstError;

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

std::vector<Isa> fused_isas() {
  std::vector<Isa> isas;
  for (Isa isa : test::runnable_isas())
    if (isa == Isa::kAvx512 || isa == Isa::kAvx2) isas.push_back(isa);
  return isas;
}

class Compiled {
 public:
  Compiled(const MathCase& one, DType dtype, Isa isa)
      : kernel_(test::math_kernel(one.op, dtype)), image_(compiled(isa), isa) {}

  template <class F>
  void run(const std::vector<F>& a, const std::vector<F>& b, std::vector<F>& out) const {
    void* buffers[] = {const_cast<F*>(a.data()), const_cast<F*>(b.data()), out.data()};
    int64_t status = 0;
    abi::KernelArgs args{buffers, nullptr, nullptr, &status, &test::runtime_table()};
    image_.entry(0)(&args, 0, static_cast<int64_t>(a.size()));
  }

 private:
  Image compiled(Isa isa) {
    const kir::Kernel* kernels[] = {&kernel_};
    return compile(kernels, {.isa = isa});
  }
  kir::Kernel kernel_;
  test::LoadedImage image_;
};

template <class F>
WorstError<F> sampled(const MathCase& one, const Compiled& code, size_t count) {
  auto samples = kir::test::math_samples<F>(one, count, 20);
  std::vector<F> out(samples.a.size());
  code.run(samples.a, samples.b, out);
  WorstError<F> worst;
  for (size_t k = 0; k < out.size(); ++k) worst.see(one.op, samples.a[k], samples.b[k], out[k]);
  return worst;
}

// Bit patterns 0, stride, 2*stride … on all cores.
WorstError<float> swept(const MathCase& one, const Compiled& code) {
  constexpr uint64_t kChunk = 1 << 16;
  uint64_t count = ((uint64_t{1} << 32) + stride() - 1) / stride();
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  WorstError<float> worst;
  auto work = [&] {
    WorstError<float> mine;
    std::vector<float> in(kChunk), out(kChunk);
    for (uint64_t at = next.fetch_add(kChunk); at < count; at = next.fetch_add(kChunk)) {
      in.resize(std::min(kChunk, count - at));
      for (uint64_t k = 0; k < in.size(); ++k)
        in[k] = std::bit_cast<float>(static_cast<uint32_t>((at + k) * stride()));
      code.run(in, in, out);
      for (size_t k = 0; k < in.size(); ++k) mine.see(one.op, in[k], 0, out[k]);
    }
    std::lock_guard lock(mutex);
    if (mine.ulp > worst.ulp) worst = mine;
  };
  std::vector<std::thread> threads;
  for (unsigned k = 1; k < std::thread::hardware_concurrency(); ++k) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return worst;
}

struct Row {
  double f32 = 0;
  double f64 = 0;
  std::string coverage;
};

// Rows of the table in docs/math.md by function.
std::map<std::string, Row> documented() {
  std::map<std::string, Row> rows;
  std::ifstream file(doc_path());
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::istringstream cells(line);
    std::string bar, name, f32, f64, coverage;
    cells >> bar >> name >> bar >> f32 >> bar >> f64 >> bar;
    std::getline(cells >> std::ws, coverage, '|');
    coverage.erase(coverage.find_last_not_of(' ') + 1);
    rows[name.substr(1, name.size() - 2)] = {std::stod(f32), std::stod(f64), coverage};
  }
  return rows;
}

constexpr std::string_view kHeader = R"(# Mathematical functions

Every function is written once, as arithmetic on kernel IR (`tenon/kir/math/`), for f32 and f64, and serves every target.
f16 and bf16 go through f32. Results are right for subnormals, infinities, NaN, signed zeros and arguments of any size; the
caller's rounding mode and flags are left alone. Coefficients come from the scripts in `tools/math`.

The table is written by the test `math_table` (`./dev golden`): the largest error seen, in units in the last place, with fused
multiply-add (AVX-512, AVX2). One-argument f32 functions are swept over the bit patterns of all floats, the others sampled
over all exponents and around special values. The promise is 2.5 ulp, 4 for `erfc`, `gelu`, `pow` and `sigmoid`, and an exact
`fmod`; on x86-64 without fused multiply-add `erfc` in f64 reaches 3.5. The test `math_exhaustive` (label `exhaustive`) runs all
2^32 arguments of each one-argument f32 function.

`fmod`, and `pow` in f64, call the C library, a lane at a time.

| function | f32 | f64 | f32 arguments |
|---|---|---|---|
)";

TEST(MathTable, ErrorsAreThoseOfTheDocumentation) {
  auto isas = fused_isas();
  if (isas.empty()) GTEST_SKIP() << "needs a CPU with fused multiply-add";
  auto known = documented();
  std::string text(kHeader);
  for (const MathCase& one : kir::test::math_cases()) {
    std::string function(name(one.op));
    bool two = kir::test::has_two_arguments(one.op);
    size_t count = updating() ? 100000 : 4000;
    Row row{0, 0, two ? "sampled" : stride() == 1 ? "all" : fmt::format("1 in {}", stride())};
    if (left_out(function)) row = known[function];
    for (Isa isa : isas) {
      if (left_out(function)) break;
      Compiled narrow(one, DType::kF32, isa), wide(one, DType::kF64, isa);
      WorstError<float> f32 = two ? sampled<float>(one, narrow, count) : swept(one, narrow);
      if (!two)
        f32 = std::max(f32, sampled<float>(one, narrow, count),
                       [](const auto& a, const auto& b) { return a.ulp < b.ulp; });
      WorstError<double> f64 = sampled<double>(one, wide, count);
      EXPECT_LE(f32.ulp, one.limit) << function << " f32 of " << f32.a << ", " << f32.b;
      EXPECT_LE(f64.ulp, one.limit) << function << " f64 of " << f64.a << ", " << f64.b;
      row.f32 = std::max(row.f32, f32.ulp);
      row.f64 = std::max(row.f64, f64.ulp);
      if (stride() == 1) break;
    }
    if (!left_out(function))
      std::printf("%-10s f32 %.3f  f64 %.3f\n", function.c_str(), row.f32, row.f64);
    text +=
        fmt::format("| `{}` | {:.2f} | {:.2f} | {} |\n", function, row.f32, row.f64, row.coverage);
    if (updating()) continue;
    ASSERT_EQ(known.count(function), 1u) << function << " is missing in docs/math.md";
    EXPECT_LE(row.f32, known[function].f32 + 0.1) << function;
    EXPECT_LE(row.f64, known[function].f64 + 0.3) << function;
  }
  if (updating()) std::ofstream(doc_path()) << text;
}

}  // namespace
}  // namespace tenon::codegen
