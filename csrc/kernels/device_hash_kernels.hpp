// The kernels that hash chunks of any kind on a device, a team of threads for each, and that pack
// residues. Whole chunks of the common types go the faster way of device_hash_warp.hpp.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>

#include "kernels/level_kernels.hpp"
#include "kernels/scalar_encode.hpp"
#include "kernels/xxh3_core.hpp"

namespace ciwrap::device_hash {

using namespace level_kokkos;

inline constexpr std::size_t lanes = 8;
inline constexpr std::int32_t max_levels = 128;  // classes of |delta|

// A team's working memory.
struct Scratch {
    std::uint8_t codes[stripe_bytes + block_bytes];  // the stripe before the block, the block
    std::uint64_t products[stripes_per_block * lanes];
    Accumulators sums;
    std::uint32_t delta_count[static_cast<std::size_t>(max_levels)];
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
    std::uint8_t* residues;  // none: not wanted
    std::uint8_t* leaf_levels;
    unsigned long long* histogram;
};

KOKKOS_FUNCTION inline bool same(const Digest& a, const Digest& b) {
    bool equal = true;
    bool unmatchable = true;
    for (std::size_t i = 0; i < 16; ++i) {
        const std::uint8_t x = reinterpret_cast<const std::uint8_t*>(&a)[i];
        equal = equal && x == reinterpret_cast<const std::uint8_t*>(&b)[i];
        unmatchable = unmatchable && x == 0xff;
    }
    return equal && !unmatchable;
}

// Writes what one thread knows of a hashed chunk. count_of(level): scalars whose |delta| it is, of
// `most` levels or fewer.
template <std::int32_t most, class CountOf>
KOKKOS_FUNCTION inline void hand_over(const DevicePiece& batch, std::uint64_t chunk, Digest digest,
                                      bool has_nan, CountOf&& count_of) {
    if (has_nan && !batch.plan.equal_nan) {
        for (std::size_t b = 0; b < 16; ++b)
            reinterpret_cast<std::uint8_t*>(&digest)[b] = 0xff;
    }
    batch.leaves[chunk] = digest;
    if (!batch.against)
        return;
    const bool match = same(digest, batch.golden_leaves[chunk]);
    std::uint8_t largest = 0;
    for (std::int32_t level = 0; level < most; ++level) {
        const std::uint32_t count = level <= batch.plan.half ? count_of(level) : 0;
        if (count == 0)
            continue;
        largest = static_cast<std::uint8_t>(level);
        if (match)
            Kokkos::atomic_add(&batch.histogram[level], static_cast<unsigned long long>(count));
    }
    batch.leaf_levels[chunk] = match ? largest : no_match_level;
}

template <class Space>
class HashLeaves {
  public:
    using Policy = Kokkos::TeamPolicy<Space>;
    using Team = typename Policy::member_type;

    // A team for each chunk from the first one on.
    HashLeaves(const DevicePiece& batch, std::uint64_t first_chunk)
        : batch_(batch), first_chunk_(first_chunk) {}

    KOKKOS_FUNCTION void operator()(const Team& team) const {
        const QuantizePlan& plan = batch_.plan;
        auto& scratch =
            *static_cast<Scratch*>(team.team_shmem().get_shmem_aligned(sizeof(Scratch), 64));
        const std::uint64_t chunk = first_chunk_ + static_cast<std::uint64_t>(team.league_rank());
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
            const Digest digest = is_long ? canonical(merge_all(scratch.sums, length))
                                          : hash_bytes(scratch.codes + stripe_bytes,
                                                       static_cast<std::size_t>(length));
            hand_over<max_levels>(batch_, chunk, digest, scratch.nan_seen != 0,
                                  [&](std::int32_t level) { return scratch.delta_count[level]; });
        });
    }

    DevicePiece batch_;
    std::uint64_t first_chunk_;
};

// One thread per packed byte, from that of a chunk on; a golden's residues are written once, so
// recomputing them beats passing them on.
struct PackResidues {
    DevicePiece batch;
    std::uint64_t first_byte;

    KOKKOS_FUNCTION void operator()(const std::uint64_t index_of_byte) const {
        const std::uint64_t byte = first_byte + index_of_byte;
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

}  // namespace ciwrap::device_hash
