// The eight running sums of XXH3, in the vectors of a CPU level: all that inputs of more than 240
// bytes spend their time on.
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

inline constexpr std::size_t scramble_key =
    sizeof xxh3_secret - stripe_bytes;  // place in the secret

CIWRAP_FUNCTION std::uint64_t scramble_lane(std::uint64_t sum, int lane) {
    const std::uint64_t key = load64(xxh3_secret + scramble_key + 8 * lane);
    return ((sum ^ (sum >> 47)) ^ key) * prime32_1;
}

// The sums, kept in registers from the first stripe to the last. What is waited for is the chain
// from sum to sum, so each stripe adds to it once, and scrambling multiplies halves of 32 bits:
// there is no short multiplication of 64. With AVX, what is added with its lanes in each other's
// place is summed up by itself, and its lanes are swapped once before the sums are scrambled.
class StripeSums {
  public:
#if defined(CIWRAP_CPU_LEVEL) && defined(__AVX512F__)
    using Part = __m512i;

    explicit StripeSums(const Accumulators& sums) : sum_(_mm512_load_si512(sums.lane)) {}

    void store(Accumulators& sums) const {
        _mm512_store_si512(sums.lane, total());
    }

    void add(const std::uint8_t* stripe, const std::uint8_t* key) {
        add_part(0, _mm512_loadu_si512(stripe), key);
    }

    // The only part of a stripe.
    void add_part(std::size_t, Part value, const std::uint8_t* key) {
        const __m512i keyed = _mm512_xor_si512(value, _mm512_loadu_si512(key));
        const __m512i product =
            _mm512_maskz_mul_epu32(all8, keyed, _mm512_maskz_srli_epi64(all8, keyed, 32));
        sum_ = _mm512_add_epi64(sum_, product);
        swapped_ = _mm512_add_epi64(swapped_, value);
    }

    void scramble() {
        const __m512i key = _mm512_loadu_si512(xxh3_secret + scramble_key);
        const __m512i prime = _mm512_set1_epi64(static_cast<long long>(prime32_1));
        const __m512i sum = total();
        const __m512i mixed = _mm512_ternarylogic_epi64(sum, _mm512_maskz_srli_epi64(all8, sum, 47),
                                                        key, exclusive_or);
        const __m512i low = _mm512_maskz_mul_epu32(all8, mixed, prime);
        const __m512i high =
            _mm512_maskz_mul_epu32(all8, _mm512_maskz_srli_epi64(all8, mixed, 32), prime);
        sum_ = _mm512_add_epi64(low, _mm512_maskz_slli_epi64(all8, high, 32));
        swapped_ = _mm512_setzero_si512();
    }

  private:
    // The zero-masked forms (with every lane on) because GCC 12 warns about its own header for the
    // plain ones.
    static constexpr __mmask8 all8 = 0xff;
    static constexpr __mmask16 all16 = 0xffff;
    static constexpr int exclusive_or = 0x96;

    __m512i total() const {
        return _mm512_add_epi64(
            sum_, _mm512_maskz_shuffle_epi32(all16, swapped_, static_cast<_MM_PERM_ENUM>(0x4e)));
    }

    __m512i sum_;
    __m512i swapped_ = _mm512_setzero_si512();
#elif defined(CIWRAP_CPU_LEVEL) && defined(__AVX2__)
    using Part = __m256i;

    explicit StripeSums(const Accumulators& sums) {
        for (std::size_t v = 0; v < 2; ++v) {
            sum_[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(sums.lane + 4 * v));
            swapped_[v] = _mm256_setzero_si256();
        }
    }

    void store(Accumulators& sums) const {
        for (std::size_t v = 0; v < 2; ++v)
            _mm256_store_si256(reinterpret_cast<__m256i*>(sums.lane + 4 * v), total(v));
    }

