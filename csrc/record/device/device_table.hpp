// Between the recording library and a second one, which hashes arrays on a device where they lie
// and is loaded when the first of them comes. Both are built from one source and of one version;
// nothing but plain data and functions goes from one to the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/level_kernels.hpp"

namespace ciwrap::record {

// Strides in bytes; extents and strides have an entry for each dimension.
struct DeviceMemory {
    const void* data;
    std::size_t dimensions;
    const std::int64_t* extents;
    const std::int64_t* strides;
    std::uint32_t element_bytes;
};

// Functions return whether it went well, and write why not into `why`. Safe from any thread.
struct DeviceTable {
    // All chunks of one or more trees of the array; batches' data are not looked at. Waits for the
    // program's default stream first. Data never come to the host.
    bool (*hash)(const DeviceMemory& memory, const ChunkBatch* batches, std::size_t batch_count,
                 std::uint64_t chunk_count, char* why, std::size_t why_bytes);
    // Elements [first, first + count) in index order, to the host.
    bool (*copy)(const DeviceMemory& memory, std::uint64_t first, std::uint64_t count,
                 std::byte* to, char* why, std::size_t why_bytes);
};

// What the second library exports: null for a library of another version.
using FindDeviceTable = const DeviceTable* (*)(const char* version);
inline constexpr char device_table_name[] = "ciwrap_record_device_table";

}  // namespace ciwrap::record
