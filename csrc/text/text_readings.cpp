#include "text/text_readings.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "text/take_text.hpp"
#include "text/text_tokens.hpp"

namespace ciwrap {
namespace {

constexpr std::size_t digits_of_a_group = 3;
constexpr std::string_view minus_sign = "\xE2\x88\x92";  // of Unicode
constexpr std::string_view times_sign = "\xC3\x97";
constexpr std::string_view middle_dot = "\xC2\xB7";
constexpr std::string_view degree_sign = "\xC2\xB0";

bool take_sign(std::string_view& rest) {
    return take(rest, "-") || take(rest, "+") || take(rest, minus_sign);
}

bool take_last_sign(std::string_view& rest) {
    return take_last(rest, "-") || take_last(rest, "+") || take_last(rest, minus_sign);
}

bool begins_with_digit(std::string_view text) {
    return !text.empty() && is_digit(text.front());
}

bool is_exponent_letter(char c) {
    const char letter = lower(c);
    return letter == 'e' || letter == 'd' || letter == 'q' || letter == 'p';
}

bool is_mark(char c) {
    return c == ',' || c == '\'' || c == '.';
}

bool are_digits(std::string_view text) {
    return std::all_of(text.begin(), text.end(), is_digit);
}

std::size_t digits_end(std::string_view text, std::size_t at) {
    const char* const end = skip_digits(text.data() + at, text.data() + text.size());
    return static_cast<std::size_t>(end - text.data());
}

bool has_point(std::string_view text) {
    return text.find('.') != std::string_view::npos;
}

// A number, what is in front of it in its line, and what is behind it.
struct Around {
    std::string_view before;
    std::string_view text;
    std::string_view after;

