#include "tenon/frontend/nn.h"

#include "tenon/frontend/trace.h"
#include "tenon/ops/composite/arrays.h"
#include "tenon/ops/composite/nn.h"
#include "tenon/ops/composite/statistics.h"

namespace tenon {
namespace {

std::optional<ir::Value> optional_value(const std::optional<Tensor>& tensor, std::string_view op,
                                        Here at) {
  if (!tensor) return std::nullopt;
  return resolve(*tensor, op, at);
}

}  // namespace

Tensor mean(const Operand& x, const Axes& axes, bool keepdims) {
  const Call call("mean", {&x});
  return call.result(ops::mean(call[0], axes.list, keepdims, call.location()));
}
Tensor Tensor::mean(const Axes& axes, bool keepdims, Here at) const {
  return tenon::mean(Operand(*this, at), axes, keepdims);
}

Tensor var(const Operand& x, const Axes& axes, bool keepdims, int64_t ddof) {
  const Call call("var", {&x});
  return call.result(ops::var(call[0], axes.list, keepdims, ddof, call.location()));
}

Tensor stddev(const Operand& x, const Axes& axes, bool keepdims, int64_t ddof) {
  const Call call("stddev", {&x});
  return call.result(ops::stddev(call[0], axes.list, keepdims, ddof, call.location()));
}

Tensor logsumexp(const Operand& x, const Axes& axes, bool keepdims) {
  const Call call("logsumexp", {&x});
  return call.result(ops::logsumexp(call[0], axes.list, keepdims, call.location()));
}

Tensor softmax(const Operand& x, int64_t axis) {
  const Call call("softmax", {&x});
  return call.result(ops::softmax(call[0], axis, call.location()));
}

Tensor log_softmax(const Operand& x, int64_t axis) {
  const Call call("log_softmax", {&x});
  return call.result(ops::log_softmax(call[0], axis, call.location()));
}

Tensor layer_norm(const Operand& x, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, double eps, int64_t axis) {
  const Call call("layer_norm", {&x});
  return call.result(ops::layer_norm(call[0], optional_value(weight, "layer_norm", x.at),
                                     optional_value(bias, "layer_norm", x.at), eps, axis,
                                     call.location()));
}

Tensor rms_norm(const Operand& x, const std::optional<Tensor>& weight, double eps, int64_t axis) {
  const Call call("rms_norm", {&x});
  return call.result(
      ops::rms_norm(call[0], optional_value(weight, "rms_norm", x.at), eps, axis, call.location()));
}

Tensor gelu_tanh(const Operand& x) {
  const Call call("gelu_tanh", {&x});
  return call.result(ops::gelu_tanh(call[0], call.location()));
}

Tensor softplus(const Operand& x) {
  const Call call("softplus", {&x});
  return call.result(ops::softplus(call[0], call.location()));
}

Tensor attention(const Operand& q, const Operand& k, const Operand& v,
                 const AttentionOptions& options) {
  const Call call("attention", {&q, &k, &v});
  ops::AttentionOptions inner;
  inner.mask = optional_value(options.mask, "attention", q.at);
  inner.scale = options.scale;
  inner.causal = options.causal;
  inner.window = options.window;
  inner.length = optional_value(options.length, "attention", q.at);
  return call.result(ops::attention(call[0], call[1], call[2], inner, call.location()));
}

Tensor rope(const Operand& x, const Operand& positions, const RopeOptions& options) {
  const Call call("rope", {&x});
  const Call where("rope", {&positions});
  ops::RopeOptions inner;
  inner.base = options.base;
  inner.interleaved = options.interleaved;
  inner.dims = options.dims;
  inner.frequencies = optional_value(options.frequencies, "rope", x.at);
  return call.result(ops::rope(call[0], where[0], inner, call.location()));
}

Tensor tril(const Operand& x, int64_t k) {
  const Call call("tril", {&x});
  return call.result(ops::tril(call[0], k, call.location()));
}

Tensor triu(const Operand& x, int64_t k) {
  const Call call("triu", {&x});
  return call.result(ops::triu(call[0], k, call.location()));
}

}  // namespace tenon
