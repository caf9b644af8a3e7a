#include "tenon/passes/lower_sort.h"

#include <algorithm>
#include <array>

#include "tenon/base/check_code.h"
#include "tenon/ops/order.h"

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Pred;
using kir::Type;
using kir::Val;

constexpr int64_t kInRegisters = 8;  // keys that a sorting network holds at once
constexpr int64_t kAtOnce = 4;       // elements whose places are counted together

// What both ways share: the operand's elements by their bits, their keys, and the result.
class Sort {
 public:
  explicit Sort(KernelFrame& frame)
      : frame_(frame),
        b_(frame.builder()),
        node_(*frame.body().anchor.node),
        operand_(node_.operands[0]),
        shape_(operand_.shape()),
        order_(ops::order_of(operand_.dtype(), node_.attrs)),
        length_(shape_.back()),
        rows_(product(Shape(shape_.begin(), shape_.end() - 1))),
        key_type_(kir::type_of(ops::key_dtype(order_.dtype))) {}

 protected:
  Val bits(Val row, Val i) {
    ops::Index index = ops::unflatten_index(b_, Shape(shape_.begin(), shape_.end() - 1), row);
    index.push_back(i);
    return ops::bits_of_element(b_, frame_.context().element(operand_, index), order_.dtype);
  }
  Val key(Val bits) { return ops::order_key(b_, bits, order_); }
  void store(Val row, Val i, Val bits) {
    b_.store(frame_.root_buffer(0), b_.add(b_.mul(row, b_.dim(length_)), i),
             ops::element_of_bits(b_, bits, order_.dtype));
  }
  Val key_constant(int64_t value) { return b_.constant_int(key_type_, value); }

  KernelFrame& frame_;
  kir::Builder& b_;
  const ir::Node& node_;
  const ir::Value& operand_;
  const Shape& shape_;
  ops::Order order_;
  Dim length_;
  Dim rows_;
  Type key_type_;
};

class ShortSort : Sort {
 public:
  explicit ShortSort(KernelFrame& frame) : Sort(frame), n_(length_.value()) {
    while (padded_ < n_) padded_ *= 2;
    together_ = padded_ <= 64 ? 64 : 32;
    bits_ = b_.add_scratch("bits", ops::bits_dtype(order_.dtype), Dim(padded_ * together_));
    keys_ = b_.add_scratch("keys", ops::key_dtype(order_.dtype), Dim(padded_ * together_));
  }

  void emit() {
    const Dim blocks = floor_div(rows_ + Dim(together_ - 1), Dim(together_));
    frame_.grid_loop(blocks, false, [&](Val g) {
      const Val first = b_.mul(g, b_.i64(together_));
      const Val count = b_.binary(Op::kSMin, b_.sub(b_.dim(rows_), first), b_.i64(together_));
      b_.loop(b_.i64(0), count, {.vector = true}, [&](Val lane) {
        const Val row = b_.add(first, lane);
        b_.set_bound(row, rows_);
        const Val ambiguous = fill(row, lane);
        if (order_.from_bit > 0) {
          by_counting(row, lane);
        } else if (!is_float(order_.dtype)) {
          by_network(row, lane);
        } else {
          const Val counted = b_.any(ambiguous);
          b_.if_then(b_.logical_not(counted), [&] { by_network(row, lane); });
          b_.if_then(counted, [&] { by_counting(row, lane); });
        }
      });
    });
  }

 private:
  using Places = std::array<Val, kAtOnce>;

  Val at(Val i, Val lane) { return b_.add(b_.mul(i, b_.i64(together_)), lane); }

  // Bits and distinct keys; whether elements may be equal and yet differ, so that their order
  // shows.
  Val fill(Val row, Val lane) {
    const std::array<kir::CarriedSpec, 1> carried = {{{b_.boolean(false)}}};
    const Val ambiguous =
        b_.loop(b_.i64(0), b_.i64(n_), {}, carried,
                [&](Val i, std::span<const Val> before) -> std::vector<Val> {
                  const Val value = bits(row, i);
                  b_.store(bits_, at(i, lane), value);
                  b_.store(keys_, at(i, lane), ops::distinct_key(b_, value, order_));
                  if (!is_float(order_.dtype)) return {before[0]};
                  const Val negative_zero =
                      b_.binary(Op::kShl, b_.constant_int(value->type, 1),
                                b_.constant_int(value->type, ops::element_bits(order_.dtype) - 1));
                  return {b_.binary(Op::kOr, before[0], b_.cmp(Pred::kEq, value, negative_zero))};
                })[0];
    pad(lane);
    return ambiguous;
  }

