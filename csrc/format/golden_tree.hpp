// Checks of what a golden holds, shared by reader and writer: neither accepts what the other
// refuses. Internal to csrc/format.
#pragma once

#include <optional>
#include <string>

#include "ciwrap/merkle_tree.hpp"

namespace ciwrap {

// What is wrong with the inner nodes ("has a wrong node at level 2"); nothing if each is what its
// children give. tree.digests must have as many nodes as tree.shape().
std::optional<std::string> tree_fault(const MerkleTree& tree);

// The same for packed residues that are out of range. tree.residues must have the right length.
std::optional<std::string> residue_fault(const MerkleTree& tree);

}  // namespace ciwrap
