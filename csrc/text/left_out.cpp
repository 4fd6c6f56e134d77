#include "text/left_out.hpp"

#include <algorithm>
#include <iterator>

#include "ciwrap/error.hpp"
#include "text/take_text.hpp"

namespace ciwrap {
namespace {

constexpr std::string_view any_number = "#";
constexpr std::string_view left_out_number = "{}";
constexpr std::string_view ignored_piece = "...";

bool has_word(std::string_view text) {
    return std::any_of(text.begin(), text.end(),
                       [](char c) { return is_letter(c) || static_cast<unsigned char>(c) > 127; });
}

}  // namespace

bool Section::holds(const NumberedLine& line) const {
    const std::vector<LineRange>& ranges = line.is_golden ? golden : value;
    const auto after = std::upper_bound(
        ranges.begin(), ranges.end(), line.number,
        [](std::uint64_t number, const LineRange& one) { return number < one.first; });
    return after != ranges.begin() && line.number <= std::prev(after)->last;
}

LinePlace::LinePlace(std::string_view text, bool is_in_section) : text_(text) {
    if (text.find(left_out_number) == std::string_view::npos)
        throw Error(ErrorCode::invalid_argument,
                    "'" + text_ + "' names no number; write {} for the one to leave out");
    if (!is_in_section && !has_word(text))
        throw Error(ErrorCode::invalid_argument,
                    "'" + text_ + "' has no word, so it is the place of any number");
}

void LinePlace::find(std::string_view line, std::span<const LinePiece> covered,
                     std::vector<LinePiece>& found) const {
    const std::size_t before = found.size();
    std::string_view rest = text_;
    bool fits = true;
    TokenReader tokens(line, covered);
    for (Token one = tokens.next(); fits && one.kind != Token::Kind::end; one = tokens.next()) {
        take_all(rest, is_blank);
        if (one.kind == Token::Kind::word) {
            fits = take(rest, one.text);
        } else if (one.kind == Token::Kind::ignored) {
            fits = take(rest, ignored_piece);
        } else if (take(rest, left_out_number)) {
            const auto begin = static_cast<std::size_t>(one.text.data() - line.data());
            found.push_back({begin, begin + one.text.size(), ignored_place});
        } else {
            fits = take(rest, any_number);
        }
    }
    take_all(rest, is_blank);
    if (!fits || !rest.empty())
        found.resize(before);
}

std::string place_of_number(std::string_view line, const std::vector<LinePiece>& ignored,
                            std::size_t ordinal, std::size_t most_bytes) {
    std::string text;
    TokenReader tokens(line, ignored);
    for (Token one = tokens.next(); one.kind != Token::Kind::end; one = tokens.next()) {
        text += text.empty() ? "" : " ";
        if (one.kind == Token::Kind::word)
            text += one.text;
        else if (one.kind == Token::Kind::ignored)
            text += ignored_piece;
        else
            text += ordinal-- == 0 ? left_out_number : any_number;
        if (text.size() > most_bytes)
            return {};
    }
    return has_word(text) ? text : std::string();
}

LeftOut::LeftOut(const LeftOutRules& rules)
    : sets_(rules.sets), patterns_(rules.lines.begin(), rules.lines.end()) {
    for (const std::string& one : rules.places)
        places_.emplace_back(one);
    for (const SectionLeftOut& one : rules.sections) {
        if (one.place.empty())
            whole_.push_back(one.section);
        else
            places_within_.push_back({LinePlace(one.place, true), one.section});
    }
}

std::size_t LeftOut::rule_over(const NumberedLine& line) const {
    for (std::size_t i = 0; i < patterns_.size(); ++i)
        if (patterns_[i].fits(line.text))
            return i;
    for (std::size_t i = 0; i < whole_.size(); ++i)
        if (whole_[i].holds(line))
            return patterns_.size() + i;
    return line_rules();
}

void LeftOut::find(const NumberedLine& line, std::vector<LinePiece>& pieces) const {
    find_ignored(line.text, sets_, pieces);
    if (places_.empty() && places_within_.empty())
        return;
    std::vector<LinePiece> found;
    for (const LinePlace& one : places_)
        one.find(line.text, pieces, found);
    for (const PlaceWithin& one : places_within_)
        if (one.section.holds(line))
            one.place.find(line.text, pieces, found);
    const auto by_begin = [](const LinePiece& a, const LinePiece& b) { return a.begin < b.begin; };
    const auto is_same = [](const LinePiece& a, const LinePiece& b) { return a.begin == b.begin; };
    pieces.insert(pieces.end(), found.begin(), found.end());
    std::sort(pieces.begin(), pieces.end(), by_begin);
    pieces.erase(std::unique(pieces.begin(), pieces.end(), is_same), pieces.end());
}

}  // namespace ciwrap
