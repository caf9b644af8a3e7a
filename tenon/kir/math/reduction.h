// Reduction of an angle to |r| <= pi/4 and its quadrant.
#pragma once

#include "tenon/kir/math/value.h"

namespace tenon::kir::math {

struct Angle {
  Value r;
  Value low;       // what r lacks of the angle, 0 unless `precise`
  Value quadrant;  // an integer of r's width; its low two bits count
};

// a = quadrant * pi/2 + r + low for a >= 0 of any size: three or four exact subtractions (Cody and
// Waite) while a is moderate, else a product with the bits of 2/pi that matter (Payne and Hanek) on
// the slow path. r is NaN for infinities and NaN.
Angle reduce_angle(Value a, bool precise = false);

}  // namespace tenon::kir::math
