#include "core/device_stage.hpp"

#include <algorithm>

#include "ciwrap/error.hpp"

namespace ciwrap {

class DeviceStage::Staged final : public PieceTallies {
  public:
    Staged(const DeviceComparer& device, std::size_t turn, std::size_t first_unit)
        : device_(device), turn_(turn), first_unit_(first_unit) {}

    void tally(std::uint64_t unit, FloatTally& tally) const override {
        device_.tally(turn_, first_unit_ + static_cast<std::size_t>(unit), tally);
    }

    CompareInput elements(std::uint64_t, std::uint64_t) const override {
        throw Error(ErrorCode::invalid_argument, "the values of a slice are on the host");
    }

  private:
    const DeviceComparer& device_;
    std::size_t turn_;
    std::size_t first_unit_;
};

DeviceStage::DeviceStage(Backend backend)
    : backend_(backend), device_(make_device_comparer(backend)) {}

void DeviceStage::lock(std::span<std::byte> memory) {
    locked_.emplace_back(backend_, memory);
}

void DeviceStage::begin(std::size_t turn, std::span<const Piece> pieces,
                        const std::vector<bool>& wanted) {
    const std::byte* from = nullptr;
    const std::byte* to = nullptr;
    const auto goes = [&](std::size_t i) {
        const TreeParameters& parameters = pieces[i].job->job.parameters;
        return wanted[i] && has_compare_kernel(parameters, parameters.data_type());
    };
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (!goes(i))
            continue;
        for (const std::byte* side : {pieces[i].golden, pieces[i].value}) {
            from = from == nullptr ? side : std::min(from, side);
            to = to == nullptr ? side + pieces[i].length : std::max(to, side + pieces[i].length);
        }
    }
    units_.clear();
    pieces_[turn].clear();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Piece& piece = pieces[i];
        if (!goes(i)) {
            pieces_[turn].push_back(nullptr);
            continue;
        }
        const TreeParameters& parameters = piece.job->job.parameters;
        const DataType type = parameters.data_type();
        pieces_[turn].push_back(std::make_unique<Staged>(*device_, turn, units_.size()));
        append_units(parameters, type, static_cast<std::uint64_t>(piece.golden - from),
                     static_cast<std::uint64_t>(piece.value - from),
                     piece.length / type.element_bytes(), units_);
    }
    CompareRegion region;
    region.host = reinterpret_cast<const std::uint8_t*>(from);
    region.byte_count = static_cast<std::uint64_t>(to - from);
    device_->begin(turn, region, region, units_);
}

void DeviceStage::wait(std::size_t turn) {
    device_->wait(turn);
}

const PieceTallies* DeviceStage::tallies(std::size_t turn, std::size_t piece) const {
    return pieces_[turn][piece].get();
}

}  // namespace ciwrap
