// XXH3-128, seed 0, default secret: our own implementation of the published algorithm
// (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), for hosts and devices.
// Everything is little-endian; a big-endian host would need swaps in load32 and load64.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ciwrap/digest.hpp"
#include "kernels/level_namespace.hpp"

#if defined(CIWRAP_CPU_LEVEL) && (defined(__AVX2__) || defined(__AVX512F__))
#include <immintrin.h>
#elif defined(CIWRAP_CPU_LEVEL) && defined(__SSE2__)
#include <emmintrin.h>
#elif defined(CIWRAP_CPU_LEVEL) && defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "only little-endian hosts are supported");

inline constexpr std::size_t stripe_bytes = 64;
inline constexpr std::size_t stripes_per_block = 16;
inline constexpr std::size_t block_bytes = stripe_bytes * stripes_per_block;
inline constexpr std::size_t longest_short_input = 240;

inline constexpr std::uint64_t prime32_1 = 0x9E3779B1;
inline constexpr std::uint64_t prime32_2 = 0x85EBCA77;
inline constexpr std::uint64_t prime32_3 = 0xC2B2AE3D;
inline constexpr std::uint64_t prime64_1 = 0x9E3779B185EBCA87;
inline constexpr std::uint64_t prime64_2 = 0xC2B2AE3D27D4EB4F;
inline constexpr std::uint64_t prime64_3 = 0x165667B19E3779F9;
inline constexpr std::uint64_t prime64_4 = 0x85EBCA77C2B2AE63;
inline constexpr std::uint64_t prime64_5 = 0x27D4EB2F165667C5;
inline constexpr std::uint64_t prime_mx1 = 0x165667919E3779F9;
inline constexpr std::uint64_t prime_mx2 = 0x9FB21C651E98DF25;

