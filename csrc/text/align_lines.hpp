// Which lines of two texts belong together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ciwrap {

// near: hash of a line with its numbers cut to a few digits. shape: hash of its template.
struct LineKey {
    std::uint64_t near = 0;
    std::uint64_t shape = 0;
};

struct LinePair {
    std::size_t golden;
    std::size_t value;
};

// Pairs of lines of one shape, ascending on both sides.
//
// Patience first: lines that are there once on each side hold the texts together, by what they say
// and then by their shape. What is between them is paired by Wu, Manber, Myers and Miller, "An
// O(NP) sequence comparison algorithm" (1990), as far as a bounded number of steps reaches. Where
// what lines say leaves many without partner, since numbers are alike by chance, the shape alone
// decides, if it pairs more.
std::vector<LinePair> align_lines(std::span<const LineKey> golden, std::span<const LineKey> value);

}  // namespace ciwrap
