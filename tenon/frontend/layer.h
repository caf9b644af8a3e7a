// Named layers: a scope whose path stands in the location of every op made inside it, in printed
// graphs and in errors.
//
//   tenon::Layer model("model");
//   { tenon::Layer layer("layers.3"); … }     // ops here are in layer model.layers.3
#pragma once

#include <string>

#include "tenon/frontend/here.h"
#include "tenon/ir/graph.h"

namespace tenon {

// Scopes nest on each thread and end in the reverse order of their beginnings.
class Layer {
 public:
  // Raises ValueError for an empty name.
  explicit Layer(const std::string& name);
  ~Layer();
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

 private:
  size_t outer_;  // length of the path outside this scope
};

// "model.layers.3"; empty outside any scope.
std::string current_layer();

// The file's name without its folders, line, column and the current layer.
ir::LocationPtr location_of(Here here);
// "model.cpp:31".
std::string place_text(Here here);

}  // namespace tenon
