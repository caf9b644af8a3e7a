#include "tenon/pipelines/llama/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tenon/frontend/functions.h"
#include "tenon/frontend/layer.h"
#include "tenon/frontend/nn.h"
#include "tenon/frontend/subgraph.h"

namespace tenon::pipelines {
namespace {

constexpr int64_t kRoomStep = 64;

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  return x * rsqrt(mean(square(x), -1, true) + static_cast<float>(eps)) * weight;
}

// What every block is given besides its input.
struct Shared {
  Tensor cos;    // f32[seq, 1, head_size / 2]
  Tensor sin;    // f32[seq, 1, head_size / 2]
  Tensor mask;   // f32[seq, room]: 0 where a token sees a position, else -inf
  Tensor start;  // i64[]: position of the first token
};
TENON_STRUCT(Shared, cos, sin, mask, start)

Shared shared_inputs(const LlamaConfig& config, const Tensor& positions, const Dim& room) {
  const int64_t pairs = config.head_size / 2;
  std::vector<double> frequencies;
  for (int64_t i = 0; i < pairs; ++i) {
    frequencies.push_back(std::pow(
        config.rope_base, -2.0 * static_cast<double>(i) / static_cast<double>(config.head_size)));
  }
  // Angles are reduced in f64: at position 8191 an f32 angle has lost four digits.
  Tensor angles = expand_dims(cast(positions, f64), {1, 2}) * tensor(frequencies, {1, 1, pairs});
  Tensor seen = expand_dims(arange(room, i32), 0) <= expand_dims(positions, 1);
  return {cast(cos(angles), f32), cast(sin(angles), f32), where(seen, 0.0f, -INFINITY),
          cast(positions[0], i64)};
}

// Turns the adjacent pairs of the last axis of x [seq, heads, head_size].
Tensor rope(const Tensor& x, int64_t heads, int64_t head_size, const Shared& shared) {
  Tensor pairs = reshape(x, {x.shape(0).dim(), heads, head_size / 2, 2});
  Tensor u = pairs[{Ellipsis, 0}];
  Tensor w = pairs[{Ellipsis, 1}];
  Tensor turned = stack({u * shared.cos - w * shared.sin, u * shared.sin + w * shared.cos}, -1);
  return reshape(turned, {x.shape(0).dim(), heads, head_size});
}

// The block's own tensors, by names relative to its prefix.
class BlockWeights {
 public:
  explicit BlockWeights(DType dtype) : dtype_(dtype) {}
  Tensor vector(const std::string& name, int64_t size) const {
    return constant_external(name, TensorLayout(f32, {size}), /*relative=*/true);
  }
  // x · Wᵀ for W [out, in].
  Tensor project(const Tensor& x, const std::string& name, int64_t out, int64_t in) const {
    Tensor w = constant_external(name, TensorLayout(dtype_, {out, in}), /*relative=*/true);
    return matmul(x, transpose(w));
  }

