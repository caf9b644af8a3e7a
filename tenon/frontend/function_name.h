// What a compiled function calls itself, in errors, printed graphs, explain() and artifacts:
//
//   1  the option `name`, as it stands
//   2  compile<gelu>(): the function's own name, known to the compiler
//   3  compile(Scale{2}): the name of the class without its namespace; "lambda" for a lambda
//   4  compile(gelu): the name that the program's symbol table has for that address, exactly and
//      alone; "fn(gelu.cpp:12)", the place of the call of compile, when the program is stripped
//
// A name that has to be the same in every build (an artifact's) comes from 1 to 3.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "tenon/frontend/here.h"
#include "tenon/program/tree.h"

namespace tenon {

// "model::Scale<float>" → "Scale"; a lambda → "lambda".
std::string class_name(std::string_view type);
// Of the function at this address of the process; empty where it is not known.
std::string symbol_name(const void* address);
// "fn(gelu.cpp:12)".
std::string place_name(Here at);

// The name of a callable without one of its own.
template <class F>
std::string callable_name(const F& fn, Here at) {
  if constexpr (std::is_pointer_v<F>) {
    std::string name = symbol_name(reinterpret_cast<const void*>(fn));
    return name.empty() ? place_name(at) : name;
  } else {
    return class_name(program::type_name<F>());
  }
}

// The name of a function given as a template argument.
template <auto kFn>
std::string function_name() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr size_t begin = text.find("kFn = ") + 6;
  constexpr size_t end = text.find_first_of(";]", begin);
  std::string_view name = text.substr(begin, end - begin);
  if (name.starts_with('&')) name.remove_prefix(1);
  return class_name(name);
}

}  // namespace tenon
