#include <algorithm>
#include <cmath>
#include <optional>

#include "tenon/base/error.h"
#include "tenon/pipelines/jinja.h"

namespace tenon::pipelines::jinja {
namespace {

std::string quoted_json(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<int>(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

std::string number_text(double value) {
  if (std::isfinite(value) && value == std::trunc(value) && std::fabs(value) < 1e16) {
    return fmt::format("{:.1f}", value);
  }
  return fmt::format("{}", value);
}

std::optional<double> number(const Value& v) {
  if (auto b = v.as<bool>()) return *b ? 1.0 : 0.0;
  if (auto i = v.as<int64_t>()) return static_cast<double>(*i);
  if (auto d = v.as<double>()) return *d;
  return std::nullopt;
}

}  // namespace

const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : items) {
    if (name == key) return &value;
  }
  return nullptr;
}

void Dict::set(std::string_view key, Value value) {
  for (auto& [name, old] : items) {
    if (name == key) {
      old = std::move(value);
      return;
    }
  }
  items.emplace_back(key, std::move(value));
}

bool Value::truthy() const {
  if (auto n = number(*this)) return *n != 0;
  if (auto s = string()) return !s->empty();
  if (auto l = list()) return !l->empty();
  if (auto d = dict()) return d->is_namespace || !d->items.empty();
  return false;
}

std::string Value::text() const {
  if (is_undefined()) return "";
  if (as<None>()) return "None";
  if (auto b = as<bool>()) return *b ? "True" : "False";
  if (auto i = as<int64_t>()) return fmt::format("{}", *i);
  if (auto d = as<double>()) return number_text(*d);
  if (auto s = string()) return *s;
  throw UnsupportedError(
      "chat template: printing a list or a mapping without tojson is not supported");
}

std::string Value::json() const {
  if (as<None>()) return "null";
  if (auto b = as<bool>()) return *b ? "true" : "false";
  if (auto s = string()) return quoted_json(*s);
  if (auto l = list()) {
    std::string out = "[";
    for (const Value& v : *l) out += (out.size() > 1 ? ", " : "") + v.json();
    return out + "]";
  }
  if (auto d = dict()) {
    std::string out = "{";
    for (const auto& [key, v] : d->items) {
      out += (out.size() > 1 ? ", " : "") + quoted_json(key) + ": " + v.json();
    }
    return out + "}";
  }
  if (is_undefined()) throw ValueError("chat template: tojson of an undefined value");
  return text();
}

bool Value::operator==(const Value& other) const {
  auto a = number(*this);
  auto b = number(other);
  if (a && b) return *a == *b;
  if (string() && other.string()) return *string() == *other.string();
  if (as<None>() && other.as<None>()) return true;
  if (is_undefined() && other.is_undefined()) return true;
  if (list() && other.list()) return *list() == *other.list();
  if (dict() && other.dict()) return dict()->items == other.dict()->items;
  return false;
}

}  // namespace tenon::pipelines::jinja
