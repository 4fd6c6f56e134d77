// One CPU level's kernels: chunks to leaves, children to parents. Compiled once per level (see
// level_kernels.hpp); nothing from the standard library that could leave a shared inline function
// behind.
#include "kernels/level_kernels.hpp"

#include "kernels/choose_encoder.hpp"
#include "kernels/code_summary.hpp"
#include "kernels/copy_columns.hpp"
#include "kernels/floating_point_mode.hpp"
#include "kernels/hashed_tiles.hpp"
#include "kernels/prefetch_distance.hpp"
#include "kernels/residue_blocks.hpp"
#include "kernels/xxh3_core.hpp"

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {
namespace {

// A scalar's bits as stored, for comparing with fill values and finding NaN.
std::uint64_t scalar_bits(const QuantizePlan& plan, const std::uint8_t* in, std::size_t i) {
    switch (plan.scalar_bytes) {
        case 1:
            return in[i];
        case 2:
            return load<std::uint16_t>(in, i);
        case 4:
            return load<std::uint32_t>(in, i);
        default:
            return load<std::uint64_t>(in, i);
    }
}

std::uint64_t infinity_bits(ScalarType type) {
    switch (type) {
        case ScalarType::float16:
            return 0x7c00;
        case ScalarType::bfloat16:
            return 0x7f80;
        case ScalarType::float32:
            return 0x7f800000;
        default:
            return 0x7ff0000000000000;
    }
}

std::uint64_t canonical_nan(ScalarType type) {
    switch (type) {
        case ScalarType::float16:
            return 0x7e00;
        case ScalarType::bfloat16:
            return 0x7fc0;
        case ScalarType::float32:
            return 0x7fc00000;
        default:
            return 0x7ff8000000000000;
    }
}

// Section 3's form of a scalar: one zero, one NaN.
std::uint64_t canonical_bits(const QuantizePlan& plan, std::uint64_t bits) {
    if (!is_float(plan.scalar))
        return bits;
    const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << (8 * plan.scalar_bytes - 1));
    if (magnitude == 0)
        return 0;
    return magnitude > infinity_bits(plan.scalar) ? canonical_nan(plan.scalar) : bits;
}

void store_code(std::uint8_t* codes, std::size_t i, std::uint32_t code_bytes, std::uint64_t code) {
    __builtin_memcpy(codes + i * code_bytes, &code, code_bytes);
}

// Missing scalars get their code and lose their residue; returns whether a NaN that is not missing
// was seen. Only called where there are fill values or NaN is not equal to NaN: both are rare, so
// this need not be fast.
bool mark_missing_and_find_nan(const QuantizePlan& plan, const std::uint8_t* in, std::size_t count,
                               std::uint8_t* codes, std::uint8_t* residues, std::uint8_t* deltas) {
    const std::uint64_t lowest = std::uint64_t{1} << (8 * plan.code_bytes - 1);
    const std::uint64_t missing = plan.kind == CodeKind::exact ? plan.fill_bits[0] : lowest + 1;
    bool nan_seen = false;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t bits = canonical_bits(plan, scalar_bits(plan, in, i));
        bool is_missing = false;
        for (std::uint32_t f = 0; f < plan.fill_count; ++f)
            is_missing = is_missing || bits == plan.fill_bits[f];
        if (is_missing) {
            store_code(codes, i, plan.code_bytes, missing);
            if (residues != nullptr)
                residues[i] = 0;
            if (deltas != nullptr)
                deltas[i] = 255;
        } else if (is_float(plan.scalar) && bits == canonical_nan(plan.scalar)) {
            nan_seen = true;
        }
    }
    return nan_seen;
}

bool is_unmatchable(const Digest& digest) {
    std::uint64_t words[2];
    __builtin_memcpy(words, &digest, sizeof words);
    return (words[0] & words[1]) == ~std::uint64_t{0};
}

// Scalars to a block: a whole number of hash blocks (1024 bytes of codes) and of packed bytes.
std::size_t block_step(const QuantizePlan& plan) {
    if (plan.packed == 5)
        return 1280;
    if (plan.packed == 3)
        return 768;
    return 1024;
}

void swap_units(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes, std::uint32_t unit) {
    for (std::size_t at = 0; at < bytes; at += unit) {
        for (std::uint32_t b = 0; b < unit; ++b)
            to[at + b] = from[at + unit - 1 - b];
    }
}

