#include "tenon/frontend/index.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "tenon/frontend/functions.h"
#include "tenon/frontend/layer.h"
#include "tenon/frontend/trace.h"
#include "tenon/ops/ops.h"

namespace tenon {
namespace {

[[noreturn]] void bad_text(std::string_view text) {
  throw ValueError(
      fmt::format("index: \"{}\" is no index", text),
      {.label = "index_c4", .hint = "write \"1:3\", \"::-1\", \":\", \"...\" or \"4\""});
}

std::optional<int64_t> number(std::string_view part, std::string_view text) {
  while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
  while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
  if (part.empty()) return std::nullopt;
  int64_t value = 0;
  auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error != std::errc() || stop != part.data() + part.size()) bad_text(text);
  return value;
}

std::vector<std::string_view> split_colons(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(':', begin);
    parts.push_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::optional<Dim> dim_of(std::optional<int64_t> value) {
  return value ? std::optional<Dim>(*value) : std::nullopt;
}

ops::SliceBound bound_of(const Slice& slice) { return {slice.start, slice.stop, slice.step}; }

int64_t consumed_axes(const std::vector<Index>& index) {
  int64_t n = 0;
  for (const Index& i : index) {
    n += std::holds_alternative<NewAxisType>(i.item) || std::holds_alternative<EllipsisType>(i.item)
             ? 0
             : 1;
  }
  return n;
}

// Axes that an ellipsis stands for; without one they follow the last index.
int64_t rest_axes(const std::vector<Index>& index, size_t rank, const ir::LocationPtr& location) {
  const int64_t rest = static_cast<int64_t>(rank) - consumed_axes(index);
  if (rest < 0) {
    throw IndexError(
        fmt::format("index: {} indices for a tensor of rank {}", consumed_axes(index), rank),
        {.label = "index_c2", .location = str(location)});
  }
  const auto ellipses = std::count_if(index.begin(), index.end(), [](const Index& i) {
    return std::holds_alternative<EllipsisType>(i.item);
  });
  if (ellipses > 1) {
    throw IndexError("index: more than one ellipsis",
                     {.label = "index_c3", .location = str(location)});
  }
  return rest;
}

void refuse_mask(const Tensor& indices, const ir::LocationPtr& location) {
  if (indices.dtype() != DType::kBool) return;
  throw UnsupportedError(
      "index: a boolean mask is not supported: the size of its result is known only when it runs",
      {.label = "index_c5", .location = str(location), .hint = "use where(mask, x, y)"});
}

ir::Value read(const Tensor& base, const std::vector<Index>& index) {
  const Here at = index.empty() ? Here::current() : index[0].at;
  const ir::LocationPtr location = location_of(at);
  ir::Value value = resolve(base, "index", at);
  const int64_t rest = rest_axes(index, value.shape().size(), location);
  int64_t axis = 0;
  for (const Index& i : index) {
    if (const auto* dim = std::get_if<Dim>(&i.item)) {
      value = ops::index(value, axis, *dim, location);
    } else if (const auto* slice = std::get_if<Slice>(&i.item)) {
      value = ops::slice_axis(value, axis++, bound_of(*slice), location);
    } else if (std::holds_alternative<EllipsisType>(i.item)) {
      axis += rest;
    } else if (std::holds_alternative<NewAxisType>(i.item)) {
      value = ops::expand_dims(value, {axis++}, location);
    } else {
      const Tensor& indices = std::get<Tensor>(i.item);
      refuse_mask(indices, location);
      const ir::Value where = resolve(indices, "index", at);
      value = ops::take(value, where, axis, location);
      axis += static_cast<int64_t>(where.shape().size());
    }
  }
  return value;
}

// Where a written index goes: bounds an axis, and the axes that reading it would drop.
struct Window {
  std::vector<ops::SliceBound> bounds;
  std::vector<int64_t> dropped;
};

Window window_of(const std::vector<Index>& index, size_t rank, const ir::LocationPtr& location) {
  const int64_t rest = rest_axes(index, rank, location);
  Window window;
  for (const Index& i : index) {
    if (const auto* dim = std::get_if<Dim>(&i.item)) {
      const bool last = dim->is_static() && dim->value() == -1;
      window.dropped.push_back(static_cast<int64_t>(window.bounds.size()));
      ops::SliceBound one;
      one.start = *dim;
      if (!last) one.stop = *dim + 1;
      window.bounds.push_back(std::move(one));
    } else if (const auto* slice = std::get_if<Slice>(&i.item)) {
      window.bounds.push_back(bound_of(*slice));
    } else if (std::holds_alternative<EllipsisType>(i.item)) {
      window.bounds.resize(window.bounds.size() + static_cast<size_t>(rest));
    } else {
      throw UnsupportedError(
          "index: numbers, slices and one tensor of positions can be written",
          {.label = "index_c6",
           .location = str(location),
           .hint = "use scatter, or dynamic_slice_update for a start that is known when it runs"});
    }
  }
  return window;
}

bool is_whole(const Index& i) {
  const auto* slice = std::get_if<Slice>(&i.item);
  if (slice == nullptr) return std::holds_alternative<EllipsisType>(i.item);
  return !slice->start && !slice->stop && slice->step == 1;
}

// `old` with the part that numbers and slices choose replaced.
ir::Value with_window(const ir::Value& old, const std::vector<Index>& index, const ir::Value& part,
                      const ir::LocationPtr& location) {
  const Window window = window_of(index, old.shape().size(), location);
  const ir::Value full =
      window.dropped.empty() ? part : ops::expand_dims(part, window.dropped, location);
  return ops::slice_update(old, full, window.bounds, location);
}

// The part that the other indices choose with the rows that the tensor at `tensor` names replaced.
ir::Value with_rows(const Tensor& base, std::vector<Index> index, size_t tensor,
                    const ir::Value& update, const ir::LocationPtr& location) {
  const ir::Value old = resolve(base, "store", index[tensor].at);
  const ir::Value rows = resolve(std::get<Tensor>(index[tensor].item), "store", index[tensor].at);
  index[tensor].item = Slice();
  const int64_t rest = rest_axes(index, old.shape().size(), location);
  int64_t axis = 0;
  for (size_t i = 0; i < tensor; ++i) {
    if (std::holds_alternative<EllipsisType>(index[i].item)) axis += rest;
    if (std::holds_alternative<Slice>(index[i].item)) ++axis;
  }
  if (std::all_of(index.begin(), index.end(), is_whole)) {
    return ops::scatter(old, rows, update, axis, "set", location);
  }
  window_of(index, old.shape().size(), location);  // refuses what cannot be written
  const ir::Value part = ops::scatter(read(base, index), rows, update, axis, "set", location);
  return with_window(old, index, part, location);
}

ir::Value written(const Tensor& base, const std::vector<Index>& index, const Operand& value) {
  const ir::LocationPtr location = location_of(value.at);
  const ir::Value old = resolve(base, "store", value.at);
  const Call call("store", {&value});
  const ir::Value update = ops::cast(call[0], old.dtype(), location);
  const Shape view = read(base, index).shape();
  const ir::Value wide = ops::broadcast_to(update, view, location);
  const auto tensor = std::find_if(index.begin(), index.end(), [](const Index& i) {
    return std::holds_alternative<Tensor>(i.item);
  });
  if (tensor == index.end()) return with_window(old, index, wide, location);
  return with_rows(base, index, static_cast<size_t>(tensor - index.begin()), wide, location);
}

}  // namespace

Index::Index(const char* text, Here where) : at(where) {
  const std::string_view all = text;
  if (all == "...") {
    item = EllipsisType{};
    return;
  }
  const auto parts = split_colons(all);
  if (parts.size() == 1) {
    const auto i = number(parts[0], all);
    if (!i) bad_text(all);
    item = Dim(*i);
    return;
  }
  if (parts.size() > 3) bad_text(all);
  Slice slice(dim_of(number(parts[0], all)), dim_of(number(parts[1], all)));
  if (parts.size() == 3) slice.step = number(parts[2], all).value_or(1);
  item = slice;
}

Operand::Operand(const TensorView& view, Here at)
    : kind(Kind::kTensor), tensor(view.get()), at(at) {}

TensorView Tensor::operator[](Index index) { return {this, *this, {std::move(index)}}; }
const TensorView Tensor::operator[](Index index) const {
  return {nullptr, *this, {std::move(index)}};
}
TensorView Tensor::operator[](std::initializer_list<Index> index) { return {this, *this, index}; }
const TensorView Tensor::operator[](std::initializer_list<Index> index) const {
  return {nullptr, *this, index};
}

TensorView TensorView::operator[](Index index) const {
  return {nullptr, get(), {std::move(index)}};
}
TensorView TensorView::operator[](std::initializer_list<Index> index) const {
  return {nullptr, get(), index};
}

Tensor TensorView::get() const { return wrap(read(base_, index_)); }

const TensorView& TensorView::operator=(const Operand& value) const {
  if (!base_.defined() || base_.is_layout()) resolve(base_, "store", value.at);
  const bool refused = base_.state()->cell == nullptr && !base_.state()->argument.empty();
  const Operand next = refused ? value : Operand(wrap(written(base_, index_, value)), value.at);
  if (target_ != nullptr) {
    target_->store(next);
  } else {
    base_.store(next);
  }
  return *this;
}

const TensorView& TensorView::operator+=(const Operand& value) const {
  return *this = Operand(add(Operand(*this, value.at), value), value.at);
}
const TensorView& TensorView::operator-=(const Operand& value) const {
  return *this = Operand(sub(Operand(*this, value.at), value), value.at);
}
const TensorView& TensorView::operator*=(const Operand& value) const {
  return *this = Operand(mul(Operand(*this, value.at), value), value.at);
}

Tensor Tensor::Iterator::operator*() const { return std::as_const(tensor_)[i_].get(); }

Tensor::Iterator Tensor::begin(Here at) const {
  if (rank() == 0) {
    throw TypeError("iteration: the tensor has no dimension to walk along",
                    {.label = "iterate_c1", .location = ir::str(location_of(at))});
  }
  const Dim size = shape()[0].dim();
  if (!size.is_static()) {
    throw TraceError(
        fmt::format("iteration: axis 0 has the size {}, which has no number while tracing",
                    size.str()),
        {.label = "iterate_c2",
         .location = ir::str(location_of(at)),
         .hint = "use ops over the axis (sum, cumsum, …), or declare its size as a number"});
  }
  return {*this, 0};
}
Tensor::Iterator Tensor::end() const { return {*this, shape()[0].value()}; }

}  // namespace tenon
