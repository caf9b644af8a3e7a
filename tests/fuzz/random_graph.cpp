#include "random_graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <random>

#include "tenon/base/error.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"

namespace tenon::fuzz {
namespace {

using ir::Value;

// A value of the graph with what is known of its numbers: whole numbers up to `bound` stay exact
// under sums in any order; others are exact until something rounds in its own order.
struct Known {
  Value value;
  double bound = 4;
  bool whole = true;
  bool exact = true;
  bool half = false;  // rounded to f16 or bf16 on the way

  DType dtype() const { return value.dtype(); }
  const Shape& shape() const { return value.shape(); }
  size_t rank() const { return value.shape().size(); }
};

constexpr double kBoundLimit = 64;

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) { ops::register_all(); }

  RandomGraph run() {
    sizes_ = {{"n", pick({0, 1, 2, 3, 5, 17, 33})}, {"m", pick({1, 2, 4, 7, 20})}};
    const int params = between(1, 4);
    for (int i = 0; i < params; ++i) add_parameter(i);
    const int steps = between(2, chance(20) ? 40 : 14);
    for (int i = 0; i < steps; ++i) grow();
    return finish();
  }

 private:
  // --- chance ---
  int between(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }
  bool chance(int percent) { return between(1, 100) <= percent; }
  int64_t pick(std::vector<int64_t> from) {
    return from[static_cast<size_t>(between(0, static_cast<int>(from.size()) - 1))];
  }
  template <class T>
  const T& any_of(const std::vector<T>& from) {
    return from[static_cast<size_t>(between(0, static_cast<int>(from.size()) - 1))];
  }
  // Mostly something recent, so that chains grow.
  const Known& any() {
    if (values_.size() > 4 && chance(50)) {
      return values_[values_.size() - 1 - static_cast<size_t>(between(0, 3))];
    }
    return any_of(values_);
  }

  Dim random_dim() {
    if (chance(20)) return Dim("n");
    if (chance(15)) return Dim("m");
    return Dim(pick({1, 1, 2, 3, 4, 5, 8, 16, 33, 70}));
  }

