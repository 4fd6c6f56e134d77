// What can be done with arrays on a device beside hashing. Kokkos stays behind this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ciwrap/device_array.hpp"
#include "kernels/executor.hpp"

namespace ciwrap {

// Throws Error(not_available) unless the array is memory of the device that `backend` computes on.
void require_here(Backend backend, const DeviceArray& array);

// `count` elements from `first` on, in C order, to host memory; waits for the array's stream and
// for the copy.
void copy_to_host(Backend backend, const DeviceArray& array, std::uint64_t first,
                  std::uint64_t count, std::byte* to);

// Host memory that a device copies from while the host goes on: locked as long as this lives, where
// the device wants that and the system permits it. Move-only.
class LockedMemory {
  public:
    LockedMemory() = default;
    LockedMemory(Backend backend, std::span<std::byte> memory);
    ~LockedMemory();
    LockedMemory(LockedMemory&& other) noexcept;
    LockedMemory& operator=(LockedMemory&& other) noexcept;
    LockedMemory(const LockedMemory&) = delete;
    LockedMemory& operator=(const LockedMemory&) = delete;

  private:
    void* locked_ = nullptr;
};

}  // namespace ciwrap
