#include "base/quantize_plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/log2_coefficients.hpp"

namespace ciwrap {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double log2_e = 0x1.71547652b82fep+0;
constexpr double log2_error = 0x1p-48;        // error budget w of 24 terms
constexpr double short_log2_error = 0x1p-38;  // and of 16 terms
constexpr std::int64_t sqrt_half_bits = 0x3FE6A09E667F3BCD;
constexpr std::uint64_t infinity_bits_32 = 0x7f800000;
constexpr std::uint64_t infinity_bits_64 = 0x7ff0000000000000;

// Section 4: the smallest double >= x with at most `significant` significant bits.
double round_up(double x, int significant) {
    const std::uint64_t low = (std::uint64_t{1} << (53 - significant)) - 1;
    return std::bit_cast<double>((std::bit_cast<std::uint64_t>(x) + low) & ~low);
}

// The smallest power of two >= x, for x in the range of normal doubles; infinity beyond 2^1023.
double power_of_two_from(double x) {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    const std::uint64_t mantissa = (std::uint64_t{1} << 52) - 1;
    return std::bit_cast<double>((bits + mantissa) & ~mantissa);
}

// log2 of section 6 with 24 terms, y >= 1.
double log2_of(double y) {
    const auto bits = std::bit_cast<std::int64_t>(y);
    const std::int64_t exponent = (bits - sqrt_half_bits) >> 52;
    const double u = std::bit_cast<double>(bits - exponent * (std::int64_t{1} << 52)) - 1.0;
    const double u2 = u * u;
    const double u4 = u2 * u2;
    const auto& c = log2_terms_24;
    double sum = (c[20] + c[21] * u) + u2 * (c[22] + c[23] * u);
    for (int j = 4; j >= 0; --j) {
        const double group = (c[4 * j] + c[4 * j + 1] * u) + u2 * (c[4 * j + 2] + c[4 * j + 3] * u);
        sum = sum * u4 + group;
    }
    return static_cast<double>(exponent) + sum;
}

void use_exact(QuantizePlan& plan) {
    plan.kind = CodeKind::exact;
    plan.code_bytes = plan.scalar_bytes;
    plan.levels = 1;
    plan.guaranteed_share = 1.0;
    plan.exact_above = 0.0;
}

// Stricter than what was asked, so nothing short of equality is sure to pass.
void fall_back_to_exact(QuantizePlan& plan) {
    use_exact(plan);
    plan.guaranteed_share = 0.0;
}

void use_levels(QuantizePlan& plan, std::uint32_t levels) {
    plan.levels = static_cast<std::int32_t>(levels);
    plan.half = (plan.levels - 1) / 2;
    plan.inverse_levels = 1.0 / static_cast<double>(levels);
    plan.packed = 1;
    for (std::uint32_t product = levels * levels; levels > 1 && product <= 256; product *= levels) {
        ++plan.packed;
    }
}

// Special codes begin where rounded ones end, C = largest_code + 4 (section 4). False if they do
// not fit the code's width.
bool place_special_codes(QuantizePlan& plan, double largest_code) {
    const bool narrow = plan.code_bytes == 4;
    const std::uint64_t infinity_bits = narrow ? infinity_bits_32 : infinity_bits_64;
    const std::int64_t limit = (narrow ? std::int64_t{std::numeric_limits<std::int32_t>::max()}
                                       : std::numeric_limits<std::int64_t>::max()) -
                               3;
    if (!(largest_code < 0x1p+62))
        return false;
    plan.special_shift = static_cast<std::int64_t>(largest_code) + 4 + 1 -
                         static_cast<std::int64_t>(plan.special_bits);
    return plan.special_shift <= limit - static_cast<std::int64_t>(infinity_bits);
}

void plan_absolute(QuantizePlan& plan, double atol) {
    const bool narrow = plan.scalar != ScalarType::float64;
    plan.kind = CodeKind::absolute;
    plan.code_bytes = narrow ? 4 : 8;
    if (atol < (narrow ? 0x1p-149 : 0x1p-900))
        return fall_back_to_exact(plan);
    if (!narrow)
        atol = std::min(atol, 0x1p+960);
    const double half = plan.half;
    const double k = plan.levels;
    plan.scale = round_up(((half + 1.0) / atol) * (1.0 + 0x1p-20), 26);

    const double limit = narrow ? 0x1p+128 : infinity;
    const double special_from =
        std::min(power_of_two_from(atol * (narrow ? 0x1p+24 : 0x1p+53)), limit);
    const double largest =
        std::min(special_from, narrow ? static_cast<double>(std::numeric_limits<float>::max())
                                      : std::numeric_limits<double>::max());
    plan.special_bits = std::bit_cast<std::uint64_t>(special_from);
    plan.exact_above = special_from;
    if (narrow) {
        plan.special_bits = std::bit_cast<std::uint32_t>(static_cast<float>(special_from));
        if (special_from == limit)
            plan.special_bits = infinity_bits_32;
    }
    if (special_from == limit)
        plan.exact_above = infinity;
    if (!place_special_codes(plan, std::floor(largest * plan.scale / k))) {
        return fall_back_to_exact(plan);
    }
    plan.guaranteed_share =
        plan.half > 0 ? (half - 0x1p-20) / ((half + 1.0) * (1.0 + 0x1p-19)) : 0.0;
}

void plan_relative(QuantizePlan& plan, double atol, double rtol) {
    const double half = plan.half;
    const double k = plan.levels;
    if (atol > 0.0) {
        const double quotient = rtol / atol;
        if (quotient < 0x1p-1000)
            return plan_absolute(plan, atol);
        if (quotient > 0x1p+1000) {
            atol = 0.0;
        } else {
            plan.offset_slope = std::bit_cast<double>(std::bit_cast<std::uint64_t>(quotient) + 1);
        }
    }
    const double log_bound = rtol <= 0x1p-10
                                 ? (rtol - rtol * rtol * 0.5) * (log2_e * (1.0 - 0x1p-50))
                                 : log2_of(1.0 + rtol) - log2_error;
    if (log_bound < 0x1p-44 || (half + 1.0) / log_bound > 0x1p+48) {
        return atol > 0.0 ? plan_absolute(plan, atol) : fall_back_to_exact(plan);
    }
    plan.kind = CodeKind::relative;
    plan.code_bytes = 8;
    plan.zero_is_special = atol == 0.0;
    plan.exponent_offset = plan.zero_is_special ? 1100.0 : 0.0;
    const bool short_log = plan.scalar != ScalarType::float64 && log_bound >= 0x1p-30;
    plan.log_terms = short_log ? 16 : 24;
    const double error = short_log ? short_log2_error : log2_error;
    plan.scale = round_up(((half + 1.0) + 0x1p-20) / (log_bound - error), 40);

    double special_from = infinity;
    if (!plan.zero_is_special && plan.offset_slope > 1.0) {
        special_from = 0x1p+1023 / power_of_two_from(plan.offset_slope);
    }
    plan.special_bits = std::bit_cast<std::uint64_t>(special_from);
    plan.exact_above = special_from;
    if (!place_special_codes(plan, std::floor(3200.0 * plan.scale / k))) {
        return fall_back_to_exact(plan);
    }
    // Only reported, never hashed: the C library's functions will do.
    const double true_log = std::log1p(rtol) / std::log(2.0);
    const double t = (half - 0x1p-19) / (plan.scale * true_log) - 2.0 * error / true_log;
    plan.guaranteed_share =
        plan.half > 0 && t > 0.0 ? -std::expm1(-t * std::log1p(rtol)) / rtol : 0.0;
}

void plan_steps(QuantizePlan& plan, std::uint64_t steps, std::uint32_t levels) {
    if (steps == 0)
        return use_exact(plan);
    steps = std::min(steps, std::uint64_t{1} << 62);
    plan.kind = CodeKind::steps;
    plan.code_bytes = plan.scalar_bytes <= 4 ? 4 : 8;
    if (steps < 128)
        levels = std::min(levels, static_cast<std::uint32_t>(2 * steps + 1));
    use_levels(plan, levels);
    plan.step =
        static_cast<std::int64_t>((steps + 1) / (static_cast<std::uint64_t>(plan.half) + 1));
    plan.exact_above = infinity;
    plan.guaranteed_share = static_cast<double>(plan.half) * static_cast<double>(plan.step) /
                            static_cast<double>(steps);
}

}  // namespace

