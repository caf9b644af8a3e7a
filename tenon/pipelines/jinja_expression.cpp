// Expressions of the template subset: their values.
#include <algorithm>
#include <cmath>

#include "tenon/base/utf8.h"
#include "tenon/pipelines/jinja_renderer.h"

namespace tenon::pipelines::jinja {

std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t n = std::max<size_t>(decode_utf8(text, at).bytes, 1);
    out.push_back(text.substr(at, n));
    at += n;
  }
  return out;
}

Value Renderer::value(const Node& n) {
  step(n);
  auto child = [&](size_t i) { return value(*n.children[i]); };
  switch (n.kind) {
    case NodeKind::kConstant: return n.value;
    case NodeKind::kName: return lookup(n.text);
    case NodeKind::kIndex: return index(n, child(0), child(1));
    case NodeKind::kSlice: return slice(n);
    case NodeKind::kList: {
      List items;
      for (size_t i = 0; i < n.children.size(); ++i) items.push_back(child(i));
      return Value::of(std::move(items));
    }
    case NodeKind::kDict: {
      Dict dict;
      for (size_t i = 0; i < n.children.size(); i += 2) {
        Value key = child(i);
        if (!key.string()) fail(n, "the key of a mapping is not a string");
        dict.set(*key.string(), child(i + 1));
      }
      return Value::of(std::move(dict));
    }
    case NodeKind::kUnary: return unary(n, child(0));
    case NodeKind::kBinary: return binary(n);
    case NodeKind::kCondition:
      if (child(1).truthy()) return child(0);
      return n.children[2] ? child(2) : Value{};
    case NodeKind::kTest: return {test(n.text, child(0))};
    case NodeKind::kFilter: return filter(n);
    case NodeKind::kMethod: return method(n);
    default: return call(n);
  }
}

Value Renderer::index(const Node& n, const Value& object, const Value& key) {
  if (object.is_undefined()) fail(n, "an attribute of an undefined value");
  if (auto d = object.dict()) {
    const Value* found = key.string() ? d->find(*key.string()) : nullptr;
    return found ? *found : Value{};
  }
  auto i = key.as<int64_t>();
  auto l = object.list();
  if (l && i) {
    auto size = static_cast<int64_t>(l->size());
    int64_t at = *i < 0 ? *i + size : *i;
    return at >= 0 && at < size ? (*l)[static_cast<size_t>(at)] : Value{};
  }
  if (object.string() && i) {
    std::vector<std::string> all = characters(*object.string());
    auto size = static_cast<int64_t>(all.size());
    int64_t at = *i < 0 ? *i + size : *i;
    return at >= 0 && at < size ? Value{all[static_cast<size_t>(at)]} : Value{};
  }
  return {};
}

Value Renderer::slice(const Node& n) {
  Value object = value(*n.children[0]);
  std::vector<std::string> chars;
  if (object.string()) chars = characters(*object.string());
  if (!object.string() && !object.list()) fail(n, "a slice of what is not a list or a string");
  auto size = static_cast<int64_t>(object.list() ? object.list()->size() : chars.size());
  auto bound = [&](const NodePtr& node, int64_t otherwise) {
    if (!node) return otherwise;
    Value v = value(*node);
    auto i = v.as<int64_t>();
    if (!i) fail(n, "the bound of a slice is not an integer");
    return std::clamp<int64_t>(*i < 0 ? *i + size : *i, 0, size);
  };
  int64_t from = bound(n.children[1], 0);
  int64_t to = std::max(from, bound(n.children[2], size));
  if (auto l = object.list()) return Value::of(List(l->begin() + from, l->begin() + to));
  std::string out;
  for (int64_t i = from; i < to; ++i) out += chars[static_cast<size_t>(i)];
  return text(n, std::move(out));
}

Value Renderer::unary(const Node& n, const Value& v) {
  if (n.text == "not") return {!v.truthy()};
  if (auto d = v.as<double>()) return {-*d};
  auto i = v.as<int64_t>();
  if (!i || *i == INT64_MIN) fail(n, "the negative of what is not a number");
  return {-*i};
}