#if defined(__CUDACC__) || defined(__HIPCC__)
__device__
#endif
    constexpr std::uint8_t xxh3_secret[192] = {
        0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad,
        0x1c, 0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3,
        0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc,
        0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6,
        0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65,
        0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
        0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9,
        0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31,
        0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb,
        0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0,
        0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d,
        0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
        0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

CIWRAP_FUNCTION std::uint32_t load32(const std::uint8_t* p) {
    std::uint32_t value;
    __builtin_memcpy(&value, p, sizeof value);
    return value;
}

CIWRAP_FUNCTION std::uint64_t load64(const std::uint8_t* p) {
    std::uint64_t value;
    __builtin_memcpy(&value, p, sizeof value);
    return value;
}

CIWRAP_FUNCTION std::uint32_t swap32(std::uint32_t x) {
    return (x << 24) | ((x & 0xff00u) << 8) | ((x >> 8) & 0xff00u) | (x >> 24);
}

CIWRAP_FUNCTION std::uint64_t swap64(std::uint64_t x) {
    return (static_cast<std::uint64_t>(swap32(static_cast<std::uint32_t>(x))) << 32) |
           swap32(static_cast<std::uint32_t>(x >> 32));
}

struct Hash128 {
    std::uint64_t low;
    std::uint64_t high;
};

CIWRAP_FUNCTION Hash128 multiply_wide(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
    return {a * b, __umul64hi(a, b)};
#else
    __extension__ using Product = unsigned __int128;
    const Product product = static_cast<Product>(a) * b;
    return {static_cast<std::uint64_t>(product), static_cast<std::uint64_t>(product >> 64)};
#endif
}

CIWRAP_FUNCTION std::uint64_t multiply_fold(std::uint64_t a, std::uint64_t b) {
    const Hash128 product = multiply_wide(a, b);
    return product.low ^ product.high;
}

CIWRAP_FUNCTION std::uint64_t avalanche_xxh3(std::uint64_t h) {
    h ^= h >> 37;
    h *= prime_mx1;
    return h ^ (h >> 32);
}

CIWRAP_FUNCTION std::uint64_t avalanche_xxh64(std::uint64_t h) {
    h ^= h >> 33;
    h *= prime64_2;
    h ^= h >> 29;
    h *= prime64_3;
    return h ^ (h >> 32);
}

// --- inputs of up to 240 bytes
// ---------------------------------------------------------------------------------

CIWRAP_FUNCTION Hash128 hash_up_to_16(const std::uint8_t* in, std::size_t length) {
    const std::uint8_t* secret = xxh3_secret;
    if (length > 8) {
        const std::uint64_t flip_low = load64(secret + 32) ^ load64(secret + 40);
        const std::uint64_t flip_high = load64(secret + 48) ^ load64(secret + 56);
        const std::uint64_t first = load64(in);
        std::uint64_t last = load64(in + length - 8);
        Hash128 mixed = multiply_wide(first ^ last ^ flip_low, prime64_1);
        mixed.low += static_cast<std::uint64_t>(length - 1) << 54;
        last ^= flip_high;
        mixed.high += last + (last & 0xffffffffu) * (prime32_2 - 1);
        mixed.low ^= swap64(mixed.high);
        Hash128 result = multiply_wide(mixed.low, prime64_2);
        result.high += mixed.high * prime64_2;
        return {avalanche_xxh3(result.low), avalanche_xxh3(result.high)};
    }
    if (length >= 4) {
        const std::uint64_t both =
            load32(in) + (static_cast<std::uint64_t>(load32(in + length - 4)) << 32);
        const std::uint64_t keyed = both ^ (load64(secret + 16) ^ load64(secret + 24));
        Hash128 result =
            multiply_wide(keyed, prime64_1 + (static_cast<std::uint64_t>(length) << 2));
        result.high += result.low << 1;
        result.low ^= result.high >> 3;
        result.low ^= result.low >> 35;
        result.low *= prime_mx2;
        result.low ^= result.low >> 28;
        result.high = avalanche_xxh3(result.high);
        return result;
    }
    if (length > 0) {
        const std::uint32_t low = (static_cast<std::uint32_t>(in[0]) << 16) |
                                  (static_cast<std::uint32_t>(in[length >> 1]) << 24) |
                                  in[length - 1] | (static_cast<std::uint32_t>(length) << 8);
        const std::uint32_t swapped = swap32(low);
        const std::uint32_t high = (swapped << 13) | (swapped >> 19);
        const std::uint64_t flip_low = load32(secret) ^ load32(secret + 4);
        const std::uint64_t flip_high = load32(secret + 8) ^ load32(secret + 12);
        return {avalanche_xxh64(low ^ flip_low), avalanche_xxh64(high ^ flip_high)};
    }
    return {avalanche_xxh64(load64(secret + 64) ^ load64(secret + 72)),
            avalanche_xxh64(load64(secret + 80) ^ load64(secret + 88))};
}

CIWRAP_FUNCTION std::uint64_t mix16(const std::uint8_t* in, const std::uint8_t* secret) {
    return multiply_fold(load64(in) ^ load64(secret), load64(in + 8) ^ load64(secret + 8));
}

CIWRAP_FUNCTION void mix32(Hash128& sum, const std::uint8_t* first, const std::uint8_t* second,
                           const std::uint8_t* secret) {
    sum.low += mix16(first, secret);
    sum.low ^= load64(second) + load64(second + 8);
    sum.high += mix16(second, secret + 16);
    sum.high ^= load64(first) + load64(first + 8);
}

CIWRAP_FUNCTION Hash128 hash_17_to_240(const std::uint8_t* in, std::size_t length) {
    const std::uint8_t* secret = xxh3_secret;
    const std::uint64_t length64 = length;
    Hash128 sum{length64 * prime64_1, 0};
    if (length <= 128) {
        for (std::size_t i = (length - 1) / 32 + 1; i-- > 0;) {
            mix32(sum, in + 16 * i, in + length - 16 * (i + 1), secret + 32 * i);
        }
    } else {
        for (std::size_t i = 32; i < 160; i += 32)
            mix32(sum, in + i - 32, in + i - 16, secret + i - 32);
        sum = {avalanche_xxh3(sum.low), avalanche_xxh3(sum.high)};
        for (std::size_t i = 160; i <= length; i += 32) {
            mix32(sum, in + i - 32, in + i - 16, secret + 3 + i - 160);
        }
        mix32(sum, in + length - 16, in + length - 32, secret + 136 - 17 - 16);
    }
    const std::uint64_t low = sum.low + sum.high;
    const std::uint64_t high = sum.low * prime64_1 + sum.high * prime64_4 + length64 * prime64_2;
    return {avalanche_xxh3(low), 0 - avalanche_xxh3(high)};
}

// --- longer inputs
// ---------------------------------------------------------------------------------------------

struct alignas(64) Accumulators {
    std::uint64_t lane[8] = {prime32_3, prime64_1, prime64_2, prime64_3,
                             prime64_4, prime32_2, prime64_5, prime32_1};
};

CIWRAP_FUNCTION void accumulate_lane(Accumulators& sums, int lane, std::uint64_t value,
                                     std::uint64_t key) {
    const std::uint64_t keyed = value ^ key;
    sums.lane[lane ^ 1] += value;
    sums.lane[lane] += (keyed & 0xffffffffu) * (keyed >> 32);
}

// Adds `count` stripes; the secret advances by 8 bytes a stripe.
CIWRAP_FUNCTION void accumulate(Accumulators& sums, const std::uint8_t* in,
                                const std::uint8_t* secret, std::size_t count) {
#if defined(CIWRAP_CPU_LEVEL) && defined(__AVX512F__)
    // The zero-masked forms (with every lane on) because GCC 12 warns about its own header for the
    // plain ones.
    constexpr __mmask8 all8 = 0xff;
    constexpr __mmask16 all16 = 0xffff;
    __m512i sum = _mm512_load_si512(sums.lane);
    for (std::size_t s = 0; s < count; ++s) {
        const __m512i value = _mm512_loadu_si512(in + stripe_bytes * s);
        const __m512i keyed = _mm512_xor_si512(value, _mm512_loadu_si512(secret + 8 * s));
        const __m512i product =
            _mm512_maskz_mul_epu32(all8, keyed, _mm512_maskz_srli_epi64(all8, keyed, 32));
        const __m512i swapped =
            _mm512_maskz_shuffle_epi32(all16, value, static_cast<_MM_PERM_ENUM>(0x4e));
        sum = _mm512_add_epi64(product, _mm512_add_epi64(sum, swapped));
    }
    _mm512_store_si512(sums.lane, sum);
#elif defined(CIWRAP_CPU_LEVEL) && defined(__AVX2__)
    __m256i sum[2];
    for (int v = 0; v < 2; ++v) {
        sum[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(sums.lane + 4 * v));
    }
    for (std::size_t s = 0; s < count; ++s) {
        for (std::size_t v = 0; v < 2; ++v) {
            const auto* from = reinterpret_cast<const __m256i*>(in + stripe_bytes * s + 32 * v);
            const auto* key = reinterpret_cast<const __m256i*>(secret + 8 * s + 32 * v);
            const __m256i value = _mm256_loadu_si256(from);
            const __m256i keyed = _mm256_xor_si256(value, _mm256_loadu_si256(key));
            const __m256i product = _mm256_mul_epu32(keyed, _mm256_srli_epi64(keyed, 32));
            const __m256i swapped = _mm256_shuffle_epi32(value, 0x4e);
            sum[v] = _mm256_add_epi64(product, _mm256_add_epi64(sum[v], swapped));
        }
    }
    for (int v = 0; v < 2; ++v) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(sums.lane + 4 * v), sum[v]);
    }
