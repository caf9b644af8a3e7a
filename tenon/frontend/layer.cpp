#include "tenon/frontend/layer.h"

#include <string_view>

#include "tenon/base/error.h"

namespace tenon {
namespace {

thread_local std::string path;

std::string_view base_name(const char* file) {
  const std::string_view text = file;
  return text.substr(text.rfind('/') + 1);
}

}  // namespace

Layer::Layer(const std::string& name) : outer_(path.size()) {
  if (name.empty()) throw ValueError("Layer: the name is empty", {.label = "layer_c1"});
  if (!path.empty()) path += '.';
  path += name;
}

Layer::~Layer() { path.resize(outer_); }

std::string current_layer() { return path; }

ir::LocationPtr location_of(Here here) {
  // Most ops of a line share their place, so the last one is kept.
  thread_local ir::LocationPtr last;
  thread_local const char* last_file = nullptr;
  const auto line = static_cast<int>(here.line());
  const auto column = static_cast<int>(here.column());
  if (last == nullptr || last_file != here.file_name() || last->line != line ||
      last->column != column || last->layer != path) {
    last_file = here.file_name();
    last = std::make_shared<const ir::Location>(
        ir::Location{std::string(base_name(last_file)), line, column, path});
  }
  return last;
}

std::string place_text(Here here) {
  return fmt::format("{}:{}", base_name(here.file_name()), here.line());
}

}  // namespace tenon
