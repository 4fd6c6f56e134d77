// XXH3-128 of an input of equally wide codes in which single codes are replaced, many times over.
//
// The hash of more than 240 bytes adds stripes of eight words to eight sums and scrambles each sum
// by itself after every 16 stripes; a word enters two sums only, lanes 2p and 2p + 1. The result
// adds up one term for each pair of lanes. So a replaced code costs two sums from its block on, and
// codes of two pairs can be replaced independently of each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ciwrap/digest.hpp"
#include "kernels/xxh3_core.hpp"

namespace ciwrap {

class PatchedHash {
  public:
    static constexpr std::size_t most_at_once = 8;
    static constexpr int lane_pairs = 4;

    struct Patch {
        std::size_t index;
        std::int64_t code;  // its lowest code_bytes bytes count
    };

    // code_bytes: 1, 2, 4 or 8.
    PatchedHash(std::vector<std::uint8_t> input, std::size_t code_bytes);

    std::size_t count() const { return input_.size() / code_bytes_; }
    std::int64_t code(std::size_t index) const;  // sign-extended

    // Whether the code enters one word of one stripe, so that `terms` is for it. Others are in
    // short inputs, or in the last stripe of an input that is no whole number of stripes.
    bool has_place(std::size_t index) const;
    int pair_of(std::size_t index) const;

    // The term of pair_of(index) in the lower half of the hash, with each of up to most_at_once
    // codes in the place of that one. Needs has_place.
    void terms(std::size_t index, std::span<const std::int64_t> codes,
               std::span<std::uint64_t> terms) const;
    std::uint64_t term(int pair) const { return term_[static_cast<std::size_t>(pair)]; }
    // What the four terms of an input with this digest add up to.
    std::uint64_t sum_of_terms(const Digest& digest) const;

    // The digest with codes replaced; not thread safe. Cheap near the end of the input.
    Digest with(std::span<const Patch> patches);

  private:
    struct Place {
        std::size_t block;
        int lane;
        std::uint64_t key;
        std::size_t word;  // where it begins in the input
    };
    Place place_of(std::size_t index) const;
    std::uint64_t merged(int pair, std::uint64_t even, std::uint64_t odd) const;
    void write(std::size_t index, std::int64_t code);

    std::vector<std::uint8_t> input_;
    std::size_t code_bytes_;
    std::size_t full_blocks_ = 0;  // scrambled after; the last block is not
    // Of each block: what it adds to the sums, and the sums with it, before they are scrambled.
    std::vector<CIWRAP_LEVEL_NAMESPACE::Accumulators> added_;
    std::vector<CIWRAP_LEVEL_NAMESPACE::Accumulators> sums_;
    std::array<std::uint64_t, lane_pairs> term_{};
};

}  // namespace ciwrap
