// The arithmetic of scalar_codes.hpp for vectors of doubles: the same integers, in fewer steps.
//
// What may differ from the scalar form is only how an exact result is reached: fused
// multiplications where the product is exact, sums of magic numbers whose integer parts cancel,
// and, for relative bounds, an estimate that is used only where it cannot be wrong.
#pragma once

#include "kernels/simd.hpp"

#if defined(CIWRAP_HAVE_SIMD)

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

// Codes of TwoDigits are put together from the bits of two sums with magic numbers, (high << 30) +
// low. The even number in the lower bits of the magic numbers for the high digit is such that the
// bits of rounding_magic are cancelled.
inline constexpr std::uint64_t cancelling_bits =
    ((0 - static_cast<std::uint64_t>(rounding_magic_bits)) >> 30) & 0x3ffffffff;
// Rounds to multiples of 2^30: 1.5 * 2^82.
inline constexpr double high_magic =
    __builtin_bit_cast(double, (std::uint64_t{0x4518000000000000} | cancelling_bits));
// Rounds to integers.
inline constexpr double quotient_magic =
    __builtin_bit_cast(double, static_cast<std::uint64_t>(rounding_magic_bits) | cancelling_bits);

// An integer of magnitude below 2^51 ...
struct VectorStep {
    F64 marked;  // plus rounding_magic
};

// The same times 2^-28, plus rounding_magic times 2^-28: the integer is in the same bits of it, and
// what was rounded is below 2^29 if the highest bit of its exponent is not set.
struct SmallStep {
    F64 marked;
};
inline constexpr double small_unit = 0x1p-28;

// ... and one below 2^62, as high + low, high being a multiple of 2^30.
struct VectorDigits {
    F64 marked;  // high + high_magic
    F64 high;
    F64 low;
};

// Everything the loops need of a plan, once. The constants are hidden from the compiler, which
// would rather build them anew in every iteration, by way of the integer registers.
struct VectorPlan {
    [[gnu::always_inline]] explicit VectorPlan(const QuantizePlan& plan)
        : scale(splat(plan.scale)),
          slope(splat(plan.zero_is_special ? 1.0 : plan.offset_slope)),
          intercept(splat(plan.zero_is_special ? 0.0 : 1.0)),
          exponent_offset(splat(plan.exponent_offset)),
          inverse(splat(plan.inverse_levels)),
          high_inverse(splat(plan.inverse_levels * 0x1p-30)),
          inverse_offset(splat(0.5 * plan.inverse_levels - 0.5)),
          minus_high_levels(splat(-static_cast<double>(plan.levels) * 0x1p+30)),
          half(splat(rounding_magic + static_cast<double>(plan.half))),
          small_scale(splat(plan.scale * small_unit)),
          small_half(splat((rounding_magic + static_cast<double>(plan.half)) * small_unit)),
          small_inverse(splat(plan.inverse_levels / small_unit)),
          levels(splat(static_cast<std::uint32_t>(plan.levels))) {}

    [[gnu::always_inline]] F64 magnitude(F64 x) const { return real_of(bits_of(x) & not_sign); }
    [[gnu::always_inline]] U64 sign(F64 x) const { return bits_of(x) & ~not_sign; }

    F64 scale;
    F64 slope;  // y = slope |x| + intercept is the number to take the logarithm of
    F64 intercept;
    F64 exponent_offset;
    F64 inverse;
    F64 high_inverse;
    F64 inverse_offset;
    F64 minus_high_levels;
    F64 half;  // h + rounding_magic
    F64 small_scale;
    F64 small_half;
    F64 small_inverse;
    U32 levels;
    F64 magic = opaque(splat(rounding_magic));
    F64 magic_high = opaque(splat(high_magic));
    F64 magic_quotient = opaque(splat(quotient_magic));
    U64 magic_bits = opaque(splat(static_cast<std::uint64_t>(rounding_magic_bits)));
    F64 small_magic = opaque(splat(rounding_magic * small_unit));
    F64 small_one_half = opaque(splat(0.5 * small_unit));
    F64 one_half = opaque(splat(0.5));
    F64 one = opaque(splat(1.0));
    U64 not_sign = opaque(splat(~(std::uint64_t{1} << 63)));
    U64 upper_bits = opaque(splat(~std::uint64_t{0x7ffffff}));
    U64 fraction_bits = opaque(splat((std::uint64_t{1} << 52) - 1));
};

// --- codes and residues ------------------------------------------------------------------------

template <class Code>
CIWRAP_VECTOR_FUNCTION U64 whole_code(VectorStep fine, const VectorPlan& plan) {
    if constexpr (sizeof(Code) == 4)
        return bits_of(fine.marked);
    return bits_of(fine.marked) - plan.magic_bits;
}

template <class Code>
CIWRAP_VECTOR_FUNCTION U64 whole_code(SmallStep fine, const VectorPlan& plan) {
    return bits_of(fine.marked) - bits_of(plan.small_magic);
}

template <class Code>
CIWRAP_VECTOR_FUNCTION U64 whole_code(const VectorDigits& fine, const VectorPlan& plan) {
    return (bits_of(fine.marked) << 30) + bits_of(fine.low + plan.magic);
}

