#include "tests/ops/sample_data.h"

#include <cmath>
#include <map>
#include <set>

#include "tenon/ops/registry.h"

// The section of TENON_OP_SAMPLES, by the names that the linker gives its ends.
extern "C" {
extern const tenon::ir::OpSamples __start_tenon_samples[];  // NOLINT(bugprone-reserved-identifier)
extern const tenon::ir::OpSamples __stop_tenon_samples[];   // NOLINT(bugprone-reserved-identifier)
}

namespace tenon::ops {
namespace {

std::span<const ir::OpSamples> all_samples() {
  return {__start_tenon_samples, __stop_tenon_samples};
}

bool is_math_row(std::string_view name) {
  static const std::map<std::string_view, std::string_view> modes = {
#define TENON_UNARY(NAME, CLASS, RESULT, MODE, ...) {#NAME, #MODE},
#define TENON_BINARY(NAME, CLASS, RESULT, MODE, ...) {#NAME, #MODE},
#include "tenon/ops/binary.def"
#include "tenon/ops/unary.def"
#undef TENON_UNARY
#undef TENON_BINARY
  };
  auto it = modes.find(name);
  return it != modes.end() && it->second == "kMath";
}

void put_special(Literal& x, int64_t i) {
  static const double floats[] = {std::nan(""), INFINITY, -INFINITY, -0.0, 0.0, 1.0, 1e-42};
  if (is_float(x.dtype())) x.set_double(i, floats[i / 3 % 7]);
  if (!is_integer(x.dtype())) return;
  const int width = static_cast<int>(size_of(x.dtype())) * 8;
  const auto lowest = static_cast<int64_t>(uint64_t{1} << (width - 1));
  const auto highest = static_cast<int64_t>(~uint64_t{0} >> (65 - width));
  const int64_t integers[] = {0, -1, lowest, highest};
  x.set_int(i, integers[i / 3 % 4]);
}

double spacing(double x, DType dtype) {
  const int digits = dtype == DType::kF16    ? 11
                     : dtype == DType::kBF16 ? 8
                     : dtype == DType::kF32  ? 24
                                             : 53;
  const int smallest = dtype == DType::kF16 ? -14 : dtype == DType::kF64 ? -1022 : -126;
  return std::ldexp(1.0, std::max(std::ilogb(x == 0 ? 1e-320 : x), smallest) - digits + 1);
}

bool adds_up(const ir::OpDef& op) {
  static const std::set<std::string_view> names = {
      "sum", "attention", "matmul", "matmul_packed", "qmatmul", "qmatmul_exact", "qmatmul_int8"};
  return names.contains(op.name);
}

// How far a kernel may be from the reference, in units in the last place of the result.
double tolerance(const ir::OpDef& op, DType result) {
  if (is_math_row(op.name)) return is_half(result) ? 1 : 3;
  const bool sums = adds_up(op) || op.name == "prod";
  return sums ? 8 : 0;
}

// Sums cancel: their error is measured against the size of what was added.
double scale_of(const ir::OpDef& op, double x) {
  return adds_up(op) ? std::max(std::fabs(x), 256.0) : x;
}

}  // namespace

std::vector<ir::Sample> samples_of(const ir::OpDef& op) {
  for (const ir::OpSamples& entry : all_samples()) {
    if (entry.op == &op) return entry.make();
  }
  return {};
}

std::vector<const ir::OpDef*> sampled_ops() {
  register_all();
  std::set<const ir::OpDef*> sampled;
  for (const ir::OpSamples& entry : all_samples()) sampled.insert(entry.op);
  std::vector<const ir::OpDef*> ops = ir::all_ops();
  std::erase_if(ops, [&](const ir::OpDef* op) { return !sampled.contains(op); });
  return ops;
}

const std::vector<Sizes>& sample_sizes() {
  static const std::vector<Sizes> all = {{{"n", 4}, {"m", 3}, {"k", 6}},
                                         {{"n", 1}, {"m", 1}, {"k", 1}},
                                         {{"n", 0}, {"m", 0}, {"k", 0}},
                                         {{"n", 19}, {"m", 8}, {"k", 1030}}};
  return all;
}

Literal random_literal(DType dtype, std::vector<int64_t> dims, const ir::Sample& sample,
                       bool specials, std::mt19937& rng) {
  Literal x(dtype, std::move(dims));
  const double lo = is_unsigned(dtype) ? std::max(sample.lo, 0.0) : sample.lo;
  std::uniform_real_distribution<double> real(lo, sample.hi);
  for (int64_t i = 0; i < x.count(); ++i) {
    const double v = real(rng);
    if (dtype == DType::kBool) {
      x.set_int(i, static_cast<int64_t>(rng() & 1));
    } else if (is_integer(dtype)) {
      x.set_int(i, static_cast<int64_t>(std::floor(v)));
    } else {
      x.set_double(i, v);
    }
    if (specials && i % 3 == 1) put_special(x, i);
  }
  return x;
}

bool takes_specials(const ir::OpDef& op) {
  return op.is(ir::kElementwise) || op.name == "max" || op.name == "min" || op.name == "argmax" ||
         op.name == "argmin";
}

std::string difference(const ir::OpDef& op, const Literal& wanted, const Literal& got) {
  if (wanted.dtype() != got.dtype() || wanted.dims() != got.dims()) {
    return fmt::format("wanted {}, got {}", describe(wanted.dtype(), wanted.dims()),
                       describe(got.dtype(), got.dims()));
  }
  for (int64_t i = 0; i < wanted.count(); ++i) {
    if (!is_float(wanted.dtype())) {
      if (wanted.get_int(i) == got.get_int(i)) continue;
      return fmt::format("element {}: wanted {}, got {}", i, wanted.get_int(i), got.get_int(i));
    }
    const double a = wanted.get_double(i);
    const double b = got.get_double(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b && (a != 0 || std::signbit(a) == std::signbit(b))) continue;
    const double allowed = tolerance(op, wanted.dtype());
    if (a == b && allowed > 0) continue;
    const double unit = std::isfinite(a) ? spacing(scale_of(op, a), wanted.dtype()) : 0;
    if (std::fabs(a - b) <= allowed * unit) continue;
    return fmt::format("element {}: wanted {}, got {}", i, a, b);
  }
  return "";
}

}  // namespace tenon::ops
