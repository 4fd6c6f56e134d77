// Arrays of somebody else's that lie on a device: where, and in which order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ciwrap {

inline constexpr std::size_t max_array_dimensions = 32;

// Elements in C order of `shape`, by strides in bytes. No dimensions: back to back.
struct StridedLayout {
    std::uint32_t dimension_count = 0;
    std::uint64_t shape[max_array_dimensions] = {};
    std::int64_t strides[max_array_dimensions] = {};

    bool is_contiguous() const { return dimension_count == 0; }
};

// Memory that is not ours. Whoever made it keeps it until the call it was given to has returned.
struct DeviceArray {
    const std::uint8_t* data = nullptr;  // of the first element, in the device's memory
    std::uint64_t element_count = 0;
    std::uint32_t item_bytes = 1;  // of an element
    StridedLayout layout;
    int device_id = -1;  // -1: not told
    // The stream whose work so far makes the data, as CUDA numbers them (1: the legacy default
    // stream, 2: that of the thread); 0: the data are there.
    std::uintptr_t stream = 0;

    std::uint64_t byte_count() const { return element_count * item_bytes; }
};

// strides in bytes; empty for C order back to back. Dimensions that continue each other become one.
// Throws Error(invalid_argument) for more dimensions than max_array_dimensions, or a size beyond
// 2^60 bytes.
DeviceArray make_device_array(const void* data, std::span<const std::int64_t> shape,
                              std::span<const std::int64_t> strides, std::uint32_t item_bytes);

}  // namespace ciwrap
