// Building kernels. The builder folds constants, shares equal pure instructions and places each
// pure instruction in the outermost open block where its arguments are defined, so that lowering
// code can be written as if everything were computed where it is used.
//
// What moves outward, and what does not:
// - pure instructions move out of loops and ifs;
// - a load from a buffer that the kernel never writes moves out of every loop that its arguments do
//   not depend on, even out of one that may not run: lowering emits an unpredicated load only where
//   the element exists whenever the kernel runs. A predicated load moves with its predicate.
//   Neither moves out of an if, whose condition may be what makes the index valid;
// - an integer division moves only where its divisor is known not to be 0: a constant, a dimension
//   of at least 1, a maximum with a positive constant. (Signed: -1 stays in place too.)
// - nothing but constants moves out of a rare loop;
// - loads of written buffers, stores, checks and loops never move.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "tenon/kir/kernel.h"

namespace tenon::kir {

class IndexAlgebra;

struct CarriedSpec {
  Val init;
  Combine combine = Combine::kNone;
};

class Builder {
 public:
  explicit Builder(Kernel& kernel);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Kernel& kernel() { return kernel_; }

  // --- leaves ---
  Val i64(int64_t value) { return constant_int(Type::kI64, value); }
  Val constant_int(Type type, int64_t value);   // wraps to the width
  Val constant_float(Type type, double value);  // rounded to the type (f16, bf16, f32, f64)
  Val boolean(bool value) { return constant_int(Type::kI1, value); }
  // A dimension as an i64: a constant when static, else an argument (one per distinct Dim).
  Val dim(const Dim& value);
  Val begin();
  Val end();

  // --- instructions: operands and results as in kernel.h ---
  Val unary(Op op, Val a);
  Val binary(Op op, Val a, Val b);
  Val ternary(Op op, Val a, Val b, Val c);
  Val cmp(Pred pred, Val a, Val b);
  Val select(Val cond, Val a, Val b);
  Val convert(Op op, Type to, Val a);

  Val add(Val a, Val b) { return binary(Op::kAdd, a, b); }
  Val sub(Val a, Val b) { return binary(Op::kSub, a, b); }
  Val mul(Val a, Val b) { return binary(Op::kMul, a, b); }
  Val logical_not(Val a);  // i1
  // Entry `index` (i32) of a constant table; equal tables are shared.
  Val table(Type type, std::span<const uint64_t> bits, Val index);
  Val any(Val cond);  // kAny

  // Index arithmetic on i64 with range knowledge: non-negative `a`, positive divisor (one that may
  // be 0 counts as 1 there). Sums of products are split into what the divisor divides and a rest
  // whose range is known: (i*64 + j)/64 is i when 0 <= j < 64; strides and divisors may be
  // symbolic.
  Val index_div(Val a, const Dim& divisor);
  Val index_rem(Val a, const Dim& divisor);
  // States 0 <= value < bound for an index value. Variables of loops from a non-negative value to a
  // dimension, a constant or a minimum with one know theirs; the grid loop's (begin to end) must be
  // told.
  void set_bound(Val value, const Dim& bound);

  // --- memory ---
  uint32_t add_buffer(std::string name, DType dtype, bool written);
  uint32_t add_scratch(std::string name, DType dtype, const Dim& count);
  Val load(uint32_t buffer, Val index);
  Val load_if(uint32_t buffer, Val index, Val predicate, Val other);
  // A value of `type` that begins at byte `index` of a buffer of bytes.
  Val load_bytes(uint32_t buffer, Val index, Type type);
  void store(uint32_t buffer, Val index, Val value, bool streaming = false);
  void store_if(uint32_t buffer, Val index, Val value, Val predicate);
  void check(Val condition, int64_t code);
  void prefetch(uint32_t buffer, Val index, bool far = false);
  // kPanelDot; `words` is its count, `next` its sixth argument or null.
  void panel_dot(const PanelDot& panel, uint32_t sums, Val sums_index, Val left_index,
                 Val right_index, Val words, Val add, Val next = nullptr);

  // kTranspose; arguments in its order.
  struct Matrix {
    uint32_t buffer;
    Val index;
    Val stride;
  };
  void transpose(const Matrix& target, const Matrix& source, Val rows, Val columns,
                 bool streaming = false);

  // --- control ---
  // Emits a loop; `body` receives the variable and the carried values and returns their next
  // values. Returns the results. Values computed inside must not be used after the loop.
  std::vector<Val> loop(Val lo, Val hi, LoopSpec spec, std::span<const CarriedSpec> carried,
                        const std::function<std::vector<Val>(Val, std::span<const Val>)>& body);
  void loop(Val lo, Val hi, LoopSpec spec, const std::function<void(Val)>& body);
  // A slow path: when `condition` (i1) holds in any lane, `body` runs once; it receives `init` and
  // returns new values, for every lane. Results: those, or `init`. Nothing moves out of it.
  std::vector<Val> rarely(Val condition, std::span<const Val> init,
                          const std::function<std::vector<Val>(std::span<const Val>)>& body);
  void if_then(Val condition, const std::function<void()>& body);

  // --- scopes ---
  // Depth of the innermost open block (0: the kernel's body) and of the block defining `value`.
  int depth() const;
  int depth_of(Val value) const;
  // Runs `emit` with the block at `depth` as the innermost one: what it emits stands before the
  // inner loop that is open there. For pure loops (reductions) that do not depend on it.
  void at_depth(int depth, const std::function<void()>& emit);
  // Increases whenever a block is opened: values remembered under one serial of a block are valid
  // while that block is open. serial(depth) identifies the open block at that depth.
  uint64_t serial(int depth) const;
  // Whether the innermost open block is inside a vector loop.
  bool in_vector_loop() const;

 private:
  struct Scope;
  struct Proto;
  // The instruction, an equal one that is open already, or a new one placed in the outermost open
  // block, not outside depth `floor`, where its arguments are defined.
  Val emit(const Proto& proto, int floor);
  Val append(const Proto& proto, int depth);
  Val find(const std::vector<uint64_t>& key) const;
  int division_floor(Op op, Val divisor) const;
  int load_floor(uint32_t buffer) const;
  int rare_depth() const;  // of the innermost open rare loop, 0 without one
  Val load_of(uint32_t buffer, std::vector<Val> args, Type type);
  void effect(const Proto& proto);
  Scope& open(Block* block);
  void close();

  Kernel& kernel_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  uint64_t serials_ = 0;
  struct Place {
    int depth;
    uint64_t serial;
  };
  std::unordered_map<const Inst*, Place> places_;
  std::unique_ptr<IndexAlgebra> index_;
};

}  // namespace tenon::kir
