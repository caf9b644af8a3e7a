#include "tenon/passes/lower_loops.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"
#include "tenon/ops/lower.h"
#include "tenon/passes/access.h"
#include "tenon/passes/call_next_row.h"

namespace tenon::passes {
namespace {

using kir::Val;

constexpr int64_t kSmallLast = 8;   // a last dimension below this does not fill vectors
constexpr int64_t kBlock = 4096;    // elements of a block of a long row
constexpr int64_t kFewRows = 64;    // fewer rows than this are cut into blocks
constexpr int64_t kShortRow = 256;  // shorter rows than this share a grid index
constexpr int64_t kManyGroups = 16;
constexpr int64_t kWorthTiling = 32;      // shorter sides of a transposed read stay as they are
constexpr int64_t kTile = 64;             // side of a tile of a transposed read
constexpr int64_t kWorthCalling = 64;     // elements of a row that is called before it is taken
constexpr int64_t kRowsAhead = 4;         // how many rows before
constexpr int64_t kBand = 32;             // rows that are turned side by side
constexpr int64_t kByteBand = 64;         // the same of bytes: a whole line of the result
constexpr int64_t kPiece = 128;           // columns of a band that one grid index turns
constexpr int64_t kLongestKept = 65536;   // elements of a row that a thread keeps in scratch
constexpr int64_t kLongestAhead = 16384;  // elements of a row that the second cache holds twice
constexpr int kWorthKeeping = 10;         // operations of an element that a row keeps

bool static_below(const Dim& dim, int64_t bound) { return dim.is_static() && dim.value() < bound; }

struct ById {
  bool operator()(const ir::Value& a, const ir::Value& b) const {
    return std::pair(a.node->id, a.index) < std::pair(b.node->id, b.index);
  }
};

class Nest {
 public:
  explicit Nest(KernelFrame& frame)
      : frame_(frame), b_(frame.builder()), shape_(frame.body().shape) {}

  void emit() {
    const size_t rank = shape_.size();
    const Dim count = product(shape_);
    if (count == Dim(1)) return one_element();
    const bool rows = frame_.group().rows;
    vector_ = !frame_.group().scalar;
    if (rank == 1 && vector_) return flat(count);
    if (rows) {
      nest(frame_.body().grid_dims);
      const Dim& row = shape_.back();
      const bool fits = row.is_static() && row.value() >= kShortRow && row.value() <= kLongestAhead;
      if (fits && frame_.body().grid_dims + 1 == rank) call_next_row(b_.kernel(), row.value());
      return;
    }
    if (static_below(shape_.back(), kSmallLast)) return flat(count);
    if (const std::optional<size_t> across = transposed_dim()) {
      const ir::Value& root = frame_.body().roots[0];
      const bool alone = frame_.body().roots.size() == 1 && root.node->op->name == "transpose";
      return alone && frame_.context().buffer_of(root.node->operands[0]) ? turn(*across)
                                                                         : tiles(*across);
    }
    const Dim outer = product(Shape(shape_.begin(), shape_.end() - 1));
    if (outer == Dim(1)) return flat(count);
    if (static_below(outer, kFewRows) && !static_below(shape_.back(), 2 * kBlock)) {
      return blocks(outer);
    }
    if (takes_rows()) return take_rows();
    nest(default_grid_dims());
  }

 private:
  size_t default_grid_dims() const {
    const size_t rank = shape_.size();
    if (rank < 3 || !static_below(shape_.back(), kShortRow)) return rank - 1;
    const Dim before = product(Shape(shape_.begin(), shape_.end() - 2));
    return static_below(before, kManyGroups) ? rank - 1 : rank - 2;
  }

  void one_element() {
    frame_.grid_loop(1, false, [&](Val) {
      const ops::Index index(shape_.size(), b_.i64(0));
      frame_.store_roots(index);
    });
  }

