// One block of elements against another, serially. Internal to csrc/core.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/element_compare.hpp"

namespace ciwrap {

struct CompareInput {
    const std::uint8_t* golden;
    const std::uint8_t* value;
    std::uint64_t element_count;
    std::uint64_t first_element;  // index of the block's first element in the array
};

// Elements of a block, at most.
inline constexpr std::uint64_t compare_block_elements = 16384;

using CompareFunction = void (*)(const TreeParameters& parameters, const QuantizePlan& plan,
                                 const DataType& type, const CompareInput& input,
                                 std::size_t max_indices, Comparison& result);

// Whatever the type and bound, element by element.
CompareFunction choose_compare(const QuantizePlan& plan);

class PieceTallies;

// The same result; tiles of numbers by vector kernels where there is one for the type and bound.
// `made`, if not null: a device has been over the piece that this block is `piece_element` elements
// into; the kernel is then not run. If input.golden is null, elements come from there too.
void compare_block(const TreeParameters& parameters, const QuantizePlan& plan, const DataType& type,
                   const CompareInput& input, std::size_t max_indices, Comparison& result,
                   const PieceTallies* made = nullptr, std::uint64_t piece_element = 0);

}  // namespace ciwrap
