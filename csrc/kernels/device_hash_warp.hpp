// The kernel that hashes whole chunks of the common types, a warp for each: codes stay in
// registers, and neither shared memory nor a barrier is needed. It gives the digests, residues and
// drifts of device_hash_kernels.hpp, which serves all other chunks.
//
// XXH3 cuts a chunk's code bytes into blocks of 16 stripes of 8 words. A thread makes 16 bytes of
// code at a time, so that thread t of 32 has two words of stripe t / 4 of half a block: words
// 2 (t % 4) and the next, which are those that XXH3 swaps with each other.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/device_hash_kernels.hpp"
#include "kernels/device_warp.hpp"

namespace ciwrap::device_hash {

// XXH3's secret as words, since devices load those in one go, and single bytes one by one.
struct SecretWords {
    std::uint64_t word[sizeof xxh3_secret / 8];
};

constexpr SecretWords make_secret_words() {
    SecretWords words{};
    for (std::size_t b = 0; b < sizeof xxh3_secret; ++b)
        words.word[b / 8] |= static_cast<std::uint64_t>(xxh3_secret[b]) << (8 * (b % 8));
    return words;
}

#if defined(__CUDACC__) || defined(__HIPCC__)
__device__
#endif
    constexpr SecretWords secret_words = make_secret_words();

// Words of the keys that begin at odd bytes.
KOKKOS_FUNCTION inline std::uint64_t odd_secret_word(std::uint64_t at) {
    const std::uint64_t skipped = 8 * (at % 8);
    return secret_words.word[at / 8] >> skipped | secret_words.word[at / 8 + 1] << (64 - skipped);
}

inline constexpr std::uint64_t last_stripe_key = sizeof xxh3_secret - stripe_bytes - 7;
inline constexpr std::uint64_t low_merge_key = 11;
inline constexpr std::uint64_t high_merge_key = sizeof xxh3_secret - stripe_bytes - 11;
static_assert(last_stripe_key % 8 != 0 && low_merge_key % 8 != 0 && high_merge_key % 8 != 0);

enum class Residues : std::uint8_t { none, write, against };

// What a kernel is compiled for. Bytes in the machine's order that are compared exactly are their
// own codes, but for those of floats and booleans: ScalarType::raw.
template <ScalarType scalar_type, CodeKind code_kind, Residues residue_use>
struct Compiled {
    static constexpr ScalarType scalar = scalar_type;
    static constexpr CodeKind kind = code_kind;
    static constexpr Residues residues = residue_use;
    static constexpr std::uint32_t scalar_bytes = scalar_type == ScalarType::float32 ? 4 : 8;
    static constexpr std::uint32_t code_bytes = code_kind == CodeKind::relative ? 8 : scalar_bytes;
    static constexpr std::uint32_t per_thread = 16 / code_bytes;
    static constexpr std::uint32_t data_bytes = per_thread * scalar_bytes;
};

inline constexpr std::int32_t counted_levels = 8;  // |delta| of up to 15 residue levels
inline constexpr std::uint32_t most_packed = 2;

// Whether warps can take the batch's whole chunks, if their type is one of the common ones.
inline bool fits_warps(const DevicePiece& batch) {
    const QuantizePlan& plan = batch.plan;
    const std::uint64_t code_length = plan.chunk_scalars * plan.code_bytes;
    const bool is_in_line =
        reinterpret_cast<std::uintptr_t>(batch.data) % 16 == 0 && code_length % stripe_bytes == 0;
    const bool counts = !batch.against || (plan.has_residues() && plan.packed <= most_packed &&
                                           plan.half < counted_levels);
    return is_in_line && counts && code_length > longest_short_input && plan.swap_unit <= 1 &&
           plan.fill_count == 0;
}

// Whether they also pack the residues that are wanted.
inline bool packs_in_warps(const DevicePiece& batch) {
    return batch.residues != nullptr && batch.plan.packed <= most_packed;
}

template <class Space, class Is>
class HashWholeChunks {
  public:
    using Policy = Kokkos::TeamPolicy<Space>;
    using Team = typename Policy::member_type;
    template <class T>
    using PerThread = device_warp::PerThread<T>;

    HashWholeChunks(const DevicePiece& batch, std::uint64_t chunk_count)
        : batch_(batch), chunk_count_(chunk_count) {}

    // A team is as many warps as it has threads; on the host, one.
    KOKKOS_FUNCTION void operator()(const Team& team) const {
        const std::uint64_t chunk = static_cast<std::uint64_t>(team.league_rank()) *
                                        static_cast<std::uint64_t>(team.team_size()) +
                                    static_cast<std::uint64_t>(team.team_rank());
        if (chunk < chunk_count_)
            hash(chunk);
    }