  void flat(const Dim& count) {
    frame_.grid_loop(count, true, [&](Val g) {
      if (shape_.size() == 1) return frame_.store_roots(std::vector<Val>{g});
      frame_.store_roots(ops::unflatten_index(b_, shape_, g));
    });
  }

  void nest(size_t grid_dims) {
    const Shape outer(shape_.begin(), shape_.begin() + static_cast<ptrdiff_t>(grid_dims));
    const std::vector<ir::Value> kept = values_to_keep();
    if (kept.size() == 1 && frame_.streams(0)) {
      if (const auto scalars = scalars_beside(kept[0]))
        return rows_in_turn(outer, kept[0], *scalars);
    }
    frame_.grid_loop(product(outer), false, [&](Val g) {
      ops::Index index = row_index(outer, g);
      for (const ir::Value& value : kept) keep_row(value, index, [](Val) {});
      inner_loops(index);
    });
  }

  // The only root is rows of an operand in memory, at positions that come from elsewhere: the
  // machine cannot foresee the next one.
  bool takes_rows() const {
    const ir::Value& root = frame_.body().roots[0];
    const ir::Node& node = *root.node;
    if (frame_.body().roots.size() != 1 || node.op->name != "take" || !vector_) return false;
    const ir::Value& from = node.operands[0];
    return frame_.context().buffer_of(from) && from.shape().size() == 2 &&
           node.attrs.i("axis") == 0 && frame_.streams(0) &&
           !static_below(shape_.back(), kWorthCalling);
  }

  void take_rows() {
    const ir::Node& node = *frame_.body().roots[0].node;
    const ir::Value& from = node.operands[0];
    const ir::Value& positions = node.operands[1];
    const Shape outer(shape_.begin(), shape_.end() - 1);
    const Dim rows = product(outer);
    frame_.grid_loop(rows, false, [&](Val g) {
      ops::Index index = row_index(outer, g);
      Val later =
          b_.binary(kir::Op::kSMin, b_.add(g, b_.i64(kRowsAhead)), b_.sub(b_.dim(rows), b_.i64(1)));
      b_.set_bound(later, rows);
      Val position = frame_.context().element(positions, row_index(outer, later));
      position = ops::cast(b_, position, positions.dtype(), DType::kI64);
      Val count = b_.dim(from.shape()[0]);
      Val from_end = b_.cmp(kir::Pred::kSLt, position, b_.i64(0));
      position = b_.select(from_end, b_.add(position, count), position);
      Val first = b_.mul(position, b_.dim(from.shape()[1]));
      kir::LoopSpec spec;
      spec.vector = true;
      spec.multiple = std::max<int64_t>(1, shape_.back().known_divisor());
      b_.loop(b_.i64(0), b_.dim(shape_.back()), spec, [&](Val j) {
        b_.prefetch(*frame_.context().buffer_of(from), b_.add(first, j), true);
        index.push_back(j);
        frame_.store_roots(index);
        index.pop_back();
      });
    });
  }

  ops::Index row_index(const Shape& outer, Val g) {
    return outer.size() == 1 ? ops::Index{g} : ops::unflatten_index(b_, outer, g);
  }

