#include <unordered_set>

#include "tenon/base/error.h"
#include "tenon/kir/kernel.h"

namespace tenon::kir {

namespace {

bool is_arithmetic(Type type) { return is_int(type) || type == Type::kF32 || type == Type::kF64; }
bool is_wide_float(Type type) { return type == Type::kF32 || type == Type::kF64; }

bool is_int_pred(Pred pred) { return pred >= Pred::kSLt && pred <= Pred::kUGe; }
bool is_float_pred(Pred pred) { return pred >= Pred::kFLt; }

int arity(Op op) {
  switch (op) {
    case Op::kResidual:
    case Op::kMulAdd:
    case Op::kDot4:
    case Op::kDot2:
    case Op::kSelect: return 3;
    case Op::kNeg:
    case Op::kAbs:
    case Op::kSqrt:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
    case Op::kRint:
    case Op::kPopCount:
    case Op::kClz:
    case Op::kTable:
    case Op::kAny: return 1;
    case Op::kPow:
    case Op::kAtan2:
    case Op::kFmod:
    case Op::kHypot: return 2;
    default: break;
  }
  if (is_math(op) || (op >= Op::kSExt && op <= Op::kBitcast)) return 1;
  return 2;
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  void run() {
    bool scratch = false;
    for (const Buffer& b : kernel_.buffers) {
      bool arg = b.kind == Buffer::Kind::kArg;
      require(!(arg && scratch), nullptr, "argument buffers stand before scratch buffers");
      scratch = scratch || !arg;
    }
    block(kernel_.body, 0, false, false);
  }

 private:
  void require(bool condition, const Inst* inst, std::string_view rule) {
    if (condition) return;
    if (inst == nullptr) throw InternalError(fmt::format("kernel {}: {}", kernel_.name, rule));
    std::string types;
    for (Val arg : inst->args) types += fmt::format(" {}", arg ? kir::name(arg->type) : "null");
    throw InternalError(fmt::format("kernel {}: {} %{} ({} <-{}): {}", kernel_.name,
                                    kir::name(inst->op), inst->id, kir::name(inst->type), types,
                                    rule));
  }

  void defined(const Inst* user, Val value) {
    require(value != nullptr && visible_.count(value) > 0, user,
            "uses a value that is not computed before it in an enclosing block");
  }

  void block(const Block& body, int depth, bool in_vector, bool in_parallel) {
    std::vector<const Inst*> own;
    for (const Inst* inst : body.insts) {
      for (Val arg : inst->args) defined(inst, arg);
      instruction(*inst);
      const bool alone = inst->op == Op::kPanelDot || inst->op == Op::kTranspose;
      require(!alone || !in_vector, inst, "stands outside vector loops");
      if (inst->loop) control(*inst, depth, in_vector, in_parallel);
      require(visible_.insert(inst).second, inst, "stands in two places");
      own.push_back(inst);
    }
    closing_.insert(closing_.end(), own.begin(), own.end());
    closing_sizes_.push_back(own.size());
  }

  void leave_block() {
    for (size_t k = 0; k < closing_sizes_.back(); ++k) {
      visible_.erase(closing_.back());
      closing_.pop_back();
    }
    closing_sizes_.pop_back();
  }

  void instruction(const Inst& inst) {
    switch (inst.op) {
      case Op::kConst:
        require(inst.type != Type::kVoid && inst.args.empty(), &inst, "is a leaf with a type");
        return;
      case Op::kDimArg:
        require(inst.imm_int >= 0 && inst.imm_int < static_cast<int64_t>(kernel_.dims.size()),
                &inst, "names a dimension of the kernel");
        [[fallthrough]];
      case Op::kBegin:
      case Op::kEnd:
        require(inst.type == Type::kI64 && inst.args.empty(), &inst, "is an i64 leaf");
        return;
      case Op::kLoopVar:
      case Op::kCarried: return require(false, &inst, "belongs to a loop, not to a block");
      case Op::kLoopResult: return result(inst);
      case Op::kLoad:
      case Op::kStore:
      case Op::kPrefetch: return memory(inst);
      case Op::kCheck:
        return require(
            inst.args.size() == 1 && inst.args[0]->type == Type::kI1 && inst.imm_int != 0, &inst,
            "takes an i1 and a code other than 0");
      case Op::kPanelDot: return panel_dot(inst);
      case Op::kTranspose: return transpose(inst);
      case Op::kFor:
        return require(inst.args.size() == 2 && inst.loop != nullptr &&
                           inst.args[0]->type == Type::kI64 && inst.args[1]->type == Type::kI64,
                       &inst, "takes two i64 bounds");
      case Op::kIf:
        return require(
            inst.args.size() == 1 && inst.loop != nullptr && inst.args[0]->type == Type::kI1, &inst,
            "takes an i1");
      default: pure(inst);
    }
  }

  void result(const Inst& inst) {
    require(inst.args.size() == 1 && inst.args[0]->op == Op::kFor, &inst, "belongs to a loop");
    const auto& carried = inst.args[0]->loop->carried;
    require(inst.imm_int >= 0 && inst.imm_int < static_cast<int64_t>(carried.size()), &inst,
            "names a carried variable");
    const CarriedVar& c = carried[static_cast<size_t>(inst.imm_int)];
    require(c.result == &inst && c.param->type == inst.type, &inst, "is its variable's result");
  }

  void memory(const Inst& inst) {
    require(inst.buffer < kernel_.buffers.size(), &inst, "names a buffer of the kernel");
    const Buffer& buffer = kernel_.buffers[inst.buffer];
    Type type = type_of(buffer.dtype);
    size_t n = inst.args.size();
    require(n >= 1 && inst.args[0]->type == Type::kI64, &inst, "has an i64 index");
    if (inst.op == Op::kLoad) {
      const bool bytes = n == 1 && type == Type::kI8 && inst.type >= Type::kI8;
      require(inst.type == type || bytes, &inst, "has its buffer's type, or reads bytes");
      require(n == 1 || (n == 3 && inst.args[1]->type == Type::kI1 && inst.args[2]->type == type),
              &inst, "takes an index, or an index, an i1 and a value of the buffer's type");
    } else if (inst.op == Op::kStore) {
      require(buffer.written, &inst, "stores to a buffer marked as written");
      require((n == 2 || (n == 3 && inst.args[2]->type == Type::kI1)) && inst.args[1]->type == type,
              &inst, "takes an index, a value of the buffer's type and perhaps an i1");
    } else {
      require(n == 1, &inst, "takes an index");
    }
  }

  void panel_dot(const Inst& inst) {
    const size_t given = inst.args.size();
    require(inst.panel != nullptr && (given == 5 || given == 6), &inst, "has 5 or 6 arguments");
    const PanelDot& panel = *inst.panel;
    for (size_t k = 0; k < given; ++k) {
      const Type type = k == 4 ? Type::kI1 : Type::kI64;
      require(inst.args[k]->type == type, &inst, "takes indices and an i1");
    }
    const size_t count = kernel_.buffers.size();
    require(inst.buffer < count && panel.left < count && panel.right < count, &inst,
            "names buffers of the kernel");
    const Type wanted = panel.kind == PanelDot::Kind::kBF16 ? Type::kF32 : Type::kI32;
    const Buffer& sums = kernel_.buffers[inst.buffer];
    require(sums.written && type_of(sums.dtype) == wanted, &inst, "writes sums of its type");
    require(panel.rows >= 1 && panel.rows <= kPanelDotRows, &inst, "has 1 to 32 rows");
    require(panel.terms >= 1, &inst, "has at least one panel");
  }

  void transpose(const Inst& inst) {
    require(inst.args.size() == 6, &inst, "has 6 arguments");
    for (Val arg : inst.args) require(arg->type == Type::kI64, &inst, "takes indices and counts");
    const auto source = static_cast<size_t>(inst.imm_int);
    require(inst.buffer < kernel_.buffers.size() && source < kernel_.buffers.size(), &inst,
            "names buffers of the kernel");
    require(kernel_.buffers[inst.buffer].written, &inst, "writes a buffer marked as written");
  }

  void pure(const Inst& inst) {
    require(static_cast<int>(inst.args.size()) == arity(inst.op), &inst,
            "has the wrong number of arguments");
    Type a = inst.args[0]->type;
    if (inst.op == Op::kCmp) return compare(inst);
    if (inst.op == Op::kSelect)
      return require(
          a == Type::kI1 && inst.args[1]->type == inst.type && inst.args[2]->type == inst.type,
          &inst, "takes an i1 and two values of its type");
    if (inst.op == Op::kTable) return table(inst);
    if (inst.op == Op::kDot4 || inst.op == Op::kDot2) return dot(inst);
    if (inst.op >= Op::kSExt && inst.op <= Op::kBitcast) return conversion(inst, a, inst.type);
    for (Val arg : inst.args)
      require(arg->type == inst.type, &inst, "has arguments of its own type");
    require(type_fits(inst.op, inst.type), &inst, "is not defined for this type");
  }

  static bool type_fits(Op op, Type type) {
    if (op == Op::kAny) return type == Type::kI1;
    if (op >= Op::kAdd && op <= Op::kAbs) return is_arithmetic(type);
    if ((op >= Op::kDiv && op <= Op::kFMaxFast) || is_math(op)) return is_wide_float(type);
    if (op == Op::kUMulHi) return type == Type::kI32 || type == Type::kI64;
    return is_int(type);
  }

  void table(const Inst& inst) {
    bool known = inst.imm_int >= 0 && inst.imm_int < static_cast<int64_t>(kernel_.tables.size());
    require(known && inst.args[0]->type == Type::kI32 &&
                kernel_.tables[static_cast<size_t>(inst.imm_int)].type == inst.type,
            &inst, "takes an i32 index and has its table's type");
  }

  void dot(const Inst& inst) {
    require(inst.type == (inst.op == Op::kDot4 ? Type::kI32 : Type::kF32) &&
                inst.args[0]->type == inst.type && inst.args[1]->type == Type::kI32 &&
                inst.args[2]->type == Type::kI32,
            &inst, "takes a sum of its type and two i32");
  }

  void compare(const Inst& inst) {
    Type a = inst.args[0]->type;
    require(inst.type == Type::kI1 && a == inst.args[1]->type && is_arithmetic(a), &inst,
            "compares two values of one type to an i1");
    require(is_int(a) ? !is_float_pred(inst.pred) : !is_int_pred(inst.pred), &inst,
            "has a predicate of its operands' class");
  }

  void conversion(const Inst& inst, Type from, Type to) {
    bool right = false;
    switch (inst.op) {
      case Op::kSExt:
      case Op::kZExt: right = is_int(from) && is_int(to) && bits(to) > bits(from); break;
      case Op::kIntTrunc: right = is_int(from) && is_int(to) && bits(to) < bits(from); break;
      case Op::kFExt: right = is_float(from) && is_wide_float(to) && bits(to) > bits(from); break;
      case Op::kFTrunc: right = is_wide_float(from) && is_float(to) && bits(to) < bits(from); break;
      case Op::kSToF:
      case Op::kUToF: right = is_int(from) && is_wide_float(to); break;
      case Op::kFToS:
      case Op::kFToU: right = is_wide_float(from) && is_int(to) && to != Type::kI1; break;
      default: right = bits(from) == bits(to) && from != Type::kVoid; break;
    }
    require(right, &inst, "cannot convert between these types");
  }

  void control(const Inst& inst, int depth, bool in_vector, bool in_parallel) {
    const Loop& loop = *inst.loop;
    if (inst.op == Op::kIf) {
      require(loop.carried.empty(), &inst, "carries no values");
      block(loop.body, depth + 1, in_vector, in_parallel);
      return leave_block();
    }
    const LoopSpec& spec = loop.spec;
    require(loop.var != nullptr && loop.var->op == Op::kLoopVar, &inst, "has a variable");
    require(spec.step >= 1 && spec.multiple >= 1 && spec.interleave >= 0 && spec.ahead >= 0, &inst,
            "has a positive step");
    require(
        spec.first_quarter >= 0 && spec.quarters >= 0 && spec.first_quarter + spec.quarters <= 4,
        &inst, "calls four quarters at most");
    require(!spec.vector || spec.step == 1, &inst, "is a vector loop of step 1");
    require(!spec.parallel || (depth == 0 && !in_parallel), &inst,
            "is the only parallel loop, and outermost");
    require(!spec.parallel || (inst.args[0]->op == Op::kBegin && inst.args[1]->op == Op::kEnd &&
                               loop.carried.empty()),
            &inst, "is parallel: it runs from begin to end and carries nothing");
    for (const CarriedVar& c : loop.carried) {
      defined(&inst, c.init);
      require(c.param != nullptr && c.next != nullptr && c.param->op == Op::kCarried &&
                  c.init->type == c.param->type && c.next->type == c.param->type,
              &inst, "carries values of one type");
      require(visible_.insert(c.param).second, c.param, "stands in two places");
    }
    require(visible_.insert(loop.var).second, loop.var, "stands in two places");
    block(loop.body, depth + 1, in_vector || spec.vector, in_parallel || spec.parallel);
    for (const CarriedVar& c : loop.carried) defined(&inst, c.next);
    for (const CarriedVar& c : loop.carried) visible_.erase(c.param);
    visible_.erase(loop.var);
    leave_block();
  }

  const Kernel& kernel_;
  std::unordered_set<const Inst*> visible_;
  std::vector<const Inst*> closing_;
  std::vector<size_t> closing_sizes_;
};

}  // namespace

void verify(const Kernel& kernel) { Verifier(kernel).run(); }

}  // namespace tenon::kir
