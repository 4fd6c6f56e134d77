// Stage one: which leaves of two trees differ.
#pragma once

#include <cstdint>
#include <vector>

#include "base/merkle_tree.hpp"
#include "kernels/executor.hpp"

namespace ciwrap {

// Indices of the leaves that do not match, ascending. Breadth-first and level by level from
// start_level (0: the root; beyond the leaves: the leaves; negative: the first level with more
// nodes than there are workers), each level's nodes in parallel; equal digests prune what is below
// them. Throws Error(invalid_argument) if parameters (but for byte order) or sizes differ.
std::vector<std::uint64_t> diff_trees(const MerkleTree& golden, const MerkleTree& other,
                                      std::int64_t start_level, const Execution& execution);

}  // namespace ciwrap