  // Results that are written past the caches hold up a loop that does little else. So each row's
  // results are written by the loop that computes what the next row keeps, just before that takes
  // their place; `scalars`, one of each a row, stay in scratch meanwhile.
  void rows_in_turn(const Shape& outer, const ir::Value& kept,
                    const std::vector<ir::Value>& scalars) {
    const auto finishing = std::make_shared<bool>(false);
    std::vector<uint32_t> cells;
    for (const ir::Value& scalar : scalars) {
      const uint32_t cell = b_.add_scratch("cell", scalar.dtype(), Dim(1));
      cells.push_back(cell);
      frame_.context().set_element(
          scalar, [this, scalar, cell, finishing](std::span<const Val> at) {
            const ir::Node& node = *scalar.node;
            return *finishing ? b_.load(cell, b_.i64(0))
                              : node.op->lower(frame_.context(), node, scalar.index, at);
          });
    }
    const auto finish = [&](Val g, Val j) {
      ops::Index index = row_index(outer, g);
      index.push_back(j);
      *finishing = true;
      frame_.store_roots(index);
      *finishing = false;
    };
    const Dim rows = product(outer);
    frame_.grid_loop(rows, false, [&](Val g) {
      const ops::Index index = row_index(outer, g);
      Val before = b_.sub(g, b_.i64(1));
      b_.set_bound(before, rows);
      Val has_before = b_.cmp(kir::Pred::kSGt, g, b_.begin());
      keep_row(kept, index, [&](Val j) { b_.if_then(has_before, [&] { finish(before, j); }); });
      for (size_t k = 0; k < scalars.size(); ++k) {
        ops::Index at = index;
        at.push_back(b_.i64(0));
        b_.store(cells[k], b_.i64(0), frame_.context().element(scalars[k], at));
      }
    });
    b_.if_then(b_.cmp(kir::Pred::kSLt, b_.begin(), b_.end()), [&] {
      Val last = b_.sub(b_.end(), b_.i64(1));
      b_.set_bound(last, rows);
      kir::LoopSpec spec;
      spec.vector = true;
      spec.multiple = std::max<int64_t>(1, shape_.back().known_divisor());
      b_.loop(b_.i64(0), b_.dim(shape_.back()), spec, [&](Val j) { finish(last, j); });
    });
  }

  // The values, one a row, that the roots are computed from besides `kept` and what is in memory;
  // none when they need more than that.
  std::optional<std::vector<ir::Value>> scalars_beside(const ir::Value& kept) const {
    Shape one_each = shape_;
    one_each.back() = 1;
    std::vector<ir::Value> scalars;
    std::set<ir::Value, ById> seen;
    std::vector<ir::Value> stack = frame_.body().roots;
    while (!stack.empty()) {
      const ir::Value value = stack.back();
      stack.pop_back();
      const ir::Node& node = *value.node;
      if (value == kept || frame_.context().buffer_of(value) || !seen.insert(value).second)
        continue;
      if (node.op->is(ir::kLeaf)) continue;
      if (value.shape() == one_each) {
        scalars.push_back(value);
      } else if (node.op->is(ir::kElementwise)) {
        stack.insert(stack.end(), node.operands.begin(), node.operands.end());
      } else {
        return std::nullopt;
      }
    }
    return scalars;
  }

  void inner_loops(ops::Index& index) {
    const size_t at = index.size();
    if (at == shape_.size()) return frame_.store_roots(index);
    if (shape_[at] == Dim(1)) {
      index.push_back(b_.i64(0));
      inner_loops(index);
      index.pop_back();
      return;
    }
    kir::LoopSpec spec;
    spec.vector = vector_ && at + 1 == shape_.size();
    if (spec.vector) spec.multiple = std::max<int64_t>(1, shape_[at].known_divisor());
    b_.loop(b_.i64(0), b_.dim(shape_[at]), spec, [&](Val i) {
      index.push_back(i);
      inner_loops(index);
      index.pop_back();
    });
  }

  // Every operation that the roots need.
  std::vector<ir::NodePtr> body_nodes() const {
    ir::Graph graph;
    graph.results = frame_.body().roots;
    return graph.nodes();
  }

  // The root dimension that runs along the last axis of a transposed operand.
  std::optional<size_t> transposed_dim() const {
    for (const ir::NodePtr& node : body_nodes()) {
      if (node->op->name != "transpose" || node->types[0].shape != shape_) continue;
      const std::vector<int64_t>& perm = node->attrs.ints("perm");
      const auto last = static_cast<int64_t>(perm.size()) - 1;
      const auto at = static_cast<size_t>(std::find(perm.begin(), perm.end(), last) - perm.begin());
      const bool wide =
          !static_below(shape_[at], kWorthTiling) && !static_below(shape_.back(), kWorthTiling);
      if (at + 1 < perm.size() && wide) return at;
    }
    return std::nullopt;
  }

