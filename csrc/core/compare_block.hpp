// One block of elements against another, serially. Internal to csrc/core.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/quantize_plan.hpp"
#include "ciwrap/compare.hpp"

namespace ciwrap {

struct CompareInput {
    const std::uint8_t* golden;
    const std::uint8_t* value;
    std::uint64_t element_count;
    std::uint64_t first_element;  // index of the block's first element in the array
};

// Elements of a block, at most.
inline constexpr std::uint64_t compare_block_elements = 16384;

// Notes the chunks of differing elements. Remembers the last one: neighbours often differ together.
class LeafMarker {
  public:
    LeafMarker(const QuantizePlan& plan, const DataType& type, LeafSet& leaves)
        : leaves_(leaves), leaf_elements_(plan.chunk_scalars / type.scalars_per_element) {}

    void mark(std::uint64_t element) {
        if (is_marked(element))
            return;
        const std::uint64_t leaf = element / leaf_elements_;
        first_ = leaf * leaf_elements_;
        count_ = leaf_elements_;
        leaves_.insert(leaf);
    }

    // Elements first, first + 1, ..., a bit each from the lowest on.
    void mark(std::uint64_t first, std::uint32_t elements) {
        if (is_marked(first) && is_marked(first + 31))
            return;
        for (; elements != 0; elements &= elements - 1)
            mark(first + static_cast<std::uint64_t>(std::countr_zero(elements)));
    }

  private:
    bool is_marked(std::uint64_t element) const { return element - first_ < count_; }

    LeafSet& leaves_;
    std::uint64_t leaf_elements_;
    std::uint64_t first_ = 0;  // of the elements of the chunk that was marked last
    std::uint64_t count_ = 0;
};

using CompareFunction = void (*)(const TreeParameters& parameters, const QuantizePlan& plan,
                                 const DataType& type, const CompareInput& input,
                                 std::size_t max_indices, Comparison& result);

// Whatever the type and bound, element by element (compare_scalars.cpp): where NaN, infinities and
// fill values are decided.
CompareFunction choose_compare(const QuantizePlan& plan);

class PieceTallies;

// The same result; tiles of numbers by vector kernels where there is one for the type and bound.
// `made`, if not null: a device has been over the piece that this block is `piece_element` elements
// into; the kernel is then not run. If input.golden is null, elements come from there too.
void compare_block(const TreeParameters& parameters, const QuantizePlan& plan, const DataType& type,
                   const CompareInput& input, std::size_t max_indices, Comparison& result,
                   const PieceTallies* made = nullptr, std::uint64_t piece_element = 0);

}  // namespace ciwrap