bool same(const Digest& a, const Digest& b) {
    return __builtin_memcmp(&a, &b, sizeof a) == 0 && !is_unmatchable(a);
}

// Returns whether the chunk matches what it is compared with, if anything.
bool put_leaf(const ChunkBatch& batch, std::uint64_t chunk, const HashedChunk& hashed) {
    batch.leaves[chunk] = hashed.digest;
    if (batch.leaf_levels == nullptr)
        return false;
    const bool match = same(hashed.digest, batch.golden_leaves[chunk]);
    batch.leaf_levels[chunk] = match ? hashed.largest_delta : no_match_level;
    return match;
}

// Of trees that are made of the same data, which one.
enum class Turn { alone, first, second };

// Turns chunk after chunk into leaves, block by block through one small set of buffers.
class ChunkHasher {
  public:
    explicit ChunkHasher(const ChunkBatch& batch, Turn turn = Turn::alone)
        : batch_(batch),
          turn_(turn),
          plan_(*batch.plan),
          against_(batch.golden_residues != nullptr && plan_.has_residues()),
          encode_(choose_encoder(plan_, against_ ? Rounding::against : Rounding::golden)),
          as_stored_(plan_.kind == CodeKind::exact && plan_.swap_unit == 1 &&
                     plan_.fill_count == 0 &&
                     (is_integer(plan_.scalar) || plan_.scalar == ScalarType::raw)),
          summary_(plan_) {}

    // `in`: the chunk's data.
    HashedChunk hash(std::uint64_t chunk, const std::uint8_t* in) {
        const std::uint64_t left = batch_.scalar_count - chunk * plan_.chunk_scalars;
        const std::uint64_t count = left < plan_.chunk_scalars ? left : plan_.chunk_scalars;
        drift_.clear();
        summary_.begin();
        const Digest digest = as_stored_ ? hash_bytes(in, count * plan_.scalar_bytes)
                              : plan_.scalar == ScalarType::raw ? hash_raw(in, count)
                                                                : hash_scalars(chunk, in, count);
        if (batch_.summaries != nullptr)
            batch_.summaries[chunk] = summary_.end();
        return {digest, drift_.largest()};
    }

    // How many scalars of the last chunk have moved by how much.
    void add_drift(std::uint64_t* histogram) const {
        for (std::int32_t level = 0; level <= plan_.half; ++level)
            histogram[level] += drift_.count(static_cast<std::size_t>(level));
    }

  private:
    static constexpr std::size_t codes_bytes = block_scalars * 8;

    // Asks for a quarter of what is read after the next block, between steps that leave the memory
    // idle: what the encoder asks for by itself would wait for all of it there. Addresses behind
    // the end of the data do no harm, but are no pointers.
    void fetch_quarter(const std::uint8_t* block, std::size_t count, std::size_t quarter) const {
        const std::size_t bytes = count * plan_.scalar_bytes / 4;
        const auto ahead =
            reinterpret_cast<std::uintptr_t>(block) + prefetch_distance * 3 / 2 + quarter * bytes;
        for (std::size_t line = 0; line < bytes; line += 64)
            __builtin_prefetch(reinterpret_cast<const void*>(ahead + line), 0, 2);
    }