 private:
  DType dtype_;
};

Tensor attention(const LlamaConfig& c, const BlockWeights& w, const Tensor& x, const Shared& shared,
                 Tensor& keys, Tensor& values, const Tensor& block) {
  const Dim seq = x.shape(0).dim();
  const Dim room = values.shape(2).dim();
  const int64_t group = c.heads / c.kv_heads;
  const int64_t d = c.head_size;
  Tensor q = rope(reshape(w.project(x, "attn_q.weight", c.heads * d, c.width), {seq, c.heads, d}),
                  c.heads, d, shared);
  Tensor k =
      rope(reshape(w.project(x, "attn_k.weight", c.kv_heads * d, c.width), {seq, c.kv_heads, d}),
           c.kv_heads, d, shared);
  Tensor v = reshape(w.project(x, "attn_v.weight", c.kv_heads * d, c.width), {seq, c.kv_heads, d});

  Tensor zero = tensor(int64_t{0});
  keys.store(dynamic_slice_update(keys, expand_dims(transpose(k, {1, 2, 0}), 0),
                                  {block, zero, zero, shared.start}));
  values.store(dynamic_slice_update(values, expand_dims(transpose(v, {1, 0, 2}), 0),
                                    {block, zero, shared.start, zero}));
  Tensor own_keys =
      reshape(dynamic_slice(keys, {block, zero, zero, zero}, {1, c.kv_heads, d, room}),
              {c.kv_heads, d, room});
  Tensor own_values =
      reshape(dynamic_slice(values, {block, zero, zero, zero}, {1, c.kv_heads, room, d}),
              {c.kv_heads, room, d});

  // Query heads that share a key head are rows of one product.
  Tensor rows = reshape(transpose(q, {1, 0, 2}), {c.kv_heads, Dim(group) * seq, d});
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d)));
  Tensor scores =
      reshape(matmul(rows, own_keys), {c.kv_heads, group, seq, room}) * scale + shared.mask;
  Tensor weights = exp(scores - max(scores, -1, true));
  weights = weights / sum(weights, -1, true);
  Tensor mixed = matmul(reshape(weights, {c.kv_heads, Dim(group) * seq, room}), own_values);
  Tensor heads = transpose(reshape(mixed, {c.heads, seq, d}), {1, 0, 2});
  return w.project(reshape(heads, {seq, c.heads * d}), "attn_output.weight", c.width, c.heads * d);
}

Tensor feed_forward(const LlamaConfig& c, const BlockWeights& w, const Tensor& x) {
  Tensor gate = w.project(x, "ffn_gate.weight", c.feed_forward, c.width);
  Tensor up = w.project(x, "ffn_up.weight", c.feed_forward, c.width);
  return w.project(silu(gate) * up, "ffn_down.weight", c.width, c.feed_forward);
}

// The shared body: one block of the stack.
Tensor block(const LlamaConfig& c, DType dtype, const Tensor& x, const Shared& shared, Tensor& keys,
             Tensor& values, const Tensor& index) {
  const BlockWeights w(dtype);
  Tensor y = x;
  {
    Layer layer("attn");
    Tensor normed = rms_norm(y, w.vector("attn_norm.weight", c.width), c.norm_eps);
    y = y + attention(c, w, normed, shared, keys, values, index);
  }
  Layer layer("ffn");
  Tensor normed = rms_norm(y, w.vector("ffn_norm.weight", c.width), c.norm_eps);
  return y + feed_forward(c, w, normed);
}

}  // namespace

Tensor llama_forward(const LlamaConfig& config, DType weights, const Tensor& tokens,
                     const Tensor& positions, Tensor& keys, Tensor& values) {
  const TensorLayout table(weights, {config.vocabulary, config.width});
  Tensor embedding = constant_external("token_embd.weight", table);
  Tensor x = cast(take(embedding, tokens), f32);
  const Shared shared = shared_inputs(config, positions, values.shape(2).dim());
  auto body = [&config, weights](const Tensor& in, const Shared& given, Tensor& k, Tensor& v,
                                 const Tensor& index) {
    return block(config, weights, in, given, k, v, index);
  };
  for (int64_t i = 0; i < config.blocks; ++i) {
    Layer layer(fmt::format("blk.{}", i));
    auto call = as_subgraph(
        body, {.name = "block", .prefix = fmt::format("blk.{}.", i), .key = "llama.block"});
    x = call(x, shared, keys, values, tensor(i));
  }
  Tensor norm = constant_external("output_norm.weight", TensorLayout(f32, {config.width}));
  Tensor last = rms_norm(x[-1], norm, config.norm_eps);
  Tensor head = config.tied_head ? embedding : constant_external("output.weight", table);
  return cast(matmul(last, transpose(head)), f32);
}

