// What a device has made of a piece of two arrays, and how a piece is cut for it. Internal to
// csrc/core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/compare_block.hpp"
#include "kernels/device_compare.hpp"

namespace ciwrap {

// Whether there is a kernel for this type and bound: on devices, and in vectors on hosts.
bool has_compare_kernel(const TreeParameters& parameters, const DataType& type);

// The tallies of a piece, made in advance. Units are counted as append_units cuts them.
class PieceTallies {
  public:
    virtual ~PieceTallies() = default;

    // Safe from several threads.
    virtual void tally(std::uint64_t unit, FloatTally& tally) const = 0;

    // Elements [first, first + count) of the piece, of a block; where the piece lies on a device
    // they are brought over, and stay until the next call. Not asked for otherwise.
    virtual CompareInput elements(std::uint64_t first, std::uint64_t count) const = 0;
};

// The whole tiles of a piece of `element_count` elements, block by block, offsets from those given.
void append_units(const TreeParameters& parameters, const DataType& type,
                  std::uint64_t golden_offset, std::uint64_t value_offset,
                  std::uint64_t element_count, std::vector<CompareUnit>& units);

// The index in append_units' order of the first unit of the block that begins at that element of
// the piece, a multiple of compare_block_elements.
std::uint64_t first_unit_of(const DataType& type, std::uint64_t element);

}  // namespace ciwrap
