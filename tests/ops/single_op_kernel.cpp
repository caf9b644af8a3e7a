#include "tests/ops/single_op_kernel.h"

#include "tenon/kir/builder.h"
#include "tenon/kir/evaluate.h"
#include "tenon/ops/lower.h"

namespace tenon::ops {
namespace {

using kir::Val;

class OperandContext : public LowerContext {
 public:
  OperandContext(kir::Builder& builder, const ir::Node& node) : builder_(builder), node_(node) {
    for (const ir::Value& operand : node.operands) {
      buffers_.push_back(builder.add_buffer("in", operand.dtype(), false));
    }
  }
  kir::Builder& builder() override { return builder_; }
  Val element(const ir::Value& value, std::span<const Val> index) override {
    for (size_t k = 0; k < node_.operands.size(); ++k) {
      if (!(node_.operands[k] == value)) continue;
      const Val flat = flatten_index(builder_, value.shape(), index);
      if (predicate_ == nullptr) return builder_.load(buffers_[k], flat);
      const kir::Type type = kir::type_of(value.dtype());
      const Val other =
          kir::is_float(type) ? builder_.constant_float(type, 0) : builder_.constant_int(type, 0);
      return builder_.load_if(buffers_[k], flat, predicate_, other);
    }
    throw InternalError("internal: an element of what is no operand");
  }
  Val element_if(const ir::Value& value, std::span<const Val> index, Val predicate) override {
    const Val outer = predicate_;
    predicate_ = outer == nullptr ? predicate : builder_.binary(kir::Op::kAnd, outer, predicate);
    const Val result = element(value, index);
    predicate_ = outer;
    return result;
  }
  int predicate_depth() override {
    return predicate_ == nullptr ? 0 : builder_.depth_of(predicate_);
  }

 private:
  kir::Builder& builder_;
  const ir::Node& node_;
  std::vector<uint32_t> buffers_;
  Val predicate_ = nullptr;
};

}  // namespace

Dim::Lookup lookup(const Sizes& sizes) {
  return [&sizes](std::string_view name) -> std::optional<int64_t> {
    auto it = sizes.find(name);
    if (it == sizes.end()) return std::nullopt;
    return it->second;
  };
}

std::vector<int64_t> numbers(const Shape& shape, const Sizes& sizes) {
  std::vector<int64_t> dims;
  for (const Dim& d : shape) dims.push_back(d.eval(lookup(sizes)));
  return dims;
}

kir::Kernel single_op_kernel(const ir::NodePtr& node, kir::LoopSpec spec) {
  const ir::TensorType& type = node->types[0];
  kir::Kernel kernel;
  kernel.name = node->op->name;
  kernel.grid = product(type.shape);
  kir::Builder b(kernel);
  OperandContext ctx(b, *node);
  const uint32_t out = b.add_buffer("out", type.dtype, true);
  spec.parallel = true;
  b.loop(b.begin(), b.end(), spec, [&](Val i) {
    b.set_bound(i, kernel.grid);
    const Index index = unflatten_index(b, type.shape, i);
    b.store(out, i, node->op->lower(ctx, *node, 0, index));
  });
  return kernel;
}

KernelRun run_kernel(const ir::NodePtr& node, std::span<const Literal> operands, const Sizes& sizes,
                     bool vector) {
  const ir::TensorType& type = node->types[0];
  const kir::Kernel kernel = single_op_kernel(node, {.vector = vector});
  KernelRun run{Literal(type.dtype, numbers(type.shape, sizes)), 0, kir::print(kernel)};
  kir::verify(kernel);
  std::vector<void*> buffers;
  for (const Literal& operand : operands) buffers.push_back(const_cast<std::byte*>(operand.data()));
  buffers.push_back(run.result.mutable_data());
  const std::vector<int64_t> dims = numbers(kernel.dims, sizes);
  std::vector<std::byte> scratch(static_cast<size_t>(kernel.scratch_bytes.eval(lookup(sizes))));
  kir::EvalArgs args;
  args.buffers = buffers.data();
  args.dims = dims.data();
  args.scratch = scratch.data();
  args.status = &run.status;
  kir::evaluate(kernel, args, 0, run.result.count());
  return run;
}

}  // namespace tenon::ops
