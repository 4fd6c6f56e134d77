// One scalar to its code: the arithmetic of docs/reference/cell-codes.md, sections 3 to 7.
//
// The same source runs on the host (compiled once per CPU level, vectorised by the compiler: hence
// no branches, no calls and no conversions that could trap) and on devices. Everything lives in a
// namespace of its own per CPU level, so that the linker can never replace one level's code by
// another's.
#pragma once

#include <cstdint>

#include "base/log2_coefficients.hpp"
#include "base/quantize_plan.hpp"
#include "kernels/level_namespace.hpp"

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

template <class To, class From>
CIWRAP_FUNCTION To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, from);
}

// Loops without branches also round scalars that have a code of their own (NaN, infinities, huge
// ones) and drop the result. What may leave the range then wraps, instead of being undefined.
CIWRAP_FUNCTION std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
CIWRAP_FUNCTION std::int64_t wrapping_subtract(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
CIWRAP_FUNCTION std::int64_t wrapping_multiply(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

// 1.5 * 2^52: adding it rounds a double of magnitude below 2^51 to the nearest integer (ties to
// even), which then stands in the low bits of the sum. No conversion instruction is needed, in any
// instruction set.
inline constexpr double rounding_magic = 0x1.8p+52;
inline constexpr std::int64_t rounding_magic_bits = 0x4338000000000000;

// An integer of magnitude below 2^62 as two digits to base 2^30, both kept as doubles.
struct TwoDigits {
    double high;
    double low;  // magnitude below 2^37
};

CIWRAP_FUNCTION std::int64_t small_integer(double whole) {  // |whole| < 2^51, an integer
    return wrapping_subtract(bits_as<std::int64_t>(whole + rounding_magic), rounding_magic_bits);
}

CIWRAP_FUNCTION double round_half_up(double x) {  // floor(x + 1/2), |x| < 2^50
    const double shifted = x + 0.5;
    const double nearest = (shifted + rounding_magic) - rounding_magic;
    return nearest - (nearest > shifted ? 1.0 : 0.0);
}

// round2(a, b) of section 5: floor(a + b + 1/2) for |a + b| < 2^62.
CIWRAP_FUNCTION TwoDigits round_two(double a, double b) {
    const double high = ((a + b) * 0x1p-30 + rounding_magic) - rounding_magic;
    return {high, round_half_up((a - high * 0x1p+30) + b)};
}

// floor(n / k) for an integer n, |n| < 2^43. (n + 1/2) / k is at least 1/(2k) away from any
// integer, so rounding (n + 1/2) / k - 1/2 to nearest cannot go wrong.
CIWRAP_FUNCTION double divide_floor(double n, double inverse_levels) {
    const double offset = 0.5 * inverse_levels - 0.5;
    return ((n * inverse_levels + offset) + rounding_magic) - rounding_magic;
}

struct CellAndResidue {
    std::int64_t cell;
    std::int32_t residue;
};

CIWRAP_FUNCTION CellAndResidue split_cell(double fine, const QuantizePlan& plan) {
    const double k = static_cast<double>(plan.levels);
    const double cell = divide_floor(fine, plan.inverse_levels);
    return {small_integer(cell), static_cast<std::int32_t>(small_integer(fine - cell * k))};
}

CIWRAP_FUNCTION CellAndResidue split_cell(TwoDigits fine, const QuantizePlan& plan) {
    const double k = static_cast<double>(plan.levels);
    const double high = divide_floor(fine.high, plan.inverse_levels);
    const double rest = (fine.high - high * k) * 0x1p+30 + fine.low;
    const double low = divide_floor(rest, plan.inverse_levels);
    return {wrapping_add(small_integer(high) << 30, small_integer(low)),
            static_cast<std::int32_t>(small_integer(rest - low * k))};
}

CIWRAP_FUNCTION std::int64_t whole_value(double fine) {
    return small_integer(fine);
}
CIWRAP_FUNCTION std::int64_t whole_value(TwoDigits fine) {
    return wrapping_add(small_integer(fine.high) << 30, small_integer(fine.low));
}

// --- fine steps
// ------------------------------------------------------------------------------------------------

CIWRAP_FUNCTION double fine_absolute(float x, const QuantizePlan& plan) {
    return round_half_up(static_cast<double>(x) * plan.scale);
}

CIWRAP_FUNCTION TwoDigits fine_absolute(double x, const QuantizePlan& plan) {
    const double high = bits_as<double>(bits_as<std::uint64_t>(x) & ~std::uint64_t{0x7ffffff});
    const double low = x - high;
    return round_two(high * plan.scale, low * plan.scale);
}

struct Log2 {
    double exponent;
    double fraction;
};

template <int Terms>
CIWRAP_FUNCTION Log2 log2_split(double y) {
    constexpr std::uint64_t sqrt_half_bits = 0x3FE6A09E667F3BCD;
    const bool subnormal = y < 0x1p-1022;
    const double normal = subnormal ? y * 0x1p+54 : y;
    const auto bits = bits_as<std::uint64_t>(normal);
    // The exponent by a logical shift of a positive number, since AVX2 has no arithmetic one for 64
    // bits; 1024 keeps it positive.
    const std::uint64_t biased = (bits - sqrt_half_bits + (std::uint64_t{1024} << 52)) >> 52;
    const double u = bits_as<double>(bits - ((biased - 1024) << 52)) - 1.0;
    const double exponent =
        (bits_as<double>(biased + static_cast<std::uint64_t>(rounding_magic_bits)) -
         rounding_magic) -
        (subnormal ? 1078.0 : 1024.0);

    const double* c = nullptr;
    if constexpr (Terms == 16) {
        c = log2_terms_16;
    } else {
        c = log2_terms_24;
    }
    const double u2 = u * u;
    const double u4 = u2 * u2;
    double sum = (c[Terms - 4] + c[Terms - 3] * u) + u2 * (c[Terms - 2] + c[Terms - 1] * u);
    for (int j = Terms / 4 - 2; j >= 0; --j) {
        const double group = (c[4 * j] + c[4 * j + 1] * u) + u2 * (c[4 * j + 2] + c[4 * j + 3] * u);
        sum = sum * u4 + group;
    }
    return {exponent, sum};
}

template <int Terms>
CIWRAP_FUNCTION TwoDigits fine_relative(double x, const QuantizePlan& plan) {
    const double magnitude = bits_as<double>(bits_as<std::uint64_t>(x) & ~(std::uint64_t{1} << 63));
    const double scaled = plan.zero_is_special ? magnitude : 1.0 + plan.offset_slope * magnitude;
    const Log2 log = log2_split<Terms>(scaled);
    const double a = (log.exponent + plan.exponent_offset) * plan.scale;
    const double b = log.fraction * plan.scale;
    const std::uint64_t sign = bits_as<std::uint64_t>(x) & (std::uint64_t{1} << 63);
    return round_two(bits_as<double>(bits_as<std::uint64_t>(a) ^ sign),
                     bits_as<double>(bits_as<std::uint64_t>(b) ^ sign));
}

CIWRAP_FUNCTION std::int64_t floor_divide(std::int64_t n, std::int64_t d) {
    const std::int64_t quotient = n / d;
    return quotient - ((n % d != 0 && (n < 0) != (d < 0)) ? 1 : 0);
}

// --- half precision
// --------------------------------------------------------------------------------------------

CIWRAP_FUNCTION float widen_bfloat16(std::uint16_t bits) {
    return bits_as<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Exact for every value; subnormals by a multiplication that only shifts the exponent, NaN and
// infinity by an exponent of all ones.
CIWRAP_FUNCTION float widen_float16(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
    const float scaled = bits_as<float>(magnitude) * 0x1p+112f;
    const std::uint32_t special = magnitude >= (0x7c00u << 13) ? 0x7f800000u : 0u;
    return bits_as<float>(bits_as<std::uint32_t>(scaled) | special | sign);
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
