// What is left out of the comparison of two texts: sets of signs, named places, and lines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/ignored_text.hpp"
#include "text/line_pattern.hpp"
#include "text/text_tokens.hpp"

namespace ciwrap {

// The set of pieces that a named place covers; beside IgnoredSets.
inline constexpr unsigned ignored_place = 64;

// A line that was read. number: from 1. is_golden: of which side.
struct NumberedLine {
    std::string_view text{};
    std::uint64_t number = 0;
    bool is_golden = true;
};

// Lines of a text, counted from 1, the last one among them.
struct LineRange {
    std::uint64_t first;
    std::uint64_t last;
};

// Lines of either side, in ascending ranges that do not overlap.
struct Section {
    std::vector<LineRange> golden;
    std::vector<LineRange> value;
    bool holds(const NumberedLine& line) const;
};

// What is left out of the lines of a section: the numbers of a place, as LinePlace takes it; if it
// is empty, whole lines.
struct SectionLeftOut {
    std::string place;
    Section section;
};

struct LeftOutRules {
    unsigned sets = 0;                  // IgnoredSets
    std::vector<std::string> places{};  // as LinePlace takes them
    std::vector<std::string> lines{};   // as LinePattern takes them
    std::vector<SectionLeftOut> sections{};
};

// A line as `template_of` writes it, with `#` for a number and `{}` for one that is left out.
class LinePlace {
  public:
    // Throws Error(invalid_argument) for a template without `{}`, and for one without a word unless
    // it is looked for in a section alone.
    explicit LinePlace(std::string_view text, bool is_in_section = false);

    // Adds the numbers at `{}` to what was found if the line is of this template. covered: what the
    // sets cover, which the template has as `...`.
    void find(std::string_view line, std::span<const LinePiece> covered,
              std::vector<LinePiece>& found) const;

  private:
    std::string text_;
};

// The template of a line with `{}` for one of its numbers, counted from 0; empty if it is longer
// than so many bytes.
std::string place_of_number(std::string_view line, const std::vector<LinePiece>& ignored,
                            std::size_t ordinal, std::size_t most_bytes);

class LeftOut {
  public:
    // Throws as LinePlace and LinePattern do.
    explicit LeftOut(const LeftOutRules& rules);

    unsigned sets() const { return sets_; }
    // Of the pieces of lines.
    bool is_nothing() const { return sets_ == 0 && places_.empty() && places_within_.empty(); }
    // Whether equal lines are left out alike, wherever they stand.
    bool is_by_text() const { return places_within_.empty() && whole_.empty(); }
    // As `find_ignored`, and the places.
    void find(const NumberedLine& line, std::vector<LinePiece>& pieces) const;

    // Rules that leave out whole lines: the patterns, then the sections, each in their order.
    std::size_t line_rules() const { return patterns_.size() + whole_.size(); }
    // The rule that leaves a line out; as many as there are: none.
    std::size_t rule_over(const NumberedLine& line) const;

  private:
    struct PlaceWithin {
        LinePlace place;
        Section section;
    };

    unsigned sets_;
    std::vector<LinePlace> places_;
    std::vector<PlaceWithin> places_within_;
    std::vector<LinePattern> patterns_;
    std::vector<Section> whole_;
};

}  // namespace ciwrap
