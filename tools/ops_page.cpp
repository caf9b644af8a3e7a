// Prints docs/ops.md: every op of the table, in groups by what it does to its operands.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "tenon/ir/op_def.h"
#include "tenon/ops/registry.h"

namespace {

using tenon::ir::OpDef;

struct Group {
  std::string_view title;
  bool (*holds)(const OpDef&);
};

// The first group that holds an op lists it.
constexpr Group kGroups[] = {
    {"Elementwise", [](const OpDef& op) { return op.is(tenon::ir::kElementwise); }},
    {"Reductions", [](const OpDef& op) { return op.is(tenon::ir::kReduction); }},
    {"Movement", [](const OpDef& op) { return op.is(tenon::ir::kMovement); }},
    {"Leaves", [](const OpDef& op) { return op.is(tenon::ir::kLeaf); }},
    {"Structure", [](const OpDef& op) { return op.is(tenon::ir::kStructural); }},
    {"Others", [](const OpDef&) { return true; }},
};

const Group* group_of(const OpDef& op) {
  for (const Group& group : kGroups) {
    if (group.holds(op)) return &group;
  }
  return nullptr;
}

std::string operands(const OpDef& op) {
  if (op.max_operands < 0) return fmt::format("{} or more", op.min_operands);
  if (op.max_operands != op.min_operands) {
    return fmt::format("{} to {}", op.min_operands, op.max_operands);
  }
  return fmt::format("{}", op.min_operands);
}

std::string attributes(const OpDef& op) {
  std::string text;
  for (const tenon::ir::AttrSpec& spec : op.attrs) {
    text += fmt::format("{}`{}`{}", text.empty() ? "" : ", ", spec.name,
                        spec.required ? "" : " (optional)");
  }
  return text;
}

}  // namespace

int main() {
  tenon::ops::register_all();
  fmt::print(
      "# Ops\n\nGenerated from the op table by `./dev docs`. Composites (softmax, layer_norm, gelu, "
      "attention and others)\nare functions of these and have no row.\n");
  for (const Group& group : kGroups) {
    fmt::print("\n## {}\n\n| op | operands | attributes | meaning |\n|---|---|---|---|\n",
               group.title);
    for (const OpDef* op : tenon::ir::all_ops()) {
      if (group_of(*op) != &group) continue;
      fmt::print("| `{}` | {} | {} | {} |\n", op->name, operands(*op), attributes(*op), op->doc);
    }
  }
  return 0;
}
