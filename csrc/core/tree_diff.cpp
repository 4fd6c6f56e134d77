#include "kernels/executor.hpp"

#include <algorithm>
#include <numeric>

#include "ciwrap/error.hpp"
#include "ciwrap/tree.hpp"

namespace ciwrap {
namespace {

constexpr std::uint64_t nodes_per_grain = 4096;

bool matches(const Digest& a, const Digest& b) {
    return a == b && a != unmatchable_digest;
}

std::size_t first_level(const TreeShape& shape, std::int64_t asked, int workers) {
    const std::size_t leaves = shape.level_count() - 1;
    if (asked >= 0)
        return std::min(static_cast<std::size_t>(asked), leaves);
    std::size_t level = 0;
    while (level < leaves && shape.count(level) <= static_cast<std::uint64_t>(workers))
        ++level;
    return level;
}

}  // namespace

std::vector<std::uint64_t> diff_trees(const MerkleTree& golden, const MerkleTree& other,
                                      std::int64_t start_level, const Execution& execution) {
    if (!same_codes(golden.parameters, other.parameters)) {
        throw Error(ErrorCode::invalid_argument,
                    "trees made with different parameters cannot be compared");
    }
    if (golden.scalar_count != other.scalar_count) {
        throw Error(ErrorCode::invalid_argument,
                    "trees of arrays of different sizes cannot be compared");
    }
    if (!golden.residues.empty() && !other.residues.empty() && golden.residues != other.residues) {
        throw Error(ErrorCode::invalid_argument,
                    "trees with residues of their own cannot be compared; make one of them against "
                    "the other");
    }
    const TreeShape shape = golden.shape();
    const std::size_t leaf_level = shape.level_count() - 1;
    std::size_t level = first_level(shape, start_level, execution.workers);

    std::vector<std::uint64_t> nodes(shape.count(level));
    std::iota(nodes.begin(), nodes.end(), std::uint64_t{0});
    std::vector<std::uint8_t> differs;
    for (;; ++level) {
        differs.assign(nodes.size(), 0);
        const std::uint64_t offset = shape.offset(level);
        parallel_ranges(execution, nodes.size(), nodes_per_grain,
                        [&](std::uint64_t first, std::uint64_t last, int) {
                            for (std::uint64_t i = first; i < last; ++i) {
                                const std::uint64_t node = offset + nodes[i];
                                differs[i] =
                                    matches(golden.digests[node], other.digests[node]) ? 0 : 1;
                            }
                        });
        std::vector<std::uint64_t> next;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            if (differs[i] == 0)
                continue;
            if (level == leaf_level) {
                next.push_back(nodes[i]);
                continue;
            }
            const std::uint64_t first = nodes[i] * shape.arity();
            const std::uint64_t last = std::min(first + shape.arity(), shape.count(level + 1));
            for (std::uint64_t child = first; child < last; ++child)
                next.push_back(child);
        }
        nodes.swap(next);
        if (level == leaf_level)
            return nodes;
    }
}

std::vector<std::uint64_t> diff_leaves(std::span<const Digest> golden,
                                       std::span<const Digest> other) {
    if (golden.size() != other.size())
        throw Error(ErrorCode::invalid_argument, "trees of different sizes cannot be compared");
    std::vector<std::uint64_t> found;
    for (std::size_t leaf = 0; leaf < golden.size(); ++leaf) {
        if (!matches(golden[leaf], other[leaf]))
            found.push_back(leaf);
    }
    return found;
}

}  // namespace ciwrap
