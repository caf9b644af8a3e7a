// threefry(key0, key1, counter): the counter-based generator behind composite/random.h.
#include <array>

#include "tenon/ops/checks.h"
#include "tenon/ops/lanes.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Op;
using kir::Type;
using kir::Val;

namespace {

// Threefry-2x32, 20 rounds: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011. Word: uint32_t, or a kernel value with the same operators.
constexpr std::array<int, 8> kRotations = {13, 15, 26, 6, 17, 29, 16, 24};
constexpr uint32_t kParity = 0x1BD11BDA;

uint32_t rotate(uint32_t x, int n) { return (x << n) | (x >> (32 - n)); }

template <class Word, class Constant>
std::array<Word, 2> rounds(Word k0, Word k1, Word x0, Word x1, const Constant& constant) {
  const std::array<Word, 3> key = {k0, k1, k0 ^ k1 ^ constant(kParity)};
  x0 = x0 + key[0];
  x1 = x1 + key[1];
  for (uint32_t group = 1; group <= 5; ++group) {
    for (size_t r = 0; r < 4; ++r) {
      x0 = x0 + x1;
      x1 = rotate(x1, kRotations[(group - 1) % 2 * 4 + r]) ^ x0;
    }
    x0 = x0 + key[group % 3];
    x1 = x1 + key[(group + 1) % 3] + constant(group);
  }
  return {x0, x1};
}

struct SymWord {
  kir::Builder* b;
  Val v;
  friend SymWord operator+(SymWord x, SymWord y) { return {x.b, x.b->add(x.v, y.v)}; }
  friend SymWord operator^(SymWord x, SymWord y) { return {x.b, x.b->binary(Op::kXor, x.v, y.v)}; }
  friend SymWord rotate(SymWord x, int n) {
    const Val up = x.b->binary(Op::kShl, x.v, x.b->constant_int(Type::kI32, n));
    const Val down = x.b->binary(Op::kLShr, x.v, x.b->constant_int(Type::kI32, 32 - n));
    return {x.b, x.b->binary(Op::kOr, up, down)};
  }
};

// threefry_c1: the keys are u32, the counter u64. The three broadcast.
std::vector<TensorType> threefry_infer(const ir::InferArgs& args) {
  if (args.in[0].dtype != DType::kU32 || args.in[1].dtype != DType::kU32 ||
      args.in[2].dtype != DType::kU64) {
    throw TypeError("threefry: takes u32 keys and a u64 counter",
                    {.label = "threefry_c1", .details = operand_types(args.in)});
  }
  return {{DType::kU64,
           broadcast_shapes(args.op, {args.in[0].shape, args.in[1].shape, args.in[2].shape})}};
}

std::vector<Literal> threefry_eval(const ir::EvalArgs& args) {
  Literal result(DType::kU64, args.out[0].dims);
  std::vector<std::vector<int64_t>> strides;
  for (const Literal& in : args.in) {
    strides.push_back(broadcast_strides(in.dims(), args.out[0].dims));
  }
  const auto* k0 = args.in[0].as<uint32_t>();
  const auto* k1 = args.in[1].as<uint32_t>();
  const auto* counter = args.in[2].as<uint64_t>();
  auto* out = result.as_mutable<uint64_t>();
  for_each_run(args.out[0].dims, std::move(strides), [&](const Run& run) {
    for (int64_t i = 0; i < run.count; ++i) {
      const uint64_t c = counter[run.at[2] + i * run.step[2]];
      const auto words = rounds(k0[run.at[0] + i * run.step[0]], k1[run.at[1] + i * run.step[1]],
                                static_cast<uint32_t>(c), static_cast<uint32_t>(c >> 32),
                                [](uint32_t v) { return v; });
      out[run.first + i] = words[0] | (static_cast<uint64_t>(words[1]) << 32);
    }
  });
  return {std::move(result)};
}

Val threefry_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  Val in[3];
  for (size_t k = 0; k < 3; ++k) {
    const Value& operand = node.operands[k];
    in[k] = ctx.element(operand, broadcast_index(b, operand.shape(), node.types[0].shape, index));
  }
  const Val shift = b.constant_int(Type::kI64, 32);
  const auto low = [&](Val v) { return SymWord{&b, b.convert(Op::kIntTrunc, Type::kI32, v)}; };
  const auto words =
      rounds(SymWord{&b, in[0]}, SymWord{&b, in[1]}, low(in[2]),
             low(b.binary(Op::kLShr, in[2], shift)), [&](uint32_t v) {
               return SymWord{&b, b.constant_int(Type::kI32, static_cast<int32_t>(v))};
             });
  const Val high = b.binary(Op::kShl, b.convert(Op::kZExt, Type::kI64, words[1].v), shift);
  return b.binary(Op::kOr, b.convert(Op::kZExt, Type::kI64, words[0].v), high);
}

std::vector<ir::Sample> threefry_samples() {
  return {{.in = {{DType::kU32, {}}, {DType::kU32, {}}, {DType::kU64, {37}}}, .hi = 1e6},
          {.in = {{DType::kU32, {3, 1}}, {DType::kU32, {3, 1}}, {DType::kU64, {"n"}}}, .hi = 1e6}};
}

}  // namespace

namespace op {

const ir::OpDef threefry{
    .name = "threefry",
    .doc = "Threefry-2x32-20: 64 random bits from two u32 key words and a u64 counter.",
    .traits = ir::kElementwise,
    .min_operands = 3,
    .max_operands = 3,
    .infer = threefry_infer,
    .eval = threefry_eval,
    .lower = threefry_lower,
};
TENON_OP_SAMPLES(threefry, threefry_samples)

}  // namespace op

std::vector<const ir::OpDef*> random_ops() { return {&op::threefry}; }

Value threefry(const Value& key0, const Value& key1, const Value& counter, LocationPtr location) {
  return ir::make(op::threefry, {key0, key1, counter}, {}, std::move(location));
}

}  // namespace tenon::ops
