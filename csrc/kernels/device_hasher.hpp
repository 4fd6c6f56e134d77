// Hashing on a Kokkos device: one team of threads per chunk. Kokkos stays behind this header.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/device_array.hpp"
#include "kernels/executor.hpp"
#include "kernels/level_kernels.hpp"

namespace ciwrap {

// Two pieces of a batch are under way at a time: while one is hashed, another is copied over and
// the results of a third come back. One user at a time; not thread safe.
class DeviceHasher {
  public:
    virtual ~DeviceHasher() = default;

    // What LevelKernels::hash_chunks does for chunks [0, chunk_count) of the batch, whose memory is
    // the host's. The data have been taken when this returns; results arrive no later than
    // finish(), so where they go must stay until then. `histogram` as there.
    virtual void hash(const ChunkBatch& batch, std::uint64_t chunk_count,
                      std::uint64_t* histogram) = 0;

    // The same for data that lie on the device (batch.data is not looked at): the batch's scalars
    // are those of `array` from first_scalar on. No byte of them comes to the host. The array must
    // stay, unchanged, until finish().
    virtual void hash_resident(const DeviceArray& array, std::uint64_t first_scalar,
                               const ChunkBatch& batch, std::uint64_t chunk_count,
                               std::uint64_t* histogram) = 0;

    // What comes after waits for the array's stream. Throws Error(not_available) as require_here.
    virtual void accept(const DeviceArray& array) = 0;

    // Waits for all results.
    virtual void finish() = 0;
};

// For a device backend (is_device). Throws Error(not_available) if this build does not have it.
std::unique_ptr<DeviceHasher> make_device_hasher(Backend backend);

}  // namespace ciwrap
