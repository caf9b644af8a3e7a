#include "tenon/kir/math/functions.h"
#include "tenon/kir/math/reduction.h"

namespace tenon::kir::math {

namespace {

Value sine(Value r, Value z) {
  Value s = polynomial(
      z, {-0x1.555552p-3, 0x1.110be2p-7, -0x1.9ab1dep-13},
      {-0x1.5555555555555p-3, 0x1.111111111101fp-7, -0x1.a01a019fe8e53p-13, 0x1.71de3a10ed7dbp-19,
       -0x1.ae63f92fab972p-26, 0x1.60e6b239a3b84p-33, -0x1.8dd31f1358c3dp-41});
  return muladd(r * z, s, r);
}

Value cosine(Value z) {
  Value c = polynomial(
      z, {0x1.555554p-5, -0x1.6c129cp-10, 0x1.9bc644p-16},
      {0x1.5555555555555p-5, -0x1.6c16c16c16a34p-10, 0x1.a01a019fb86p-16, -0x1.27e4faf005013p-22,
       0x1.1eecd7e0330cp-29, -0x1.92a91abc3e406p-37, 0x1.36279b07491d8p-45});
  Value half = z * 0.5;
  Value w = 1.0 - half;
  return w + muladd(z * z, c, (1.0 - w) - half);
}

// tan(r + low).
Value tangent(Value r, Value z, Value low) {
  Value t = polynomial(
      z, {0x1.55555p-2, 0x1.111666p-3, 0x1.b888c4p-5, 0x1.7b6a5p-6, 0x1.4e504cp-8, 0x1.0e5b38p-7},
      {0x1.5555555555555p-2, 0x1.1111111111157p-3, 0x1.ba1ba1ba1d305p-5, 0x1.664f48809dc56p-6,
       0x1.226e35f395365p-7, 0x1.d6d3a7c6ca1cep-9, 0x1.7da6d6433a0c5p-10, 0x1.35275aa171998p-11,
       0x1.f935520ede1bbp-13, 0x1.7cfb3df2647cdp-14, 0x1.c5252e7ca919bp-15, -0x1.2e39813328b57p-17,
       0x1.2429d2fd3daaap-15, -0x1.253263067247fp-16, 0x1.1660250222a28p-17});
  return r + muladd(r * z, t, muladd(low, z, low));
}

Value is_odd(Value quadrant) { return cmp(Pred::kNe, bit_and(quadrant, 1), quadrant.make_int(0)); }

// Flips the sign of `value` where bit `bit` of `quadrant`, together with the sign of `with`, says
// so.
Value flip(Value value, Value quadrant, int bit, const Value* with) {
  int width = value.is_f64() ? 64 : 32;
  Value flags = shl(quadrant, width - 1 - bit);
  if (with != nullptr) flags = bit_xor(flags, to_bits(*with));
  return from_bits(bit_xor(to_bits(value), bit_and(flags, int64_t{1} << (width - 1))));
}

// (atan(t) - t) / t for z = t*t, t <= 1 (f32) or tan(pi/8) (f64).
Value arctangent_tail(Value z) {
  return z * polynomial(z,
                        {-0x1.55555p-2, 0x1.99935ep-3, -0x1.24051ep-3, 0x1.bd7368p-4,
                         -0x1.491f0ep-4, 0x1.93a2cp-5, -0x1.4c3c6p-6, 0x1.01fd88p-8},
                        {-0x1.5555555555555p-2, 0x1.9999999999428p-3, -0x1.249249243d4ep-3,
                         0x1.c71c7188a1035p-4, -0x1.745d0b9820012p-4, 0x1.3b126b92d7d78p-4,
                         -0x1.10fae05492165p-4, 0x1.dfec940f3fb29p-5, -0x1.a0b7325dc5a2ep-5,
                         0x1.41b0688eb71fap-5, -0x1.3ae00629b31abp-6});
}

Value arctangent(Value t) { return muladd(t, arctangent_tail(t * t), t); }

// k pi/4 + value for whole k up to 4.
Value plus_eighths(Value k, Value value) {
  Value low = muladd(k, k.pick(0x1.54442ep-21, 0x1.8469898cc517p-49), value);
  return muladd(k, k.pick(0x1.921fap-1, 0x1.921fb54442dp-1), low);
}

// (asin(t) - t) / t for z = t*t <= 1/4.
Value arcsine_tail(Value z) {
  return z * polynomial(z,
                        {0x1.55555ep-3, 0x1.332684p-4, 0x1.70c00ep-5, 0x1.b1d57ap-6, 0x1.39379ep-5},
                        {0x1.555555555554ep-3, 0x1.3333333337269p-4, 0x1.6db6db67f1612p-5,
                         0x1.f1c71fc03ce44p-6, 0x1.6e8b25e014f94p-6, 0x1.1c59a071646e2p-6,
                         0x1.c86948fdfd78dp-7, 0x1.8567416d19d26p-7, 0x1.fccbd3d25c3b8p-8,
                         0x1.08a85a59406bdp-6, -0x1.66c561288130fp-7, 0x1.cfeb6b6a5a65fp-6});
}

// asin(t) = t + excess with t = |x| for |x| <= 1/2, else t = sqrt((1 - |x|) / 2), whose arc sine is
// acos(|x|) / 2.
struct Arcsine {
  Value big;
  Value t;
  Value excess;
};

Arcsine half_range(Value x) {
  Value a = abs(x);
  Value big = a > 0.5;
  Value z = select(big, (1.0 - a) * 0.5, a * a);
  Value t = select(big, sqrt(z), a);
  return {big, t, t * arcsine_tail(z)};
}

Value half_pi(Value like) { return like.pick(0x1.921fb6p0, 0x1.921fb54442d18p0); }
Value half_pi_low(Value like) { return like.pick(-0x1.777a5cp-25, 0x1.1a62633145c07p-54); }

}  // namespace

Value sin(Value x) {
  Angle a = reduce_angle(abs(x));
  Value z = a.r * a.r;
  return flip(select(is_odd(a.quadrant), cosine(z), sine(a.r, z)), a.quadrant, 1, &x);
}

Value cos(Value x) {
  Angle a = reduce_angle(abs(x));
  Value z = a.r * a.r;
  Value quadrant = add_int(a.quadrant, 1);
  return flip(select(is_odd(quadrant), cosine(z), sine(a.r, z)), quadrant, 1, nullptr);
}

namespace {

Value tan_regular(Value x) {
  Angle a = reduce_angle(abs(x), true);
  Value z = a.r * a.r;
  Value t = tangent(a.r, z, a.low);
  Value odd = is_odd(a.quadrant);
  Value one = x.make(1.0);
  return flip(select(odd, one, t) / select(odd, t, one), a.quadrant, 0, &x);
}

}  // namespace

Value tan(Value x) { return near_identity(x, tiny_limit(x), tan_regular); }

Value asin(Value x) {
  Arcsine h = half_range(x);
  Value from_top = (half_pi(x) - (h.t + h.t)) - muladd(h.excess, 2.0, -half_pi_low(x));
  return copysign(select(h.big, from_top, h.t + h.excess), x);
}

Value acos(Value x) {
  Arcsine h = half_range(x);
  Value angle = h.t + h.excess;
  Value middle = half_pi(x) - (copysign(angle, x) - half_pi_low(x));
  Value twice = angle + angle;
  Value from_pi = half_pi(x) * 2.0 - (twice - half_pi_low(x) * 2.0);
  return select(h.big, select(x < 0.0, from_pi, twice), middle);
}

namespace {

Value atan_regular(Value x) {
  Value a = abs(x);
  Value zero = x.make(0.0), one = x.make(1.0);
  if (!x.is_f64()) {
    Value big = a > 1.0;
    Value t = select(big, -1.0, a) / select(big, a, one);
    return copysign(plus_eighths(select(big, 2.0, zero), arctangent(t)), x);
  }
  Value big = a > 0x1.3504f333f9de6p1, middle = a > 0x1.a827999fcef32p-2;
  Value t =
      select(big, -1.0, select(middle, a - 1.0, a)) / select(big, a, select(middle, a + 1.0, one));
  Value k = select(big, 2.0, select(middle, 1.0, zero));
  return copysign(plus_eighths(k, arctangent(t)), x);
}

}  // namespace

Value atan(Value x) { return near_identity(x, tiny_limit(x), atan_regular); }

Value atan2(Value y, Value x) {
  Value ay = abs(y), ax = abs(x);
  Value steep = ay > ax;
  Value num = select(steep, ax, ay), den = select(steep, ay, ax);
  // A quotient is the same in units of the least number.
  Value small = below_normal(den);
  Builder& b = *x.b;
  Val init[] = {num.v, den.v};
  auto scaled = b.rarely(small.v, init, [&](std::span<const Val> now) {
    return std::vector<Val>{b.select(small.v, units_of(num).v, now[0]),
                            b.select(small.v, units_of(den).v, now[1])};
  });
  num = {&b, scaled[0]};
  den = {&b, scaled[1]};
  Value zero = x.make(0.0), one = x.make(1.0);
  Value infinite = equal(num, x.make(1.0) / zero);
  num = select(infinite, one, num);
  den = select(either(infinite, equal(den, 0.0)), one, den);
  Value k = zero;
  if (x.is_f64()) {
    // Both halved where their sum would overflow; what that rounds is far below the result.
    Value scale = select(den > 0x1p1000, 0x1p-100, one);
    num = num * scale;
    den = den * scale;
    Value middle = num > den * 0x1.a827999fcef32p-2;
    Value shifted = num - den;
    den = select(middle, den + num, den);
    num = select(middle, shifted, num);
    k = select(middle, 1.0, zero);
  }
  Value angle = arctangent(num / den);
  angle = select(steep, -angle, angle);
  k = select(steep, 2.0 - k, k);
  Value left = cmp(Pred::kSLt, to_bits(x), to_bits(zero));
  angle = select(left, -angle, angle);
  k = select(left, 4.0 - k, k);
  Value r = copysign(plus_eighths(k, angle), y);
  return select(cmp(Pred::kUno, x, y), x + y, r);
}

}  // namespace tenon::kir::math
