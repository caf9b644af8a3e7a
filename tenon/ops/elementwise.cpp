#include "tenon/ops/elementwise.h"

#include "tenon/kir/reference_math.h"
#include "tenon/ops/checks.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"

namespace tenon::ops {

using ir::DTypeClass;
using ir::TensorType;
using kir::Val;

namespace elt {

double erfinv(double x) { return kir::reference_math(kir::Op::kErfinv, x, 0.0); }
double gelu(double x) { return kir::reference_math(kir::Op::kGelu, x, 0.0); }

// The rows as functors. Names are those of the ops.
#define TENON_UNARY(NAME, CLASS, RESULT, MODE, EXPR, LO, HI, DOC) \
  struct NAME##_row { \
    static constexpr int kOperands = 1; \
    static constexpr DTypeClass kClass = DTypeClass::CLASS; \
    static constexpr ResultKind kResult = ResultKind::RESULT; \
    static constexpr Mode kMode = Mode::MODE; \
    static constexpr double kLo = LO, kHi = HI; \
    template <class T> \
    static auto apply(T x) { \
      return EXPR; \
    } \
  };
#define TENON_BINARY(NAME, CLASS, RESULT, MODE, EXPR, TRAITS, LO, HI, DOC) \
  struct NAME##_row { \
    static constexpr int kOperands = 2; \
    static constexpr DTypeClass kClass = DTypeClass::CLASS; \
    static constexpr ResultKind kResult = ResultKind::RESULT; \
    static constexpr Mode kMode = Mode::MODE; \
    static constexpr double kLo = LO, kHi = HI; \
    template <class T> \
    static auto apply(T x, T y) { \
      return EXPR; \
    } \
  };
#include "tenon/ops/binary.def"
#include "tenon/ops/unary.def"
#undef TENON_UNARY
#undef TENON_BINARY

}  // namespace elt

namespace op {

#define TENON_UNARY(NAME, CLASS, RESULT, MODE, EXPR, LO, HI, DOC) \
  const ir::OpDef NAME = RowRules<elt::NAME##_row>::def(#NAME, DOC, 0); \
  TENON_OP_SAMPLES(NAME, RowRules<elt::NAME##_row>::samples)
#define TENON_BINARY(NAME, CLASS, RESULT, MODE, EXPR, TRAITS, LO, HI, DOC) \
  const ir::OpDef NAME = RowRules<elt::NAME##_row>::def(#NAME, DOC, TRAITS); \
  TENON_OP_SAMPLES(NAME, RowRules<elt::NAME##_row>::samples)
#include "tenon/ops/binary.def"
#include "tenon/ops/unary.def"
#undef TENON_UNARY
#undef TENON_BINARY

}  // namespace op

std::vector<const ir::OpDef*> elementwise_ops() {
  return {
#define TENON_UNARY(NAME, ...) &op::NAME,
#define TENON_BINARY(NAME, ...) &op::NAME,
#include "tenon/ops/binary.def"
#include "tenon/ops/unary.def"
#undef TENON_UNARY
#undef TENON_BINARY
  };
}

DType result_dtype(ResultKind kind, DType operand) {
  if (kind == ResultKind::kBool) return DType::kBool;
  return kind == ResultKind::kReal && is_complex(operand) ? DType::kF32 : operand;
}

std::vector<TensorType> infer_elementwise(const ir::InferArgs& args, DTypeClass cls,
                                          ResultKind kind) {
  const DType dtype = check_same_dtype(args);
  check_dtype(args.op, dtype, cls);
  if (args.in.size() == 1) return {{result_dtype(kind, dtype), args.in[0].shape}};
  return {
      {result_dtype(kind, dtype), broadcast_shapes(args.op, {args.in[0].shape, args.in[1].shape})}};
}

namespace {

struct RunBuffers {
  alignas(64) std::byte in[2][kRun * sizeof(double)];
  alignas(64) std::byte out[kRun * sizeof(double)];
};

template <class T>
void eval_lanes(const ir::EvalArgs& args, const RowLoops& loops, Lane lane, Literal& result) {
  const auto loop = loops.run[static_cast<int>(lane)];
  check_internal(loop != nullptr, "an elementwise row has no loop for its operand's lane");
  const auto& dims = args.out[0].dims;
  std::vector<std::vector<int64_t>> strides;
  for (const Literal& in : args.in) strides.push_back(broadcast_strides(in.dims(), dims));
  RunBuffers buffers;
  const bool to_bool = result.dtype() == DType::kBool;
  const bool to_real = std::same_as<T, std::complex<float>> && !is_complex(result.dtype());
  for_each_run(dims, std::move(strides), [&](const Run& run) {
    const void* in[2] = {buffers.in[0], buffers.in[1]};
    for (size_t k = 0; k < args.in.size(); ++k) {
      read_run(args.in[k], run.at[k], run.step[k], run.count, reinterpret_cast<T*>(buffers.in[k]));
    }
    loop(in, buffers.out, run.count);
    if (to_bool) {
      write_run(result, run.first, run.count, reinterpret_cast<const bool*>(buffers.out));
    } else if (to_real) {
      write_run(result, run.first, run.count, reinterpret_cast<const float*>(buffers.out));
    } else {
      write_run(result, run.first, run.count, reinterpret_cast<const T*>(buffers.out));
    }
  });
}

}  // namespace

std::vector<Literal> eval_elementwise(const ir::EvalArgs& args, const RowLoops& loops) {
  Literal result(args.out[0].dtype, args.out[0].dims);
  const Lane lane = lane_of(args.in[0].dtype(), loops.wide);
  switch (lane) {
    case Lane::kF32: eval_lanes<float>(args, loops, lane, result); break;
    case Lane::kF64: eval_lanes<double>(args, loops, lane, result); break;
    case Lane::kI64: eval_lanes<int64_t>(args, loops, lane, result); break;
    case Lane::kU64: eval_lanes<uint64_t>(args, loops, lane, result); break;
    case Lane::kBool: eval_lanes<bool>(args, loops, lane, result); break;
    case Lane::kC64: eval_lanes<std::complex<float>>(args, loops, lane, result); break;
  }
  return {std::move(result)};
}

std::vector<ir::Sample> elementwise_samples(int operands, DTypeClass cls, double lo, double hi) {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!ir::contains(cls, dtype)) continue;
    auto add = [&](std::vector<Shape> shapes) {
      std::vector<TensorType> in;
      for (int k = 0; k < operands; ++k) in.push_back({dtype, shapes[static_cast<size_t>(k)]});
      samples.push_back({.in = std::move(in), .lo = lo, .hi = hi});
    };
    add({{5, 7}, {5, 7}});
    add({{}, {}});
    add({{0, 3}, {0, 3}});
    add({{"n", 3}, {"n", 3}});
    if (operands == 1) continue;
    add({{4, 1, 3}, {5, 1}});
    add({{"n", 3}, {3}});
    add({{}, {"n"}});
  }
  return samples;
}

