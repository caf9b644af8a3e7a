#include "tenon/passes/simplify.h"

#include <cmath>
#include <unordered_map>

#include "tenon/ir/op_def.h"
#include "tenon/ir/rewrite.h"
#include "tenon/ops/ops.h"

namespace tenon::passes {
namespace {

using ir::Node;
using ir::Value;
using Result = std::optional<Value>;
namespace op = ops::op;

bool is(const Value& value, const ir::OpDef& def) { return value.node->op == &def; }
const Value& arg(const Node& node, size_t i) { return node.operands[i]; }
const Value& arg(const Value& value, size_t i) { return value.node->operands[i]; }

// The constant that every element of `value` is.
std::optional<Literal> splat(const Value& value) {
  const Value* at = &value;
  while (is(*at, op::broadcast_to) || is(*at, op::reshape)) at = &at->node->operands[0];
  if (!is(*at, ir::kConstant)) return std::nullopt;
  const Literal& literal = at->node->attrs.get<Literal>("value");
  if (literal.count() != 1) return std::nullopt;
  return literal;
}

bool is_number(const Value& value, double number) {
  const std::optional<Literal> literal = splat(value);
  if (!literal || is_complex(literal->dtype())) return false;
  const double got = literal->get_double(0);
  return got == number && std::signbit(got) == std::signbit(number);
}

bool integer(const Node& node) { return is_integer(node.types[0].dtype); }
bool floating(const Node& node) { return is_float(node.types[0].dtype); }
bool boolean(const Node& node) { return node.types[0].dtype == DType::kBool; }

// `value` in the type of the node: what a dropped operand may have broadcast it to.
Result as(const Node& node, const Value& value) {
  if (value.dtype() != node.types[0].dtype) return std::nullopt;
  return ops::broadcast_to(value, node.types[0].shape, node.location);
}

Result number(const Node& node, double value) {
  return as(node, ops::scalar(node.types[0].dtype, value, node.location));
}

// Neutral operands. A constant stands right (canonicalize), other operands are tried as they are.
template <int kValue>
Result drop_right(const Node& node) {
  return is_number(arg(node, 1), kValue) ? as(node, arg(node, 0)) : std::nullopt;
}

Result drop_integer_zero(const Node& node) {
  return integer(node) ? drop_right<0>(node) : std::nullopt;
}

Result add_negative_zero(const Node& node) {
  return floating(node) && is_number(arg(node, 1), -0.0) ? as(node, arg(node, 0)) : std::nullopt;
}

Result add_negation(const Node& node) {
  if (is(arg(node, 1), op::neg)) return ops::sub(arg(node, 0), arg(arg(node, 1), 0), node.location);
  if (is(arg(node, 0), op::neg)) return ops::sub(arg(node, 1), arg(arg(node, 0), 0), node.location);
  return std::nullopt;
}

Result sub_negation(const Node& node) {
  if (!is(arg(node, 1), op::neg)) return std::nullopt;
  return ops::add(arg(node, 0), arg(arg(node, 1), 0), node.location);
}

Result sub_itself(const Node& node) {
  return integer(node) && arg(node, 0) == arg(node, 1) ? number(node, 0) : std::nullopt;
}

Result zero_minus(const Node& node) {
  if (!integer(node) || !is_number(arg(node, 0), 0)) return std::nullopt;
  return as(node, ops::neg(arg(node, 1), node.location));
}

Result mul_zero(const Node& node) {
  return integer(node) && is_number(arg(node, 1), 0) ? number(node, 0) : std::nullopt;
}

Result mul_minus_one(const Node& node) {
  if (!floating(node) || !is_number(arg(node, 1), -1)) return std::nullopt;
  return as(node, ops::neg(arg(node, 0), node.location));
}

Result mul_negations(const Node& node) {
  if (!is(arg(node, 0), op::neg) || !is(arg(node, 1), op::neg)) return std::nullopt;
  return ops::mul(arg(arg(node, 0), 0), arg(arg(node, 1), 0), node.location);
}

// The smallest normal power of two, below which a reciprocal may round.
double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::kF16: return 0x1p-14;
    case DType::kF64: return 0x1p-1022;
    default: return 0x1p-126;
  }
}

