// Codes that are hashed as they are made: they never leave the registers. For what is recorded
// most, float32 and float64 under an absolute bound, in whole chunks of numbers that are below the
// limit of quick tiles; all else is the caller's.
#pragma once

#include "kernels/encode_vector.hpp"
#include "kernels/level_kernels.hpp"
#include "kernels/residue_blocks.hpp"
#include "kernels/xxh3_core.hpp"

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

// The digest of a chunk, and how far its values have moved.
struct HashedChunk {
    Digest digest;
    std::uint8_t largest_delta;
};

#if defined(CIWRAP_HAVE_SIMD) && defined(__AVX2__)

// Tiles of a chunk whose codes are 1024 bytes, a block of XXH3, or what is left of the chunk.
struct TileRun {
    const std::uint8_t* in;
    std::size_t tiles;
    bool is_last;
    std::uint32_t fetched;              // one bit for each tile that asks for a later one
    std::uint8_t* residues;             // written (golden)
    const std::uint8_t* residues_read;  // (against)
};

CIWRAP_VECTOR_FUNCTION U64 least_of(U64 a, U64 b) {
#if defined(CIWRAP_HAVE_WIDE)
    return (U64)_mm512_maskz_min_epi64(every8, (__m512i)a, (__m512i)b);
#else
    return select((I64)a < (I64)b, a, b);
#endif
}
CIWRAP_VECTOR_FUNCTION U32 least_of(U32 a, U32 b) {
#if defined(CIWRAP_HAVE_WIDE)
    return (U32)_mm512_maskz_min_epi32(every16, (__m512i)a, (__m512i)b);
#else
    return (U32)_mm256_min_epi32((__m256i)a, (__m256i)b);
#endif
}

// What codes come to that are all of rounded scalars, lane by lane. A running sum that is added up
// after each step counts a code as often as steps are left, which makes the moment without a
// multiplication.
template <class Code>
class TileSummary {
    using Bits = typename CodeVectors<Code>::Bits;
    using Unsigned = typename SpecialCode<Code>::Unsigned;
    static constexpr std::size_t lanes = vector_bytes / sizeof(Code);
    static constexpr std::size_t parts = 8 / sizeof(Code);
    // Codes of 4 bytes are added up as numbers above zero, two to a lane of 8.
    static constexpr std::uint64_t bias =
        sizeof(Code) == 4 ? SpecialCode<std::int32_t>::sign_bit : 0;

  public:
    [[gnu::always_inline]] void add(Bits codes) {
        least_ = least_of(least_, codes);
        below_ = least_of(below_, ~codes);
        if constexpr (sizeof(Code) == 4) {
            const U64 above_zero = (U64)(codes ^ splat(static_cast<std::uint32_t>(bias)));
            add_part(0, above_zero & splat(std::uint64_t{0xffffffff}));
            add_part(1, above_zero >> 32);
        } else {
            add_part(0, codes);
        }
    }

    // Of so many codes, which were added in their order from the first of a chunk on.
    ChunkSummary end(std::uint64_t count) const {
        const std::uint64_t steps = count / lanes;
        std::uint64_t sum = 0;
        std::uint64_t moment = 0;
        for (std::size_t part = 0; part < parts; ++part) {
            for (std::size_t lane = 0; lane < lanes64; ++lane) {
                const std::uint64_t own = sum_[part][lane];
                sum += own;
                moment += lanes * (steps * own - weight_[part][lane]) + (parts * lane + part) * own;
            }
        }
        const std::uint64_t places =
            count % 2 == 0 ? count / 2 * (count - 1) : (count - 1) / 2 * count;
        ChunkSummary found;
        found.sum = static_cast<std::int64_t>(sum - bias * count);
        found.moment = static_cast<std::int64_t>(moment - bias * places);
        Code least = static_cast<Code>(least_[0]);
        Code below = static_cast<Code>(below_[0]);
        for (std::size_t lane = 1; lane < lanes; ++lane) {
            const Code one = static_cast<Code>(least_[lane]);
            const Code other = static_cast<Code>(below_[lane]);
            least = one < least ? one : least;
            below = other < below ? other : below;
        }
        found.least = least;
        found.greatest = static_cast<Code>(~below);
        return found;
    }

  private:
    [[gnu::always_inline]] void add_part(std::size_t part, U64 codes) {
        sum_[part] += codes;
        weight_[part] += sum_[part];
    }

    static constexpr auto highest = static_cast<Unsigned>(~SpecialCode<Code>::sign_bit);
    Bits least_ = splat(highest);
    Bits below_ = splat(highest);  // the least of all ~code, which is ~ of the greatest code
    U64 sum_[parts] = {};
    U64 weight_[parts] = {};
};

struct TreeSums {
    Accumulators sums;
    alignas(64) std::uint8_t largest[vector_bytes] = {};  // |delta|, lane by lane
    TileSummary<std::int64_t> wide;                       // of codes of 8 bytes
    TileSummary<std::int32_t> narrow;                     // and of 4