  Shape random_shape() {
    Shape shape;
    const int rank = static_cast<int>(pick({0, 1, 1, 2, 2, 2, 3, 3, 4}));
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) {
      Dim dim = random_dim();
      if (count * size(dim) > 4000) dim = Dim(1);
      count *= std::max<int64_t>(1, size(dim));
      shape.push_back(dim);
    }
    return shape;
  }

  int64_t size(const Dim& dim) const {
    return dim.eval([this](std::string_view name) -> std::optional<int64_t> {
      return sizes_.at(std::string(name));
    });
  }
  int64_t count(const Shape& shape) const { return size(product(shape)); }

  DType random_dtype() {
    return static_cast<DType>(any_of(std::vector<int>{
        static_cast<int>(DType::kF32), static_cast<int>(DType::kF32), static_cast<int>(DType::kF32),
        static_cast<int>(DType::kF64), static_cast<int>(DType::kF16),
        static_cast<int>(DType::kBF16), static_cast<int>(DType::kI32),
        static_cast<int>(DType::kI64), static_cast<int>(DType::kU8), static_cast<int>(DType::kI16),
        static_cast<int>(DType::kU32), static_cast<int>(DType::kBool)}));
  }

  Literal random_literal(DType dtype, const Shape& shape, int lo = -4) {
    std::vector<int64_t> dims;
    for (const Dim& dim : shape) dims.push_back(size(dim));
    Literal literal(dtype, dims);
    const bool from_zero = is_unsigned(dtype) || dtype == DType::kBool;
    for (int64_t i = 0; i < literal.count(); ++i) {
      literal.set_double(i, between(from_zero ? 0 : lo, dtype == DType::kBool ? 1 : 4));
    }
    return literal;
  }

  // --- leaves ---
  Known leaf(Value value) {
    const bool half = is_half(value.dtype());
    return {std::move(value), 4, true, true, half};
  }

  void add_parameter(int i) {
    const DType dtype = random_dtype();
    Shape shape = random_shape();
    // A name is bound by a dimension that is this name alone: the first parameter has both.
    if (i == 0) shape = {Dim("n"), Dim("m")};
    const std::string name = fmt::format("p{}", i);
    Value value = ir::make_parameter({dtype, shape}, name);
    result_.arguments.push_back(random_literal(dtype, shape));
    graph_.params.push_back(value);
    graph_.param_names.push_back(name);
    graph_.writable.push_back(chance(40));
    values_.push_back(leaf(value));
  }

  Known constant(DType dtype, const Shape& shape) {
    if (is_static(shape) && chance(50)) {
      return leaf(ir::make_constant(random_literal(dtype, shape)));
    }
    Value scalar = ops::scalar(dtype, between(0, dtype == DType::kBool ? 1 : 3));
    return leaf(ops::broadcast_to(scalar, shape));
  }

  Known external(DType dtype, Shape shape) {
    for (Dim& dim : shape) dim = Dim(std::max<int64_t>(1, size(dim)));
    const std::string name = fmt::format("w{}", result_.externals.size());
    result_.externals.emplace(name, random_literal(dtype, shape));
    return leaf(
        ir::make(ir::kConstantExternal, {}, {{"name", name}, {"dtype", dtype}, {"shape", shape}}));
  }

  // --- growth ---
  void keep(Known known) {
    if (count(known.shape()) > 20000) return;
    if (is_half(known.dtype())) known.half = true;
    values_.push_back(std::move(known));
  }

  // One more value; an op that does not take what it was given adds none.
  void grow() {
    using Step = void (Generator::*)();
    static const std::vector<Step> steps = {
        &Generator::unary,      &Generator::unary,     &Generator::binary,    &Generator::binary,
        &Generator::binary,     &Generator::compare,   &Generator::choose,    &Generator::convert,
        &Generator::math,       &Generator::math,      &Generator::reduce,    &Generator::reduce,
        &Generator::reshape,    &Generator::transpose, &Generator::broadcast, &Generator::slice,
        &Generator::join,       &Generator::pad,       &Generator::gather,    &Generator::scatter,
        &Generator::product_of, &Generator::scan,      &Generator::sort,      &Generator::update,
        &Generator::softmax,    &Generator::normalize, &Generator::call,      &Generator::argument,
        &Generator::ramp,       &Generator::squeeze,   &Generator::dynamic};
    try {
      (this->*any_of(steps))();
    } catch (const ShapeError&) {
    } catch (const TypeError&) {
    } catch (const ValueError&) {
    }
  }

  // A copy of `x` within the limits that sums stay exact in; clipped where it is not.
  Known bounded(Known x, double limit) {
    if (x.bound <= limit || x.dtype() == DType::kBool) return x;
    const double low = is_unsigned(x.dtype()) ? 0 : -limit;
    Value v = ops::maximum(x.value, ops::scalar(x.dtype(), low));
    v = ops::minimum(v, ops::scalar(x.dtype(), limit));
    return {v, limit, x.whole, x.exact, x.half};
  }

  void unary() {
    Known x = bounded(any(), kBoundLimit);
    using F = std::function<Value(const Value&)>;
    static const std::vector<F> functions = {
        [](const Value& v) { return ops::neg(v); },  [](const Value& v) { return ops::abs(v); },
        [](const Value& v) { return ops::relu(v); }, [](const Value& v) { return ops::square(v); },
        [](const Value& v) { return ops::sign(v); }, [](const Value& v) { return ops::floor(v); },
        [](const Value& v) { return ops::ceil(v); }, [](const Value& v) { return ops::trunc(v); },
        [](const Value& v) { return ops::round(v); }};
    if (x.dtype() == DType::kBool) return keep({ops::logical_not(x.value), 1, true, x.exact});
    const size_t which = static_cast<size_t>(between(0, 8));
    if (!x.exact && which >= 4) return;
    const bool wraps = is_unsigned(x.dtype()) && which == 0;
    const double bound = which == 3 ? x.bound * x.bound : x.bound;
    Value v = functions[which](x.value);
    keep({v, wraps ? 1e9 : bound, x.whole, x.exact, x.half});
  }

  void binary() {
    Known x = bounded(any(), kBoundLimit);
    Known y = bounded(chance(30) ? constant(x.dtype(), x.shape()) : any(), kBoundLimit);
    const int which = between(0, 4);
    const bool exact = x.exact && y.exact;
    const bool half = x.half || y.half;
    const bool whole = x.whole && y.whole;
    if (x.dtype() == DType::kBool && y.dtype() == DType::kBool) {
      Value v = which < 2 ? ops::logical_and(x.value, y.value) : ops::logical_or(x.value, y.value);
      return keep({v, 1, true, exact, half});
    }
    switch (which) {
      case 0: return keep({ops::add(x.value, y.value), x.bound + y.bound, whole, exact, half});
      case 1: {
        Value v = ops::sub(x.value, y.value);
        const bool wraps = is_unsigned(v.dtype());
        return keep({v, wraps ? 1e9 : x.bound + y.bound, whole, exact, half});
      }
      case 2: return keep({ops::mul(x.value, y.value), x.bound * y.bound, whole, exact, half});
      case 3:
        return keep(
            {ops::maximum(x.value, y.value), std::max(x.bound, y.bound), whole, exact, half});
      default:
        return keep(
            {ops::minimum(x.value, y.value), std::max(x.bound, y.bound), whole, exact, half});
    }
  }

  void compare() {
    const Known& x = any();
    const Known& y = any();
    if (!x.exact || !y.exact) return;
    Value v = chance(50) ? ops::less(x.value, y.value) : ops::equal(x.value, y.value);
    keep({v, 1, true, true});
  }

  void choose() {
    const Known& c = any();
    Known x = any();
    Known y = any();
    if (c.dtype() != DType::kBool || !c.exact) return;
    keep({ops::where(c.value, x.value, y.value), std::max(x.bound, y.bound), x.whole && y.whole,
          x.exact && y.exact, x.half || y.half});
  }

  void convert() {
    Known x = bounded(any(), 100);
    const DType to = random_dtype();
    if (!x.exact && !is_float(to)) return;
    const bool wraps = is_unsigned(to);
    keep({ops::cast(x.value, to), wraps ? 1e9 : x.bound, x.whole || !is_float(to), x.exact,
          x.half || is_half(to)});
  }

  void math() {
    Known x = bounded(any(), 3);
    if (!is_float(x.dtype())) x.value = ops::cast(x.value, DType::kF32);
    static const std::vector<std::function<Value(const Value&)>> functions = {
        [](const Value& v) { return ops::tanh(v); },
        [](const Value& v) { return ops::exp(v); },
        [](const Value& v) { return ops::sigmoid(v); },
        [](const Value& v) { return ops::sin(v); },
        [](const Value& v) { return ops::erf(v); },
        [](const Value& v) { return ops::gelu(v); },
        [](const Value& v) { return ops::silu(v); },
        [](const Value& v) {
          return ops::sqrt(ops::add(ops::square(v), ops::scalar(v.dtype(), 1)));
        }};
    keep({any_of(functions)(x.value), 21, false, false, x.half});
  }

  std::vector<int64_t> random_axes(size_t rank) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < rank; ++i) {
      if (chance(50)) axes.push_back(static_cast<int64_t>(i));
    }
    if (axes.empty() && rank > 0) axes.push_back(static_cast<int64_t>(rank) - 1);
    return axes;
  }

  double reduced_count(const Known& x, const std::vector<int64_t>& axes) const {
    double n = 1;
    for (int64_t axis : axes) n *= static_cast<double>(size(x.shape()[static_cast<size_t>(axis)]));
    return std::max(1.0, n);
  }

  void reduce() {
    Known x = bounded(any(), 8);
    if (x.rank() == 0) return;
    const std::vector<int64_t> axes = random_axes(x.rank());
    const bool keepdims = chance(50);
    const int which = between(0, 5);
    const double n = reduced_count(x, axes);
    if (which <= 1) {
      const bool whole = x.whole && x.bound * n < (x.half ? 200 : 1e6);
      return keep(
          {ops::sum(x.value, axes, keepdims), x.bound * n, x.whole, x.exact && whole, x.half});
    }
    if (which <= 3) {
      if (count(x.shape()) == 0) return;
      Value v = which == 2 ? ops::max(x.value, axes, keepdims) : ops::min(x.value, axes, keepdims);
      return keep({v, x.bound, x.whole, x.exact, x.half});
    }
    if (!x.exact || count(x.shape()) == 0) return;
    if (which == 4) {
      return keep({ops::any(ops::cast(x.value, DType::kBool), axes, keepdims), 1, true, true});
    }
    keep({ops::argmax(x.value, axes[0], keepdims), 100, true, true});
  }

  void reshape() {
    const Known& x = any();
    Shape shape;
    Dim merged = 1;
    for (const Dim& dim : x.shape()) {
      merged = merged * dim;
      if (chance(60)) {
        shape.push_back(merged);
        merged = 1;
      }
      if (chance(15)) shape.push_back(1);
    }
    if (merged != Dim(1) || shape.empty()) shape.push_back(merged);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (!shape[i].is_static() || shape[i].value() % 2 != 0 || shape[i].value() == 0) continue;
      if (!chance(40)) continue;
      shape.insert(shape.begin() + static_cast<ptrdiff_t>(i), Dim(shape[i].value() / 2));
      shape[i + 1] = 2;
      break;
    }
    Known y = x;
    y.value = ops::reshape(x.value, shape);
    keep(y);
  }

  void transpose() {
    Known x = any();
    std::vector<int64_t> perm;
    for (size_t i = 0; i < x.rank(); ++i) perm.push_back(static_cast<int64_t>(i));
    std::shuffle(perm.begin(), perm.end(), random_);
    x.value = ops::transpose(x.value, perm);
    keep(x);
  }

  void broadcast() {
    Known x = any();
    Shape shape = x.shape();
    for (Dim& dim : shape) {
      if (dim == Dim(1) && chance(60)) dim = random_dim();
    }
    if (chance(40)) shape.insert(shape.begin(), random_dim());
    x.value = ops::broadcast_to(x.value, shape);
    keep(x);
  }

  void squeeze() {
    Known x = any();
    x.value = chance(50) ? ops::squeeze(x.value)
                         : ops::expand_dims(x.value, {between(0, static_cast<int>(x.rank()))});
    keep(x);
  }

  void slice() {
    Known x = any();
    if (x.rank() == 0) return;
    const int axis = between(0, static_cast<int>(x.rank()) - 1);
    ops::SliceBound bound;
    if (chance(60)) bound.start = Dim(between(-3, 3));
    if (chance(60)) bound.stop = Dim(between(-2, 6));
    bound.step = pick({1, 1, 2, -1, -2});
    x.value = ops::slice_axis(x.value, axis, bound);
    keep(x);
  }

  void dynamic() {
    Known x = any();
    const Known& at = any();
    if (x.rank() == 0 || at.rank() != 0 || !is_integer(at.dtype()) || !at.exact) return;
    const int axis = between(0, static_cast<int>(x.rank()) - 1);
    Shape sizes = x.shape();
    if (size(sizes[static_cast<size_t>(axis)]) < 2) return;
    sizes[static_cast<size_t>(axis)] = 2;
    x.value = ops::dynamic_slice(x.value, {at.value}, {axis}, sizes);
    keep(x);
  }

  void join() {
    Known x = any();
    Known y = any();
    if (x.rank() == 0 || x.rank() != y.rank()) return;
    const int axis = between(0, static_cast<int>(x.rank()) - 1);
    std::vector<Value> parts{x.value, y.value};
    if (chance(30)) parts.push_back(x.value);
    if (x.dtype() != y.dtype()) return;
    keep({ops::concatenate(parts, axis), std::max(x.bound, y.bound), x.whole && y.whole,
          x.exact && y.exact, x.half || y.half});
  }

  void pad() {
    Known x = any();
    Shape before;
    Shape after;
    for (size_t i = 0; i < x.rank(); ++i) {
      before.push_back(Dim(between(0, 2)));
      after.push_back(Dim(between(0, 2)));
    }
    x.value = ops::pad(x.value, before, after, ops::scalar(x.dtype(), 1));
    keep(x);
  }

  struct Positions {
    int axis;
    Value index;  // i64, of elements of the axis
  };

  std::optional<Positions> positions(const Known& x) {
    if (x.rank() == 0) return std::nullopt;
    const int axis = between(0, static_cast<int>(x.rank()) - 1);
    const int64_t length = size(x.shape()[static_cast<size_t>(axis)]);
    if (length == 0) return std::nullopt;
    const Known& i = any();
    if (!i.exact || i.rank() > 2) return std::nullopt;
    const Value index = ops::cast(ops::abs(ops::cast(i.value, DType::kF64)), DType::kI64);
    return Positions{axis, ops::minimum(index, ops::scalar_int(DType::kI64, length - 1))};
  }

  void gather() {
    Known x = any();
    const std::optional<Positions> at = positions(x);
    if (!at) return;
    const auto& [axis, index] = *at;
    x.value = ops::take(x.value, index, axis);
    keep(x);
  }

  void scatter() {
    const Known x = any();
    const std::optional<Positions> at = positions(x);
    if (!at) return;
    const auto& [axis, index] = *at;
    const char* mode = chance(50) ? "set" : chance(50) ? "max" : "min";
    Value updates = chance(50) ? ops::take(x.value, index, axis) : ops::scalar(x.dtype(), 1);
    if (chance(50)) updates = ops::minimum(updates, ops::scalar(x.dtype(), 2));
    Known result = x;
    result.value = ops::scatter(x.value, index, updates, axis, mode);
    result.bound = std::max<double>(x.bound, 2);
    keep(result);
  }

  void product_of() {
    Known x = bounded(any(), 6);
    if (x.rank() < 2) return;
    const Dim& k = x.shape().back();
    const Dim n = random_dim();
    const DType dtype = x.dtype() == DType::kBool ? DType::kF32 : x.dtype();
    Known y = chance(30) && k.is_static() && k.value() > 0 ? external(dtype, {k, n})
                                                           : constant(dtype, {k, n});
    Value v = ops::matmul(ops::cast(x.value, dtype), y.value);
    const double bound = x.bound * 4 * std::max<double>(1, static_cast<double>(size(k)));
    const bool whole = x.whole && x.exact && bound < (is_half(dtype) ? 200 : 1e6);
    keep({v, is_unsigned(dtype) ? 1e9 : bound, x.whole, whole, x.half || is_half(dtype)});
  }

  void scan() {
    Known x = bounded(any(), 8);
    if (x.rank() == 0 || x.half) return;
    const int axis = between(0, static_cast<int>(x.rank()) - 1);
    const double bound =
        x.bound *
        std::max<double>(1, static_cast<double>(size(x.shape()[static_cast<size_t>(axis)])));
    if (chance(50)) {
      const auto extreme = chance(50) ? ops::cummax : ops::cummin;
      keep({extreme(x.value, axis, chance(30), false, nullptr), x.bound, x.whole, x.exact, x.half});
      return;
    }
    Value v = ops::cumsum(x.value, axis, chance(30), chance(30));
    keep({v, bound, x.whole, x.exact && x.whole && bound < 1e6, x.half});
  }

  void sort() {
    const Known x = any();
    if (x.rank() == 0) return;
    const int axis = between(0, static_cast<int>(x.rank()) - 1);
    Known sorted = x;
    sorted.value = ops::sort(x.value, axis, chance(30));
    keep(sorted);
  }

  void update() {
    const Known x = any();
    if (x.rank() == 0) return;
    const size_t axis = static_cast<size_t>(between(0, static_cast<int>(x.rank()) - 1));
    if (size(x.shape()[axis]) < 2) return;
    Shape region = x.shape();
    region[axis] = 2;
    Known y = constant(x.dtype(), region);
    if (chance(40)) {
      std::vector<ops::SliceBound> bounds(x.rank());
      bounds[axis] = {Dim(0), Dim(2)};
      y.value = ops::slice(x.value, bounds);
      y.bound = x.bound;
      y.whole = x.whole;
      y.exact = x.exact;
    }
    Value start = ops::scalar_int(DType::kI64, between(-1, 3));
    Value v = ops::dynamic_slice_update(x.value, y.value, {start}, {static_cast<int64_t>(axis)});
    keep({v, std::max(x.bound, y.bound), x.whole && y.whole, x.exact && y.exact, x.half || y.half});
  }

  Known float_of(Known x) {
    if (x.dtype() != DType::kF32) x.value = ops::cast(x.value, DType::kF32);
    return x;
  }

  void softmax() {
    Known x = float_of(bounded(any(), 8));
    if (x.rank() == 0 || count(x.shape()) == 0) return;
    const std::vector<int64_t> axes{between(0, static_cast<int>(x.rank()) - 1)};
    Value e = ops::exp(ops::sub(x.value, ops::max(x.value, axes, true)));
    keep({ops::div(e, ops::sum(e, axes, true)), 1, false, false, x.half});
  }

  void normalize() {
    Known x = float_of(bounded(any(), 8));
    if (x.rank() == 0 || count(x.shape()) == 0) return;
    const std::vector<int64_t> axes{between(0, static_cast<int>(x.rank()) - 1)};
    Value n = ops::size({x.shape()[static_cast<size_t>(axes[0])]}, DType::kF32);
    Value mean = ops::div(ops::sum(x.value, axes, true), n);
    Value centered = ops::sub(x.value, mean);
    Value variance = ops::div(ops::sum(ops::square(centered), axes, true), n);
    Value scale = ops::rsqrt(ops::add(variance, ops::scalar(DType::kF32, 1)));
    keep({ops::mul(centered, scale), 12, false, false, x.half});
  }

  void ramp() {
    const Shape shape = random_shape();
    if (shape.empty()) return;
    const int axis = between(0, static_cast<int>(shape.size()) - 1);
    const DType dtype = chance(50) ? DType::kI64 : DType::kF32;
    keep({ops::iota(shape, axis, dtype), 100, true, true});
  }

  void argument() {
    const Known& x = any();
    if (x.rank() > 0) keep(external(x.dtype(), x.shape()));
  }

  // A body of one to two arguments, called twice where its result has its argument's type.
  void call() {
    const Known x = bounded(any(), 4);
    if (!is_float(x.dtype())) return;
    Value p = ir::make_parameter(x.value.type(), "x");
    Value w = ir::make(ir::kConstantExternal, {},
                       {{"name", std::string("scale")},
                        {"dtype", x.dtype()},
                        {"shape", Shape{}},
                        {"relative", true}});
    Value v = ops::mul(ops::sub(p, w), w);
    for (int i = between(0, 9); i > 0; --i) {
      v = i % 2 == 0 ? ops::sub(v, p) : ops::minimum(ops::maximum(v, ops::neg(p)), p);
    }
    if (x.rank() > 0 && chance(40)) {
      const auto last = static_cast<int64_t>(x.rank()) - 1;
      if (count(x.shape()) > 0) v = ops::sub(v, ops::max(v, std::vector<int64_t>{last}, true));
    }
    ir::Graph body;
    body.name = fmt::format("body{}", bodies_);
    body.params = {p};
    body.param_names = {"x"};
    body.writable = {false};
    body.results = {v};
    const bool passes_on = chance(20);
    if (passes_on) body.results.push_back(p);
    auto callee = std::make_shared<const ir::Graph>(std::move(body));
    Value at = x.value;
    double bound = x.bound;
    const int calls = between(1, 3);
    for (int i = 0; i < calls; ++i) {
      const std::string prefix = fmt::format("c{}.{}.", bodies_, i);
      result_.externals.emplace(prefix + "scale", random_literal(x.dtype(), {}, 1));
      at = ir::make_call(callee, {at}, prefix)[0];
      bound = bound * 40 + 100;
    }
    ++bodies_;
    keep({at, bound, x.whole, x.exact && x.whole && bound < 1e6 && !x.half, x.half});
  }

  // --- results ---
  Closeness closeness(const Known& x) const {
    if (x.exact) return {};
    return {false, (x.half ? 0.05 : 4e-5) * std::max(1.0, x.bound)};
  }

  RandomGraph finish() {
    graph_.name = "random";
    const int results = between(1, 3);
    for (int i = 0; i < results; ++i) {
      const int back = std::min<int>(static_cast<int>(values_.size()) - 1, between(0, 4));
      const Known& x = values_[values_.size() - 1 - static_cast<size_t>(back)];
      graph_.results.push_back(x.value);
      result_.outputs.push_back(closeness(x));
    }
    for (uint32_t p = 0; p < graph_.params.size(); ++p) {
      if (!graph_.writable[p]) continue;
      std::vector<Known> same;
      for (const Known& x : values_) {
        if (x.value.type() == graph_.params[p].type()) same.push_back(x);
      }
      const Known& x = same[static_cast<size_t>(between(0, static_cast<int>(same.size()) - 1))];
      graph_.updates.push_back({p, x.value});
      result_.outputs.push_back(closeness(x));
    }
    result_.graph = std::make_shared<const ir::Graph>(std::move(graph_));
    return std::move(result_);
  }

  std::mt19937_64 random_;
  std::map<std::string, int64_t> sizes_;
  std::vector<Known> values_;
  ir::Graph graph_;
  RandomGraph result_;
  int bodies_ = 0;
};

}  // namespace

RandomGraph random_graph(uint64_t seed) { return Generator(seed).run(); }

std::string difference(const Literal& wanted, const Literal& got, const Closeness& closeness) {
  if (wanted.dtype() != got.dtype() || wanted.dims() != got.dims()) {
    return fmt::format("{} wanted, {} got", describe(wanted.dtype(), wanted.dims()),
                       describe(got.dtype(), got.dims()));
  }
  for (int64_t i = 0; i < wanted.count(); ++i) {
    const double a = wanted.get_double(i);
    const double b = got.get_double(i);
    const bool same = a == b ? std::signbit(a) == std::signbit(b) || !closeness.exact
                             : std::isnan(a) && std::isnan(b);
    if (same || (!closeness.exact && std::fabs(a - b) <= closeness.absolute)) continue;
    return fmt::format("element {} of {}: {} wanted, {} got", i,
                       describe(wanted.dtype(), wanted.dims()), a, b);
  }
  return "";
}

}  // namespace tenon::fuzz