  private:
    struct Words {
        std::uint64_t word[2];
    };
    struct Counts {
        std::uint32_t level[counted_levels];
    };
    // What threads keep while they go over a chunk.
    struct State {
        PerThread<Words> data;
        PerThread<Words> sums;  // of XXH3, words 2 (t % 4) and the next: the same in every fourth
        PerThread<std::uint64_t> added[2];
        PerThread<bool> has_nan;
        PerThread<Counts> counts;
    };

    // The plan with what is known when compiling as constants, so that no branch on it is left.
    KOKKOS_FUNCTION QuantizePlan known_plan() const {
        QuantizePlan plan = batch_.plan;
        plan.scalar = Is::scalar;
        plan.kind = Is::kind;
        plan.scalar_bytes = Is::scalar_bytes;
        plan.code_bytes = Is::code_bytes;
        plan.swap_unit = 1;
        plan.fill_count = 0;
        return plan;
    }

    KOKKOS_FUNCTION void hash(std::uint64_t chunk) const {
        const QuantizePlan plan = known_plan();
        const std::uint64_t length = plan.chunk_scalars * batch_.plan.code_bytes;
        const std::uint8_t* in =
            batch_.data + chunk * plan.chunk_scalars * batch_.plan.scalar_bytes;
        State state;
        device_warp::each([&](const int thread) {
            const std::uint64_t lane = first_lane(thread);
            const Accumulators start;
            // Not start.lane[lane], for registers have no index.
            state.sums[thread] = Words{{pick(start, lane), pick(start, lane + 1)}};
            state.has_nan[thread] = false;
            state.counts[thread] = Counts{};
            state.data[thread] = load(in, 16 * static_cast<std::uint64_t>(thread), length);
        });
        const std::uint64_t last_block = (length - 1) / block_bytes;
        for (std::uint64_t block = 0; block <= last_block; ++block) {
            device_warp::each([&](const int thread) {
                state.added[0][thread] = 0;
                state.added[1][thread] = 0;
            });
            for (std::uint64_t half = 0; half < 2; ++half)
                add_half(plan, chunk, in, length, block * block_bytes + half * block_bytes / 2,
                         half, state);
            end_block(block == last_block, state);
        }
        finish(chunk, length, state);
    }

    KOKKOS_FUNCTION static std::uint64_t first_lane(int thread) {
        return 2 * (static_cast<std::uint64_t>(thread) % 4);
    }

    KOKKOS_FUNCTION static std::uint64_t pick(const Accumulators& from, std::uint64_t lane) {
        std::uint64_t found = 0;
        for (std::uint64_t l = 0; l < lanes; ++l)
            found = l == lane ? from.lane[l] : found;
        return found;
    }

    // What the codes from byte `at` on are made of; nothing past the chunk's end.
    KOKKOS_FUNCTION static Words load(const std::uint8_t* in, std::uint64_t at,
                                      std::uint64_t length) {
        Words words{};
        if (at >= length)
            return words;
        const std::uint8_t* from = in + at / 16 * Is::data_bytes;
#if defined(__CUDA_ARCH__)
        if constexpr (Is::data_bytes == 16) {
            const ulonglong2 loaded = __ldcs(reinterpret_cast<const ulonglong2*>(from));
            words = Words{{loaded.x, loaded.y}};
        } else {
            words.word[0] = __ldcs(reinterpret_cast<const unsigned long long*>(from));
        }
#else
        __builtin_memcpy(&words, from, Is::data_bytes);
#endif
        return words;
    }

    // 512 bytes of codes, 16 by each thread; what comes next is on its way meanwhile.
    KOKKOS_FUNCTION void add_half(const QuantizePlan& plan, std::uint64_t chunk,
                                  const std::uint8_t* in, std::uint64_t length,
                                  std::uint64_t offset, std::uint64_t half, State& state) const {
        device_warp::each([&](const int thread) {
            const std::uint64_t at = offset + 16 * static_cast<std::uint64_t>(thread);
            const Words data = state.data[thread];
            state.data[thread] = load(in, at + block_bytes / 2, length);
            if (at >= length)
                return;
            const Words codes =
                encode(plan, chunk, at, data, state.has_nan[thread], state.counts[thread]);
            const Words key = stripe_key(at / stripe_bytes == length / stripe_bytes - 1, half,
                                         static_cast<std::uint64_t>(thread));
            state.added[0][thread] += product(codes.word[0] ^ key.word[0]) + codes.word[1];
            state.added[1][thread] += product(codes.word[1] ^ key.word[1]) + codes.word[0];
        });
    }