    explicit Around(const PlacedNumber& number) : text(number.text) {
        const auto begin = static_cast<std::size_t>(text.data() - number.line.data());
        before = number.line.substr(0, begin);
        after = number.line.substr(begin + text.size());
    }
};

// v.5, v.05.5; but not Total....12.5, nor avg.9.5.
bool is_fraction(const Around& number) {
    const std::string_view text = number.text;
    if (!number.before.ends_with('.') || has_sign(text))
        return false;
    return !has_point(text) || (text[0] == '0' && is_digit(text[1]));
}

// 10^3, 10^{-3}, 2**8, 2**(-8), and the factors 3*0.5 and 1.5 x 10^3.
bool is_in_product(const Around& number) {
    std::string_view before = number.before;
    take_last(before, "{") || take_last(before, "(");
    if (before.ends_with('^') || before.ends_with("**") || number.after.starts_with('*'))
        return true;
    std::string_view rest = number.after;
    take_all(rest, is_blank);
    if (!take(rest, "x") && !take(rest, "*") && !take(rest, times_sign) && !take(rest, middle_dot))
        return false;
    take_all(rest, is_blank);
    return take(rest, "10") && (rest.starts_with('^') || rest.starts_with("**"));
}

// The 5 of 1.5 E-5, 0x1.8p-5 and 1.0-5, the -5 of 1.-5.
bool is_exponent(const Around& number) {
    std::string_view before = number.before;
    if ((!has_sign(number.text) && !take_last_sign(before)) || before.empty())
        return false;
    if (is_exponent_letter(before.back())) {
        before.remove_suffix(1);
        return before.empty() || !is_letter(before.back());
    }
    const auto is_last_digit = [&] { return !before.empty() && is_digit(before.back()); };
    const bool has_digits = is_last_digit();
    while (is_last_digit())
        before.remove_suffix(1);
    return !has_point(number.text) && take_last(before, ".") && (has_digits || is_last_digit());
}

// The 1.5 of 1.5 E-5, 1.5(3)e-5, and the 1.0 of 1.0-5, 1.0d5.
bool has_exponent(const Around& number) {
    std::string_view rest = number.after;
    bool is_apart = false;  // by an uncertainty
    if (take(rest, "(")) {
        is_apart = take_all(rest, is_digit) && take(rest, ")");
        if (!is_apart)
            return false;
    }
    const bool has_blanks = take_all(rest, is_blank);
    const bool has_letter = !rest.empty() && is_exponent_letter(rest[0]);
    if (has_letter)
        rest.remove_prefix(1);
    else if (is_apart || has_blanks || !has_point(number.text))
        return false;
    const bool is_signed = take_sign(rest);
    if (!is_signed && (!has_letter || has_blanks))
        return false;
    // -12.5 behind 0.125 is the next column.
    return take_all(rest, is_digit) && (has_letter || !rest.starts_with('.'));
}

// Digits and marks in groups, 12,345,678, 1'995.5 or 1.995,5: whether that may be one number.
bool is_grouped(std::string_view run) {
    const std::size_t first = leading(run, is_digit).size();
    if (first == run.size() || first == 0 || first > digits_of_a_group || run[0] == '0')
        return false;
    const char mark = run[first];
    std::string_view rest = run.substr(first);
    while (!rest.empty() && rest[0] == mark) {
        rest.remove_prefix(1);
        const std::size_t size = leading(rest, is_digit).size();
        if (size != digits_of_a_group)
            return false;
        rest.remove_prefix(size);
    }
    return rest.empty() || are_digits(rest.substr(1));
}

// Digits with single commas, apostrophes and points between them that may be one number, or are
// none (1.2.3). A plain number is none of these, nor is a list such as 1.5,2.5 or 1,2,3.
bool is_in_marked_digits(const Around& number) {
    const auto goes_on = [](char c, char next) {
        return is_digit(c) || (is_mark(c) && is_digit(next));
    };
    std::string_view line(number.before.data(),
                          number.before.size() + number.text.size() + number.after.size());
    const std::size_t first = number.before.size() + (has_sign(number.text) ? 1 : 0);
    std::size_t begin = first;
    std::size_t end = first;
    while (begin > 0 && end < line.size() && goes_on(line[begin - 1], line[begin]) &&
           (is_digit(line[begin - 1]) || begin == 1 || is_digit(line[begin - 2])))
        --begin;
    while (end < line.size() && goes_on(line[end], end + 1 < line.size() ? line[end + 1] : ' '))
        end = digits_end(line, end + 1);
    if (begin == first && end <= number.before.size() + number.text.size())
        return false;
    const std::string_view run = line.substr(begin, end - begin);
    const std::size_t comma = leading(run, [](char c) { return is_digit(c) || c == '.'; }).size();
    if (comma == run.size())
        return std::count(run.begin(), run.end(), '.') > 1;
    const bool is_decimal = run[comma] == ',' && comma > 0 && are_digits(run.substr(0, comma)) &&
                            are_digits(run.substr(comma + 1));
    return is_decimal || is_grouped(run);
}

// The -1 of -1:30, and the -0 of -0 30 15 and -00: the sign is the whole angle's.
bool is_angle(const Around& number) {
    if (number.text[0] != '-' || has_point(number.text))
        return false;
    std::string_view rest = number.after;
    const bool has_mark = take(rest, ":") || take(rest, degree_sign);
    if (has_mark && begins_with_digit(rest))
        return true;
    if (number.text.find_first_not_of('0', 1) != std::string_view::npos)
        return false;
    take(rest, "d");
    take_all(rest, is_blank);
    return number.text.size() > 2 || begins_with_digit(rest);
}

// Where a character may belong to a number beside it, but for marks and the signs of angles.
enum Side : std::uint8_t { in_front = 1, directly_behind = 2, behind_blanks = 4 };

constexpr std::array<std::uint8_t, 256> make_sides() {
    std::array<std::uint8_t, 256> sides{};
    const auto add = [&](std::string_view characters, unsigned where) {
        for (const char c : characters)
            sides[static_cast<unsigned char>(c)] |= static_cast<std::uint8_t>(where);
    };
    add(".^{0123456789", in_front);
    add("(+-", in_front | directly_behind);
    add("x", directly_behind | behind_blanks);
    add("*eEdDqQpP", in_front | directly_behind | behind_blanks);
    for (std::size_t c = 128; c < sides.size(); ++c)
        sides[c] = in_front | directly_behind | behind_blanks;
    return sides;
}

constexpr std::array<std::uint8_t, 256> sides_of = make_sides();

bool is_on(Side side, char c) {
    return (sides_of[static_cast<unsigned char>(c)] & side) != 0;
}

// Nearly all numbers have nothing beside them that the questions before are about.
bool has_any_beside(const Around& number) {
    if (!number.before.empty() && is_on(in_front, number.before.back()))
        return true;
    if (number.after.empty() || !is_blank(number.after.front()))
        return !number.after.empty() && is_on(directly_behind, number.after.front());
    std::string_view rest = number.after;
    take_all(rest, is_blank);
    return !rest.empty() && is_on(behind_blanks, rest.front());
}

bool is_in_longer(const Around& number) {
    return is_fraction(number) || is_in_product(number) || is_exponent(number) ||
           has_exponent(number);
}

}  // namespace

bool stands_alone(const PlacedNumber& number) {
    const Around around(number);
    return !(has_any_beside(around) && is_in_longer(around)) && !is_in_marked_digits(around) &&
           !is_angle(around);
}

NumberComparison compare_placed(const PlacedNumber& golden, const PlacedNumber& value,
                                const TextBound& bound) {
    NumberComparison found = compare_numbers(golden.text, value.text, bound);
    if (found.is_within && golden.text != value.text &&
        !(stands_alone(golden) && stands_alone(value))) {
        found.is_within = false;
        found.is_part = true;
        found.bound_share = std::numeric_limits<double>::infinity();
    }
    return found;
}

}  // namespace ciwrap
