// Compiled once per CPU level (see level_kernels.hpp).
#include "kernels/compare_floats.hpp"

#include "kernels/bin_counts.hpp"
#include "kernels/floating_point_mode.hpp"
#include "kernels/four_lanes.hpp"
#include "kernels/level_kernels.hpp"
#include "kernels/level_namespace.hpp"
#include "kernels/prefetch_distance.hpp"

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors never leave this file

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

void compare_floats(const FloatComparison& input, FloatTally& tally);
void widen_scalars(ScalarType scalar, const std::uint8_t* from, bool swap, std::size_t count,
                   double* to);
std::uint32_t find_fills(const double* tile, const double* fills, std::size_t fill_count,
                         bool nan_is_fill);

namespace {

// More rows at once would leave no registers for what is counted.
#if defined(CIWRAP_HAVE_SIMD)
constexpr int row_unroll = tile_unroll < 2 ? tile_unroll : 2;
#else
constexpr int row_unroll = 1;
#endif
constexpr double infinity = __builtin_inf();

template <class Real>
double load_real(const std::uint8_t* from, std::size_t index) {
    Real value;
    __builtin_memcpy(&value, from + index * sizeof(Real), sizeof value);
    return static_cast<double>(value);
}

// floor(log2(d / b)) of positive normal doubles is the exponent of the difference of their
// encodings: no division. 0 where nothing moved; above the last bin: nothing is allowed to.
constexpr double least_share = 0x1p-17;  // all below count as this, ...
constexpr double most_share = 0x1p+15;   // ... and all above as this
constexpr std::uint64_t bin_of_one = 18;
constexpr std::uint64_t beyond_all_bins = 32;  // a bit that no bin below the last has

enum class BoundKind { absolute, relative, steps };

// A bound of four scalars, and what follows from it. A difference between `within` and `beyond` is
// told by exact arithmetic.
struct Limits {
    Reals bound;
    Reals within;
    Reals beyond;
    Reals least;  // counted as if the least and the most
    Reals most;
    UnsignedWords unbounded;  // where nothing may move: a bin above all others
};

[[gnu::always_inline]] inline Limits limits_of(const Reals& bound) {
    return {bound,
            bound * (1.0 - 0x1p-49),
            bound * (1.0 + 0x1p-49),
            bound * least_share,
            bound * most_share,
            as<UnsignedWords>(bound == Reals{}) & (UnsignedWords{} + beyond_all_bins)};
}

template <class Real, BoundKind kind>
class TileComparer {
  public:
    TileComparer(const FloatComparison& input, FloatTally& tally)
        : input_(input),
          tally_(tally),
          atol_(all(input.atol)),
          rtol_(all(input.rtol)),
          limits_(limits_of(
              kind == BoundKind::steps ? to_reals<double>(UnsignedWords{} + input.ulps) : atol_)),
          padding_(all(input.atol > 0.0 ? 0.0 : infinity)),
          most_steps_(as<Words>(UnsignedWords{} + (input.ulps ^ top_bit))),
          is_undecided_(input.tell_equal_only ||
                        (kind == BoundKind::absolute && input.atol > 0.0 &&
                         !(input.atol > smallest_bound && input.atol < largest_sum))) {}

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
                                     : !is_undecided_ && compare(tile, golden, value);
            tally_.undecided[tile] = !counted;
        }
        finish();
    }

  private:
    static constexpr std::size_t tile_bytes = compare_tile * sizeof(Real);
    static constexpr std::uint64_t top_bit = std::uint64_t{1} << 63;

    // Addresses behind the end of the data do no harm, but are no pointers.
    static void prefetch_tile(const std::uint8_t* tile) {
        const auto ahead = reinterpret_cast<std::uintptr_t>(tile) + prefetch_distance;
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

    // Steps from float to float between four pairs.
    [[gnu::always_inline]] static UnsignedWords steps_between(const std::uint8_t* golden,
                                                              const std::uint8_t* value) {
        const Words a = load_places<Real>(golden);
        const Words b = load_places<Real>(value);
        const UnsignedWords below = as<UnsignedWords>(a < b);
        return ((as<UnsignedWords>(a) - as<UnsignedWords>(b)) ^ below) - below;
    }

    bool compare(std::size_t tile, const std::uint8_t* golden, const std::uint8_t* value) {
        UnsignedWords bins[BinCounts::rows];
        Words within[BinCounts::rows];
        Reals sum_abs{};
        Reals sum_rel{};
        Reals most{};
        Reals most_rel{};
        Reals most_bound{};
        Reals least_bound = all(infinity);
        Reals most_measure{};
        Words all_within = ~Words{};
        Words sure = ~Words{};
        Words nonzero{};
        Words has_more{};
        Limits limits = limits_;
#pragma GCC unroll row_unroll
        for (std::size_t row = 0; row < BinCounts::rows; ++row) {
            const std::size_t at = row * lanes * sizeof(Real);
            const Reals g = load_reals<Real>(golden + at);
            const Reals v = load_reals<Real>(value + at);
            const Reals size = magnitude(g);
            const Reals difference = magnitude(v - g);
            const Words has_size = size > Reals{};
            Reals measure = difference;
            if constexpr (kind == BoundKind::steps) {
                const UnsignedWords steps = steps_between(golden + at, value + at);
                // With the top bit flipped, since vectors compare as if signed.
                within[row] = ~(as<Words>(steps ^ (UnsignedWords{} + top_bit)) > most_steps_);
                measure = to_reals<Real>(steps);
                most_measure = larger(measure, most_measure);
            } else {
                if constexpr (kind == BoundKind::relative) {
                    limits = limits_of(atol_ + rtol_ * size);
                    most_bound = larger(limits.bound, most_bound);
                    // 0 times rtol is exact, however small.
                    least_bound = smaller(
                        as<Reals>(as<Words>(limits.bound) | (as<Words>(padding_) & ~has_size)),
                        least_bound);
                    has_more = has_more | (difference > limits.bound * share_to_beat_);
                }
                within[row] = difference <= limits.within;
                sure = sure & (within[row] | (difference >= limits.beyond));
            }
            all_within = all_within & within[row];
            nonzero -= has_size;
            sum_abs += difference;
            most = larger(difference, most);
            const Reals relative = masked(difference / size, has_size);
            sum_rel += relative;
            most_rel = larger(relative, most_rel);
            bins[row] = bin_of(measure, limits) & as<UnsignedWords>(difference > Reals{});
        }
        sure = sure & (sum_abs + all(largest(most_bound)) < all(largest_sum)) &
               (least_bound > all(smallest_bound));
        if (lane_bits(~sure) != 0)
            return false;
        tally_.differs[tile] = lane_bits(~all_within) == 0 ? 0 : bits_of_differing(within);
        any_differs_ = any_differs_ || tally_.differs[tile] != 0;
        sum_abs_ += sum_abs;
        sum_rel_ += sum_rel;
        const std::uint64_t nonzero_count = sum(nonzero);
        take_most(tile, most, max_abs_, max_abs_tile_);
        if (nonzero_count != 0)
            take_most(tile, most_rel, max_rel_, max_rel_tile_);
        most_measure_ = larger(most_measure, most_measure_);
        if (lane_bits(has_more) != 0)
            take_share(golden, value);
        tally_.finite_count += compare_tile;
        tally_.nonzero_count += nonzero_count;
        count(bins);
        return true;
    }

    static std::uint32_t bits_of_differing(const Words (&within)[BinCounts::rows]) {
        std::uint32_t bits = 0;
        for (std::size_t row = 0; row < BinCounts::rows; ++row)
            bits |= lane_bits(~within[row]) << (row * lanes);
        return bits;
    }

    // Dividing by the bound is dear, and a new maximum rare.
    [[gnu::noinline]] void take_share(const std::uint8_t* golden, const std::uint8_t* value) {
        for (std::size_t i = 0; i < compare_tile; ++i) {
            const double g = load_real<Real>(golden, i);
            const double difference = __builtin_fabs(load_real<Real>(value, i) - g);
            const double bound = input_.atol + input_.rtol * __builtin_fabs(g);
            const double share = difference > 0.0 ? difference / bound : 0.0;
            max_share_ = share > max_share_ ? share : max_share_;
        }
        // Below all quotients that are rounded to more, unless the product were too small to tell.
        share_to_beat_ = all(max_share_ < 0x1p-60 ? 0.0 : max_share_ * (1.0 - 0x1p-50));
    }

    // New maxima are rare: only then is the tile kept, in which finish() looks for the scalar.
    [[gnu::always_inline]] static void take_most(std::size_t tile, Reals found, double& most,
                                                 std::size_t& most_tile) {
        const Words beyond = found > all(most);
        if (lane_bits(beyond) == 0) [[likely]]
            return;
        most = largest(found);
        most_tile = tile;
    }

    [[gnu::always_inline]] static UnsignedWords bin_of(const Reals& measure, const Limits& limits) {
        const Reals kept = smaller(larger(measure, limits.least), limits.most);
        const UnsignedWords bin = (as<UnsignedWords>(kept) - as<UnsignedWords>(limits.bound) +
                                   (UnsignedWords{} + (bin_of_one << 52))) >>
                                  52;
        return bin | limits.unbounded;
    }

    // An element of two scalars has the larger of their bins.
    void count(UnsignedWords (&bins)[BinCounts::rows]) {
        UnsignedWords one = UnsignedWords{} + std::uint64_t{1};
        if (input_.scalars_per_element == 2) {
            one = four_words(1, 0);
            for (UnsignedWords& bin : bins) {
                const UnsignedWords other = swapped_neighbours(bin);
                bin = bin ^ ((bin ^ other) & as<UnsignedWords>(as<Words>(bin) < as<Words>(other)));
            }
        }
        for (UnsignedWords& bin : bins)
            bin = one << bin;
        counts_.add(bins);
    }

    void finish() {
        tally_.sum_abs_difference = (sum_abs_[0] + sum_abs_[1]) + (sum_abs_[2] + sum_abs_[3]);
        tally_.sum_rel_difference = (sum_rel_[0] + sum_rel_[1]) + (sum_rel_[2] + sum_rel_[3]);
        counts_.each([&](std::size_t bin, std::uint64_t times) {
            tally_.histogram[bin < share_bins ? bin : share_bins - 1] += times;
        });
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
        tally_.max_bound_share = largest_share();
    }

    double largest_share() const {
        if constexpr (kind == BoundKind::steps) {
            // A rounded quotient must not say otherwise than the verdicts.
            const double rounded = largest(most_measure_) / limits_.bound[0];
            constexpr double beyond = 1.0 + 0x1p-52;
            if (any_differs_)
                return rounded > beyond ? rounded : beyond;
            return rounded < 1.0 ? rounded : 1.0;
        } else if constexpr (kind == BoundKind::relative) {
            return max_share_;
        } else {
            if (max_abs_ <= 0.0)
                return 0.0;
            return input_.atol > 0.0 ? max_abs_ / input_.atol : infinity;
        }
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
    const Limits limits_;     // the same for all, but for relative bounds
    const Reals padding_;     // in place of a bound of 0 that is exact
    const Words most_steps_;  // with the top bit flipped
    const bool is_undecided_;
    Reals sum_abs_{};
    Reals sum_rel_{};
    Reals most_measure_{};  // of steps
    Reals share_to_beat_{};
    double max_share_ = 0.0;
    bool any_differs_ = false;
    double max_abs_ = -1.0;
    double max_rel_ = -1.0;
    std::size_t max_abs_tile_ = none;
    std::size_t max_rel_tile_ = none;
    BinCounts counts_;
};

}  // namespace

void compare_floats(const FloatComparison& input, FloatTally& tally) {
    const FloatingPointMode ieee;
    const auto run = [&]<class Real>(Real) {
        if (input.ulps > 0) {
            TileComparer<Real, BoundKind::steps>(input, tally).run();
        } else if (input.rtol > 0.0) {
            TileComparer<Real, BoundKind::relative>(input, tally).run();
        } else {
            TileComparer<Real, BoundKind::absolute>(input, tally).run();
        }
    };
    if (input.scalar_bytes == 8) {
        run(double{});
    } else {
        run(float{});
    }
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE

namespace ciwrap {

const CompareKernels CIWRAP_JOIN(compare_kernels_, CIWRAP_CPU_LEVEL) = {
    CIWRAP_LEVEL_NAMESPACE::compare_floats, CIWRAP_LEVEL_NAMESPACE::widen_scalars,
    CIWRAP_LEVEL_NAMESPACE::find_fills};

}  // namespace ciwrap