  // Keys that come last, up to a power of two.
  void pad(Val lane) {
    b_.loop(b_.i64(n_), b_.i64(padded_), {},
            [&](Val i) { b_.store(keys_, at(i, lane), key_constant(-1)); });
  }

  // Bitonic sorting (Batcher, "Sorting networks and their applications", 1968), with every merge's
  // second half read backwards, so that all comparisons put the smaller key first.
  void by_network(Val row, Val lane) {
    const int64_t held = std::min(padded_, kInRegisters);
    in_registers(lane, held, true);
    for (int64_t size = 2 * held; size <= padded_; size *= 2) {
      across(lane, size, true);
      int64_t stride = size / 4;
      for (; stride >= held; stride /= 2) across(lane, 2 * stride, false);
      in_registers(lane, held, false);
    }
    b_.loop(b_.i64(0), b_.i64(n_), {},
            [&](Val i) { store(row, i, ops::bits_of_distinct_key(b_, key_at(i, lane), order_)); });
  }

  // Compares each key of the first half of a block of `size` with its partner in the second: the
  // one as far from the end as it is from the start, or the one half a block on.
  void across(Val lane, int64_t size, bool backwards) {
    const int64_t half = size / 2;
    b_.loop(b_.i64(0), b_.i64(padded_ / 2), {}, [&](Val pair) {
      const Val in_half = b_.binary(Op::kAnd, pair, b_.i64(half - 1));
      const Val block = b_.mul(b_.sub(pair, in_half), b_.i64(2));
      const Val low = b_.add(block, in_half);
      const Val high =
          backwards ? b_.sub(b_.add(block, b_.i64(size - 1)), in_half) : b_.add(low, b_.i64(half));
      std::array<Val, 2> keys = {key_at(low, lane), key_at(high, lane)};
      exchange(keys[0], keys[1]);
      b_.store(keys_, at(low, lane), keys[0]);
      b_.store(keys_, at(high, lane), keys[1]);
    });
  }

  // The steps of the network within `held` neighbours: all of them, or the last merge.
  void in_registers(Val lane, int64_t held, bool all) {
    b_.loop(b_.i64(0), b_.i64(padded_), {.step = held}, [&](Val first) {
      std::vector<Val> keys;
      for (int64_t i = 0; i < held; ++i) keys.push_back(key_at(b_.add(first, b_.i64(i)), lane));
      for (int64_t size = all ? 2 : held; all && size <= held; size *= 2) sort_step(keys, size);
      if (!all) merge_steps(keys, held / 2);
      for (int64_t i = 0; i < held; ++i) {
        b_.store(keys_, at(b_.add(first, b_.i64(i)), lane), keys[static_cast<size_t>(i)]);
      }
    });
  }

  void sort_step(std::vector<Val>& keys, int64_t size) {
    for (size_t block = 0; block < keys.size(); block += static_cast<size_t>(size)) {
      for (size_t i = 0; i < static_cast<size_t>(size) / 2; ++i) {
        exchange(keys[block + i], keys[block + static_cast<size_t>(size) - 1 - i]);
      }
    }
    merge_steps(keys, size / 4);
  }

  void merge_steps(std::vector<Val>& keys, int64_t stride) {
    for (auto s = static_cast<size_t>(stride); s >= 1; s /= 2) {
      for (size_t i = 0; i < keys.size(); ++i) {
        if ((i & s) == 0) exchange(keys[i], keys[i + s]);
      }
    }
  }

  void exchange(Val& low, Val& high) {
    const Val smaller = b_.binary(Op::kUMin, low, high);
    high = b_.binary(Op::kUMax, low, high);
    low = smaller;
  }

  void by_counting(Val row, Val lane) {
    b_.loop(b_.i64(0), b_.i64(n_), {},
            [&](Val i) { b_.store(keys_, at(i, lane), key(b_.load(bits_, at(i, lane)))); });
    b_.loop(b_.i64(0), b_.i64(n_), {.step = kAtOnce}, [&](Val i) { place(row, lane, i); });
  }

