// Vectors of one CPU level: 64 bytes with AVX-512, 32 with AVX2, else 16, of SSE2 or NEON.
// Arithmetic uses the compilers' own vector types; only what these cannot say, or say badly, is an
// intrinsic. Where CIWRAP_HAVE_SIMD is not defined (other architectures), the loops of
// encode_block.hpp serve instead.
//
// Lanes are rounded one by one exactly as scalars are, so codes do not depend on the vector width.
#pragma once

#if defined(CIWRAP_CPU_LEVEL) && (defined(__SSE2__) || defined(__aarch64__))
#define CIWRAP_HAVE_SIMD 1

#if defined(__aarch64__)
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

// four_lanes.hpp asks for vectors of 32 bytes at most.
#if defined(__AVX512F__) && !defined(CIWRAP_FOUR_LANES)
#define CIWRAP_HAVE_WIDE 1
#endif

#if defined(__FMA__) || defined(__aarch64__)
#define CIWRAP_HAVE_FMA 1
#endif

#include <cstddef>
#include <cstdint>

#include "kernels/level_namespace.hpp"
#include "kernels/scalar_codes.hpp"

// Vectors are passed by value: always inlined, so that no calling convention comes into it.
#define CIWRAP_VECTOR_FUNCTION [[gnu::always_inline]] static inline

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

// Not inline: files of one level may have vectors of two widths.
#if defined(CIWRAP_HAVE_WIDE)
static constexpr std::size_t vector_bytes = 64;
// The zero-masked forms with every lane on: GCC 12 warns about its own header for the plain ones.
static constexpr __mmask8 every8 = 0xff;
static constexpr __mmask16 every16 = 0xffff;
static constexpr __mmask32 every32 = 0xffffffff;
static constexpr __mmask64 every64 = 0xffffffffffffffff;
#elif defined(__AVX2__)
static constexpr std::size_t vector_bytes = 32;
#else
static constexpr std::size_t vector_bytes = 16;
#endif

using F64 = double __attribute__((vector_size(vector_bytes)));
using I64 = std::int64_t __attribute__((vector_size(vector_bytes)));
using U64 = std::uint64_t __attribute__((vector_size(vector_bytes)));
using F32 = float __attribute__((vector_size(vector_bytes)));
using I32 = std::int32_t __attribute__((vector_size(vector_bytes)));
using U32 = std::uint32_t __attribute__((vector_size(vector_bytes)));
using I16 = std::int16_t __attribute__((vector_size(vector_bytes)));
using U16 = std::uint16_t __attribute__((vector_size(vector_bytes)));
using I8 = std::int8_t __attribute__((vector_size(vector_bytes)));
using U8 = std::uint8_t __attribute__((vector_size(vector_bytes)));

static constexpr std::size_t lanes64 = vector_bytes / 8;
static constexpr std::size_t lanes32 = vector_bytes / 4;

template <class V>
CIWRAP_VECTOR_FUNCTION V load_vector(const std::uint8_t* from) {
    V vector;
    __builtin_memcpy(&vector, from, sizeof vector);
    return vector;
}

template <class V>
CIWRAP_VECTOR_FUNCTION void store_vector(std::uint8_t* to, V vector) {
    __builtin_memcpy(to, &vector, sizeof vector);
}

CIWRAP_VECTOR_FUNCTION F64 splat(double value) {
    return value - F64{};
}
CIWRAP_VECTOR_FUNCTION F32 splat(float value) {
    return value - F32{};
}
CIWRAP_VECTOR_FUNCTION U64 splat(std::uint64_t value) {
    return value + U64{};
}
CIWRAP_VECTOR_FUNCTION U32 splat(std::uint32_t value) {
    return value + U32{};
}
CIWRAP_VECTOR_FUNCTION U8 splat(std::uint8_t value) {
    return value + U8{};
}

