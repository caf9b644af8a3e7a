// Scans along rows and transposed reads: lines and tiles that are whole, cut or missing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "module_runner.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"

namespace tenon::passes_test {
namespace {

constexpr DType kDTypes[] = {DType::kBool, DType::kI8,   DType::kU32, DType::kI64,
                             DType::kF16,  DType::kBF16, DType::kF32, DType::kF64};

Literal random_literal(DType dtype, const std::vector<int64_t>& dims, std::mt19937& random) {
  Literal literal(dtype, dims);
  std::uniform_int_distribution<int64_t> whole(0, 50);
  for (int64_t i = 0; i < literal.count(); ++i) {
    if (is_float(dtype)) {
      literal.set_double(i, static_cast<double>(whole(random) - 25) / 8);
    } else {
      literal.set_int(i, dtype == DType::kBool ? whole(random) % 2 : whole(random));
    }
  }
  return literal;
}

ir::Value parameter(DType dtype, const Shape& shape) {
  return ir::make_parameter({dtype, shape}, "x");
}

// Compares the lowered graph of `result`, a function of `x` alone, with its evaluation bit for bit.
void check(const ir::Value& x, const ir::Value& result, const Literal& argument) {
  const ir::GraphPtr graph = graph_of(x, result);
  const Literal in[] = {argument};
  passes::Options options;
  options.verify = true;
  const Literal wanted = interp::run(*graph, in)[0];
  const Literal got = run_module(passes::lower(graph, options), *graph, in)[0];
  ASSERT_EQ(got.dims(), wanted.dims());
  for (int64_t i = 0; i < got.count(); ++i) {
    if (is_float(got.dtype())) {
      ASSERT_EQ(got.get_double(i), wanted.get_double(i)) << "element " << i;
    } else {
      ASSERT_EQ(got.get_int(i), wanted.get_int(i)) << "element " << i;
    }
  }
}

TEST(LowerRows, ScansOfEveryLength) {
  ops::register_all();
  constexpr uint32_t kSeed = 4;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937 random(kSeed);
  for (const DType dtype : kDTypes) {
    for (const auto& [rows, length] : std::vector<std::pair<int64_t, int64_t>>{
             {4, 1}, {16, 64}, {17, 63}, {5, 65}, {33, 130}, {20, 0}, {0, 7}, {3, 70}}) {
      for (int flags = 0; flags < 4; ++flags) {
        SCOPED_TRACE(fmt::format("{} ({}, {}) {}", name(dtype), rows, length, flags));
        const bool named = flags == 1;
        const Shape shape = named ? Shape{"n", length} : Shape{rows, length};
        const ir::Value x = parameter(dtype, shape);
        const Literal in = random_literal(dtype, {rows, length}, random);
        for (const auto scan : {ops::cumsum, ops::cumprod, ops::cummax, ops::cummin}) {
          check(x, scan(x, 1, (flags & 1) != 0, (flags & 2) != 0, nullptr), in);
        }
      }
    }
  }
}

TEST(LowerRows, TransposedReadsOfEverySize) {
  ops::register_all();
  constexpr uint32_t kSeed = 5;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937 random(kSeed);
  for (const DType dtype : kDTypes) {
    for (const auto& [rows, columns] :
         std::vector<std::pair<int64_t, int64_t>>{{64, 64}, {33, 100}, {129, 32}, {0, 40}}) {
      SCOPED_TRACE(fmt::format("{} ({}, {})", name(dtype), rows, columns));
      const ir::Value x = parameter(dtype, {2, rows, columns});
      check(x, ops::transpose(x, {{0, 2, 1}}), random_literal(dtype, {2, rows, columns}, random));
      const ir::Value named = parameter(dtype, {2, "m", "n"});
      check(named, ops::transpose(named, {{2, 0, 1}}),
            random_literal(dtype, {2, rows, columns}, random));
    }
  }
}

}  // namespace
}  // namespace tenon::passes_test
