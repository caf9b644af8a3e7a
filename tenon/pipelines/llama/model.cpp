#include "tenon/pipelines/llama/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "tenon/frontend/functions.h"
#include "tenon/frontend/layer.h"
#include "tenon/frontend/nn.h"
#include "tenon/frontend/quantized.h"
#include "tenon/frontend/subgraph.h"
#include "tenon/pipelines/llama/packed_file.h"
#include "tenon/pipelines/llama/program_cache.h"
#include "tenon/program/program.h"
#include "tenon/runtime/cpu.h"

namespace tenon::pipelines {
namespace {

constexpr int64_t kRoomStep = 64;

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  return x * rsqrt(mean(square(x), -1, true) + static_cast<float>(eps)) * weight;
}

// What every block is given besides its input.
struct Shared {
  Tensor cos;     // f32[seq, 1, head_size / 2]
  Tensor sin;     // f32[seq, 1, head_size / 2]
  Tensor start;   // i64[]: position of the first token
  Tensor length;  // i64[]: of the cache that counts, the last token's own position included
};
TENON_STRUCT(Shared, cos, sin, start, length)

Shared shared_inputs(const LlamaConfig& config, const Tensor& positions) {
  const int64_t pairs = config.head_size / 2;
  std::vector<double> frequencies;
  for (int64_t i = 0; i < pairs; ++i) {
    frequencies.push_back(std::pow(
        config.rope_base, -2.0 * static_cast<double>(i) / static_cast<double>(config.head_size)));
  }
  // Angles are reduced in f64: at position 8191 an f32 angle has lost four digits.
  Tensor angles = expand_dims(cast(positions, f64), {1, 2}) * tensor(frequencies, {1, 1, pairs});
  return {cast(cos(angles), f32), cast(sin(angles), f32), cast(positions[0], i64),
          cast(positions[-1], i64) + int64_t{1}};
}

// x [batch, seq, heads * head_size] as [batch, seq, heads, head_size].
Tensor split_heads(const Tensor& x, int64_t heads, int64_t head_size) {
  return reshape(x, {x.shape(0).dim(), x.shape(1).dim(), heads, head_size});
}

// Turns the adjacent pairs of the last axis of x [batch, seq, heads, head_size].
Tensor rope(const Tensor& x, int64_t heads, int64_t head_size, const Shared& shared) {
  const Shape shape = {x.shape(0).dim(), x.shape(1).dim(), heads, head_size};
  Tensor pairs = reshape(x, {shape[0], shape[1], heads, head_size / 2, 2});
  Tensor u = pairs[{Ellipsis, 0}];
  Tensor w = pairs[{Ellipsis, 1}];
  Tensor turned = stack({u * shared.cos - w * shared.sin, u * shared.sin + w * shared.cos}, -1);
  return reshape(turned, shape);
}

// Rows `ids` of a table of the model, a matrix by its whole name.
struct Matrix {
  Tensor rows(const Tensor& ids) const {
    Tensor taken = take(data, ids);
    return encoding == nullptr ? cast(taken, f32) : dequantize(*encoding, taken);
  }
  // x · Wᵀ for W [out, in].
  Tensor project(const Tensor& x) const {
    if (encoding != nullptr) return qmatmul(*encoding, x, data, activations);
    return matmul(x, transpose(data));
  }

  Tensor data;
  const std::string* encoding;  // null: decoded
  Activations activations;
};

// `prefix` stands before `name`, which is relative to it, in the file.
Matrix matrix(const MatrixForm& form, const std::string& prefix, const std::string& name,
              int64_t out, int64_t in) {
  const std::string* encoding = form.encoding(prefix + name);
  TensorLayout layout(form.dtype, {out, in});
  if (encoding != nullptr) {
    layout = TensorLayout(u8, {out, quant::find_block_format(*encoding)->bytes_of(in)});
  }
  const bool relative = !prefix.empty();
  return {constant_external(name, layout, relative), encoding, form.activations};
}

// The block's own tensors, by names relative to its prefix.
class BlockWeights {
 public:
  BlockWeights(const MatrixForm& form, std::string prefix)
      : form_(form), prefix_(std::move(prefix)) {}
  Tensor vector(const std::string& name, int64_t size) const {
    return constant_external(name, TensorLayout(f32, {size}), /*relative=*/true);
  }
  Tensor project(const Tensor& x, const std::string& name, int64_t out, int64_t in) const {
    return matrix(form_, prefix_, name, out, in).project(x);
  }
  // What tells this block's body from those of blocks with other encodings.
  std::string encodings() const {
    std::string text;
    for (const auto& [name, encoding] : form_.encodings) {
      if (name.starts_with(prefix_)) text += "." + encoding;
    }
    return text;
  }

