// Elementwise functions, norms, reductions, movement, attention.
#include "harness.h"

namespace tenon::bench {
namespace {

const tn::Shape kSquare = {4096, 4096};

Json gelu_fresh() {
  // The second call keeps the first result, so its memory is new.
  auto fast = tn::compile(gelu);
  const tn::Tensor x = normal({32, 1000, 4096});
  fast(normal({16})).array();
  std::vector<tn::Tensor> kept;
  std::vector<double> times;
  for (int i = 0; i < 4; ++i) {
    const auto start = Clock::now();
    kept.push_back(fast(x));
    kept.back().array();
    times.push_back(ms_since(start));
  }
  times.erase(times.begin());
  return row("gelu_fresh", "ms", times);
}

tn::Tensor chain20(const tn::Tensor& in) {
  tn::Tensor x = in;
  for (int i = 0; i < 5; ++i) x = tn::sin(tn::exp(tn::tanh(x))) * 0.5f;
  return x;
}

// A row of one function of (4096, 4096).
template <class F>
void add_on_square(Rows& rows, const std::string& name, F fn) {
  add_row(rows, name, [=] { return unary(name, kSquare, fn); });
}

void add_attention(Rows& rows, const std::string& name, const tn::Shape& queries,
                   const tn::Shape& keys, tn::DType dtype,
                   const tn::AttentionOptions& options = {}) {
  add_row(rows, name, [=] {
    auto fast = tn::compile([=](const tn::Tensor& q, const tn::Tensor& k, const tn::Tensor& v) {
      return tn::attention(q, k, v, options);
    });
    const tn::Tensor q = tn::cast(normal(queries, 4), dtype).eval();
    const tn::Tensor k = tn::cast(normal(keys, 5), dtype).eval();
    const tn::Tensor v = tn::cast(normal(keys, 6), dtype).eval();
    return steady(name, [&] { fast(q, k, v).array(); });
  });
}

void add_masked_attention(Rows& rows, const std::string& name, const tn::Shape& shape,
                          tn::DType dtype) {
  add_row(rows, name, [=] {
    auto fast =
        tn::compile([](const tn::Tensor& q, const tn::Tensor& k, const tn::Tensor& v,
                       const tn::Tensor& mask) { return tn::attention(q, k, v, {.mask = mask}); });
    const auto random = [&](const tn::Shape& of, uint64_t seed) {
      return tn::cast(normal(of, seed), dtype).eval();
    };
    const tn::Tensor q = random(shape, 4), k = random(shape, 5), v = random(shape, 6);
    const tn::Tensor mask = random({shape[2], shape[2]}, 7);
    return steady(name, [&] { fast(q, k, v, mask).array(); });
  });
}

void add_attentions(Rows& rows) {
  const tn::Shape heads = {1, 16, 1024, 64};
  for (const auto& [kind, dtype] :
       {std::pair("", tn::f32), {"_bf16", tn::bf16}, {"_f16", tn::f16}}) {
    const std::string name = std::string("attention") + kind;
    add_attention(rows, name, heads, heads, dtype);
    add_attention(rows, name + "_causal", heads, heads, dtype, {.causal = true});
    add_attention(rows, name + "_decode", {1, 16, 1, 64}, {1, 16, 4096, 64}, dtype);
  }
  add_masked_attention(rows, "attention_bf16_masked", heads, tn::bf16);
}

void add_movement(Rows& rows) {
  add_on_square(rows, "transpose", [](const tn::Tensor& x) { return tn::transpose(x); });
  add_row(rows, "to_nhwc", [] {
    return unary("to_nhwc", {16, 64, 128, 128}, [](const tn::Tensor& x) {
      return tn::transpose(x, {0, 2, 3, 1});
    });
  });
  add_row(rows, "take_rows", [] {
    tn::Tensor indices = tn::random::randint(tn::random::key(1), {32768}, 0, 100000);
    indices.eval();
    const tn::Tensor x = normal({100000, 512});
    auto fast = tn::compile(
        [](const tn::Tensor& from, const tn::Tensor& at) { return tn::take(from, at); });
    return steady("take_rows", [&] { fast(x, indices).array(); });
  });
  add_row(rows, "scatter_rows", [] {
    tn::Tensor indices = tn::random::randint(tn::random::key(1), {32768}, 0, 100000);
    indices.eval();
    tn::Tensor x = normal({100000, 512});
    const tn::Tensor updates = normal({32768, 512}, 3);
    const auto write = tn::compile([](tn::Tensor& to, const tn::Tensor& at, const tn::Tensor& u) {
      to[at] = u;
    })(tn::BufferLayout(tn::f32, {100000, 512}), tn::TensorLayout(tn::i64, {32768}),
       tn::TensorLayout(tn::f32, {32768, 512}));
    return steady("scatter_rows", [&] { write(x, indices, updates); });
  });
  add_row(rows, "histogram", [] {
    tn::Tensor indices = tn::random::randint(tn::random::key(1), {1000000}, 0, 1000);
    indices.eval();
    auto fast = tn::compile([](const tn::Tensor& at) {
      return tn::scatter(tn::zeros({1000}, tn::i64), at, 1, 0, "add");
    });
    return steady("histogram", [&] { fast(indices).array(); });
  });
}

void add_sorts(Rows& rows) {
  const tn::Shape million = {1 << 20};
  add_row(rows, "sort",
          [=] { return unary("sort", million, [](const tn::Tensor& x) { return tn::sort(x); }); });
  add_row(rows, "argsort", [=] {
    return unary("argsort", million, [](const tn::Tensor& x) { return tn::argsort(x); });
  });
  add_row(rows, "top_k", [=] {
    return unary("top_k", million, [](const tn::Tensor& x) { return tn::top_k(x, 100).second; });
  });
  add_row(rows, "sort_rows", [] {
    return unary("sort_rows", {4096, 64}, [](const tn::Tensor& x) { return tn::sort(x); });
  });
}

}  // namespace

void add_kernel_rows(Rows& rows) {
  add_row(rows, "gelu", [] { return unary("gelu", {32, 1000, 4096}, gelu); });
  add_row(rows, "gelu_fresh", gelu_fresh);
  add_on_square(rows, "softmax", [](const tn::Tensor& x) { return tn::softmax(x); });
  add_on_square(rows, "layer_norm", [](const tn::Tensor& x) {
    return tn::layer_norm(x, tn::ones({4096}), tn::zeros({4096}));
  });
  add_on_square(rows, "rms_norm",
                [](const tn::Tensor& x) { return tn::rms_norm(x, tn::ones({4096})); });
  add_on_square(rows, "softmax_axis0", [](const tn::Tensor& x) { return tn::softmax(x, 0); });
  add_row(rows, "layer_norm_axis1", [] {
    return unary("layer_norm_axis1", {16, 64, 128, 128}, [](const tn::Tensor& x) {
      return tn::layer_norm(x, tn::ones({64, 1, 1}), tn::zeros({64, 1, 1}), 1e-5, 1);
    });
  });
  add_row(rows, "chain20", [] { return unary("chain20", {1024, 1024}, chain20); });
  add_on_square(rows, "sum_axis0", [](const tn::Tensor& x) { return tn::sum(x, 0); });
  add_on_square(rows, "sum_axis1", [](const tn::Tensor& x) { return tn::sum(x, 1); });
  add_on_square(rows, "var_all", [](const tn::Tensor& x) { return tn::var(x); });
  add_row(rows, "transpose_add", [] {
    const tn::Tensor y = normal(kSquare, 3);
    return unary("transpose_add", kSquare,
                 [y](const tn::Tensor& x) { return tn::transpose(x) + y; });
  });
  add_movement(rows);
  add_on_square(rows, "argmax", [](const tn::Tensor& x) { return tn::argmax(x, 1); });
  add_on_square(rows, "cumsum", [](const tn::Tensor& x) { return tn::cumsum(x, 1); });
  add_sorts(rows);
  add_attentions(rows);
}

}  // namespace tenon::bench
