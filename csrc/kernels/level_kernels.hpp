// The host kernels that exist once per CPU level, behind plain function pointers. No Kokkos, no
// CPU-specific types: the level's translation units are compiled with other instruction sets than
// the rest and share nothing else with it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/quantize_plan.hpp"
#include "ciwrap/chunk_summary.hpp"
#include "ciwrap/digest.hpp"
#include "kernels/compare_floats.hpp"

namespace ciwrap {

inline constexpr std::uint8_t no_match_level = 255;

// A run of whole chunks in memory and where their results go. Arrays are indexed from the batch's
// first chunk.
struct ChunkBatch {
    const QuantizePlan* plan = nullptr;
    const std::uint8_t* data = nullptr;  // may be unaligned
    std::uint64_t scalar_count = 0;      // in the batch; only the last chunk may be short
    Digest* leaves = nullptr;            // out

    std::uint8_t* residues = nullptr;  // out, packed; null: a plain tree or a run against a golden

    // All three or none: a new run, rounded relative to a golden's residues.
    const std::uint8_t* golden_residues = nullptr;
    const Digest* golden_leaves = nullptr;
    std::uint8_t* leaf_levels =
        nullptr;  // out: largest |delta|; no_match_level where the leaf differs

    ChunkSummary* summaries = nullptr;  // out; null: not asked for, or codes of the kind exact
};

struct ByteRange {
    const std::uint8_t* data;
    std::size_t length;
};

// Data that do not lie back to back.
struct ChunkSource {
    // The next so many scalars; where they are, they stay until the next call.
    const std::uint8_t* (*next)(void* state, std::uint64_t scalars);
    void* state;
};

// Rows that are copied back to back out of an array whose columns lie together: element [i, j] is
// at from + i element_bytes + j column_stride.
struct ColumnsCopy {
    const std::uint8_t* from;
    std::int64_t column_stride;
    std::uint8_t* to;
    std::size_t rows;
    std::size_t columns;
    std::size_t element_bytes;  // 4 or 8
};

struct LevelKernels {
    const char* name;
    // Chunks [first, last) of the batch. `histogram`, if not null, has half + 1 counts and is added
    // to.
    void (*hash_chunks)(const ChunkBatch& batch, std::uint64_t first, std::uint64_t last,
                        std::uint64_t* histogram);
    // The same for one or two trees of the same data with chunks of the same size, chunk by chunk,
    // so that data are read from memory once. source: where they come from if not from batch.data.
    void (*hash_trees)(const ChunkBatch* batches, std::size_t count, std::uint64_t first,
                       std::uint64_t last, const ChunkSource* source);
    // parents[i] = node over children [i * arity, ...), i in [first, last).
    void (*hash_nodes)(const Digest* children, std::uint64_t child_count, std::uint32_t arity,
                       Digest* parents, std::uint64_t first, std::uint64_t last);
    Digest (*hash_bytes)(const std::uint8_t* data, std::size_t length);
    // The same for parts as if they were copied behind one another.
    Digest (*hash_parts)(const ByteRange* parts, std::size_t count);
    void (*copy_columns)(const ColumnsCopy& copy);
    // The codes themselves, for tests and tools: `codes` has code_bytes per scalar.
    // `unpacked_residues` is read if `against`, written otherwise (ignored without residues).
    void (*encode)(const QuantizePlan& plan, const std::uint8_t* data, std::uint64_t scalar_count,
                   std::uint8_t* codes, std::uint8_t* unpacked_residues, bool against);
};

// The same, for comparing elements: apart, since what hashes alone is linked without them.
struct CompareKernels {
    void (*compare_floats)(const FloatComparison& input, FloatTally& tally);
    // Stored scalars, not raw bytes, as doubles: each exactly, but for whole numbers of 8 bytes
    // beyond 2^53. swap: they are big-endian.
    void (*widen_scalars)(ScalarType scalar, const std::uint8_t* from, bool swap, std::size_t count,
                          double* to);
    // How many scalars of a tile equal one of the fill values, or are NaN if that is one of them.
    std::uint32_t (*find_fills)(const double* tile, const double* fills, std::size_t fill_count,
                                bool nan_is_fill);
};

extern const LevelKernels kernels_v1;
extern const LevelKernels kernels_v3;
extern const LevelKernels kernels_v4;
extern const LevelKernels kernels_neon;
extern const LevelKernels kernels_generic;
extern const CompareKernels compare_kernels_v1;
extern const CompareKernels compare_kernels_v3;
extern const CompareKernels compare_kernels_v4;
extern const CompareKernels compare_kernels_neon;
extern const CompareKernels compare_kernels_generic;

}  // namespace ciwrap
