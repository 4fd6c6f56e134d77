// Compiled once per CPU level (see level_kernels.hpp).
#include "kernels/compare_floats.hpp"

#include "kernels/floating_point_mode.hpp"
#include "kernels/four_lanes.hpp"
#include "kernels/level_kernels.hpp"
#include "kernels/level_namespace.hpp"

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors never leave this file

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

void compare_floats(const FloatComparison& input, FloatTally& tally);

namespace {

#if !defined(CIWRAP_HAVE_SIMD)
constexpr int tile_unroll = 1;
#endif
constexpr double infinity = __builtin_inf();

template <class Real>
double load_real(const std::uint8_t* from, std::size_t index) {
    Real value;
    __builtin_memcpy(&value, from + index * sizeof(Real), sizeof value);
    return static_cast<double>(value);
}

// floor(log2(d / b)) of positive normal doubles is the exponent of the difference of their
// encodings: no division. Kept with this bias, and 0 for d = 0, 4095 for b = 0.
constexpr std::int64_t ratio_bias = 2048;
constexpr std::uint16_t no_ratio = 0;
constexpr std::uint16_t infinite_ratio = 4095;

struct BinOfRatio {
    constexpr BinOfRatio() {
        for (std::int64_t ratio = 1; ratio < 4096; ++ratio) {
            const std::int64_t bin = ratio - ratio_bias + 18;
            bins[ratio] = static_cast<std::uint8_t>(bin < 1 ? 1 : bin > 33 ? 33 : bin);
        }
        bins[infinite_ratio] = share_bins - 1;
    }
    std::uint8_t bins[4096] = {};
};
constexpr BinOfRatio bin_of_ratio;

template <class Real>
class TileComparer {
  public:
    TileComparer(const FloatComparison& input, FloatTally& tally)
        : input_(input),
          tally_(tally),
          atol_(all(input.atol)),
          rtol_(all(input.rtol)),
          tiny_(all(input.atol == 0.0 && input.rtol == 0.0 ? -1.0 : 0x1p-900)),
          zero_is_tiny_(Words{} - (input.atol > 0.0 ? 1 : 0)) {}

    void run() {
        for (std::size_t tile = 0; tile < input_.tile_count; ++tile) {
            tally_.differs[tile] = 0;
            const std::uint8_t* golden = input_.golden + tile * tile_bytes;
            const std::uint8_t* value = input_.value + tile * tile_bytes;
            prefetch_tile(golden);
            prefetch_tile(value);
            if (input_.unfit != nullptr && input_.unfit[tile]) {
                tally_.undecided[tile] = true;
                continue;
            }
            const bool counted = same_bytes(golden, value)
                                     ? count_equal(tile, golden)
                                     : !input_.tell_equal_only && compare(tile, golden, value);
            tally_.undecided[tile] = !counted;
        }
        finish();
    }

  private:
    static constexpr std::size_t tile_bytes = compare_tile * sizeof(Real);
    // The machine's own prefetching stops at every page.
    static constexpr std::size_t prefetch_bytes = 4096;

    // Addresses behind the end of the data do no harm, but are no pointers.
    static void prefetch_tile(const std::uint8_t* tile) {
        const auto ahead = reinterpret_cast<std::uintptr_t>(tile) + prefetch_bytes;
        for (std::size_t line = 0; line < tile_bytes; line += 64)
            __builtin_prefetch(reinterpret_cast<const void*>(ahead + line), 0, 2);
    }

    static bool same_bytes(const std::uint8_t* a, const std::uint8_t* b) {
        Words different{};
        for (std::size_t at = 0; at < tile_bytes; at += sizeof(Words)) {
            Words x;
            Words y;
            __builtin_memcpy(&x, a + at, sizeof x);
            __builtin_memcpy(&y, b + at, sizeof y);
            different |= x ^ y;
        }
        return (different[0] | different[1] | different[2] | different[3]) == 0;
    }