std::uint64_t QuantizePlan::total_residue_bytes(std::uint64_t scalar_count) const {
    return (scalar_count / chunk_scalars) * residue_bytes(chunk_scalars) +
           residue_bytes(scalar_count % chunk_scalars);
}

QuantizePlan make_plan(const TreeParameters& parameters) {
    const DataType type = parameters.data_type();
    QuantizePlan plan;
    plan.scalar = type.scalar;
    plan.scalar_bytes = type.scalar_bytes;
    plan.code_bytes = type.scalar_bytes;
    plan.swap_unit = type.big_endian ? type.swap_unit : 1;
    plan.equal_nan = parameters.equal_nan();
    plan.chunk_scalars = parameters.chunk_scalars();
    plan.fill_count = static_cast<std::uint32_t>(parameters.fill_bits().size());
    std::copy(parameters.fill_bits().begin(), parameters.fill_bits().end(), plan.fill_bits);

    use_levels(plan, parameters.residue_levels());
    if (parameters.ulps() > 0 || is_integer(plan.scalar)) {
        plan_steps(plan, parameters.allowed_steps(), parameters.residue_levels());
    } else if (parameters.rtol() > 0.0) {
        plan_relative(plan, parameters.atol(), parameters.rtol());
    } else if (parameters.atol() > 0.0) {
        plan_absolute(plan, parameters.atol());
    } else {
        use_exact(plan);
    }
    if (plan.levels == 1)
        use_levels(plan, 1);
    return plan;
}

}  // namespace ciwrap
