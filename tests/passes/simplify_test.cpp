// Every rule of the table keeps every bit: graphs that it applies to are evaluated before and after
// on special values.
#include "tenon/passes/simplify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "tenon/interp/interpreter.h"
#include "tenon/ir/text.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"
#include "tenon/passes/canonicalize.h"

namespace tenon::passes {
namespace {

using ir::Value;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Operands in all pairs.
const std::vector<double> kFloats = {0.0,  -0.0,  1.0,  -1.0,   0.5,  3.0,    -7.25, 1e-40,
                                     kInf, -kInf, kNan, 65504., 1e30, -1e-30, 2.5};
const std::vector<double> kIntegers = {0, 1, 2, 3, 7, 31, 64, 100, 127};

std::vector<double> values_for(DType dtype) {
  if (is_float(dtype)) return kFloats;
  if (dtype == DType::kBool) return {0, 1};
  std::vector<double> values = kIntegers;
  if (is_signed(dtype)) {
    for (double v : kIntegers) values.push_back(-v);
  }
  return values;
}

// x (or y) holds each value along its own axis of a square, so that all pairs meet.
Literal along(DType dtype, bool rows) {
  const std::vector<double> values = values_for(dtype);
  const auto n = static_cast<int64_t>(values.size());
  Literal literal(dtype, {n, n});
  for (int64_t i = 0; i < n * n; ++i) {
    const double value = values[static_cast<size_t>(rows ? i / n : i % n)];
    if (is_float(dtype)) {
      literal.set_double(i, value);
    } else {
      literal.set_int(i, static_cast<int64_t>(value));
    }
  }
  return literal;
}

class Checker {
 public:
  explicit Checker(DType dtype) : dtype_(dtype) {
    const auto n = static_cast<int64_t>(values_for(dtype).size());
    x = ir::make_parameter({dtype, {n, n}}, "x");
    y = ir::make_parameter({dtype, {n, n}}, "y");
  }

  Value number(double value) const { return ops::scalar(dtype_, value); }

  // The rules that change `value`, after checking that its bits stay.
  std::set<std::string> rules_of(const Value& value) const {
    ir::Graph graph;
    graph.name = "f";
    graph.params = {x, y};
    graph.param_names = {"x", "y"};
    graph.writable = {false, false};
    graph.results = {value};
    auto before = canonicalize(std::make_shared<const ir::Graph>(graph));
    auto after = simplify(before);
    const std::vector<Literal> arguments = {along(dtype_, true), along(dtype_, false)};
    const Literal wanted = interp::run(*before, arguments)[0];
    const Literal got = interp::run(*after, arguments)[0];
    EXPECT_EQ(wanted.dims(), got.dims());
    for (int64_t i = 0; i < wanted.count(); ++i) {
      const double a = wanted.get_double(i);
      const double b = got.get_double(i);
      const bool same =
          std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
      if (same) continue;
      ADD_FAILURE() << name(dtype_) << " element " << i << ": " << a << " became " << b << "\n"
                    << ir::print(before) << ir::print(after);
      break;
    }
    return changed(*before);
  }

  Value x;
  Value y;

 private:
  static std::set<std::string> changed(const ir::Graph& graph) {
    std::set<std::string> rules;
    for (const ir::NodePtr& node : graph.nodes()) {
      for (const SimplifyRule& rule : simplify_rules()) {
        if (rule.op == node->op->name && rule.apply(*node)) rules.insert(std::string(rule.text));
      }
    }
    return rules;
  }
  DType dtype_;
};

std::vector<Value> float_and_integer_cases(const Checker& c) {
  using namespace ops;
  return {add(c.x, c.number(0)),
          sub(c.x, c.number(0)),
          mul(c.x, c.number(1)),
          mul(c.x, c.number(0)),
          add(c.x, neg(c.y)),
          add(neg(c.x), c.y),
          sub(c.x, neg(c.y)),
          sub(c.x, c.x),
          sub(c.number(0), c.x),
          mul(neg(c.x), neg(c.y)),
          neg(neg(c.x)),
          abs(abs(c.x)),
          abs(neg(c.x)),
          square(neg(c.x)),
          square(abs(c.x)),
          floor(floor(c.x)),
          ceil(ceil(c.x)),
          trunc(trunc(c.x)),
          round(round(c.x)),
          relu(relu(c.x)),
          maximum(c.x, c.x),
          minimum(c.x, c.x),
          where(less(c.x, c.y), c.x, c.x),
          where(logical_not(less(c.x, c.y)), c.x, c.y),
          where(ops::scalar(DType::kBool, 1), c.x, c.y),
          logical_not(equal(c.x, c.y))};
}

std::vector<Value> float_cases(const Checker& c) {
  using namespace ops;
  return {add(c.x, c.number(-0.0)), mul(c.x, c.number(-1)),    div(c.x, c.number(1)),
          div(c.x, c.number(8)),    div(c.x, c.number(-0.25)), pow(c.x, c.number(0)),
          pow(c.x, c.number(1)),    pow(c.x, c.number(-1))};
}

std::vector<Value> integer_cases(const Checker& c) {
  using namespace ops;
  return {bitwise_and(c.x, c.x),        bitwise_or(c.x, c.x),
          bitwise_or(c.x, c.number(0)), bitwise_xor(c.x, c.number(0)),
          left_shift(c.x, c.number(0)), right_shift(c.x, c.number(0)),
          bitwise_not(bitwise_not(c.x))};
}

std::vector<Value> bool_cases(const Checker& c) {
  using namespace ops;
  return {logical_and(c.x, c.x),         logical_or(c.x, c.x),
          logical_and(c.x, c.number(1)), logical_and(c.x, c.number(0)),
          logical_or(c.x, c.number(0)),  logical_or(c.x, c.number(1)),
          logical_not(logical_not(c.x)), bitwise_and(c.x, c.x)};
}

TEST(Simplify, EveryRuleKeepsEveryBit) {
  ops::register_all();
  std::set<std::string> seen;
  auto check = [&](const Checker& checker, const std::vector<Value>& cases) {
    for (const Value& value : cases) seen.merge(checker.rules_of(value));
  };
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const Checker checker(dtype);
    check(checker, float_and_integer_cases(checker));
    check(checker, float_cases(checker));
  }
  for (DType dtype : {DType::kI8, DType::kI32, DType::kI64, DType::kU8, DType::kU64}) {
    const Checker checker(dtype);
    check(checker, float_and_integer_cases(checker));
    check(checker, integer_cases(checker));
  }
  const Checker checker(DType::kBool);
  check(checker, bool_cases(checker));
  for (const SimplifyRule& rule : simplify_rules()) {
    EXPECT_EQ(seen.count(std::string(rule.text)), 1u) << "no case shows: " << rule.text;
  }
}

TEST(Simplify, TheSquareOfAPowerIsRounded) {
  ops::register_all();
  const Checker checker(DType::kF32);
  checker.rules_of(ops::pow(checker.x, checker.number(2)));
}

}  // namespace
}  // namespace tenon::passes