CIWRAP_VECTOR_FUNCTION U64 bits_of(F64 v) {
    return reinterpret_cast<U64>(v);
}
CIWRAP_VECTOR_FUNCTION U32 bits_of(F32 v) {
    return reinterpret_cast<U32>(v);
}
CIWRAP_VECTOR_FUNCTION F64 real_of(U64 v) {
    return reinterpret_cast<F64>(v);
}
CIWRAP_VECTOR_FUNCTION F32 real_of(U32 v) {
    return reinterpret_cast<F32>(v);
}

// All ones where the sign bit is set. There is no arithmetic 64-bit shift before AVX-512.
CIWRAP_VECTOR_FUNCTION U64 sign_mask(F64 x) {
    return U64{} - (bits_of(x) >> 63);
}
CIWRAP_VECTOR_FUNCTION U32 sign_mask(F32 x) {
    return U32{} - (bits_of(x) >> 31);
}

// `yes` where the mask is all ones, `no` where it is zero.
template <class V, class Mask>
CIWRAP_VECTOR_FUNCTION V select(Mask mask, V yes, V no) {
    const V chosen = reinterpret_cast<V>(mask);
    return (yes & chosen) | (no & ~chosen);
}

// a * b + c, fused where the machine can. Only for where that makes no difference: the product is
// exact, or its rounding does not matter to the result.
CIWRAP_VECTOR_FUNCTION F64 multiply_add(F64 a, F64 b, F64 c) {
#if defined(__aarch64__)
    return (F64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#elif defined(CIWRAP_HAVE_WIDE)
    return _mm512_fmadd_pd(a, b, c);
#elif defined(CIWRAP_HAVE_FMA)
    return _mm256_fmadd_pd(a, b, c);
#else
    return a * b + c;
#endif
}

// v, of which the compiler may not know that it is constant.
template <class V>
CIWRAP_VECTOR_FUNCTION V opaque(V v) {
#if defined(__aarch64__)
    __asm__("" : "+w"(v));
#elif defined(CIWRAP_HAVE_WIDE)
    __asm__("" : "+v"(v));
#else
    __asm__("" : "+x"(v));
#endif
    return v;
}

CIWRAP_VECTOR_FUNCTION F64 smaller(F64 a, F64 b) {  // b where either is NaN
#if defined(CIWRAP_HAVE_WIDE)
    return _mm512_maskz_min_pd(every8, a, b);
#elif defined(__AVX2__)
    return _mm256_min_pd(a, b);
#elif defined(__SSE2__)
    return _mm_min_pd(a, b);
#else
    return a < b ? a : b;
#endif
}

CIWRAP_VECTOR_FUNCTION F64 larger(F64 a, F64 b) {  // b where either is NaN
#if defined(CIWRAP_HAVE_WIDE)
    return _mm512_maskz_max_pd(every8, a, b);
#elif defined(__AVX2__)
    return _mm256_max_pd(a, b);
#elif defined(__SSE2__)
    return _mm_max_pd(a, b);
#else
    return a > b ? a : b;
#endif
}

// floor(x), |x| < 2^51.
CIWRAP_VECTOR_FUNCTION F64 floor_of(F64 x) {
#if defined(CIWRAP_HAVE_WIDE)
    return _mm512_maskz_roundscale_pd(every8, x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
    return _mm256_floor_pd(x);
#elif defined(__aarch64__)
    return (F64)vrndmq_f64((float64x2_t)x);
#else
    const F64 nearest = (x + splat(rounding_magic)) - splat(rounding_magic);
    const U64 one = bits_of(splat(1.0)) & reinterpret_cast<U64>(nearest > x);
    return nearest - real_of(one);
#endif
}

// floor(x) + rounding_magic, of which `magic` is lanes, |x| < 2^51.
CIWRAP_VECTOR_FUNCTION F64 marked_floor(F64 x, F64 magic) {
#if defined(CIWRAP_HAVE_WIDE)
    // The last place of the sum is one, so rounding down rounds x down.
    return _mm512_maskz_add_round_pd(every8, x, magic, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#else
    return floor_of(x) + magic;
#endif
}

// One bit a lane of a mask.
CIWRAP_VECTOR_FUNCTION std::uint32_t lane_bits(U64 mask) {
#if defined(CIWRAP_HAVE_WIDE)
    return _mm512_movepi64_mask((__m512i)mask);
#elif defined(__AVX2__)
    return static_cast<std::uint32_t>(_mm256_movemask_pd(real_of(mask)));
#elif defined(__aarch64__)
    return static_cast<std::uint32_t>(vaddvq_u64((uint64x2_t)(mask & U64{1, 2})));
#else
    return static_cast<std::uint32_t>(_mm_movemask_pd(real_of(mask)));
#endif
}
CIWRAP_VECTOR_FUNCTION std::uint32_t lane_bits(U32 mask) {
#if defined(CIWRAP_HAVE_WIDE)
    return _mm512_movepi32_mask((__m512i)mask);
#elif defined(__AVX2__)
    return static_cast<std::uint32_t>(_mm256_movemask_ps(real_of(mask)));
#elif defined(__aarch64__)
    return vaddvq_u32((uint32x4_t)(mask & U32{1, 2, 4, 8}));
#else
    return static_cast<std::uint32_t>(_mm_movemask_ps(real_of(mask)));
#endif
}

// The lower halves of all lanes of `a` and `b`, in some order that store_bytes undoes ...
CIWRAP_VECTOR_FUNCTION U32 mixed_low_halves(U64 a, U64 b) {
#if defined(CIWRAP_HAVE_WIDE)
    const __m512i places =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return (U32)_mm512_permutex2var_epi32((__m512i)a, places, (__m512i)b);
#elif defined(__AVX2__)
    return bits_of(_mm256_shuffle_ps((__m256)a, (__m256)b, 0x88));
#elif defined(__aarch64__)
    return (U32)vuzp1q_u32((uint32x4_t)a, (uint32x4_t)b);
#else
    return bits_of(_mm_shuffle_ps((__m128)a, (__m128)b, 0x88));
#endif
}

// ... and in their own.
CIWRAP_VECTOR_FUNCTION U32 in_order(U32 mixed) {
#if defined(__AVX2__) && !defined(CIWRAP_HAVE_WIDE)
    return (U32)_mm256_permute4x64_epi64((__m256i)mixed, 0xd8);
#else
    return mixed;
#endif
}

// The lowest 16 bits of each a b, in those of its lane; b is below 2^16.
CIWRAP_VECTOR_FUNCTION U32 times_low(U32 a, U32 b) {
    return (U32)((U16)a * (U16)b);
}

// Scalars that are turned into codes at once: a byte of each fills whole vectors.
static constexpr std::size_t tile = vector_bytes < 32 ? 32 : vector_bytes;

// Steps of a loop over a tile that are laid out one after the other: all of them, but for the
// baseline, which nearly no machine runs, and which would be half of what is shipped.
#if defined(__AVX2__)
inline constexpr int tile_unroll = 8;
#else
inline constexpr int tile_unroll = 1;
#endif

// The lowest bytes of a tile of mixed_low_halves, in the scalars' own order.
#if defined(CIWRAP_HAVE_WIDE)
CIWRAP_VECTOR_FUNCTION U8 low_bytes(const U32 (&mixed)[tile / lanes32]) {
    const __m512i byte = _mm512_set1_epi32(0xff);
    const auto pair = [&](U32 a, U32 b) __attribute__((always_inline)) {
        return _mm512_maskz_packs_epi32(every32, (__m512i)a & byte, (__m512i)b & byte);
    };
    const __m512i low = pair(mixed[0], mixed[1]);
    const __m512i high = pair(mixed[2], mixed[3]);
    // Four bytes of each in turn.
    const __m512i turns = _mm512_maskz_packus_epi16(every64, low, high);
    const __m512i places = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return (U8)_mm512_maskz_permutexvar_epi32(every16, places, turns);
}
#elif defined(__AVX2__)
CIWRAP_VECTOR_FUNCTION U8 low_bytes(const U32 (&mixed)[tile / lanes32]) {
    const __m256i byte = _mm256_set1_epi32(0xff);
    const auto pair = [&](U32 a, U32 b) __attribute__((always_inline)) {
        return _mm256_packs_epi32(_mm256_and_si256((__m256i)a, byte),
                                  _mm256_and_si256((__m256i)b, byte));
    };
    const __m256i low = pair(mixed[0], mixed[1]);
    const __m256i high = pair(mixed[2], mixed[3]);
    // Two bytes of each in turn, first those of the lower lanes.
    const __m256i turns = _mm256_packus_epi16(low, high);
    const __m256i across = _mm256_permute4x64_epi64(turns, 0xd8);
    const __m256i places = _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15, 0,
                                            1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    return (U8)_mm256_shuffle_epi8(across, places);
}
#endif

CIWRAP_VECTOR_FUNCTION void store_bytes(std::uint8_t* to, const U32 (&mixed)[tile / lanes32]) {
#if defined(__AVX2__)
    store_vector(to, low_bytes(mixed));
#else
    for (int half = 0; half < 2; ++half) {
        const U32* from = mixed + 4 * half;
#if defined(__aarch64__)
        const uint16x8_t low = vuzp1q_u16((uint16x8_t)from[0], (uint16x8_t)from[1]);
        const uint16x8_t high = vuzp1q_u16((uint16x8_t)from[2], (uint16x8_t)from[3]);
        store_vector(to + 16 * half, vuzp1q_u8((uint8x16_t)low, (uint8x16_t)high));
#else
        const U32 byte = splat(std::uint32_t{0xff});
        const __m128i low = _mm_packs_epi32((__m128i)(from[0] & byte), (__m128i)(from[1] & byte));
        const __m128i high = _mm_packs_epi32((__m128i)(from[2] & byte), (__m128i)(from[3] & byte));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16 * half), _mm_packus_epi16(low, high));
#endif
    }
#endif
}

// Bytes as unsigned 64-bit lanes.
CIWRAP_VECTOR_FUNCTION U64 load_bytes(const std::uint8_t* from) {
#if defined(CIWRAP_HAVE_WIDE)
    const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    return (U64)_mm512_maskz_cvtepu8_epi64(every8, eight);
#elif defined(__AVX2__)
    std::int32_t four;
    __builtin_memcpy(&four, from, sizeof four);
    return (U64)_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four));
