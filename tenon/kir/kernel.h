// Kernel IR: what a fused group of tensor operations becomes, and all that a target sees.
//
// A kernel is one loop nest over flat buffers. Code is written for one element: a loop marked
// `vector` runs its body for many values of its variable at once, and the target chooses how many.
// Inside such a loop a value that depends on the loop variable is varying (one per lane), every
// other value is uniform. A vector loop inside a vector loop runs its iterations one after another.
//
//   kernel @k0 (b0: f32[], b1: f32[] out) {
//     for i in parallel vector begin..end {
//       %1 = load b0[i] : f32
//       %2 = erf %1 : f32
//       store b1[i], %2
//     }
//   }
//
// A loop whose bounds are uniform may stand inside a vector loop; its carried values may be
// varying. (A rare slow path is a loop from 0 to zext(any(condition)) that carries the result.)
//
// Semantics. Integers are two's complement of the type's width and wrap; signedness is part of the
// operation. Float operations are IEEE with round-to-nearest-even; nothing is reassociated except
// the carried values of a vector loop, which its `combine` allows. f16 and bf16 values can only be
// loaded, stored, selected and cast: arithmetic is written in f32 and rounded where the program
// rounds. Instructions are in SSA form: an instruction may use values of its own block that stand
// before it, and values of enclosing blocks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/base/dim.h"
#include "tenon/base/dtype.h"
#include "tenon/base/machine_dims.h"