elt::Sym operand_element(LowerContext& ctx, const ir::Node& node, size_t operand,
                         std::span<const Val> index) {
  const ir::Value& value = node.operands[operand];
  kir::Builder& b = ctx.builder();
  const Index at = broadcast_index(b, value.shape(), node.types[0].shape, index);
  const Val element = to_arith(b, ctx.element(value, at));
  return {&b, element, is_half(value.dtype()) ? DType::kF32 : value.dtype()};
}

Val finish_element(const elt::Sym& value, DType result) {
  return from_arith(*value.b, value.v, result);
}

// --- functions ---

namespace {

// Integers, where an op takes floats only, become the float that holds the smaller ones exactly.
ir::Value as_operand(DTypeClass cls, const ir::Value& x, const ir::LocationPtr& location) {
  const bool floats_only = cls == DTypeClass::kFloat || cls == DTypeClass::kInexact;
  if (floats_only && is_integer(x.dtype())) return cast(x, float_of(x.dtype()), location);
  if (cls == DTypeClass::kBool && x.dtype() != DType::kBool && !is_complex(x.dtype())) {
    return cast(x, DType::kBool, location);
  }
  return x;
}

ir::Value unary(const ir::OpDef& def, DTypeClass cls, const ir::Value& x,
                const ir::LocationPtr& location) {
  return ir::make(def, {as_operand(cls, x, location)}, {}, location);
}

ir::Value binary(const ir::OpDef& def, DTypeClass cls, const ir::Value& x, const ir::Value& y,
                 const ir::LocationPtr& location) {
  const DType common = promote(x.dtype(), y.dtype());
  return ir::make(def,
                  {as_operand(cls, cast(x, common, location), location),
                   as_operand(cls, cast(y, common, location), location)},
                  {}, location);
}

}  // namespace

#define TENON_UNARY(NAME, CLASS, ...) \
  ir::Value NAME(const ir::Value& x, ir::LocationPtr location) { \
    return unary(op::NAME, DTypeClass::CLASS, x, location); \
  }
#define TENON_BINARY(NAME, CLASS, ...) \
  ir::Value NAME(const ir::Value& x, const ir::Value& y, ir::LocationPtr location) { \
    return binary(op::NAME, DTypeClass::CLASS, x, y, location); \
  }
#include "tenon/ops/binary.def"
#include "tenon/ops/unary.def"
#undef TENON_UNARY
#undef TENON_BINARY

}  // namespace tenon::ops
