#include "tenon/kir/builder.h"

#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/kir/builder_parts.h"
#include "tenon/kir/fold.h"
#include "tenon/kir/index.h"
#include "tenon/kir/scalar.h"

namespace tenon::kir {

namespace {

bool commutes(Op op, Type type) {
  switch (op) {
    case Op::kAdd:
    case Op::kMul: return is_int(type);
    case Op::kSMin:
    case Op::kSMax:
    case Op::kUMin:
    case Op::kUMax:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
    case Op::kUMulHi: return true;
    default: return false;
  }
}

void check_same(Op op, Val a, Val b) {
  if (a->type != b->type)
    throw InternalError(
        fmt::format("{}: operands have types {} and {}", name(op), name(a->type), name(b->type)));
}

}  // namespace

Builder::Builder(Kernel& kernel) : kernel_(kernel), index_(std::make_unique<IndexAlgebra>(*this)) {
  open(&kernel.body);
}

Builder::~Builder() = default;

// --- placement ---

Builder::Scope& Builder::open(Block* block) {
  auto scope = std::make_unique<Scope>();
  scope->block = block;
  scope->serial = ++serials_;
  scopes_.push_back(std::move(scope));
  return *scopes_.back();
}

void Builder::close() { scopes_.pop_back(); }

int Builder::depth() const { return static_cast<int>(scopes_.size()) - 1; }

uint64_t Builder::serial(int depth) const { return scopes_.at(static_cast<size_t>(depth))->serial; }

bool Builder::in_vector_loop() const {
  return std::any_of(scopes_.begin(), scopes_.end(), [](const auto& s) { return s->vector; });
}

int Builder::depth_of(Val value) const {
  auto it = places_.find(value);
  check_internal(it != places_.end(), "a value of this kernel's builder");
  const Place& place = it->second;
  if (place.depth > depth() || serial(place.depth) != place.serial)
    throw InternalError(
        fmt::format("{} %{}: used outside the block that computes it", name(value->op), value->id));
  return place.depth;
}

Val Builder::find(const std::vector<uint64_t>& key) const {
  for (const auto& scope : scopes_)
    if (auto it = scope->known.find(key); it != scope->known.end()) return it->second;
  return nullptr;
}

Val Builder::append(const Proto& proto, int depth) {
  Inst* inst = kernel_.make(proto.op, proto.type);
  inst->args = proto.args;
  inst->pred = proto.pred;
  inst->buffer = proto.buffer;
  inst->imm_int = proto.imm_int;
  inst->imm_float = proto.imm_float;
  inst->streaming = proto.streaming;
  Scope& scope = *scopes_[static_cast<size_t>(depth)];
  scope.block->insts.push_back(inst);
  places_[inst] = {depth, scope.serial};
  return inst;
}

Val Builder::emit(const Proto& proto, int floor) {
  auto key = proto.key();
  if (Val known = find(key)) return known;
  int target = proto.args.empty() ? 0 : std::max(floor, rare_depth());
  for (Val arg : proto.args) target = std::max(target, depth_of(arg));
  Val value = append(proto, target);
  scopes_[static_cast<size_t>(target)]->known.emplace(std::move(key), value);
  return value;
}

void Builder::effect(const Proto& proto) {
  for (Val arg : proto.args) depth_of(arg);
  append(proto, depth());
}

void Builder::at_depth(int depth, const std::function<void()>& emit) {
  auto inner = scopes_.begin() + depth + 1;
  std::vector<std::unique_ptr<Scope>> set_aside(std::make_move_iterator(inner),
                                                std::make_move_iterator(scopes_.end()));
  scopes_.erase(inner, scopes_.end());
  emit();
  for (auto& scope : set_aside) scopes_.push_back(std::move(scope));
}

// --- leaves ---

Val Builder::constant_int(Type type, int64_t value) {
  // i1 is 0 or 1; wider integers are kept sign-extended.
  int64_t wrapped = type == Type::kI1 ? value & 1 : signed_of(type, bits_of_int(type, value));
  return emit({.op = Op::kConst, .type = type, .imm_int = wrapped}, 0);
}

Val Builder::constant_float(Type type, double value) {
  double rounded = float_of(type, bits_of_float(type, value));
  return emit({.op = Op::kConst, .type = type, .imm_float = rounded}, 0);
}

Val Builder::dim(const Dim& value) {
  if (value.is_static()) return i64(value.value());
  auto& dims = kernel_.dims;
  auto it = std::find(dims.begin(), dims.end(), value);
  if (it == dims.end()) it = dims.insert(it, value);
  return emit({.op = Op::kDimArg, .type = Type::kI64, .imm_int = it - dims.begin()}, 0);
}

Val Builder::begin() { return emit({.op = Op::kBegin, .type = Type::kI64}, 0); }
Val Builder::end() { return emit({.op = Op::kEnd, .type = Type::kI64}, 0); }

// --- instructions ---

Val Builder::unary(Op op, Val a) {
  if (Val value = fold(*this, op, a->type, Pred::kEq, {&a, 1})) return value;
  return emit({.op = op, .type = a->type, .args = {a}}, 0);
}

Val Builder::binary(Op op, Val a, Val b) {
  check_same(op, a, b);
  if (commutes(op, a->type)) {
    bool swap =
        (a->op == Op::kConst) != (b->op == Op::kConst) ? a->op == Op::kConst : a->id > b->id;
    if (swap) std::swap(a, b);
  }
  Val args[] = {a, b};
  if (Val value = fold(*this, op, a->type, Pred::kEq, args)) return value;
  bool division = op >= Op::kSDiv && op <= Op::kURem;
  return emit({.op = op, .type = a->type, .args = {a, b}}, division ? division_floor(op, b) : 0);
}

Val Builder::ternary(Op op, Val a, Val b, Val c) {
  if (op == Op::kSelect) return select(a, b, c);
  if (op != Op::kDot2) check_same(op, a, b);
  check_same(op, b, c);
  Val args[] = {a, b, c};
  if (Val value = fold(*this, op, a->type, Pred::kEq, args)) return value;
  return emit({.op = op, .type = a->type, .args = {a, b, c}}, 0);
}

Val Builder::cmp(Pred pred, Val a, Val b) {
  check_same(Op::kCmp, a, b);
  Val args[] = {a, b};
  if (Val value = fold(*this, Op::kCmp, Type::kI1, pred, args)) return value;
  return emit({.op = Op::kCmp, .type = Type::kI1, .args = {a, b}, .pred = pred}, 0);
}

Val Builder::select(Val cond, Val a, Val b) {
  check_same(Op::kSelect, a, b);
  Val args[] = {cond, a, b};
  if (Val value = fold(*this, Op::kSelect, a->type, Pred::kEq, args)) return value;
  return emit({.op = Op::kSelect, .type = a->type, .args = {cond, a, b}}, 0);
}

Val Builder::convert(Op op, Type to, Val a) {
  if (Val value = fold(*this, op, to, Pred::kEq, {&a, 1})) return value;
  return emit({.op = op, .type = to, .args = {a}}, 0);
}

Val Builder::logical_not(Val a) { return binary(Op::kXor, a, boolean(true)); }

Val Builder::table(Type type, std::span<const uint64_t> bits, Val index) {
  Table table{type, {bits.begin(), bits.end()}};
  auto& tables = kernel_.tables;
  auto it = std::find(tables.begin(), tables.end(), table);
  if (it == tables.end()) it = tables.insert(it, std::move(table));
  return emit({.op = Op::kTable, .type = type, .args = {index}, .imm_int = it - tables.begin()}, 0);
}

Val Builder::any(Val cond) {
  if (Val value = fold(*this, Op::kAny, Type::kI1, Pred::kEq, {&cond, 1})) return value;
  return emit({.op = Op::kAny, .type = Type::kI1, .args = {cond}}, 0);
}

int Builder::division_floor(Op op, Val divisor) const {
  bool is_signed = op == Op::kSDiv || op == Op::kSRem;
  auto positive = [](Val v) { return v->op == Op::kConst && v->imm_int > 0; };
  bool safe = false;
  if (divisor->op == Op::kConst)
    safe = divisor->imm_int != 0 && !(is_signed && divisor->imm_int == -1);
  else if (divisor->op == Op::kDimArg)
    safe = kernel_.dims[static_cast<size_t>(divisor->imm_int)].lower_bound() >= 1;
  else if (divisor->op == Op::kSMax || (divisor->op == Op::kUMax && !is_signed))
    safe = positive(divisor->args[0]) || positive(divisor->args[1]);
  return safe ? 0 : depth();
}

Val Builder::index_div(Val a, const Dim& divisor) { return index_->div(a, divisor); }
Val Builder::index_rem(Val a, const Dim& divisor) { return index_->rem(a, divisor); }
void Builder::set_bound(Val value, const Dim& bound) { index_->set_bound(value, bound); }

// --- control ---

std::vector<Val> Builder::loop(
    Val lo, Val hi, LoopSpec spec, std::span<const CarriedSpec> carried,
    const std::function<std::vector<Val>(Val, std::span<const Val>)>& body) {
  for (Val arg : {lo, hi}) depth_of(arg);
  Inst* inst = kernel_.make(Op::kFor, Type::kVoid);
  inst->args = {lo, hi};
  inst->loop = std::make_unique<Loop>();
  Loop& loop = *inst->loop;
  loop.spec = spec;
  loop.var = kernel_.make(Op::kLoopVar, Type::kI64);
  std::vector<Val> params;
  for (const CarriedSpec& c : carried) {
    depth_of(c.init);
    Val param = kernel_.make(Op::kCarried, c.init->type);
    loop.carried.push_back({c.init, param, nullptr, nullptr, c.combine});
    params.push_back(param);
  }
  Scope& scope = open(&loop.body);
  scope.vector = spec.vector;
  scope.rare = spec.rare;
  Place place{depth(), scope.serial};
  places_[loop.var] = place;
  for (Val param : params) places_[param] = place;
  index_->set_loop_range(loop.var, lo, hi);
  std::vector<Val> next = body(loop.var, params);
  check_internal(next.size() == carried.size(), "a loop body returns one value a carried variable");
  for (size_t k = 0; k < next.size(); ++k) {
    depth_of(next[k]);
    check_same(Op::kFor, next[k], params[k]);
    loop.carried[k].next = next[k];
  }
  close();
  scopes_.back()->block->insts.push_back(inst);
  places_[inst] = {depth(), scopes_.back()->serial};
  std::vector<Val> results;
  for (size_t k = 0; k < next.size(); ++k) {
    Val result = append({.op = Op::kLoopResult,
                         .type = params[k]->type,
                         .args = {inst},
                         .imm_int = static_cast<int64_t>(k)},
                        depth());
    loop.carried[k].result = result;
    results.push_back(result);
  }
  return results;
}

void Builder::loop(Val lo, Val hi, LoopSpec spec, const std::function<void(Val)>& body) {
  loop(lo, hi, spec, {}, [&](Val var, std::span<const Val>) {
    body(var);
    return std::vector<Val>{};
  });
}

std::vector<Val> Builder::rarely(
    Val condition, std::span<const Val> init,
    const std::function<std::vector<Val>(std::span<const Val>)>& body) {
  std::vector<CarriedSpec> carried;
  for (Val value : init) carried.push_back({value, Combine::kNone});
  Val rounds = convert(Op::kZExt, Type::kI64, any(condition));
  return loop(i64(0), rounds, {.rare = true}, carried,
              [&](Val, std::span<const Val> now) { return body(now); });
}

void Builder::if_then(Val condition, const std::function<void()>& body) {
  depth_of(condition);
  Inst* inst = kernel_.make(Op::kIf, Type::kVoid);
  inst->args = {condition};
  inst->loop = std::make_unique<Loop>();
  open(&inst->loop->body).conditional = true;
  body();
  close();
  scopes_.back()->block->insts.push_back(inst);
  places_[inst] = {depth(), scopes_.back()->serial};
}

}  // namespace tenon::kir
