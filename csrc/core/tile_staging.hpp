// Scalars as the vector kernel reads them: in place, or as doubles in a buffer. Internal to
// csrc/core.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/quantize_plan.hpp"
#include "ciwrap/parameters.hpp"
#include "ciwrap/scalar_type.hpp"
#include "kernels/compare_floats.hpp"

namespace ciwrap {

// Not for raw bytes. About 33 KiB, for the stack of the thread that compares.
class TileStaging {
  public:
    TileStaging(const TreeParameters& parameters, const QuantizePlan& plan, const DataType& type);

    // Tiles that go into one call, at most.
    std::size_t most_tiles() const { return is_in_place_ ? compare_tiles_per_block : staged_tiles; }
    // What the kernel is to be told of this many tiles of stored scalars; good until the next call.
    FloatComparison stage(const std::uint8_t* golden, const std::uint8_t* value,
                          std::size_t tile_count);

  private:
    static constexpr std::size_t staged_tiles = 64;
    static constexpr std::size_t staged_scalars = staged_tiles * compare_tile;

    // Takes fill values out of a tile, if that can be done: of one side, if both are the same.
    bool settle_fills(double* golden, double* value) const;

    const QuantizePlan& plan_;
    DataType type_;
    bool is_in_place_;
    FloatComparison told_;  // but for places and count
    double fills_[max_plan_fill_values];
    bool has_nan_fill_ = false;
    bool unfit_[staged_tiles];  // cannot be told by doubles
    alignas(64) double golden_[staged_scalars];
    alignas(64) double value_[staged_scalars];
};

}  // namespace ciwrap
