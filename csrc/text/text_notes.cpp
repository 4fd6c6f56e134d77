#include "text/text_notes.hpp"

#include <algorithm>
#include <cstring>

#include "text/ignored_text.hpp"
#include "text/text_window.hpp"

namespace ciwrap {
namespace {

constexpr std::size_t most_text = 80;
constexpr std::size_t most_template = 160;

TextPlace place_of(const NumberedLine& line, std::string_view part) {
    const auto at = static_cast<std::size_t>(part.data() - line.text.data());
    return {line.number, column_of(line.text, at) + 1, std::string(part.substr(0, most_text))};
}

// The set that covers a part of a line; 0: none.
unsigned set_over(const std::vector<LinePiece>& pieces, const NumberedLine& line,
                  std::string_view part) {
    const auto at = static_cast<std::size_t>(part.data() - line.text.data());
    for (const LinePiece& one : pieces)
        if (one.begin <= at && at + part.size() <= one.end)
            return one.set;
    return 0;
}

// The set that would cover a number on both sides; 0: none.
unsigned remedy_for(const NumberedLine& golden, const NumberedLine& value,
                    const DifferingNumber& number) {
    IgnoredPieces pieces;
    pieces.find(golden, value, LeftOut({.sets = ignore_all}));
    return set_over(pieces.golden, golden, number.golden) &
           set_over(pieces.value, value, number.value);
}

bool is_alike(const NumberedLine& golden, const NumberedLine& value, unsigned sets) {
    IgnoredPieces pieces;
    pieces.find(golden, value, LeftOut({.sets = sets}));
    return shape_of(golden.text, pieces.golden) == shape_of(value.text, pieces.value);
}

// The set that would make two lines partners, or all those that it takes.
unsigned pairing_sets(const NumberedLine& golden, const NumberedLine& value, unsigned sets) {
    for (const NamedIgnoredSet& one : named_ignored_sets)
        if ((sets & one.set) == 0 && is_alike(golden, value, sets | one.set))
            return one.set;
    if (sets == ignore_all || !is_alike(golden, value, ignore_all))
        return 0;
    unsigned needed = ignore_all;
    for (const NamedIgnoredSet& one : named_ignored_sets)
        if ((sets & one.set) == 0 && is_alike(golden, value, needed & ~one.set))
            needed &= ~static_cast<unsigned>(one.set);
    return needed & ~sets;
}

}  // namespace

void IgnoredPieces::find(const NumberedLine& golden_line, const NumberedLine& value_line,
                         const LeftOut& left_out) {
    left_out.find(golden_line, golden);
    left_out.find(value_line, value);
}

std::uint64_t shape_of(std::string_view line, std::span<const LinePiece> ignored) {
    TokenReader tokens(line, ignored);
    std::uint64_t hash = 1;
    for (;;) {
        const Token token = tokens.next();
        if (token.kind == Token::Kind::end)
            return hash;
        hash = mixed(hash, token);
    }
}

std::uint64_t mixed(std::uint64_t hash, const Token& token) {
    hash = mixed(hash, static_cast<std::uint64_t>(token.kind) + 1);
    if (token.kind != Token::Kind::word)
        return hash;
    std::string_view rest = token.text;
    for (std::uint64_t part = 0; rest.size() >= sizeof part; rest.remove_prefix(sizeof part)) {
        std::memcpy(&part, rest.data(), sizeof part);
        hash = mixed(hash, part);
    }
    std::uint64_t last = rest.size();
    for (const char c : rest)
        last = last << 8 | static_cast<unsigned char>(c);
    return mixed(hash, last);
}

void TextNotes::add_number(const NumberedLine& golden, const NumberedLine& value,
                           std::uint64_t shape, const DifferingNumber& number,
                           const IgnoredPieces& ignored) {
    const auto first = [&] {
        NumberGroup group;
        group.line_template = template_of(golden.text, ignored.golden, most_template);
        group.number = number.ordinal + 1;
        group.golden = place_of(golden, number.golden);
        group.value = place_of(value, number.value);
        group.remedies = remedy_for(golden, value, number) & ~left_out_.sets();
        group.place = place_of_number(golden.text, ignored.golden, number.ordinal, most_template);
        return group;
    };
    NumberGroup* const group = numbers.of(mixed(shape, number.ordinal), first);
    if (group == nullptr)
        return;
    ++group->count;
    group->is_part |= number.found.is_part;
    group->max_abs_difference = std::max(group->max_abs_difference, number.found.abs_difference);
    group->max_bound_share = std::max(group->max_bound_share, number.found.bound_share);
}

void TextNotes::add_masked(const NumberedLine& golden, const NumberedLine& value,
                           std::uint64_t shape, const IgnoredPieces& ignored) {
    const auto text_of = [](const NumberedLine& line, const LinePiece& piece) {
        return line.text.substr(piece.begin, piece.end - piece.begin);
    };
    unsigned seen = 0;
    for (std::size_t i = 0; i < ignored.golden.size(); ++i) {
        const LinePiece& piece = ignored.golden[i];
        const auto first = [&] {
            return MaskedGroup{piece.set,
                               template_of(golden.text, ignored.golden, most_template),
                               0,
                               0,
                               place_of(golden, text_of(golden, piece)),
                               place_of(value, text_of(value, ignored.value[i]))};
        };
        MaskedGroup* const group = masked.of(mixed(shape, piece.set), first);
        if (group == nullptr)
            continue;
        group->line_count += (seen & piece.set) == 0 ? 1 : 0;
        group->number_count += count_numbers(text_of(golden, piece));
        seen |= piece.set;
    }
}

LineGroup* TextNotes::group_of(const NumberedLine& line) {
    std::vector<LinePiece> pieces;
    left_out_.find(line, pieces);
    return lines.of(shape_of(line.text, pieces), [&] {
        LineGroup group;
        group.line_template = template_of(line.text, pieces, most_template);
        return group;
    });
}

void TextNotes::add_lines(const std::vector<NumberedLine>& golden,
                          const std::vector<NumberedLine>& value) {
    for (std::size_t i = 0; i < golden.size(); ++i) {
        LineGroup* group = group_of(golden[i]);
        if (group == nullptr)
            continue;
        if (group->golden_count++ == 0) {
            group->golden = place_of(golden[i], golden[i].text);
            if (i < value.size())
                group->remedies = pairing_sets(golden[i], value[i], left_out_.sets());
        }
    }
    for (std::size_t i = 0; i < value.size(); ++i) {
        LineGroup* group = group_of(value[i]);
        if (group == nullptr)
            continue;
        if (group->value_count++ == 0) {
            group->value = place_of(value[i], value[i].text);
            if (i < golden.size() && group->golden_count == 0)
                group->remedies = pairing_sets(golden[i], value[i], left_out_.sets());
        }
    }
}

}  // namespace ciwrap
