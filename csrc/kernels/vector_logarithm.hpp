// Relative bounds on vectors: section 6 to the letter, and an estimate that is used where it cannot
// be wrong.
#pragma once

#include "kernels/vector_codes.hpp"

#if defined(CIWRAP_HAVE_SIMD)

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

template <int Terms>
class Relative {
  public:
    [[gnu::always_inline]] explicit Relative(const QuantizePlan& plan)
        : zero_is_special_(plan.zero_is_special) {}

    [[gnu::always_inline]] VectorDigits fine(F64 x, const VectorPlan& plan) const {
        F64 y = plan.magnitude(x);
        F64 exponent_offset = plan.exponent_offset;
        if (zero_is_special_) {
            const U64 subnormal = reinterpret_cast<U64>(y < splat(0x1p-1022));
            y = real_of(select(subnormal, bits_of(y * splat(0x1p+54)), bits_of(y)));
            exponent_offset = exponent_offset - real_of(subnormal & bits_of(splat(54.0)));
        } else {
            y = plan.one + plan.slope * y;
        }
        const U64 from_base = bits_of(y) - log_base_;
        const F64 biased = real_of((from_base >> 52) | plan.magic_bits) - plan.magic;
        const F64 exponent = biased - (splat(1024.0) - exponent_offset);
        const F64 u = real_of((from_base & plan.fraction_bits) + log_centre_) - plan.one;
        const F64 p = polynomial(u);
        const U64 sign = plan.sign(x);
        const F64 a = real_of(bits_of(exponent * plan.scale) ^ sign);
        const F64 b = real_of(bits_of(p * plan.scale) ^ sign);
        const F64 marked = (a + b) + plan.magic_high;
        const F64 high = marked - plan.magic_high;
        return {marked, high, floor_of(((a - high) + b) + plan.one_half)};
    }

  private:
    [[gnu::always_inline]] static F64 polynomial(F64 u) {
        const double* c = Terms == 16 ? log2_terms_16 : log2_terms_24;
        const F64 u2 = u * u;
        const F64 u4 = u2 * u2;
        F64 sum{};
#pragma GCC unroll 8
        for (int j = Terms / 4 - 1; j >= 0; --j) {
            const F64 group = (splat(c[4 * j]) + splat(c[4 * j + 1]) * u) +
                              u2 * (splat(c[4 * j + 2]) + splat(c[4 * j + 3]) * u);
            sum = j == Terms / 4 - 1 ? group : sum * u4 + group;
        }
        return sum;
    }

    static constexpr std::uint64_t sqrt_half = 0x3FE6A09E667F3BCD;
    U64 log_centre_ = opaque(splat(sqrt_half));
    // Keeps exponents positive under a logical shift.
    U64 log_base_ = opaque(splat(sqrt_half - (std::uint64_t{1024} << 52)));
    bool zero_is_special_;
};

// --- the estimate ------------------------------------------------------------------------------
//
// log2(m), 1 <= m < 2, is log2(r) + 2 / ln 2 * atanh(s) with r = sqrt(2), s = (m - r) / (m + r): a
// polynomial in s^2. Where the estimate is at least `log2_doubt` steps away from the nearest
// boundary between two steps, so is the number that section 6 rounds.
//
// The polynomials (Chebyshev interpolation on 0 <= s^2 <= 0.029438) are within 2^-31.4 (4 terms)
// and 2^-46 (6 terms) of log2(m). Those of section 6 are within 2^-41. Rounding adds at most 2^-22
// steps there, and here twice half a unit of the last place of a number below scale * 2124.5, which
// is 2^-41 of scale.
inline constexpr double sqrt_two = 0x1.6a09e667f3bcdp+0;
inline constexpr double log2_estimate_4[4] = {0x1.7154764e7aa50p+1, 0x1.ec70e5bbf8bfdp-1,
                                              0x1.2747367e1dd3cp-1, 0x1.ba14343ec3038p-2};
inline constexpr double log2_estimate_6[6] = {0x1.71547652b8253p+1, 0x1.ec709dc539e76p-1,
                                              0x1.2776c295f01cfp-1, 0x1.a61a2cc1ced3cp-2,
                                              0x1.4795a63079db0p-2, 0x1.21ac9c9041062p-2};

template <int Terms>
CIWRAP_FUNCTION double log2_doubt(const QuantizePlan& plan) {
    return plan.scale * (Terms == 4 ? 0x1p-31 : 0x1p-39) + 0x1p-20;
}

// Estimates of the scalars of a tile, and whether all of them can be relied on.
template <int Terms>
class LogEstimate {
  public:
    [[gnu::always_inline]] explicit LogEstimate(const QuantizePlan& plan)
        : half_scale_(splat(0.5 * plan.scale)),
          exponent_base_(splat(rounding_magic + 1023.0 - plan.exponent_offset)),
          lowest_(lowest(plan)),
          highest_(highest(plan)) {
        const double* c = Terms == 4 ? log2_estimate_4 : log2_estimate_6;
        for (int j = 0; j < Terms; ++j)
            coefficient_[j] = splat(c[j] * plan.scale);
    }

    // Ranges of what a tile's |phi(x)| * scale were.
    struct Range {
        F64 smallest = splat(0x1p+1000);
        F64 largest = F64{};
    };

