#include "tenon/kir/kernel.h"

#include <unordered_map>

#include "tenon/base/error.h"

namespace tenon::kir {

Type type_of(DType dtype) {
  switch (dtype) {
    case DType::kBool: return Type::kI1;
    case DType::kI8:
    case DType::kU8: return Type::kI8;
    case DType::kI16:
    case DType::kU16: return Type::kI16;
    case DType::kI32:
    case DType::kU32: return Type::kI32;
    case DType::kI64:
    case DType::kU64: return Type::kI64;
    case DType::kF16: return Type::kF16;
    case DType::kBF16: return Type::kBF16;
    case DType::kF32: return Type::kF32;
    case DType::kF64: return Type::kF64;
    case DType::kC64: break;
  }
  throw InternalError(fmt::format("kernel: dtype {} has no register type", tenon::name(dtype)));
}

bool is_float(Type type) { return type >= Type::kF16; }
bool is_int(Type type) { return type >= Type::kI1 && type <= Type::kI64; }

int bits(Type type) {
  static constexpr int kBits[] = {0, 1, 8, 16, 32, 64, 16, 16, 32, 64};
  return kBits[static_cast<int>(type)];
}

std::string_view name(Type type) {
  static constexpr std::string_view kNames[] = {"void", "i1",  "i8",   "i16", "i32",
                                                "i64",  "f16", "bf16", "f32", "f64"};
  return kNames[static_cast<int>(type)];
}

std::string_view name(PanelDot::Kind kind) {
  static constexpr std::string_view kNames[] = {"bf16", "u8"};
  return kNames[static_cast<int>(kind)];
}

std::string_view name(Op op) {
  static constexpr std::string_view kNames[] = {
#define X(e, text) text,
      TENON_KIR_OPS(X)
#undef X
  };
  return kNames[static_cast<int>(op)];
}

bool is_math(Op op) { return op >= Op::kExp && op <= Op::kHypot; }

bool is_pure(Op op) { return op >= Op::kAdd && op <= Op::kAny; }

std::string_view name(Pred pred) {
  static constexpr std::string_view kNames[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                                "sge", "ult", "ule", "ugt", "uge",
                                                "flt", "fle", "fgt", "fge", "uno"};
  return kNames[static_cast<int>(pred)];
}

std::string_view name(Combine combine) {
  static constexpr std::string_view kNames[] = {"none", "add",  "mul",  "fmin", "fmax", "smin",
                                                "smax", "umin", "umax", "and",  "or",   "xor"};
  return kNames[static_cast<int>(combine)];
}

Inst* Kernel::make(Op op, Type type) {
  auto inst = std::make_unique<Inst>();
  inst->op = op;
  inst->type = type;
  inst->id = id_count();
  pool_.push_back(std::move(inst));
  return pool_.back().get();
}

namespace {

class Cloner {
 public:
  explicit Cloner(Kernel& to) : to_(to) {}

  void block(const Block& from, Block& into) {
    for (const Inst* inst : from.insts) into.insts.push_back(clone(*inst));
  }

 private:
  Val map(Val value) { return value == nullptr ? nullptr : map_.at(value); }

  Inst* copy_plain(const Inst& from) {
    Inst* inst = to_.make(from.op, from.type);
    inst->pred = from.pred;
    inst->streaming = from.streaming;
    inst->buffer = from.buffer;
    inst->imm_int = from.imm_int;
    inst->imm_float = from.imm_float;
    if (from.panel) inst->panel = std::make_unique<PanelDot>(*from.panel);
    for (Val arg : from.args) inst->args.push_back(map(arg));
    map_[&from] = inst;
    return inst;
  }

  Inst* clone(const Inst& from) {
    Inst* inst = copy_plain(from);
    if (from.loop) {
      inst->loop = std::make_unique<Loop>();
      Loop& loop = *inst->loop;
      loop.spec = from.loop->spec;
      if (from.loop->var != nullptr) loop.var = copy_plain(*from.loop->var);
      for (const CarriedVar& c : from.loop->carried) {
        CarriedVar copy{map(c.init), copy_plain(*c.param), nullptr, nullptr, c.combine};
        loop.carried.push_back(copy);
      }
      block(from.loop->body, loop.body);
      for (size_t k = 0; k < loop.carried.size(); ++k)
        loop.carried[k].next = map(from.loop->carried[k].next);
    }
    if (from.op == Op::kLoopResult)
      inst->args[0]->loop->carried[static_cast<size_t>(from.imm_int)].result = inst;
    return inst;
  }

  Kernel& to_;
  std::unordered_map<const Inst*, Inst*> map_;
};

}  // namespace

Kernel Kernel::without_code() const {
  Kernel copy;
  copy.name = name;
  copy.buffers = buffers;
  copy.dims = dims;
  copy.grid = grid;
  copy.scratch_bytes = scratch_bytes;
  copy.bytes_per_index = bytes_per_index;
  copy.ops_per_index = ops_per_index;
  copy.origins = origins;
  return copy;
}

Kernel Kernel::clone() const {
  Kernel copy = without_code();
  copy.tables = tables;
  if (narrow != nullptr) copy.narrow = std::make_unique<Kernel>(narrow->clone());
  Cloner(copy).block(body, copy.body);
  return copy;
}

}  // namespace tenon::kir
