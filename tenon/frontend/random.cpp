#include "tenon/frontend/random.h"

#include <atomic>

#include "tenon/frontend/layer.h"
#include "tenon/frontend/trace.h"
#include "tenon/ops/composite/random.h"
#include "tenon/ops/ops.h"

namespace tenon::random {
namespace {

std::atomic<uint64_t> process_seed{0};
std::atomic<int64_t> draws{0};

Tensor next_key(std::string_view op, Here at) {
  const ir::LocationPtr location = location_of(at);
  if (Trace::current() != nullptr) {
    throw TraceError(fmt::format("{}: a draw without a key would be the same at every call", op),
                     {.label = "random_trace",
                      .location = ir::str(location),
                      .hint = "make the key an argument: normal(key, shape)"});
  }
  const ir::Value number = ops::scalar_int(i64, draws.fetch_add(1), location);
  return wrap(ops::random::fold_in(ops::random::key(process_seed, location), number, location));
}

}  // namespace

Tensor key(uint64_t seed, Here at) { return wrap(ops::random::key(seed, location_of(at))); }

Tensor split(const Operand& key, const Dim& count) {
  const Call call("split", {&key});
  return call.result(ops::random::split(call[0], count, call.location()));
}

Tensor fold_in(const Operand& key, const Operand& data) {
  const Call call("fold_in", {&key});
  const Call number("fold_in", {&data});
  return call.result(ops::random::fold_in(call[0], number[0], call.location()));
}

void seed(uint64_t value) {
  process_seed = value;
  draws = 0;
}

Tensor uniform(const Operand& key, const Shape& shape, DType dtype, double lo, double hi) {
  const Call call("uniform", {&key});
  return call.result(ops::random::uniform(call[0], shape, dtype, lo, hi, call.location()));
}

Tensor normal(const Operand& key, const Shape& shape, DType dtype) {
  const Call call("normal", {&key});
  return call.result(ops::random::normal(call[0], shape, dtype, call.location()));
}

Tensor bernoulli(const Operand& key, const Operand& p, const Shape& shape) {
  const Call call("bernoulli", {&key});
  const Call chance("bernoulli", {&p});
  return call.result(ops::random::bernoulli(call[0], chance[0], shape, call.location()));
}

Tensor randint(const Operand& key, const Shape& shape, int64_t lo, int64_t hi, DType dtype) {
  const Call call("randint", {&key});
  return call.result(ops::random::randint(call[0], shape, lo, hi, dtype, call.location()));
}

Tensor categorical(const Operand& key, const Operand& logits, int64_t axis) {
  const Call call("categorical", {&key});
  const Call scores("categorical", {&logits});
  return call.result(ops::random::categorical(call[0], scores[0], axis, call.location()));
}

Tensor uniform(const Shape& shape, DType dtype, double lo, double hi, Here at) {
  return uniform(Operand(next_key("uniform", at), at), shape, dtype, lo, hi);
}

Tensor normal(const Shape& shape, DType dtype, Here at) {
  return normal(Operand(next_key("normal", at), at), shape, dtype);
}

}  // namespace tenon::random
