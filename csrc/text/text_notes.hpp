// Where two texts differ, gathered by template and place, bounded however much differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/left_out.hpp"
#include "text/text_number.hpp"
#include "text/text_tokens.hpp"

namespace ciwrap {

// line, column: from 1; columns are characters where the line is UTF-8, else bytes. text: a number,
// or the beginning of a line.
struct TextPlace {
    std::uint64_t line = 0;
    std::uint64_t column = 0;
    std::string text;
};

// Numbers that differ in one place of one template. number: which of the line's, from 1. golden,
// value: the first of them. is_part: some are within the bound, and yet not written alike, as parts
// of longer numbers have to be. remedies: sets (IgnoredSets) each of which would cover it. place:
// as LinePlace takes it, what would leave out this number; empty if it is too long or has no word.
struct NumberGroup {
    std::string line_template;
    std::uint64_t number = 0;
    std::uint64_t count = 0;
    TextPlace golden;
    TextPlace value;
    double max_abs_difference = 0.0;
    double max_bound_share = 0.0;
    bool is_part = false;
    unsigned remedies = 0;
    std::string place;
};

// Lines of one template that have no partner. golden_count, value_count: on either side. first: of
// them, on the golden side if there is one. remedies: as above, if that would have paired them.
struct LineGroup {
    std::string line_template;
    std::uint64_t golden_count = 0;
    std::uint64_t value_count = 0;
    TextPlace golden;
    TextPlace value;
    unsigned remedies = 0;
};

// What one set, or the named places, leave out of lines of one template. numbers: in all of them.
// golden, value: the first piece.
struct MaskedGroup {
    unsigned set = 0;
    std::string line_template;
    std::uint64_t line_count = 0;
    std::uint64_t number_count = 0;
    TextPlace golden;
    TextPlace value;
};

struct DifferingNumber {
    std::size_t ordinal;  // among the line's numbers, from 0
    std::string_view golden;
    std::string_view value;
    NumberComparison found;
};

// Pieces of two lines that are left out.
struct IgnoredPieces {
    std::vector<LinePiece> golden;
    std::vector<LinePiece> value;
    void find(const NumberedLine& golden_line, const NumberedLine& value_line,
              const LeftOut& left_out);
};

// Groups by key, of which the first ones are kept. However many there are, memory is a few MiB.
template <typename Group>
class KeptGroups {
  public:
    explicit KeptGroups(std::size_t most) : most_(most) {}

    // The group of a key, which begins as make() says; none if it is not kept.
    template <typename Make>
    Group* of(std::uint64_t key, const Make& make) {
        auto found = places_.find(key);
        if (found == places_.end()) {
            if (places_.size() == most_keys)
                return nullptr;
            found = places_.emplace(key, kept.size()).first;
            if (kept.size() < most_)
                kept.push_back(make());
        }
        return found->second < kept.size() ? &kept[found->second] : nullptr;
    }

    // How many there were, as far as they were told apart.
    std::uint64_t count() const { return places_.size(); }

    std::vector<Group> kept;

  private:
    static constexpr std::size_t most_keys = std::size_t{1} << 16;

    std::size_t most_;
    std::unordered_map<std::uint64_t, std::size_t> places_;
};

class TextNotes {
  public:
    // left_out: what is ignored already.
    TextNotes(const LeftOut& left_out, std::size_t most_groups)
        : numbers(most_groups), lines(most_groups), masked(most_groups), left_out_(left_out) {}

    void add_number(const NumberedLine& golden, const NumberedLine& value, std::uint64_t shape,
                    const DifferingNumber& number, const IgnoredPieces& ignored);
    // What is left out of two partners. golden, value: pieces in the same order.
    void add_masked(const NumberedLine& golden, const NumberedLine& value, std::uint64_t shape,
                    const IgnoredPieces& ignored);
    // Lines without a partner, between the same two pairs: as many of either side as there are.
    void add_lines(const std::vector<NumberedLine>& golden, const std::vector<NumberedLine>& value);

    KeptGroups<NumberGroup> numbers;
    KeptGroups<LineGroup> lines;
    KeptGroups<MaskedGroup> masked;

  private:
    LineGroup* group_of(const NumberedLine& line);

    const LeftOut& left_out_;
};

// A hash of the line's template.
std::uint64_t shape_of(std::string_view line, std::span<const LinePiece> ignored);

inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t next) {
    hash = (hash ^ next) * 0x9e3779b97f4a7c15ULL;
    return hash ^ (hash >> 29);
}

// The hash with a token's part in the template mixed in.
std::uint64_t mixed(std::uint64_t hash, const Token& token);

}  // namespace ciwrap
