#include "kernels/device_compare.hpp"

#include <Kokkos_Core.hpp>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/device_compare_kernel.hpp"
#include "kernels/device_space.hpp"
#include "kernels/floating_point_mode.hpp"

namespace ciwrap {
namespace {

using device_compare::CompareFloats;
using device_compare::UnitTally;

template <class Space>
class KokkosComparer final : public DeviceComparer {
    using Traits = device::Traits<Space>;
    using Lane = device::Lane<Space>;

  public:
    ~KokkosComparer() override { lanes_.settle(); }

    void accept(const DeviceArray& array) override {
        require_here(std::is_same_v<Space, Kokkos::Serial> ? Backend::portable : Backend::cuda,
                     array);
        [[maybe_unused]] const typename Traits::Guard guard;
        if (array.stream != 0)
            Traits::wait_for_stream(array.stream);
    }

    void begin(std::size_t turn, const CompareRegion& golden, const CompareRegion& value,
               std::span<const CompareUnit> units) override {
        [[maybe_unused]] const typename Traits::Guard guard;
        const level_kokkos::FloatingPointMode ieee;  // where the device is the host
        Lane& lane = lanes_[turn];
        Turn& now = turns_[turn];
        Traits::wait(lane.on);
        const bool is_shared = golden.array == nullptr && value.array == nullptr &&
                               golden.host == value.host && golden.byte_count == value.byte_count;
        now.units.assign(units.begin(), units.end());
        now.first_tiles.clear();
        std::uint64_t tile_count = 0;
        for (const CompareUnit& unit : units) {
            now.first_tiles.push_back(tile_count);
            tile_count += unit.tile_count;
        }

        const std::size_t golden_at = 0;
        const std::size_t value_at = is_shared ? golden_at : rounded(golden.byte_count);
        const std::size_t units_at = value_at + rounded(value.byte_count);
        const std::size_t first_tiles_at = units_at + rounded(units.size_bytes());
        const std::size_t input_bytes =
            first_tiles_at + rounded(units.size() * sizeof(std::uint64_t));
        std::uint8_t* input = lane.input.fit(input_bytes);
        std::uint8_t* staged = lane.staged_input.fit(input_bytes);
        now.golden = brought(lane, golden, input + golden_at, staged + golden_at);
        now.value =
            is_shared ? now.golden : brought(lane, value, input + value_at, staged + value_at);
        if (!units.empty()) {
            std::memcpy(staged + units_at, units.data(), units.size_bytes());
            std::memcpy(staged + first_tiles_at, now.first_tiles.data(),
                        units.size() * sizeof(std::uint64_t));
        }
        Traits::copy(lane.on, input + units_at, staged + units_at, input_bytes - units_at);

        now.differs_at = rounded(units.size() * sizeof(UnitTally));
        now.undecided_at = now.differs_at + rounded(tile_count * sizeof(std::uint32_t));
        now.output_bytes = now.undecided_at + rounded(tile_count);
        std::uint8_t* output = lane.output.fit(now.output_bytes);
        now.results = lane.staged_output.fit(now.output_bytes);
        CompareFloats<Space> kernel;
        kernel.golden = now.golden;
        kernel.value = now.value;
        kernel.units = reinterpret_cast<const CompareUnit*>(input + units_at);
        kernel.first_tiles = reinterpret_cast<const std::uint64_t*>(input + first_tiles_at);
        kernel.tallies = reinterpret_cast<UnitTally*>(output);
        kernel.differs = reinterpret_cast<std::uint32_t*>(output + now.differs_at);
        kernel.undecided = output + now.undecided_at;
        if (!units.empty()) {
            typename CompareFloats<Space>::Policy policy(lane.on, static_cast<int>(units.size()),
                                                         team_size());
            policy.set_scratch_size(0, Kokkos::PerTeam(sizeof(device_compare::Scratch) + 64));
            Kokkos::parallel_for("ciwrap::compare_floats", policy, kernel);
        }
        // What came from the host came slower than this goes back. Of arrays that lie here, the
        // bits of each scalar are fetched only if there is something in them.
        now.has_bits = golden.array == nullptr || value.array == nullptr;
        Traits::copy(lane.on, now.results, output,
                     now.has_bits ? now.output_bytes : now.differs_at);
    }

