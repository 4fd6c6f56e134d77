// Which bin of the histogram of shares a difference falls into, as devices count it.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>

#include "ciwrap/share_bins.hpp"
#include "kernels/scalar_codes.hpp"

namespace ciwrap::device_compare {

using level_kokkos::bits_as;

// Counts of up to 32 in each of 34 bins, six bits each in registers: adding to memory that all
// threads share is dear, and most scalars of a tile fall into few bins.
class TileHistogram {
  public:
    KOKKOS_FUNCTION void add(std::uint32_t bin) {
        const std::uint64_t one = std::uint64_t{1} << (6 * (bin % 10));
        const std::uint32_t word = bin / 10;
        for (std::uint32_t w = 0; w < 4; ++w)
            words_[w] += w == word ? one : 0;
    }
    KOKKOS_FUNCTION void flush(std::uint32_t* histogram) const {
        for (std::uint32_t w = 0; w < 4; ++w) {
            std::uint64_t left = words_[w];
            for (std::uint32_t bin = 10 * w; left != 0; ++bin, left >>= 6) {
                if ((left & 63) != 0)
                    Kokkos::atomic_add(&histogram[bin], static_cast<std::uint32_t>(left & 63));
            }
        }
    }

  private:
    std::uint64_t words_[4] = {};
};

// Exponent of difference / bound plus 2048; 0 for no difference, 4095 for a bound of 0.
KOKKOS_FUNCTION inline std::uint32_t ratio_of(double difference, double bound) {
    if (!(difference > 0.0))
        return 0;
    if (bound == 0.0)
        return 4095;
    const std::uint64_t ratio = bits_as<std::uint64_t>(difference) - bits_as<std::uint64_t>(bound) +
                                (std::uint64_t{2048} << 52);
    return static_cast<std::uint32_t>(ratio >> 52);
}

KOKKOS_FUNCTION inline std::uint32_t bin_of(std::uint32_t ratio) {
    if (ratio == 0)
        return 0;
    if (ratio == 4095)
        return share_bins - 1;
    const std::int32_t bin = static_cast<std::int32_t>(ratio) - 2048 + 18;
    return bin < 1 ? 1 : bin > 33 ? 33 : static_cast<std::uint32_t>(bin);
}

}  // namespace ciwrap::device_compare