    void add(const std::uint8_t* stripe, const std::uint8_t* key) {
        for (std::size_t v = 0; v < 2; ++v)
            add_part(v, load(stripe + 32 * v), key);
    }

    // The v-th half of a stripe.
    void add_part(std::size_t v, Part value, const std::uint8_t* key) {
        const __m256i keyed = _mm256_xor_si256(value, load(key + 32 * v));
        const __m256i product = _mm256_mul_epu32(keyed, _mm256_srli_epi64(keyed, 32));
        sum_[v] = _mm256_add_epi64(sum_[v], product);
        swapped_[v] = _mm256_add_epi64(swapped_[v], value);
    }

    void scramble() {
        const __m256i prime = _mm256_set1_epi64x(static_cast<long long>(prime32_1));
        for (std::size_t v = 0; v < 2; ++v) {
            const __m256i key = load(xxh3_secret + scramble_key + 32 * v);
            const __m256i sum = total(v);
            const __m256i shifted = _mm256_srli_epi64(sum, 47);
            const __m256i mixed = _mm256_xor_si256(_mm256_xor_si256(sum, key), shifted);
            const __m256i low = _mm256_mul_epu32(mixed, prime);
            const __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(mixed, 32), prime);
            sum_[v] = _mm256_add_epi64(low, _mm256_slli_epi64(high, 32));
            swapped_[v] = _mm256_setzero_si256();
        }
    }

  private:
    static __m256i load(const std::uint8_t* from) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    }

    __m256i total(std::size_t v) const {
        return _mm256_add_epi64(sum_[v], _mm256_shuffle_epi32(swapped_[v], 0x4e));
    }

    __m256i sum_[2];
    __m256i swapped_[2];
#elif defined(CIWRAP_CPU_LEVEL) && defined(__SSE2__)
    explicit StripeSums(const Accumulators& sums) {
        for (std::size_t v = 0; v < 4; ++v)
            sum_[v] = _mm_load_si128(reinterpret_cast<const __m128i*>(sums.lane + 2 * v));
    }

    void store(Accumulators& sums) const {
        for (std::size_t v = 0; v < 4; ++v)
            _mm_store_si128(reinterpret_cast<__m128i*>(sums.lane + 2 * v), sum_[v]);
    }

    void add(const std::uint8_t* stripe, const std::uint8_t* key) {
        for (std::size_t v = 0; v < 4; ++v) {
            const __m128i value = load(stripe + 16 * v);
            const __m128i keyed = _mm_xor_si128(value, load(key + 16 * v));
            const __m128i product = _mm_mul_epu32(keyed, _mm_srli_epi64(keyed, 32));
            const __m128i swapped = _mm_shuffle_epi32(value, 0x4e);
            sum_[v] = _mm_add_epi64(sum_[v], _mm_add_epi64(product, swapped));
        }
    }

    void scramble() {
        const __m128i prime = _mm_set1_epi64x(static_cast<long long>(prime32_1));
        for (std::size_t v = 0; v < 4; ++v) {
            const __m128i key = load(xxh3_secret + scramble_key + 16 * v);
            const __m128i shifted = _mm_srli_epi64(sum_[v], 47);
            const __m128i mixed = _mm_xor_si128(_mm_xor_si128(sum_[v], key), shifted);
            const __m128i low = _mm_mul_epu32(mixed, prime);
            const __m128i high = _mm_mul_epu32(_mm_srli_epi64(mixed, 32), prime);
            sum_[v] = _mm_add_epi64(low, _mm_slli_epi64(high, 32));
        }
    }

  private:
    static __m128i load(const std::uint8_t* from) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    }

    __m128i sum_[4];
