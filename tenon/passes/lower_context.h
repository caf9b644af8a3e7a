// The lowering context of a group: where the pull model's elements come from.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tenon/ir/graph.h"
#include "tenon/ops/lower.h"

namespace tenon::passes {

using BufferMap = std::unordered_map<ir::Value, uint32_t, ir::ValueHash>;

// Element of a value by its index: stands in for lowering its node (the accumulator of a product).
using ElementFn = std::function<kir::Val(std::span<const kir::Val> index)>;
using ElementMap = std::unordered_map<ir::Value, ElementFn, ir::ValueHash>;

class GroupContext : public ops::LowerContext {
 public:
  // `buffers`: values in memory, dense and row-major in their shape. `elements` come before
  // buffers, buffers before lowering.
  GroupContext(kir::Builder& builder, BufferMap buffers, ElementMap elements = {});

  kir::Builder& builder() override { return builder_; }
  kir::Val element(const ir::Value& value, std::span<const kir::Val> index) override;
  kir::Val element_if(const ir::Value& value, std::span<const kir::Val> index,
                      kir::Val predicate) override;
  kir::Val bytes(const ir::Value& value, std::span<const kir::Val> index, kir::Type type) override;
  int predicate_depth() override;

  // The buffer of a value in memory.
  std::optional<uint32_t> buffer_of(const ir::Value& value) const;

  // Replaces or adds a stand-in; what was remembered is forgotten.
  void set_element(const ir::Value& value, ElementFn element);
  // What a stand-in stands for: the element from memory or from the value's operation.
  kir::Val computed(const ir::Value& value, std::span<const kir::Val> index);

 private:
  struct Key {
    ir::Value value;
    std::vector<kir::Val> index;
    kir::Val predicate;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  // Valid while the block at `depth` is the one with this serial.
  struct Remembered {
    kir::Val value;
    int depth;
    uint64_t serial;
  };

  kir::Val compute(const ir::Value& value, std::span<const kir::Val> index);
  kir::Val compute_guarded(const ir::Node& node, uint32_t result, std::span<const kir::Val> index);
  kir::Val load(const ir::Value& value, uint32_t buffer, std::span<const kir::Val> index);
  kir::Val scalar_constant(const ir::Node& node);

  kir::Builder& builder_;
  BufferMap buffers_;
  ElementMap elements_;
  kir::Val predicate_ = nullptr;  // and of the open element_if predicates; null: none
  std::unordered_map<Key, Remembered, KeyHash> remembered_;
};

}  // namespace tenon::passes
