// What the code of hot kernels must look like.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "kernel_harness.h"

namespace tenon::codegen {
namespace {

using kir::Builder;
using kir::CarriedSpec;
using kir::Kernel;
using kir::Op;
using kir::Type;
using kir::Val;
using test::Call;

// c[r, j] = sum over k of a[k, r] * b[k, j] for a packed panel of `rows` and `columns`, one grid
// index a panel of rows: the register tile of a matrix product.
Kernel tile_kernel(int rows, int columns) {
  Kernel kernel;
  kernel.name = "tile";
  Builder b(kernel);
  uint32_t a = b.add_buffer("a", DType::kF32, false);
  uint32_t m = b.add_buffer("b", DType::kF32, false);
  uint32_t c = b.add_buffer("c", DType::kF32, true);
  Val depth = b.dim(Dim("k"));
  b.loop(b.begin(), b.end(), {.parallel = true}, [&](Val panel) {
    Val a0 = b.mul(panel, b.mul(depth, b.i64(rows)));
    Val c0 = b.mul(panel, b.i64(rows * columns));
    b.loop(b.i64(0), b.i64(columns), {.vector = true, .interleave = 2, .multiple = columns},
           [&](Val j) {
             std::vector<CarriedSpec> carried(static_cast<size_t>(rows),
                                              {b.constant_float(Type::kF32, 0)});
             auto sums = b.loop(b.i64(0), depth, {}, carried, [&](Val k, std::span<const Val> sum) {
               Val row = b.load(m, b.add(b.mul(k, b.i64(columns)), j));
               std::vector<Val> next;
               for (int r = 0; r < rows; ++r) {
                 Val at = b.add(a0, b.add(b.mul(k, b.i64(rows)), b.i64(r)));
                 next.push_back(
                     b.ternary(Op::kMulAdd, b.load(a, at), row, sum[static_cast<size_t>(r)]));
               }
               return next;
             });
             for (int r = 0; r < rows; ++r) {
               b.store(c, b.add(c0, b.add(b.i64(r * columns), j)), sums[static_cast<size_t>(r)]);
             }
           });
  });
  return kernel;
}

std::string assembly(const Kernel& kernel, Isa isa) {
  std::string text;
  const Kernel* one = &kernel;
  compile({&one, 1}, {.isa = isa, .dump_asm = &text});
  return text;
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// The lines of the innermost loop that holds `word`: from the label that a later jump goes back to.
std::string loop_with(const std::string& text, const std::string& word) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  size_t hit = 0;
  while (hit < lines.size() && lines[hit].find(word) == std::string::npos) ++hit;
  size_t begin = hit;
  while (begin > 0 && lines[begin].rfind(".LBB", 0) != 0) --begin;
  std::string label = lines[begin].substr(0, lines[begin].find(':'));
  std::string body;
  for (size_t k = begin + 1; k < lines.size(); ++k) {
    body += lines[k] + "\n";
    if (lines[k].find(label) != std::string::npos) return body;
  }
  return "";
}

struct Tile {
  Isa isa;
  int rows;
  int columns;
  const char* word;
  const char* stack;
};

TEST(Assembly, MatrixTileStaysInRegisters) {
  for (const Tile& tile :
       {Tile{Isa::kAvx512, 14, 32, "vfmadd", "(%rsp"}, Tile{Isa::kAvx2, 6, 16, "vfmadd", "(%rsp"},
        Tile{Isa::kNeon, 8, 8, "fmla", "[sp"}}) {
    Kernel kernel = tile_kernel(tile.rows, tile.columns);
    std::string loop = loop_with(assembly(kernel, tile.isa), tile.word);
    ASSERT_FALSE(loop.empty()) << name(tile.isa);
    EXPECT_EQ(count(loop, tile.word), 2 * tile.rows) << loop;
    EXPECT_EQ(count(loop, tile.stack), 0) << loop;
    // Two rows of b, one broadcast for each row of a, at most: no copies between registers.
    EXPECT_LE(std::ranges::count(loop, '\n'), 2 + 3 * tile.rows + 6) << loop;
  }
}

TEST(Assembly, MatrixTileIsRight) {
  for (auto [rows, columns] : {std::pair{14, 32}, std::pair{6, 16}}) {
    Kernel kernel = tile_kernel(rows, columns);
    std::vector<Call> calls;
    for (int64_t depth : {0, 1, 7, 64}) {
      Call call;
      call.end = 2;
      call.dims = {depth};
      std::vector<float> a(static_cast<size_t>(2 * depth * rows));
      std::vector<float> m(static_cast<size_t>(depth * columns));
      for (size_t k = 0; k < a.size(); ++k) a[k] = static_cast<float>(k % 7) - 3;
      for (size_t k = 0; k < m.size(); ++k) m[k] = static_cast<float>(k % 5) - 2;
      call.buffers = {test::bytes_of(a), test::bytes_of(m),
                      std::vector<std::byte>(static_cast<size_t>(2 * rows * columns * 4))};
      calls.push_back(call);
    }
    test::expect_like_reference(kernel, calls);
  }
}

// y[i] = f(x[i]) of one element type.
Kernel map_kernel(DType dtype, const std::function<Val(Builder&, Val)>& body) {
  Kernel kernel;
  kernel.name = "map";
  Builder b(kernel);
  uint32_t x = b.add_buffer("x", dtype, false);
  uint32_t y = b.add_buffer("y", dtype, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true},
         [&](Val i) { b.store(y, i, body(b, b.load(x, i))); });
  return kernel;
}

TEST(Assembly, LightLoopsUseWholeVectors) {
  Kernel twice = map_kernel(DType::kF32, [](Builder& b, Val x) { return b.add(x, x); });
  EXPECT_EQ(count(loop_with(assembly(twice, Isa::kAvx512), "vaddps"), "zmm"), 4 * 5);
  EXPECT_EQ(count(loop_with(assembly(twice, Isa::kAvx2), "vaddps"), "%ymm"), 4 * 5);
  EXPECT_EQ(count(assembly(twice, Isa::kAvx512), "{%k1} {z}"), 1);  // one masked copy of the body
}

TEST(Assembly, MuchWorkIsCalledAhead) {
  Kernel erf = map_kernel(DType::kF32, [](Builder& b, Val x) { return b.unary(Op::kErf, x); });
  Kernel twice = map_kernel(DType::kF32, [](Builder& b, Val x) { return b.add(x, x); });
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    EXPECT_GT(count(assembly(erf, isa), "prefetcht0"), 0) << name(isa);
    EXPECT_EQ(count(assembly(twice, isa), "prefetch"), 0) << name(isa);
  }
}

