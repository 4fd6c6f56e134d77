#include <algorithm>
#include <bit>
#include <cstring>

#include "ciwrap/compare.hpp"
#include "ciwrap/error.hpp"
#include "core/compare_block.hpp"
#include "kernels/floating_point_mode.hpp"

namespace ciwrap {
namespace {

// Where a float stands in the order of all floats of its size, from 0 at zero.
template <class Bits>
std::int64_t place_of(const std::byte* at, bool swap) {
    std::byte bytes[sizeof(Bits)];
    std::memcpy(bytes, at, sizeof bytes);
    if (swap)
        std::reverse(std::begin(bytes), std::end(bytes));
    const auto bits = std::bit_cast<Bits>(bytes);
    constexpr auto sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
    const auto steps = static_cast<std::int64_t>(bits & static_cast<Bits>(~sign));
    return (bits & sign) != 0 ? -steps : steps;
}

template <class Bits>
std::uint64_t steps_between(const std::byte* a, const std::byte* b, bool swap) {
    const std::int64_t x = place_of<Bits>(a, swap);
    const std::int64_t y = place_of<Bits>(b, swap);
    return x > y ? static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)
                 : static_cast<std::uint64_t>(y) - static_cast<std::uint64_t>(x);
}

std::optional<std::uint64_t> ulps_between(const DataType& type, const std::byte* a,
                                          const std::byte* b) {
    if (type.scalars_per_element != 1)
        return std::nullopt;
    switch (type.scalar) {
        case ScalarType::float16:
            return steps_between<std::uint16_t>(a, b, type.big_endian);
        case ScalarType::float32:
            return steps_between<std::uint32_t>(a, b, type.big_endian);
        case ScalarType::float64:
            return steps_between<std::uint64_t>(a, b, type.big_endian);
        default:
            return std::nullopt;
    }
}

}  // namespace

std::vector<ElementDifference> compare_each(const TreeParameters& parameters,
                                            std::span<const std::byte> golden,
                                            std::span<const std::byte> value) {
    const level_kokkos::FloatingPointMode ieee;
    const QuantizePlan plan = make_plan(parameters);
    const DataType type = parameters.data_type();
    const auto element_bytes = static_cast<std::size_t>(type.element_bytes());
    if (golden.size() != value.size() || golden.size() % element_bytes != 0) {
        throw Error(ErrorCode::invalid_argument,
                    "both sides must be equally long and hold whole values");
    }
    const CompareFunction compare = choose_compare(plan);
    std::vector<ElementDifference> found(golden.size() / element_bytes);
    for (std::size_t i = 0; i < found.size(); ++i) {
        const std::byte* ours = golden.data() + i * element_bytes;
        const std::byte* theirs = value.data() + i * element_bytes;
        Comparison one;
        compare(parameters, plan, type,
                {reinterpret_cast<const std::uint8_t*>(ours),
                 reinterpret_cast<const std::uint8_t*>(theirs), 1, 0},
                0, one);
        if (plan.scalar == ScalarType::raw || one.nan_mismatch_count > 0 ||
            one.inf_mismatch_count > 0 || one.missing_mismatch_count > 0) {
            continue;
        }
        found[i].abs_difference = one.max_abs_difference;
        found[i].bound_share = one.max_bound_share;
        if (one.max_rel_index >= 0)
            found[i].rel_difference = one.max_rel_difference;
        found[i].ulps = ulps_between(type, ours, theirs);
    }
    return found;
}

}  // namespace ciwrap