    template <class Code>
    TileSummary<Code>& summary() {
        if constexpr (sizeof(Code) == 4)
            return narrow;
        else
            return wide;
    }
};

// Two residues to a byte: r0 + k r1.
CIWRAP_VECTOR_FUNCTION void store_pairs(std::uint8_t* to, U8 residues, std::int32_t levels) {
    const auto weights = static_cast<short>((levels << 8) | 1);
#if defined(CIWRAP_HAVE_WIDE)
    const __m512i pairs =
        _mm512_maskz_maddubs_epi16(every32, (__m512i)residues, _mm512_set1_epi16(weights));
    const __m256i bytes = _mm512_maskz_cvtepi16_epi8(every32, pairs);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
#else
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)residues, _mm256_set1_epi16(weights));
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0xd8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(bytes));
#endif
}

// n / k = n * ceil(2^16 / k) / 2^16 for n < 256 and k <= 15; n mod k and n / k, next to each other,
// are n + (n / k) (256 - k).
CIWRAP_VECTOR_FUNCTION U8 load_pairs(const std::uint8_t* from, std::int32_t levels) {
    const auto inverse = static_cast<short>(65536 / levels + 1);
#if defined(CIWRAP_HAVE_WIDE)
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m512i pairs = _mm512_maskz_cvtepu8_epi16(every32, bytes);
    const auto high = (U16)_mm512_maskz_mulhi_epu16(every32, pairs, _mm512_set1_epi16(inverse));
#else
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    const __m256i pairs = _mm256_cvtepu8_epi16(bytes);
    const auto high = (U16)_mm256_mulhi_epu16(pairs, _mm256_set1_epi16(inverse));
#endif
    return (U8)((U16)pairs + high * static_cast<std::uint16_t>(256 - levels));
}

// Returns whether all tiles were quick ones; if not, nothing that it has done is of use.
template <class Quick, bool IsSummarised>
[[gnu::noinline]] static bool hash_run(const QuantizePlan& plan, const TileRun& run,
                                       TreeSums& tree) {
    using Code = typename Quick::Code;
    constexpr std::size_t bytes = sizeof(typename Image<Quick::Type>::Bits);
    constexpr std::size_t tile_stripes = tile * sizeof(Code) / stripe_bytes;
    const Quick tiles(plan);
    typename Quick::Seen seen;
    StripeSums sums(tree.sums);
    U8 largest = load_vector<U8>(tree.largest);
    TileSummary<Code> summary = tree.summary<Code>();
    for (std::size_t t = 0; t < run.tiles; ++t) {
        const std::uint8_t* const in = run.in + t * tile * bytes;
        if ((run.fetched >> t & 1) != 0)
            prefetch_tile<tile * bytes>(in);
        const std::uint8_t* const key = xxh3_secret + 8 * tile_stripes * t;
        // The last stripe of a chunk has a key of its own.
        const std::uint8_t* const last_key =
            run.is_last && t + 1 == run.tiles ? xxh3_secret + sizeof xxh3_secret - stripe_bytes - 7
                                              : key + 8 * (tile_stripes - 1);
        alignas(64) std::uint8_t read[tile];
        if constexpr (Quick::Mode == Rounding::against)
            store_vector(read, load_pairs(run.residues_read + t * tile / 2, plan.levels));
        const Remainders remainders = tiles.round(
            in, read, seen, [&](std::size_t i, auto codes) __attribute__((always_inline)) {
                const std::size_t stripe = i * sizeof(Code) / stripe_bytes;
                const std::size_t part = i * sizeof(Code) % stripe_bytes / vector_bytes;
                if constexpr (IsSummarised)
                    summary.add(codes);
                sums.add_part(part, (StripeSums::Part)codes,
                              stripe + 1 == tile_stripes ? last_key : key + 8 * stripe);
            });
        if constexpr (Quick::Mode == Rounding::golden)
            store_pairs(run.residues + t * tile / 2, low_bytes(remainders.mixed), plan.levels);
        if constexpr (Quick::Mode == Rounding::against) {
            const U8 delta = low_bytes(remainders.mixed) - load_vector<U8>(read);
            largest = larger(largest, smaller(delta, U8{} - delta));
        }
    }
    if (!run.is_last)
        sums.scramble();
    sums.store(tree.sums);
    store_vector(tree.largest, largest);
    if constexpr (IsSummarised)
        tree.summary<Code>() = summary;
    return tiles.are_right(seen);
}

using HashRun = bool (*)(const QuantizePlan& plan, const TileRun& run, TreeSums& tree);

template <Rounding Mode, bool IsSummarised>
static HashRun hash_run_of(const QuantizePlan& plan) {
    using enum ScalarType;
    using Wide = LimitedTiles<Mode, float64, std::int64_t, AbsoluteWideQuick, AbsoluteWide>;
    using Narrow = LimitedTiles<Mode, float32, std::int32_t, AbsoluteNarrowQuick, AbsoluteNarrow>;
    return plan.scalar == float64 ? hash_run<Wide, IsSummarised> : hash_run<Narrow, IsSummarised>;
}

