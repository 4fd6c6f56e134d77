#include "text/text_readings.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "text/text_tokens.hpp"

namespace ciwrap {
namespace {

constexpr std::size_t longest_hexadecimal = 64;
constexpr std::size_t digits_of_a_group = 3;
constexpr std::size_t farthest_mantissa = 16;  // before its exponent, with blanks between them
constexpr std::string_view minus_sign = "\xE2\x88\x92";  // of Unicode

bool is_hexadecimal(char c) {
    const char small = lower(c);
    return is_digit(c) || (small >= 'a' && small <= 'f');
}

// The line on both sides of a number, ' ' beyond its ends.
class Around {
  public:
    explicit Around(const PlacedNumber& number)
        : line_(number.line),
          begin_(static_cast<std::size_t>(number.text.data() - number.line.data())),
          end_(begin_ + number.text.size()) {}

    // How far from the number's first character: 1 is the one in front of it.
    char before(std::size_t count) const { return begin_ < count ? ' ' : line_[begin_ - count]; }
    // 0 is the one behind its last character.
    char after(std::size_t count) const {
        return line_.size() - end_ <= count ? ' ' : line_[end_ + count];
    }

  private:
    std::string_view line_;
    std::size_t begin_;
    std::size_t end_;
};

// 0x, or a later part of 0x1.8p-3.
bool is_in_hexadecimal(const Around& around, std::string_view text) {
    const auto begins = [](char zero, char x) { return zero == '0' && lower(x) == 'x'; };
    const bool is_zero = text.substr(has_sign(text) ? 1 : 0) == "0";
    if (is_zero && begins('0', around.after(0)))
        return is_hexadecimal(around.after(1)) || around.after(1) == '.';
    for (std::size_t i = 1; i < longest_hexadecimal; ++i) {
        const char c = around.before(i);
        if (begins(around.before(i + 1), c))
            return !is_identifier(around.before(i + 2));
        if (!is_hexadecimal(c) && c != '.' && c != '-' && c != '+' && lower(c) != 'p')
            return false;
    }
    return false;
}

// 10^3, 10^{-3}, 2**8, 2**(-8).
bool is_power(const Around& around) {
    const std::size_t at = around.before(1) == '{' || around.before(1) == '(' ? 2 : 1;
    return around.before(at) == '^' || (around.before(at) == '*' && around.before(at + 1) == '*');
}

bool is_exponent_letter(char c) {
    const char small = lower(c);
    return small == 'e' || small == 'd' || small == 'q';
}

// The 6 of 1.5 E-6, whose mantissa may have been skipped as equal. The sign belongs to the word.
bool is_exponent_behind_blank(const Around& around) {
    const bool is_unicode = around.before(3) == minus_sign[0] &&
                            around.before(2) == minus_sign[1] && around.before(1) == minus_sign[2];
    if (!is_unicode && around.before(1) != '-' && around.before(1) != '+')
        return false;
    std::size_t at = is_unicode ? 1 + minus_sign.size() : 2;
    if (!is_exponent_letter(around.before(at)) || !is_blank(around.before(at + 1)))
        return false;
    for (++at; at < farthest_mantissa && is_blank(around.before(at));)
        ++at;
    const char last = around.before(at);
    return is_digit(last) || last == '.' || last == ')';
}

// Whether leading zeros and signs say something: 1.2.03, X10.05, 0x1.08, 10^3.
bool is_part_of_word(const Around& around, std::string_view text) {
    return (around.before(1) == '.' && is_digit(around.before(2))) ||
           is_in_hexadecimal(around, text) || is_power(around) || is_exponent_behind_blank(around);
}

bool has_leading_zero(std::string_view text) {
    return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

bool are_digits(std::string_view text) {
    return std::all_of(text.begin(), text.end(), is_digit);
}

// The number behind a point that follows a letter or another point, v.5 and ...5, may be what
// follows a decimal point.
bool are_fractions_within(const Around& ours, std::string_view golden, const Around& theirs,
                          std::string_view value, const TextBound& bound) {
    if (ours.before(1) != '.' && theirs.before(1) != '.')
        return true;
    if (has_leading_zero(golden) || has_leading_zero(value))
        return golden == value;
    if (!is_letter(ours.before(2)) || !are_digits(golden) || !are_digits(value))
        return true;
    const std::string point = ".";
    return compare_numbers(point + std::string(golden), point + std::string(value), bound)
        .is_within;
}

// What a number is together with an exponent that `number_end` leaves to itself: 1d-5, 1.0+05,
// 1.5(3)e-5, 1.5 E-5, and 1.5e-5 with the minus sign of Unicode. Empty if there is none.
std::string with_exponent(const PlacedNumber& number) {
    const std::string_view text = number.text;
    const std::string_view mantissa = text.substr(has_sign(text) ? 1 : 0);
    if (!std::all_of(mantissa.begin(), mantissa.end(),
                     [](char c) { return is_digit(c) || c == '.'; }))
        return {};
    std::string_view rest = number.line.substr(
        static_cast<std::size_t>(text.data() + text.size() - number.line.data()));
    const auto skip = [&](const auto& is_meant) {
        const auto end = std::find_if_not(rest.begin(), rest.end(), is_meant);
        const auto size = static_cast<std::size_t>(end - rest.begin());
        const std::string_view skipped = rest.substr(0, size);
        rest.remove_prefix(size);
        return skipped;
    };
    bool is_apart = false;  // from its exponent, by an uncertainty or by blanks
    if (rest.starts_with('(')) {
        rest.remove_prefix(1);
        if (skip(is_digit).empty() || !rest.starts_with(')'))
            return {};
        rest.remove_prefix(1);
        is_apart = true;
    }
    const bool has_blanks = !skip(is_blank).empty();
    const bool has_letter = !rest.empty() && is_exponent_letter(rest[0]);
    if (has_letter)
        rest.remove_prefix(1);
    else if (is_apart || has_blanks || mantissa.find('.') == std::string_view::npos)
        return {};
    std::string sign;
    if (has_sign(rest)) {
        sign = rest[0];
        rest.remove_prefix(1);
    } else if (rest.starts_with(minus_sign)) {
        sign = "-";
        rest.remove_prefix(minus_sign.size());
    } else if (!has_letter || has_blanks) {
        return {};
    }
    const std::string_view digits = skip(is_digit);
    const bool goes_on = !rest.empty() && (is_identifier(rest[0]) || rest[0] == '.');
    if (digits.empty() || goes_on)
        return {};
    return std::string(text) + 'e' + sign + std::string(digits);
}

bool are_exponents_within(const PlacedNumber& golden, const PlacedNumber& value,
                          const TextBound& bound) {
    const std::string ours = with_exponent(golden);
    const std::string theirs = with_exponent(value);
    if (ours.empty() || theirs.empty())
        return ours.empty() == theirs.empty();
    return compare_numbers(ours, theirs, bound).is_within;
}

// -00:30, -00 30: degrees, of which the sign is the whole's.
bool is_signed_zero(const Around& around, std::string_view text) {
    const std::string_view digits = text.substr(has_sign(text) ? 1 : 0);
    if (digits.find_first_not_of('0') != std::string_view::npos)
        return false;
    return digits.size() > 1 || (around.after(0) == ':' && is_digit(around.after(1)));
}

// A number behind a comma, as a part of the one that begins before it.
struct Grouped {
    std::string thousands;  // 1995 of 1,995; empty if it cannot be meant
    std::string decimal;    // 1.995
};

std::optional<Grouped> grouped(const Around& around, std::string_view text) {
    const char mark = around.before(1);
    if ((mark != ',' && mark != '\'') || !is_digit(text[0]) || !is_digit(around.before(2)))
        return std::nullopt;
    std::string whole;  // from its end
    std::size_t groups = 0;
    std::size_t in_group = 0;
    bool are_thousands = true;
    std::size_t at = 2;
    for (;; ++at) {
        const char c = around.before(at);
        if (is_digit(c)) {
            whole += c;
            ++in_group;
        } else if (c == mark && is_digit(around.before(at + 1))) {
            are_thousands &= in_group == digits_of_a_group;
            ++groups;
            in_group = 0;
        } else {
            break;
        }
    }
    const char sign = around.before(at);
    if (sign == '.')
        return std::nullopt;
    const char outside = around.before(at + 1);
    if (sign == '-' && !is_identifier(outside) && outside != ')' && outside != ']')
        whole += '-';
    std::reverse(whole.begin(), whole.end());
    const auto digits = static_cast<std::size_t>(
        std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
    are_thousands &= digits == digits_of_a_group && in_group <= digits_of_a_group;
    const bool goes_on = around.after(0) == mark && is_digit(around.after(1));
    const bool is_decimal =
        mark == ',' && groups == 0 && !goes_on && (digits == text.size() || text[digits] != '.');
    Grouped found;
    if (are_thousands)
        found.thousands = whole + std::string(text);
    if (is_decimal)
        found.decimal = whole + '.' + std::string(text);
    return found;
}

bool is_within(const std::string& golden, const std::string& value, const TextBound& bound) {
    return golden.empty() || value.empty() || compare_numbers(golden, value, bound).is_within;
}

bool are_readings_within(const PlacedNumber& golden, const PlacedNumber& value,
                         const TextBound& bound) {
    const Around ours(golden);
    const Around theirs(value);
    if (is_part_of_word(ours, golden.text) || is_part_of_word(theirs, value.text))
        return golden.text == value.text;
    if (!are_fractions_within(ours, golden.text, theirs, value.text, bound) ||
        !are_exponents_within(golden, value, bound))
        return false;
    const bool is_other_sign = (golden.text[0] == '-') != (value.text[0] == '-');
    if (is_other_sign && (is_signed_zero(ours, golden.text) || is_signed_zero(theirs, value.text)))
        return false;
    const std::optional<Grouped> one = grouped(ours, golden.text);
    const std::optional<Grouped> other = grouped(theirs, value.text);
    return !one || !other ||
           (is_within(one->thousands, other->thousands, bound) &&
            is_within(one->decimal, other->decimal, bound));
}

}  // namespace

NumberComparison compare_placed(const PlacedNumber& golden, const PlacedNumber& value,
                                const TextBound& bound) {
    NumberComparison found = compare_numbers(golden.text, value.text, bound);
    if (found.is_within && !are_readings_within(golden, value, bound)) {
        found.is_within = false;
        found.bound_share = std::numeric_limits<double>::infinity();
    }
    return found;
}

}  // namespace ciwrap
