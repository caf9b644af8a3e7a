// attention(q, k, v[, mask][, length]): softmax(q·kᵀ·scale) · v over the keys that a query sees.
//
// Query s of M stands at position s + L - M of L = length (N without one) keys and sees key t where
//   t < L;  with causal, t ≤ its position;  with a window w, t is less than w away from it;
//   with a bool mask, the mask holds;  its score, a float mask added, is not -inf.
// Keys that it does not see take no part, whatever they hold. A query that sees none gives 0.
//
// With `part`, every so many keys apart: [… H, P, M, E + 1] in f32 (f64 where an operand is), the
// result of each part and, last, the logarithm of its summed exp(score).
#include "tenon/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tenon/ops/checks.h"
#include "tenon/ops/lanes.h"

namespace tenon::ops {

using ir::TensorType;

namespace {

// attention_c1: q, k and v have one rank of at least 3.
// attention_c2: the heads of k divide those of q, and v has as many.
// attention_c3: q and k have one last dimension.
// attention_c4: k and v have one number of keys.
// attention_c5: the mask, bool or float, broadcasts to [… H, M, N].
// attention_c6: the length is i64 and broadcasts to the dimensions before H.
// attention_c7: the window and the part are at least 0.
// attention_dtype: q, k and v are floats.
// attention_broadcast: the dimensions before H broadcast.

[[noreturn]] void refuse(const ir::InferArgs& args, const std::string& text, const char* label) {
  throw ShapeError("attention: " + text, {.label = label, .details = operand_types(args.in)});
}

const Dim& from_last(const Shape& shape, size_t k) { return shape[shape.size() - 1 - k]; }

Shape before_heads(const Shape& shape) { return {shape.begin(), shape.end() - 3}; }

bool divides(const Dim& groups, const Dim& heads) {
  if (same_dim(groups, heads)) return true;
  return groups.is_static() && heads.is_static() && groups.value() > 0 &&
         heads.value() % groups.value() == 0;
}

bool broadcasts(const Shape& shape, const Shape& to) {
  if (shape.size() > to.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const Dim& d = from_last(shape, i);
    if (d != Dim(1) && !same_dim(d, from_last(to, i))) return false;
  }
  return true;
}

DType compute_type(std::span<const TensorType> in) {
  const auto wide = [](const TensorType& type) { return type.dtype == DType::kF64; };
  return std::any_of(in.begin(), in.begin() + 3, wide) ? DType::kF64 : DType::kF32;
}

void check_extras(const ir::InferArgs& args, const Shape& scores) {
  size_t at = 3;
  if (args.attrs.b("mask")) {
    const TensorType& mask = args.in[at++];
    const bool right = mask.dtype == DType::kBool || is_float(mask.dtype);
    if (!right || !broadcasts(mask.shape, scores)) {
      refuse(args,
             fmt::format("mask {} is not a bool or float that broadcasts to the scores {}",
                         ir::brief(mask), str(scores)),
             "attention_c5");
    }
  }
  if (args.attrs.b("length")) {
    const TensorType& length = args.in[at];
    if (length.dtype != DType::kI64 || !broadcasts(length.shape, before_heads(scores))) {
      refuse(args,
             fmt::format("length {} is not an integer that broadcasts to {}", ir::brief(length),
                         str(before_heads(scores))),
             "attention_c6");
    }
  }
}

std::vector<TensorType> attention_infer(const ir::InferArgs& args) {
  const Shape& q = args.in[0].shape;
  const Shape& k = args.in[1].shape;
  const Shape& v = args.in[2].shape;
  for (size_t i = 0; i < 3; ++i) check_dtype("attention", args.in[i].dtype, ir::DTypeClass::kFloat);
  if (q.size() < 3 || k.size() != q.size() || v.size() != q.size()) {
    refuse(args, "q, k and v need one rank of at least 3", "attention_c1");
  }
  if (!divides(from_last(k, 2), from_last(q, 2)) || !same_dim(from_last(k, 2), from_last(v, 2))) {
    refuse(args,
           fmt::format("{} key heads and {} value heads do not divide {} query heads",
                       from_last(k, 2).str(), from_last(v, 2).str(), from_last(q, 2).str()),
           "attention_c2");
  }
  if (!same_dim(from_last(q, 0), from_last(k, 0))) {
    refuse(args,
           fmt::format("last dimensions of q ({}) and k ({}) differ", from_last(q, 0).str(),
                       from_last(k, 0).str()),
           "attention_c3");
  }
  if (!same_dim(from_last(k, 1), from_last(v, 1))) {
    refuse(args, fmt::format("{} keys but {} values", from_last(k, 1).str(), from_last(v, 1).str()),
           "attention_c4");
  }
  for (const char* name : {"window", "part"}) {
    if (args.attrs.i(name) >= 0) continue;
    throw ValueError(fmt::format("attention: a {} of {} keys", name, args.attrs.i(name)),
                     {.label = "attention_c7"});
  }
  Shape shape = broadcast_shapes("attention", {before_heads(q), before_heads(k), before_heads(v)});
  shape.insert(shape.end(), {from_last(q, 2), from_last(q, 1), from_last(k, 1)});
  check_extras(args, shape);
  shape.back() = from_last(v, 0);
  const int64_t part = args.attrs.i("part");
  if (part == 0) return {{args.in[0].dtype, shape}};
  shape.insert(shape.end() - 2, floor_div(from_last(k, 1) + Dim(part - 1), Dim(part)));
  shape.back() = shape.back() + Dim(1);
  return {{compute_type(args.in), shape}};
}

// --- evaluation ---

std::vector<double> numbers(const Literal& x) {
  std::vector<double> all(static_cast<size_t>(x.count()));
  for (int64_t i = 0; i < x.count(); i += kRun) {
    read_run(x, i, 1, std::min(kRun, x.count() - i), all.data() + i);
  }
  return all;
}

// One query at a time, by its scores, their maximum and their weights.
class Reference {
 public:
  explicit Reference(const ir::EvalArgs& args)
      : args_(args),
        heads_(args.out[0].dims),
        q_(numbers(args.in[0])),
        k_(numbers(args.in[1])),
        v_(numbers(args.in[2])),
        queries_(*(heads_.end() - 2)),
        columns_(args.in[2].dims().back()),
        depth_(args.in[0].dims().back()),
        keys_(*(args.in[1].dims().end() - 2)),
        part_(args.attrs.i("part")),
        out_(args.out[0].dtype, args.out[0].dims) {
    heads_.resize(heads_.size() - (part_ == 0 ? 2 : 3));
    size_t at = 3;
    if (args.attrs.b("mask")) mask_ = &args.in[at++];
    if (args.attrs.b("length")) length_ = &args.in[at];
    if (mask_ != nullptr) mask_values_ = numbers(*mask_);
    scores_ = heads_;
    scores_.insert(scores_.end(), {queries_, keys_});
    score_.resize(static_cast<size_t>(keys_));
    row_.resize(static_cast<size_t>(columns_));
  }

