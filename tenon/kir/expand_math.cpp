#include "tenon/kir/expand_math.h"

#include <algorithm>
#include <unordered_map>

#include "tenon/base/error.h"
#include "tenon/kir/math/functions.h"

namespace tenon::kir {

namespace {

using math::Value;

struct Expansion {
  Op op;
  Value (*unary)(Value);
  Value (*binary)(Value, Value);
};

constexpr Expansion kExpansions[] = {
    {Op::kExp, math::exp, nullptr},     {Op::kExp2, math::exp2, nullptr},
    {Op::kExpm1, math::expm1, nullptr}, {Op::kLog, math::log, nullptr},
    {Op::kLog2, math::log2, nullptr},   {Op::kLog10, math::log10, nullptr},
    {Op::kLog1p, math::log1p, nullptr}, {Op::kSin, math::sin, nullptr},
    {Op::kCos, math::cos, nullptr},     {Op::kTan, math::tan, nullptr},
    {Op::kAsin, math::asin, nullptr},   {Op::kAcos, math::acos, nullptr},
    {Op::kAtan, math::atan, nullptr},   {Op::kSinh, math::sinh, nullptr},
    {Op::kCosh, math::cosh, nullptr},   {Op::kTanh, math::tanh, nullptr},
    {Op::kAsinh, math::asinh, nullptr}, {Op::kAcosh, math::acosh, nullptr},
    {Op::kAtanh, math::atanh, nullptr}, {Op::kErf, math::erf, nullptr},
    {Op::kErfc, math::erfc, nullptr},   {Op::kErfinv, math::erfinv, nullptr},
    {Op::kCbrt, math::cbrt, nullptr},   {Op::kSigmoid, math::sigmoid, nullptr},
    {Op::kGelu, math::gelu, nullptr},   {Op::kPow, nullptr, math::pow},
    {Op::kAtan2, nullptr, math::atan2}, {Op::kFmod, nullptr, math::fmod},
    {Op::kHypot, nullptr, math::hypot},
};

bool has_math(const Block& block) {
  return std::any_of(block.insts.begin(), block.insts.end(), [](const Inst* inst) {
    return is_math(inst->op) || (inst->loop && has_math(inst->loop->body));
  });
}

// Emits a kernel's body again through a builder, with functions replaced.
class Rewriter {
 public:
  Rewriter(const Kernel& from, Kernel& to) : from_(from), b_(to) {}

  void block(const Block& body) {
    for (const Inst* inst : body.insts) emit(*inst);
  }

 private:
  Val map(Val value) { return map_.at(value); }
  Val arg(const Inst& inst, size_t k) { return map(inst.args[k]); }

  void emit(const Inst& inst) {
    switch (inst.op) {
      case Op::kFor: return loop(inst);
      case Op::kIf: return b_.if_then(arg(inst, 0), [&] { block(inst.loop->body); });
      case Op::kLoopResult: return;
      case Op::kStore:
        if (inst.args.size() == 3)
          return b_.store_if(inst.buffer, arg(inst, 0), arg(inst, 1), arg(inst, 2));
        return b_.store(inst.buffer, arg(inst, 0), arg(inst, 1), inst.streaming);
      case Op::kCheck: return b_.check(arg(inst, 0), inst.imm_int);
      case Op::kPrefetch: return b_.prefetch(inst.buffer, arg(inst, 0), inst.streaming);
      case Op::kPanelDot:
        return b_.panel_dot(*inst.panel, inst.buffer, arg(inst, 0), arg(inst, 1), arg(inst, 2),
                            arg(inst, 3), arg(inst, 4),
                            inst.args.size() == 6 ? arg(inst, 5) : nullptr);
      case Op::kTranspose:
        return b_.transpose({inst.buffer, arg(inst, 0), arg(inst, 1)},
                            {static_cast<uint32_t>(inst.imm_int), arg(inst, 2), arg(inst, 3)},
                            arg(inst, 4), arg(inst, 5), inst.streaming);
      default: map_[&inst] = value(inst);
    }
  }

  Val value(const Inst& inst) {
    switch (inst.op) {
      case Op::kConst:
        return is_float(inst.type) ? b_.constant_float(inst.type, inst.imm_float)
                                   : b_.constant_int(inst.type, inst.imm_int);
      case Op::kDimArg: return b_.dim(from_.dims[static_cast<size_t>(inst.imm_int)]);
      case Op::kBegin: return b_.begin();
      case Op::kEnd: return b_.end();
      case Op::kLoad:
        if (inst.args.size() == 1) return b_.load_bytes(inst.buffer, arg(inst, 0), inst.type);
        return b_.load_if(inst.buffer, arg(inst, 0), arg(inst, 1), arg(inst, 2));
      case Op::kCmp: return b_.cmp(inst.pred, arg(inst, 0), arg(inst, 1));
      case Op::kTable: {
        const Table& table = from_.tables[static_cast<size_t>(inst.imm_int)];
        return b_.table(table.type, table.bits, arg(inst, 0));
      }
      case Op::kAny: return b_.any(arg(inst, 0));
      default: break;
    }
    if (inst.op >= Op::kSExt && inst.op <= Op::kBitcast)
      return b_.convert(inst.op, inst.type, arg(inst, 0));
    std::vector<Val> args;
    for (Val a : inst.args) args.push_back(map(a));
    if (is_math(inst.op)) return emit_math(b_, inst.op, args);
    if (args.size() == 1) return b_.unary(inst.op, args[0]);
    if (args.size() == 2) return b_.binary(inst.op, args[0], args[1]);
    return b_.ternary(inst.op, args[0], args[1], args[2]);
  }

  void loop(const Inst& inst) {
    const Loop& loop = *inst.loop;
    std::vector<CarriedSpec> carried;
    for (const CarriedVar& c : loop.carried) carried.push_back({map(c.init), c.combine});
    auto body = [&](Val var, std::span<const Val> params) {
      map_[loop.var] = var;
      for (size_t k = 0; k < params.size(); ++k) map_[loop.carried[k].param] = params[k];
      block(loop.body);
      std::vector<Val> next;
      for (const CarriedVar& c : loop.carried) next.push_back(map(c.next));
      return next;
    };
    auto results = b_.loop(arg(inst, 0), arg(inst, 1), loop.spec, carried, body);
    for (size_t k = 0; k < results.size(); ++k) map_[loop.carried[k].result] = results[k];
  }

  const Kernel& from_;
  Builder b_;
  std::unordered_map<const Inst*, Val> map_;
};

}  // namespace

Val emit_math(Builder& builder, Op op, std::span<const Val> args) {
  for (const Expansion& e : kExpansions) {
    if (e.op != op) continue;
    Value a{&builder, args[0]};
    return e.unary ? e.unary(a).v : e.binary(a, {&builder, args[1]}).v;
  }
  throw InternalError(fmt::format("{}: not a mathematical function", name(op)));
}

void expand_math(Kernel& kernel) {
  if (!has_math(kernel.body)) return;
  Kernel expanded = kernel.without_code();
  Rewriter(kernel, expanded).block(kernel.body);
  expanded.narrow = std::move(kernel.narrow);
  kernel = std::move(expanded);
}

}  // namespace tenon::kir
