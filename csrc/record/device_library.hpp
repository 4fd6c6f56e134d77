// The library for arrays on a device, which is loaded when the first of them comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "record/device/device_table.hpp"

namespace ciwrap::record {

class DeviceLibrary {
  public:
    // Throws Error(not_available), saying why, where there is none for this one.
    static const DeviceLibrary& get();

    // Throw Error(not_available) with what the device said.
    void hash(const DeviceMemory& memory, std::span<const ChunkBatch> batches,
              std::uint64_t chunk_count) const;
    void copy(const DeviceMemory& memory, std::uint64_t first, std::uint64_t count,
              std::byte* to) const;

  private:
    DeviceLibrary();

    const DeviceTable* table_ = nullptr;
    std::string fault_;  // why there is none
};

}  // namespace ciwrap::record
