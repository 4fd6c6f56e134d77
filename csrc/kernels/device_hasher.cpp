#include "kernels/device_hasher.hpp"

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstring>

#include "kernels/device_space.hpp"
#include "kernels/floating_point_mode.hpp"
#include "kernels/scalar_encode.hpp"
#include "kernels/xxh3_core.hpp"

namespace ciwrap {
namespace {

using namespace level_kokkos;

constexpr std::size_t lanes = 8;
constexpr std::size_t max_levels = 128;  // classes of |delta|

// A team's working memory.
struct Scratch {
    std::uint8_t codes[stripe_bytes + block_bytes];  // the stripe before the block, the block
    std::uint64_t products[stripes_per_block * lanes];
    Accumulators sums;
    std::uint32_t delta_count[max_levels];
    std::int32_t nan_seen;
};

// A piece of a batch in device memory.
struct DevicePiece {
    QuantizePlan plan;
    std::uint64_t scalar_count;
    bool against;
    const std::uint8_t* data;
    const std::uint8_t* golden_residues;
    const Digest* golden_leaves;
    Digest* leaves;
    std::uint8_t* residues;
    std::uint8_t* leaf_levels;
    unsigned long long* histogram;
};

template <class Space>
class HashLeaves {
  public:
    using Policy = Kokkos::TeamPolicy<Space>;
    using Team = typename Policy::member_type;

    explicit HashLeaves(const DevicePiece& batch) : batch_(batch) {}

    KOKKOS_FUNCTION void operator()(const Team& team) const {
        const QuantizePlan& plan = batch_.plan;
        auto& scratch =
            *static_cast<Scratch*>(team.team_shmem().get_shmem_aligned(sizeof(Scratch), 64));
        const auto chunk = static_cast<std::uint64_t>(team.league_rank());
        const std::uint64_t first = chunk * plan.chunk_scalars;
        const std::uint64_t left = batch_.scalar_count - first;
        const std::uint64_t count = left < plan.chunk_scalars ? left : plan.chunk_scalars;
        const std::uint64_t length = count * plan.code_bytes;
        const std::uint8_t* in = batch_.data + first * plan.scalar_bytes;

        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, max_levels),
                             [&](const std::size_t i) { scratch.delta_count[i] = 0; });
        Kokkos::single(Kokkos::PerTeam(team), [&] {
            scratch.sums = Accumulators{};
            scratch.nan_seen = 0;
        });
        team.team_barrier();

        const bool is_long = length > longest_short_input;
        const std::uint64_t last_block = is_long ? (length - 1) / block_bytes : 0;
        for (std::uint64_t block = 0; block <= last_block; ++block) {
            const std::uint64_t offset = block * block_bytes;
            const std::uint64_t bytes =
                length - offset < block_bytes ? length - offset : block_bytes;
            write_codes(team, chunk, in, offset, bytes, scratch);
            team.team_barrier();
            if (is_long)
                add_block(team, bytes, block == last_block, scratch);
            if (block == last_block)
                break;
            // The next block's last stripe may begin in this one.
            Kokkos::parallel_for(
                Kokkos::TeamThreadRange(team, stripe_bytes),
                [&](const std::size_t i) { scratch.codes[i] = scratch.codes[block_bytes + i]; });
            team.team_barrier();
        }
        finish(team, chunk, length, is_long, scratch);
    }

  private:
    // Codes of the stretch [offset, offset + bytes) of the chunk's code bytes, behind the first
    // stripe of the scratch.
    KOKKOS_FUNCTION void write_codes(const Team& team, std::uint64_t chunk, const std::uint8_t* in,
                                     std::uint64_t offset, std::uint64_t bytes,
                                     Scratch& scratch) const {
        const QuantizePlan& plan = batch_.plan;
        std::uint8_t* codes = scratch.codes + stripe_bytes;
        if (plan.scalar == ScalarType::raw) {
            const std::uint64_t unit = plan.swap_unit;
            Kokkos::parallel_for(Kokkos::TeamThreadRange(team, bytes), [&](const std::uint64_t b) {
                const std::uint64_t at = offset + b;
                codes[b] = in[at / unit * unit + (unit - 1 - at % unit)];
            });
            return;
        }
        const std::uint8_t* packed =
            batch_.against ? batch_.golden_residues + chunk * plan.residue_bytes(plan.chunk_scalars)
                           : nullptr;
        const std::uint64_t first = offset / plan.code_bytes;
        Kokkos::parallel_for(
            Kokkos::TeamThreadRange(team, bytes / plan.code_bytes), [&](const std::uint64_t i) {
                const std::uint8_t residue =
                    batch_.against ? packed_residue(plan, packed, first + i) : std::uint8_t{0};
                const EncodedScalar scalar =
                    encode_scalar(plan, in, first + i, batch_.against, residue);
                for (std::uint32_t b = 0; b < plan.code_bytes; ++b) {
                    codes[i * plan.code_bytes + b] =
                        static_cast<std::uint8_t>(scalar.code >> (8 * b));
                }
                if (scalar.is_nan)
                    Kokkos::atomic_store(&scratch.nan_seen, 1);
                if (batch_.against && scalar.delta != not_rounded)
                    Kokkos::atomic_inc(&scratch.delta_count[scalar.delta]);
            });
    }

