#include "tenon/kir/fold.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "tenon/kir/scalar.h"

namespace tenon::kir {

namespace {

bool is_const(Val v) { return v->op == Op::kConst; }

bool is_int_const(Val v, int64_t value) {
  return is_const(v) && is_int(v->type) && bits_of_const(*v) == bits_of_int(v->type, value);
}

bool is_float_const(Val v, double value) {
  return is_const(v) && is_float(v->type) && v->imm_float == value &&
         std::signbit(v->imm_float) == std::signbit(value);
}

Val constant(Builder& b, Type type, Bits value) {
  return is_float(type) ? b.constant_float(type, float_of(type, value))
                        : b.constant_int(type, signed_of(type, value));
}

// Payloads of NaN do not survive a constant; such results are left to run time.
bool keeps_bits(Type type, Bits value) {
  if (!is_float(type)) return true;
  double v = float_of(type, value);
  return v == v || bits_of_float(type, v) == value;
}

Val fold_constants(Builder& b, Op op, Type type, Pred pred, std::span<const Val> args) {
  if (is_math(op) || op == Op::kTable || op == Op::kAny || op == Op::kDot2) return nullptr;
  for (Val arg : args)
    if (!is_const(arg)) return nullptr;
  Bits in[3] = {};
  for (size_t k = 0; k < args.size(); ++k) in[k] = bits_of_const(*args[k]);
  if (op >= Op::kSDiv && op <= Op::kURem && in[1] == 0) return nullptr;
  Type operand = args[op == Op::kSelect ? 1 : 0]->type;
  std::span<const Bits> values(in, args.size());
  Bits result = eval_scalar(op, type, operand, pred, values);
  bool by_target = op == Op::kMulAdd || op == Op::kResidual;
  if (by_target && result != eval_scalar(op, type, operand, pred, values, {false})) return nullptr;
  return keeps_bits(type, result) ? constant(b, type, result) : nullptr;
}

std::optional<int> power_of_two(Val v) {
  if (!is_const(v)) return std::nullopt;
  Bits value = bits_of_const(*v);
  if (!std::has_single_bit(value)) return std::nullopt;
  return std::countr_zero(value);
}

Val fold_add(Builder& b, Type type, Val x, Val y) {
  if (is_float(type)) return is_float_const(y, -0.0) ? x : nullptr;
  if (is_int_const(y, 0)) return x;
  if (is_const(y) && x->op == Op::kAdd && is_const(x->args[1]))
    return b.add(x->args[0], b.add(x->args[1], y));
  return nullptr;
}

Val fold_sub(Builder& b, Type type, Val x, Val y) {
  if (is_float(type)) return is_float_const(y, 0.0) ? x : nullptr;
  if (x == y) return b.constant_int(type, 0);
  if (is_const(y)) return b.add(x, b.unary(Op::kNeg, y));
  if (x->op == Op::kAdd && x->args[0] == y) return x->args[1];
  if (x->op == Op::kAdd && x->args[1] == y) return x->args[0];
  return nullptr;
}

Val fold_mul(Builder& b, Type type, Val x, Val y) {
  if (is_float(type)) return is_float_const(y, 1.0) ? x : is_float_const(x, 1.0) ? y : nullptr;
  if (is_int_const(y, 0)) return y;
  if (is_int_const(y, 1)) return x;
  if (is_const(y) && x->op == Op::kMul && is_const(x->args[1]))
    return b.mul(x->args[0], b.mul(x->args[1], y));
  return nullptr;
}

Val fold_division(Builder& b, Op op, Type type, Val x, Val y) {
  bool remainder = op == Op::kSRem || op == Op::kURem;
  if (is_int_const(y, 1)) return remainder ? b.constant_int(type, 0) : x;
  if (op == Op::kSDiv || op == Op::kSRem) return nullptr;
  auto shift = power_of_two(y);
  if (!shift) return nullptr;
  if (!remainder) return b.binary(Op::kLShr, x, b.constant_int(type, *shift));
  return b.binary(Op::kAnd, x, b.add(y, b.constant_int(type, -1)));
}

Val fold_logic(Builder& b, Op op, Type type, Val x, Val y) {
  switch (op) {
    case Op::kAnd:
      if (is_int_const(y, 0) || x == y) return y;
      if (is_int_const(y, -1)) return x;
      break;
    case Op::kOr:
      if (is_int_const(y, 0) || x == y) return x;
      if (is_int_const(y, -1)) return y;
      break;
    case Op::kXor:
      if (is_int_const(y, 0)) return x;
      if (x == y) return b.constant_int(type, 0);
      if (x->op == Op::kXor && is_const(y) && is_const(x->args[1]))
        return b.binary(Op::kXor, x->args[0], b.binary(Op::kXor, x->args[1], y));
      break;
    case Op::kShl:
    case Op::kLShr:
    case Op::kAShr:
      if (is_int_const(y, 0)) return x;
      break;
    default:
      if (x == y) return x;  // smin … umax
  }
  return nullptr;
}

Val fold_compare(Builder& b, Pred pred, Val x, Val y) {
  if (x != y || is_float(x->type)) return nullptr;
  bool holds = pred == Pred::kEq || pred == Pred::kSLe || pred == Pred::kSGe ||
               pred == Pred::kULe || pred == Pred::kUGe;
  return b.boolean(holds);
}

Val fold_select(Val cond, Val x, Val y) {
  if (is_const(cond)) return cond->imm_int != 0 ? x : y;
  if (x == y) return x;
  if (x->type == Type::kI1 && is_int_const(x, 1) && is_int_const(y, 0)) return cond;
  return nullptr;
}

Val fold_conversion(Builder& b, Op op, Type type, Val x) {
  if (x->type == type && op != Op::kFToS && op != Op::kFToU) return x;
  bool round_trip = (op == Op::kIntTrunc && (x->op == Op::kSExt || x->op == Op::kZExt)) ||
                    (op == Op::kBitcast && x->op == Op::kBitcast);
  if (round_trip && x->args[0]->type == type) return x->args[0];
  if (op == Op::kZExt && x->op == Op::kZExt) return b.convert(op, type, x->args[0]);
  if (op == Op::kSExt && x->op == Op::kSExt) return b.convert(op, type, x->args[0]);
  return nullptr;
}

}  // namespace

Val fold(Builder& b, Op op, Type type, Pred pred, std::span<const Val> args) {
  if (Val value = fold_constants(b, op, type, pred, args)) return value;
  Val x = args[0];
  Val y = args.size() > 1 ? args[1] : nullptr;
  switch (op) {
    case Op::kAdd: return fold_add(b, type, x, y);
    case Op::kSub: return fold_sub(b, type, x, y);
    case Op::kMul: return fold_mul(b, type, x, y);
    case Op::kDiv: return is_float_const(y, 1.0) ? x : nullptr;
    case Op::kNeg: return x->op == Op::kNeg ? x->args[0] : nullptr;
    case Op::kAbs: return x->op == Op::kAbs ? x : nullptr;
    case Op::kSDiv:
    case Op::kUDiv:
    case Op::kSRem:
    case Op::kURem: return fold_division(b, op, type, x, y);
    case Op::kCmp: return fold_compare(b, pred, x, y);
    case Op::kSelect: return fold_select(x, y, args[2]);
    case Op::kAny: return is_const(x) ? x : nullptr;
    default: break;
  }
  if (op >= Op::kSMin && op <= Op::kAShr) return fold_logic(b, op, type, x, y);
  if (op >= Op::kSExt && op <= Op::kBitcast) return fold_conversion(b, op, type, x);
  return nullptr;
}

}  // namespace tenon::kir
