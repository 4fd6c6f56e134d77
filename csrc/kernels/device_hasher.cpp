#include "kernels/device_hasher.hpp"

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/device_hash_kernels.hpp"
#include "kernels/device_hash_warp.hpp"
#include "kernels/device_space.hpp"
#include "kernels/floating_point_mode.hpp"

namespace ciwrap {
namespace {

using device_hash::DevicePiece;
using device_hash::HashLeaves;
using device_hash::HashWholeChunks;
using device_hash::max_levels;
using device_hash::PackResidues;

// Parts of one allocation, each at a multiple of what any access wants.
class Parts {
  public:
    std::size_t add(std::uint64_t bytes) {
        const std::size_t at = size_;
        size_ += (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
        return at;
    }
    std::size_t size() const { return size_; }

  private:
    std::size_t size_ = 0;
};

template <class Space>
class KokkosHasher final : public DeviceHasher {
    using Traits = device::Traits<Space>;
    using Lane = device::Lane<Space>;

  public:
    ~KokkosHasher() override { lanes_.settle(); }

    void hash(const ChunkBatch& batch, std::uint64_t chunk_count,
              std::uint64_t* histogram) override {
        [[maybe_unused]] const typename Traits::Guard guard;
        // Memory that the device can copy from by itself is not copied to such memory first.
        const bool is_pinned =
            batch.scalar_count > 0 &&
            Traits::is_pinned(batch.data, static_cast<std::size_t>(batch.scalar_count *
                                                                   batch.plan->scalar_bytes));
        settled_if_it_throws([&] {
            pieces(batch, chunk_count, host_piece_bytes, [&](std::uint64_t, const Piece& piece) {
                begin(piece, histogram, nullptr, 0, is_pinned);
            });
            if (is_pinned)
                drain_all();
        });
    }

    void hash_resident(const DeviceArray& array, std::uint64_t first_scalar,
                       const ChunkBatch& batch, std::uint64_t chunk_count,
                       std::uint64_t* histogram) override {
        [[maybe_unused]] const typename Traits::Guard guard;
        settled_if_it_throws([&] {
            pieces(batch, chunk_count, resident_piece_bytes,
                   [&](std::uint64_t first, const Piece& piece) {
                       begin(piece, histogram, &array, first_scalar + first, false);
                   });
        });
    }

    void accept(const DeviceArray& array) override {
        require_here(backend(), array);
        [[maybe_unused]] const typename Traits::Guard guard;
        if (array.stream != 0)
            Traits::wait_for_stream(array.stream);
    }

    void finish() override {
        [[maybe_unused]] const typename Traits::Guard guard;
        settled_if_it_throws([&] { drain_all(); });
    }

  private:
    // The caller's array may go as soon as the caller has the error.
    template <class Work>
    void settled_if_it_throws(Work&& work) {
        try {
            work();
        } catch (...) {
            lanes_.settle();
            for (UnderWay& under_way : under_way_)
                under_way.any = false;
            throw;
        }
    }

    static constexpr std::uint64_t host_piece_bytes = std::uint64_t{8} << 20;
    static constexpr std::uint64_t resident_piece_bytes = std::uint64_t{64} << 20;

    struct Piece {
        ChunkBatch batch;
        std::uint64_t chunk_count = 0;
    };

    // Where things are in a lane's two allocations, and for whom.
    struct UnderWay {
        bool any = false;
        Piece piece;
        std::uint64_t* histogram = nullptr;
        std::size_t leaves = 0;
        std::size_t residues = 0;
        std::size_t residue_bytes = 0;
        std::size_t leaf_levels = 0;
        std::size_t counts = 0;
    };

    static Backend backend() { return is_host ? Backend::portable : Backend::cuda; }

