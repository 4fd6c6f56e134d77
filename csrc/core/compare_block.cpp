#include <algorithm>
#include <bit>
#include <cstring>

#include "core/compare_block.hpp"
#include "core/piece_tallies.hpp"
#include "core/tile_staging.hpp"
#include "kernels/compare_floats.hpp"
#include "kernels/executor.hpp"
#include "kernels/floating_point_mode.hpp"

namespace ciwrap {
namespace {

// Elements that differ, a bit each, in the lower half where an element is two scalars.
std::uint32_t elements_of(std::uint32_t scalars, std::uint32_t scalars_per_element) {
    if (scalars_per_element == 1)
        return scalars;
    std::uint32_t bits = (scalars | scalars >> 1) & 0x55555555;
    bits = (bits | bits >> 1) & 0x33333333;
    bits = (bits | bits >> 2) & 0x0f0f0f0f;
    bits = (bits | bits >> 4) & 0x00ff00ff;
    return (bits | bits >> 8) & 0x0000ffff;
}

void add_differing(std::uint32_t elements, std::uint64_t first_element, std::size_t max_indices,
                   LeafMarker& marker, Comparison& result) {
    marker.mark(first_element, elements);
    result.differing_count += static_cast<std::uint64_t>(std::popcount(elements));
    for (; elements != 0; elements &= elements - 1) {
        const auto index = static_cast<std::int64_t>(first_element) + std::countr_zero(elements);
        if (result.first_index < 0)
            result.first_index = index;
        if (result.indices.size() >= max_indices)
            return;
        result.indices.push_back(index);
    }
}

// The first of the largest: what was found element by element may stand behind it.
void take_first_of_largest(double& largest, std::int64_t& index, double candidate,
                           std::int64_t candidate_index) {
    if (candidate_index < 0)
        return;
    if (index < 0 || candidate > largest || (candidate == largest && candidate_index < index)) {
        largest = candidate;
        index = candidate_index;
    }
}

// Bytes and texts have no difference, only equality.
template <class Each>
void compare_raw_tiles(const DataType& type, const CompareInput& input, const Each& each,
                       Comparison& result) {
    for (std::uint64_t first = 0; first < input.element_count; first += compare_tile) {
        const std::uint64_t count =
            std::min<std::uint64_t>(compare_tile, input.element_count - first);
        const std::uint64_t at = first * type.element_bytes();
        if (std::memcmp(input.golden + at, input.value + at,
                        static_cast<std::size_t>(count * type.element_bytes())) == 0) {
            result.element_count += count;
            result.histogram[0] += count;
        } else {
            each(first, count);
        }
    }
}

}  // namespace

bool has_compare_kernel(const TreeParameters& parameters, const DataType& type) {
    return (type.scalar == ScalarType::float32 || type.scalar == ScalarType::float64) &&
           !type.big_endian && parameters.fill_bits().empty() && parameters.ulps() == 0;
}

void append_units(const TreeParameters& parameters, const DataType& type,
                  std::uint64_t golden_offset, std::uint64_t value_offset,
                  std::uint64_t element_count, std::vector<CompareUnit>& units) {
    const std::uint64_t tile_elements = compare_tile / type.scalars_per_element;
    for (std::uint64_t block = 0; block < element_count; block += compare_block_elements) {
        const std::uint64_t tiles =
            std::min(compare_block_elements, element_count - block) / tile_elements;
        for (std::uint64_t first = 0; first < tiles; first += compare_tiles_per_block) {
            const std::uint64_t at = (block + first * tile_elements) * type.element_bytes();
            CompareUnit unit;
            unit.golden_offset = golden_offset + at;
            unit.value_offset = value_offset + at;
            unit.atol = parameters.atol();
            unit.rtol = parameters.rtol();
            unit.tile_count = static_cast<std::uint32_t>(
                std::min<std::uint64_t>(tiles - first, compare_tiles_per_block));
            unit.scalar_bytes = type.scalar_bytes;
            unit.scalars_per_element = type.scalars_per_element;
            unit.equal_nan = parameters.equal_nan() ? 1 : 0;
            units.push_back(unit);
        }
    }
}

std::uint64_t first_unit_of(const DataType& type, std::uint64_t element) {
    static_assert(compare_block_elements == compare_tile * compare_tiles_per_block);
    return element / compare_block_elements * type.scalars_per_element;
}

void compare_block(const TreeParameters& parameters, const QuantizePlan& plan, const DataType& type,
                   const CompareInput& input, std::size_t max_indices, Comparison& result,
                   const PieceTallies* made, std::uint64_t piece_element) {
    const level_kokkos::FloatingPointMode ieee;
    const CompareFunction compare_each = choose_compare(plan);
    const auto each = [&](std::uint64_t element, std::uint64_t count) {
        if (input.golden == nullptr) {
            CompareInput brought = made->elements(piece_element + element, count);
            brought.first_element = input.first_element + element;
            return compare_each(parameters, plan, type, brought, max_indices, result);
        }
        const std::uint64_t at = element * type.element_bytes();
        compare_each(parameters, plan, type,
                     {input.golden + at, input.value + at, count, input.first_element + element},
                     max_indices, result);
    };
    if (plan.scalar == ScalarType::raw)
        return compare_raw_tiles(type, input, each, result);

    const std::uint64_t parts = type.scalars_per_element;
    const std::uint64_t tile_elements = compare_tile / parts;
    const std::uint64_t tiles = input.element_count / tile_elements;
    TileStaging staging(parameters, plan, type);
    LeafMarker marker(plan, type, result.differing_leaves);
    FloatTally tally;
    for (std::uint64_t first = 0; first < tiles;) {
        const std::uint64_t at = first * tile_elements * type.element_bytes();
        const auto count =
            static_cast<std::size_t>(std::min<std::uint64_t>(tiles - first, staging.most_tiles()));
        if (made != nullptr) {
            made->tally(first_unit_of(type, piece_element) + first / compare_tiles_per_block,
                        tally);
        } else {
            FloatComparison scalars = staging.stage(input.golden + at, input.value + at, count);
            tally = FloatTally{};
            compare_kernels().compare_floats(scalars, tally);
        }
        for (std::size_t tile = 0; tile < count; ++tile) {
            const std::uint64_t element = (first + tile) * tile_elements;
            if (tally.undecided[tile]) {
                each(element, tile_elements);
                continue;
            }
            result.element_count += tile_elements;
            const std::uint32_t differs = tally.differs[tile];
            if (differs != 0) {
                add_differing(elements_of(differs, type.scalars_per_element),
                              input.first_element + element, max_indices, marker, result);
            }
        }
        const auto index_of = [&](std::int64_t scalar) {
            return scalar < 0
                       ? scalar
                       : static_cast<std::int64_t>(input.first_element + first * tile_elements +
                                                   static_cast<std::uint64_t>(scalar) / parts);
        };
        take_first_of_largest(result.max_abs_difference, result.max_abs_index,
                              tally.max_abs_difference, index_of(tally.max_abs_scalar));
        take_first_of_largest(result.max_rel_difference, result.max_rel_index,
                              tally.max_rel_difference, index_of(tally.max_rel_scalar));
        result.max_bound_share = std::max(result.max_bound_share, tally.max_bound_share);
        result.sum_abs_difference += tally.sum_abs_difference;
        result.sum_rel_difference += tally.sum_rel_difference;
        result.finite_count += tally.finite_count;
        result.nonzero_count += tally.nonzero_count;
        for (std::size_t bin = 0; bin < share_bins; ++bin)
            result.histogram[bin] += tally.histogram[bin];
        first += count;
    }
    const std::uint64_t done = tiles * tile_elements;
    if (done < input.element_count)
        each(done, input.element_count - done);
}

}  // namespace ciwrap
