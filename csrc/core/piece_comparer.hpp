// What ElementComparer is made of; takes what a device has made of a piece, too. Internal to
// csrc/core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/quantize_plan.hpp"
#include "ciwrap/compare.hpp"
#include "kernels/device_compare.hpp"
#include "kernels/executor.hpp"

namespace ciwrap {

class PieceTallies;

// As ElementComparer says.
class PieceComparer {
  public:
    PieceComparer(TreeParameters parameters, std::size_t max_indices, Execution execution,
                  Interrupt interrupt = {});

    // Equally long pieces of whole elements, both in the byte order of `parameters`. Pieces in
    // ascending order, gaps allowed. Error(invalid_argument) otherwise.
    void update(std::span<const std::byte> golden, std::span<const std::byte> value,
                std::uint64_t first_element);

    // The same for a piece that a device has been over already.
    void update(std::span<const std::byte> golden, std::span<const std::byte> value,
                std::uint64_t first_element, const PieceTallies& made);

    // The same for pieces of which at least one lies on the device of the backend. What has no
    // kernel there is brought over, a few MiB at a time. Error(invalid_argument) for a host
    // backend; not_available as require_here.
    void update_device(const ComparedSide& golden, const ComparedSide& value,
                       std::uint64_t first_element, std::uint64_t element_count);

    const Comparison& result() const { return result_; }

  private:
    void begin_piece(std::uint64_t first_element, std::uint64_t count);
    void compare_piece(const std::uint8_t* golden, const std::uint8_t* value,
                       std::uint64_t first_element, std::uint64_t count, const PieceTallies* made);
    DeviceComparer& device();

    TreeParameters parameters_;
    QuantizePlan plan_;
    DataType type_;
    std::size_t max_indices_;
    Execution execution_;  // of a host
    Backend backend_;
    bool is_on_device_;
    std::unique_ptr<DeviceComparer> device_;  // made when it is needed
    Interrupt interrupt_;
    std::uint64_t next_element_ = 0;
    Comparison result_;
};

}  // namespace ciwrap
