// What of the lines of a text is left out of its comparison: sets of signs, and named places.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/ignored_text.hpp"
#include "text/text_tokens.hpp"

namespace ciwrap {

// The set of pieces that a named place covers; beside IgnoredSets.
inline constexpr unsigned ignored_place = 64;

// A line as `template_of` writes it, with `#` for a number and `{}` for one that is left out.
class LinePlace {
  public:
    // Throws Error(invalid_argument) for a template without `{}`, and for one without a word.
    explicit LinePlace(std::string_view text);

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
    // sets: IgnoredSets.
    LeftOut(unsigned sets, const std::vector<std::string>& places);

    unsigned sets() const { return sets_; }
    bool is_nothing() const { return sets_ == 0 && places_.empty(); }
    // As `find_ignored`, and the places.
    void find(std::string_view line, std::vector<LinePiece>& pieces) const;

  private:
    unsigned sets_;
    std::vector<LinePlace> places_;
};

}  // namespace ciwrap
