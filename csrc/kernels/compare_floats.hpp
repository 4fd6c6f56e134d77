// Stage two's inner loop: scalars of 4 or 8 bytes against others, a tile at a time. Plain data in
// and out, so that it can be compiled once per CPU level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ciwrap/share_bins.hpp"

namespace ciwrap {

inline constexpr std::size_t compare_tile = 32;  // scalars
inline constexpr std::size_t compare_tiles_per_block = 512;
inline constexpr double smallest_bound = 0x1p-900;  // rounding errors of smaller ones are not small
inline constexpr double largest_sum = 0x1p+1000;    // NaN and infinity make no sum below

struct FloatComparison {
    const std::uint8_t* golden = nullptr;  // may be unaligned
    const std::uint8_t* value = nullptr;
    std::size_t tile_count = 0;             // at most compare_tiles_per_block
    std::uint32_t scalar_bytes = 0;         // 4 or 8: binary32 or binary64, in the machine's order
    std::uint32_t scalars_per_element = 1;  // 1, or 2 for complex numbers
    double atol = 0.0;
    double rtol = 0.0;
    std::uint64_t ulps = 0;  // if not 0, the bound, in steps from float to float
    bool equal_nan = true;
    bool tell_equal_only =
        false;  // leave tiles that are not equal undecided: there is another bound
    const bool* unfit = nullptr;  // tiles to leave undecided; none: there are no such tiles
};

// Of all tiles that are not undecided. Sums do not depend on the CPU level.
struct FloatTally {
    std::uint32_t differs[compare_tiles_per_block];  // a bit per scalar
    bool undecided[compare_tiles_per_block];  // holds a scalar that needs more than a comparison of
                                              // rounded numbers, or is not finite on both sides
    std::uint64_t finite_count = 0;
    std::uint64_t nonzero_count = 0;  // of finite scalars, those with a golden other than zero
    double sum_abs_difference = 0.0;
    double sum_rel_difference = 0.0;
    double max_abs_difference = 0.0;
    std::int64_t max_abs_scalar = -1;  // the first with that difference, counted from the block's
    double max_rel_difference = 0.0;
    std::int64_t max_rel_scalar = -1;
    double max_bound_share = 0.0;
    std::uint64_t histogram[share_bins] = {};  // of elements, by share_bin()
};

}  // namespace ciwrap
