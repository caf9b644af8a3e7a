// Statements of the template subset.
#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/pipelines/jinja_renderer.h"

namespace tenon::pipelines::jinja {

void Renderer::fail(const Node& n, const std::string& what) const {
  throw ValueError(fmt::format("chat template: line {}: {}", n.line, what));
}

void Renderer::run(const Node& n) {
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

void Renderer::step(const Node& n) {
  if (++steps_ > kMaxSteps) fail(n, "the template takes too long");
}

Value Renderer::text(const Node& n, std::string s) {
  made_ += s.size();
  if (made_ > 4 * kMaxOutput) fail(n, "the template makes too much text");
  return {std::move(s)};
}

void Renderer::write(const Node& n, const std::string& s) {
  if (out_.size() + s.size() > kMaxOutput) fail(n, "the output is too long");
  out_ += s;
}

void Renderer::run_if(const Node& n) {
  size_t i = 0;
  for (; i + 1 < n.children.size(); i += 2) {
    if (value(*n.children[i]).truthy()) return run(*n.children[i + 1]);
  }
  if (i < n.children.size()) run(*n.children[i]);
}

void Renderer::run_for(const Node& n) {
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

void Renderer::run_set(const Node& n) {
  Value v = value(*n.children[0]);
  if (n.name2.empty()) return scopes_.back().set(n.text, std::move(v));
  Value target = lookup(n.text);
  Dict* space = target.dict();
  if (space == nullptr || !space->is_namespace) fail(n, n.text + " is not a namespace");
  // Nothing may hold a namespace but a variable: so values have no cycles.
  if (holds_namespace(v)) fail(n, "a namespace cannot hold a namespace");
  space->set(n.name2, std::move(v));
}

bool Renderer::holds_namespace(const Value& v) {
  if (auto d = v.dict()) {
    return d->is_namespace || std::any_of(d->items.begin(), d->items.end(), [](const auto& item) {
             return holds_namespace(item.second);
           });
  }
  auto l = v.list();
  return l && std::any_of(l->begin(), l->end(), holds_namespace);
}

Value Renderer::lookup(const std::string& name) const {
  for (auto it = scopes_.rbegin(); it != scopes_.rend(); ++it) {
    if (const Value* v = it->find(name)) return *v;
  }
  return {};
}

std::string render(const Node& root, const Dict& variables) {
  Renderer renderer(variables);
  renderer.run(root);
  return renderer.take();
}

}  // namespace tenon::pipelines::jinja