#elif defined(CIWRAP_CPU_LEVEL) && defined(__aarch64__)
    explicit StripeSums(const Accumulators& sums) {
        for (std::size_t v = 0; v < 4; ++v)
            sum_[v] = vld1q_u64(sums.lane + 2 * v);
    }

    void store(Accumulators& sums) const {
        for (std::size_t v = 0; v < 4; ++v)
            vst1q_u64(sums.lane + 2 * v, sum_[v]);
    }

    // Two vectors at a time: what is multiplied, the halves of their lanes, then takes two steps.
    void add(const std::uint8_t* stripe, const std::uint8_t* key) {
        for (std::size_t v = 0; v < 4; v += 2) {
            uint64x2_t keyed[2];
            for (std::size_t w = 0; w < 2; ++w) {
                const uint64x2_t value = load(stripe + 16 * (v + w));
                keyed[w] = value ^ load(key + 16 * (v + w));
                sum_[v + w] = vaddq_u64(sum_[v + w], vextq_u64(value, value, 1));
            }
            const uint32x4_t first = vreinterpretq_u32_u64(keyed[0]);
            const uint32x4_t second = vreinterpretq_u32_u64(keyed[1]);
            const uint32x4_t low = vuzp1q_u32(first, second);
            const uint32x4_t high = vuzp2q_u32(first, second);
            sum_[v] = vmlal_u32(sum_[v], vget_low_u32(low), vget_low_u32(high));
            sum_[v + 1] = vmlal_high_u32(sum_[v + 1], low, high);
        }
    }

    void scramble() {
        const uint32x2_t prime = vdup_n_u32(static_cast<std::uint32_t>(prime32_1));
        for (std::size_t v = 0; v < 4; ++v) {
            const uint64x2_t key = load(xxh3_secret + scramble_key + 16 * v);
            const uint64x2_t mixed = (sum_[v] ^ vshrq_n_u64(sum_[v], 47)) ^ key;
            const uint32x2_t high = vmul_u32(vshrn_n_u64(mixed, 32), prime);
            sum_[v] = vmlal_u32(vshlq_n_u64(vmovl_u32(high), 32), vmovn_u64(mixed), prime);
        }
    }

  private:
    static uint64x2_t load(const std::uint8_t* from) {
        return vreinterpretq_u64_u8(vld1q_u8(from));
    }

    uint64x2_t sum_[4];
#else
    CIWRAP_HOST_DEVICE explicit StripeSums(const Accumulators& sums) : sum_(sums) {}

    CIWRAP_HOST_DEVICE void store(Accumulators& sums) const {
        sums = sum_;
    }

    CIWRAP_HOST_DEVICE void add(const std::uint8_t* stripe, const std::uint8_t* key) {
        for (int lane = 0; lane < 8; ++lane)
            accumulate_lane(sum_, lane, load64(stripe + 8 * lane), load64(key + 8 * lane));
    }

    CIWRAP_HOST_DEVICE void scramble() {
        for (int lane = 0; lane < 8; ++lane)
            sum_.lane[lane] = scramble_lane(sum_.lane[lane], lane);
    }

  private:
    Accumulators sum_;
#endif
};

// Adds `count` stripes; the secret advances by 8 bytes a stripe.
CIWRAP_FUNCTION void accumulate(Accumulators& sums, const std::uint8_t* in,
                                const std::uint8_t* secret, std::size_t count) {
    StripeSums added(sums);
    for (std::size_t s = 0; s < count; ++s)
        added.add(in + stripe_bytes * s, secret + 8 * s);
    added.store(sums);
}

CIWRAP_FUNCTION void scramble(Accumulators& sums) {
    StripeSums mixed(sums);
    mixed.scramble();
    mixed.store(sums);
}

// Adds `count` whole blocks.
CIWRAP_FUNCTION void accumulate_blocks(Accumulators& sums, const std::uint8_t* in,
                                       std::size_t count) {
    StripeSums added(sums);
    for (; count > 0; --count, in += block_bytes) {
        for (std::size_t s = 0; s < stripes_per_block; ++s)
            added.add(in + stripe_bytes * s, xxh3_secret + 8 * s);
        added.scramble();
    }
    added.store(sums);
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
