#include "tenon/runtime/dim_program.h"

#include <gtest/gtest.h>

#include <random>

#include "tenon/base/error.h"

namespace tenon::runtime {
namespace {

// The flat form and Dim::eval agree on every form that the algebra can make.
TEST(DimProgram, AgreesWithTheAlgebra) {
  unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  auto number = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (int round = 0; round < 400; ++round) {
    std::vector<Dim> pool = {Dim("n"), Dim("m"), Dim("batch"), Dim(number(-3, 9))};
    for (int i = 0; i < 8; ++i) {
      const Dim a = pool[random() % pool.size()];
      const Dim b = pool[random() % pool.size()];
      switch (random() % 7) {
        case 0: pool.push_back(a + b); break;
        case 1: pool.push_back(a - b); break;
        case 2: pool.push_back(a * Dim(number(-4, 4))); break;
        case 3: pool.push_back(floor_div(a, Dim(number(1, 7)))); break;
        case 4: pool.push_back(mod(a, Dim(number(1, 7)))); break;
        case 5: pool.push_back(dim_max(a, b)); break;
        default: pool.push_back(dim_min(a, b)); break;
      }
    }
    SymbolTable symbols;
    std::vector<int64_t> values = {2, 32768, 1 << 20, 8 << 20};
    for (const char* name : {"n", "m", "batch"}) {
      symbols.index(name);
      values.push_back(number(0, 20));
    }
    auto lookup = [&](std::string_view name) -> std::optional<int64_t> {
      return values[*symbols.find(name)];
    };
    for (const Dim& dim : pool) {
      EXPECT_EQ(DimProgram(dim, symbols).eval(values), dim.eval(lookup)) << dim.str();
    }
  }
}

TEST(DimProgram, RefusesWhatHasNoValue) {
  SymbolTable symbols;
  Dim n("n");
  DimProgram square(n * n, symbols);
  std::vector<int64_t> values = {1, 1, 1, 1, int64_t{1} << 40};
  EXPECT_THROW(square.eval(values), ValueError);
  values.pop_back();
  EXPECT_THROW(square.eval(values), ValueError);
  EXPECT_EQ(DimProgram(Dim(7), symbols).eval({}), 7);
}

}  // namespace
}  // namespace tenon::runtime
