// Stage one: which leaves of two trees differ.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/merkle_tree.hpp"
#include "kernels/executor.hpp"

namespace ciwrap {

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

}  // namespace ciwrap
