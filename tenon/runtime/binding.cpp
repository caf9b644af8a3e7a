#include "tenon/runtime/binding.h"

#include <algorithm>
#include <optional>

#include "tenon/base/error.h"

namespace tenon::runtime {

bool overlap(const Array& a, const Array& b) {
  auto begin = [](const Array& x) { return reinterpret_cast<uintptr_t>(x.data()); };
  return begin(a) < begin(b) + b.bytes() && begin(b) < begin(a) + a.bytes();
}

void check_writable_apart(const std::string& function, const std::vector<ArgumentSpec>& specs,
                          std::span<const Array> arguments) {
  for (size_t i = 0; i < specs.size(); ++i) {
    for (size_t k = i + 1; specs[i].writable && k < specs.size(); ++k) {
      if (!specs[k].writable || !overlap(arguments[i], arguments[k])) continue;
      throw ValueError(fmt::format("{}: writable arguments {} and {} share memory", function,
                                   specs[i].route, specs[k].route),
                       {.label = "argument_overlap"});
    }
  }
}

Binding::Binding(std::string function, const std::vector<ArgumentSpec>& arguments,
                 SymbolTable& symbols)
    : function_(std::move(function)) {
  uint32_t machine = symbols.size();
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    routes_.push_back(arguments[i].route);
    for (uint32_t axis = 0; axis < arguments[i].shape.size(); ++axis) {
      const Dim& dim = arguments[i].shape[axis];
      if (!dim.is_symbol()) continue;
      const uint32_t* known = symbols.find(dim.symbol());
      uint32_t symbol = known != nullptr ? *known : symbols.index(dim.symbol());
      Place place{i, axis, symbol, dim.symbols().front().second};
      (known != nullptr ? again_ : first_).push_back(place);
    }
  }
  std::vector<std::pair<uint32_t, uint32_t>> solved;
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    for (uint32_t axis = 0; axis < arguments[i].shape.size(); ++axis) {
      const std::optional<AffineDim> form = as_affine(arguments[i].shape[axis]);
      if (!form || symbols.find(form->name) != nullptr) continue;
      const uint32_t symbol = symbols.index(form->name);
      first_.push_back({i, axis, symbol, form->range, form->scale, form->offset});
      solved.emplace_back(i, axis);
    }
  }
  bound_ = symbols.size();
  for (uint32_t i = 0; i < bound_; ++i) names_.push_back(symbols.name(i));
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    for (uint32_t axis = 0; axis < arguments[i].shape.size(); ++axis) {
      const Dim& dim = arguments[i].shape[axis];
      if (dim.is_static() || dim.is_symbol()) continue;
      if (std::find(solved.begin(), solved.end(), std::pair(i, axis)) != solved.end()) continue;
      Expression expression{i, axis, DimProgram(dim, symbols), {}};
      for (const auto& [name, range] : dim.symbols()) {
        const uint32_t* known = symbols.find(name);
        if (*known >= bound_ || *known < machine) {
          throw ValueError(
              fmt::format(
                  "{}: the name {} is the size of no argument's dimension, it only stands in "
                  "{} of argument {}",
                  function_, name, dim.str(), arguments[i].route),
              {.label = "argument_symbol",
               .hint = "give one argument a dimension that is the bare name"});
        }
        expression.symbols.push_back(*known);
      }
      expressions_.push_back(std::move(expression));
    }
  }
}

std::string Binding::begin(uint32_t argument) const {
  return fmt::format("{}{}argument {}: ", function_, function_.empty() ? "" : ": ",
                     routes_[argument]);
}

void Binding::differ(const Place& place, const std::vector<int64_t>& values, int64_t got) const {
  const std::string& name = names_[place.symbol];
  const Place& first = first_[place.symbol - (bound_ - first_.size())];
  std::string other = first.argument == place.argument
                          ? fmt::format("its dimension {}", first.axis)
                          : fmt::format("argument {}", routes_[first.argument]);
  throw ShapeError(fmt::format("{}dim {} is {}, but {} has {} = {}", begin(place.argument), name,
                               got, other, name, values[place.symbol]),
                   {.label = "argument_dim"});
}

void Binding::not_whole(const Place& place, int64_t got) const {
  const std::string& name = names_[place.symbol];
  throw ShapeError(
      fmt::format("{}dim {} is {}, expected {} for a whole {}", begin(place.argument), place.axis,
                  got, (Dim(name) * place.scale + place.offset).str(), name),
      {.label = "argument_dim"});
}

void Binding::out_of_range(const Place& place, int64_t got) const {
  const DimRange& range = place.range;
  std::string text =
      fmt::format("{}dim {} is {}, ", begin(place.argument), names_[place.symbol], got);
  if (got < range.min || got > range.max) {
    std::string max = range.max == DimRange::kInf ? "inf)" : fmt::format("{}]", range.max);
    text += fmt::format("outside its range [{}, {}", range.min, max);
  } else {
    text += fmt::format("not a multiple of {}", range.divisor);
  }
  throw ShapeError(text, {.label = "argument_range"});
}

void Binding::differ(const Expression& e, const std::vector<int64_t>& values, int64_t got,
                     int64_t expected) const {
  std::string where;
  for (uint32_t symbol : e.symbols) {
    where += fmt::format("{}{} = {}", where.empty() ? "" : ", ", names_[symbol], values[symbol]);
  }
  throw ShapeError(fmt::format("{}dim {} is {}, expected {} = {} for {}", begin(e.argument), e.axis,
                               got, e.program.text(), expected, where),
                   {.label = "argument_dim"});
}

void Binding::bind(std::span<const Array> arguments, std::vector<int64_t>& values) const {
  values.resize(bound_);
  auto actual = [&](const auto& place) { return arguments[place.argument].dims()[place.axis]; };
  auto check_range = [&](const Place& place, int64_t value) {
    const DimRange& r = place.range;
    if (value < r.min || value > r.max || (r.divisor > 1 && value % r.divisor != 0)) {
      out_of_range(place, value);
    }
  };
  for (const Place& place : first_) {
    int64_t value = actual(place);
    if (place.scale != 1 || place.offset != 0) {
      if ((value - place.offset) % place.scale != 0) not_whole(place, value);
      value = (value - place.offset) / place.scale;
    }
    check_range(place, value);
    values[place.symbol] = value;
  }
  for (const Place& place : again_) {
    int64_t value = actual(place);
    if (value != values[place.symbol]) differ(place, values, value);
    check_range(place, value);
  }
  for (const Expression& e : expressions_) {
    int64_t expected = e.program.eval(values);
    if (actual(e) != expected) differ(e, values, actual(e), expected);
  }
}

}  // namespace tenon::runtime