  // What is costly and read both by a reduction along the row and by something else is computed
  // once a row and kept: the exponentials of a softmax.
  std::vector<ir::Value> values_to_keep() const {
    const size_t inner = frame_.body().grid_dims;
    std::vector<ir::Value> kept;
    if (!frame_.group().rows || inner + 1 != shape_.size() || !vector_) return kept;
    if (shape_.back().is_static() && shape_.back().value() > kLongestKept) return kept;
    // The only row has a constant index: its reductions stand before the row's loop begins.
    if (product(Shape(shape_.begin(), shape_.end() - 1)) == Dim(1)) return kept;
    std::map<ir::Value, std::pair<int, int>, ById> readers;  // reductions, others
    for (const ir::NodePtr& node : body_nodes()) {
      // Anything else might ask for an element of another row.
      const bool same_row = node->op->is(ir::kElementwise) || node->op->is(ir::kReduction) ||
                            node->op->is(ir::kLeaf) || node->op->name == "broadcast_to";
      if (!same_row) return {};
      for (const ir::Value& operand : node->operands) {
        auto& [reductions, others] = readers[operand];
        const bool along = node->op->is(ir::kReduction) && operand.shape() == shape_ &&
                           reduced_axes(*node) == std::vector<int>{static_cast<int>(inner)};
        ++(along ? reductions : others);
      }
    }
    for (const auto& [value, count] : readers) {
      const bool costly = value.node->op->is(ir::kElementwise) && value.shape() == shape_ &&
                          element_cost(*value.node) >= kWorthKeeping;
      if (costly && count.first > 0 && count.first + count.second > 1) kept.push_back(value);
    }
    return kept;
  }

  // Keeps a row of `value` in scratch: the loop of a reduction that reads it stores what it
  // computes, and runs `before` for an element before that.
  void keep_row(const ir::Value& value, const ops::Index& index,
                const std::function<void(Val)>& before) {
    auto found = kept_rows_.find(value);
    if (found == kept_rows_.end()) {
      const uint32_t made = b_.add_scratch("row", value.dtype(), shape_.back());
      found = kept_rows_.emplace(value, made).first;
    }
    const uint32_t buffer = found->second;
    const auto kept = std::make_shared<bool>(false);
    const auto loads = std::make_shared<bool>(false);
    frame_.context().set_element(value, [=, this](std::span<const Val> at) {
      if (*kept || *loads) return b_.load(buffer, at.back());
      const ir::Node& node = *value.node;
      *loads = true;
      before(at.back());
      *loads = false;
      Val computed = node.op->lower(frame_.context(), node, value.index, at);
      b_.store(buffer, at.back(), computed);
      return computed;
    });
    const ir::Value reduction = reduction_of(value);
    ops::Index at = index;
    if (reduction.shape().size() > index.size()) at.push_back(b_.i64(0));
    frame_.context().element(reduction, at);
    *kept = true;
  }

  // A reduction along the rows of `value`.
  ir::Value reduction_of(const ir::Value& value) const {
    const std::vector<int> last = {static_cast<int>(shape_.size()) - 1};
    for (const ir::NodePtr& node : body_nodes()) {
      const bool reads = node->op->is(ir::kReduction) && node->operands[0] == value;
      if (reads && reduced_axes(*node) == last) return {node, 0};
    }
    throw InternalError("internal: a row is kept that no reduction reads");
  }