 private:
  const MatrixForm& form_;
  std::string prefix_;
};

Tensor attention(const LlamaConfig& c, const BlockWeights& w, const Tensor& x, const Shared& shared,
                 Tensor& keys, Tensor& values, const Tensor& block) {
  const Dim batch = x.shape(0).dim();
  const Dim seq = x.shape(1).dim();
  const Dim room = values.shape(3).dim();
  const int64_t d = c.head_size;
  Tensor q = rope(w.project(x, "attn_q.weight", c.heads * d, c.width), c.heads, d, shared);
  Tensor k = rope(w.project(x, "attn_k.weight", c.kv_heads * d, c.width), c.kv_heads, d, shared);
  Tensor v = split_heads(w.project(x, "attn_v.weight", c.kv_heads * d, c.width), c.kv_heads, d);

  Tensor zero = tensor(int64_t{0});
  keys.store(dynamic_slice_update(keys, expand_dims(transpose(k, {0, 2, 3, 1}), 0),
                                  {block, zero, zero, zero, shared.start}));
  values.store(dynamic_slice_update(values, expand_dims(transpose(v, {0, 2, 1, 3}), 0),
                                    {block, zero, zero, shared.start, zero}));
  const std::vector<Tensor> own = {block, zero, zero, zero, zero};
  Tensor own_keys = reshape(dynamic_slice(keys, own, {1, batch, c.kv_heads, d, room}),
                            {batch, c.kv_heads, d, room});
  Tensor own_values = reshape(dynamic_slice(values, own, {1, batch, c.kv_heads, room, d}),
                              {batch, c.kv_heads, room, d});

  AttentionOptions options;
  options.causal = true;
  options.length = shared.length;
  Tensor mixed = tenon::attention(transpose(q, {0, 2, 1, 3}), transpose(own_keys, {0, 1, 3, 2}),
                                  own_values, options);
  Tensor heads = transpose(mixed, {0, 2, 1, 3});
  return w.project(reshape(heads, {batch, seq, c.heads * d}), "attn_output.weight", c.width,
                   c.heads * d);
}

Tensor feed_forward(const LlamaConfig& c, const BlockWeights& w, const Tensor& x) {
  Tensor gate = w.project(x, "ffn_gate.weight", c.feed_forward, c.width);
  Tensor up = w.project(x, "ffn_up.weight", c.feed_forward, c.width);
  return w.project(silu(gate) * up, "ffn_down.weight", c.width, c.feed_forward);
}

// The shared body: one block of the stack.
Tensor block(const LlamaConfig& c, const BlockWeights& w, const Tensor& x, const Shared& shared,
             Tensor& keys, Tensor& values, const Tensor& index) {
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

Tensor llama_forward(const LlamaConfig& config, const MatrixForm& form, const Tensor& tokens,
                     const Tensor& positions, Tensor& keys, Tensor& values) {
  const Matrix embedding = matrix(form, "", "token_embd.weight", config.vocabulary, config.width);
  Tensor x = embedding.rows(tokens);
  const Shared shared = shared_inputs(config, positions);
  for (int64_t i = 0; i < config.blocks; ++i) {
    Layer layer(fmt::format("blk.{}", i));
    const std::string prefix = fmt::format("blk.{}.", i);
    const BlockWeights weights(form, prefix);
    auto body = [&](const Tensor& in, const Shared& given, Tensor& k, Tensor& v,
                    const Tensor& index) { return block(config, weights, in, given, k, v, index); };
    auto call = as_subgraph(
        body, {.name = "block", .prefix = prefix, .key = "llama.block" + weights.encodings()});
    x = call(x, shared, keys, values, tensor(i));
  }
  Tensor norm = constant_external("output_norm.weight", TensorLayout(f32, {config.width}));
  Tensor last = rms_norm(x[{Slice(), -1}], norm, config.norm_eps);
  const Matrix head = config.tied_head
                          ? embedding
                          : matrix(form, "", "output.weight", config.vocabulary, config.width);
  return cast(head.project(last), f32);
}

LlamaProgram compile_llama(const LlamaConfig& config, const MatrixForm& form,
                           const std::string& name, const Dim& batch, const Dim& seq) {
  const Dim room("room", {.min = 1});
  CompileOptions options;
  options.name = name;
  options.argument_names = {"tokens", "positions", "keys", "values"};
  auto forward = [config, form](const Tensor& ids, const Tensor& positions, Tensor& keys,
                                Tensor& values) {
    return llama_forward(config, form, ids, positions, keys, values);
  };
  return compile(forward, options)(
      TensorLayout(i32, {batch, seq}), TensorLayout(i32, {seq}),
      BufferLayout(f32, {config.blocks, batch, config.kv_heads, config.head_size, room}),
      BufferLayout(f32, {config.blocks, batch, config.kv_heads, room, config.head_size}));
}

namespace {

std::vector<std::shared_ptr<Executable>> compile_programs(const LlamaConfig& config,
                                                          const MatrixForm& form) {
  const Dim batch("batch", {.min = 1});
  const Dim seq("seq", {.min = 1});
  return {compile_llama(config, form, "prompt", batch, seq).executable(),
          compile_llama(config, form, "decode", batch, 1).executable()};
}

// The file holds the model's tensors and no others: a bias, say, would go unread.
void check_tensors(const formats::GgufFile& file, const std::vector<program::Weight>& weights) {
  std::set<std::string> names;
  for (const program::Weight& weight : weights) {
    names.insert(file.require_tensor(weight.name).name);
  }
  for (const formats::GgufTensor& tensor : file.tensors()) {
    if (names.count(tensor.name) > 0) continue;
    throw UnsupportedError(
        fmt::format("{}: tensor {} is not one that a model of the Llama family "
                    "is read with",
                    file.name(), tensor.name));
  }
}

auto runner(const std::shared_ptr<Executable>& program) {
  return [program](const std::vector<runtime::Array>& arguments) {
    return program->execute_raw(arguments);
  };
}

auto runner(const program::Program& program) {
  return [program](const std::vector<runtime::Array>& arguments) {
    return program.execute_raw(arguments);
  };
}

std::vector<program::Program> load_programs(
    const std::shared_ptr<const program::Artifact>& artifact) {
  std::vector<program::Program> programs;
  for (const char* name : {"prompt", "decode"}) {
    programs.push_back(program::Program::load(artifact, {.program = name}));
  }
  return programs;
}

}  // namespace

std::shared_ptr<LlamaModel> LlamaModel::load(const formats::GgufFile& file, const MatrixForm& form,
                                             const Progress& progress, bool keep_packed) {
  const LlamaConfig config = LlamaConfig::from_gguf(file);
  WeightDecoder decoder(file, form, progress);
  std::vector<std::shared_ptr<Executable>> compiled;
  const auto compile_once = [&]() -> auto& {
    if (compiled.empty()) compiled = compile_programs(config, form);
    return compiled;
  };
  const auto artifact =
      form.encodings.empty() ? nullptr : cached_programs(config, form, [&](const auto& path) {
        const auto& programs = compile_once();
        tenon::save(path, {programs.begin(), programs.end()}, {runtime::cpu_level()});
      });
  if (artifact != nullptr) {
    std::vector<program::Program> programs = load_programs(artifact);
    check_tensors(file, programs[0].weights());
    const std::string path = keep_packed ? packed_path(artifact->path(), file) : "";
    runtime::SetupResults results = read_packed(path, file);
    const bool found = !results.empty();
    program::Program::bind_all_from(
        programs,
        [&](const program::Weight& weight) { return decoder.decode(weight.name).array(); },
        &results);
    if (!found && !path.empty()) write_packed(path, file, results);
    for (const formats::GgufTensor& tensor : file.tensors()) file.release(tensor);
    return std::shared_ptr<LlamaModel>(
        new LlamaModel(config, runner(programs[0]), runner(programs[1])));
  }
  const auto& programs = compile_once();
  check_tensors(file, programs[0]->weights());
  bind_weights_from(programs,
                    [&](const program::Weight& weight) { return decoder.decode(weight.name); });
  return std::shared_ptr<LlamaModel>(
      new LlamaModel(config, runner(programs[0]), runner(programs[1])));
}

std::shared_ptr<LlamaModel> LlamaModel::compile(const LlamaConfig& config, const MatrixForm& form,
                                                const Weights& data) {
  const auto programs = compile_programs(config, form);
  bind_weights(programs, data);
  return std::shared_ptr<LlamaModel>(
      new LlamaModel(config, runner(programs[0]), runner(programs[1])));
}

void LlamaModel::save(const LlamaConfig& config, const MatrixForm& form, const std::string& path,
                      const std::vector<std::string>& levels) {
  const auto programs = compile_programs(config, form);
  tenon::save(path, {programs.begin(), programs.end()}, levels);
}

std::shared_ptr<LlamaModel> LlamaModel::load_saved(const std::string& path,
                                                   const LlamaConfig& config, const Weights& data) {
  std::vector<program::Program> programs = load_programs(program::Artifact::open(path));
  program::ExternalArrays arrays;
  for (const auto& [name, tensor] : data) arrays[name] = tensor.array();
  program::Program::bind_all(programs, arrays);
  return std::shared_ptr<LlamaModel>(
      new LlamaModel(config, runner(programs[0]), runner(programs[1])));
}

LlamaCache LlamaModel::new_cache(int64_t batch) const {
  if (batch < 1) throw ValueError(fmt::format("llama: a batch of {} sequences", batch));
  LlamaCache cache;
  cache.batch = batch;
  make_room(cache, kRoomStep);
  return cache;
}

namespace {

// Copies `rows` rows of `from` bytes into rows of `to` bytes; the rest is zero.
runtime::Array widen(const runtime::Array& old, const std::vector<int64_t>& dims, int64_t rows,
                     size_t from, size_t to) {
  runtime::Array array = runtime::Array::empty(f32, dims);
  auto* out = static_cast<std::byte*>(array.mutable_data());
  std::memset(out, 0, array.bytes());
  if (from > 0) {
    const auto* in = static_cast<const std::byte*>(old.data());
    for (int64_t i = 0; i < rows; ++i) {
      std::memcpy(out + static_cast<size_t>(i) * to, in + static_cast<size_t>(i) * from, from);
    }
  }
  return array;
}

runtime::Array array_of(std::span<const int32_t> values, const std::vector<int64_t>& dims) {
  runtime::Array array = runtime::Array::empty(i32, dims);
  std::memcpy(array.mutable_data(), values.data(), values.size_bytes());
  return array;
}

}  // namespace

void LlamaModel::make_room(LlamaCache& cache, int64_t tokens) const {
  if (tokens <= cache.room) return;
  const LlamaConfig& c = config_;
  const int64_t room =
      (std::max(tokens, cache.room + cache.room / 4) + kRoomStep - 1) / kRoomStep * kRoomStep;
  const auto row = [](int64_t elements) { return static_cast<size_t>(elements) * sizeof(float); };
  const int64_t heads = c.blocks * cache.batch * c.kv_heads;
  cache.keys = widen(cache.keys, {c.blocks, cache.batch, c.kv_heads, c.head_size, room},
                     heads * c.head_size, row(cache.room), row(room));
  cache.values = widen(cache.values, {c.blocks, cache.batch, c.kv_heads, room, c.head_size}, heads,
                       row(cache.room * c.head_size), row(room * c.head_size));
  cache.room = room;
}

std::vector<float> LlamaModel::step(std::span<const int32_t> tokens, LlamaCache& cache) const {
  const auto all = static_cast<int64_t>(tokens.size());
  const int64_t count = all / cache.batch;
  if (all == 0) throw ValueError("llama: no tokens to run");
  if (all % cache.batch != 0) {
    throw ValueError(fmt::format(
        "llama: {} tokens are not the same number for each of {} sequences", all, cache.batch));
  }
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
  const Run& program = count == 1 ? decode_ : prompt_;
  const std::vector<runtime::Array> logits =
      program({array_of(tokens, {cache.batch, count}), array_of(positions, {count}), cache.keys,
               cache.values});
  cache.tokens += count;
  const auto* values = logits.at(0).as<float>();
  return {values, values + cache.batch * config_.vocabulary};
}

}  // namespace tenon::pipelines