#else
    std::uint16_t two;
    __builtin_memcpy(&two, from, sizeof two);
#if defined(__aarch64__)
    // Places that no index names are zero.
    const U64 places = {0xffffffffffffff00, 0xffffffffffffff01};
    return (U64)vqtbl1q_u8((uint8x16_t)vdupq_n_u16(two), (uint8x16_t)places);
#else
    const std::uint32_t apart = (two & 0xffu) | (static_cast<std::uint32_t>(two >> 8) << 16);
    const __m128i zero = _mm_setzero_si128();
    const __m128i words = _mm_unpacklo_epi16(_mm_cvtsi32_si128(static_cast<int>(apart)), zero);
    return (U64)_mm_unpacklo_epi32(words, zero);
#endif
#endif
}

// lanes64 floats ...
CIWRAP_VECTOR_FUNCTION F64 widen_floats(const std::uint8_t* from) {
#if defined(CIWRAP_HAVE_WIDE)
    return _mm512_maskz_cvtps_pd(every8, _mm256_loadu_ps(reinterpret_cast<const float*>(from)));
#elif defined(__AVX2__)
    return _mm256_cvtps_pd(_mm_loadu_ps(reinterpret_cast<const float*>(from)));
#elif defined(__aarch64__)
    return (F64)vcvt_f64_f32(load_vector<float32x2_t>(from));
#else
    return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#endif
}

