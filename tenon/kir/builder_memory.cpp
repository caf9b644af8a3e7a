// Buffers, and the instructions that touch them.
#include "tenon/base/error.h"
#include "tenon/kir/builder_parts.h"

namespace tenon::kir {

uint32_t Builder::add_buffer(std::string name, DType dtype, bool written) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.dtype = dtype;
  buffer.written = written;
  auto& buffers = kernel_.buffers;
  check_internal(buffers.empty() || buffers.back().kind == Buffer::Kind::kArg,
                 "argument buffers are added before scratch buffers");
  buffers.push_back(std::move(buffer));
  return static_cast<uint32_t>(buffers.size() - 1);
}

uint32_t Builder::add_scratch(std::string name, DType dtype, const Dim& count) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.dtype = dtype;
  buffer.kind = Buffer::Kind::kScratch;
  buffer.written = true;
  buffer.count = count;
  buffer.offset = kernel_.scratch_bytes;
  for (const auto& [symbol, range] : buffer.offset.symbols()) dim(Dim(symbol, range));
  dim(buffer.offset);
  Dim bytes = count * Dim(static_cast<int64_t>(size_of(dtype)));
  kernel_.scratch_bytes = kernel_.scratch_bytes + floor_div(bytes + Dim(63), Dim(64)) * Dim(64);
  kernel_.buffers.push_back(std::move(buffer));
  return static_cast<uint32_t>(kernel_.buffers.size() - 1);
}

int Builder::rare_depth() const {
  for (int d = depth(); d > 0; --d)
    if (scopes_[static_cast<size_t>(d)]->rare) return d;
  return 0;
}

int Builder::load_floor(uint32_t buffer) const {
  if (kernel_.buffers[buffer].written) return depth();
  for (int d = depth(); d > 0; --d)
    if (scopes_[static_cast<size_t>(d)]->conditional) return d;
  return 0;
}

Val Builder::load_of(uint32_t buffer, std::vector<Val> args, Type type) {
  Proto proto{.op = Op::kLoad, .type = type, .args = std::move(args), .buffer = buffer};
  if (!kernel_.buffers[buffer].written) return emit(proto, load_floor(buffer));
  for (Val arg : proto.args) depth_of(arg);
  return append(proto, depth());
}

Val Builder::load(uint32_t buffer, Val index) {
  return load_of(buffer, {index}, type_of(kernel_.buffers.at(buffer).dtype));
}

Val Builder::load_bytes(uint32_t buffer, Val index, Type type) {
  return load_of(buffer, {index}, type);
}

Val Builder::load_if(uint32_t buffer, Val index, Val predicate, Val other) {
  if (predicate->op == Op::kConst) return predicate->imm_int != 0 ? load(buffer, index) : other;
  return load_of(buffer, {index, predicate, other}, other->type);
}

void Builder::store(uint32_t buffer, Val index, Val value, bool streaming) {
  effect({.op = Op::kStore,
          .type = Type::kVoid,
          .args = {index, value},
          .buffer = buffer,
          .streaming = streaming});
}

void Builder::store_if(uint32_t buffer, Val index, Val value, Val predicate) {
  if (predicate->op == Op::kConst) {
    if (predicate->imm_int != 0) store(buffer, index, value);
    return;
  }
  effect(
      {.op = Op::kStore, .type = Type::kVoid, .args = {index, value, predicate}, .buffer = buffer});
}

void Builder::check(Val condition, int64_t code) {
  if (condition->op == Op::kConst && condition->imm_int != 0) return;
  effect({.op = Op::kCheck, .type = Type::kVoid, .args = {condition}, .imm_int = code});
}

void Builder::prefetch(uint32_t buffer, Val index, bool far) {
  effect({.op = Op::kPrefetch,
          .type = Type::kVoid,
          .args = {index},
          .buffer = buffer,
          .streaming = far});
}

void Builder::panel_dot(const PanelDot& panel, uint32_t sums, Val sums_index, Val left_index,
                        Val right_index, Val words, Val add, Val next) {
  std::vector<Val> args{sums_index, left_index, right_index, words, add};
  if (next != nullptr) args.push_back(next);
  for (Val arg : args) depth_of(arg);
  effect({.op = Op::kPanelDot, .type = Type::kVoid, .args = std::move(args), .buffer = sums});
  scopes_.back()->block->insts.back()->panel = std::make_unique<PanelDot>(panel);
}

void Builder::transpose(const Matrix& target, const Matrix& source, Val rows, Val columns,
                        bool streaming) {
  effect({.op = Op::kTranspose,
          .type = Type::kVoid,
          .args = {target.index, target.stride, source.index, source.stride, rows, columns},
          .buffer = target.buffer,
          .imm_int = source.buffer,
          .streaming = streaming});
}

}  // namespace tenon::kir
