// Builds the Merkle tree of an array from a stream of its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/merkle_tree.hpp"
#include "base/quantize_plan.hpp"
#include "kernels/device_hasher.hpp"
#include "kernels/executor.hpp"

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

// Called now and then during long work, from the calling thread; throws to stop it.
using Interrupt = std::function<void()>;

// Two sets of parameters that give the same codes for the same numbers: equal but for byte order.
bool same_codes(const TreeParameters& a, const TreeParameters& b);

// One stream at a time, not thread safe. Memory: the tree, and one chunk of input.
class TreeBuilder {
  public:
    // golden, if given, is what the run is compared with: same parameters (but for byte order) and
    // size, else Error(invalid_argument).
    TreeBuilder(TreeParameters parameters, std::uint64_t scalar_count,
                std::shared_ptr<const MerkleTree> golden, Execution execution,
                Interrupt interrupt = {});

    // The next bytes, split anywhere. Error(invalid_argument) beyond scalar_count.
    void update(std::span<const std::byte> data);

    // All of the array, hashed where it lies on the builder's device; returns when it has been, so
    // that the memory is its owner's again. Error(invalid_argument) for a host backend, another
    // size, or after update; not_available if the array is on another device.
    void update_device(const DeviceArray& array);

    // Error(invalid_argument) unless every scalar was given. Once.
    std::shared_ptr<const MerkleTree> finish();

    // After finish(), if golden has residues.
    const std::optional<Drift>& drift() const { return drift_; }

  private:
    void hash(std::span<const std::byte> chunks);
    ChunkBatch batch_at(std::uint64_t leaf, std::uint64_t scalar_count);
    std::uint64_t* device_histogram();

    MerkleTree tree_;
    QuantizePlan plan_;
    TreeShape shape_;
    std::shared_ptr<const MerkleTree> golden_;
    Execution execution_;
    std::unique_ptr<DeviceHasher> device_;  // null: the host's kernels
    Interrupt interrupt_;
    std::vector<std::byte> pending_;  // the beginning of a chunk whose end has not come yet
    std::uint64_t chunk_bytes_;
    std::uint64_t total_bytes_;
    std::uint64_t received_bytes_ = 0;
    std::uint64_t next_leaf_ = 0;
    std::vector<std::vector<std::uint64_t>> histograms_;  // one per worker
    std::optional<Drift> drift_;
    bool finished_ = false;
};

// Fills the levels above the leaves.
void build_upper_levels(const TreeShape& shape, const Execution& execution,
                        std::vector<Digest>& digests);

}  // namespace ciwrap