// The sine of huge arguments needs 64-bit integers; nothing else becomes narrower for it.
TEST(Assembly, RarePathsDoNotNarrowVectors) {
  Kernel sine = map_kernel(DType::kF32, [](Builder& b, Val x) { return b.unary(Op::kSin, x); });
  std::string text = assembly(sine, Isa::kAvx512);
  EXPECT_GT(count(text, "vmulps\t%zmm"), 0);
  EXPECT_EQ(count(text, "vmulps\t%ymm"), 0);
}

TEST(Assembly, HalfFormatsUseTheirInstructions) {
  Kernel half = map_kernel(DType::kF16, [](Builder& b, Val x) {
    Val wide = b.convert(Op::kFExt, Type::kF32, x);
    return b.convert(Op::kFTrunc, Type::kF16, b.add(wide, wide));
  });
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    EXPECT_GT(count(assembly(half, isa), "vcvtph2ps"), 0);
    EXPECT_GT(count(assembly(half, isa), "vcvtps2ph"), 0);
  }
}

TEST(Assembly, NothingIsContractedUnasked) {
  Kernel kernel = map_kernel(DType::kF32, [](Builder& b, Val x) { return b.add(b.mul(x, x), x); });
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) EXPECT_EQ(count(assembly(kernel, isa), "fmadd"), 0);
  EXPECT_EQ(count(assembly(kernel, Isa::kNeon), "fmla"), 0);
}

TEST(Assembly, CopyLoopsStayLoops) {
  Kernel copy = map_kernel(DType::kI8, [](Builder&, Val x) { return x; });
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
    EXPECT_EQ(count(assembly(copy, isa), "memcpy"), 0);
  }
}

TEST(Assembly, DumpsOfTheIntermediateCode) {
  Kernel twice = map_kernel(DType::kF32, [](Builder& b, Val x) { return b.add(x, x); });
  const Kernel* one = &twice;
  std::string text;
  compile({&one, 1}, {.isa = Isa::kAvx512, .dump_ir = &text});
  EXPECT_NE(text.find("define hidden void @k0_map(ptr"), std::string::npos) << text;
  EXPECT_NE(text.find("fadd <16 x float>"), std::string::npos) << text;
}

}  // namespace
}  // namespace tenon::codegen
