#include "tenon/passes/attention_word_mask.h"

#include <array>
#include <cmath>

#include "tenon/passes/attention_scores.h"
#include "tenon/passes/attention_words.h"

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Pred;
using kir::Type;
using kir::Val;
using Kernel = AttentionKernel;

constexpr int64_t kRows = Kernel::kWordRows;
constexpr kir::LoopSpec kLanes{.vector = true, .interleave = 2, .multiple = kRows};

bool is_bool(const Kernel& a) { return a.parts.mask->dtype() == DType::kBool; }

// How an element is stored: 16 bits where two are a word, else a number; 0 is false.
Val stored(Kernel& a, const Kernel::Row& row, Val key) {
  kir::Builder& b = a.b;
  Val given = mask_of(a, row, key, inside_keys(a, key));
  if (!a.mask_in_pairs()) {
    return is_bool(a) ? b.select(given, a.number(1), a.number(0)) : finite_power(a, given);
  }
  const auto bits = [&](int64_t value) { return b.constant_int(Type::kI16, value); };
  if (is_bool(a)) return b.select(given, bits(1), bits(0));
  // As finite_power, by the bits: what is below -2^126 and above -inf.
  given = b.convert(Op::kBitcast, Type::kI16, given);
  constexpr int64_t kLeast = 0xfe80, kInfinity = 0xff80;
  Val past = b.sub(given, bits(kLeast + 1));
  return b.select(b.cmp(Pred::kULt, past, bits(kInfinity - kLeast - 1)), bits(kLeast), given);
}

// Stores the mask of a row and keys first … end of the block, whole panels, from `line` on.
void read_line(Kernel& a, const Kernel::Row& row, Val line, Val first, Val end) {
  kir::Builder& b = a.b;
  b.loop(first, end, {.step = Kernel::kPanel}, [&](Val panel) {
    b.loop(b.i64(0), b.i64(Kernel::kPanel), kLanes, [&](Val j) {
      Val c = b.add(panel, j);
      b.store(a.words.mask_lines, b.add(line, c), stored(a, row, b.add(a.first_key, c)));
    });
  });
}

// The mask of the tile's rows, turned as the scores are; words of two elements stand with the
// scores of their pair.
void read_tile(Kernel& a) {
  kir::Builder& b = a.b;
  b.loop(b.i64(0), b.i64(kRows), {}, [&](Val r) {
    const Kernel::Row row = a.row_at(a.clamped_row(b.add(a.tile_row, r)));
    read_line(a, row, b.mul(r, b.i64(Kernel::kWordKeys)), a.met.from, a.met.end);
  });
  if (a.mask_in_pairs()) {
    Val first = a.first_pair();
    b.transpose({a.words.scores, word_score_at(a, first, 2, b.i64(0)), b.i64(Kernel::kPairStride)},
                {a.words.mask_lines, first, b.i64(Kernel::kWordKeys / 2)}, b.i64(kRows),
                b.sub(a.pairs_end(), first));
    return;
  }
  b.transpose({a.words.mask, b.mul(a.met.from, b.i64(kRows)), b.i64(kRows)},
              {a.words.mask_lines, a.met.from, b.i64(Kernel::kWordKeys)}, b.i64(kRows),
              b.sub(a.met.end, a.met.from));
}

// The mask of keys 2 `pair` and the next in lanes j, as `masked` takes it.
std::array<Val, 2> mask_of_pair(Kernel& a, Val pair, Val j) {
  kir::Builder& b = a.b;
  const auto given = [&](Val number) {
    return is_bool(a) ? b.cmp(Pred::kNe, number, a.number(0)) : number;
  };
  if (!a.mask_in_pairs()) {
    const auto of_key = [&](Val key) {
      if (a.mask_is_shared()) return b.load(a.words.mask_lines, key);
      return b.load(a.words.mask, b.add(b.mul(key, b.i64(kRows)), j));
    };
    Val first = b.mul(pair, b.i64(2));
    return {given(of_key(first)), given(of_key(b.add(first, b.i64(1))))};
  }
  Val word = b.load(a.words.scores, word_score_at(a, pair, 2, j));
  word = b.convert(Op::kBitcast, Type::kI32, word);
  Val low = b.binary(Op::kShl, word, b.constant_int(Type::kI32, 16));
  Val high = b.binary(Op::kAnd, word, b.constant_int(Type::kI32, -0x10000));
  if (is_bool(a)) {
    Val zero = b.constant_int(Type::kI32, 0);
    return {b.cmp(Pred::kNe, low, zero), b.cmp(Pred::kNe, high, zero)};
  }
  return {b.convert(Op::kBitcast, Type::kF32, low), b.convert(Op::kBitcast, Type::kF32, high)};
}

}  // namespace

void pack_mask(Kernel& a) {
  if (!a.mask_is_shared()) return;
  Val count = a.at_most(a.b.i64(Kernel::kWordKeys), a.b.sub(a.b.dim(a.keys), a.first_key));
  Val end = a.b.mul(a.ceil_of(count, Kernel::kPanel), a.b.i64(Kernel::kPanel));
  read_line(a, a.row_at(a.first_row), a.b.i64(0), a.b.i64(0), end);
}

void read_mask(Kernel& a) {
  if (!a.mask_is_shared()) read_tile(a);
}

std::array<Val, 2> mask_pair(Kernel& a, Val pair, Val j) {
  kir::Builder& b = a.b;
  const std::array<Val, 2> given = mask_of_pair(a, pair, j);
  std::array<Val, 2> scores{};
  for (size_t k = 0; k < 2; ++k) {
    Val at = word_score_at(a, pair, static_cast<int64_t>(k), j);
    Val score = b.load(a.words.scores, at);
    if (!is_bool(a)) score = b.mul(score, a.number(std::abs(a.parts.scale) * kLog2E));
    scores[k] = masked(a, given[k], score);
    b.store(a.words.scores, at, scores[k]);
  }
  return scores;
}

}  // namespace tenon::passes