    Digest hash_scalars(std::uint64_t chunk, const std::uint8_t* in, std::uint64_t count) {
        const bool residues = plan_.has_residues();
        const bool special_pass = plan_.fill_count > 0 || !plan_.equal_nan;
        const std::uint64_t residue_offset = chunk * plan_.residue_bytes(plan_.chunk_scalars);
        const std::uint64_t length = count * plan_.code_bytes;
        std::uint8_t* codes = buffer_ + stripe_bytes;
        Accumulators sums;
        bool nan_seen = false;
        const std::size_t step = block_step(plan_);
        for (std::uint64_t done = 0; done < count || count == 0; done += step) {
            const std::size_t n =
                count - done < step ? static_cast<std::size_t>(count - done) : step;
            const bool is_last = done + n == count;
            const std::uint8_t* block = in + done * plan_.scalar_bytes;
            if (plan_.swap_unit > 1) {
                swap_units(swapped_, block, n * plan_.scalar_bytes, plan_.swap_unit);
                block = swapped_;
            }
            const std::uint64_t packed_at = residue_offset + (residues ? done / plan_.packed : 0);
            if (against_)
                unpack(plan_, batch_.golden_residues + packed_at, n, residues_);
            const std::uint8_t* const stored = in + done * plan_.scalar_bytes;
            if (turn_ != Turn::alone)
                fetch_quarter(stored, n, turn_ == Turn::first ? 0 : 2);
            // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): there is one for every plan
            encode_(plan_, block, n, codes, residues_, deltas_);
            fetch_quarter(stored, n, turn_ == Turn::alone ? 2 : turn_ == Turn::first ? 1 : 3);
            if (special_pass) {
                nan_seen |= mark_missing_and_find_nan(plan_, block, n, codes,
                                                      residues && !against_ ? residues_ : nullptr,
                                                      against_ ? deltas_ : nullptr);
            }
            if (residues && !against_ && batch_.residues != nullptr) {
                for (std::size_t i = n; i % plan_.packed != 0; ++i)
                    residues_[i] = 0;
                pack(plan_, residues_, n, batch_.residues + packed_at);
            }
            if (against_ && batch_.leaf_levels != nullptr)
                drift_.add(deltas_, n);
            if (batch_.summaries != nullptr)
                summary_.add(codes, n);
            if (length <= longest_short_input || (is_last && done == 0)) {
                if (nan_seen && !plan_.equal_nan)
                    return unmatchable_digest;
                return hash_bytes(codes, static_cast<std::size_t>(length));
            }
            const std::size_t bytes = n * plan_.code_bytes;
            accumulate_piece(sums, codes, bytes, is_last);
            if (is_last)
                break;
            __builtin_memcpy(buffer_, codes + bytes - stripe_bytes, stripe_bytes);
        }
        if (nan_seen && !plan_.equal_nan)
            return unmatchable_digest;
        return canonical(merge_all(sums, length));
    }

    // Items of any width in the other byte order: pieces of whole hash blocks, whatever the item
    // size.
    Digest hash_raw(const std::uint8_t* in, std::uint64_t count) {
        const std::uint64_t length = count * plan_.scalar_bytes;
        std::uint8_t* codes = buffer_ + stripe_bytes;
        Accumulators sums;
        for (std::uint64_t done = 0;; done += codes_bytes) {
            const std::size_t n =
                length - done < codes_bytes ? static_cast<std::size_t>(length - done) : codes_bytes;
            const bool is_last = done + n == length;
            swap_units(codes, in + done, n, plan_.swap_unit);
            if (is_last && done == 0)
                return hash_bytes(codes, n);
            accumulate_piece(sums, codes, n, is_last);
            if (is_last)
                return canonical(merge_all(sums, length));
            __builtin_memcpy(buffer_, codes + n - stripe_bytes, stripe_bytes);
        }
    }

    const ChunkBatch& batch_;
    const Turn turn_;
    const QuantizePlan& plan_;
    const bool against_;
    const EncodeFunction encode_;
    const bool as_stored_;  // codes are the bytes as they stand
    DeltaCounts drift_;     // of one chunk
    CodeSummary summary_;   // of one chunk
    alignas(64) std::uint8_t
        buffer_[stripe_bytes + codes_bytes];  // the last stripe of the block before, codes
    alignas(64) std::uint8_t swapped_[block_scalars * 8];
    alignas(64) std::uint8_t residues_[block_scalars + residue_slack];
    alignas(64) std::uint8_t deltas_[block_scalars + residue_slack];
};

const std::uint8_t* data_of(const ChunkBatch& batch, std::uint64_t chunk) {
    return batch.data + chunk * batch.plan->chunk_scalars * batch.plan->scalar_bytes;
}

void hash_chunks(const ChunkBatch& batch, std::uint64_t first, std::uint64_t last,
                 std::uint64_t* histogram) {
    const FloatingPointMode ieee;
    // Tiles are not counted.
    const bool is_counted = histogram != nullptr && batch.leaf_levels != nullptr;
    TileHasher tiles(&batch, 1);
    ChunkHasher hasher(batch);
    for (std::uint64_t chunk = first; chunk < last; ++chunk) {
        const std::uint8_t* const in = data_of(batch, chunk);
        HashedChunk hashed;
        if (is_counted || !tiles.hash(chunk, in, &hashed))
            hashed = hasher.hash(chunk, in);
        if (put_leaf(batch, chunk, hashed) && is_counted)
            hasher.add_drift(histogram);
    }
}

