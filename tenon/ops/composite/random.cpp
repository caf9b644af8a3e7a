#include "tenon/ops/composite/random.h"

#include <cmath>
#include <numbers>

#include "tenon/ops/checks.h"

namespace tenon::ops::random {
namespace {

// What a counter is for: the top two bits keep draws, splits and folds of one key apart.
enum class Stream : uint64_t { kDraw = 0, kSplit = 1, kFold = 2 };

Value u64(uint64_t value, const LocationPtr& location) {
  Literal literal(DType::kU64, {});
  *literal.as_mutable<uint64_t>() = value;
  return ir::make_constant(std::move(literal), location);
}

void check_key(const Value& key, const LocationPtr& location) {
  if (key.dtype() == DType::kU32 && key.shape() == Shape{2}) return;
  throw TypeError(fmt::format("random: a key is u32[2], got {}", ir::brief(key.type())),
                  {.label = "random_key",
                   .location = ir::str(location),
                   .hint = "make one with random::key(seed)"});
}

Value encrypt(const Value& key, Value counter, Stream stream, const LocationPtr& location) {
  check_key(key, location);
  if (stream != Stream::kDraw) {
    const Value base = u64(static_cast<uint64_t>(stream) << 62, location);
    counter = bitwise_xor(counter, base, location);
  }
  return threefry(index(key, 0, 0, location), index(key, 0, 1, location), counter, location);
}

// [n] 64-bit words → [n, 2] key words.
Value as_keys(const Value& words, const LocationPtr& location) {
  const Value low = cast(words, DType::kU32, location);
  const Value high = cast(right_shift(words, u64(32, location), location), DType::kU32, location);
  return stack({low, high}, -1, location);
}

// The top `count` bits as a float of the dtype, exactly.
Value top_bits(const Value& words, int count, DType dtype, const LocationPtr& location) {
  const Value shifted =
      right_shift(words, u64(static_cast<uint64_t>(64 - count), location), location);
  const DType integer = count < 32 ? DType::kI32 : DType::kI64;
  return cast(cast(shifted, integer, location), dtype, location);
}

struct Precision {
  DType compute;
  int bits;
};
Precision precision(std::string_view op, DType dtype, const LocationPtr& location) {
  with_location(location, [&] { check_dtype(op, dtype, ir::DTypeClass::kFloat); });
  switch (dtype) {
    case DType::kF64: return {DType::kF64, 53};
    case DType::kF16: return {DType::kF32, 11};
    case DType::kBF16: return {DType::kF32, 8};
    default: return {DType::kF32, 24};
  }
}

// Strictly between 0 and 1: (2k + 1) / 2^(bits + 1) for k of `bits` bits.
Value open_unit(const Value& words, int bits, DType dtype, const LocationPtr& location) {
  const Value k = top_bits(words, bits, dtype, location);
  const Value odd =
      add(mul(k, scalar(dtype, 2, location), location), scalar(dtype, 1, location), location);
  return mul(odd, scalar(dtype, std::ldexp(1.0, -bits - 1), location), location);
}

}  // namespace

Value key(uint64_t seed, LocationPtr location) {
  Literal words(DType::kU32, {2});
  words.as_mutable<uint32_t>()[0] = static_cast<uint32_t>(seed);
  words.as_mutable<uint32_t>()[1] = static_cast<uint32_t>(seed >> 32);
  return ir::make_constant(std::move(words), std::move(location));
}

Value split(const Value& key, const Dim& count, LocationPtr location) {
  const Value counter = iota({count}, 0, DType::kU64, location);
  return as_keys(encrypt(key, counter, Stream::kSplit, location), location);
}

Value fold_in(const Value& key, const Value& data, LocationPtr location) {
  const Value counter = cast(data, DType::kU64, location);
  return as_keys(encrypt(key, counter, Stream::kFold, location), location);
}

Value bits(const Value& key, const Shape& shape, LocationPtr location) {
  const Value counter = iota({product(shape)}, 0, DType::kU64, location);
  return reshape(encrypt(key, counter, Stream::kDraw, location), shape, location);
}

Value uniform(const Value& key, const Shape& shape, DType dtype, double lo, double hi,
              LocationPtr location) {
  const Precision p = precision("uniform", dtype, location);
  Value u = top_bits(bits(key, shape, location), p.bits, p.compute, location);
  u = mul(u, scalar(p.compute, std::ldexp(1.0, -p.bits), location), location);
  if (lo != 0 || hi != 1) {
    u = mul(u, scalar(p.compute, hi - lo, location), location);
    u = add(u, scalar(p.compute, lo, location), location);
  }
  return cast(u, dtype, location);
}

Value normal(const Value& key, const Shape& shape, DType dtype, LocationPtr location) {
  const DType compute = precision("normal", dtype, location).compute;
  const int count = compute == DType::kF64 ? 52 : 23;
  const Value unit = open_unit(bits(key, shape, location), count, compute, location);
  const Value two = scalar(compute, 2, location);
  const Value centred = sub(mul(unit, two, location), scalar(compute, 1, location), location);
  const Value root = scalar(compute, std::numbers::sqrt2, location);
  return cast(mul(erfinv(centred, location), root, location), dtype, location);
}

Value bernoulli(const Value& key, const Value& p, const Shape& shape, LocationPtr location) {
  const DType dtype = p.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  const Value u = uniform(key, shape, dtype, 0, 1, location);
  return less(u, cast(p, dtype, location), location);
}

Value randint(const Value& key, const Shape& shape, int64_t lo, int64_t hi, DType dtype,
              LocationPtr location) {
  if (lo >= hi) {
    throw ValueError(fmt::format("randint: lo {} must be below hi {}", lo, hi),
                     {.label = "randint_c1", .location = ir::str(location)});
  }
  const uint64_t span = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
  const Value offset = mod(bits(key, shape, location), u64(span, location), location);
  const Value x =
      add(cast(offset, DType::kI64, location), scalar_int(DType::kI64, lo, location), location);
  return cast(x, dtype, location);
}

Value categorical(const Value& key, const Value& logits, int64_t axis, LocationPtr location) {
  const DType dtype = logits.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  const int count = dtype == DType::kF64 ? 52 : 23;
  const Value unit = open_unit(bits(key, logits.shape(), location), count, dtype, location);
  const Value gumbel = neg(log(neg(log(unit, location), location), location), location);
  const Value noisy = add(cast(logits, dtype, location), gumbel, location);
  return argmax(noisy, axis, false, location);
}

}  // namespace tenon::ops::random