Value Renderer::binary(const Node& n) {
  Value a = value(*n.children[0]);
  const std::string& op = n.text;
  if (op == "and") return a.truthy() ? value(*n.children[1]) : a;
  if (op == "or") return a.truthy() ? a : value(*n.children[1]);
  Value b = value(*n.children[1]);
  if (op == "==") return {a == b};
  if (op == "!=") return {!(a == b)};
  if (op == "in") return {within(n, a, b)};
  if (op == "not in") return {!within(n, a, b)};
  if (op == "~") return text(n, a.text() + b.text());
  if (op[0] == '<' || op[0] == '>') return {ordered(n, a, b)};
  if (op == "+" && a.string() && b.string()) return text(n, *a.string() + *b.string());
  if (op == "+" && a.list() && b.list()) {
    List out = *a.list();
    out.insert(out.end(), b.list()->begin(), b.list()->end());
    steps_ += static_cast<int64_t>(out.size());
    return Value::of(std::move(out));
  }
  return arithmetic(n, a, b);
}

bool Renderer::within(const Node& n, const Value& a, const Value& b) {
  if (a.string() && b.string()) return b.string()->find(*a.string()) != std::string::npos;
  if (auto l = b.list()) return std::find(l->begin(), l->end(), a) != l->end();
  if (auto d = b.dict()) return a.string() && d->find(*a.string()) != nullptr;
  fail(n, "in needs a list, a mapping or a string on its right");
}

std::optional<double> Renderer::number(const Value& v) {
  if (auto i = v.as<int64_t>()) return static_cast<double>(*i);
  if (auto d = v.as<double>()) return *d;
  if (auto b = v.as<bool>()) return *b ? 1.0 : 0.0;
  return std::nullopt;
}

bool Renderer::ordered(const Node& n, const Value& a, const Value& b) {
  int order;
  auto x = number(a);
  auto y = number(b);
  if (x && y) {
    order = *x < *y ? -1 : *x > *y ? 1 : 0;
  } else if (a.string() && b.string()) {
    order = a.string()->compare(*b.string());
  } else {
    fail(n, n.text + " between values that have no order");
  }
  if (n.text == "<") return order < 0;
  if (n.text == "<=") return order <= 0;
  return n.text == ">" ? order > 0 : order >= 0;
}

Value Renderer::arithmetic(const Node& n, const Value& a, const Value& b) {
  auto i = a.as<int64_t>();
  auto j = b.as<int64_t>();
  auto x = number(a);
  auto y = number(b);
  if (!x || !y)
    fail(n, n.text + " between values that are not numbers" + (n.text == "+" ? " or strings" : ""));
  const char op = n.text == "//" ? 'q' : n.text[0];
  if ((op == 'q' || op == '/' || op == '%') && *y == 0) fail(n, "division by zero");
  if (!i || !j || op == '/') {
    switch (op) {
      case '+': return {*x + *y};
      case '-': return {*x - *y};
      case '*': return {*x * *y};
      case '/': return {*x / *y};
      case 'q': return {std::floor(*x / *y)};
      default: return {*x - std::floor(*x / *y) * *y};
    }
  }
  int64_t out = 0;
  bool overflow = false;
  switch (op) {
    case '+': overflow = __builtin_add_overflow(*i, *j, &out); break;
    case '-': overflow = __builtin_sub_overflow(*i, *j, &out); break;
    case '*': overflow = __builtin_mul_overflow(*i, *j, &out); break;
    default: {
      overflow = *j == -1 && *i == INT64_MIN;
      if (overflow) break;
      int64_t rest = *i % *j;
      bool down = rest != 0 && (rest < 0) != (*j < 0);
      out = op == 'q' ? *i / *j - (down ? 1 : 0) : rest + (down ? *j : 0);
    }
  }
  if (overflow) fail(n, "an integer overflows");
  return {out};
}

}  // namespace tenon::pipelines::jinja
