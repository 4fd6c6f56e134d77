// Coefficients of P(u) ~ log2(1 + u) on [sqrt(1/2) - 1, sqrt(2) - 1]: Chebyshev interpolation,
// constant term set to 0 (docs/reference/cell-codes.md, section 6). Error of 16 terms < 2^-41, of
// 24 terms < 2^-56.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define CIWRAP_CONSTANT __device__ static constexpr  // inline ones would need relocatable code
#else
#define CIWRAP_CONSTANT inline constexpr
#endif

namespace ciwrap {

CIWRAP_CONSTANT double log2_terms_16[16] = {
    0x0.0p+0,
    0x1.71547652ba359p+0,
    -0x1.71547651e169ap-1,
    0x1.ec709db6a917ap-2,
    -0x1.71547766fca6dp-2,
    0x1.2776cb63ef368p-2,
    -0x1.ec701d0cd6a80p-3,
    0x1.a6149909f6312p-3,
    -0x1.7161bf1d85e89p-3,
    0x1.489bad0387ab2p-3,
    -0x1.26e4c9d196c5dp-3,
    0x1.07d4b6f771000p-3,
    -0x1.ececf14ab5518p-4,
    0x1.05e7b912bae76p-3,
    -0x1.f4a54c65e5645p-4,
    0x1.ea3a58193fa78p-5,
};

CIWRAP_CONSTANT double log2_terms_24[24] = {
    0x0.0p+0,
    0x1.71547652b82fep+0,
    -0x1.71547652b82fdp-1,
    0x1.ec709dc3a0426p-2,
    -0x1.71547652b8515p-2,
    0x1.2776c50ef7991p-2,
    -0x1.ec709dc373636p-3,
    0x1.a61762a94f5a4p-3,
    -0x1.715476626450fp-3,
    0x1.484b13860745dp-3,
    -0x1.2776c1d8c87ccp-3,
    0x1.0c9a8d06e8dbfp-3,
    -0x1.ec716ecb6c9cfp-4,
    0x1.c68ea051151aep-4,
    -0x1.a606a0e2e5489p-4,
    0x1.89ed08e639ca6p-4,
    -0x1.72286131d83dap-4,
    0x1.5cc8f96567d52p-4,
    -0x1.426e037a7fa39p-4,
    0x1.284638b28f325p-4,
    -0x1.3720d3f2c428ap-4,
    0x1.6a8d31439926ep-4,
    -0x1.3a81b63b5ef41p-4,
    0x1.f6e7b0707b2a5p-6,
};

}  // namespace ciwrap
