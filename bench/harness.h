// How rows are timed and printed.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tenon/tenon.h"

namespace tenon::bench {

namespace tn = tenon;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
// Rows by the name that chooses them; one function may measure several.
using Rows = std::vector<std::pair<std::string, std::function<std::vector<Json>()>>>;

// Elementwise functions, norms, reductions, movement.
void add_kernel_rows(Rows& rows);
void add_matmul_rows(Rows& rows);
// Those that need a process of their own, and what such a process measures: the value it prints.
void add_process_rows(Rows& rows);
double measure_here(const std::string& row);
void add_language_rows(Rows& rows);
double measure_start(bool keep_packed);  // llm_start and llm_start_kept, in their own process
// The demo model's file in a block format.
std::string model_file(const std::string& type);

inline double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

inline Json row(const std::string& name, const std::string& unit, std::vector<double> values,
                const std::string& notes = "") {
  std::sort(values.begin(), values.end());
  const bool rate = unit.find("/s") != std::string::npos;
  return {{"name", name},
          {"unit", unit},
          {"min", rate ? values.back() : values.front()},
          {"median", values[values.size() / 2]},
          {"notes", notes}};
}

// Warm: three calls; then at least five, for about two seconds.
template <class Call>
Json steady(const std::string& name, const Call& call) {
  for (int i = 0; i < 3; ++i) call();
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < 5 || (ms_since(start) < 2000 && times.size() < 2000)) {
    const auto begin = Clock::now();
    call();
    times.push_back(ms_since(begin));
  }
  return row(name, "ms", times);
}

inline tn::Tensor gelu(const tn::Tensor& x) {
  return x * (1.0f + tn::erf(x * 0.70710678118654752f)) * 0.5f;
}

inline tn::Tensor normal(const tn::Shape& shape, uint64_t seed = 0) {
  tn::Tensor x = tn::random::normal(tn::random::key(seed), shape);
  x.eval();
  return x;
}

template <class F>
Json unary(const std::string& name, const tn::Shape& shape, F fn) {
  const tn::Tensor x = normal(shape);
  auto fast = tn::compile(fn);
  return steady(name, [&] { fast(x).array(); });
}

// Runs `measure` as the only row of its function.
template <class F>
void add_row(Rows& rows, const std::string& name, F measure) {
  rows.emplace_back(name, [measure] { return std::vector<Json>{measure()}; });
}

// What `tenon_bench --child WHAT` prints, with this kernel cache.
double child(const std::string& what, const std::string& cache);

}  // namespace tenon::bench
