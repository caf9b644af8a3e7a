// Groups: the partition of a graph into what becomes one step each.
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/graph.h"

namespace tenon::passes {

struct Group {
  enum class Kind : uint8_t {
    kLoops,        // one loop nest over `shape`
    kMatmul,       // a packed matrix product with its epilogue; `anchor` is the product
    kRoundRows,    // rows as integers of 8 bits; `anchor` gives its three roots
    kScan,         // cumulative operation along one axis; `anchor` is its only root
    kSort,         // puts rows in order; `anchor` is its only root
    kMerge,        // makes one row of two that are in order; `anchor` is its only root
    kSliceUpdate,  // writes a region of operand 0; `anchor` is its only root
    kScatter,      // writes elements of operand 0; `anchor` is its only root
    kCall,         // applies a shared body
    kHost,         // reference evaluation
    kView,         // a reshape: the same memory under another shape
    kAttention,    // streaming attention; `anchor` is its only root
  };
  Kind kind = Kind::kLoops;
  ir::NodePtr anchor;            // null for kLoops
  std::vector<ir::Value> roots;  // what it leaves in memory
  Shape shape;                   // of the roots of kLoops and kMatmul
  // kLoops: leading dimensions that the grid runs over, one grid index each combination; what row
  // reductions need. The rest are loops inside.
  size_t grid_dims = 0;
  bool rows = false;  // grid_dims is prescribed by reductions
  // kLoops: axes of `shape` whose loops stand inside all others, because reductions walk along them
  // (columns.h); sorted. Empty: loops stand in the order of the axes.
  std::vector<int> walked;
  bool scalar = false;  // the roots' last dimension is not the vector one (reductions run inside)
  std::vector<ir::Value> inputs;  // values in memory that it reads, by first use
  // kLoops: inputs of the iteration shape of which one iteration reads the element at its own index
  // and no other.
  std::vector<ir::Value> elementwise_inputs;
  std::vector<ir::NodePtr> members;  // operations inlined in it, in creation order
};

struct Partition {
  std::vector<Group> groups;  // in an order in which they can run
  std::string apart;          // why neighbours did not fuse, one line each; when asked for
};

std::string_view name(Group::Kind kind);
// Whether a group writes into memory that holds its anchor's first operand.
inline bool is_update(Group::Kind kind) {
  return kind == Group::Kind::kSliceUpdate || kind == Group::Kind::kScatter;
}

}  // namespace tenon::passes