Result div_power_of_two(const Node& node) {
  const std::optional<Literal> literal = splat(arg(node, 1));
  if (!floating(node) || !literal) return std::nullopt;
  const double divisor = literal->get_double(0);
  int exponent = 0;
  if (!std::isfinite(divisor) || std::fabs(std::frexp(divisor, &exponent)) != 0.5) {
    return std::nullopt;
  }
  const double inverse = 1.0 / divisor;
  const double limit = smallest_normal(node.types[0].dtype);
  if (std::fabs(inverse) < limit || std::fabs(divisor) < limit) return std::nullopt;
  if (node.types[0].dtype == DType::kF16 && std::fabs(inverse) > 32768.0) return std::nullopt;
  const Value factor = ops::scalar(node.types[0].dtype, inverse, node.location);
  return as(node, ops::mul(arg(node, 0), factor, node.location));
}

template <const ir::OpDef* kOp>
Result twice_is_none(const Node& node) {
  return is(arg(node, 0), *kOp) ? Result(arg(arg(node, 0), 0)) : std::nullopt;
}

template <const ir::OpDef* kOp>
Result twice_is_once(const Node& node) {
  return is(arg(node, 0), *kOp) ? Result(arg(node, 0)) : std::nullopt;
}

Result abs_of_negation(const Node& node) {
  const bool wraps = is_unsigned(arg(node, 0).dtype());
  if (wraps || !is(arg(node, 0), op::neg)) return std::nullopt;
  return ops::abs(arg(arg(node, 0), 0), node.location);
}

Result square_of_sign(const Node& node) {
  const Value& x = arg(node, 0);
  if (is_complex(x.dtype()) || (!is(x, op::neg) && !is(x, op::abs))) return std::nullopt;
  return arg(x, 0).dtype() == x.dtype() ? Result(ops::square(arg(x, 0), node.location))
                                        : std::nullopt;
}

Result pow_small(const Node& node) {
  if (!floating(node)) return std::nullopt;
  if (is_number(arg(node, 1), 0) || is_number(arg(node, 1), -0.0)) return number(node, 1);
  if (is_number(arg(node, 1), 1)) return as(node, arg(node, 0));
  if (is_number(arg(node, 1), 2)) return as(node, ops::square(arg(node, 0), node.location));
  if (is_number(arg(node, 1), -1)) return as(node, ops::reciprocal(arg(node, 0), node.location));
  return std::nullopt;
}

Result same_operands(const Node& node) {
  return arg(node, 0) == arg(node, 1) ? as(node, arg(node, 0)) : std::nullopt;
}

Result and_or_constant(const Node& node) {
  if (!boolean(node)) return std::nullopt;
  const bool all = node.op == &op::logical_and || node.op == &op::bitwise_and;
  if (is_number(arg(node, 1), all ? 1 : 0)) return as(node, arg(node, 0));
  if (is_number(arg(node, 1), all ? 0 : 1)) return number(node, all ? 0 : 1);
  return std::nullopt;
}

Result where_same(const Node& node) {
  return arg(node, 1) == arg(node, 2) ? as(node, arg(node, 1)) : std::nullopt;
}

Result where_constant(const Node& node) {
  const std::optional<Literal> condition = splat(arg(node, 0));
  if (!condition) return std::nullopt;
  return as(node, arg(node, condition->get_int(0) != 0 ? 1 : 2));
}

Result where_not(const Node& node) {
  if (!is(arg(node, 0), op::logical_not)) return std::nullopt;
  return ops::where(arg(arg(node, 0), 0), arg(node, 2), arg(node, 1), node.location);
}

Result not_equal_form(const Node& node) {
  const Value& x = arg(node, 0);
  if (is(x, op::equal)) return ops::not_equal(arg(x, 0), arg(x, 1), node.location);
  if (is(x, op::not_equal)) return ops::equal(arg(x, 0), arg(x, 1), node.location);
  return std::nullopt;
}