  // The only root is an operand in memory, transposed: bands of its rows are turned on the way from
  // there into the result. As many rows as a band has are read side by side, each along its line,
  // which is what the machine foresees.
  void turn(size_t across) {
    const ir::Value& root = frame_.body().roots[0];
    const ir::Value& operand = root.node->operands[0];
    const std::vector<int64_t>& perm = root.node->attrs.ints("perm");
    const auto along = static_cast<size_t>(perm.back());
    const Dim& length = shape_[across];
    const Dim& height = shape_.back();
    const int64_t band = size_of(root.dtype()) == 1 ? kByteBand : kBand;
    Shape outer(shape_.begin(), shape_.end() - 1);
    outer.erase(outer.begin() + static_cast<ptrdiff_t>(across));
    const Dim bands = floor_div(height + Dim(band - 1), Dim(band));
    const Dim pieces = floor_div(length + Dim(kPiece - 1), Dim(kPiece));
    const auto after = [](const Shape& shape, size_t d) {
      return product(Shape(shape.begin() + static_cast<ptrdiff_t>(d) + 1, shape.end()));
    };
    frame_.grid_loop(product(outer) * bands * pieces, false, [&](Val g) {
      Val piece = b_.index_rem(g, pieces);
      Val rest = b_.index_div(g, pieces);
      Val first_row = b_.mul(b_.index_rem(rest, bands), b_.i64(band));
      Val first_column = b_.mul(piece, b_.i64(kPiece));
      ops::Index index = ops::unflatten_index(b_, outer, b_.index_div(rest, bands));
      index.insert(index.begin() + static_cast<ptrdiff_t>(across), first_column);
      index.push_back(first_row);
      ops::Index at(perm.size());
      for (size_t d = 0; d < perm.size(); ++d) at[static_cast<size_t>(perm[d])] = index[d];
      b_.transpose(
          {frame_.root_buffer(0), ops::flatten_index(b_, shape_, index),
           b_.dim(after(shape_, across))},
          {*frame_.context().buffer_of(operand), ops::flatten_index(b_, operand.shape(), at),
           b_.dim(after(operand.shape(), along))},
          part_of(first_row, height, band), part_of(first_column, length, kPiece),
          frame_.streams(0));
    });
  }

  // How much of `part` elements from `first` on a side of `length` has.
  Val part_of(Val first, const Dim& length, int64_t part) {
    if (length.known_divisor() % part == 0) return b_.i64(part);
    return b_.binary(kir::Op::kSMin, b_.i64(part), b_.sub(b_.dim(length), first));
  }

  // Squares of the dimension that a transposed operand has last and of the roots' own last one: the
  // lines that a row of a tile touches are read again by the next row.
  void tiles(size_t across) {
    const Dim& height = shape_[across];
    const Dim& width = shape_.back();
    Shape outer(shape_.begin(), shape_.end() - 1);
    outer.erase(outer.begin() + static_cast<ptrdiff_t>(across));
    const Dim down = floor_div(height + Dim(kTile - 1), Dim(kTile));
    const Dim along = floor_div(width + Dim(kTile - 1), Dim(kTile));
    const std::vector<ir::NodePtr> staged = transposes_to_stage(across);
    std::vector<Copies> copies;
    for (const ir::NodePtr& node : staged) {
      const DType dtype = node->types[0].dtype;
      const uint32_t plain = b_.add_scratch("tile", dtype, Dim(kTile * kTile));
      copies.push_back({plain, b_.add_scratch("turned", dtype, Dim(kTile * kTile))});
    }
    frame_.grid_loop(product(outer) * down * along, false, [&](Val g) {
      Val column = b_.index_rem(g, along);
      Val rest = b_.index_div(g, along);
      Val row = b_.index_rem(rest, down);
      ops::Index index = ops::unflatten_index(b_, outer, b_.index_div(rest, down));
      index.insert(index.begin() + static_cast<ptrdiff_t>(across), nullptr);
      for (size_t k = 0; k < staged.size(); ++k) {
        stage(*staged[k], copies[k], index, across, row, column);
      }
      tile_side(row, height, false, [&](Val i) {
        index[across] = i;
        tile_side(
            column, width, true,
            [&](Val j) {
              index.push_back(j);
              frame_.store_roots(index);
              index.pop_back();
            },
            kTile);
      });
    });
  }

  // A tile of a transposed operand as it stands in memory, and turned.
  struct Copies {
    uint32_t plain;
    uint32_t turned;
  };