    // Within a block the stripes' contributions to a lane are only added up, so they can be made
    // side by side.
    KOKKOS_FUNCTION void add_block(const Team& team, std::uint64_t bytes, bool is_last,
                                   Scratch& scratch) const {
        const std::uint8_t* codes = scratch.codes + stripe_bytes;
        const std::uint64_t stripes = is_last ? (bytes - 1) / stripe_bytes : stripes_per_block;
        Kokkos::parallel_for(
            Kokkos::TeamThreadRange(team, stripes * lanes), [&](const std::uint64_t i) {
                scratch.products[i] = contribution(codes + i / lanes * stripe_bytes,
                                                   xxh3_secret + i / lanes * 8, i % lanes);
            });
        team.team_barrier();
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, lanes), [&](const std::uint64_t lane) {
            std::uint64_t sum = scratch.sums.lane[lane];
            for (std::uint64_t stripe = 0; stripe < stripes; ++stripe)
                sum += scratch.products[stripe * lanes + lane];
            if (is_last) {
                sum += contribution(codes + bytes - stripe_bytes,
                                    xxh3_secret + sizeof xxh3_secret - stripe_bytes - 7, lane);
            } else {
                sum = scramble_lane(sum, static_cast<int>(lane));
            }
            scratch.sums.lane[lane] = sum;
        });
        team.team_barrier();
    }

    KOKKOS_FUNCTION static std::uint64_t contribution(const std::uint8_t* stripe,
                                                      const std::uint8_t* key, std::uint64_t lane) {
        const std::uint64_t keyed = load_bytes(stripe + 8 * lane) ^ load_bytes(key + 8 * lane);
        return (keyed & 0xffffffffu) * (keyed >> 32) + load_bytes(stripe + 8 * (lane ^ 1));
    }

    // Devices fault on unaligned loads; keys begin anywhere.
    KOKKOS_FUNCTION static std::uint64_t load_bytes(const std::uint8_t* at) {
        std::uint64_t value = 0;
        for (int b = 0; b < 8; ++b)
            value |= static_cast<std::uint64_t>(at[b]) << (8 * b);
        return value;
    }

    KOKKOS_FUNCTION void finish(const Team& team, std::uint64_t chunk, std::uint64_t length,
                                bool is_long, Scratch& scratch) const {
        Kokkos::single(Kokkos::PerTeam(team), [&] {
            Digest digest = is_long ? canonical(merge_all(scratch.sums, length))
                                    : hash_bytes(scratch.codes + stripe_bytes,
                                                 static_cast<std::size_t>(length));
            if (scratch.nan_seen != 0 && !batch_.plan.equal_nan) {
                for (std::size_t b = 0; b < 16; ++b)
                    byte_of(digest, b) = 0xff;
            }
            batch_.leaves[chunk] = digest;
            if (!batch_.against)
                return;
            const bool match = same(digest, batch_.golden_leaves[chunk]);
            std::uint8_t largest = 0;
            for (std::int32_t level = 0; level <= batch_.plan.half; ++level) {
                const std::uint32_t count = scratch.delta_count[level];
                if (count == 0)
                    continue;
                largest = static_cast<std::uint8_t>(level);
                if (match)
                    Kokkos::atomic_add(&batch_.histogram[level],
                                       static_cast<unsigned long long>(count));
            }
            batch_.leaf_levels[chunk] = match ? largest : no_match_level;
        });
    }

    KOKKOS_FUNCTION static std::uint8_t& byte_of(Digest& digest, std::size_t i) {
        return reinterpret_cast<std::uint8_t*>(&digest)[i];
    }

    KOKKOS_FUNCTION static bool same(const Digest& a, const Digest& b) {
        bool equal = true;
        bool unmatchable = true;
        for (std::size_t i = 0; i < 16; ++i) {
            const std::uint8_t x = reinterpret_cast<const std::uint8_t*>(&a)[i];
            equal = equal && x == reinterpret_cast<const std::uint8_t*>(&b)[i];
            unmatchable = unmatchable && x == 0xff;
        }
        return equal && !unmatchable;
    }

    DevicePiece batch_;
};

