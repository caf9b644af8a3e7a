#include "tenon/program/interpreted.h"

#include <cstring>

#include "tenon/interp/interpreter.h"

namespace tenon::program {

using runtime::Array;

Interpreted::Interpreted(std::string function, ir::GraphPtr graph,
                         std::vector<runtime::ArgumentSpec> arguments)
    : function_(std::move(function)),
      graph_(std::move(graph)),
      specs_(std::move(arguments)),
      binding_(function_, specs_, symbols_) {}

std::vector<Array> Interpreted::run(std::span<const Array> arguments) const {
  std::vector<int64_t> sizes = runtime::SymbolTable::machine_values();
  binding_.bind(arguments, sizes);
  runtime::check_writable_apart(function_, specs_, arguments);
  std::vector<Literal> literals;
  for (const Array& argument : arguments) literals.push_back(argument.to_literal());
  const std::vector<Literal> outputs =
      interp::run(*graph_, literals,
                  [this](const std::string& name) { return externals_.at(name).to_literal(); });
  // A result may be the memory of an argument or a constant, and so may the new value of another
  // argument: all are copied before the first write.
  std::vector<Array> fresh;
  for (const Literal& output : outputs) fresh.push_back(Array::copy_of(output));
  for (size_t i = 0; i < graph_->updates.size(); ++i) {
    const Array& value = fresh[graph_->results.size() + i];
    Array target = arguments[graph_->updates[i].param];
    if (value.bytes() > 0) std::memcpy(target.mutable_data(), value.data(), value.bytes());
  }
  fresh.resize(graph_->results.size());
  return fresh;
}

}  // namespace tenon::program
