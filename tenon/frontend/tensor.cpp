#include "tenon/frontend/tensor.h"

#include <ostream>
#include <utility>

#include "tenon/base/recycled.h"
#include "tenon/frontend/functions.h"
#include "tenon/frontend/index.h"
#include "tenon/frontend/layer.h"
#include "tenon/frontend/trace.h"
#include "tenon/ir/literal_text.h"
#include "tenon/ops/ops.h"

namespace tenon {
namespace {

const std::shared_ptr<TensorState>& checked(const Tensor& tensor, std::string_view function) {
  if (tensor.defined()) return tensor.state();
  throw TypeError(fmt::format("{}: the tensor has no value yet", function),
                  {.label = "operand_c1"});
}

constexpr int64_t kShownElements = 1000;

// [[1.0, 2.0], [3.0, 4.0]]: elements of the dimensions from `axis` on.
void add_elements(std::string& text, const Literal& value, size_t axis, int64_t begin,
                  int64_t count) {
  if (axis == value.rank()) {
    text += ir::element_text(value, begin);
    return;
  }
  const int64_t size = value.dims()[axis];
  const int64_t step = size == 0 ? 0 : count / size;
  const int64_t edge = value.count() > kShownElements ? 3 : size;
  text += '[';
  for (int64_t i = 0; i < size; ++i) {
    if (i > 0) text += ", ";
    if (i == edge && size > 2 * edge) {
      text += "…, ";
      i = size - edge;
    }
    add_elements(text, value, axis + 1, begin + i * step, step);
  }
  text += ']';
}

}  // namespace

Tensor::Tensor(const TensorLayout& layout) : state_(std::make_shared<TensorState>()) {
  state_->layout = std::make_shared<const TensorLayout>(layout);
}

Tensor::Tensor(runtime::Array array)
    : state_(std::allocate_shared<TensorState>(Recycled<TensorState>())) {
  state_->array = std::move(array);
  state_->ready = true;
}

Tensor Tensor::borrow(void* data, DType dtype, const std::vector<int64_t>& dims,
                      std::shared_ptr<const void> owner, bool writable) {
  Tensor out(runtime::Array::borrow(dtype, dims, data, std::move(owner), writable));
  out.state_->borrowed = true;
  return out;
}

Tensor Tensor::from_dlpack(DLManagedTensor* tensor) {
  Tensor out(runtime::Array::from_dlpack(tensor));
  out.state_->borrowed = true;
  return out;
}

DLManagedTensor* Tensor::to_dlpack() const { return array().to_dlpack(); }

Tensor from_bytes(const void* data, DType dtype, const std::vector<int64_t>& dims) {
  runtime::Array array = runtime::Array::empty(dtype, dims);
  if (array.bytes() > 0) std::memcpy(array.mutable_data(), data, array.bytes());
  return Tensor(std::move(array));
}

// --- what is known ---

bool Tensor::is_layout() const { return state_ != nullptr && state_->layout != nullptr; }
bool Tensor::is_traced() const { return state_ != nullptr && state_->trace != nullptr; }
DType Tensor::dtype() const { return checked(*this, "dtype")->type().dtype; }
Extents Tensor::shape() const { return Extents(checked(*this, "shape")->type().shape); }
size_t Tensor::rank() const { return checked(*this, "rank")->type().shape.size(); }
Extent Tensor::size() const { return Extent(product(checked(*this, "size")->type().shape)); }

std::vector<int64_t> Tensor::dims() const {
  std::vector<int64_t> numbers;
  for (const Extent& extent : shape()) numbers.push_back(extent.value());
  return numbers;
}

TensorLayout Tensor::layout(Here at) const {
  const auto& state = checked(*this, "layout");
  if (state->layout != nullptr) return *state->layout;
  const ir::TensorType type = state->type();
  const TensorLayout found(type.dtype, type.shape, {}, at);
  return state->cell != nullptr ? found.as_buffer() : found;
}

TensorLayout as_layout(const Tensor& tensor) {
  if (tensor.is_layout()) return tensor.layout();
  throw TypeError("as_layout: expected a layout, got a Tensor, which is a value",
                  {.label = "as_layout_c1", .hint = "pass its .layout()"});
}

// --- values ---

Tensor& Tensor::eval() {
  array();
  return *this;
}

void eval(const std::vector<Tensor*>& tensors) {
  std::vector<TensorState*> states;
  for (const Tensor* tensor : tensors) {
    resolve(*tensor, "eval", Here::current());
    refuse_traced(*tensor, "eval");
    states.push_back(tensor->state().get());
  }
  evaluate(states);
}

const runtime::Array& Tensor::array() const {
  const auto& state = checked(*this, "eval");
  refuse_donated(*state, "eval", Here::current());
  if (state->ready) return state->array;
  refuse_traced(*this, "eval");
  if (state->layout != nullptr) resolve(*this, "eval", Here::current());
  evaluate({state.get()});
  return state->array;
}

Tensor::operator bool() const {
  refuse_traced(*this, "branch");
  const runtime::Array& data = array();
  if (data.count() != 1) {
    throw ValueError(fmt::format("bool: the tensor {} has {} elements, a branch needs one",
                                 data.describe(), data.count()),
                     {.label = "item_c1", .hint = "use any() or all()"});
  }
  return data.to_literal().get_double(0) != 0;
}

void Tensor::check_readable(int64_t wanted_count, DType as, std::string_view function) const {
  refuse_traced(*this, function);
  const runtime::Array& data = array();
  if (wanted_count >= 0 && data.count() != wanted_count) {
    throw ValueError(fmt::format("{}: the tensor {} has {} elements, not one", function,
                                 data.describe(), data.count()),
                     {.label = "item_c1", .hint = "index it or use to_vector"});
  }
  const DType from = data.dtype();
  const bool drops =
      (is_complex(from) && !is_complex(as)) || (is_float(from) && !is_float(as) && !is_complex(as));
  if (drops) {
    throw TypeError(fmt::format("{}: the tensor is {}, {} would lose a part of it", function,
                                name(from), name(as)),
                    {.label = "item_c2", .hint = "cast the tensor first"});
  }
}

double Tensor::element_double(int64_t i) const { return array().to_literal().get_double(i); }
int64_t Tensor::element_int(int64_t i) const { return array().to_literal().get_int(i); }

std::string Tensor::str() const {
  if (!defined()) return "tensor()";
  if (is_layout()) return state_->layout->str();
  const ir::TensorType type = state_->type();
  if (is_traced())
    return fmt::format("tensor(traced in {}, {})", state_->trace->name(), brief(type));
  std::string text = "tensor(";
  const Literal value = array().to_literal();
  add_elements(text, value, 0, 0, value.count());
  return text + fmt::format(", {}, cpu)", brief(type));
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.str(); }

// --- writing ---

namespace {

// The value that a store leaves behind: cast to the destination's dtype, broadcast to its shape.
ir::Value stored_value(const Tensor& target, const Operand& value) {
  const ir::TensorType type = target.state()->type();
  const Call call("store", {&value});
  const ir::Value cast = ops::cast(call[0], type.dtype, call.location());
  return ops::broadcast_to(cast, type.shape, call.location());
}

void write_buffer(const Tensor& target, const Operand& value) {
  TensorState& state = *target.state();
  resolve(target, "store", value.at);
  if (state.trace != Trace::current()) {
    throw TraceError("store: the buffer belongs to a trace around this subgraph",
                     {.label = "store_c2",
                      .location = ir::str(location_of(value.at)),
                      .hint = "pass it to the subgraph as an argument"});
  }
  state.cell->value = stored_value(target, value);
  state.cell->written = true;
}

void refuse_argument(const Tensor& target, const Operand& value) {
  const TensorState& state = *target.state();
  if (state.trace == nullptr || state.argument.empty()) return;
  throw TypeError(
      fmt::format("store: argument {} was staged as a tensor: its caller would not see the write",
                  state.argument),
      {.label = "store_c1",
       .location = ir::str(location_of(value.at)),
       .hint = "declare it by a BufferLayout, or compute a new value: y = x + 1"});
}

}  // namespace

void Tensor::store(const Operand& value) {
  checked(*this, "store");
  if (state_->cell != nullptr) return write_buffer(*this, value);
  refuse_argument(*this, value);
  *this = wrap(stored_value(*this, value));
}

void Tensor::store(const Operand& value) const {
  checked(*this, "store");
  if (state_->cell != nullptr) return write_buffer(*this, value);
  refuse_argument(*this, value);
  throw TypeError("store: the tensor is const and no buffer",
                  {.label = "store_c3", .location = ir::str(location_of(value.at))});
}

Tensor& Tensor::operator+=(const Operand& value) {
  store(Operand(add(Operand(*this, value.at), value), value.at));
  return *this;
}
Tensor& Tensor::operator-=(const Operand& value) {
  store(Operand(sub(Operand(*this, value.at), value), value.at));
  return *this;
}
Tensor& Tensor::operator*=(const Operand& value) {
  store(Operand(mul(Operand(*this, value.at), value), value.at));
  return *this;
}
Tensor& Tensor::operator/=(const Operand& value) {
  store(Operand(div(Operand(*this, value.at), value), value.at));
  return *this;
}

}  // namespace tenon
