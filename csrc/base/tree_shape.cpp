#include "ciwrap/tree_shape.hpp"

#include <algorithm>
#include <string>

#include "ciwrap/error.hpp"

namespace ciwrap {

TreeShape::TreeShape(std::uint64_t leaf_count, std::uint32_t arity) : arity_(arity) {
    if (leaf_count == 0 || arity < 2 || arity > 256) {
        throw Error(ErrorCode::invalid_argument,
                    "a tree needs at least one leaf and an arity of 2 to 256, not " +
                        std::to_string(leaf_count) + " and " + std::to_string(arity));
    }
    for (std::uint64_t count = leaf_count;; count = (count - 1) / arity + 1) {
        counts_.push_back(count);
        if (count == 1)
            break;
    }
    std::reverse(counts_.begin(), counts_.end());
    for (const std::uint64_t count : counts_) {
        offsets_.push_back(node_count_);
        node_count_ += count;
    }
}

}  // namespace ciwrap
