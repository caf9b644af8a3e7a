#include "tenon/passes/lower_transposed_reads.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "tenon/ir/op_def.h"
#include "tenon/passes/blocking.h"

namespace tenon::passes {
namespace {

using kir::Val;

constexpr int64_t kWorthTiling = 32;  // shorter sides of a transposed read stay as they are
constexpr int64_t kTile = 64;         // side of a tile

bool is_wide(const Dim& side) { return !side.is_static() || side.value() >= kWorthTiling; }

// Elements from a row of a tile to that of the next one, when it is known.
int64_t next_tile(const ir::Value& operand, size_t along) {
  const Shape& shape = operand.shape();
  const Dim rows = product(Shape(shape.begin() + static_cast<ptrdiff_t>(along) + 1, shape.end()));
  return rows.is_static() ? kTile * rows.value() : 0;
}

class Tiles {
 public:
  Tiles(KernelFrame& frame, size_t across)
      : frame_(frame), b_(frame.builder()), shape_(frame.body().shape), across_(across) {}

  void emit() {
    Shape outer(shape_.begin(), shape_.end() - 1);
    outer.erase(outer.begin() + static_cast<ptrdiff_t>(across_));
    const Dim down = ceil_div(shape_[across_], Dim(kTile));
    const Dim along = ceil_div(shape_.back(), Dim(kTile));
    std::vector<Staged> staged;
    for (const ir::NodePtr& node : transposes_to_stage()) {
      const DType dtype = node->types[0].dtype;
      const uint32_t plain = b_.add_scratch("tile", dtype, Dim(kTile * kTile));
      staged.push_back({*node, plain, b_.add_scratch("turned", dtype, Dim(kTile * kTile))});
    }
    frame_.grid_loop(product(outer) * down * along, false, [&](Val g) {
      Val column = b_.index_rem(g, along);
      Val rest = b_.index_div(g, along);
      Val row = b_.index_rem(rest, down);
      ops::Index index = ops::unflatten_index(b_, outer, b_.index_div(rest, down));
      index.insert(index.begin() + static_cast<ptrdiff_t>(across_), nullptr);
      for (const Staged& each : staged) stage(each, index, row, column);
      tile_side(row, shape_[across_], false, [&](Val i) {
        index[across_] = i;
        tile_side(
            column, shape_.back(), true,
            [&](Val j) {
              index.push_back(j);
              frame_.store_roots(index);
              index.pop_back();
            },
            kTile);
      });
    });
  }

 private:
  // A transpose whose operand is copied a tile at a time, as it stands in memory, and turned.
  struct Staged {
    const ir::Node& transpose;
    uint32_t plain;
    uint32_t turned;
  };

  // Those read at the loops' own index, whose operands nothing else reads.
  std::vector<ir::NodePtr> transposes_to_stage() const {
    std::unordered_map<ir::Value, int, ir::ValueHash> readers;
    for (const ir::NodePtr& node : nodes_of(frame_.body())) {
      for (const ir::Value& operand : node->operands) ++readers[operand];
    }
    for (const ir::Value& root : frame_.body().roots) ++readers[root];
    std::vector<ir::NodePtr> found;
    std::unordered_set<const ir::Node*> seen;
    std::vector<ir::Value> stack = frame_.body().roots;
    while (!stack.empty()) {
      const ir::NodePtr node = stack.back().node;
      stack.pop_back();
      if (node->types[0].shape != shape_ || !seen.insert(node.get()).second) continue;
      if (node->op->is(ir::kElementwise)) {
        stack.insert(stack.end(), node->operands.begin(), node->operands.end());
      } else if (node->op->name == "transpose" && readers.at(node->operands[0]) == 1) {
        const std::vector<int64_t>& perm = node->attrs.ints("perm");
        if (perm[across_] + 1 == static_cast<int64_t>(perm.size())) found.push_back(node);
      }
    }
    return found;
  }