  Literal run() {
    const int64_t groups = *(args_.in[1].dims().end() - 3);
    const int64_t per_group = groups == 0 ? 1 : heads_.back() / groups;
    const int64_t all = out_.count() == 0 ? 0 : element_count(heads_);
    std::vector<int64_t> at(heads_.size());
    for (int64_t i = 0; i < all; ++i) {
      int64_t rest = i;
      for (size_t d = heads_.size(); d-- > 0; rest /= heads_[d]) at[d] = rest % heads_[d];
      std::vector<int64_t> shared = at;
      shared.back() /= per_group;
      head(i, at, shared);
    }
    return std::move(out_);
  }

 private:
  // Position of the matrix of a head in an operand; batch dimensions of 1 repeat.
  static int64_t matrix(const Literal& x, const std::vector<int64_t>& at) {
    int64_t place = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      const int64_t size = x.dims()[d];
      place = place * size + (size == 1 ? 0 : at[d]);
    }
    return place;
  }

  int64_t length(const std::vector<int64_t>& at) const {
    if (length_ == nullptr) return keys_;
    const std::vector<int64_t> batch(heads_.begin(), heads_.end() - 1);
    const std::vector<int64_t> strides = broadcast_strides(length_->dims(), batch);
    int64_t place = 0;
    for (size_t d = 0; d < batch.size(); ++d) place += at[d] * strides[d];
    return std::clamp<int64_t>(length_->get_int(place), 0, keys_);
  }