LlamaProgram compile_llama(const LlamaConfig& config, DType weights, int64_t seq,
                           const Weights& data) {
  const Dim tokens = seq < 0 ? Dim("seq", {.min = 1}) : Dim(seq);
  const Dim room("room", {.min = 1});
  CompileOptions options;
  options.name = seq == 1 ? "decode" : "prompt";
  options.argument_names = {"tokens", "positions", "keys", "values"};
  options.weights = data;
  auto forward = [config, weights](const Tensor& ids, const Tensor& positions, Tensor& keys,
                                   Tensor& values) {
    return llama_forward(config, weights, ids, positions, keys, values);
  };
  return compile(forward, options)(
      TensorLayout(i32, {tokens}), TensorLayout(i32, {tokens}),
      BufferLayout(f32, {config.blocks, config.kv_heads, config.head_size, room}),
      BufferLayout(f32, {config.blocks, config.kv_heads, room, config.head_size}));
}

std::shared_ptr<LlamaModel> LlamaModel::load(const formats::GgufFile& file, DType weights,
                                             const Progress& progress) {
  const LlamaConfig config = LlamaConfig::from_gguf(file);
  const Weights data = decode_weights(file, weights, progress);
  return std::shared_ptr<LlamaModel>(new LlamaModel(
      config, compile_llama(config, weights, -1, data), compile_llama(config, weights, 1, data)));
}

LlamaCache LlamaModel::new_cache() const {
  LlamaCache cache;
  make_room(cache, kRoomStep);
  return cache;
}

namespace {

// Copies `rows` rows of `from` bytes into rows of `to` bytes; the rest is zero.
Tensor widen(const Tensor& old, DType dtype, std::vector<int64_t> dims, int64_t rows, size_t from,
             size_t to) {
  runtime::Array array = runtime::Array::empty(dtype, std::move(dims));
  auto* out = static_cast<std::byte*>(array.mutable_data());
  std::memset(out, 0, array.bytes());
  if (from > 0) {
    const auto* in = static_cast<const std::byte*>(old.array().data());
    for (int64_t i = 0; i < rows; ++i) {
      std::memcpy(out + static_cast<size_t>(i) * to, in + static_cast<size_t>(i) * from, from);
    }
  }
  return Tensor(std::move(array));
}

}  // namespace

void LlamaModel::make_room(LlamaCache& cache, int64_t tokens) const {
  if (tokens <= cache.room) return;
  const LlamaConfig& c = config_;
  const int64_t room =
      (std::max(tokens, cache.room + cache.room / 4) + kRoomStep - 1) / kRoomStep * kRoomStep;
  const auto row = [](int64_t elements) { return static_cast<size_t>(elements) * sizeof(float); };
  const int64_t heads = c.blocks * c.kv_heads;
  cache.keys = widen(cache.keys, f32, {c.blocks, c.kv_heads, c.head_size, room},
                     heads * c.head_size, row(cache.room), row(room));
  cache.values = widen(cache.values, f32, {c.blocks, c.kv_heads, room, c.head_size}, heads,
                       row(cache.room * c.head_size), row(room * c.head_size));
  cache.room = room;
}

std::vector<float> LlamaModel::step(std::span<const int32_t> tokens, LlamaCache& cache) const {
  const auto count = static_cast<int64_t>(tokens.size());
  if (count == 0) throw ValueError("llama: no tokens to run");
  for (int32_t token : tokens) {
    if (token >= 0 && token < config_.vocabulary) continue;
    throw ValueError(
        fmt::format("llama: token {} is outside the vocabulary of {}", token, config_.vocabulary));
  }
  if (cache.tokens + count > config_.context) {
    throw ValueError(fmt::format("llama: {} tokens after {} exceed the context of {}", count,
                                 cache.tokens, config_.context));
  }
  make_room(cache, cache.tokens + count);
  std::vector<int32_t> positions;
  for (int64_t i = 0; i < count; ++i) positions.push_back(static_cast<int32_t>(cache.tokens + i));
  const Tensor ids = tensor(std::vector<int32_t>(tokens.begin(), tokens.end()));
  const LlamaProgram& program = count == 1 ? decode_ : prompt_;
  Tensor logits = program(ids, tensor(positions), cache.keys, cache.values);
  cache.tokens += count;
  const auto* values = logits.array().as<float>();
  return {values, values + config_.vocabulary};
}

}  // namespace tenon::pipelines
