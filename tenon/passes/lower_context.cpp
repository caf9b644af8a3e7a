#include "tenon/passes/lower_context.h"

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"
#include "tenon/passes/access.h"

namespace tenon::passes {

using kir::Val;

GroupContext::GroupContext(kir::Builder& builder, BufferMap buffers, ElementMap elements)
    : builder_(builder), buffers_(std::move(buffers)), elements_(std::move(elements)) {}

size_t GroupContext::KeyHash::operator()(const Key& key) const {
  size_t hash = ir::ValueHash()(key.value) * 31 + std::hash<const void*>()(key.predicate);
  for (Val v : key.index) hash = hash * 1000003 + std::hash<const void*>()(v);
  return hash;
}

std::optional<uint32_t> GroupContext::buffer_of(const ir::Value& value) const {
  auto it = buffers_.find(value);
  return it == buffers_.end() ? std::nullopt : std::optional(it->second);
}

void GroupContext::set_element(const ir::Value& value, ElementFn element) {
  elements_[value] = std::move(element);
  remembered_.clear();
}

Val GroupContext::element(const ir::Value& value, std::span<const Val> index) {
  check_internal(index.size() == value.shape().size(), "an index has the rank of its value");
  Key key{value, {index.begin(), index.end()}, predicate_};
  auto it = remembered_.find(key);
  if (it != remembered_.end()) {
    const Remembered& found = it->second;
    if (found.depth <= builder_.depth() && builder_.serial(found.depth) == found.serial) {
      return found.value;
    }
  }
  Val result = compute(value, index);
  const int depth = builder_.depth_of(result);
  remembered_[std::move(key)] = {result, depth, builder_.serial(depth)};
  return result;
}

Val GroupContext::element_if(const ir::Value& value, std::span<const Val> index, Val predicate) {
  Val outer = predicate_;
  predicate_ = outer == nullptr ? predicate : builder_.binary(kir::Op::kAnd, outer, predicate);
  Val result = element(value, index);
  predicate_ = outer;
  return result;
}

Val GroupContext::bytes(const ir::Value& value, std::span<const Val> index, kir::Type type) {
  auto it = buffers_.find(value);
  if (predicate_ != nullptr || it == buffers_.end() || elements_.count(value) > 0) {
    return LowerContext::bytes(value, index, type);
  }
  return builder_.load_bytes(it->second, ops::flatten_index(builder_, value.shape(), index), type);
}

int GroupContext::predicate_depth() {
  return predicate_ == nullptr ? 0 : builder_.depth_of(predicate_);
}

Val GroupContext::compute(const ir::Value& value, std::span<const Val> index) {
  if (auto it = elements_.find(value); it != elements_.end()) return it->second(index);
  return computed(value, index);
}

Val GroupContext::computed(const ir::Value& value, std::span<const Val> index) {
  if (auto it = buffers_.find(value); it != buffers_.end()) return load(value, it->second, index);
  const ir::Node& node = *value.node;
  if (is_scalar_constant(node)) return scalar_constant(node);
  check_internal(node.op->lower != nullptr, "an inlined op has an element form");
  if (predicate_ != nullptr && node.op->is(ir::kAnchor)) {
    return compute_guarded(node, value.index, index);
  }
  return node.op->lower(*this, node, value.index, index);
}

// Loops of an op stand where its index is known, which may be outside the block of the predicate.
// An index that follows the predicate keeps them inside; without any index every element exists.
Val GroupContext::compute_guarded(const ir::Node& node, uint32_t result,
                                  std::span<const Val> index) {
  Val outer = predicate_;
  if (index.empty()) {
    predicate_ = nullptr;
    Val value = node.op->lower(*this, node, result, index);
    predicate_ = outer;
    return value;
  }
  std::vector<Val> guarded(index.begin(), index.end());
  for (Val& v : guarded) v = builder_.select(outer, v, builder_.i64(0));
  return node.op->lower(*this, node, result, guarded);
}

Val GroupContext::load(const ir::Value& value, uint32_t buffer, std::span<const Val> index) {
  Val flat = ops::flatten_index(builder_, value.shape(), index);
  if (predicate_ == nullptr) return builder_.load(buffer, flat);
  const kir::Type type = kir::type_of(value.dtype());
  Val other =
      kir::is_float(type) ? builder_.constant_float(type, 0.0) : builder_.constant_int(type, 0);
  return builder_.load_if(buffer, flat, predicate_, other);
}

Val GroupContext::scalar_constant(const ir::Node& node) {
  const Literal& value = node.attrs.get<Literal>("value");
  const kir::Type type = kir::type_of(value.dtype());
  if (kir::is_float(type)) return builder_.constant_float(type, value.get_double(0));
  return builder_.constant_int(type, value.get_int(0));
}

}  // namespace tenon::passes
