#include "text/line_compare.hpp"

#include <algorithm>
#include <cstring>

namespace ciwrap {
namespace {

// Differing numbers of one line that are told apart.
constexpr std::size_t most_in_a_line = 1000;

// Skips what is equal in both lines, up to a blank; how many numbers there are in it. Asked where
// there is one, too, or a line begins.
std::uint64_t skip_equal(TokenReader& ours, TokenReader& theirs) {
    const std::string_view rest = ours.rest();
    std::size_t size = common_prefix(rest, theirs.rest());
    while (size > 0 && !is_blank(rest[size - 1]))
        --size;
    // The blank itself stays: what follows it begins anew.
    if (size <= 1)
        return 0;
    ours.skip(size - 1);
    theirs.skip(size - 1);
    return count_numbers(rest.substr(0, size - 1));
}

std::string_view behind(std::string_view line, std::string_view piece) {
    return line.substr(static_cast<std::size_t>(piece.data() + piece.size() - line.data()));
}

}  // namespace

std::size_t common_prefix(std::string_view a, std::string_view b) {
    constexpr std::size_t block = 1024;
    const std::size_t size = std::min(a.size(), b.size());
    std::size_t at = 0;
    while (at + block <= size && std::memcmp(a.data() + at, b.data() + at, block) == 0)
        at += block;
    while (at < size && a[at] == b[at])
        ++at;
    return at;
}

EqualLines equal_lines(const TextWindow& a, const TextWindow& b) {
    std::string_view equal = a.text().substr(0, common_prefix(a.text(), b.text()));
    const bool is_all = equal.size() == a.text().size() && equal.size() == b.text().size() &&
                        a.has_all() && b.has_all();
    if (!is_all)
        equal = equal.substr(0, equal.rfind('\n') + 1);
    std::uint64_t count = 0;
    for (std::size_t at = 0; at < equal.size(); ++count)
        at = std::min(equal.find('\n', at), equal.size() - 1) + 1;
    return {equal, count};
}

LineFinding LineComparer::compare(const NumberedLine& golden_line, const NumberedLine& value_line) {
    if (!left_out_.is_nothing())
        pieces_.find(golden_line, value_line, left_out_);
    std::string_view golden = golden_line.text;
    std::string_view value = value_line.text;
    differing_.clear();
    LineFinding found;
    TokenReader ours(golden, pieces_.golden);
    TokenReader theirs(value, pieces_.value);
    const bool may_skip = left_out_.is_nothing() && bound_.equal_nan;
    if (may_skip)
        found.numbers += skip_equal(ours, theirs);
    for (;;) {
        if (may_skip && ours.is_at_blank())
            found.numbers += skip_equal(ours, theirs);
        const Token one = ours.next();
        const Token other = theirs.next();
        if (!one.is_like(other)) {
            found.is_one_shape = false;
            return found;
        }
        if (one.kind == Token::Kind::end)
            return found;
        if (one.kind == Token::Kind::number) {
            take_numbers({golden, one.text}, {value, other.text}, found);
        } else if (one.kind == Token::Kind::ignored) {
            found.ignored += count_numbers(one.text);
            // What is ignored is no part of a number.
            golden = behind(golden, one.text);
            value = behind(value, other.text);
        }
    }
}

void LineComparer::take_numbers(const PlacedNumber& golden, const PlacedNumber& value,
                                LineFinding& found) {
    const std::uint64_t ordinal = found.numbers++;
    const NumberComparison one = compare_placed(golden, value, bound_);
    found.max_abs = std::max(found.max_abs, one.abs_difference);
    found.max_rel = std::max(found.max_rel, one.rel_difference);
    found.max_share = std::max(found.max_share, one.bound_share);
    if (one.is_within)
        return;
    ++found.differing;
    found.nan_mismatches += one.is_nan_mismatch ? 1 : 0;
    found.inf_mismatches += one.is_infinity_mismatch ? 1 : 0;
    if (differing_.size() < most_in_a_line)
        differing_.push_back({ordinal, golden.text, value.text, one});
}

}  // namespace ciwrap
