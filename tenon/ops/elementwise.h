// What the rows of unary.def and binary.def share: the family's inference, evaluation, lowering and
// samples, from a row's functor.
#pragma once

#include <span>
#include <vector>

#include "tenon/ir/op_def.h"
#include "tenon/ops/lanes.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/scalar.h"
#include "tenon/ops/symbolic.h"

namespace tenon::ops {

enum class ResultKind : uint8_t { kSame, kBool, kReal };
enum class Mode : uint8_t { kExact, kMath };

// The loop of a row over one run, by lane; null where the row does not take the lane. Results are
// lanes of the same type, or bool, or float for kReal of c64.
struct RowLoops {
  void (*run[kLaneCount])(const void* const* in, void* out, int64_t n) = {};
  bool wide = false;  // f16, bf16 and f32 compute in double
};

DType result_dtype(ResultKind kind, DType operand);
std::vector<ir::TensorType> infer_elementwise(const ir::InferArgs& args, ir::DTypeClass cls,
                                              ResultKind kind);
std::vector<Literal> eval_elementwise(const ir::EvalArgs& args, const RowLoops& loops);
// One sample per rank pattern for every dtype of the class.
std::vector<ir::Sample> elementwise_samples(int operands, ir::DTypeClass cls, double lo, double hi);
// The operand's element at the broadcast index, in its arithmetic type.
elt::Sym operand_element(LowerContext& ctx, const ir::Node& node, size_t operand,
                         std::span<const kir::Val> index);
kir::Val finish_element(const elt::Sym& value, DType result);

template <class Row>
constexpr bool takes(Lane lane) {
  using C = ir::DTypeClass;
  constexpr C cls = Row::kClass;
  switch (lane) {
    case Lane::kF32: return Row::kMode == Mode::kExact && takes<Row>(Lane::kF64);
    case Lane::kF64: return cls != C::kInteger && cls != C::kIntegerBool && cls != C::kBool;
    case Lane::kI64:
    case Lane::kU64: return cls != C::kFloat && cls != C::kInexact && cls != C::kBool;
    case Lane::kBool:
      return cls == C::kAny || cls == C::kReal || cls == C::kIntegerBool || cls == C::kBool;
    case Lane::kC64: return cls == C::kAny || cls == C::kArithmetic || cls == C::kInexact;
  }
  return false;
}

template <class Row, class T>
void row_loop(const void* const* in, void* out, int64_t n) {
  if constexpr (Row::kOperands == 1) {
    using R = decltype(Row::apply(T{}));
    const T* x = static_cast<const T*>(in[0]);
    R* y = static_cast<R*>(out);
    for (int64_t i = 0; i < n; ++i) y[i] = Row::apply(x[i]);
  } else {
    using R = decltype(Row::apply(T{}, T{}));
    const T* a = static_cast<const T*>(in[0]);
    const T* b = static_cast<const T*>(in[1]);
    R* y = static_cast<R*>(out);
    for (int64_t i = 0; i < n; ++i) y[i] = Row::apply(a[i], b[i]);
  }
}

template <class Row>
RowLoops row_loops() {
  RowLoops loops{.wide = Row::kMode == Mode::kMath};
  if constexpr (takes<Row>(Lane::kF32)) loops.run[0] = row_loop<Row, float>;
  if constexpr (takes<Row>(Lane::kF64)) loops.run[1] = row_loop<Row, double>;
  if constexpr (takes<Row>(Lane::kI64)) loops.run[2] = row_loop<Row, int64_t>;
  if constexpr (takes<Row>(Lane::kU64)) loops.run[3] = row_loop<Row, uint64_t>;
  if constexpr (takes<Row>(Lane::kBool)) loops.run[4] = row_loop<Row, bool>;
  if constexpr (takes<Row>(Lane::kC64)) loops.run[5] = row_loop<Row, std::complex<float>>;
  return loops;
}

template <class Row>
struct RowRules {
  static std::vector<ir::TensorType> infer(const ir::InferArgs& args) {
    return infer_elementwise(args, Row::kClass, Row::kResult);
  }
  static std::vector<Literal> eval(const ir::EvalArgs& args) {
    return eval_elementwise(args, row_loops<Row>());
  }
  static kir::Inst* lower(LowerContext& ctx, const ir::Node& node, uint32_t,
                          std::span<kir::Inst* const> index) {
    const elt::Sym x = operand_element(ctx, node, 0, index);
    if constexpr (Row::kOperands == 1) {
      return finish_element(Row::apply(x), node.types[0].dtype);
    } else {
      const elt::Sym y = operand_element(ctx, node, 1, index);
      return finish_element(Row::apply(x, y), node.types[0].dtype);
    }
  }
  static std::vector<ir::Sample> samples() {
    return elementwise_samples(Row::kOperands, Row::kClass, Row::kLo, Row::kHi);
  }
  static ir::OpDef def(std::string_view name, std::string_view doc, uint32_t traits) {
    return {.name = name,
            .doc = doc,
            .traits = ir::kElementwise | traits,
            .min_operands = Row::kOperands,
            .max_operands = Row::kOperands,
            .infer = infer,
            .eval = eval,
            .lower = lower};
  }
};

}  // namespace tenon::ops