  void head(int64_t number, const std::vector<int64_t>& at, const std::vector<int64_t>& shared) {
    const double* q = q_.data() + matrix(args_.in[0], at) * queries_ * depth_;
    const double* k = k_.data() + matrix(args_.in[1], shared) * keys_ * depth_;
    const double* v = v_.data() + matrix(args_.in[2], shared) * keys_ * columns_;
    const int64_t count = length(at);
    const int64_t part = part_ == 0 ? keys_ : part_;
    const int64_t parts = part_ == 0 ? 1 : (keys_ + part - 1) / part;
    const int64_t width = columns_ + (part_ == 0 ? 0 : 1);
    for (int64_t s = 0; s < queries_; ++s) {
      score(at, s, count, q + s * depth_, k);
      for (int64_t p = 0; p < parts; ++p) {
        const double sum = weigh(v, p * part, std::min(keys_, (p + 1) * part));
        const int64_t line = ((number * parts + p) * queries_ + s) * width;
        for (int64_t e = 0; e < columns_; e += kRun) {
          write_run(out_, line + e, std::min(kRun, columns_ - e), row_.data() + e);
        }
        if (part_ != 0) out_.set_double(line + columns_, sum);
      }
    }
  }

  bool sees(int64_t position, int64_t t, int64_t count) const {
    const int64_t window = args_.attrs.i("window");
    if (t >= count) return false;
    if (args_.attrs.b("causal") && t > position) return false;
    return window == 0 || (t > position - window && t < position + window);
  }

  void score(const std::vector<int64_t>& at, int64_t s, int64_t count, const double* q,
             const double* k) {
    std::vector<int64_t> place = at;
    place.insert(place.end(), {s, 0});
    std::vector<int64_t> strides;
    if (mask_ != nullptr) strides = broadcast_strides(mask_->dims(), scores_);
    for (int64_t t = 0; t < keys_; ++t) {
      double& score = score_[static_cast<size_t>(t)];
      score = kUnseen;
      if (!sees(s + count - queries_, t, count)) continue;
      double added = 0;
      if (mask_ != nullptr) {
        place.back() = t;
        int64_t i = 0;
        for (size_t d = 0; d < place.size(); ++d) i += place[d] * strides[d];
        added = mask_values_[static_cast<size_t>(i)];
        if (mask_->dtype() == DType::kBool && added == 0) continue;
        if (mask_->dtype() == DType::kBool) added = 0;
      }
      double sum = 0;
      for (int64_t d = 0; d < depth_; ++d) sum += q[d] * k[t * depth_ + d];
      score = sum * args_.attrs.f("scale") + added;
    }
  }

  // The weighted mean of values first … end; gives the logarithm of the sum of exp(score).
  double weigh(const double* v, int64_t first, int64_t end) {
    double top = kUnseen;
    for (int64_t t = first; t < end; ++t) {
      const double score = score_[static_cast<size_t>(t)];
      if (score > top || std::isnan(score)) top = score;
    }
    double total = 0;
    std::fill(row_.begin(), row_.end(), 0.0);
    for (int64_t t = first; t < end; ++t) {
      const double score = score_[static_cast<size_t>(t)];
      if (score == kUnseen) continue;
      const double weight = std::exp(score - top);
      total += weight;
      for (int64_t e = 0; e < columns_; ++e) {
        row_[static_cast<size_t>(e)] += weight * v[t * columns_ + e];
      }
    }
    if (total == 0) return kUnseen;
    for (double& sum : row_) sum /= total;
    return top + std::log(total);
  }

  static constexpr double kUnseen = -std::numeric_limits<double>::infinity();

