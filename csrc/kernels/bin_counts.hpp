// How often each of 64 bins comes up in four lanes, counted without a table: a bin is a bit, and
// bits are added in slices, each worth twice the one before, as in a carry-save adder (Harley and
// Seal).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/four_lanes.hpp"

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

class BinCounts {
  public:
    static constexpr std::size_t rows = 8;  // that are added at once

    // A row has a bit for the bin of each lane, or none.
    CIWRAP_LANES_FUNCTION void add(const UnsignedWords (&bits)[rows]) {
        UnsignedWords carry = add_four(bits[0], bits[1], bits[2], bits[3]);
        carry = add_two(2, carry, add_four(bits[4], bits[5], bits[6], bits[7]));
        for (std::size_t slice = 3; slice < often; ++slice)
            carry = add_one(slice, carry);
        if (any(carry)) {
            for (std::size_t slice = often; slice < slices; ++slice)
                carry = add_one(slice, carry);
        }
    }

    // Calls count(bin, times); a bin may come up several times.
    template <class Count>
    void each(Count&& count) const {
        for (std::size_t slice = 0; slice < slices; ++slice) {
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                for (std::uint64_t left = slices_[slice][lane]; left != 0; left &= left - 1)
                    count(static_cast<std::size_t>(__builtin_ctzll(left)),
                          std::uint64_t{1} << slice);
            }
        }
    }

  private:
    // Up to 8,191 times a lane.
    static constexpr std::size_t slices = 13;
    static constexpr std::size_t often = 6;

    // The carry of a slice and two more.
    CIWRAP_LANES_FUNCTION UnsignedWords add_two(std::size_t slice, const UnsignedWords& a,
                                                const UnsignedWords& b) {
        const UnsignedWords one = a ^ b;
        const UnsignedWords carry = (a & b) | (one & slices_[slice]);
        slices_[slice] = one ^ slices_[slice];
        return carry;
    }

    CIWRAP_LANES_FUNCTION UnsignedWords add_four(const UnsignedWords& a, const UnsignedWords& b,
                                                 const UnsignedWords& c, const UnsignedWords& d) {
        const UnsignedWords first = add_two(0, a, b);
        return add_two(1, first, add_two(0, c, d));
    }

    CIWRAP_LANES_FUNCTION UnsignedWords add_one(std::size_t slice, const UnsignedWords& a) {
        const UnsignedWords carry = a & slices_[slice];
        slices_[slice] = a ^ slices_[slice];
        return carry;
    }

    CIWRAP_LANES_FUNCTION static bool any(const UnsignedWords& bits) {
        return lane_bits(as<Words>(bits == UnsignedWords{})) != (1u << lanes) - 1;
    }

    UnsignedWords slices_[slices] = {};
};

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
