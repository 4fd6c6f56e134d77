// Pieces of arrays that lie on a device, or go there: two waves under way at a time.
#include <algorithm>
#include <vector>

#include "ciwrap/error.hpp"
#include "core/compare_block.hpp"
#include "core/piece_comparer.hpp"
#include "core/piece_tallies.hpp"

namespace ciwrap {
namespace {

// Of either side; whole blocks. Where both lie on the device, a wave has to have work for all of
// its multiprocessors; what is copied or gathered takes room there, and comes slower than it is
// compared.
constexpr std::uint64_t copied_wave_bytes = std::uint64_t{8} << 20;
constexpr std::uint64_t resident_wave_bytes = std::uint64_t{256} << 20;

std::uint64_t wave_bytes(const ComparedSide& golden, const ComparedSide& value) {
    for (const ComparedSide* side : {&golden, &value}) {
        if (side->array == nullptr || !side->array->layout.is_contiguous())
            return copied_wave_bytes;
    }
    return resident_wave_bytes;
}

// A wave that a device has been over.
class Wave final : public PieceTallies {
  public:
    Wave(DeviceComparer& device, std::size_t turn, const DataType& type, std::uint64_t count)
        : device_(device), turn_(turn), element_bytes_(type.element_bytes()), count_(count) {}

    void tally(std::uint64_t unit, FloatTally& tally) const override {
        device_.tally(turn_, static_cast<std::size_t>(unit), tally);
    }

    // A whole block at a time: where one element is wanted, more are to be expected.
    CompareInput elements(std::uint64_t first, std::uint64_t count) const override {
        const std::uint64_t block = first / compare_block_elements * compare_block_elements;
        if (block != held_ || golden_.empty()) {
            const std::uint64_t in_block = std::min(compare_block_elements, count_ - block);
            golden_.resize(static_cast<std::size_t>(in_block * element_bytes_));
            value_.resize(golden_.size());
            device_.fetch(turn_, true, block * element_bytes_, golden_.size(), golden_.data());
            device_.fetch(turn_, false, block * element_bytes_, value_.size(), value_.data());
            held_ = block;
        }
        const std::uint64_t at = (first - block) * element_bytes_;
        return {reinterpret_cast<const std::uint8_t*>(golden_.data()) + at,
                reinterpret_cast<const std::uint8_t*>(value_.data()) + at, count, 0};
    }

  private:
    DeviceComparer& device_;
    std::size_t turn_;
    std::uint64_t element_bytes_;
    std::uint64_t count_;
    mutable std::uint64_t held_ = 0;
    mutable std::vector<std::byte> golden_;
    mutable std::vector<std::byte> value_;
};

const std::uint8_t* at(std::span<const std::byte> bytes, std::uint64_t offset) {
    return reinterpret_cast<const std::uint8_t*>(bytes.data()) + offset;
}

}  // namespace

void PieceComparer::update_device(const ComparedSide& golden, const ComparedSide& value,
                                  std::uint64_t first_element, std::uint64_t element_count) {
    if (!is_device(backend_)) {
        throw Error(ErrorCode::invalid_argument,
                    "arrays on a device cannot be compared by a host backend");
    }
    const std::uint64_t element_bytes = type_.element_bytes();
    for (const ComparedSide* side : {&golden, &value}) {
        const bool fits = side->array == nullptr
                              ? side->bytes.size() == element_count * element_bytes
                              : side->array->item_bytes == element_bytes &&
                                    first_element <= side->array->element_count &&
                                    element_count <= side->array->element_count - first_element;
        if (!fits) {
            throw Error(ErrorCode::invalid_argument,
                        "the two pieces to compare must be equally long and hold whole values");
        }
    }
    begin_piece(first_element, element_count);
    const std::uint64_t most = is_on_device_ ? wave_bytes(golden, value) : copied_wave_bytes;
    const std::uint64_t step =
        std::max<std::uint64_t>(1, most / element_bytes / compare_block_elements) *
        compare_block_elements;

    if (!is_on_device_) {
        std::vector<std::byte> brought[2];
        for (std::uint64_t done = 0; done < element_count; done += step) {
            const std::uint64_t count = std::min(step, element_count - done);
            const std::uint8_t* sides[2];
            for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
                const ComparedSide& side = i == 0 ? golden : value;
                sides[i] = at(side.bytes, done * element_bytes);
                if (side.array == nullptr)
                    continue;
                brought[i].resize(static_cast<std::size_t>(count * element_bytes));
                copy_to_host(backend_, *side.array, first_element + done, count, brought[i].data());
                sides[i] = at(brought[i], 0);
            }
            compare_piece(sides[0], sides[1], first_element + done, count, nullptr);
        }
        return;
    }

    DeviceComparer& device = this->device();
    for (const ComparedSide* side : {&golden, &value}) {
        if (side->array != nullptr)
            device.accept(*side->array);
    }
    std::vector<CompareUnit> units;
    const auto begin = [&](std::size_t turn, std::uint64_t done) {
        const std::uint64_t count = std::min(step, element_count - done);
        const auto region = [&](const ComparedSide& side) {
            CompareRegion made;
            made.array = side.array;
            made.first_element = first_element + done;
            made.host = at(side.bytes, done * element_bytes);
            made.byte_count = count * element_bytes;
            return made;
        };
        units.clear();
        append_units(parameters_, type_, 0, 0, count, units);
        device.begin(turn, region(golden), region(value), units);
    };
    // Host memory is at hand for what the device leaves to the host.
    const bool is_on_host = golden.array == nullptr && value.array == nullptr;
    std::size_t turn = 0;
    try {
        if (element_count > 0)
            begin(turn, 0);
        for (std::uint64_t done = 0; done < element_count; done += step, turn ^= 1) {
            if (done + step < element_count)
                begin(turn ^ 1, done + step);
            device.wait(turn);
            const std::uint64_t count = std::min(step, element_count - done);
            const Wave wave(device, turn, type_, count);
            compare_piece(is_on_host ? at(golden.bytes, done * element_bytes) : nullptr,
                          is_on_host ? at(value.bytes, done * element_bytes) : nullptr,
                          first_element + done, count, &wave);
        }
    } catch (...) {
        device.settle();  // the caller's arrays may go as soon as the caller has the error
        throw;
    }
}

}  // namespace ciwrap
