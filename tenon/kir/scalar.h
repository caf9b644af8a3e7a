// The meaning of pure instructions on one lane, as bit patterns: what the builder folds constants
// with, what the reference evaluator runs, and what generated code must equal bit for bit (the
// functions of expand_math, kMulAdd, kResidual and kDot2 excepted, which have a tolerance).
#pragma once

#include <cstdint>
#include <span>

#include "tenon/kir/kernel.h"

namespace tenon::kir {

// A value of a register type: integers zero-extended from their width, floats by their bits.
using Bits = uint64_t;

Bits bits_of_int(Type type, int64_t value);   // wraps to the width
Bits bits_of_float(Type type, double value);  // rounds to nearest even
int64_t signed_of(Type type, Bits value);     // sign-extended
double float_of(Type type, Bits value);       // exact
Bits bits_of_const(const Inst& inst);         // of a kConst

struct ScalarOptions {
  // A product and its sum round once in kMulAdd, kResidual and kDot2.
  bool fused = true;
};

// The upper half of an f64, 26 bits: its bits, rounded to a multiple of twice this.
constexpr uint64_t kHalfStep = uint64_t{1} << 26;

// Result of pure instruction `op` with result `type`; `operand` is the type of the first operand
// that is not a condition. Mathematical functions go through the C library in double (f32) or long
// double (f64). Not kTable, kAny, which need more than their arguments.
Bits eval_scalar(Op op, Type type, Type operand, Pred pred, std::span<const Bits> args,
                 const ScalarOptions& options = {});

}  // namespace tenon::kir