    // The last stripe of all has a key of its own.
    KOKKOS_FUNCTION static Words stripe_key(bool is_last, std::uint64_t half,
                                            std::uint64_t thread) {
        const std::uint64_t lane = 2 * (thread % 4);
        if (is_last) {
            return {{odd_secret_word(last_stripe_key + 8 * lane),
                     odd_secret_word(last_stripe_key + 8 * lane + 8)}};
        }
        const std::uint64_t first = half * stripes_per_block / 2 + thread / 4 + lane;
        return {{secret_words.word[first], secret_words.word[first + 1]}};
    }

    KOKKOS_FUNCTION static std::uint64_t product(std::uint64_t keyed) {
        return (keyed & 0xffffffffu) * (keyed >> 32);
    }

    KOKKOS_FUNCTION Words encode(const QuantizePlan& plan, std::uint64_t chunk, std::uint64_t at,
                                 const Words& data, bool& has_nan, Counts& counts) const {
        if constexpr (Is::scalar == ScalarType::raw) {
            return data;
        } else {
            Words codes{};
            std::uint8_t residue[Is::per_thread] = {};
            std::uint8_t* packed = nullptr;
            if constexpr (Is::residues != Residues::none) {
                const std::uint64_t begin = chunk * plan.residue_bytes(plan.chunk_scalars) +
                                            at / Is::code_bytes / plan.packed;
                if constexpr (Is::residues == Residues::against)
                    unpack(plan, batch_.golden_residues + begin, residue);
                else
                    packed = batch_.residues + begin;
            }
            for (std::uint32_t i = 0; i < Is::per_thread; ++i) {
                const std::uint64_t stored = part<Is::scalar_bytes>(data, i);
                const EncodedScalar scalar =
                    encode_bits(plan, stored, Is::residues == Residues::against, residue[i]);
                codes.word[i * Is::code_bytes / 8] |=
                    (scalar.code & mask<Is::code_bytes>) << (8 * (i * Is::code_bytes % 8));
                has_nan = has_nan || scalar.is_nan;
                if constexpr (Is::residues == Residues::against) {
                    for (std::int32_t level = 0; level < counted_levels; ++level)
                        counts.level[level] += scalar.delta == level ? 1u : 0u;
                }
                residue[i] = scalar.residue;
            }
            if (packed != nullptr)
                pack(plan, residue, packed);
            return codes;
        }
    }

    template <std::uint32_t bytes>
    static constexpr std::uint64_t mask = bytes == 8 ? ~std::uint64_t{0} : 0xffffffffu;

    template <std::uint32_t bytes>
    KOKKOS_FUNCTION static std::uint64_t part(const Words& words, std::uint32_t i) {
        return (words.word[i * bytes / 8] >> (8 * (i * bytes % 8))) & mask<bytes>;
    }

    KOKKOS_FUNCTION static void pack(const QuantizePlan& plan,
                                     const std::uint8_t (&residue)[Is::per_thread],
                                     std::uint8_t* packed) {
        const auto k = static_cast<std::uint32_t>(plan.levels);
        for (std::uint32_t i = 0; i < Is::per_thread; ++i) {
            if (plan.packed == 1)
                packed[i] = residue[i];
            else if (i % 2 == 0)
                packed[i / 2] = static_cast<std::uint8_t>(residue[i] + k * residue[i + 1]);
        }
    }

    KOKKOS_FUNCTION static void unpack(const QuantizePlan& plan, const std::uint8_t* packed,
                                       std::uint8_t (&residue)[Is::per_thread]) {
        const auto k = static_cast<std::uint32_t>(plan.levels);
        // One part in 2^16 too much and more: exact for a byte, as k (k - 1) < 2^16.
        const std::uint32_t inverse = (65536 + k - 1) / k;
        for (std::uint32_t i = 0; i < Is::per_thread; ++i) {
            const std::uint32_t value = packed[plan.packed == 1 ? i : i / 2];
            const std::uint32_t second = value * inverse >> 16;
            const bool is_second = plan.packed == 2 && i % 2 == 1;
            residue[i] = static_cast<std::uint8_t>(is_second ? second : value - second * k);
        }
    }

