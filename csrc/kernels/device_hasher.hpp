// Hashing on a Kokkos device: one team of threads per chunk. Kokkos stays behind this header.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/executor.hpp"
#include "kernels/level_kernels.hpp"

namespace ciwrap {

class DeviceHasher {
  public:
    virtual ~DeviceHasher() = default;

    // What LevelKernels::hash_chunks does for chunks [0, chunk_count) of the batch, whose memory is
    // the host's: copies it over, hashes, copies the results back. `histogram` as there.
    virtual void hash(const ChunkBatch& batch, std::uint64_t chunk_count,
                      std::uint64_t* histogram) = 0;
};

// For a device backend (is_device). Throws Error(not_available) if this build does not have it.
std::unique_ptr<DeviceHasher> make_device_hasher(Backend backend);

}  // namespace ciwrap
