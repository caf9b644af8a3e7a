// erf(k/4 + d): coefficients of d^0 … d^5 for k = 0 … 15, |d| <= 1/8; written by
// tools/math/erf_table.sollya.
#pragma once

#include <array>

namespace tenon::kir::math {

inline constexpr std::array<std::array<float, 16>, 6> kErfTable = {
    {{0.0f, 0x1.1af54ep-2f, 0x1.0a7ef6p-1f, 0x1.6c1c98p-1f, 0x1.af767ap-1f, 0x1.d8865ep-1f,
      0x1.eea556p-1f, 0x1.f92d08p-1f, 0x1.fd9ae2p-1f, 0x1.ff4048p-1f, 0x1.ffcaa8p-1f, 0x1.fff2dp-1f,
      0x1.fffd1ap-1f, 0x1.ffff7p-1f, 0x1.ffffe8p-1f, 0x1.fffffcp-1f},
     {0x1.20dd76p0f, 0x1.0f5d18p0f, 0x1.c1efcep-1f, 0x1.492e46p-1f, 0x1.a911f2p-2f, 0x1.e4653p-3f,
      0x1.e72372p-4f, 0x1.b0553p-5f, 0x1.529bdep-6f, 0x1.d41436p-8f, 0x1.1d8312p-9f,
      0x1.3360f2p-11f, 0x1.2407fcp-13f, 0x1.e9bba4p-16f, 0x1.6a95dap-18f, 0x1.d8cec4p-21f},
     {-0x1.98d032p-18f, -0x1.0f5bd6p-2f, -0x1.c1eee4p-2f, -0x1.edc5fp-2f, -0x1.a91128p-2f,
      -0x1.2ec0a4p-2f, -0x1.6d5de4p-3f, -0x1.7a4f8ep-4f, -0x1.52a7fap-5f, -0x1.075e12p-6f,
      -0x1.646476p-8f, -0x1.a738aap-10f, -0x1.afd788p-12f, -0x1.99d844p-14f, -0x1.b47dbap-16f,
      -0x1.fe0718p-20f},
     {-0x1.80fb1p-2f, -0x1.3c9e86p-2f, -0x1.2c041ep-3f, 0x1.b67f72p-6f, 0x1.1b5dfp-3f,
      0x1.571c6ep-3f, 0x1.1c2a74p-3f, 0x1.714998p-4f, 0x1.8ae9bp-5f, 0x1.63f0d2p-6f, 0x1.119e7p-7f,
      0x1.69c3aap-9f, 0x1.9ded1ep-11f, 0x1.99e36p-13f, 0x1.5b32b2p-15f, 0x1.11e1p-17f},
     {-0x1.b89112p-10f, 0x1.023404p-3f, 0x1.74e9a4p-3f, 0x1.33ec5ep-3f, 0x1.1b0e8cp-4f,
      -0x1.6af30ep-8f, -0x1.681e64p-5f, -0x1.86d78ep-5f, -0x1.1797aep-5f, -0x1.35b322p-6f,
      -0x1.28c7d6p-7f, -0x1.9fdba4p-9f, -0x1.64751p-10f, -0x1.300c9ep-13f, 0x1.35d3fcp-12f,
      -0x1.692e46p-14f},
     {0x1.e33d14p-4f, 0x1.4c88a8p-4f, 0x1.224beap-7f, -0x1.a76472p-5f, -0x1.1912b4p-4f,
      -0x1.8189cap-5f, -0x1.eb0c06p-7f, 0x1.a8e872p-8f, 0x1.c6a288p-7f, 0x1.5c4bbp-7f,
      0x1.912852p-8f, 0x1.6ceb4p-9f, 0x1.06c7c8p-10f, 0x1.5f497ap-12f, 0x1.0f86e2p-13f,
      0x1.268a96p-17f}}};

}  // namespace tenon::kir::math