  // Transposes whose operand is copied a tile at a time and turned: those read at the loops' own
  // index, whose operands nothing else reads.
  std::vector<ir::NodePtr> transposes_to_stage(size_t across) const {
    std::map<ir::Value, int, ById> readers;
    for (const ir::NodePtr& node : body_nodes()) {
      for (const ir::Value& operand : node->operands) ++readers[operand];
    }
    for (const ir::Value& root : frame_.body().roots) ++readers[root];
    std::vector<ir::NodePtr> found;
    std::set<const ir::Node*> seen;
    std::vector<ir::Value> stack = frame_.body().roots;
    while (!stack.empty()) {
      const ir::NodePtr node = stack.back().node;
      stack.pop_back();
      if (node->types[0].shape != shape_ || !seen.insert(node.get()).second) continue;
      if (node->op->is(ir::kElementwise)) {
        stack.insert(stack.end(), node->operands.begin(), node->operands.end());
      } else if (node->op->name == "transpose" && readers.at(node->operands[0]) == 1) {
        const std::vector<int64_t>& perm = node->attrs.ints("perm");
        if (perm[across] + 1 == static_cast<int64_t>(perm.size())) found.push_back(node);
      }
    }
    return found;
  }

  // Copies a tile of the operand of `transpose` along its own last axis and turns it; its elements
  // are then loaded from there.
  void stage(const ir::Node& transpose, const Copies& copies, const ops::Index& outer,
             size_t across, Val row, Val column) {
    const ir::Value& operand = transpose.operands[0];
    const std::vector<int64_t>& perm = transpose.attrs.ints("perm");
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
          row, shape_[across], true,
          [&](Val i) {
            at.back() = i;
            b_.store(copies.plain, flat(line_of(at), place_of(at)),
                     frame_.context().element(operand, at));
          },
          next_tile(operand, along));
    });
    b_.transpose({copies.turned, b_.i64(0), b_.i64(kTile)},
                 {copies.plain, b_.i64(0), b_.i64(kTile)}, side_length(column, shape_.back()),
                 side_length(row, shape_[across]));
    const uint32_t turned = copies.turned;
    frame_.context().set_element(operand,
                                 [this, turned, flat, line_of, place_of](std::span<const Val> at) {
                                   return b_.load(turned, flat(place_of(at), line_of(at)));
                                 });
  }

  Val side_length(Val tile, const Dim& length) {
    return part_of(b_.mul(tile, b_.i64(kTile)), length, kTile);
  }

  // Elements from a row of a tile to that of the next one, when it is known.
  static int64_t next_tile(const ir::Value& operand, size_t along) {
    const Shape& shape = operand.shape();
    const Dim rows = product(Shape(shape.begin() + static_cast<ptrdiff_t>(along) + 1, shape.end()));
    return rows.is_static() ? kTile * rows.value() : 0;
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

  void blocks(const Dim& outer) {
    const Shape outer_shape(shape_.begin(), shape_.end() - 1);
    const Dim& length = shape_.back();
    const Dim count = floor_div(length + Dim(kBlock - 1), Dim(kBlock));
    frame_.grid_loop(outer * count, false, [&](Val g) {
      ops::Index index = ops::unflatten_index(b_, outer_shape, b_.index_div(g, count));
      Val first = b_.mul(b_.index_rem(g, count), b_.i64(kBlock));
      Val last = b_.binary(kir::Op::kSMin, b_.add(first, b_.i64(kBlock)), b_.dim(length));
      kir::LoopSpec spec;
      spec.vector = true;
      b_.loop(first, last, spec, [&](Val i) {
        b_.set_bound(i, length);
        index.push_back(i);
        frame_.store_roots(index);
        index.pop_back();
      });
    });
  }

  KernelFrame& frame_;
  kir::Builder& b_;
  const Shape& shape_;
  bool vector_ = true;
  std::map<ir::Value, uint32_t, ById> kept_rows_;
};

}  // namespace

void lower_loops(KernelFrame& frame) { Nest(frame).emit(); }

}  // namespace tenon::passes