void hash_trees(const ChunkBatch* batches, std::size_t count, std::uint64_t first,
                std::uint64_t last, const ChunkSource* source) {
    const FloatingPointMode ieee;
    TileHasher tiles(batches, count);
    ChunkHasher hashers[2] = {ChunkHasher(batches[0], count == 1 ? Turn::alone : Turn::first),
                              ChunkHasher(batches[count - 1], Turn::second)};
    const std::uint64_t chunk_scalars = batches[0].plan->chunk_scalars;
    for (std::uint64_t chunk = first; chunk < last; ++chunk) {
        const std::uint64_t left = batches[0].scalar_count - chunk * chunk_scalars;
        const std::uint8_t* const in =
            source == nullptr
                ? data_of(batches[0], chunk)
                : source->next(source->state, left < chunk_scalars ? left : chunk_scalars);
        HashedChunk hashed[2];
        if (!tiles.hash(chunk, in, hashed)) {
            for (std::size_t i = 0; i < count; ++i)
                hashed[i] = hashers[i].hash(chunk, in);
        }
        for (std::size_t i = 0; i < count; ++i)
            (void)put_leaf(batches[i], chunk, hashed[i]);
    }
}

void hash_nodes(const Digest* children, std::uint64_t child_count, std::uint32_t arity,
                Digest* parents, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t parent = first; parent < last; ++parent) {
        const std::uint64_t from = parent * arity;
        const std::uint64_t count = child_count - from < arity ? child_count - from : arity;
        bool unmatchable = false;
        for (std::uint64_t child = from; child < from + count; ++child) {
            unmatchable |= is_unmatchable(children[child]);
        }
        parents[parent] = unmatchable
                              ? unmatchable_digest
                              : hash_bytes(reinterpret_cast<const std::uint8_t*>(children + from),
                                           static_cast<std::size_t>(count * sizeof(Digest)));
    }
}

Digest hash_parts(const ByteRange* parts, std::size_t count) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < count; ++i)
        length += parts[i].length;
    PartsHasher hasher(length);
    for (std::size_t i = 0; i < count; ++i)
        hasher.add(parts[i].data, parts[i].length);
    return hasher.digest();
}

void copy_columns(const ColumnsCopy& copy) {
    if (copy.element_bytes == 8)
        copy_columns_of<8>(copy);
    else
        copy_columns_of<4>(copy);
}

void encode(const QuantizePlan& plan, const std::uint8_t* data, std::uint64_t scalar_count,
            std::uint8_t* codes, std::uint8_t* unpacked_residues, bool against) {
    const FloatingPointMode ieee;
    if (plan.scalar == ScalarType::raw) {
        return swap_units(codes, data, static_cast<std::size_t>(scalar_count * plan.scalar_bytes),
                          plan.swap_unit);
    }
    const EncodeFunction encode_block =
        choose_encoder(plan, against ? Rounding::against : Rounding::golden);
    alignas(64) std::uint8_t swapped[block_scalars * 8];
    alignas(64) std::uint8_t deltas[block_scalars];
    for (std::uint64_t done = 0; done < scalar_count; done += block_scalars) {
        const std::uint64_t left = scalar_count - done;
        const auto n = static_cast<std::size_t>(left < block_scalars ? left : block_scalars);
        swap_units(swapped, data + done * plan.scalar_bytes, n * plan.scalar_bytes, plan.swap_unit);
        std::uint8_t* residues = unpacked_residues == nullptr ? nullptr : unpacked_residues + done;
        encode_block(plan, swapped, n, codes + done * plan.code_bytes, residues, deltas);
        if (plan.fill_count > 0) {
            mark_missing_and_find_nan(plan, swapped, n, codes + done * plan.code_bytes,
                                      plan.has_residues() && !against ? residues : nullptr,
                                      nullptr);
        }
    }
}

}  // namespace
}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE

namespace ciwrap {

#define CIWRAP_TEXT_(x) #x
#define CIWRAP_TEXT(x) CIWRAP_TEXT_(x)

const LevelKernels CIWRAP_JOIN(kernels_, CIWRAP_CPU_LEVEL) = {
    CIWRAP_TEXT(CIWRAP_CPU_LEVEL),        CIWRAP_LEVEL_NAMESPACE::hash_chunks,
    CIWRAP_LEVEL_NAMESPACE::hash_trees,   CIWRAP_LEVEL_NAMESPACE::hash_nodes,
    CIWRAP_LEVEL_NAMESPACE::hash_bytes,   CIWRAP_LEVEL_NAMESPACE::hash_parts,
    CIWRAP_LEVEL_NAMESPACE::copy_columns, CIWRAP_LEVEL_NAMESPACE::encode};

}  // namespace ciwrap