  const ir::EvalArgs& args_;
  std::vector<int64_t> heads_;  // dimensions up to the heads
  std::vector<double> q_, k_, v_;
  int64_t queries_, columns_, depth_, keys_, part_;
  Literal out_;
  const Literal* mask_ = nullptr;
  const Literal* length_ = nullptr;
  std::vector<double> mask_values_;
  std::vector<int64_t> scores_;  // dimensions of the scores
  std::vector<double> score_;    // of one query
  std::vector<double> row_;      // of the result
};

std::vector<Literal> attention_eval(const ir::EvalArgs& args) { return {Reference(args).run()}; }

std::vector<ir::Sample> attention_samples() {
  std::vector<ir::Sample> samples;
  const auto add = [&](std::vector<TensorType> in, ir::Attrs attrs) {
    for (const char* flag : {"mask", "length"}) {
      if (!attrs.has(flag)) attrs.set(flag, false);
    }
    samples.push_back({.in = std::move(in), .attrs = std::move(attrs)});
  };
  for (DType d : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    const TensorType q{d, {4, 3, 5}};
    const TensorType k{d, {2, 7, 5}};
    const TensorType v{d, {2, 7, 3}};
    add({q, k, v}, {{"scale", 0.5}});
    add({q, k, v}, {{"causal", true}, {"window", int64_t{2}}});
    add({q, k, v, {DType::kBool, {3, 7}}}, {{"mask", true}});
    add({q, k, v, {d, {4, 1, 7}}, {DType::kI64, {}}}, {{"mask", true}, {"length", true}});
    add({{d, {1, "m", 4}}, {DType::kF32, {1, "n", 4}}, {DType::kF16, {1, "n", 4}}},
        {{"causal", true}});
  }
  add({{DType::kF32, {2, 3, 2}}, {DType::kF32, {2, "n", 2}}, {DType::kF32, {2, "n", 2}}},
      {{"causal", true}, {"part", int64_t{4}}});
  add({{DType::kF32, {1, 0, 2}}, {DType::kF32, {1, 3, 2}}, {DType::kF32, {1, 3, 2}}}, {});
  add({{DType::kF32, {1, 3, 2}}, {DType::kF32, {1, 0, 2}}, {DType::kF32, {1, 0, 2}}}, {});
  add({{DType::kF32, {1, 3, 0}}, {DType::kF32, {1, 2, 0}}, {DType::kF32, {1, 2, 2}}}, {});
  add({{DType::kF32, {2, 1, 4, 1, 8}},
       {DType::kF32, {2, 3, 2, 9, 8}},
       {DType::kF32, {1, 3, 2, 9, 8}},
       {DType::kI64, {2, 1}}},
      {{"length", true}});
  return samples;
}

}  // namespace

AttentionParts::AttentionParts(const ir::Node& node)
    : q(node.operands[0]),
      k(node.operands[1]),
      v(node.operands[2]),
      scale(node.attrs.f("scale")),
      causal(node.attrs.b("causal")),
      window(node.attrs.i("window")),
      part(node.attrs.i("part")) {
  size_t at = 3;
  if (node.attrs.b("mask")) mask = node.operands[at++];
  if (node.attrs.b("length")) length = node.operands[at];
  for (size_t i = 0; i < 3; ++i) {
    if (node.operands[i].dtype() == DType::kF64) compute = DType::kF64;
  }
}

namespace op {

const ir::OpDef attention{
    .name = "attention",
    .doc =
        "softmax(q·kᵀ·scale) · v over the keys that a query sees: those below `length`, not "
        "after it (`causal`), nearer than `window`, kept by a bool mask or whose score with a "
        "float mask is not -inf; 0 where it sees none. With `part`, so many keys at a time, each "
        "result with the logarithm of its summed exp(score).",
    .traits = ir::kAnchor,
    .min_operands = 3,
    .max_operands = 5,
    .attrs = {{"scale", 1.0},
              {"causal", false},
              {"window", int64_t{0}},
              {"part", int64_t{0}},
              {"mask", false},
              {"length", false}},
    .infer = attention_infer,
    .eval = attention_eval,
};
TENON_OP_SAMPLES(attention, attention_samples)

}  // namespace op

}  // namespace tenon::ops