// ... or 32-bit integers.
CIWRAP_VECTOR_FUNCTION F64 widen_integers(const std::uint8_t* from) {
#if defined(CIWRAP_HAVE_WIDE)
    const auto* eight = reinterpret_cast<const __m256i*>(from);
    return _mm512_maskz_cvtepi32_pd(every8, _mm256_loadu_si256(eight));
#elif defined(__AVX2__)
    return _mm256_cvtepi32_pd(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#elif defined(__aarch64__)
    return (F64)vcvtq_f64_s64(vmovl_s32(load_vector<int32x2_t>(from)));
#else
    return _mm_cvtepi32_pd(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
#endif
}

// The sum of all bytes.
CIWRAP_VECTOR_FUNCTION std::uint64_t sum_of_bytes(U8 bytes) {
#if defined(CIWRAP_HAVE_WIDE)
    const U64 sums = (U64)_mm512_sad_epu8((__m512i)bytes, _mm512_setzero_si512());
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
#elif defined(__AVX2__)
    const U64 sums = (U64)_mm256_sad_epu8((__m256i)bytes, _mm256_setzero_si256());
    return sums[0] + sums[1] + sums[2] + sums[3];
#elif defined(__aarch64__)
    return vaddlvq_u8((uint8x16_t)bytes);
#else
    const U64 sums = (U64)_mm_sad_epu8((__m128i)bytes, _mm_setzero_si128());
    return sums[0] + sums[1];
#endif
}

#if defined(CIWRAP_HAVE_WIDE)
CIWRAP_VECTOR_FUNCTION U32 larger(U32 a, U32 b) {
    return (U32)_mm512_maskz_max_epu32(every16, (__m512i)a, (__m512i)b);
}
CIWRAP_VECTOR_FUNCTION U64 larger(U64 a, U64 b) {
    return (U64)_mm512_maskz_max_epu64(every8, (__m512i)a, (__m512i)b);
}

// Of a table of 16 numbers, eight and eight, the one that the lowest four bits of each lane name.
CIWRAP_VECTOR_FUNCTION F64 look_up(F64 first, F64 second, U64 places) {
    return _mm512_permutex2var_pd(first, (__m512i)places, second);
}

// Integers as doubles, rounded to nearest.
CIWRAP_VECTOR_FUNCTION F64 to_real(U64 whole) {
    return _mm512_maskz_cvtepu64_pd(every8, (__m512i)whole);
}
#endif

CIWRAP_VECTOR_FUNCTION U8 larger(U8 a, U8 b) {
#if defined(CIWRAP_HAVE_WIDE)
    return (U8)_mm512_maskz_max_epu8(every64, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (U8)_mm256_max_epu8((__m256i)a, (__m256i)b);
#elif defined(__aarch64__)
    return (U8)vmaxq_u8((uint8x16_t)a, (uint8x16_t)b);
#else
    return (U8)_mm_max_epu8((__m128i)a, (__m128i)b);
#endif
}

CIWRAP_VECTOR_FUNCTION U8 smaller(U8 a, U8 b) {
#if defined(CIWRAP_HAVE_WIDE)
    return (U8)_mm512_maskz_min_epu8(every64, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (U8)_mm256_min_epu8((__m256i)a, (__m256i)b);
#elif defined(__aarch64__)
    return (U8)vminq_u8((uint8x16_t)a, (uint8x16_t)b);
#else
    return (U8)_mm_min_epu8((__m128i)a, (__m128i)b);
#endif
}

CIWRAP_VECTOR_FUNCTION U16 smaller(U16 a, U16 b) {
#if defined(CIWRAP_HAVE_WIDE)
    return (U16)_mm512_maskz_min_epu16(every32, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (U16)_mm256_min_epu16((__m256i)a, (__m256i)b);
#elif defined(__aarch64__)
    return (U16)vminq_u16((uint16x8_t)a, (uint16x8_t)b);
#else
    return a - (U16)_mm_subs_epu16((__m128i)a, (__m128i)b);
#endif
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE

#endif
