// exp(t^2/2) (1 - Phi(t)) on sixteen intervals of t + 1, four to an octave, written by
// tools/math/gelu.sollya; and 1 - Phi(t) near 0, written by tools/math/gelu_near.sollya.
#pragma once

#include <array>

namespace tenon::kir::math {

// Middle of each interval, as a value of t.
inline constexpr std::array<float, 16> kGeluMiddle = {
    0x1p-3f,  0x1.8p-2f, 0x1.4p-1f, 0x1.cp-1f, 0x1.4p0f, 0x1.cp0f, 0x1.2p1f, 0x1.6p1f,
    0x1.cp1f, 0x1.2p2f,  0x1.6p2f,  0x1.ap2f,  0x1p3f,   0x1.4p3f, 0x1.8p3f, 0x1.cp3f};

// Coefficients of d^k, d = t - middle.
inline constexpr std::array<std::array<float, 16>, 7> kGeluCoefficients = {
    {{0x1.d0af2cp-2f, 0x1.84b706p-2f, 0x1.4b1de2p-2f, 0x1.1e7c2ep-2f, 0x1.d898dep-3f,
      0x1.7b5abep-3f, 0x1.3aaddep-3f, 0x1.0bb968p-3f, 0x1.b396fap-4f, 0x1.5b5acep-4f,
      0x1.201faap-4f, 0x1.eba5fep-5f, 0x1.926972p-5f, 0x1.43a38ap-5f, 0x1.0e7dcep-5f,
      0x1.d087aep-6f},
     {-0x1.5e6e6ep-2f, -0x1.06bfb2p-2f, -0x1.93234ep-3f, -0x1.3baf58p-3f, -0x1.c49324p-4f,
      -0x1.3253b8p-4f, -0x1.b405ccp-5f, -0x1.432b1ap-5f, -0x1.b6039p-6f, -0x1.1be2c6p-6f,
      -0x1.8b1956p-7f, -0x1.21ae92p-7f, -0x1.86b84ap-8f, -0x1.fbf2d2p-9f, -0x1.63cfcap-9f,
      -0x1.06cdbep-9f},
     {0x1.a4dfdcp-3f, 0x1.222ed8p-3f, 0x1.9a3ee8p-4f, 0x1.28b826p-4f, 0x1.7b79e6p-5f,
      0x1.bd42b8p-6f, 0x1.15aa32p-6f, 0x1.6c64aep-7f, 0x1.a29ea6p-8f, 0x1.bfb7d8p-9f, 0x1.07e08p-9f,
      0x1.4ea672p-10f, 0x1.76263ap-11f, 0x1.8af5d2p-12f, 0x1.d0f454p-13f, 0x1.27e5bcp-13f},
     {-0x1.b02a14p-4f, -0x1.15c5cep-4f, -0x1.6e8ecp-5f, -0x1.ef9bd6p-6f, -0x1.1f30c4p-6f,
      -0x1.295ffcp-7f, -0x1.49bacp-8f, -0x1.8388bp-9f, -0x1.7e7798p-10f, -0x1.55b894p-11f,
      -0x1.57fc94p-12f, -0x1.7b5ffp-13f, -0x1.617b9p-14f, -0x1.30507ap-15f, -0x1.2ddb7cp-16f,
      -0x1.4b93d6p-17f},
     {0x1.8ce104p-5f, 0x1.dd5a6ap-6f, 0x1.3548a4p-6f, 0x1.93c2c2p-7f, 0x1.8fdc22p-8f,
      0x1.75586cp-9f, 0x1.7138c6p-10f, 0x1.7ad16cp-11f, 0x1.4fde84p-12f, 0x1.fd4e26p-14f,
      0x1.bd13ccp-15f, 0x1.a39ed4p-16f, 0x1.499128p-17f, 0x1.cd546ap-19f, 0x1.8c892ep-20f,
      0x1.765afcp-21f},
     {-0x1.4791bap-6f, -0x1.7a9976p-7f, -0x1.bc352cp-8f, -0x1.0bc1bap-8f, -0x1.0652fap-9f,
      -0x1.b5d72cp-11f, -0x1.89206ep-12f, -0x1.7e5bap-13f, -0x1.213456p-14f, -0x1.70fdb2p-16f,
      -0x1.140a7ap-17f, -0x1.d0a502p-19f, -0x1.36b5fap-20f, -0x1.6561bp-22f, -0x1.f9f6bap-24f,
      -0x1.9c4884p-25f},
     {-0x1.7c6758p-8f, 0x1.a3b4bcp-10f, -0x1.c9cca2p-6f, -0x1.d9a324p-6f, 0x1.456f98p-11f,
      0x1.96a39ep-18f, 0x1.4bc2cp-14f, 0x1.17f3dep-12f, 0x1.ca6ffp-17f, 0x1.235d16p-19f,
      -0x1.44547cp-21f, 0x1.c93dcep-21f, 0x1.215d6p-23f, 0x1.8ed894p-25f, -0x1.844862p-28f,
      -0x1.ab5df6p-30f}}};

// Of 1 - Phi(k/4 + d): coefficients of d^0 … d^6 for k = 0 … 15, |d| <= 1/8.
inline constexpr std::array<std::array<float, 16>, 7> kGeluNear = {
    {{0x1p-1f, 0x1.9aecbap-2f, 0x1.3bf144p-2f, 0x1.d022p-3f, 0x1.44ed0cp-3f, 0x1.b0bdd2p-4f,
      0x1.11a46ep-4f, 0x1.482a24p-5f, 0x1.74bcf8p-6f, 0x1.90925p-7f, 0x1.96f4e6p-8f, 0x1.869044p-9f,
      0x1.61de2p-10f, 0x1.2e86fep-11f, 0x1.e7dbcap-13f, 0x1.72d956p-14f},
     {-0x1.988454p-2f, -0x1.8bf2bap-2f, -0x1.6883dp-2f, -0x1.345d5ep-2f, -0x1.ef8e58p-3f,
      -0x1.7610bap-3f, -0x1.094086p-3f, -0x1.616454p-4f, -0x1.ba4b44p-5f, -0x1.0402ep-5f,
      -0x1.1f2f06p-6f, -0x1.29fa54p-7f, -0x1.227214p-8f, -0x1.09f38ep-9f, -0x1.c9897ep-11f,
      -0x1.71b93p-12f},
     {0x1.143abep-20f, 0x1.8bfc84p-5f, 0x1.68819cp-4f, 0x1.ce8d5cp-4f, 0x1.ef8d34p-4f,
      0x1.d39348p-4f, 0x1.8ddfe2p-4f, 0x1.3537ep-4f, 0x1.ba4b72p-5f, 0x1.2482dp-5f, 0x1.66fa8cp-6f,
      0x1.99b7d8p-7f, 0x1.b3aaeep-8f, 0x1.b02b86p-9f, 0x1.90581cp-10f, 0x1.5a9dacp-11f},
     {0x1.1035d2p-4f, 0x1.eeeebep-5f, 0x1.6882ep-5f, 0x1.67b5dcp-6f, -0x1.520238p-20f,
      -0x1.188754p-6f, -0x1.ba123p-6f, -0x1.e5e7fcp-6f, -0x1.ba4a68p-6f, -0x1.601912p-6f,
      -0x1.f6917cp-7f, -0x1.45ea9cp-7f, -0x1.8342fp-8f, -0x1.a7dc4cp-9f, -0x1.acf054p-10f,
      -0x1.927496p-11f},
     {0x1.f44cb4p-12f, -0x1.973ca8p-7f, -0x1.460eacp-6f, -0x1.7a5cbcp-6f, -0x1.48104p-6f,
      -0x1.b9b104p-7f, -0x1.86d206p-8f, 0x1.9000bep-12f, 0x1.261d3ap-8f, 0x1.93db3p-8f,
      0x1.8552dp-8f, 0x1.37ec1cp-8f, 0x1.b3d92p-9f, 0x1.107be8p-9f, 0x1.34b114p-10f,
      0x1.3f81fcp-11f},
     {-0x1.b16038p-7f, -0x1.148e92p-7f, -0x1.2ab6b2p-8f, 0x1.2200bep-12f, 0x1.0b3102p-8f,
      0x1.83b14p-8f, 0x1.7d165ap-8f, 0x1.18e82ep-8f, 0x1.25e62cp-9f, 0x1.e7343cp-12f,
      -0x1.5d5682p-11f, -0x1.245872p-10f, -0x1.21f0b4p-10f, -0x1.c597e8p-11f, -0x1.2fc254p-11f,
      -0x1.6779e6p-12f},
     {0x1.193b74p-7f, 0x1.84574ep-6f, -0x1.bd9624p-8f, 0x1.1a5feep-7f, -0x1.9eab2p-9f,
      -0x1.aaab1p-8f, -0x1.29c226p-8f, -0x1.c33166p-11f, -0x1.e38886p-11f, -0x1.f205e2p-10f,
      -0x1.851ef8p-11f, -0x1.545c78p-12f, 0x1.01676ep-14f, 0x1.47c28p-13f, 0x1.601398p-13f,
      0x1.19af52p-13f}}};

}  // namespace tenon::kir::math
