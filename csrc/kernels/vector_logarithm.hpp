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
// Where the estimate is at least `log2_doubt` steps away from the nearest boundary between two
// steps, so is the number that section 6 rounds. Of y = 2^e m, 1 <= m < 2, log2(m) is a polynomial
// in one of two numbers.
//
// By division, log2(r) + 2 / ln 2 * atanh(s) with r = sqrt(2), s = (m - r) / (m + r): a polynomial
// in s^2 (Chebyshev interpolation on 0 <= s^2 <= 0.029438), within 2^-31.4 (4 terms) and 2^-46 (6
// terms) of log2(m).
//
// By a table, where there are vectors that look up 16 numbers at once, since a division takes
// longer than all the rest: log2(1 + t) - log2(c) with t = c m - 1, c being close to 1/m, |t| <=
// 1/33: a polynomial in t (least largest error), within 2^-43.5.
//
// Those of section 6 are within 2^-41. Rounding adds at most 2^-22 steps there, and here twice half
// a unit of the last place of a number below scale * 2124.5, which is 2^-41 of scale, and by the
// table as much again.
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

// log2(y) * scale as sum(c[j] argument^j) * factor + rest.
struct ReducedLog {
    F64 argument;
    F64 factor;
    F64 rest;
};

#if !defined(CIWRAP_HAVE_WIDE)

template <int Terms>
class ReductionByDivision {
  public:
    static constexpr const double* coefficients = Terms == 4 ? log2_estimate_4 : log2_estimate_6;

    [[gnu::always_inline]] explicit ReductionByDivision(const QuantizePlan& plan)
        : half_scale_(splat(0.5 * plan.scale)),
          exponent_base_(splat(rounding_magic + 1023.0 - plan.exponent_offset)) {}

    [[gnu::always_inline]] ReducedLog of(F64 y, const VectorPlan& plan) const {
        const F64 exponent = real_of((bits_of(y) >> 52) | plan.magic_bits) - exponent_base_;
        const F64 mantissa = real_of((bits_of(y) & plan.fraction_bits) | bits_of(plan.one));
        const F64 s = (mantissa - root_) / (mantissa + root_);
        return {s * s, s, multiply_add(exponent, plan.scale, half_scale_)};
    }

  private:
    F64 half_scale_;
    F64 exponent_base_;
    F64 root_ = opaque(splat(sqrt_two));
};

inline constexpr int fewest_log_terms = 4;
template <int Terms>
using LogReduction = ReductionByDivision<Terms>;

#else

// Of the i-th sixteenth of 1 <= m < 2: 1 over its middle, and minus log2 of that.
inline constexpr double inverse_mantissas[16] = {
    0x1.f07c1f07c1f08p-1, 0x1.d41d41d41d41dp-1, 0x1.bacf914c1bad0p-1, 0x1.a41a41a41a41ap-1,
    0x1.8f9c18f9c18fap-1, 0x1.7d05f417d05f4p-1, 0x1.6c16c16c16c17p-1, 0x1.5c9882b931057p-1,
    0x1.4e5e0a72f0539p-1, 0x1.4141414141414p-1, 0x1.3521cfb2b78c1p-1, 0x1.29e4129e4129ep-1,
    0x1.1f7047dc11f70p-1, 0x1.15b1e5f75270dp-1, 0x1.0c9714fbcda3bp-1, 0x1.0410410410410p-1};
inline constexpr double log2_mantissas[16] = {
    0x1.6bad3758efd81p-5, 0x1.08c588cda79e5p-3, 0x1.acf5e2db4ec91p-3, 0x1.24407ab0e073ap-2,
    0x1.6e221cd9d0cddp-2, 0x1.b47ebf73882a1p-2, 0x1.f7a8568cb06cep-2, 0x1.1bf311e95d00ep-1,
    0x1.3abb3faa02168p-1, 0x1.5848226989d34p-1, 0x1.74b1fd64e0754p-1, 0x1.900e6160002cep-1,
    0x1.aa708f58014d4p-1, 0x1.c3e9ca2e1a055p-1, 0x1.dc899ab3ff56cp-1, 0x1.f45e08bcf0656p-1};
inline constexpr double log2_near_one[6] = {0x1.71547652cbd75p+0, -0x1.71547652bd1a2p-1,
                                            0x1.ec709364b31a5p-2, -0x1.7154726f1e1abp-2,
                                            0x1.27ce51894d040p-2, -0x1.ecde0be10db17p-3};

class ReductionByTable {
  public:
    static constexpr const double* coefficients = log2_near_one;

    [[gnu::always_inline]] explicit ReductionByTable(const QuantizePlan& plan) {
        const F64 exponent = splat(plan.exponent_offset - 1023.0);
        for (std::size_t half = 0; half < 2; ++half) {
            const auto eight = [&](const double* table) {
                return load_vector<F64>(reinterpret_cast<const std::uint8_t*>(table + 8 * half));
            };
            inverses_[half] = eight(inverse_mantissas);
            rests_[half] = (eight(log2_mantissas) + exponent) * splat(plan.scale);
        }
    }

    [[gnu::always_inline]] ReducedLog of(F64 y, const VectorPlan& plan) const {
        const U64 bits = bits_of(y);
        const U64 sixteenth = bits >> 48;
        const F64 mantissa = real_of((bits & plan.fraction_bits) | bits_of(plan.one));
        const F64 t =
            multiply_add(mantissa, look_up(inverses_[0], inverses_[1], sixteenth), -plan.one);
        const F64 rest = look_up(rests_[0], rests_[1], sixteenth);
        return {t, t, multiply_add(to_real(bits >> 52), plan.scale, rest)};
    }

  private:
    F64 inverses_[2];
    F64 rests_[2];
};

inline constexpr int fewest_log_terms = 6;
template <int>
using LogReduction = ReductionByTable;

#endif

// Estimates of the scalars of a tile, and whether all of them can be relied on.
template <int Terms>
class LogEstimate {
    using Reduction = LogReduction<Terms>;

  public:
    [[gnu::always_inline]] explicit LogEstimate(const QuantizePlan& plan)
        : reduction_(plan), lowest_(lowest(plan)), highest_(highest(plan)) {
        for (int j = 0; j < Terms; ++j)
            coefficient_[j] = splat(Reduction::coefficients[j] * plan.scale);
    }

    // Ranges of what a tile's |phi(x)| * scale were.
    struct Range {
        F64 smallest = splat(0x1p+1000);
        F64 largest = F64{};
    };

    // phi(x) * scale, estimated.
    [[gnu::always_inline]] F64 step(F64 x, const VectorPlan& plan, Range& range) const {
        const F64 y = multiply_add(plan.magnitude(x), plan.slope, plan.intercept);
        const ReducedLog log = reduction_.of(y, plan);
        F64 sum = coefficient_[Terms - 1];
#pragma GCC unroll 8
        for (int j = Terms - 2; j >= 0; --j)
            sum = multiply_add(sum, log.argument, coefficient_[j]);
        const F64 size = multiply_add(sum, log.factor, log.rest);
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

    Reduction reduction_;
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
