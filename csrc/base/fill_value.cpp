#include "base/fill_value.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "ciwrap/error.hpp"

namespace ciwrap {
namespace {

[[noreturn]] void does_not_fit(const std::string& dtype) {
    throw Error(ErrorCode::invalid_argument, "a fill value does not fit dtype '" + dtype + "'");
}

// A binary interchange format narrower than 64 bits.
struct Format {
    int mantissa_bits;  // stored
    int bias;
    std::uint64_t infinity;
    std::uint64_t nan;
    int sign_bit;
};

Format format_of(ScalarType type) {
    switch (type) {
        case ScalarType::float16:
            return {10, 15, 0x7c00, 0x7e00, 15};
        case ScalarType::bfloat16:
            return {7, 127, 0x7f80, 0x7fc0, 15};
        case ScalarType::float32:
            return {23, 127, 0x7f800000, 0x7fc00000, 31};
        default:
            return {52, 1023, 0x7ff0000000000000, 0x7ff8000000000000, 63};
    }
}

int bytes_of(ScalarType type) {
    switch (type) {
        case ScalarType::int8:
        case ScalarType::uint8:
            return 1;
        case ScalarType::int16:
        case ScalarType::uint16:
            return 2;
        case ScalarType::int32:
        case ScalarType::uint32:
            return 4;
        default:
            return 8;
    }
}

// Ties go to even, whatever way of rounding a program has set.
double rounded(double value) {
    const double below = std::floor(value);
    const double rest = value - below;
    const bool is_odd = std::fmod(below, 2.0) != 0.0;
    return rest > 0.5 || (rest == 0.5 && is_odd) ? below + 1.0 : below;
}

// Nothing for what is beyond the largest finite number.
std::optional<std::uint64_t> rounded_float_bits(ScalarType type, double value) {
    const Format format = format_of(type);
    if (std::isnan(value))
        return format.nan;
    const std::uint64_t sign = std::signbit(value) ? std::uint64_t{1} << format.sign_bit : 0;
    if (std::isinf(value))
        return format.infinity | sign;
    int exponent = 0;
    std::frexp(value, &exponent);  // |value| in [2^(exponent - 1), 2^exponent)
    const int biased = exponent - 1 + format.bias;
    const int unit = (biased > 0 ? biased : 1) - format.bias - format.mantissa_bits;
    const double mantissa = rounded(std::ldexp(std::fabs(value), -unit));
    if (mantissa == 0.0)
        return 0;
    // A normal number's leading bit adds one to the exponent field, so the field goes in one lower.
    const auto field = static_cast<std::uint64_t>(biased > 0 ? biased - 1 : 0)
                       << format.mantissa_bits;
    const std::uint64_t magnitude = field + static_cast<std::uint64_t>(mantissa);
    if (magnitude >= format.infinity)
        return std::nullopt;
    return magnitude | sign;
}

bool fits(ScalarType type, bool is_negative, std::uint64_t bits) {
    const int width = 8 * bytes_of(type);
    const std::uint64_t half = std::uint64_t{1} << (width - 1);
    if (is_unsigned(type))
        return !is_negative && (width == 64 || bits >> width == 0);
    return is_negative ? ~bits < half : bits < half;
}

std::uint64_t masked(ScalarType type, std::uint64_t bits) {
    const int width = 8 * bytes_of(type);
    return width == 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}

}  // namespace

std::optional<std::uint64_t> rounded_fill_bits(ScalarType type, double value) {
    if (is_float(type))
        return rounded_float_bits(type, value);
    // Doubles from 2^64 on are beyond all integers, and their fractions are none.
    if (!is_integer(type) || value != std::floor(value) || !(std::fabs(value) < 0x1p+64))
        return std::nullopt;
    const bool is_negative = value < 0;
    if (is_negative && value < -0x1p+63)
        return std::nullopt;
    const auto bits = is_negative ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value))
                                  : static_cast<std::uint64_t>(value);
    return fits(type, is_negative, bits) ? std::optional(masked(type, bits)) : std::nullopt;
}

double float_fill_value(ScalarType type, std::uint64_t bits) {
    const Format format = format_of(type);
    const std::uint64_t sign = bits >> format.sign_bit & 1;
    const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << format.sign_bit);
    if (magnitude > format.infinity)
        return std::numeric_limits<double>::quiet_NaN();
    double value = std::numeric_limits<double>::infinity();
    if (magnitude < format.infinity) {
        const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
        std::uint64_t mantissa = magnitude & ((std::uint64_t{1} << format.mantissa_bits) - 1);
        if (exponent > 0)
            mantissa |= std::uint64_t{1} << format.mantissa_bits;
        value = std::ldexp(static_cast<double>(mantissa),
                           (exponent > 0 ? exponent : 1) - format.bias - format.mantissa_bits);
    }
    return sign != 0 ? -value : value;
}

std::uint64_t float_fill_bits(const std::string& dtype, ScalarType type, double value) {
    if (!is_float(type)) {
        throw Error(ErrorCode::invalid_argument,
                    "fill values need a numeric dtype, not '" + dtype + "'");
    }
    const std::optional<std::uint64_t> bits = rounded_float_bits(type, value);
    if (!bits || (!std::isnan(value) && float_fill_value(type, *bits) != value))
        does_not_fit(dtype);
    return *bits;
}

std::uint64_t integer_fill_bits(const std::string& dtype, ScalarType type, bool is_negative,
                                std::uint64_t bits) {
    if (!is_integer(type) || !fits(type, is_negative, bits))
        does_not_fit(dtype);
    return masked(type, bits);
}

std::int64_t signed_fill_value(ScalarType type, std::uint64_t bits) {
    const int unused = 64 - 8 * bytes_of(type);
    return std::bit_cast<std::int64_t>(bits << unused) >> unused;
}

}  // namespace ciwrap