  // Copies a tile of the operand along its own last axis and turns it; its elements are then
  // loaded from there.
  void stage(const Staged& staged, const ops::Index& outer, Val row, Val column) {
    const ir::Value& operand = staged.transpose.operands[0];
    const std::vector<int64_t>& perm = staged.transpose.attrs.ints("perm");
    const auto along = static_cast<size_t>(perm.back());
    Val first_row = b_.mul(row, b_.i64(kTile));
    Val first_column = b_.mul(column, b_.i64(kTile));
    auto line_of = [this, along, first_column](std::span<const Val> at) {
      return b_.sub(at[along], first_column);
    };
    auto place_of = [this, first_row](std::span<const Val> at) {
      return b_.sub(at.back(), first_row);
    };
    auto flat = [this](Val line, Val place) { return b_.add(b_.mul(line, b_.i64(kTile)), place); };
    ops::Index at(perm.size());
    for (size_t d = 0; d < outer.size(); ++d) at[static_cast<size_t>(perm[d])] = outer[d];
    tile_side(column, shape_.back(), false, [&](Val j) {
      at[along] = j;
      tile_side(
          row, shape_[across_], true,
          [&](Val i) {
            at.back() = i;
            b_.store(staged.plain, flat(line_of(at), place_of(at)),
                     frame_.context().element(operand, at));
          },
          next_tile(operand, along));
    });
    b_.transpose({staged.turned, b_.i64(0), b_.i64(kTile)},
                 {staged.plain, b_.i64(0), b_.i64(kTile)}, side_length(column, shape_.back()),
                 side_length(row, shape_[across_]));
    const uint32_t turned = staged.turned;
    frame_.context().set_element(operand,
                                 [this, turned, flat, line_of, place_of](std::span<const Val> at) {
                                   return b_.load(turned, flat(place_of(at), line_of(at)));
                                 });
  }

  Val side_length(Val tile, const Dim& length) {
    return part_length(b_, b_.mul(tile, b_.i64(kTile)), length, kTile);
  }

  // `ahead`: how many elements further on the next tile's part of a line stands.
  void tile_side(Val tile, const Dim& length, bool vector, const std::function<void(Val)>& body,
                 int64_t ahead = 0) {
    Val first = b_.mul(tile, b_.i64(kTile));
    kir::LoopSpec spec;
    spec.vector = vector;
    spec.ahead = ahead;
    if (length.known_divisor() % kTile == 0) {
      b_.loop(b_.i64(0), b_.i64(kTile), spec, [&](Val k) {
        Val i = b_.add(first, k);
        b_.set_bound(i, length);
        body(i);
      });
      return;
    }
    spec.interleave = vector ? 1 : 0;
    Val last = b_.binary(kir::Op::kSMin, b_.add(first, b_.i64(kTile)), b_.dim(length));
    b_.loop(first, last, spec, [&](Val i) {
      b_.set_bound(i, length);
      body(i);
    });
  }

  KernelFrame& frame_;
  kir::Builder& b_;
  const Shape& shape_;
  size_t across_;
};

}  // namespace

std::optional<size_t> transposed_dim(const KernelFrame& frame) {
  const Shape& shape = frame.body().shape;
  for (const ir::NodePtr& node : nodes_of(frame.body())) {
    if (node->op->name != "transpose" || node->types[0].shape != shape) continue;
    const std::vector<int64_t>& perm = node->attrs.ints("perm");
    const auto last = static_cast<int64_t>(perm.size()) - 1;
    const auto at = static_cast<size_t>(std::find(perm.begin(), perm.end(), last) - perm.begin());
    if (at + 1 < perm.size() && is_wide(shape[at]) && is_wide(shape.back())) return at;
  }
  return std::nullopt;
}

void lower_transposed_reads(KernelFrame& frame, size_t across) { Tiles(frame, across).emit(); }

}  // namespace tenon::passes
