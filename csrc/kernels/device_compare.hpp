// Stage two's inner loop on a Kokkos device: what CompareKernels::compare_floats does, for many
// stretches at once. The same tallies, sums included. Kokkos stays behind this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/compare_floats.hpp"
#include "kernels/device_array.hpp"
#include "kernels/executor.hpp"

namespace ciwrap {

// A stretch of tiles: what FloatComparison says, with offsets into two regions.
struct CompareUnit {
    std::uint64_t golden_offset = 0;  // bytes; may be unaligned
    std::uint64_t value_offset = 0;
    double atol = 0.0;
    double rtol = 0.0;
    std::uint32_t tile_count = 0;
    std::uint32_t scalar_bytes = 0;
    std::uint32_t scalars_per_element = 1;
    std::uint32_t equal_nan = 1;
};

// Bytes to compare: host memory, or if `array` is given its elements from first_element on.
struct CompareRegion {
    const std::uint8_t* host = nullptr;
    const DeviceArray* array = nullptr;
    std::uint64_t first_element = 0;
    std::uint64_t byte_count = 0;
};

// Two comparisons, the turns 0 and 1, may be under way at a time, so that the data of the one come
// over while the other computes. One user at a time; not thread safe. The destructor waits.
class DeviceComparer {
  public:
    static constexpr std::size_t turn_count = 2;

    virtual ~DeviceComparer() = default;

    // Waits for the array's stream before whatever is begun later. Throws Error(not_available) as
    // require_here.
    virtual void accept(const DeviceArray& array) = 0;

    // Begins a turn; what it held before is lost. The regions must stay until wait(turn). Regions
    // of the same host memory are copied over once.
    virtual void begin(std::size_t turn, const CompareRegion& golden, const CompareRegion& value,
                       std::span<const CompareUnit> units) = 0;

    virtual void wait(std::size_t turn) = 0;

    // Until nothing is under way on any region; what was begun is lost.
    virtual void settle() noexcept = 0;

    // After wait(turn); safe from several threads.
    virtual void tally(std::size_t turn, std::size_t unit, FloatTally& tally) const = 0;

    // Bytes of a region of the turn, brought to the host; after wait(turn).
    virtual void fetch(std::size_t turn, bool is_golden, std::uint64_t offset, std::size_t bytes,
                       std::byte* to) = 0;
};

// For a device backend (is_device). Throws Error(not_available) if this build does not have it.
std::unique_ptr<DeviceComparer> make_device_comparer(Backend backend);

}  // namespace ciwrap
