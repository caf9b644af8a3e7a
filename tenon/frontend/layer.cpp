#include "tenon/frontend/layer.h"

#include <string_view>

#include "tenon/base/error.h"
#include "tenon/base/of_thread.h"

namespace tenon {
namespace {

thread_local std::string path;

struct LastPlace {
  const char* file = nullptr;
  ir::LocationPtr place;
};

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
  LastPlace* last = of_thread<LastPlace>();
  const char* file = here.file_name();
  const auto line = static_cast<int>(here.line());
  const auto column = static_cast<int>(here.column());
  if (last != nullptr && last->file == file && last->place->line == line &&
      last->place->column == column && last->place->layer == path) {
    return last->place;
  }
  auto place = std::make_shared<const ir::Location>(
      ir::Location{std::string(base_name(file)), line, column, path});
  if (last != nullptr) *last = {file, place};
  return place;
}

std::string place_text(Here here) {
  return fmt::format("{}:{}", base_name(here.file_name()), here.line());
}

}  // namespace tenon
