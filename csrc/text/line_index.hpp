// The lines of a text at hand that are looked at to find partners.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "text/align_lines.hpp"
#include "text/text_tokens.hpp"

namespace ciwrap {

// What a line says, for finding its partner. ignored: ascending pieces of it.
LineKey key_of(std::string_view line, std::span<const LinePiece> ignored);

// The lines of one side. All offsets are of the text at hand.
class LineIndex {
  public:
    struct Line {
        std::size_t begin;
        std::size_t end;  // without the line break
        std::size_t next;
        std::size_t rule;  // that leaves it out, as in LeftOut::rule_over
    };

    void clear() {
        lines.clear();
        keys.clear();
        kept.clear();
    }

    std::size_t bytes() const { return lines.empty() ? 0 : lines.back().next; }

    std::vector<Line> lines;        // all of them
    std::vector<LineKey> keys;      // of those that count
    std::vector<std::size_t> kept;  // which lines these are
};

// How many of the pairs, from the front, are sure to be right: up to the last run of lines that
// say the same, if half of what lies before it does. 0: none.
std::size_t sure_pairs(const LineIndex& golden, const LineIndex& value,
                       std::span<const LinePair> pairs);

}  // namespace ciwrap
