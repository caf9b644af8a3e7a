// What an operation is. An op *is* a pointer to its constant OpDef: there is no enum of ops and no
// switch over them. Everything an op means stands in its row or block in ops/.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tenon/base/literal.h"
#include "tenon/ir/graph.h"

namespace tenon::kir {
struct Inst;
}
namespace tenon::ops {
class LowerContext;  // ops/lower.h
}

namespace tenon::ir {

// Which element types an op takes, for checks, docs and tests.
enum class DTypeClass : uint8_t {
  kAny,          // all
  kArithmetic,   // everything but bool
  kInexact,      // f16, bf16, f32, f64, c64
  kNumeric,      // everything but bool and c64
  kReal,         // everything but c64
  kFloat,        // f16, bf16, f32, f64
  kInteger,      // i8 … u64
  kIntegerBool,  // integers and bool
  kBool,
};
bool contains(DTypeClass cls, DType dtype);
std::string_view name(DTypeClass cls);

enum Trait : uint32_t {
  kElementwise = 1 << 0,  // result element i depends on operand elements at (broadcast) i only
  kCommutative = 1 << 1,
  kMovement = 1 << 2,    // every result element is a copy of an operand element or a constant
  kReduction = 1 << 3,   // `axes` (ints) and `keepdims` (bool) attributes
  kLeaf = 1 << 4,        // no operands: constants, iota, external constants
  kStructural = 1 << 5,  // parameter, call: no evaluation of its own
  kAnchor = 1 << 6,      // lowered by a pass of its own (matmul, cumsum, slice_update, …)
  kHost = 1 << 7,        // runs through its reference evaluation in compiled programs too
};

struct InferArgs {
  std::string_view op;  // for error texts
  std::span<const TensorType> in;
  const Attrs& attrs;
};

// A result's concrete type, for evaluation.
struct ConcreteType {
  DType dtype;
  std::vector<int64_t> dims;
};

struct EvalArgs {
  const Attrs& attrs;  // symbolic dims already replaced by numbers
  std::span<const Literal> in;
  std::span<const ConcreteType> out;
};

struct AttrSpec {
  std::string_view name;
  Attr default_value;  // gives the kind
  bool required = false;
};

// One sample application for the property test of the op table.
struct Sample {
  std::vector<TensorType> in = {};  // static or symbolic (names are bound to small sizes)
  Attrs attrs = {};
  double lo = -2, hi = 2;  // range of random operand values
};

// The closed list of slots. A new one needs a decision record.
struct OpDef {
  std::string_view name;  // NumPy's or the array API's
  std::string_view doc;   // one sentence
  uint32_t traits = 0;
  int min_operands = 0;
  int max_operands = 0;  // -1: any number
  std::vector<AttrSpec> attrs = {};

  // Result types from operand types. Raises ShapeError, TypeError, ValueError with labels
  // "<op>_c<n>"; make_node adds the location.
  std::vector<TensorType> (*infer)(const InferArgs&) = nullptr;
  // Reference evaluation: the meaning of the op. Returns dense literals of the types in `out`.
  std::vector<Literal> (*eval)(const EvalArgs&) = nullptr;
  // Forward derivative, transposition, reverse rule, batching and sharding rules: set by
  // transforms' users; null where the op has none yet.
  void* jvp = nullptr;
  void* transpose = nullptr;
  void* vjp = nullptr;
  void* batch = nullptr;
  void* shard = nullptr;
  // Kernel code for one element: the value of result `result` of `node` at `index` (one i64 per
  // dimension of that result), pulling operand elements from the context. Null for anchors without
  // an element form and for host ops.
  kir::Inst* (*lower)(ops::LowerContext&, const Node& node, uint32_t result,
                      std::span<kir::Inst* const> index) = nullptr;

  bool is(Trait trait) const { return (traits & trait) != 0; }
};

// An op's samples, in the file that defines it. Tests alone look for them, by the section that they
// stand in: programs that link with --gc-sections do not carry them.
struct OpSamples {
  const OpDef* op;
  std::vector<Sample> (*make)();
};
#define TENON_OP_SAMPLES(OP, MAKE) \
  [[gnu::used, gnu::section("tenon_samples")]] const tenon::ir::OpSamples OP##_sampled{&OP, MAKE};

// The op of that name, or null. The table is filled by ops/registry.cpp (ir itself registers
// `parameter`, `constant`, `constant_external` and `call`).
const OpDef* find_op(std::string_view name);
void register_op(const OpDef* op);
// All ops, sorted by name.
std::vector<const OpDef*> all_ops();

// --- the ops that ir itself needs ---
// parameter {name: string, dtype, shape}; constant {value: literal};
// constant_external {name: string, relative: bool, dtype, shape}: data bound by name when the
// program is compiled, loaded or called; call {callee: graph, prefix: string}: operands are the
// callee's parameters, results its outputs().
extern const OpDef kParameter;
extern const OpDef kConstant;
extern const OpDef kConstantExternal;
extern const OpDef kCall;

Value make_constant(Literal value, LocationPtr location = nullptr);
std::vector<Value> make_call(GraphPtr callee, std::vector<Value> operands, std::string prefix,
                             LocationPtr location = nullptr);

}  // namespace tenon::ir