// One thread per packed byte; a golden's residues are written once, so recomputing them beats
// passing them on.
struct PackResidues {
    DevicePiece batch;

    KOKKOS_FUNCTION void operator()(const std::uint64_t byte) const {
        const QuantizePlan& plan = batch.plan;
        const std::uint64_t stride = plan.residue_bytes(plan.chunk_scalars);
        const std::uint64_t first = byte / stride * plan.chunk_scalars;
        const std::uint64_t left = batch.scalar_count - first;
        const std::uint64_t count = left < plan.chunk_scalars ? left : plan.chunk_scalars;
        std::uint32_t value = 0;
        for (std::uint64_t p = plan.packed; p-- > 0;) {
            const std::uint64_t index = byte % stride * plan.packed + p;
            value *= static_cast<std::uint32_t>(plan.levels);
            if (index < count)
                value += encode_scalar(plan, batch.data, first + index, false, 0).residue;
        }
        batch.residues[byte] = static_cast<std::uint8_t>(value);
    }
};

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
    ~KokkosHasher() override {
        if (Kokkos::is_finalized())
            return;
        for (std::size_t i = 0; i < device::lane_count; ++i)
            lanes_[i].on.fence("ciwrap::given_up");
    }

    void hash(const ChunkBatch& batch, std::uint64_t chunk_count,
              std::uint64_t* histogram) override {
        [[maybe_unused]] const typename Traits::Guard guard;
        // Memory that the device can copy from by itself is not copied to such memory first.
        const bool is_pinned = batch.scalar_count > 0 && Traits::is_pinned(batch.data);
        pieces(batch, chunk_count, host_piece_bytes, [&](std::uint64_t, const Piece& piece) {
            begin(piece, histogram, nullptr, 0, is_pinned);
        });
        if (is_pinned)
            drain_all();
    }

    void hash_resident(const DeviceArray& array, std::uint64_t first_scalar,
                       const ChunkBatch& batch, std::uint64_t chunk_count,
                       std::uint64_t* histogram) override {
        [[maybe_unused]] const typename Traits::Guard guard;
        pieces(batch, chunk_count, resident_piece_bytes,
               [&](std::uint64_t first, const Piece& piece) {
                   begin(piece, histogram, &array, first_scalar + first, false);
               });
    }

    void accept(const DeviceArray& array) override {
        require_here(backend(), array);
        [[maybe_unused]] const typename Traits::Guard guard;
        for (std::size_t i = 0; i < device::lane_count && array.stream != 0; ++i)
            Traits::order_after(lanes_[i].on, array.stream);
    }

    void finish() override {
        [[maybe_unused]] const typename Traits::Guard guard;
        drain_all();
    }

  private:
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

    static Backend backend() {
        return std::is_same_v<Space, Kokkos::Serial> ? Backend::portable : Backend::cuda;
    }

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
        on_device.residues = output + under_way.residues;
        on_device.leaf_levels = output + under_way.leaf_levels;
        on_device.histogram = reinterpret_cast<unsigned long long*>(output + under_way.counts);
        if (on_device.against)
            Traits::clear(lane.on, on_device.histogram, max_levels * sizeof(std::uint64_t));

        typename HashLeaves<Space>::Policy policy(lane.on, static_cast<int>(piece.chunk_count),
                                                  Kokkos::AUTO);
        policy.set_scratch_size(0, Kokkos::PerTeam(sizeof(Scratch) + 64));
        Kokkos::parallel_for("ciwrap::hash_leaves", policy, HashLeaves<Space>(on_device));
        if (under_way.residue_bytes > 0) {
            Kokkos::parallel_for("ciwrap::pack_residues",
                                 Kokkos::RangePolicy<Space, Kokkos::IndexType<std::uint64_t>>(
                                     lane.on, 0, under_way.residue_bytes),
                                 PackResidues{on_device});
        }
        Traits::copy(lane.on, staged_output, output, out.size());
        under_way.piece = piece;
        under_way.histogram = histogram;
        under_way.any = true;
    }

    // Waits for a lane and hands its results over.
    static void drain(Lane& lane, UnderWay& under_way) {
        if (!under_way.any)
            return;
        under_way.any = false;
        lane.on.fence("ciwrap::hash_leaves");
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
        return std::make_unique<KokkosHasher<typename decltype(in)::Space>>();
    });
}

}  // namespace ciwrap
