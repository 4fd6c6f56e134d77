// What the codes of a chunk come to: four numbers of those that are rounded, and how many are not.
// Two chunks that are within the bound of each other have summaries that are near to each other, so
// far-off summaries prove a difference (docs/reference/cell-codes.md, section 9).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ciwrap {

// Sums wrap around at 64 bits. The first four are 0 where no scalar of the chunk is rounded.
struct ChunkSummary {
    std::int64_t least = 0;
    std::int64_t greatest = 0;
    std::int64_t sum = 0;
    std::int64_t moment = 0;  // the sum of each code times its place in the chunk, from 0
    std::int64_t nan = 0;
    std::int64_t plus_infinity = 0;
    std::int64_t minus_infinity = 0;
    std::int64_t missing = 0;
    std::int64_t zero = 0;  // under a purely relative bound
    std::int64_t huge = 0;  // compared bit by bit
};
inline constexpr std::size_t summary_numbers = 10;
static_assert(sizeof(ChunkSummary) == summary_numbers * sizeof(std::int64_t));

}  // namespace ciwrap