    // Calls body(first scalar, piece) for pieces of whole chunks.
    template <class Body>
    static void pieces(const ChunkBatch& batch, std::uint64_t chunk_count, std::uint64_t most_bytes,
                       Body&& body) {
        const QuantizePlan& plan = *batch.plan;
        const std::uint64_t chunk_bytes = plan.chunk_scalars * plan.scalar_bytes;
        const std::uint64_t step = std::max<std::uint64_t>(1, most_bytes / chunk_bytes);
        const std::uint64_t stride = plan.residue_bytes(plan.chunk_scalars);
        for (std::uint64_t first = 0; first < chunk_count; first += step) {
            Piece piece{batch, std::min(step, chunk_count - first)};
            const std::uint64_t scalar = first * plan.chunk_scalars;
            ChunkBatch& part = piece.batch;
            part.scalar_count =
                std::min(piece.chunk_count * plan.chunk_scalars, batch.scalar_count - scalar);
            part.leaves += first;
            if (part.data != nullptr)
                part.data += first * chunk_bytes;
            if (part.residues != nullptr)
                part.residues += first * stride;
            if (part.golden_residues != nullptr) {
                part.golden_residues += first * stride;
                part.golden_leaves += first;
                part.leaf_levels += first;
            }
            body(scalar, piece);
        }
    }

    // Gives a lane its next piece, once the last one's results are out of it.
    void begin(const Piece& piece, std::uint64_t* histogram, const DeviceArray* resident,
               std::uint64_t first_scalar, bool is_pinned) {
        const level_kokkos::FloatingPointMode ieee;  // where the device is the host
        Lane& lane = lanes_[next_];
        UnderWay& under_way = under_way_[next_];
        next_ = (next_ + 1) % device::lane_count;
        drain(lane, under_way);

        const ChunkBatch& batch = piece.batch;
        const QuantizePlan& plan = *batch.plan;
        const std::uint64_t data_bytes = batch.scalar_count * plan.scalar_bytes;
        const std::uint64_t residue_bytes = plan.total_residue_bytes(batch.scalar_count);
        DevicePiece on_device{};
        on_device.plan = plan;
        on_device.scalar_count = batch.scalar_count;
        on_device.against = batch.golden_residues != nullptr;

        Parts in;
        const bool is_direct = resident != nullptr && resident->layout.is_contiguous();
        const std::size_t data_at = in.add(is_direct ? 0 : data_bytes);
        const std::size_t golden_at = in.size();
        const std::size_t residues_at = in.add(on_device.against ? residue_bytes : 0);
        const std::size_t leaves_at =
            in.add(on_device.against ? piece.chunk_count * sizeof(Digest) : 0);
        std::uint8_t* input = lane.input.fit(in.size());
        // Only what is not copied directly is staged; a part that is has its room all the same.
        std::uint8_t* staged = lane.staged_input.fit(in.size());
        if (on_device.against) {
            std::memcpy(staged + residues_at, batch.golden_residues, residue_bytes);
            std::memcpy(staged + leaves_at, batch.golden_leaves,
                        piece.chunk_count * sizeof(Digest));
            Traits::copy(lane.on, input + golden_at, staged + golden_at, in.size() - golden_at);
        }
        if (resident != nullptr) {
            on_device.data = device::in_order(lane.on, *resident, plan.scalar_bytes, first_scalar,
                                              batch.scalar_count, input + data_at);
        } else {
            const std::uint8_t* from = batch.data;
            if (!is_pinned && data_bytes > 0) {
                std::memcpy(staged + data_at, batch.data, data_bytes);
                from = staged + data_at;
            }
            Traits::copy(lane.on, input + data_at, from, data_bytes);
            on_device.data = input + data_at;
        }
        on_device.golden_residues = input + residues_at;
        on_device.golden_leaves = reinterpret_cast<const Digest*>(input + leaves_at);

        Parts out;
        under_way.leaves = out.add(piece.chunk_count * sizeof(Digest));
        under_way.residue_bytes = batch.residues == nullptr ? 0 : residue_bytes;
        under_way.residues = out.add(under_way.residue_bytes);
        under_way.leaf_levels = out.add(on_device.against ? piece.chunk_count : 0);
        under_way.counts = out.add(on_device.against ? max_levels * sizeof(std::uint64_t) : 0);
        std::uint8_t* output = lane.output.fit(out.size());
        std::uint8_t* staged_output = lane.staged_output.fit(out.size());
        on_device.leaves = reinterpret_cast<Digest*>(output + under_way.leaves);
        on_device.residues = under_way.residue_bytes == 0 ? nullptr : output + under_way.residues;
        on_device.leaf_levels = output + under_way.leaf_levels;
        on_device.histogram = reinterpret_cast<unsigned long long*>(output + under_way.counts);
        if (on_device.against)
            Traits::clear(lane.on, on_device.histogram, max_levels * sizeof(std::uint64_t));

        launch(lane.on, on_device, piece.chunk_count, under_way.residue_bytes);
        Traits::copy(lane.on, staged_output, output, out.size());
        under_way.piece = piece;
        under_way.histogram = histogram;
        under_way.any = true;
    }

