#include "core/tile_staging.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/executor.hpp"
#include "kernels/level_kernels.hpp"

namespace ciwrap {
namespace {

// Whole numbers up to here are doubles, and so are their differences as far as they matter.
constexpr double largest_exact = 0x1p+53;

double widened_fill(ScalarType scalar, std::uint64_t bits) {
    // Fill values are kept as the low bytes of little-endian scalars; so are they here.
    std::uint8_t bytes[sizeof bits];
    std::memcpy(bytes, &bits, sizeof bits);
    double fill = 0.0;
    compare_kernels().widen_scalars(scalar, bytes, false, 1, &fill);
    return fill;
}

// No difference of two such numbers is rounded.
bool has_large(const double* scalars) {
    double most = 0.0;
    for (std::size_t i = 0; i < compare_tile; ++i)
        most = std::max(most, std::fabs(scalars[i]));
    return most >= largest_exact;
}

}  // namespace

TileStaging::TileStaging(const TreeParameters& parameters, const QuantizePlan& plan,
                         const DataType& type)
    : plan_(plan),
      type_(type),
      is_in_place_((plan.scalar == ScalarType::float32 || plan.scalar == ScalarType::float64) &&
                   !type.big_endian && plan.fill_count == 0) {
    told_.scalar_bytes = is_in_place_ ? plan.scalar_bytes : sizeof(double);
    told_.scalars_per_element = type.scalars_per_element;
    told_.rtol = parameters.rtol();
    told_.equal_nan = plan.equal_nan;
    // Steps are those of the type itself: what is widened has lost them.
    told_.ulps = is_in_place_ ? parameters.ulps() : 0;
    told_.tell_equal_only = parameters.ulps() > 0 && !is_in_place_;
    told_.atol = is_integer(plan.scalar) ? static_cast<double>(parameters.allowed_steps())
                                         : parameters.atol();
    for (std::uint32_t i = 0; i < plan.fill_count; ++i) {
        fills_[i] = widened_fill(plan.scalar, plan.fill_bits[i]);
        has_nan_fill_ = has_nan_fill_ || std::isnan(fills_[i]);
    }
}

FloatComparison TileStaging::stage(const std::uint8_t* golden, const std::uint8_t* value,
                                   std::size_t tile_count) {
    FloatComparison told = told_;
    told.tile_count = tile_count;
    if (is_in_place_) {
        told.golden = golden;
        told.value = value;
        return told;
    }
    const std::size_t count = tile_count * compare_tile;
    // Equal bytes are widened once. Nobody takes differences of them, so that of whole numbers
    // which a double rounds only matters whether they are zero.
    const bool is_equal = std::memcmp(golden, value, count * plan_.scalar_bytes) == 0;
    double* const other = is_equal ? golden_ : value_;
    const CompareKernels& kernels = compare_kernels();
    kernels.widen_scalars(plan_.scalar, golden, type_.big_endian, count, golden_);
    if (!is_equal)
        kernels.widen_scalars(plan_.scalar, value, type_.big_endian, count, value_);
    const bool may_be_large =
        !is_equal && (plan_.scalar == ScalarType::int64 || plan_.scalar == ScalarType::uint64);
    for (std::size_t tile = 0; tile < tile_count; ++tile) {
        const std::size_t first = tile * compare_tile;
        unfit_[tile] = may_be_large && (has_large(golden_ + first) || has_large(value_ + first));
        if (plan_.fill_count > 0 && !unfit_[tile])
            unfit_[tile] = !settle_fills(golden_ + first, other + first);
    }
    told.unfit = unfit_;
    told.golden = reinterpret_cast<const std::uint8_t*>(golden_);
    told.value = reinterpret_cast<const std::uint8_t*>(other);
    return told;
}

bool TileStaging::settle_fills(double* golden, double* value) const {
    const auto fills_of = [&](const double* side) {
        return compare_kernels().find_fills(side, fills_, plan_.fill_count, has_nan_fill_);
    };
    const std::uint32_t golden_fills = fills_of(golden);
    const std::uint32_t value_fills = value == golden ? golden_fills : fills_of(value);
    if (golden_fills == 0 && value_fills == 0)
        return true;
    if (golden_fills < compare_tile || value_fills < compare_tile)
        return false;
    // Missing on both sides: equal, and no numbers. So are infinities to the kernel.
    std::fill_n(golden, compare_tile, std::numeric_limits<double>::infinity());
    std::fill_n(value, compare_tile, std::numeric_limits<double>::infinity());
    return true;
}

}  // namespace ciwrap
