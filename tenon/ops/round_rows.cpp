#include <numeric>

#include "tenon/base/error.h"
#include "tenon/ops/packed_qmatmul.h"
#include "tenon/ops/quantized.h"

namespace tenon::ops {
namespace {

using ir::TensorType;

std::vector<TensorType> round_infer(const ir::InferArgs& args) {
  const TensorType& x = args.in[0];
  check_internal(x.dtype == DType::kF32 && x.rank() >= 1, "rows of f32 are rounded");
  const auto per = [&](int64_t elements) {
    Shape shape(x.shape.begin(), x.shape.end() - 1);
    shape.push_back(floor_div(x.shape.back(), Dim(elements)));
    return TensorType{DType::kF32, shape};
  };
  return {{DType::kI8, x.shape}, per(kQuantBlock), per(args.attrs.i("group"))};
}

std::vector<Literal> round_eval(const ir::EvalArgs& args) {
  std::vector<Literal> out;
  for (const ir::ConcreteType& type : args.out) out.emplace_back(type.dtype, type.dims);
  const int64_t group = args.attrs.i("group");
  auto* codes = out[0].as_mutable<int8_t>();
  for (int64_t block = 0; block < out[1].count(); ++block) {
    out[1].as_mutable<float>()[block] =
        round_block(args.in[0].as<float>() + block * kQuantBlock, codes + block * kQuantBlock);
  }
  for (int64_t i = 0; i < out[2].count(); ++i) {
    const int8_t* first = codes + i * group;
    out[2].as_mutable<float>()[i] = static_cast<float>(std::accumulate(first, first + group, 0));
  }
  return out;
}

}  // namespace

const ir::OpDef kRoundRows = {
    .name = "round_rows",
    .doc = "Rows as integers of 8 bits, with a step for each 32 elements and sums of groups.",
    .traits = ir::kAnchor,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"group", int64_t{32}}},
    .infer = round_infer,
    .eval = round_eval,
};

}  // namespace tenon::ops
