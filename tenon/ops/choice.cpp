// where and cast.
#include "tenon/ops/checks.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/lanes.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Val;

namespace {

// --- where(condition, x, y): x where condition, else y ---
//
// where_c1: condition is bool. where_c2: x and y have one dtype. The shapes broadcast.

std::vector<TensorType> where_infer(const ir::InferArgs& args) {
  if (args.in[0].dtype != DType::kBool) {
    throw TypeError(fmt::format("where: condition must be bool, got {}", name(args.in[0].dtype)),
                    {.label = "where_c1"});
  }
  if (args.in[1].dtype != args.in[2].dtype) {
    throw TypeError(fmt::format("where: x and y must have one dtype, got {} and {}",
                                name(args.in[1].dtype), name(args.in[2].dtype)),
                    {.label = "where_c2"});
  }
  return {{args.in[1].dtype,
           broadcast_shapes("where", {args.in[0].shape, args.in[1].shape, args.in[2].shape})}};
}

template <size_t kBytes>
void choose(const ir::EvalArgs& args, Literal& result) {
  using Element = std::array<std::byte, kBytes>;
  const auto& dims = args.out[0].dims;
  std::vector<std::vector<int64_t>> strides;
  for (const Literal& in : args.in) strides.push_back(broadcast_strides(in.dims(), dims));
  const auto* c = args.in[0].as<uint8_t>();
  const auto* x = args.in[1].as<Element>();
  const auto* y = args.in[2].as<Element>();
  auto* out = result.as_mutable<Element>();
  for_each_run(dims, std::move(strides), [&](const Run& run) {
    for (int64_t i = 0; i < run.count; ++i) {
      out[run.first + i] = c[run.at[0] + i * run.step[0]] != 0 ? x[run.at[1] + i * run.step[1]]
                                                               : y[run.at[2] + i * run.step[2]];
    }
  });
}

std::vector<Literal> where_eval(const ir::EvalArgs& args) {
  Literal result(args.out[0].dtype, args.out[0].dims);
  switch (size_of(result.dtype())) {
    case 1: choose<1>(args, result); break;
    case 2: choose<2>(args, result); break;
    case 4: choose<4>(args, result); break;
    default: choose<8>(args, result); break;
  }
  return {std::move(result)};
}

Val where_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  Val v[3];
  for (size_t k = 0; k < 3; ++k) {
    const ir::Value& operand = node.operands[k];
    v[k] = ctx.element(operand, broadcast_index(b, operand.shape(), node.types[0].shape, index));
  }
  return b.select(v[0], v[1], v[2]);
}

std::vector<ir::Sample> where_samples() {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    samples.push_back({.in = {{DType::kBool, {4, 3}}, {dtype, {4, 3}}, {dtype, {4, 3}}}});
  }
  samples.push_back({.in = {{DType::kBool, {"n", 1}}, {DType::kF32, {5}}, {DType::kF32, {}}}});
  samples.push_back({.in = {{DType::kBool, {}}, {DType::kI32, {0, 2}}, {DType::kI32, {2}}}});
  return samples;
}

// --- cast(x, dtype) ---

std::vector<TensorType> cast_infer(const ir::InferArgs& args) {
  return {{args.attrs.dtype("dtype"), args.in[0].shape}};
}

template <class T>
void cast_lanes(const Literal& from, Literal& to) {
  alignas(64) T run[kRun];
  for (int64_t i = 0; i < from.count(); i += kRun) {
    const int64_t n = std::min(kRun, from.count() - i);
    read_run(from, i, 1, n, run);
    visit_storage(to.dtype(), [&]<class S>(S) {
      S* out = to.as_mutable<S>() + i;
      for (int64_t k = 0; k < n; ++k) out[k] = store_element<S>(run[k]);
    });
  }
}

void cast_complex(const Literal& from, Literal& to) {
  const auto* in = from.as<std::complex<float>>();
  visit_storage(to.dtype(), [&]<class S>(S) {
    S* out = to.as_mutable<S>();
    for (int64_t i = 0; i < from.count(); ++i) {
      if constexpr (kIsComplex<S>) {
        out[i] = in[i];
      } else if constexpr (std::same_as<S, bool>) {
        out[i] = in[i] != std::complex<float>(0);
      } else {
        out[i] = store_element<S>(in[i].real());
      }
    }
  });
}

std::vector<Literal> cast_eval(const ir::EvalArgs& args) {
  const Literal& from = args.in[0];
  Literal to(args.out[0].dtype, args.out[0].dims);
  switch (lane_of(from.dtype())) {
    case Lane::kF32: cast_lanes<float>(from, to); break;
    case Lane::kF64: cast_lanes<double>(from, to); break;
    case Lane::kI64: cast_lanes<int64_t>(from, to); break;
    case Lane::kBool:
    case Lane::kU64: cast_lanes<uint64_t>(from, to); break;
    case Lane::kC64: cast_complex(from, to); break;
  }
  return {std::move(to)};
}

Val cast_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  const ir::Value& x = node.operands[0];
  return cast(ctx.builder(), ctx.element(x, index), x.dtype(), node.types[0].dtype);
}

std::vector<ir::Sample> cast_samples() {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) {
    for (int k = 0; k < kDTypeCount; ++k) {
      samples.push_back({.in = {{static_cast<DType>(i), {3, "n"}}},
                         .attrs = {{"dtype", static_cast<DType>(k)}},
                         .lo = -300,
                         .hi = 300});
    }
  }
  return samples;
}

}  // namespace

namespace op {

const ir::OpDef where{
    .name = "where",
    .doc = "x where the condition (bool) holds, else y; all three broadcast.",
    .traits = ir::kElementwise,
    .min_operands = 3,
    .max_operands = 3,
    .infer = where_infer,
    .eval = where_eval,
    .lower = where_lower,
};
TENON_OP_SAMPLES(where, where_samples)

const ir::OpDef cast{
    .name = "cast",
    .doc =
        "Conversion of each element: float to integer truncates, saturates and makes NaN 0; to "
        "bool: not 0; integers wrap; integers reach f16 and bf16 through f32.",
    .traits = ir::kElementwise,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"dtype", DType::kF32, true}},
    .infer = cast_infer,
    .eval = cast_eval,
    .lower = cast_lower,
};
TENON_OP_SAMPLES(cast, cast_samples)

}  // namespace op

std::vector<const ir::OpDef*> choice_ops() { return {&op::where, &op::cast}; }

DType float_of(DType dtype) {
  if (!is_integer(dtype) && dtype != DType::kBool) return dtype;
  return size_of(dtype) <= 2 ? DType::kF32 : DType::kF64;
}

Value where(const Value& condition, const Value& x, const Value& y, LocationPtr location) {
  const DType common = promote(x.dtype(), y.dtype());
  return ir::make(op::where, {condition, cast(x, common, location), cast(y, common, location)}, {},
                  location);
}

Value cast(const Value& x, DType dtype, LocationPtr location) {
  if (x.dtype() == dtype) return x;
  return ir::make(op::cast, {x}, {{"dtype", dtype}}, std::move(location));
}

}  // namespace tenon::ops