namespace tenon::kir {

enum class Type : uint8_t { kVoid, kI1, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };

// The register type of a stored element: bool → i1, u8 and i8 → i8, … c64 has none (refused
// before).
Type type_of(DType dtype);
bool is_float(Type type);  // f16, bf16, f32, f64
bool is_int(Type type);    // i1 … i64
int bits(Type type);
std::string_view name(Type type);

// X(enumerator, text). The comment says operands → result; T: any type, F: f32 or f64, I: integer.
#define TENON_KIR_OPS(X) \
  /* leaves */ \
  X(kConst, "const")       /* imm_int or imm_float */ \
  X(kDimArg, "dim")        /* imm_int: index into Kernel::dims → i64 */ \
  X(kBegin, "begin")       /* first grid index of this call → i64 */ \
  X(kEnd, "end")           /* one past the last grid index of this call → i64 */ \
  X(kLoopVar, "var")       /* the variable of a loop → i64 */ \
  X(kCarried, "carried")   /* the value of a carried variable at the start of an iteration */ \
  X(kLoopResult, "result") /* args[0]: the loop; imm_int: which carried variable */ \
  /* arithmetic, int and float: T T → T */ \
  X(kAdd, "add") \
  X(kSub, "sub") \
  X(kMul, "mul") \
  X(kNeg, "neg") \
  X(kAbs, "abs") /* float: clears the sign; int: signed, wraps at the minimum */ \
  /* float only: F… → F */ \
  X(kDiv, "div") \
  X(kResidual, "residual") /* a*b + c where that is a float, since c is -a*b but for a few \
                              roundings: what a product or a quotient lost. Where it is none, or \
                              the product is below 2^-960 (f64), targets differ in its last bits \
                           */ \
  X(kMulAdd, "muladd")     /* a*b + c with one rounding where the target has it, else two */ \
  X(kSqrt, "sqrt") \
  X(kFloor, "floor") \
  X(kCeil, "ceil") \
  X(kTrunc, "trunc") \
  X(kRint, "rint") /* to nearest, ties to even */ \
  X(kCopySign, "copysign") \
  X(kScale, "scale") /* a * 2^b with one rounding: b is whole, at most 250 (f64: 2040) either \
                        way, and |a| from 1/4 to 4; or both are NaN */ \
  X(kFMin, "fmin")   /* NaN if either is NaN; -0 < +0 */ \
  X(kFMax, "fmax") \
  X(kFMinFast, "fminfast") /* a < b ? a : b, one instruction on x86 */ \
  X(kFMaxFast, "fmaxfast") /* a > b ? a : b */ \
  /* integer only: I I → I; the divisor is never 0 and a quotient never overflows (the lowering \
     sees to that) */ \
  X(kSDiv, "sdiv") \
  X(kUDiv, "udiv") \
  X(kSRem, "srem") \
  X(kURem, "urem") \
  X(kSMin, "smin") \
  X(kSMax, "smax") \
  X(kUMin, "umin") \
  X(kUMax, "umax") \
  X(kAnd, "and") \
  X(kOr, "or") \
  X(kXor, "xor") \
  X(kShl, "shl") /* the amount is below the width */ \
  X(kLShr, "lshr") \
  X(kAShr, "ashr") \
  X(kUMulHi, "umulhi") /* high half of the unsigned product; i32 and i64 */ \
  X(kPopCount, "popcount") \
  X(kClz, "clz") /* leading zeros; the width for 0 */ \
  /* dot products of small operands held in 32-bit words, the first in the lowest bits */ \
  X(kDot4, "dot4us")   /* i32, i32 of four u8, i32 of four s8 → i32: a + Σ b·c, wraps */ \
  X(kDot2, "dot2bf16") /* f32, i32 of two bf16, i32 of two bf16 → f32: a + Σ b·c. Targets \
                          differ in order and rounding (≤ two roundings more) and may take \
                          subnormals for 0 */ \
  /* comparison and choice */ \
  X(kCmp, "cmp")       /* T T → i1 by `pred` */ \
  X(kSelect, "select") /* i1 T T → T */ \
  /* conversions: one argument, to `type` */ \
  X(kSExt, "sext") \
  X(kZExt, "zext") \
  X(kIntTrunc, "itrunc") \
  X(kFExt, "fext")     /* to a wider float, exact */ \
  X(kFTrunc, "ftrunc") /* to a narrower float, to nearest even; NaN stays NaN */ \
  X(kSToF, "stof") \
  X(kUToF, "utof") \
  X(kFToS, "ftos") /* truncates; saturates outside the range; NaN → 0 */ \
  X(kFToU, "ftou") \
  X(kBitcast, "bitcast") /* same width */ \
  /* functions of f32 and f64, rewritten by expand_math before code generation: F → F */ \
  X(kExp, "exp") \
  X(kExp2, "exp2") \
  X(kExpm1, "expm1") \
  X(kLog, "log") \
  X(kLog2, "log2") \
  X(kLog10, "log10") \
  X(kLog1p, "log1p") \
  X(kSin, "sin") \
  X(kCos, "cos") \
  X(kTan, "tan") \
  X(kAsin, "asin") \
  X(kAcos, "acos") \
  X(kAtan, "atan") \
  X(kSinh, "sinh") \
  X(kCosh, "cosh") \
  X(kTanh, "tanh") \
  X(kAsinh, "asinh") \
  X(kAcosh, "acosh") \
  X(kAtanh, "atanh") \
  X(kErf, "erf") \
  X(kErfc, "erfc") \
  X(kErfinv, "erfinv") \
  X(kCbrt, "cbrt") \
  X(kSigmoid, "sigmoid") /* 1 / (1 + exp(-x)) without overflow or cancellation */ \
  X(kGelu, "gelu")       /* x * Φ(x), accurate in the tail */ \
  X(kPow, "pow")         /* F F → F */ \
  X(kAtan2, "atan2") \
  X(kFmod, "fmod") /* exact, sign of the first */ \
  X(kHypot, "hypot") \
  /* constants by index, lanes together */ \
  X(kTable, "table") /* i32 index, always inside the table → `type`: entry of \
                        Kernel::tables[imm_int] */ \
  X(kAny, "any") /* i1 → i1, uniform: true if it holds in any of the lanes that run together. \
                    Only for skipping work whose results no other lane takes: what a kernel \
                    computes must not depend on how many lanes run together */ \
  /* memory and control */ \
  X(kLoad, "load")         /* index [, i1 predicate, T other] → T: buffer[index], or other where \
                              the predicate is false (memory is then not touched). From a buffer of \
                              bytes a load without predicate may have any type of whole bytes: \
                              it takes bits / 8 bytes from buffer[index] on, little-endian, at any \
                              alignment */ \
  X(kStore, "store")       /* index, T [, i1 predicate] */ \
  X(kCheck, "check")       /* i1: where false in an active lane, status becomes imm_int (not 0) */ \
  X(kPrefetch, "prefetch") /* index: a hint, never a fault; `far`: not into the first cache */ \
  X(kPanelDot, "paneldot") /* products of rows and a panel, see PanelDot: index of the sums, of \
                              the left words and of the right words, count of words (a multiple \
                              of 16), i1: add to the sums that are there [, index of right words \
                              that are wanted next]. Outside vector loops */ \
  X(kTranspose, "transpose") /* index of the target, its stride, index of the source (buffer \
                                imm_int), its stride, rows, columns: target[c * stride + r] = \
                                source[r * stride + c], in elements of the target, whatever the \
                                source's dtype. They do not overlap. Outside vector loops */ \
  X(kFor, "for")             /* lo, hi; body, variable and carried values in `loop` */ \
  X(kIf, "if")               /* uniform i1: runs `loop->body` once; no results */

enum class Op : uint8_t {
#define X(e, text) e,
  TENON_KIR_OPS(X)
#undef X
};

std::string_view name(Op op);
bool is_math(Op op);  // kExp … kHypot: must be gone before code generation
// True when equal arguments give equal results and nothing else happens (kLoad is not listed: it
// is pure exactly when the kernel does not write its buffer).
bool is_pure(Op op);

enum class Pred : uint8_t {
  kEq,
  kNe,  // integers; floats: kEq ordered, kNe unordered (NaN != NaN)
  kSLt,
  kSLe,
  kSGt,
  kSGe,  // signed integers
  kULt,
  kULe,
  kUGt,
  kUGe,  // unsigned integers
  kFLt,
  kFLe,
  kFGt,
  kFGe,  // floats, false with NaN
  kUno,  // floats: either is NaN
};
std::string_view name(Pred pred);

// How the lanes of a carried variable of a vector loop become one value (and its neutral element).
// kNone: the loop must not be a vector loop, or every lane carries the same uniform value.
enum class Combine : uint8_t {
  kNone,
  kAdd,
  kMul,
  kFMin,
  kFMax,
  kSMin,
  kSMax,
  kUMin,
  kUMax,
  kAnd,
  kOr,
  kXor,
};
std::string_view name(Combine combine);

struct Inst;
using Val = Inst*;

struct Block {
  std::vector<Inst*> insts;
};

struct CarriedVar {
  Val init = nullptr;    // outside the loop
  Val param = nullptr;   // kCarried, inside
  Val next = nullptr;    // inside: the value for the next iteration
  Val result = nullptr;  // kLoopResult, after the loop (init when there was no iteration)
  Combine combine = Combine::kNone;
};

// Loop flags.
struct LoopSpec {
  bool parallel = false;  // the grid loop: runs from kBegin to kEnd; at most one, outermost
  bool vector = false;    // step must be 1
  bool rare = false;      // hardly ever runs: nothing that it computes is moved out of it
  int64_t step = 1;       // positive
  int interleave = 0;     // vectors a value holds at once; 0: the target chooses
  // The trip count of a vector loop is known to be a multiple of this (1: nothing known).
  int64_t multiple = 1;
  // Vector loops: contiguous loads call into the caches what stands this many elements further on
  // (0: the target chooses how far, if at all).
  int64_t ahead = 0;
  // Loops from 0 over what `ahead` reaches, which share the calling: this one calls the quarters
  // [first_quarter, first_quarter + quarters) of it, evenly over its own rounds. All four: each
  // load calls just what stands `ahead` of it.
  int first_quarter = 0;
  int quarters = 4;
};

struct Loop {
  LoopSpec spec;
  Val var = nullptr;  // kLoopVar
  std::vector<CarriedVar> carried;
  Block body;
};

// kPanelDot: the heart of matrix products of small operands, one instruction so that each target
// takes what it has (matrix tiles, dot products, multiply-adds). A word is 32 bits of adjacent
// operands; a panel has 32 columns, of which word w is a line. With `count` words a row:
//   sums[r * sums_stride + j] = (add ? itself : 0) +
//       Σ_w left[r * left_stride + w / 16 * left_step + w % 16] · right[w * right_stride + j]
// for r < rows, j < 32: rows stand whole (left_step = 16), or 16 words of every row, then the next
// 16 of them, which tiles read best. A product of words is that of kDot2 or kDot4 (an
// unsigned left operand). Sums are f32 or i32. Rows up to the next multiple of 16 may be
// read and written besides. Indices and strides count words, whatever the buffers' dtype.
// With a sixth argument the right words are multiplied by other rows soon: they stay in the first
// cache, the left words pass it by, and a quarter as many words as the right operand has here are
// called into the second cache from right[that index] on.
struct PanelDot {
  enum class Kind : uint8_t { kBF16, kU8 };  // of the left operand; the right one: bf16, s8
  Kind kind = Kind::kBF16;
  uint32_t left = 0, right = 0;  // buffers; Inst::buffer holds the sums
  int64_t rows = 1;              // 1 to 32
  int64_t sums_stride = 32;
  int64_t left_stride = 0;
  int64_t left_step = 16;
  int64_t right_stride = 32;  // words between the lines of the panel
  // The right operand is the sum of so many panels, each term_step words after the one before.
  int64_t terms = 1;
  int64_t term_step = 0;
};
inline constexpr int64_t kPanelDotColumns = 32;
inline constexpr int64_t kPanelDotWords = 16;  // the count of words is a multiple of this
inline constexpr int64_t kPanelDotRows = 32;   // the most rows
std::string_view name(PanelDot::Kind kind);

struct Inst {
  Op op;
  Type type;
  Pred pred = Pred::kEq;
  bool streaming =
      false;            // kStore, kTranspose: past the caches, not read again soon. kPrefetch: far
  uint32_t id = 0;      // unique in its kernel, given by make()
  uint32_t buffer = 0;  // kLoad, kStore, kPrefetch
  int64_t imm_int = 0;
  double imm_float = 0;  // kConst of a float type
  std::vector<Val> args;
  std::unique_ptr<Loop> loop;       // kFor, kIf
  std::unique_ptr<PanelDot> panel;  // kPanelDot
};

struct Buffer {
  enum class Kind : uint8_t { kArg, kScratch };
  std::string name;
  DType dtype = DType::kF32;
  Kind kind = Kind::kArg;
  bool written = false;
  // kScratch: each thread has its own; `offset` in bytes (64-byte aligned) into the thread's
  // scratch memory, `count` in elements. A symbolic `offset` and every name
  // in it are entries of Kernel::dims.
  Dim offset;
  Dim count;
};

// An immutable array that belongs to the code: bit patterns of `type`, zero-extended.
struct Table {
  Type type = Type::kF32;
  std::vector<uint64_t> bits;
  bool operator==(const Table&) const = default;
};

// A kernel is called as abi::KernelFn(args, begin, end) for disjoint pieces of 0..grid.
struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;  // kArg buffers stand first, in the order of KernelArgs::buffers
  std::vector<Dim> dims;        // KernelArgs::dims[k] holds the value of dims[k]
  Dim grid = 1;                 // number of grid indices
  Dim scratch_bytes = 0;        // per thread
  // Cost of one grid index, for choosing the grain: bytes moved and scalar operations.
  Dim bytes_per_index = 0;
  Dim ops_per_index = 0;
  std::vector<Table> tables;
  Block body;
  std::vector<std::string> origins;  // names of the fused operations, for explain()
  // The same computation for targets with fewer than 32 vector registers; null: this one serves
  // every target.
  std::unique_ptr<Kernel> narrow;

  Kernel() = default;
  Kernel(Kernel&&) = default;
  Kernel& operator=(Kernel&&) = default;

  Inst* make(Op op, Type type);  // owned by the kernel; in no block yet
  // One past the largest Inst::id: ids are dense, so a vector of this size maps instructions.
  uint32_t id_count() const { return static_cast<uint32_t>(pool_.size()); }
  Kernel clone() const;
  Kernel without_code() const;  // name, buffers, dims and costs; no body, tables or `narrow`

 private:
  std::vector<std::unique_ptr<Inst>> pool_;
};

using tenon::kDimL1;
using tenon::kDimL2;
using tenon::kDimL3;
using tenon::kDimThreads;

// The text form (one line an instruction); with `canonical`, names of kernel, buffers and symbols
// are left out, so that equal code has equal text: the key under which kernels are shared.
std::string print(const Kernel& kernel, bool canonical = false);

// Reads the text that print() writes without `canonical`. Raises FormatError with line and cause.
// Types are checked by verify(), which this calls.
Kernel parse(std::string_view text);

// Checks types, arity, dominance, loop rules and buffer use. Raises InternalError naming the
// instruction.
void verify(const Kernel& kernel);

}  // namespace tenon::kir
