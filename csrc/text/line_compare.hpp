// Two lines, token by token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/left_out.hpp"
#include "text/text_notes.hpp"
#include "text/text_number.hpp"
#include "text/text_readings.hpp"
#include "text/text_tokens.hpp"
#include "text/text_window.hpp"

namespace ciwrap {

// What comparing two lines comes to.
struct LineFinding {
    bool is_one_shape = true;
    std::uint64_t numbers = 0;
    std::uint64_t differing = 0;
    std::uint64_t ignored = 0;
    std::uint64_t nan_mismatches = 0;
    std::uint64_t inf_mismatches = 0;
    double max_abs = 0.0, max_rel = 0.0, max_share = 0.0;
};

class LineComparer {
  public:
    // Both are to outlive this.
    LineComparer(const TextBound& bound, const LeftOut& left_out)
        : bound_(bound), left_out_(left_out) {}

    LineFinding compare(const NumberedLine& golden_line, const NumberedLine& value_line);

    // Of the lines that were compared last: the numbers that do not agree, as far as they are kept,
    // and what is left out.
    const std::vector<DifferingNumber>& differing() const { return differing_; }
    const IgnoredPieces& pieces() const { return pieces_; }

  private:
    void take_numbers(const PlacedNumber& golden, const PlacedNumber& value, LineFinding& found);

    const TextBound& bound_;
    const LeftOut& left_out_;
    std::vector<DifferingNumber> differing_;
    IgnoredPieces pieces_;
};

// The whole lines that both texts at hand begin with; where both end with the last one, it may be
// without a line break.
struct EqualLines {
    std::string_view text{};
    std::uint64_t count = 0;
};
EqualLines equal_lines(const TextWindow& a, const TextWindow& b);

// How many bytes both begin with.
std::size_t common_prefix(std::string_view a, std::string_view b);

}  // namespace ciwrap
