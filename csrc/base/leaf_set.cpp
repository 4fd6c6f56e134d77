#include "ciwrap/leaf_set.hpp"

#include <bit>

namespace ciwrap {

std::uint64_t& LeafSet::word_of(std::uint64_t leaf) {
    const std::uint64_t word = leaf / 64;
    if (words_.empty())
        first_word_ = word;
    if (word < first_word_) {
        words_.insert(words_.begin(), static_cast<std::size_t>(first_word_ - word), 0);
        first_word_ = word;
    }
    const auto at = static_cast<std::size_t>(word - first_word_);
    if (at >= words_.size())
        words_.resize(at + 1);
    return words_[at];
}

bool LeafSet::contains(std::uint64_t leaf) const {
    const std::uint64_t word = leaf / 64;
    return word >= first_word_ && word - first_word_ < words_.size() &&
           (words_[static_cast<std::size_t>(word - first_word_)] >> (leaf % 64) & 1) != 0;
}

void LeafSet::insert(std::uint64_t leaf) {
    word_of(leaf) |= std::uint64_t{1} << (leaf % 64);
}

void LeafSet::insert(const LeafSet& others) {
    for (std::size_t i = 0; i < others.words_.size(); ++i) {
        if (others.words_[i] != 0)
            word_of((others.first_word_ + i) * 64) |= others.words_[i];
    }
}

std::vector<std::uint64_t> LeafSet::list() const {
    std::vector<std::uint64_t> leaves;
    for (std::size_t i = 0; i < words_.size(); ++i) {
        for (std::uint64_t bits = words_[i]; bits != 0; bits &= bits - 1) {
            leaves.push_back((first_word_ + i) * 64 +
                             static_cast<std::uint64_t>(std::countr_zero(bits)));
        }
    }
    return leaves;
}

}  // namespace ciwrap
