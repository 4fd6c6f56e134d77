#include "core/exact_bound.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ciwrap {
namespace {

__extension__ using Wide = unsigned __int128;

// A sum of products of doubles, kept exactly: limbs of 32 bits in 64-bit integers, limb 0 worth
// 2^lowest_exponent.
class ExactSum {
  public:
    void add(double x, bool negative) {
        const Parts p = split(x);
        add_wide(p.mantissa, p.exponent - lowest_exponent, negative);
    }
    void add_product(double x, double y) {
        const Parts p = split(x);
        const Parts q = split(y);
        add_wide(static_cast<Wide>(p.mantissa) * q.mantissa,
                 p.exponent + q.exponent - lowest_exponent, false);
    }
    bool is_negative() {
        std::int64_t carry = 0;
        for (std::int64_t& limb : limbs_) {
            const std::int64_t sum = limb + carry;
            carry = sum >> 32;
            limb = sum & 0xffffffff;
        }
        return carry < 0;
    }

  private:
    struct Parts {
        std::uint64_t mantissa;
        int exponent;
    };
    static constexpr int lowest_exponent = -2 * 1074;
    static constexpr int limb_count = (2 * 1074 + 2 * 1024) / 32 + 8;

    static Parts split(double magnitude) {
        const auto bits = std::bit_cast<std::uint64_t>(magnitude);
        const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
        const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
        if (exponent == 0)
            return {fraction, -1074};
        return {fraction | std::uint64_t{1} << 52, exponent - 1075};
    }

    void add_wide(Wide mantissa, int position, bool negative) {
        auto limb = static_cast<std::size_t>(position / 32);
        const int shift = position % 32;
        // 106 bits shifted by up to 31 exceed 128: the low 64 bits and the rest go in one after the
        // other.
        for (const std::uint64_t half :
             {static_cast<std::uint64_t>(mantissa), static_cast<std::uint64_t>(mantissa >> 64)}) {
            const Wide shifted = static_cast<Wide>(half) << shift;
            for (std::size_t i = 0; i < 3; ++i) {
                const auto piece = static_cast<std::int64_t>(
                    static_cast<std::uint64_t>(shifted >> (32 * i)) & 0xffffffff);
                limbs_[limb + i] += negative ? -piece : piece;
            }
            limb += 2;
        }
    }

    std::array<std::int64_t, limb_count> limbs_{};
};

// Doubles between these ends have room for all sums and products in double arithmetic.
constexpr double small = 0x1p-900;
constexpr double large = 0x1p+1000;

// mantissa * 2^exponent, where a double would have no room for the result.
struct Scaled {
    double mantissa = 0.0;
    int exponent = 0;
};

Scaled split_of(double x) {
    Scaled parts;
    parts.mantissa = std::frexp(x, &parts.exponent);
    return parts;
}

Scaled sum_of(const Scaled& a, const Scaled& b) {
    if (a.mantissa == 0.0 || b.mantissa == 0.0)
        return a.mantissa == 0.0 ? b : a;
    const int common = std::max(a.exponent, b.exponent);
    return {
        std::ldexp(a.mantissa, a.exponent - common) + std::ldexp(b.mantissa, b.exponent - common),
        common};
}

double quotient_of(const Scaled& a, const Scaled& b) {
    return std::ldexp(a.mantissa / b.mantissa, a.exponent - b.exponent);
}

Scaled distance_of(double golden, double value) {
    const Scaled sum = sum_of(split_of(value), split_of(-golden));
    return {std::fabs(sum.mantissa), sum.exponent};
}

Scaled bound_of(double golden, double atol, double rtol) {
    const Scaled g = split_of(std::fabs(golden));
    const Scaled r = split_of(rtol);
    return sum_of(split_of(atol), {r.mantissa * g.mantissa, r.exponent + g.exponent});
}

}  // namespace

double share_of_bound(double golden, double value, double atol, double rtol) {
    if (golden == value)
        return 0.0;
    const double difference = std::fabs(value - golden);
    const double bound = atol + rtol * std::fabs(golden);
    if (bound > small && bound < large && difference < large)
        return difference / bound;
    const Scaled exact = bound_of(golden, atol, rtol);
    if (exact.mantissa == 0.0)
        return std::numeric_limits<double>::infinity();
    return quotient_of(distance_of(golden, value), exact);
}

double relative_difference(double golden, double value) {
    const double difference = std::fabs(value - golden);
    if (difference < large)
        return difference / std::fabs(golden);
    return quotient_of(distance_of(golden, value), split_of(std::fabs(golden)));
}

bool within_bound(double golden, double value, double atol, double rtol) {
    const double difference = std::fabs(value - golden);
    const double bound = atol + rtol * std::fabs(golden);
    // Each side is within 2^-51 of the truth unless it has come near the ends of the exponent
    // range.
    if (bound > small && difference < large) {
        if (difference <= bound * (1.0 - 0x1p-49))
            return true;
        if (difference >= bound * (1.0 + 0x1p-49))
            return false;
    }
    ExactSum slack;
    slack.add(atol, false);
    slack.add_product(rtol, std::fabs(golden));
    // - |v - g| = - (larger - smaller)
    const double larger = value > golden ? value : golden;
    const double smaller = value > golden ? golden : value;
    slack.add(std::fabs(larger), larger > 0);
    slack.add(std::fabs(smaller), smaller < 0);
    return !slack.is_negative();
}

}  // namespace ciwrap
