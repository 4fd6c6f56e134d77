// Some of an array's chunks, a bit each: from the first one in the set to the last.
#pragma once

#include <cstdint>
#include <vector>

namespace ciwrap {

class LeafSet {
  public:
    bool empty() const { return words_.empty(); }
    bool contains(std::uint64_t leaf) const;
    // Cheapest in ascending order.
    void insert(std::uint64_t leaf);
    void insert(const LeafSet& others);
    std::vector<std::uint64_t> list() const;  // ascending

  private:
    std::uint64_t& word_of(std::uint64_t leaf);

    std::uint64_t first_word_ = 0;      // of the array's chunks, 64 to a word
    std::vector<std::uint64_t> words_;  // the first and the last are not 0
};

}  // namespace ciwrap