    void wait(std::size_t turn) override {
        [[maybe_unused]] const typename Traits::Guard guard;
        Lane& lane = lanes_[turn];
        Turn& now = turns_[turn];
        Traits::wait(lane.on);
        if (now.has_bits)
            return;
        bool any = false;
        for (std::size_t unit = 0; unit < now.units.size(); ++unit)
            any = any || result(now, unit).any_differs != 0 || result(now, unit).any_undecided != 0;
        if (any) {
            Traits::copy(lane.on, now.results + now.differs_at, lane.output.data() + now.differs_at,
                         now.output_bytes - now.differs_at);
            Traits::wait(lane.on);
        }
        now.has_bits = any;
    }

    void settle() noexcept override { lanes_.settle(); }

    void tally(std::size_t turn, std::size_t unit, FloatTally& tally) const override {
        const Turn& now = turns_[turn];
        const UnitTally& from = result(now, unit);
        tally = FloatTally{};
        tally.sum_abs_difference = from.sum_abs;
        tally.sum_rel_difference = from.sum_rel;
        tally.max_abs_difference = from.max_abs;
        tally.max_abs_scalar = from.max_abs_scalar;
        tally.max_rel_difference = from.max_rel;
        tally.max_rel_scalar = from.max_rel_scalar;
        tally.max_bound_share = from.max_share;
        tally.finite_count = from.finite_count;
        tally.nonzero_count = from.nonzero_count;
        for (std::size_t bin = 0; bin < share_bins; ++bin)
            tally.histogram[bin] = from.histogram[bin];
        if (from.any_differs == 0 && from.any_undecided == 0)
            return;
        const std::uint64_t first = now.first_tiles[unit];
        std::memcpy(tally.differs, now.results + now.differs_at + first * sizeof(std::uint32_t),
                    now.units[unit].tile_count * sizeof(std::uint32_t));
        for (std::uint32_t tile = 0; tile < now.units[unit].tile_count; ++tile)
            tally.undecided[tile] = now.results[now.undecided_at + first + tile] != 0;
    }

    void fetch(std::size_t turn, bool is_golden, std::uint64_t offset, std::size_t bytes,
               std::byte* to) override {
        [[maybe_unused]] const typename Traits::Guard guard;
        const Turn& now = turns_[turn];
        Traits::copy(lanes_[turn].on, to, (is_golden ? now.golden : now.value) + offset, bytes);
        Traits::wait(lanes_[turn].on);
    }

  private:
    struct Turn {
        std::vector<CompareUnit> units;
        std::vector<std::uint64_t> first_tiles;
        const std::uint8_t* golden = nullptr;  // on the device
        const std::uint8_t* value = nullptr;
        std::uint8_t* results = nullptr;  // on the host
        std::size_t differs_at = 0;
        std::size_t undecided_at = 0;
        std::size_t output_bytes = 0;
        bool has_bits = true;
    };

    static std::size_t rounded(std::uint64_t bytes) {
        return (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
    }

    static int team_size() { return std::is_same_v<Space, Kokkos::Serial> ? 1 : 64; }

    static const UnitTally& result(const Turn& turn, std::size_t unit) {
        return reinterpret_cast<const UnitTally*>(turn.results)[unit];
    }

    // Where a region's bytes are on the device, or will be.
    static const std::uint8_t* brought(Lane& lane, const CompareRegion& region, std::uint8_t* room,
                                       std::uint8_t* staged) {
        if (region.array != nullptr) {
            return device::in_order(lane.on, *region.array, region.array->item_bytes,
                                    region.first_element,
                                    region.byte_count / region.array->item_bytes, room);
        }
        const std::uint8_t* from = region.host;
        if (region.byte_count > 0 && !Traits::is_pinned(from, region.byte_count)) {
            std::memcpy(staged, from, region.byte_count);
            from = staged;
        }
        Traits::copy(lane.on, room, from, region.byte_count);
        return room;
    }

    device::Lanes<Space> lanes_;
    Turn turns_[turn_count];
};

}  // namespace

static_assert(DeviceComparer::turn_count == device::lane_count);

std::unique_ptr<DeviceComparer> make_device_comparer(Backend backend) {
    return device::with_space(backend, [](auto in) -> std::unique_ptr<DeviceComparer> {
        using Space = typename decltype(in)::Space;
        [[maybe_unused]] const typename device::Traits<Space>::Guard guard;
        return std::make_unique<KokkosComparer<Space>>();
    });
}

}  // namespace ciwrap
