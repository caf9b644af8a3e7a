#include "tenon/passes/attention_words.h"

#include "tenon/passes/attention_word_mask.h"

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Type;
using kir::Val;
using ops::Index;
using Kernel = AttentionKernel;

constexpr int64_t kRows = Kernel::kWordRows;
constexpr int64_t kBlock = Kernel::kWordKeys;
constexpr kir::LoopSpec kVector{.vector = true};
constexpr kir::LoopSpec kLanes{.vector = true, .interleave = 2, .multiple = kRows};

int64_t elements(const Kernel& a) { return 2 * a.depth_words; }

// Bits of a query's element, the sign turned where the scale is negative.
Val query_bits(Kernel& a, Val element) {
  Val bits = a.b.convert(Op::kBitcast, Type::kI16, element);
  if (a.parts.scale < 0) bits = a.b.binary(Op::kXor, bits, a.b.constant_int(Type::kI16, 0x8000));
  return a.b.convert(Op::kZExt, Type::kI32, bits);
}

// The panel of tile `t`: a word holds two elements of a query, which are turned one by one.
void pack_queries(Kernel& a, Val t) {
  kir::Builder& b = a.b;
  b.loop(b.i64(0), b.i64(kRows), {}, [&](Val r) {
    const Kernel::Row row = a.row_at(a.clamped_row(b.add(b.mul(t, b.i64(kRows)), r)));
    Index index = a.matrix_index(a.parts.q, row.head);
    index.insert(index.end(), {row.query, nullptr});
    Val line = b.mul(r, b.i64(elements(a)));
    b.loop(b.i64(0), b.dim(a.depth), kVector, [&](Val d) {
      index.back() = d;
      b.store(a.words.query_lines, b.add(line, d),
              query_bits(a, a.frame.context().element(a.parts.q, index)));
    });
    b.loop(b.dim(a.depth), b.i64(elements(a)), kVector, [&](Val d) {
      b.store(a.words.query_lines, b.add(line, d), b.constant_int(Type::kI32, 0));
    });
  });
  b.transpose({a.words.query_columns, b.i64(0), b.i64(kRows)},
              {a.words.query_lines, b.i64(0), b.i64(elements(a))}, b.i64(kRows),
              b.i64(elements(a)));
  b.loop(b.i64(0), b.i64(a.depth_words), {}, [&](Val w) {
    Val from = b.mul(w, b.i64(2 * kRows));
    Val to = b.mul(b.add(b.mul(t, b.i64(a.depth_words)), w), b.i64(kRows));
    b.loop(b.i64(0), b.i64(kRows), kLanes, [&](Val j) {
      Val low = b.load(a.words.query_columns, b.add(from, j));
      Val high = b.load(a.words.query_columns, b.add(b.add(from, b.i64(kRows)), j));
      high = b.binary(Op::kShl, high, b.constant_int(Type::kI32, 16));
      b.store(a.words.queries, b.add(to, j), b.binary(Op::kOr, low, high));
    });
  });
}

// Copies elements x[key][at], keys from `first_key` on, at < size, to lines of `stride` elements in
// `buffer`, with zeros up to `stride`.
void copy_lines(Kernel& a, const ir::Value& value, uint32_t buffer, Val count, const Dim& size,
                int64_t stride) {
  kir::Builder& b = a.b;
  Index index = a.matrix_index(value, a.group);
  index.insert(index.end(), {nullptr, nullptr});
  b.loop(b.i64(0), count, {}, [&](Val j) {
    index[index.size() - 2] = b.add(a.first_key, j);
    Val line = b.mul(j, b.i64(stride));
    b.loop(b.i64(0), b.dim(size), kVector, [&](Val at) {
      index.back() = at;
      b.store(buffer, b.add(line, at), a.frame.context().element(value, index));
    });
    b.loop(b.dim(size), b.i64(stride), kVector,
           [&](Val at) { b.store(buffer, b.add(line, at), b.constant_float(Type::kBF16, 0)); });
  });
}

// The same of keys that stand one beside another: by rows of the depth, then turned.
void turn_keys(Kernel& a, Val count) {
  kir::Builder& b = a.b;
  Index index = a.matrix_index(a.parts.k, a.group);
  index.insert(index.end(), {nullptr, nullptr});
  const auto line_of = [&](Val d, const std::function<Val(Val)>& element) {
    b.loop(b.i64(0), count, kVector,
           [&](Val j) { b.store(a.words.lines, b.add(b.mul(d, b.i64(kBlock)), j), element(j)); });
  };
  b.loop(b.i64(0), b.dim(a.depth), {}, [&](Val d) {
    line_of(d, [&](Val j) {
      index[index.size() - 2] = b.add(a.first_key, j);
      index.back() = d;
      return a.frame.context().element(a.parts.k, index);
    });
  });
  b.loop(b.dim(a.depth), b.i64(elements(a)), {},
         [&](Val d) { line_of(d, [&](Val) { return b.constant_float(Type::kBF16, 0); }); });
  b.transpose({a.words.keys, b.i64(0), b.i64(elements(a))},
              {a.words.lines, b.i64(0), b.i64(kBlock)}, b.i64(elements(a)), count);
}

}  // namespace

void start_words(Kernel& a, Val tiles) {
  kir::Builder& b = a.b;
  b.loop(b.i64(0), tiles, {}, [&](Val t) {
    pack_queries(a, t);
    const int64_t size = a.word_columns * kRows;
    Val sums = b.mul(t, b.i64(size));
    b.loop(b.i64(0), b.i64(size), kLanes,
           [&](Val e) { b.store(a.words.sums, b.add(sums, e), a.number(0)); });
    Val row = b.mul(t, b.i64(kRows));
    b.loop(b.i64(0), b.i64(kRows), kLanes, [&](Val j) {
      b.store(a.top, b.add(row, j), a.lowest());
      b.store(a.totals, b.add(row, j), a.number(0));
    });
  });
}

void pack_words(Kernel& a) {
  kir::Builder& b = a.b;
  if (a.parts.mask) pack_mask(a);
  Val count = a.at_most(b.i64(kBlock), b.sub(b.dim(a.keys), a.first_key));
  if (a.transposed) {
    turn_keys(a, count);
  } else {
    copy_lines(a, a.parts.k, a.words.keys, count, a.depth, elements(a));
  }
  copy_lines(a, a.parts.v, a.words.lines, count, a.columns, a.word_columns);
  // Values of keys that do not exist are 0, in whole panels.
  Val room = b.mul(a.ceil_of(count, Kernel::kPanel), b.i64(Kernel::kPanel));
  b.loop(b.mul(count, b.i64(a.word_columns)), b.mul(room, b.i64(a.word_columns)), kVector,
         [&](Val e) { b.store(a.words.lines, e, b.constant_float(Type::kBF16, 0)); });
  b.transpose({a.words.values, b.i64(0), b.i64(2 * a.value_stride)},
              {a.words.lines, b.i64(0), b.i64(a.word_columns)}, room, b.i64(a.word_columns));
}

void finish_words(Kernel& a, Val tiles) {
  kir::Builder& b = a.b;
  Val stride = b.dim(a.sums_stride);
  b.loop(b.i64(0), tiles, {}, [&](Val t) {
    b.transpose({a.sums, b.mul(b.mul(t, b.i64(kRows)), stride), stride},
                {a.words.sums, b.mul(t, b.i64(a.word_columns * kRows)), b.i64(kRows)},
                b.dim(a.columns), b.i64(kRows));
  });
}

}  // namespace tenon::passes