#elif defined(CIWRAP_CPU_LEVEL) && defined(__SSE2__)
    __m128i sum[4];
    for (int v = 0; v < 4; ++v) {
        sum[v] = _mm_load_si128(reinterpret_cast<const __m128i*>(sums.lane + 2 * v));
    }
    for (std::size_t s = 0; s < count; ++s) {
        for (std::size_t v = 0; v < 4; ++v) {
            const auto* from = reinterpret_cast<const __m128i*>(in + stripe_bytes * s + 16 * v);
            const auto* key = reinterpret_cast<const __m128i*>(secret + 8 * s + 16 * v);
            const __m128i value = _mm_loadu_si128(from);
            const __m128i keyed = _mm_xor_si128(value, _mm_loadu_si128(key));
            const __m128i product = _mm_mul_epu32(keyed, _mm_srli_epi64(keyed, 32));
            const __m128i swapped = _mm_shuffle_epi32(value, 0x4e);
            sum[v] = _mm_add_epi64(product, _mm_add_epi64(sum[v], swapped));
        }
    }
    for (int v = 0; v < 4; ++v) {
        _mm_store_si128(reinterpret_cast<__m128i*>(sums.lane + 2 * v), sum[v]);
    }
#elif defined(CIWRAP_CPU_LEVEL) && defined(__aarch64__)
    uint64x2_t sum[4];
    for (int v = 0; v < 4; ++v)
        sum[v] = vld1q_u64(sums.lane + 2 * v);
    for (std::size_t s = 0; s < count; ++s) {
        // Two vectors at a time: what is multiplied, the halves of their lanes, then takes two
        // steps.
        for (std::size_t v = 0; v < 4; v += 2) {
            uint64x2_t keyed[2];
            for (std::size_t w = 0; w < 2; ++w) {
                const std::size_t at = 16 * (v + w);
                const uint64x2_t value = vreinterpretq_u64_u8(vld1q_u8(in + stripe_bytes * s + at));
                keyed[w] = value ^ vreinterpretq_u64_u8(vld1q_u8(secret + 8 * s + at));
                sum[v + w] = vaddq_u64(sum[v + w], vextq_u64(value, value, 1));
            }
            const uint32x4_t first = vreinterpretq_u32_u64(keyed[0]);
            const uint32x4_t second = vreinterpretq_u32_u64(keyed[1]);
            const uint32x4_t low = vuzp1q_u32(first, second);
            const uint32x4_t high = vuzp2q_u32(first, second);
            sum[v] = vmlal_u32(sum[v], vget_low_u32(low), vget_low_u32(high));
            sum[v + 1] = vmlal_high_u32(sum[v + 1], low, high);
        }
    }
    for (int v = 0; v < 4; ++v)
        vst1q_u64(sums.lane + 2 * v, sum[v]);