// With `centre` as tile_codes.hpp has it: a code of 4 bytes in the lower half of its lane, or one
// of 8 bytes.
template <class Code>
CIWRAP_VECTOR_FUNCTION U64 cell_code(VectorStep fine, F64 centre, const VectorPlan& plan) {
    const F64 marked = multiply_add(fine.marked - centre, plan.inverse, plan.magic);
    return whole_code<Code>(VectorStep{marked}, plan);
}

template <class Code>
CIWRAP_VECTOR_FUNCTION U64 cell_code(SmallStep fine, F64 centre, const VectorPlan& plan) {
    const F64 marked = multiply_add(fine.marked - centre, plan.small_inverse, plan.magic);
    return whole_code<Code>(VectorStep{marked}, plan);
}

template <class Code>
CIWRAP_VECTOR_FUNCTION U64 cell_code(const VectorDigits& fine, F64 centre, const VectorPlan& plan) {
    const F64 high =
        multiply_add(fine.high, plan.high_inverse, plan.inverse_offset) + plan.magic_quotient;
    const F64 rest = multiply_add(high - plan.magic_quotient, plan.minus_high_levels, fine.high) +
                     (fine.low - (centre - plan.magic));
    const F64 low = multiply_add(rest, plan.inverse, plan.magic);
    return (bits_of(high) << 30) + bits_of(low);
}

// The lowest 16 bits of f, in those of its lane.
CIWRAP_VECTOR_FUNCTION U64 low_bits(VectorStep fine, const VectorPlan&) {
    return bits_of(fine.marked);
}
CIWRAP_VECTOR_FUNCTION U64 low_bits(SmallStep fine, const VectorPlan&) {
    return bits_of(fine.marked);
}
CIWRAP_VECTOR_FUNCTION U64 low_bits(const VectorDigits& fine, const VectorPlan& plan) {
    return bits_of(fine.low + plan.magic);
}

// --- absolute ----------------------------------------------------------------------------------

// floor(x * scale + 1/2) of widened floats, where the product is exact.
struct AbsoluteNarrow {
    [[gnu::always_inline]] explicit AbsoluteNarrow(const QuantizePlan&) {}
    [[gnu::always_inline]] VectorStep fine(F64 x, const VectorPlan& plan) const {
        return {marked_floor(multiply_add(x, plan.scale, plan.one_half), plan.magic)};
    }
};

// The same for x that are not halfway between two steps, since rounding to nearest is then the same
// as rounding halves up. Were x * scale = n + 1/2, then x would be an odd multiple of 1/2 divided
// by the last bit of scale: no x below that quotient is.
struct AbsoluteNarrowQuick {
    static constexpr bool has_small_steps = false;
    [[gnu::always_inline]] explicit AbsoluteNarrowQuick(const QuantizePlan&) {}
    [[gnu::always_inline]] VectorStep fine(F64 x, const VectorPlan& plan) const {
        return {multiply_add(x, plan.scale, plan.magic)};
    }
    static double limit(const QuantizePlan& plan) {
        const auto bits = bits_as<std::uint64_t>(plan.scale);
        const std::uint64_t implicit_bit = std::uint64_t{1} << 52;
        const std::uint64_t digits = (bits & (implicit_bit - 1)) | implicit_bit;
        const double unit = bits_as<double>(bits & ~(implicit_bit - 1)) * 0x1p-52;
        return 0.5 / (static_cast<double>(digits & (0 - digits)) * unit);
    }
};

struct AbsoluteWide {
    [[gnu::always_inline]] explicit AbsoluteWide(const QuantizePlan&) {}
    [[gnu::always_inline]] VectorDigits fine(F64 x, const VectorPlan& plan) const {
#if defined(CIWRAP_HAVE_FMA)
        // a + b = x * scale exactly, so both sums of section 5 are roundings of that one product.
        const F64 marked = x * plan.scale + plan.magic_high;
        const F64 high = marked - plan.magic_high;
        const F64 rest = multiply_add(x, plan.scale, -high);
#else
        const F64 upper = real_of(bits_of(x) & plan.upper_bits);
        const F64 a = upper * plan.scale;
        const F64 b = (x - upper) * plan.scale;
        const F64 marked = (a + b) + plan.magic_high;
        const F64 high = marked - plan.magic_high;
        const F64 rest = (a - high) + b;
#endif
        return {marked, high, floor_of(rest + plan.one_half)};
    }
};

// The same where the high digit is zero, |x * scale| <= 2^29: what is left of section 5 is one
// rounding of the product. Where sums can be rounded down, all is done in units of 2^28, which
// changes no bit but those of exponents.
struct AbsoluteWideQuick {
    [[gnu::always_inline]] explicit AbsoluteWideQuick(const QuantizePlan&) {}
#if defined(CIWRAP_HAVE_WIDE)
    static constexpr bool has_small_steps = true;
    [[gnu::always_inline]] F64 product(F64 x, const VectorPlan& plan) const {
        return x * plan.small_scale;
    }
    [[gnu::always_inline]] SmallStep fine(F64 x, const VectorPlan& plan) const {
        return {marked_floor(product(x, plan) + plan.small_one_half, plan.small_magic)};
    }
#else
    static constexpr bool has_small_steps = false;
    [[gnu::always_inline]] VectorStep fine(F64 x, const VectorPlan& plan) const {
        return {marked_floor(x * plan.scale + plan.one_half, plan.magic)};
    }
#endif
    static double limit(const QuantizePlan& plan) {
        return 0x1p+29 / plan.scale * (1.0 - 0x1p-50);
    }
};

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE

#endif