template <Rounding Mode>
static HashRun hash_run_of(const ChunkBatch& batch) {
    return batch.summaries == nullptr ? hash_run_of<Mode, false>(*batch.plan)
                                      : hash_run_of<Mode, true>(*batch.plan);
}

// Null for what has to go another way. NaN counts as beyond every limit.
static HashRun choose_hash_run(const ChunkBatch& batch) {
    const QuantizePlan& plan = *batch.plan;
    if (plan.kind != CodeKind::absolute || plan.swap_unit != 1 || plan.fill_count != 0 ||
        (plan.scalar != ScalarType::float64 && plan.scalar != ScalarType::float32) ||
        plan.chunk_scalars % tile != 0 ||
        plan.chunk_scalars * plan.code_bytes <= longest_short_input)
        return nullptr;
    if (!plan.has_residues())
        return hash_run_of<Rounding::plain>(batch);
    if (plan.packed != 2)
        return nullptr;
    if (batch.golden_residues != nullptr)
        return hash_run_of<Rounding::against>(batch);
    return batch.residues == nullptr ? nullptr : hash_run_of<Rounding::golden>(batch);
}

// One or two trees of the same data, run by run of each, so that what the second one reads is in
// the first-level cache.
class TileHasher {
  public:
    TileHasher(const ChunkBatch* batches, std::size_t count) : batches_(batches), count_(count) {
        for (std::size_t i = 0; i < count; ++i) {
            hash_[i] = choose_hash_run(batches[i]);
            is_usable_ = is_usable_ && hash_[i] != nullptr;
        }
    }

    // Whether a chunk, `in`, could be hashed this way.
    bool hash(std::uint64_t chunk, const std::uint8_t* in, HashedChunk* results) {
        const QuantizePlan& plan = *batches_[0].plan;
        if (!is_usable_ || batches_[0].scalar_count < (chunk + 1) * plan.chunk_scalars)
            return false;
        if (passed_over_ > 0) {
            --passed_over_;
            return false;
        }
        TreeSums sums[2];
        const std::size_t run_scalars = block_bytes / plan.code_bytes;
        for (std::size_t done = 0; done < plan.chunk_scalars; done += run_scalars) {
            if (!hash_run_at(chunk, in, done, run_scalars, sums)) {
                // What follows is probably like it.
                passed_over_ = next_passed_over_;
                next_passed_over_ = passed_over_ < 32 ? 2 * passed_over_ : 32;
                return false;
            }
        }
        next_passed_over_ = 1;
        for (std::size_t i = 0; i < count_; ++i) {
            results[i].digest =
                canonical(merge_all(sums[i].sums, plan.chunk_scalars * plan.code_bytes));
            results[i].largest_delta = largest_of(sums[i].largest);
            if (batches_[i].summaries != nullptr)
                batches_[i].summaries[chunk] = plan.code_bytes == 4
                                                   ? sums[i].narrow.end(plan.chunk_scalars)
                                                   : sums[i].wide.end(plan.chunk_scalars);
        }
        return true;
    }

  private:
    bool hash_run_at(std::uint64_t chunk, const std::uint8_t* in, std::size_t done,
                     std::size_t run_scalars, TreeSums* sums) const {
        const QuantizePlan& plan = *batches_[0].plan;
        const std::size_t left = plan.chunk_scalars - done;
        TileRun run{};
        run.in = in + done * plan.scalar_bytes;
        run.is_last = left <= run_scalars;
        run.tiles = (run.is_last ? left : run_scalars) / tile;
        for (std::size_t i = 0; i < count_; ++i) {
            const ChunkBatch& batch = batches_[i];
            // Two trees share what has to be asked for.
            run.fetched = count_ == 1 ? ~0u : 0x55555555u << i;
            const std::uint64_t pair = (chunk * plan.chunk_scalars + done) / 2;
            run.residues = batch.residues == nullptr ? nullptr : batch.residues + pair;
            run.residues_read =
                batch.golden_residues == nullptr ? nullptr : batch.golden_residues + pair;
            if (!hash_[i](*batch.plan, run, sums[i]))
                return false;
        }
        return true;
    }

    static std::uint8_t largest_of(const std::uint8_t* lanes) {
        std::uint8_t largest = 0;
        for (std::size_t i = 0; i < vector_bytes; ++i)
            largest = lanes[i] > largest ? lanes[i] : largest;
        return largest;
    }

    const ChunkBatch* const batches_;
    const std::size_t count_;
    HashRun hash_[2] = {};
    bool is_usable_ = true;
    std::size_t passed_over_ = 0;  // chunks that are not tried
    std::size_t next_passed_over_ = 1;
};

#else

class TileHasher {
  public:
    TileHasher(const ChunkBatch*, std::size_t) {}
    bool hash(std::uint64_t, const std::uint8_t*, HashedChunk*) { return false; }
};

#endif

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