    // NaN and infinities equal themselves, but are no numbers to take a difference of.
    bool count_equal(std::size_t tile, const std::uint8_t* golden) {
        Words finite{};
        Words nonzero{};
        Words numbers{};
        for (std::size_t i = 0; i < compare_tile; i += lanes) {
            const Reals size = magnitude(load_reals<Real>(golden + i * sizeof(Real)));
            const Words is_finite = size < all(infinity);
            finite -= is_finite;
            nonzero -= is_finite & (size > Reals{});
            numbers -= size <= all(infinity);
        }
        const std::uint64_t finite_count = sum(finite);
        const std::uint64_t nonzero_count = sum(nonzero);
        if (!input_.equal_nan && sum(numbers) != compare_tile)
            return false;
        if (finite_count > 0 && max_abs_tile_ == none)
            take_first(tile, max_abs_, max_abs_tile_);
        if (nonzero_count > 0 && max_rel_tile_ == none)
            take_first(tile, max_rel_, max_rel_tile_);
        tally_.finite_count += finite_count;
        tally_.nonzero_count += nonzero_count;
        tally_.histogram[0] += compare_tile / input_.scalars_per_element;
        return true;
    }

    static void take_first(std::size_t tile, double& most, std::size_t& most_tile) {
        most = 0.0;
        most_tile = tile;
    }

    bool compare(std::size_t tile, const std::uint8_t* golden, const std::uint8_t* value) {
        alignas(32) std::uint64_t ratios[compare_tile];
        Reals sum_abs{};
        Reals sum_rel{};
        Reals most{};
        Reals most_rel{};
        Reals most_share{};
        Words doubtful{};
        std::uint32_t differs = 0;
        std::uint32_t nonzero = 0;
#pragma GCC unroll tile_unroll
        for (std::size_t i = 0; i < compare_tile; i += lanes) {
            const Reals g = load_reals<Real>(golden + i * sizeof(Real));
            const Reals v = load_reals<Real>(value + i * sizeof(Real));
            const Reals size = magnitude(g);
            const Reals difference = magnitude(v - g);
            const Reals bound = atol_ + rtol_ * size;
            const Words within = difference <= bound * (1.0 - 0x1p-49);
            const Words beyond = difference >= bound * (1.0 + 0x1p-49);
            const Words has_size = size > Reals{};
            // NaN and infinity make no sum below 2^1000.
            doubtful |= ~(within | beyond) | ~(difference + bound < all(0x1p+1000)) |
                        ((bound <= tiny_) & (has_size | zero_is_tiny_));
            differs |= lane_bits(~within) << i;
            nonzero |= lane_bits(has_size) << i;
            sum_abs += difference;
            most = larger(difference, most);
            const Reals relative = masked(difference / size, has_size);
            sum_rel += relative;
            most_rel = larger(relative, most_rel);
            const Words moved = difference > Reals{};
            if (input_.rtol != 0.0)
                most_share = larger(masked(difference / bound, moved), most_share);
            const UnsignedWords ratio =
                as<UnsignedWords>(difference) - as<UnsignedWords>(bound) +
                (UnsignedWords{} + (static_cast<std::uint64_t>(ratio_bias) << 52));
            const UnsignedWords unbounded = as<UnsignedWords>(bound == Reals{});
            const UnsignedWords kept =
                ((ratio >> 52) | (unbounded >> 52)) & as<UnsignedWords>(moved);
            __builtin_memcpy(ratios + i, &kept, sizeof kept);
        }
        if (lane_bits(doubtful) != 0)
            return false;
        tally_.differs[tile] = differs;
        sum_abs_ += sum_abs;
        sum_rel_ += sum_rel;
        take_most(tile, most, max_abs_, max_abs_tile_);
        if (nonzero != 0)
            take_most(tile, most_rel, max_rel_, max_rel_tile_);
        max_share_ = larger(most_share, max_share_);
        tally_.finite_count += compare_tile;
        tally_.nonzero_count += static_cast<std::uint64_t>(__builtin_popcount(nonzero));
        count(ratios);
        return true;
    }

