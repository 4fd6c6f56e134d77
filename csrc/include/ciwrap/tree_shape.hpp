// The shape of a tree: how many nodes every level has. It follows from the leaf count and the arity
// alone.
#pragma once

#include <cstdint>
#include <vector>

namespace ciwrap {

class TreeShape {
  public:
    // leaf_count >= 1, 2 <= arity <= 256, else Error(invalid_argument).
    TreeShape(std::uint64_t leaf_count, std::uint32_t arity);

    std::uint32_t arity() const { return arity_; }
    std::uint64_t leaf_count() const { return counts_.back(); }
    std::uint64_t node_count() const { return node_count_; }
    std::size_t level_count() const { return counts_.size(); }  // level 0 is the root
    std::uint64_t count(std::size_t level) const { return counts_[level]; }
    // Index of a level's first node in the flat, root-first array.
    std::uint64_t offset(std::size_t level) const { return offsets_[level]; }
    const std::vector<std::uint64_t>& counts() const { return counts_; }

  private:
    std::uint32_t arity_;
    std::uint64_t node_count_ = 0;
    std::vector<std::uint64_t> counts_;
    std::vector<std::uint64_t> offsets_;
};

}  // namespace ciwrap