#else
    for (std::size_t s = 0; s < count; ++s) {
        for (int lane = 0; lane < 8; ++lane) {
            accumulate_lane(sums, lane, load64(in + stripe_bytes * s + 8 * lane),
                            load64(secret + 8 * s + 8 * lane));
        }
    }
#endif
}

CIWRAP_FUNCTION std::uint64_t scramble_lane(std::uint64_t sum, int lane) {
    const std::uint64_t key = load64(xxh3_secret + sizeof xxh3_secret - stripe_bytes + 8 * lane);
    return ((sum ^ (sum >> 47)) ^ key) * prime32_1;
}

CIWRAP_FUNCTION void scramble(Accumulators& sums) {
    for (int lane = 0; lane < 8; ++lane)
        sums.lane[lane] = scramble_lane(sums.lane[lane], lane);
}

CIWRAP_FUNCTION std::uint64_t merge(const Accumulators& sums, const std::uint8_t* secret,
                                    std::uint64_t start) {
    for (int pair = 0; pair < 4; ++pair) {
        start += multiply_fold(sums.lane[2 * pair] ^ load64(secret + 16 * pair),
                               sums.lane[2 * pair + 1] ^ load64(secret + 16 * pair + 8));
    }
    return avalanche_xxh3(start);
}

CIWRAP_FUNCTION Hash128 merge_all(const Accumulators& sums, std::uint64_t length) {
    return {
        merge(sums, xxh3_secret + 11, length * prime64_1),
        merge(sums, xxh3_secret + sizeof xxh3_secret - stripe_bytes - 11, ~(length * prime64_2))};
}

// Adds the blocks of a piece of a long input. Every piece but the last is a whole number of blocks.
// The last stripe of the input may reach back before the piece: those up to 63 bytes must still
// stand in front of it.
CIWRAP_FUNCTION void accumulate_piece(Accumulators& sums, const std::uint8_t* piece,
                                      std::size_t bytes, bool is_last) {
    const std::size_t full_blocks = is_last ? (bytes - 1) / block_bytes : bytes / block_bytes;
    for (std::size_t block = 0; block < full_blocks; ++block) {
        accumulate(sums, piece + block * block_bytes, xxh3_secret, stripes_per_block);
        scramble(sums);
    }
    if (!is_last)
        return;
    const std::size_t done = full_blocks * block_bytes;
    accumulate(sums, piece + done, xxh3_secret, (bytes - 1 - done) / stripe_bytes);
    accumulate(sums, piece + bytes - stripe_bytes,
               xxh3_secret + sizeof xxh3_secret - stripe_bytes - 7, 1);
}

CIWRAP_FUNCTION Digest canonical(Hash128 hash) {
    const std::uint64_t words[2] = {swap64(hash.high), swap64(hash.low)};
    Digest digest;
    __builtin_memcpy(&digest, words, sizeof digest);
    return digest;
}

CIWRAP_FUNCTION Digest hash_bytes(const std::uint8_t* in, std::size_t length) {
    if (length <= 16)
        return canonical(hash_up_to_16(in, length));
    if (length <= longest_short_input)
        return canonical(hash_17_to_240(in, length));
    Accumulators sums;
    accumulate_piece(sums, in, length, true);
    return canonical(merge_all(sums, length));
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