constexpr SimplifyRule kRules[] = {
    {"x + 0 → x for integers", "add", drop_integer_zero},
    {"x + -0 → x for floats", "add", add_negative_zero},
    {"x + -y → x - y", "add", add_negation},
    {"x - 0 → x", "sub", drop_right<0>},
    {"x - -y → x + y", "sub", sub_negation},
    {"x - x → 0 for integers", "sub", sub_itself},
    {"0 - x → -x for integers", "sub", zero_minus},
    {"x * 1 → x", "mul", drop_right<1>},
    {"x * 0 → 0 for integers", "mul", mul_zero},
    {"x * -1 → -x for floats", "mul", mul_minus_one},
    {"-x * -y → x * y", "mul", mul_negations},
    {"x / 1 → x", "div", drop_right<1>},
    {"x / 2^k → x * 2^-k", "div", div_power_of_two},
    {"--x → x", "neg", twice_is_none<&op::neg>},
    {"||x|| → |x|", "abs", twice_is_once<&op::abs>},
    {"|-x| → |x| but for unsigned", "abs", abs_of_negation},
    {"square(-x), square(|x|) → square(x)", "square", square_of_sign},
    {"floor(floor(x)) → floor(x)", "floor", twice_is_once<&op::floor>},
    {"ceil(ceil(x)) → ceil(x)", "ceil", twice_is_once<&op::ceil>},
    {"trunc(trunc(x)) → trunc(x)", "trunc", twice_is_once<&op::trunc>},
    {"round(round(x)) → round(x)", "round", twice_is_once<&op::round>},
    {"relu(relu(x)) → relu(x)", "relu", twice_is_once<&op::relu>},
    {"x ** 0, 1, 2, -1", "pow", pow_small},
    {"maximum(x, x) → x", "maximum", same_operands},
    {"minimum(x, x) → x", "minimum", same_operands},
    {"x and x → x", "logical_and", same_operands},
    {"x or x → x", "logical_or", same_operands},
    {"x & x → x", "bitwise_and", same_operands},
    {"x | x → x", "bitwise_or", same_operands},
    {"x and true → x, x and false → false", "logical_and", and_or_constant},
    {"x or false → x, x or true → true", "logical_or", and_or_constant},
    {"x | 0 → x for integers", "bitwise_or", drop_integer_zero},
    {"x ^ 0 → x for integers", "bitwise_xor", drop_integer_zero},
    {"x << 0 → x", "left_shift", drop_right<0>},
    {"x >> 0 → x", "right_shift", drop_right<0>},
    {"not not x → x", "logical_not", twice_is_none<&op::logical_not>},
    {"not (x == y) → x != y", "logical_not", not_equal_form},
    {"~~x → x", "bitwise_not", twice_is_none<&op::bitwise_not>},
    {"where(c, x, x) → x", "where", where_same},
    {"where(true, x, y) → x", "where", where_constant},
    {"where(not c, x, y) → where(c, y, x)", "where", where_not},
};

constexpr int kMaxRounds = 8;  // rules shrink or order a node; this many in a row is a rule's bug

Value simplified(Value value) {
  static const auto by_op = [] {
    std::unordered_map<std::string_view, std::vector<const SimplifyRule*>> map;
    for (const SimplifyRule& rule : kRules) map[rule.op].push_back(&rule);
    return map;
  }();
  for (int round = 0; round < kMaxRounds; ++round) {
    auto rules = by_op.find(value.node->op->name);
    if (rules == by_op.end()) return value;
    Result next;
    for (const SimplifyRule* rule : rules->second) {
      next = rule->apply(*value.node);
      if (next) break;
    }
    if (!next || next->node == value.node) return value;
    value = *next;
  }
  return value;
}

}  // namespace

std::span<const SimplifyRule> simplify_rules() { return kRules; }

ir::GraphPtr simplify(const ir::GraphPtr& graph) {
  return ir::rewrite(
      graph,
      [](const Node& node, std::span<const Value> operands) -> std::optional<std::vector<Value>> {
        if (!node.op->is(ir::kElementwise) || node.types.size() != 1) return std::nullopt;
        Value value =
            ir::make(*node.op, {operands.begin(), operands.end()}, node.attrs, node.location);
        Value next = simplified(value);
        const bool unchanged =
            next == value && std::equal(operands.begin(), operands.end(), node.operands.begin());
        if (unchanged) return std::nullopt;
        return {{next}};
      });
}

}  // namespace tenon::passes
