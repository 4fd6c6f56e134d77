// Residues and deltas of one block of scalars: packed and unpacked (docs/reference/cell-codes.md,
// section 8), counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/quantize_plan.hpp"
#include "kernels/simd.hpp"

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

// Bytes that may be read or written behind the last residue or delta of a block.
inline constexpr std::size_t residue_slack = 64;

// Any k; `residues` must have zeros up to a whole number of packed bytes.
//
// The residues of a byte, taken together as one little-endian number, are multiplied by one whose
// byte j is k^(p-1-j): byte p-1 of the product is the packed value, and no byte below it overflows,
// being a part of that same sum.
CIWRAP_FUNCTION void pack(const QuantizePlan& plan, const std::uint8_t* residues, std::size_t count,
                          std::uint8_t* packed) {
    const auto k = static_cast<std::uint64_t>(plan.levels);
    const std::size_t p = plan.packed;
    if (p == 1) {
        __builtin_memcpy(packed, residues, count);
        return;
    }
    if (p == 2) {  // the same on 16-bit lanes
        const auto factor = static_cast<std::uint16_t>(k);
        const std::size_t bytes = (count + 1) / 2;
        for (std::size_t j = 0; j < bytes; ++j) {
            std::uint16_t pair;
            __builtin_memcpy(&pair, residues + 2 * j, sizeof pair);
            packed[j] = static_cast<std::uint8_t>((pair & 0xffu) + factor * (pair >> 8));
        }
        return;
    }
    std::uint64_t weights = 0;
    std::uint64_t power = 1;
    for (std::size_t j = p; j-- > 0; power *= k)
        weights |= power << (8 * j);
    for (std::size_t i = 0; i < count; i += p) {
        std::uint64_t group;
        __builtin_memcpy(&group, residues + i, sizeof group);
        *packed++ = static_cast<std::uint8_t>((group * weights) >> (8 * (p - 1)));
    }
}

// The residues of every byte there is, for the k that pack more than two.
struct UnpackTable {
    constexpr explicit UnpackTable(std::uint32_t k) {
        for (std::uint32_t byte = 0; byte < 256; ++byte) {
            std::uint32_t rest = byte;
            for (std::uint32_t p = 0; p < 5; ++p, rest /= k) {
                residues[byte][p] = static_cast<std::uint8_t>(rest % k);
            }
        }
    }
    std::uint8_t residues[256][8] = {};
};
static constexpr UnpackTable unpack_table_3{3};
static constexpr UnpackTable unpack_table_5{5};

CIWRAP_FUNCTION void unpack(const QuantizePlan& plan, const std::uint8_t* packed, std::size_t count,
                            std::uint8_t* residues) {
    const std::size_t p = plan.packed;
    if (p == 1) {
        __builtin_memcpy(residues, packed, count);
        return;
    }
    if (p == 2) {
        // n / k = n * ceil(2^16 / k) / 2^16 for n < 256 and k <= 15.
        const auto k = static_cast<std::uint16_t>(plan.levels);
        const auto inverse = static_cast<std::uint16_t>(65536 / k + 1);
        const std::size_t bytes = (count + 1) / 2;
        for (std::size_t j = 0; j < bytes; ++j) {
            const auto byte = static_cast<std::uint16_t>(packed[j]);
            const auto high = static_cast<std::uint16_t>((std::uint32_t{byte} * inverse) >> 16);
            const auto pair = static_cast<std::uint16_t>((byte - high * k) | (high << 8));
            __builtin_memcpy(residues + 2 * j, &pair, sizeof pair);
        }
        return;
    }
    const UnpackTable& table = p == 5 ? unpack_table_3 : unpack_table_5;
    for (std::size_t i = 0; i < count; i += p) {
        __builtin_memcpy(residues + i, table.residues[*packed++], 8);
    }
}

// Largest |delta| of a chunk and how many scalars had which, leaving out those that were not
// rounded (255).
class DeltaCounts {
  public:
    std::uint8_t largest() const { return largest_; }
    std::uint64_t count(std::size_t delta) const { return count_[delta]; }

    void clear() {
        for (std::size_t delta = 0; delta <= largest_; ++delta)
            count_[delta] = 0;
        largest_ = 0;
    }

    // Writes up to residue_slack bytes behind the deltas.
    void add(std::uint8_t* deltas, std::size_t n) {
#if defined(CIWRAP_HAVE_SIMD)
        for (std::size_t i = n; i % vector_bytes != 0; ++i)
            deltas[i] = 255;
        const std::size_t whole = (n + vector_bytes - 1) / vector_bytes * vector_bytes;
        U8 most{};
        U8 rounded{};
        for (std::size_t i = 0; i < whole; i += vector_bytes) {
            const U8 delta = load_vector<U8>(deltas + i);
            const U8 is_rounded = reinterpret_cast<U8>(delta != splat(std::uint8_t{255}));
            most = larger(most, delta & is_rounded);
            rounded -= is_rounded;
        }
        std::uint64_t before = sum_of_bytes(rounded);
        if (sum_of_bytes(most) == 0) {
            count_[0] += before;
            return;
        }
        std::uint8_t lanes[vector_bytes];
        store_vector(lanes, most);
        std::uint8_t block_largest = 0;
        for (const std::uint8_t lane : lanes)
            block_largest = lane > block_largest ? lane : block_largest;
        if (block_largest > largest_)
            largest_ = block_largest;
        // Counting "at least j" for every j is vector code, scattering into counters is not.
        if (block_largest <= 16) {
            for (std::uint8_t j = 1; j <= block_largest; ++j) {
                const std::uint64_t now = at_least(deltas, whole, j);
                count_[j - 1] += before - now;
                before = now;
            }
            count_[block_largest] += before;
            return;
        }
#endif
        count_each(deltas, n);
    }

  private:
    void count_each(const std::uint8_t* deltas, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            ++count_[deltas[i]];
            if (deltas[i] != 255 && deltas[i] > largest_)
                largest_ = deltas[i];
        }
    }

#if defined(CIWRAP_HAVE_SIMD)
    static std::uint64_t at_least(const std::uint8_t* deltas, std::size_t bytes, std::uint8_t j) {
        // Signed: 255 is -1, and no delta exceeds 127.
        const I8 below = reinterpret_cast<I8>(splat(static_cast<std::uint8_t>(j - 1)));
        U8 count{};  // at most one a vector
        for (std::size_t i = 0; i < bytes; i += vector_bytes) {
            count -= reinterpret_cast<U8>(load_vector<I8>(deltas + i) > below);
        }
        return sum_of_bytes(count);
    }
#endif

    std::uint8_t largest_ = 0;
    std::uint64_t count_[256] = {};  // 255 takes what was not rounded
};

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
