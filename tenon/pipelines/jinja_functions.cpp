// Filters, methods, tests and functions of the template subset.
#include <algorithm>
#include <cmath>

#include "tenon/base/error.h"
#include "tenon/pipelines/jinja_renderer.h"

namespace tenon::pipelines::jinja {

namespace {

constexpr std::string_view kSpaces = " \t\n\r\f\v";

std::string strip(std::string_view text, std::string_view chars, bool left, bool right) {
  size_t from = left ? std::min(text.find_first_not_of(chars), text.size()) : 0;
  text.remove_prefix(from);
  if (right) text = text.substr(0, text.find_last_not_of(chars) + 1);
  return std::string(text);
}

std::string in_case(std::string text, bool upper) {
  for (char& c : text) {
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return text;
}

std::string replace_all(const std::string& text, const std::string& from, const std::string& to) {
  if (from.empty()) return text;
  std::string out;
  size_t at = 0;
  for (size_t hit; (hit = text.find(from, at)) != text.npos; at = hit + from.size()) {
    out += text.substr(at, hit - at) + to;
  }
  return out + text.substr(at);
}

}  // namespace

bool Renderer::test(const std::string& name, const Value& v) {
  if (name == "defined") return !v.is_undefined();
  if (name == "undefined") return v.is_undefined();
  if (name == "none") return v.as<None>() != nullptr;
  if (name == "string") return v.string() != nullptr;
  if (name == "number") return v.as<int64_t>() || v.as<double>();
  if (name == "boolean") return v.as<bool>() != nullptr;
  if (name == "true") return v.as<bool>() && *v.as<bool>();
  if (name == "false") return v.as<bool>() && !*v.as<bool>();
  if (name == "mapping") return v.dict() != nullptr;
  return v.list() || v.dict() || v.string();  // sequence, iterable
}

std::vector<Value> Renderer::arguments(const Node& n, size_t least, size_t most) {
  std::vector<Value> out;
  for (size_t i = 1; i < n.children.size(); ++i) out.push_back(value(*n.children[i]));
  if (out.size() < least || out.size() > most) {
    fail(n, fmt::format("{} takes {} to {} arguments, got {}", n.text, least, most, out.size()));
  }
  return out;
}

std::string Renderer::string_of(const Node& n, const Value& v) {
  if (!v.string()) fail(n, n.text + " of what is not a string");
  return *v.string();
}

Value Renderer::filter(const Node& n) {
  Value v = value(*n.children[0]);
  const std::string& name = n.text;
  if (name == "default") {
    auto args = arguments(n, 1, 2);
    bool falsy_too = args.size() > 1 && args[1].truthy();
    return v.is_undefined() || (falsy_too && !v.truthy()) ? args[0] : v;
  }
  if (name == "join") {
    auto args = arguments(n, 0, 1);
    if (!v.list()) fail(n, "join of what is not a list");
    std::string out;
    for (size_t i = 0; i < v.list()->size(); ++i) {
      if (i > 0 && !args.empty()) out += args[0].text();
      out += (*v.list())[i].text();
    }
    return text(n, std::move(out));
  }
  if (name == "replace") return replace(n, v);
  arguments(n, 0, 0);
  if (name == "trim") return text(n, strip(v.text(), kSpaces, true, true));
  if (name == "upper" || name == "lower") return text(n, in_case(v.text(), name == "upper"));
  if (name == "capitalize") {
    std::string s = in_case(v.text(), false);
    return text(n, in_case(s.substr(0, 1), true) + s.substr(std::min<size_t>(1, s.size())));
  }
  if (name == "string") return text(n, v.text());
  if (name == "safe") return v;
  if (name == "tojson") return text(n, v.json());
  if (name == "int") {
    auto x = number(v);
    if (!x || std::fabs(*x) >= 0x1p63) fail(n, "int of what is not a number");
    return {static_cast<int64_t>(*x)};
  }
  if (name == "first") return index(n, v, {int64_t{0}});
  if (name == "last") return index(n, v, {int64_t{-1}});
  if (auto l = v.list()) return {static_cast<int64_t>(l->size())};
  if (auto d = v.dict()) return {static_cast<int64_t>(d->items.size())};
  if (auto s = v.string()) return {static_cast<int64_t>(characters(*s).size())};
  fail(n, name + " of what has no length");
}

Value Renderer::replace(const Node& n, const Value& v) {
  auto args = arguments(n, 2, 2);
  std::string s = string_of(n, v), from = string_of(n, args[0]), to = string_of(n, args[1]);
  if (!from.empty() && s.size() / from.size() > kMaxOutput / (to.size() + 1))
    fail(n, "the text is too long");
  return text(n, replace_all(s, from, to));
}

Value Renderer::method(const Node& n) {
  Value object = value(*n.children[0]);
  std::string s = string_of(n, object);
  const std::string& name = n.text;
  if (name == "replace") return replace(n, object);
  if (name == "upper" || name == "lower") {
    arguments(n, 0, 0);
    return text(n, in_case(s, name == "upper"));
  }
  auto args = arguments(n, name.ends_with("with") ? 1 : 0, 1);
  std::string argument = args.empty() ? "" : string_of(n, args[0]);
  if (name == "startswith") return {s.starts_with(argument)};
  if (name == "endswith") return {s.ends_with(argument)};
  if (name == "split") return split(n, s, argument);
  std::string_view chars = args.empty() ? kSpaces : std::string_view(argument);
  return text(n, strip(s, chars, name != "rstrip", name != "lstrip"));
}

Value Renderer::split(const Node& n, const std::string& s, const std::string& separator) {
  List out;
  size_t at = 0;
  if (separator.empty()) {
    while ((at = s.find_first_not_of(kSpaces, at)) != s.npos) {
      size_t end = std::min(s.find_first_of(kSpaces, at), s.size());
      out.push_back(text(n, s.substr(at, end - at)));
      at = end;
    }
    return Value::of(std::move(out));
  }
  for (size_t hit; (hit = s.find(separator, at)) != s.npos; at = hit + separator.size()) {
    out.push_back(text(n, s.substr(at, hit - at)));
  }
  out.push_back(text(n, s.substr(at)));
  return Value::of(std::move(out));
}

Value Renderer::call(const Node& n) {
  std::vector<Value> args;
  for (const NodePtr& child : n.children) args.push_back(value(*child));
  if (n.text == "namespace") {
    Dict space;
    space.is_namespace = true;
    for (size_t i = 0; i < args.size(); ++i) {
      if (n.names[i].empty() || holds_namespace(args[i])) fail(n, "namespace takes named values");
      space.set(n.names[i], args[i]);
    }
    return Value::of(std::move(space));
  }
  if (n.text == "raise_exception") {
    throw ValueError("chat template: " + (args.empty() ? std::string("refused") : args[0].text()));
  }
  for (const Value& v : args) {
    if (!v.as<int64_t>()) fail(n, "range takes integers");
  }
  if (args.empty() || args.size() > 2) fail(n, "range takes 1 or 2 arguments");
  int64_t from = args.size() == 2 ? *args[0].as<int64_t>() : 0;
  int64_t to = *args.back().as<int64_t>();
  if (to > from && (from < -kMaxSteps || to > kMaxSteps)) fail(n, "range is too long");
  List out;
  for (int64_t i = from; i < to; ++i) {
    step(n);
    out.push_back({i});
  }
  return Value::of(std::move(out));
}

}  // namespace tenon::pipelines::jinja
