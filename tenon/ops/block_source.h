// Blocks of quant/codes.h as kernel code: a Source whose numbers are values of a kernel.
#pragma once

#include <functional>

#include "tenon/kir/builder.h"

namespace tenon::ops {

class BlockSource {
 public:
  // Loads a value of `type` from byte `at` of the block.
  using Load = std::function<kir::Val(kir::Type type, kir::Val at)>;

  BlockSource(kir::Builder& builder, Load load) : b_(builder), load_(std::move(load)) {}

  struct Index {
    kir::Builder* b;
    kir::Val v;
    Index operator+(int64_t k) const { return {b, b->add(v, b->i64(k))}; }
    Index operator+(Index o) const { return {b, b->add(v, o.v)}; }
    Index operator*(int64_t k) const { return {b, b->mul(v, b->i64(k))}; }
    Index operator/(int64_t k) const { return {b, b->index_div(v, Dim(k))}; }
    Index operator%(int64_t k) const { return {b, b->index_rem(v, Dim(k))}; }
  };
  struct Word {
    kir::Builder* b;
    kir::Val v;
    Word with(kir::Op op, kir::Val o) const { return {b, b->binary(op, v, o)}; }
    kir::Val number(uint32_t k) const {
      return b->constant_int(kir::Type::kI32, static_cast<int32_t>(k));
    }
    Word operator&(Word o) const { return with(kir::Op::kAnd, o.v); }
    Word operator|(Word o) const { return with(kir::Op::kOr, o.v); }
    Word operator>>(Word o) const { return with(kir::Op::kLShr, o.v); }
    Word operator&(uint32_t k) const { return with(kir::Op::kAnd, number(k)); }
    Word operator^(uint32_t k) const { return with(kir::Op::kXor, number(k)); }
    Word operator-(uint32_t k) const { return with(kir::Op::kSub, number(k)); }
    Word operator*(uint32_t k) const { return with(kir::Op::kMul, number(k)); }
    Word operator>>(int k) const { return with(kir::Op::kLShr, number(static_cast<uint32_t>(k))); }
    Word operator<<(int k) const { return with(kir::Op::kShl, number(static_cast<uint32_t>(k))); }
  };
  struct Real {
    kir::Builder* b;
    kir::Val v;
    Real operator*(Real o) const { return {b, b->mul(v, o.v)}; }
    Real operator-() const { return {b, b->unary(kir::Op::kNeg, v)}; }
  };

  kir::Val load(kir::Type type, kir::Val at) const { return load_(type, at); }
  Index index(kir::Val v) const { return {&b_, v}; }
  Index at(int64_t offset) const { return {&b_, b_.i64(offset)}; }
  Word byte(Index at) const {
    return {&b_, b_.convert(kir::Op::kZExt, kir::Type::kI32, load_(kir::Type::kI8, at.v))};
  }
  Word word(Index at) const { return {&b_, load_(kir::Type::kI32, at.v)}; }
  Real half(Index at) const {
    return {&b_, b_.convert(kir::Op::kFExt, kir::Type::kF32, load_(kir::Type::kF16, at.v))};
  }
  Word to_word(Index i) const {
    return {&b_, b_.convert(kir::Op::kIntTrunc, kir::Type::kI32, i.v)};
  }
  Real to_real(Word w) const { return {&b_, b_.convert(kir::Op::kSToF, kir::Type::kF32, w.v)}; }

 private:
  kir::Builder& b_;
  Load load_;
};

}  // namespace tenon::ops