    // Whole chunks by warps where these can, the others by teams.
    static void launch(const Space& on, const DevicePiece& piece, std::uint64_t chunk_count,
                       std::uint64_t residue_bytes) {
        const QuantizePlan& plan = piece.plan;
        const std::uint64_t whole = piece.scalar_count / plan.chunk_scalars;
        const bool by_warps =
            whole > 0 && device_hash::fits_warps(piece) &&
            device_hash::with_compiled(piece, [&](auto compiled) {
                using Kernel = HashWholeChunks<Space, decltype(compiled)>;
                const std::uint64_t warps = warps_in_team;
                Kokkos::parallel_for(
                    "ciwrap::hash_whole_chunks",
                    typename Kernel::Policy(on, static_cast<int>((whole + warps - 1) / warps),
                                            static_cast<int>(warps), vector_length),
                    Kernel(piece, whole));
            });
        const std::uint64_t hashed = by_warps ? whole : 0;
        if (hashed < chunk_count) {
            typename HashLeaves<Space>::Policy policy(on, static_cast<int>(chunk_count - hashed),
                                                      Kokkos::AUTO);
            policy.set_scratch_size(0, Kokkos::PerTeam(sizeof(device_hash::Scratch) + 64));
            Kokkos::parallel_for("ciwrap::hash_leaves", policy, HashLeaves<Space>(piece, hashed));
        }
        const std::uint64_t packed = by_warps && device_hash::packs_in_warps(piece)
                                         ? whole * plan.residue_bytes(plan.chunk_scalars)
                                         : 0;
        if (packed < residue_bytes) {
            Kokkos::parallel_for("ciwrap::pack_residues",
                                 Kokkos::RangePolicy<Space, Kokkos::IndexType<std::uint64_t>>(
                                     on, 0, residue_bytes - packed),
                                 PackResidues{piece, packed});
        }
    }

    static constexpr bool is_host = std::is_same_v<Space, Kokkos::Serial>;
    static constexpr std::uint64_t warps_in_team = is_host ? 1 : 4;
    static constexpr int vector_length = is_host ? 1 : device_warp::width;

    // Waits for a lane and hands its results over.
    static void drain(Lane& lane, UnderWay& under_way) {
        if (!under_way.any)
            return;
        under_way.any = false;
        Traits::wait(lane.on);
        const std::uint8_t* from = lane.staged_output.data();
        const ChunkBatch& batch = under_way.piece.batch;
        std::memcpy(batch.leaves, from + under_way.leaves,
                    under_way.piece.chunk_count * sizeof(Digest));
        if (under_way.residue_bytes > 0)
            std::memcpy(batch.residues, from + under_way.residues, under_way.residue_bytes);
        if (batch.golden_residues == nullptr)
            return;
        std::memcpy(batch.leaf_levels, from + under_way.leaf_levels, under_way.piece.chunk_count);
        const auto* counts = reinterpret_cast<const std::uint64_t*>(from + under_way.counts);
        for (std::int32_t level = 0; under_way.histogram != nullptr && level <= batch.plan->half;
             ++level)
            under_way.histogram[level] += counts[level];
    }

    void drain_all() {
        // The older one first.
        for (std::size_t i = 0; i < device::lane_count; ++i) {
            const std::size_t which = (next_ + i) % device::lane_count;
            drain(lanes_[which], under_way_[which]);
        }
    }

    device::Lanes<Space> lanes_;
    UnderWay under_way_[device::lane_count];
    std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<DeviceHasher> make_device_hasher(Backend backend) {
    return device::with_space(backend, [](auto in) -> std::unique_ptr<DeviceHasher> {
        using Space = typename decltype(in)::Space;
        [[maybe_unused]] const typename device::Traits<Space>::Guard guard;
        return std::make_unique<KokkosHasher<Space>>();
    });
}

}  // namespace ciwrap
