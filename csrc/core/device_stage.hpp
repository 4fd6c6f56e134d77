// Where a streaming comparison hands its slices to a device: one is copied over and compared there
// while the results of the one before are gone through. Internal to csrc/core.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/piece_tallies.hpp"
#include "core/read_plan.hpp"
#include "kernels/device_array.hpp"
#include "kernels/device_compare.hpp"

namespace ciwrap {

// Two turns, 0 and 1, as DeviceComparer has them. The destructor waits for what is under way.
class DeviceStage {
  public:
    // Throws Error(not_available) if this build does not have the backend.
    explicit DeviceStage(Backend backend);

    // Memory that slices will lie in, from now until this is gone.
    void lock(std::span<std::byte> memory);

    // Begins to compare those pieces of a slice that are wanted and whose type has a kernel. All
    // lie in one stretch of memory, which must stay as it is until wait(turn).
    void begin(std::size_t turn, std::span<const Piece> pieces, const std::vector<bool>& wanted);

    void wait(std::size_t turn);

    // After wait(turn): what the device has made of a piece; null if it has not seen it. Valid
    // until the turn begins anew.
    const PieceTallies* tallies(std::size_t turn, std::size_t piece) const;

  private:
    class Staged;

    Backend backend_;
    std::vector<LockedMemory> locked_;
    std::unique_ptr<DeviceComparer> device_;
    std::vector<CompareUnit> units_;
    std::array<std::vector<std::unique_ptr<const PieceTallies>>, DeviceComparer::turn_count>
        pieces_;
};

}  // namespace ciwrap