  Val key_at(Val i, Val lane) { return b_.load(keys_, at(i, lane)); }

  // Counts the elements of lo … hi that stand before each of `own`.
  Places count(Val lo, Val hi, Val lane, const Places& own, const Places& before, Pred pred) {
    std::array<kir::CarriedSpec, kAtOnce> carried;
    for (size_t u = 0; u < kAtOnce; ++u) carried[u] = {before[u]};
    const std::vector<Val> counted =
        b_.loop(lo, hi, {}, carried, [&](Val j, std::span<const Val> so_far) {
          const Val other = key_at(j, lane);
          std::vector<Val> next;
          for (size_t u = 0; u < kAtOnce; ++u) {
            next.push_back(add_one_if(so_far[u], b_.cmp(pred, other, own[u])));
          }
          return next;
        });
    Places places;
    std::copy(counted.begin(), counted.end(), places.begin());
    return places;
  }

  Val add_one_if(Val count, Val condition) {
    return b_.add(count, b_.convert(Op::kZExt, key_type_, condition));
  }

  // The places of elements i … i + kAtOnce - 1: equal ones count where they stand before.
  void place(Val row, Val lane, Val i) {
    Places own;
    Places places;
    for (size_t u = 0; u < kAtOnce; ++u) {
      own[u] = key_at(b_.add(i, b_.i64(static_cast<int64_t>(u))), lane);
      places[u] = key_constant(0);
    }
    places = count(b_.i64(0), i, lane, own, places, Pred::kULe);
    places = count(b_.add(i, b_.i64(kAtOnce)), b_.i64(n_), lane, own, places, Pred::kULt);
    for (size_t u = 0; u < kAtOnce; ++u) {
      for (size_t v = u + 1; v < kAtOnce; ++v) {
        const Val first = b_.cmp(Pred::kULe, own[u], own[v]);
        places[v] = add_one_if(places[v], first);
        places[u] = add_one_if(places[u], b_.logical_not(first));
      }
    }
    for (size_t u = 0; u < kAtOnce; ++u) {
      const Val mine = b_.add(i, b_.i64(static_cast<int64_t>(u)));
      const auto put = [&, u] {
        const Val to =
            key_type_ == Type::kI64 ? places[u] : b_.convert(Op::kZExt, Type::kI64, places[u]);
        store(row, to, b_.load(bits_, at(mine, lane)));
      };
      b_.if_then(b_.cmp(Pred::kSLt, mine, b_.i64(n_)), put);
    }
  }

  int64_t n_;
  int64_t padded_ = kAtOnce;  // a power of two
  int64_t together_;          // rows of one grid index
  uint32_t bits_;
  uint32_t keys_;
};

class RadixSort : Sort {
 public:
  explicit RadixSort(KernelFrame& frame) : Sort(frame) {
    const auto sorted = ops::element_bits(order_.dtype) - order_.from_bit;
    // Wide digits pay where there are many more elements than digits.
    const int64_t widest = length_.lower_bound() >= 4096 ? 11 : 8;
    passes_ = (sorted + widest - 1) / widest;
    digit_bits_ = (sorted + passes_ - 1) / passes_;
    buckets_ = int64_t{1} << digit_bits_;
    // Both halves of `bits` take turns.
    bits_ = b_.add_scratch("bits", ops::bits_dtype(order_.dtype), length_ * Dim(2));
    const bool small = length_.is_static() && length_.value() < (int64_t{1} << 31);
    counts_ = b_.add_scratch("counts", small ? DType::kI32 : DType::kI64, Dim(passes_ * buckets_));
    count_type_ = small ? Type::kI32 : Type::kI64;
  }

