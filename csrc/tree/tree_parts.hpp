// A tree while it is built: its arrays, and where chunks and upper levels go in them. Who hashes
// what in which order, on how many threads, is the caller's affair.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/quantize_plan.hpp"
#include "ciwrap/merkle_tree.hpp"
#include "ciwrap/tree.hpp"
#include "kernels/level_kernels.hpp"

namespace ciwrap {

struct TreeParts {
    // golden: what the run is compared with, or null. Throws Error(invalid_argument) if it is of
    // other parameters (but for byte order) or another size, or for more than 2^60 bytes. spare: a
    // tree whose memory is used again.
    TreeParts(const TreeParameters& parameters, std::uint64_t scalar_count,
              std::shared_ptr<const MerkleTree> golden, MerkleTree spare = {});

    // Has chunks summarised from now on, if their codes are numbers.
    void ask_for_summaries();

    // Leaves from `leaf` on and what belongs to them; the data are the caller's to fill in.
    ChunkBatch batch_at(std::uint64_t leaf, std::uint64_t scalar_count);
    std::uint64_t chunk_bytes() const { return plan.chunk_scalars * plan.scalar_bytes; }
    // One count for every fine step that a value can have moved, for each worker.
    std::vector<std::uint64_t> histogram() const;
    void add_drift(std::span<const std::uint64_t> histogram);

    MerkleTree tree;
    QuantizePlan plan;
    TreeShape shape;
    std::shared_ptr<const MerkleTree> golden;
    std::uint64_t total_bytes;
    std::optional<Drift> drift;  // of a run against a golden with residues
    std::vector<ChunkSummary> summaries;
};

// Nodes [first, last) of a level, made of those below it.
void hash_level(const TreeShape& shape, std::size_t level, std::vector<Digest>& digests,
                std::uint64_t first, std::uint64_t last);

}  // namespace ciwrap