    // New maxima are rare: only then is the tile kept, in which finish() looks for the scalar.
    [[gnu::always_inline]] static void take_most(std::size_t tile, Reals found, double& most,
                                                 std::size_t& most_tile) {
        if (lane_bits(found > all(most)) == 0) [[likely]]
            return;
        most = largest(found);
        most_tile = tile;
    }

    // Four counters a bin, since adding to the one just written would wait for it.
    void count(const std::uint64_t (&ratios)[compare_tile]) {
        if (input_.scalars_per_element == 1) {
            for (std::size_t i = 0; i < compare_tile; i += 4) {
                ++counts_[0][bin_of_ratio.bins[ratios[i]]];
                ++counts_[1][bin_of_ratio.bins[ratios[i + 1]]];
                ++counts_[2][bin_of_ratio.bins[ratios[i + 2]]];
                ++counts_[3][bin_of_ratio.bins[ratios[i + 3]]];
            }
            return;
        }
        for (std::size_t i = 0; i < compare_tile; i += 2) {
            const std::uint64_t most = ratios[i] > ratios[i + 1] ? ratios[i] : ratios[i + 1];
            ++counts_[i / 2 % 4][bin_of_ratio.bins[most]];
        }
    }

    void finish() {
        tally_.sum_abs_difference = (sum_abs_[0] + sum_abs_[1]) + (sum_abs_[2] + sum_abs_[3]);
        tally_.sum_rel_difference = (sum_rel_[0] + sum_rel_[1]) + (sum_rel_[2] + sum_rel_[3]);
        for (std::size_t bin = 0; bin < share_bins; ++bin) {
            for (const auto& counts : counts_)
                tally_.histogram[bin] += counts[bin];
        }
        if (max_abs_tile_ != none) {
            tally_.max_abs_difference = max_abs_;
            tally_.max_abs_scalar = find(max_abs_tile_, [&](double g, double v) {
                return __builtin_fabs(v - g) == max_abs_;
            });
        }
        if (max_rel_tile_ != none) {
            tally_.max_rel_difference = max_rel_;
            tally_.max_rel_scalar = find(max_rel_tile_, [&](double g, double v) {
                return g != 0.0 && __builtin_fabs(v - g) / __builtin_fabs(g) == max_rel_;
            });
        }
        tally_.max_bound_share = largest(max_share_);
        if (input_.rtol == 0.0 && max_abs_ > 0.0)
            tally_.max_bound_share = input_.atol > 0.0 ? max_abs_ / input_.atol : infinity;
    }

    template <class Condition>
    std::int64_t find(std::size_t tile, Condition&& condition) const {
        for (std::size_t i = tile * compare_tile;; ++i) {
            if (condition(load_real<Real>(input_.golden, i), load_real<Real>(input_.value, i)))
                return static_cast<std::int64_t>(i);
        }
    }

    static std::uint64_t sum(Words counts) {
        return static_cast<std::uint64_t>(counts[0] + counts[1] + counts[2] + counts[3]);
    }

    static constexpr std::size_t none = ~std::size_t{0};

    const FloatComparison& input_;
    FloatTally& tally_;
    const Reals atol_;
    const Reals rtol_;
    const Reals tiny_;          // bounds up to here are none for arithmetic on doubles ...
    const Words zero_is_tiny_;  // ... but for 0 times rtol, which is exact
    Reals sum_abs_{};
    Reals sum_rel_{};
    Reals max_share_{};
    double max_abs_ = -1.0;
    double max_rel_ = -1.0;
    std::size_t max_abs_tile_ = none;
    std::size_t max_rel_tile_ = none;
    std::uint64_t counts_[4][share_bins] = {};
};

}  // namespace

void compare_floats(const FloatComparison& input, FloatTally& tally) {
    const FloatingPointMode ieee;
    if (input.scalar_bytes == 8) {
        TileComparer<double>(input, tally).run();
    } else {
        TileComparer<float>(input, tally).run();
    }
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