  void emit() {
    const Val n = b_.dim(length_);
    frame_.grid_loop(rows_, false, [&](Val row) {
      if (order_.from_bit > 0 && !length_.is_static()) {
        b_.check(b_.cmp(Pred::kSLe, n, b_.i64(int64_t{1} << order_.from_bit)), kCheckRowTooLong);
      }
      b_.loop(b_.i64(0), b_.i64(passes_ * buckets_), {.vector = true},
              [&](Val i) { b_.store(counts_, i, b_.constant_int(count_type_, 0)); });
      b_.loop(b_.i64(0), n, {.vector = true}, [&](Val i) {
        b_.set_bound(i, length_);
        b_.store(bits_, i, bits(row, i));
      });
      b_.loop(b_.i64(0), n, {}, [&](Val i) { count(i); });
      // No pass over a row without elements.
      const Val some = b_.cmp(Pred::kSGt, n, b_.i64(0));
      const std::array<kir::CarriedSpec, 1> from = {{{b_.i64(0)}}};
      const Val sorted = b_.loop(b_.i64(0), b_.select(some, b_.i64(passes_), b_.i64(0)), {}, from,
                                 [&](Val pass, std::span<const Val> source) -> std::vector<Val> {
                                   return {move(pass, source[0], n)};
                                 })[0];
      b_.loop(b_.i64(0), n, {.vector = true},
              [&](Val i) { store(row, i, b_.load(bits_, b_.add(sorted, i))); });
    });
  }

 private:
  // The count of digit number `pass` of a key, as an index of `counts`.
  Val slot(Val key, Val pass) {
    const Val at = b_.mul(pass, b_.i64(digit_bits_));
    const Val shift = key_type_ == Type::kI64 ? at : b_.convert(Op::kIntTrunc, key_type_, at);
    const Val digit =
        b_.binary(Op::kAnd, b_.binary(Op::kLShr, key, shift), key_constant(buckets_ - 1));
    const Val wide = key_type_ == Type::kI64 ? digit : b_.convert(Op::kZExt, Type::kI64, digit);
    return b_.add(b_.mul(pass, b_.i64(buckets_)), wide);
  }

  void count(Val i) {
    const Val k = key(b_.load(bits_, i));
    for (int64_t pass = 0; pass < passes_; ++pass) {
      const Val at = slot(k, b_.i64(pass));
      b_.store(counts_, at, b_.add(b_.load(counts_, at), b_.constant_int(count_type_, 1)));
    }
  }

  Val wide(Val count) {
    return count_type_ == Type::kI64 ? count : b_.convert(Op::kSExt, Type::kI64, count);
  }

  // Moves the row from `source` to the other half in the order of one digit, unless all elements
  // have the same one; returns where the row is then.
  Val move(Val pass, Val source, Val n) {
    const Val first = slot(key(b_.load(bits_, source)), pass);
    const Val shared = b_.cmp(Pred::kEq, wide(b_.load(counts_, first)), n);
    const Val target = b_.sub(n, source);
    b_.if_then(b_.logical_not(shared), [&] {
      begin_buckets(pass, target);
      b_.loop(b_.i64(0), n, {}, [&](Val i) {
        const Val value = b_.load(bits_, b_.add(source, i));
        const Val at = slot(key(value), pass);
        const Val to = b_.load(counts_, at);
        b_.store(counts_, at, b_.add(to, b_.constant_int(count_type_, 1)));
        b_.store(bits_, wide(to), value);
      });
    });
    return b_.select(shared, source, target);
  }

  // Counts become the positions where their buckets begin.
  void begin_buckets(Val pass, Val target) {
    const Val start =
        count_type_ == Type::kI64 ? target : b_.convert(Op::kIntTrunc, count_type_, target);
    const std::array<kir::CarriedSpec, 1> carried = {{{start}}};
    b_.loop(b_.i64(0), b_.i64(buckets_), {}, carried,
            [&](Val bucket, std::span<const Val> next) -> std::vector<Val> {
              const Val at = b_.add(b_.mul(pass, b_.i64(buckets_)), bucket);
              const Val count = b_.load(counts_, at);
              b_.store(counts_, at, next[0]);
              return {b_.add(next[0], count)};
            });
  }

  int64_t passes_;
  int64_t digit_bits_;
  int64_t buckets_;
  uint32_t bits_;
  uint32_t counts_;
  Type count_type_;
};

}  // namespace

void lower_sort(KernelFrame& frame) {
  const Dim& length = frame.body().anchor.node->operands[0].shape().back();
  if (length.is_static() && length.value() <= kShortRow) {
    ShortSort(frame).emit();
  } else {
    RadixSort(frame).emit();
  }
}

}  // namespace tenon::passes
