// Merkle trees of arrays: built from a stream of their bytes, and compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ciwrap/chunk_summary.hpp"
#include "ciwrap/device_array.hpp"
#include "ciwrap/execution.hpp"
#include "ciwrap/merkle_tree.hpp"

namespace ciwrap {

// How far a run moved from a golden with residues: over the scalars that were rounded, in matching
// chunks.
struct Drift {
    std::uint64_t scalar_count = 0;
    std::int32_t max_level = 0;                // largest |delta| in fine steps
    double max_share = 0.0;                    // max_level / (h + 1)
    std::vector<std::uint64_t> histogram;      // h + 1 counts
    std::vector<std::uint8_t> leaf_max_level;  // no_match_level where the leaf differs
};

// Two sets of parameters that give the same codes for the same numbers: equal but for byte order.
bool same_codes(const TreeParameters& a, const TreeParameters& b);

// One stream at a time, not thread safe. Memory: the tree, and one chunk of input.
class TreeBuilder {
  public:
    // golden, if given, is what the run is compared with: same parameters (but for byte order) and
    // size, else Error(invalid_argument). summaries: whether chunks are summarised, too; codes of
    // the kind `exact` are not.
    TreeBuilder(const TreeParameters& parameters, std::uint64_t scalar_count,
                std::shared_ptr<const MerkleTree> golden, const Execution& execution,
                Interrupt interrupt = {}, bool summaries = false);
    ~TreeBuilder();
    TreeBuilder(TreeBuilder&& other) noexcept;
    TreeBuilder& operator=(TreeBuilder&& other) noexcept;

    // The next bytes, split anywhere. Error(invalid_argument) beyond scalar_count.
    void update(std::span<const std::byte> data);

    // All of the array, hashed where it lies on the builder's device; returns when it has been, so
    // that the memory is its owner's again. Error(invalid_argument) for a host backend, another
    // size, or after update; not_available if the array is on another device.
    void update_device(const DeviceArray& array);

    // Error(invalid_argument) unless every scalar was given. Once.
    std::shared_ptr<const MerkleTree> finish();

    // After finish(), if golden has residues.
    const std::optional<Drift>& drift() const;

    // After finish(): one for each chunk; empty if they were not asked for, or there are none.
    const std::vector<ChunkSummary>& summaries() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Summaries of whole chunks, of which the last may be short. golden: rounds relative to its
// residues, from its chunk first_leaf on; null: by the parameters alone. Throws
// Error(invalid_argument) for data that are not a whole number of scalars, for the kind `exact`,
// whose codes are no numbers, and if the golden has no such chunks.
std::vector<ChunkSummary> summarize_chunks(const TreeParameters& parameters,
                                           std::span<const std::byte> data,
                                           const MerkleTree* golden, std::uint64_t first_leaf);

// Indices of the leaves that do not match, ascending. Breadth-first and level by level from
// start_level (0: the root; beyond the leaves: the leaves; negative: the first level with more
// nodes than there are workers), each level's nodes in parallel; equal digests prune what is below
// them. Throws Error(invalid_argument) if parameters (but for byte order) or sizes differ, or if
// each tree has residues of its own: equal cells are then up to k fine steps apart, which is no
// match.
std::vector<std::uint64_t> diff_trees(const MerkleTree& golden, const MerkleTree& other,
                                      std::int64_t start_level, const Execution& execution);

// The same for leaves alone: positions where the two do not match. Throws Error(invalid_argument)
// if they are not equally many.
std::vector<std::uint64_t> diff_leaves(std::span<const Digest> golden,
                                       std::span<const Digest> other);

// Fills the levels above the leaves.
void build_upper_levels(const TreeShape& shape, const Execution& execution,
                        std::vector<Digest>& digests);

}  // namespace ciwrap
