// Evaluation of the template subset.
#include <algorithm>
#include <cmath>
#include <optional>

#include "tenon/base/error.h"
#include "tenon/base/utf8.h"
#include "tenon/pipelines/jinja.h"

namespace tenon::pipelines::jinja {
namespace {

constexpr int64_t kMaxSteps = 2'000'000;
constexpr size_t kMaxOutput = size_t{16} << 20;
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

std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t n = std::max<size_t>(decode_utf8(text, at).bytes, 1);
    out.push_back(text.substr(at, n));
    at += n;
  }
  return out;
}

class Renderer {
 public:
  explicit Renderer(const Dict& variables) { scopes_.push_back(variables); }

  void run(const Node& n) {
    step(n);
    switch (n.kind) {
      case NodeKind::kText: return write(n, n.text);
      case NodeKind::kPrint: return write(n, value(*n.children[0]).text());
      case NodeKind::kBlock:
        for (const NodePtr& child : n.children) run(*child);
        return;
      case NodeKind::kIf: return run_if(n);
      case NodeKind::kFor: return run_for(n);
      default: return run_set(n);
    }
  }

  std::string take() { return std::move(out_); }

 private:
  [[noreturn]] void fail(const Node& n, const std::string& what) const {
    throw ValueError(fmt::format("chat template: line {}: {}", n.line, what));
  }

  void step(const Node& n) {
    if (++steps_ > kMaxSteps) fail(n, "the template takes too long");
  }

  // A bound on every string that is made bounds memory.
  Value text(const Node& n, std::string s) {
    made_ += s.size();
    if (made_ > 4 * kMaxOutput) fail(n, "the template makes too much text");
    return {std::move(s)};
  }

  void write(const Node& n, const std::string& s) {
    if (out_.size() + s.size() > kMaxOutput) fail(n, "the output is too long");
    out_ += s;
  }

  void run_if(const Node& n) {
    size_t i = 0;
    for (; i + 1 < n.children.size(); i += 2) {
      if (value(*n.children[i]).truthy()) return run(*n.children[i + 1]);
    }
    if (i < n.children.size()) run(*n.children[i]);
  }

  void run_for(const Node& n) {
    Value over = value(*n.children[0]);
    List items;
    if (auto l = over.list()) {
      items = *l;
    } else if (auto d = over.dict(); d && !d->is_namespace) {
      for (const auto& item : d->items) items.push_back({item.first});
    } else if (auto s = over.string()) {
      for (std::string& c : characters(*s)) items.push_back({std::move(c)});
    } else if (!over.is_undefined()) {
      fail(n, "for over what is not a list");
    }
    if (items.empty()) {
      if (n.children.size() > 2) run(*n.children[2]);
      return;
    }
    const auto count = static_cast<int64_t>(items.size());
    for (int64_t i = 0; i < count; ++i) {
      Dict loop;
      loop.items = {{"index", {i + 1}},
                    {"index0", {i}},
                    {"first", {i == 0}},
                    {"last", {i + 1 == count}},
                    {"length", {count}}};
      scopes_.emplace_back();
      scopes_.back().set(n.text, items[static_cast<size_t>(i)]);
      scopes_.back().set("loop", Value::of(std::move(loop)));
      run(*n.children[1]);
      scopes_.pop_back();
    }
  }

  void run_set(const Node& n) {
    Value v = value(*n.children[0]);
    if (n.name2.empty()) return scopes_.back().set(n.text, std::move(v));
    Value target = lookup(n.text);
    Dict* space = target.dict();
    if (space == nullptr || !space->is_namespace) fail(n, n.text + " is not a namespace");
    // Nothing may hold a namespace but a variable: so values have no cycles.
    if (holds_namespace(v)) fail(n, "a namespace cannot hold a namespace");
    space->set(n.name2, std::move(v));
  }

  static bool holds_namespace(const Value& v) {
    if (auto d = v.dict()) {
      return d->is_namespace || std::any_of(d->items.begin(), d->items.end(), [](const auto& item) {
               return holds_namespace(item.second);
             });
    }
    auto l = v.list();
    return l && std::any_of(l->begin(), l->end(), holds_namespace);
  }

  Value lookup(const std::string& name) const {
    for (auto it = scopes_.rbegin(); it != scopes_.rend(); ++it) {
      if (const Value* v = it->find(name)) return *v;
    }
    return {};
  }

  Value value(const Node& n) {
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

  Value index(const Node& n, const Value& object, const Value& key) {
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

  Value slice(const Node& n) {
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

  Value unary(const Node& n, const Value& v) {
    if (n.text == "not") return {!v.truthy()};
    if (auto d = v.as<double>()) return {-*d};
    auto i = v.as<int64_t>();
    if (!i || *i == INT64_MIN) fail(n, "the negative of what is not a number");
    return {-*i};
  }

  Value binary(const Node& n) {
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

  bool within(const Node& n, const Value& a, const Value& b) {
    if (a.string() && b.string()) return b.string()->find(*a.string()) != std::string::npos;
    if (auto l = b.list()) return std::find(l->begin(), l->end(), a) != l->end();
    if (auto d = b.dict()) return a.string() && d->find(*a.string()) != nullptr;
    fail(n, "in needs a list, a mapping or a string on its right");
  }

  static std::optional<double> number(const Value& v) {
    if (auto i = v.as<int64_t>()) return static_cast<double>(*i);
    if (auto d = v.as<double>()) return *d;
    if (auto b = v.as<bool>()) return *b ? 1.0 : 0.0;
    return std::nullopt;
  }

  bool ordered(const Node& n, const Value& a, const Value& b) {
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

  Value arithmetic(const Node& n, const Value& a, const Value& b) {
    auto i = a.as<int64_t>();
    auto j = b.as<int64_t>();
    auto x = number(a);
    auto y = number(b);
    if (!x || !y)
      fail(n,
           n.text + " between values that are not numbers" + (n.text == "+" ? " or strings" : ""));
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

  static bool test(const std::string& name, const Value& v) {
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

  std::vector<Value> arguments(const Node& n, size_t least, size_t most) {
    std::vector<Value> out;
    for (size_t i = 1; i < n.children.size(); ++i) out.push_back(value(*n.children[i]));
    if (out.size() < least || out.size() > most) {
      fail(n, fmt::format("{} takes {} to {} arguments, got {}", n.text, least, most, out.size()));
    }
    return out;
  }

  std::string string_of(const Node& n, const Value& v) {
    if (!v.string()) fail(n, n.text + " of what is not a string");
    return *v.string();
  }

  Value filter(const Node& n) {
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

  Value replace(const Node& n, const Value& v) {
    auto args = arguments(n, 2, 2);
    std::string s = string_of(n, v), from = string_of(n, args[0]), to = string_of(n, args[1]);
    if (!from.empty() && s.size() / from.size() > kMaxOutput / (to.size() + 1))
      fail(n, "the text is too long");
    return text(n, replace_all(s, from, to));
  }

  Value method(const Node& n) {
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

  // By a separator, or by runs of white space without one.
  Value split(const Node& n, const std::string& s, const std::string& separator) {
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

  Value call(const Node& n) {
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
      throw ValueError("chat template: " +
                       (args.empty() ? std::string("refused") : args[0].text()));
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

  std::vector<Dict> scopes_;
  std::string out_;
  int64_t steps_ = 0;
  size_t made_ = 0;
};

}  // namespace

std::string render(const Node& root, const Dict& variables) {
  Renderer renderer(variables);
  renderer.run(root);
  return renderer.take();
}

}  // namespace tenon::pipelines::jinja