    // phi(x) * scale, estimated.
    [[gnu::always_inline]] F64 step(F64 x, const VectorPlan& plan, Range& range) const {
        const F64 y = multiply_add(plan.magnitude(x), plan.slope, plan.intercept);
        const F64 exponent = real_of((bits_of(y) >> 52) | plan.magic_bits) - exponent_base_;
        const F64 mantissa = real_of((bits_of(y) & plan.fraction_bits) | bits_of(plan.one));
        const F64 s = (mantissa - root_) / (mantissa + root_);
        const F64 s2 = s * s;
        F64 sum = coefficient_[Terms - 1];
#pragma GCC unroll 8
        for (int j = Terms - 2; j >= 0; --j)
            sum = multiply_add(sum, s2, coefficient_[j]);
        const F64 size = multiply_add(sum, s, multiply_add(exponent, plan.scale, half_scale_));
        range.smallest = smaller(size, range.smallest);
        range.largest = larger(size, range.largest);
        return real_of(bits_of(size) ^ plan.sign(x));
    }

    // All ones where no special scalar, and none whose y is subnormal, can have been. NaN and
    // infinity have the exponent 1024.
    [[gnu::always_inline]] U64 ordinary(const Range& range) const {
        return reinterpret_cast<U64>(range.smallest > splat(lowest_)) &
               reinterpret_cast<U64>(range.largest < splat(highest_));
    }

  private:
    // Bounds of `size`, on the safe side by more than its error where the estimate is used.
    static double lowest(const QuantizePlan& plan) {
        return plan.zero_is_special ? plan.scale * (1100.0 - 1022.0 + 0x1p-10) : -1.0;
    }
    static double highest(const QuantizePlan& plan) {
        // log2(c1 X) is at least the difference of the exponents.
        const auto exponent = [](double v) {
            return static_cast<double>(bits_as<std::uint64_t>(v) >> 52) - 1023.0;
        };
        const double special_from = bits_as<double>(plan.special_bits);
        const double last =
            exponent(special_from) +
            (plan.zero_is_special ? plan.exponent_offset : exponent(plan.offset_slope));
        const double all = 1024.0 + plan.exponent_offset;
        return plan.scale * ((last < all ? last : all) - 0x1p-10);
    }

    F64 half_scale_;
    F64 exponent_base_;
    F64 root_ = opaque(splat(sqrt_two));
    F64 coefficient_[Terms];
    double lowest_;
    double highest_;
};

// Estimates to steps, by sums with a magic number that leaves room for 16 binary places: below
// 2^34 steps, with a doubt of at most 2^-10. The places of all steps but those in doubt are more
// than twice `doubt_`, which is added to them.
class FineRounding {
  public:
    [[gnu::always_inline]] FineRounding(const QuantizePlan& plan, double doubt)
        : doubt_(static_cast<double>(static_cast<std::int64_t>(doubt * 0x1p+16) + 1)),
          magic_(splat(0x1.8p+36 + 0.5 + doubt_ * 0x1p-16)) {
        (void)plan;
    }

    static bool suits(const QuantizePlan& plan, double doubt) {
        return plan.scale < 0x1p+22 && doubt < 0x1p-12;
    }

    struct Seen {
        U16 places = ~U16{};
    };

    [[gnu::always_inline]] VectorStep round(F64 step, const VectorPlan&, Seen& seen) const {
        const U64 bits = bits_of(step + magic_);
        seen.places = smaller(seen.places, reinterpret_cast<U16>(bits));
        return {real_of((bits >> 16) + to_marked_)};
    }

    [[gnu::always_inline]] bool certain(const Seen& seen) const {
        // Of every lane the lowest 16 bits.
        const U64 places = reinterpret_cast<U64>(seen.places) & splat(std::uint64_t{0xffff});
        std::uint64_t lanes[lanes64];
        __builtin_memcpy(lanes, &places, sizeof lanes);
        std::uint64_t least = lanes[0];
        for (const std::uint64_t lane : lanes)
            least = lane < least ? lane : least;
        return static_cast<double>(least) > 2.0 * doubt_;
    }

  private:
    static constexpr std::uint64_t fine_magic_bits = __builtin_bit_cast(std::uint64_t, 0x1.8p+36);
    double doubt_;  // in units of 2^-16
    F64 magic_;
    U64 to_marked_ =
        opaque(splat(static_cast<std::uint64_t>(rounding_magic_bits) - (fine_magic_bits >> 16)));
};

// Estimates to steps of any size below 2^42, by their distance from whole ones.
class WideRounding {
  public:
    [[gnu::always_inline]] WideRounding(const QuantizePlan&, double doubt)
        : certain_(splat(0.5 - doubt)) {}

    static bool suits(const QuantizePlan& plan, double doubt) {
        return plan.scale < 0x1p+30 && doubt < 0x1p-10;
    }

    struct Seen {
        F64 worst = F64{};
    };

    [[gnu::always_inline]] VectorStep round(F64 step, const VectorPlan& plan, Seen& seen) const {
        const F64 marked = step + plan.magic;
        seen.worst = larger(plan.magnitude(step - (marked - plan.magic)), seen.worst);
        return {marked};
    }

    [[gnu::always_inline]] bool certain(const Seen& seen) const {
        return lane_bits(reinterpret_cast<U64>(seen.worst >= certain_)) == 0;
    }

  private:
    F64 certain_;
};

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE

#endif