    KOKKOS_FUNCTION void end_block(bool is_last, State& state) const {
        for (int partner = 4; partner < device_warp::width; partner *= 2) {
            device_warp::add_partner(state.added[0], partner);
            device_warp::add_partner(state.added[1], partner);
        }
        device_warp::each([&](const int thread) {
            Words& sums = state.sums[thread];
            const std::uint64_t key = (sizeof xxh3_secret - stripe_bytes) / 8 + first_lane(thread);
            for (std::uint64_t w = 0; w < 2; ++w) {
                const std::uint64_t sum = sums.word[w] + state.added[w][thread];
                const std::uint64_t mixed = (sum ^ (sum >> 47)) ^ secret_words.word[key + w];
                sums.word[w] = is_last ? sum : mixed * prime32_1;
            }
        });
    }

    KOKKOS_FUNCTION void finish(std::uint64_t chunk, std::uint64_t length, State& state) const {
        // Each of four threads folds its two words; the sum of four is merge()'s.
        device_warp::each([&](const int thread) {
            const Words sums = state.sums[thread];
            const std::uint64_t lane = first_lane(thread);
            const auto folded = [&](std::uint64_t key) {
                return multiply_fold(sums.word[0] ^ odd_secret_word(key + 8 * lane),
                                     sums.word[1] ^ odd_secret_word(key + 8 * lane + 8));
            };
            state.added[0][thread] = folded(low_merge_key);
            state.added[1][thread] = folded(high_merge_key);
        });
        for (int partner = 1; partner < 4; partner *= 2) {
            device_warp::add_partner(state.added[0], partner);
            device_warp::add_partner(state.added[1], partner);
        }
        if constexpr (Is::residues == Residues::against)
            add_counts(state.counts);
        const bool has_nan = device_warp::any(state.has_nan);
        device_warp::each([&](const int thread) {
            if (thread != 0)
                return;
            const Hash128 hash{avalanche_xxh3(length * prime64_1 + state.added[0][thread]),
                               avalanche_xxh3(~(length * prime64_2) + state.added[1][thread])};
            const Counts counts = state.counts[thread];
            hand_over<counted_levels>(batch_, chunk, canonical(hash), has_nan,
                                      [&](std::int32_t level) { return counts.level[level]; });
        });
    }

    KOKKOS_FUNCTION static void add_counts(PerThread<Counts>& counts) {
        for (std::int32_t level = 0; level < counted_levels; ++level) {
            PerThread<std::uint32_t> total;
            device_warp::each([&](const int t) { total[t] = counts[t].level[level]; });
            for (int partner = 1; partner < device_warp::width; partner *= 2)
                device_warp::add_partner(total, partner);
            device_warp::each([&](const int t) { counts[t].level[level] = total[t]; });
        }
    }

    DevicePiece batch_;
    std::uint64_t chunk_count_;
};

// Calls work(Compiled<...>{}) with what the batch's chunks are compiled as; false if nothing is.
template <class Work>
bool with_compiled(const DevicePiece& batch, Work&& work) {
    const QuantizePlan& plan = batch.plan;
    const auto with_residues = [&](auto scalar, auto kind) {
        constexpr ScalarType type = decltype(scalar)::value;
        constexpr CodeKind code = decltype(kind)::value;
        if (batch.against)
            work(Compiled<type, code, Residues::against>{});
        else if (packs_in_warps(batch))
            work(Compiled<type, code, Residues::write>{});
        else
            work(Compiled<type, code, Residues::none>{});
        return true;
    };
    const auto with_kind = [&](auto scalar) {
        constexpr ScalarType type = decltype(scalar)::value;
        switch (plan.kind) {
            case CodeKind::exact:
                work(Compiled<type, CodeKind::exact, Residues::none>{});
                return true;
            case CodeKind::absolute:
                return with_residues(scalar,
                                     std::integral_constant<CodeKind, CodeKind::absolute>{});
            case CodeKind::relative:
                return with_residues(scalar,
                                     std::integral_constant<CodeKind, CodeKind::relative>{});
            default:
                return false;
        }
    };
    if (plan.scalar == ScalarType::float32)
        return with_kind(std::integral_constant<ScalarType, ScalarType::float32>{});
    if (plan.scalar == ScalarType::float64)
        return with_kind(std::integral_constant<ScalarType, ScalarType::float64>{});
    if (plan.kind != CodeKind::exact || is_float(plan.scalar) || plan.scalar == ScalarType::boolean)
        return false;
    work(Compiled<ScalarType::raw, CodeKind::exact, Residues::none>{});
    return true;
}

}  // namespace ciwrap::device_hash
