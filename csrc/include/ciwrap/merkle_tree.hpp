// A Merkle tree of one array: digests as one flat array, root first, and the residues if any.
#pragma once

#include <cstdint>
#include <vector>

#include "ciwrap/digest.hpp"
#include "ciwrap/parameters.hpp"
#include "ciwrap/tree_shape.hpp"
#include "ciwrap/uninitialized_bytes.hpp"

namespace ciwrap {

struct MerkleTree {
    TreeParameters parameters;
    std::uint64_t scalar_count = 0;
    std::vector<Digest> digests;  // root first, level by level, leaves last
    UninitializedBytes residues;  // packed, chunk by chunk; empty for a plain tree

    std::uint64_t leaf_count() const { return parameters.leaf_count(scalar_count); }
    TreeShape shape() const { return TreeShape(leaf_count(), parameters.arity()); }
    const Digest& root() const { return digests.front(); }
};

}  // namespace ciwrap
