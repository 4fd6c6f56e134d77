// What the codes of a chunk come to: four numbers of those that are rounded, and how many are not.
// Two chunks that are within the bound of each other have summaries that are near to each other, so
// far-off summaries prove a difference (docs/reference/cell-codes.md, section 9).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ciwrap/parameters.hpp"

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

// Whether a chunk whose digests differ surely holds a differing element: where codes decide
// exactly, that is for a bound of zero, for integers, booleans, bytes and text without one, and for
// bounds in steps whose residues tell every step apart. Everywhere else such a chunk may be a false
// alarm. With residues: of a tree that was made against the other.
bool suspect_is_proof(const TreeParameters& parameters);

// Whether digests are made by a narrower bound than is asked for: then a share of the one says
// little of the other.
bool is_narrowed(const TreeParameters& parameters);

// A share of the bound by which two values surely differ whose codes are so many apart; 0 if
// nothing is known. Of the bound that digests are made with, which may be narrower than was asked
// for.
double least_share(const TreeParameters& parameters, std::uint64_t codes_apart);

// By how large a share of its bound a value of a chunk moved, at least: infinite where a value is
// no number on one side alone, 0 where nothing is proved. has_size: whether that is a distance for
// sure.
struct LeastShare {
    double share = 0.0;
    bool has_size = false;
};

// What summaries of both sides prove of chunks of an array of so many scalars: 1 and more that an
// element differs. leaves: which chunks these are. Throws Error(invalid_argument) unless each chunk
// is one of the array's and has both summaries.
std::vector<LeastShare> least_shares(const TreeParameters& parameters, std::uint64_t scalar_count,
                                     std::span<const std::uint64_t> leaves,
                                     std::span<const ChunkSummary> golden,
                                     std::span<const ChunkSummary> other);

}  // namespace ciwrap
