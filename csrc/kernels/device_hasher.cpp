#include "kernels/device_hasher.hpp"

#include <Kokkos_Core.hpp>
#include <string>

#include "base/error.hpp"
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

// All device memory of one batch.
template <class Space>
struct DeviceBatch {
    template <class T>
    using Array = Kokkos::View<T*, typename Space::memory_space>;

    QuantizePlan plan;
    std::uint64_t scalar_count;
    bool against;
    Array<std::uint8_t> data;
    Array<std::uint8_t> golden_residues;
    Array<Digest> golden_leaves;
    Array<Digest> leaves;
    Array<std::uint8_t> residues;
    Array<std::uint8_t> leaf_levels;
    Array<unsigned long long> histogram;
};

template <class Space>
class HashLeaves {
  public:
    using Policy = Kokkos::TeamPolicy<Space>;
    using Team = typename Policy::member_type;

    explicit HashLeaves(const DeviceBatch<Space>& batch) : batch_(batch) {}

    KOKKOS_FUNCTION void operator()(const Team& team) const {
        const QuantizePlan& plan = batch_.plan;
        auto& scratch =
            *static_cast<Scratch*>(team.team_shmem().get_shmem_aligned(sizeof(Scratch), 64));
        const auto chunk = static_cast<std::uint64_t>(team.league_rank());
        const std::uint64_t first = chunk * plan.chunk_scalars;
        const std::uint64_t left = batch_.scalar_count - first;
        const std::uint64_t count = left < plan.chunk_scalars ? left : plan.chunk_scalars;
        const std::uint64_t length = count * plan.code_bytes;
        const std::uint8_t* in = batch_.data.data() + first * plan.scalar_bytes;

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
            batch_.against
                ? batch_.golden_residues.data() + chunk * plan.residue_bytes(plan.chunk_scalars)
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
            batch_.leaves(chunk) = digest;
            if (!batch_.against)
                return;
            const bool match = same(digest, batch_.golden_leaves(chunk));
            std::uint8_t largest = 0;
            for (std::int32_t level = 0; level <= batch_.plan.half; ++level) {
                const std::uint32_t count = scratch.delta_count[level];
                if (count == 0)
                    continue;
                largest = static_cast<std::uint8_t>(level);
                if (match)
                    Kokkos::atomic_add(&batch_.histogram(level),
                                       static_cast<unsigned long long>(count));
            }
            batch_.leaf_levels(chunk) = match ? largest : no_match_level;
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

    DeviceBatch<Space> batch_;
};

// One thread per packed byte; a golden's residues are written once, so recomputing them beats
// passing them on.
template <class Space>
struct PackResidues {
    DeviceBatch<Space> batch;

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
                value += encode_scalar(plan, batch.data.data(), first + index, false, 0).residue;
        }
        batch.residues(byte) = static_cast<std::uint8_t>(value);
    }
};

template <class Space>
class KokkosHasher final : public DeviceHasher {
    using Batch = DeviceBatch<Space>;

  public:
    void hash(const ChunkBatch& host, std::uint64_t chunk_count,
              std::uint64_t* histogram) override {
        const QuantizePlan& plan = *host.plan;
        Batch batch;
        batch.plan = plan;
        batch.scalar_count = host.scalar_count;
        batch.against = host.golden_residues != nullptr;
        const std::uint64_t residue_bytes = plan.total_residue_bytes(host.scalar_count);
        batch.data = to_device<std::uint8_t>("ciwrap::data", host.data,
                                             host.scalar_count * plan.scalar_bytes);
        batch.leaves = allocate<Digest>("ciwrap::leaves", chunk_count);
        if (batch.against) {
            batch.golden_residues = to_device<std::uint8_t>("ciwrap::golden_residues",
                                                            host.golden_residues, residue_bytes);
            batch.golden_leaves =
                to_device<Digest>("ciwrap::golden_leaves", host.golden_leaves, chunk_count);
            batch.leaf_levels = allocate<std::uint8_t>("ciwrap::leaf_levels", chunk_count);
            batch.histogram =
                typename Batch::template Array<unsigned long long>("ciwrap::histogram", max_levels);
        }
        const Space space;
        typename HashLeaves<Space>::Policy policy(space, static_cast<int>(chunk_count),
                                                  Kokkos::AUTO);
        policy.set_scratch_size(0, Kokkos::PerTeam(sizeof(Scratch) + 64));
        Kokkos::parallel_for("ciwrap::hash_leaves", policy, HashLeaves<Space>(batch));
        if (host.residues != nullptr && residue_bytes > 0) {
            batch.residues = allocate<std::uint8_t>("ciwrap::residues", residue_bytes);
            Kokkos::parallel_for("ciwrap::pack_residues",
                                 Kokkos::RangePolicy<Space, Kokkos::IndexType<std::uint64_t>>(
                                     space, 0, residue_bytes),
                                 PackResidues<Space>{batch});
        }
        space.fence("ciwrap::hash_leaves");
        to_host(host.leaves, batch.leaves);
        if (host.residues != nullptr && residue_bytes > 0)
            to_host(host.residues, batch.residues);
        if (!batch.against)
            return;
        to_host(host.leaf_levels, batch.leaf_levels);
        const auto counts =
            Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), batch.histogram);
        for (std::int32_t level = 0; histogram != nullptr && level <= plan.half; ++level) {
            histogram[level] += counts(static_cast<std::size_t>(level));
        }
    }

  private:
    template <class T>
    static auto allocate(const char* label, std::uint64_t count) {
        return typename Batch::template Array<T>(
            Kokkos::view_alloc(std::string(label), Kokkos::WithoutInitializing), count);
    }

    template <class T>
    static auto to_device(const char* label, const T* from, std::uint64_t count) {
        auto array = allocate<T>(label, count);
        Kokkos::deep_copy(
            array,
            Kokkos::View<const T*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                from, count));
        return array;
    }

    template <class Array>
    static void to_host(typename Array::value_type* to, const Array& from) {
        Kokkos::deep_copy(Kokkos::View<typename Array::value_type*, Kokkos::HostSpace,
                                       Kokkos::MemoryTraits<Kokkos::Unmanaged>>(to, from.extent(0)),
                          from);
    }
};

}  // namespace

std::unique_ptr<DeviceHasher> make_device_hasher(Backend backend) {
    if (backend == Backend::portable)
        return std::make_unique<KokkosHasher<Kokkos::Serial>>();
#if defined(KOKKOS_ENABLE_CUDA)
    if (backend == Backend::cuda)
        return std::make_unique<KokkosHasher<Kokkos::Cuda>>();
#endif
    throw Error(ErrorCode::not_available, "this build has no such device backend");
}

}  // namespace ciwrap
