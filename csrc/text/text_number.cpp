#include "text/text_number.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

#include "base/read_decimal.hpp"
#include "core/exact_bound.hpp"
#include "text/text_tokens.hpp"

namespace ciwrap {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t safe_digits = 15;  // whole numbers of so many are doubles
constexpr std::size_t most_digits = 38;  // and of so many fit into 128 bits
constexpr double slack = 1e-15;          // of the bound, so that rounding hides nothing

// Where the exponent without a letter begins, a sign and three digits; npos if there is none.
std::size_t letterless_exponent(std::string_view text) {
    constexpr std::size_t size = 4;
    if (text.size() <= size)
        return std::string_view::npos;
    const std::size_t at = text.size() - size;
    const bool is_exponent = has_sign(text.substr(at)) && !is_letter(text[at - 1]);
    return is_exponent ? at : std::string_view::npos;
}

std::string_view digits_of(std::string_view whole) {
    if (has_sign(whole))
        whole.remove_prefix(1);
    whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
    return whole;
}

// About the decimal logarithm of a number that is not zero.
long long decimal_exponent(std::string_view text) {
    const std::size_t letter = std::min(text.find_first_of("eE"), text.size());
    const std::string_view mantissa = text.substr(has_sign(text) ? 1 : 0, letter);
    const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
    const std::size_t first = mantissa.find_first_of("123456789");
    long long exponent = 0;
    if (letter < text.size()) {
        const std::string_view digits = digits_of(text.substr(letter + 1));
        // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): it is told where they end
        std::from_chars(digits.data(), digits.data() + std::min<std::size_t>(digits.size(), 18),
                        exponent);
        if (text[letter + 1] == '-')
            exponent = -exponent;
    }
    return exponent + static_cast<long long>(point) - static_cast<long long>(first);
}

Wide read_wide(std::string_view digits) {
    Wide value = 0;
    for (const char c : digits)
        value = value * 10 + static_cast<unsigned>(c - '0');
    return value;
}

// Whether two whole numbers that doubles cannot hold are within the bound, digit by digit.
bool within_whole(std::string_view golden, std::string_view value, const TextBound& bound) {
    const std::string_view g = digits_of(golden);
    const std::string_view v = digits_of(value);
    const bool is_other_sign = (golden[0] == '-') != (value[0] == '-');
    if (g == v)
        return !is_other_sign || g.empty();
    if (g.size() > most_digits || v.size() > most_digits)
        return false;
    const Wide a = read_wide(g);
    const Wide b = read_wide(v);
    if (bound.rtol == 0.0 && !is_other_sign && bound.atol < 0x1p126)
        return (a > b ? a - b : b - a) <= static_cast<Wide>(bound.atol);
    // Some roundings of 2^-53 on either side: less than the slack. In doubles, since a long double
    // is another type on every machine.
    const double distance = is_other_sign ? static_cast<double>(a) + static_cast<double>(b)
                                          : static_cast<double>(a > b ? a - b : b - a);
    const double allowed = bound.atol + bound.rtol * static_cast<double>(a);
    return distance <= allowed * (1 - slack);
}

void note_difference(NumberComparison& found, double golden, double value, const TextBound& bound) {
    found.abs_difference = std::fabs(value - golden);
    if (golden != 0.0)
        found.rel_difference = relative_difference(golden, value);
    found.bound_share = share_of_bound(golden, value, bound.atol, bound.rtol);
}

NumberComparison beyond() {
    NumberComparison found;
    found.is_within = false;
    found.bound_share = infinity;
    return found;
}

NumberComparison compare_special(double golden, double value, const TextBound& bound) {
    if (std::isnan(golden) && std::isnan(value) && bound.equal_nan)
        return {};
    if (golden == value)
        return {};
    NumberComparison found = beyond();
    found.is_nan_mismatch = std::isnan(golden) != std::isnan(value);
    found.is_infinity_mismatch = !found.is_nan_mismatch && !std::isnan(golden);
    return found;
}

// Whether all numbers that are less than two of the least double away are within the bound as well.
bool is_around_within(double golden, double value, const TextBound& bound) {
    constexpr double apart = 2 * std::numeric_limits<double>::denorm_min();
    return within_bound(golden, value + apart, bound.atol, bound.rtol) &&
           within_bound(golden, value - apart, bound.atol, bound.rtol);
}

NumberComparison compare_parsed(std::string_view golden, std::string_view value,
                                const TextBound& bound) {
    const std::optional<ReadNumber> ours = read_number(golden);
    const std::optional<ReadNumber> theirs = read_number(value);
    if (!ours || !theirs)
        return beyond();
    const double g = ours->value;
    const double v = theirs->value;
    if (!std::isfinite(g) || !std::isfinite(v))
        return compare_special(g, v, bound);
    NumberComparison found;
    note_difference(found, g, v, bound);
    found.is_within = g == v || within_bound(g, v, bound.atol, bound.rtol);
    if (found.is_within && (ours->is_too_small || theirs->is_too_small) &&
        !is_around_within(g, v, bound)) {
        return beyond();
    }
    const bool is_long = std::max(golden.size(), value.size()) > safe_digits;
    if (is_long && found.is_within && is_whole_number(golden) && is_whole_number(value))
        found.is_within = within_whole(golden, value, bound);
    return found;
}

}  // namespace

bool is_whole_number(std::string_view number) {
    return std::all_of(number.begin() + (has_sign(number) ? 1 : 0), number.end(), is_digit);
}

bool read_plain(std::string_view text, double& value) {
    const std::from_chars_result read = read_decimal(text, value);
    return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

std::optional<ReadNumber> read_number(std::string_view text) {
    if (!text.empty() && text[0] == '+')
        text.remove_prefix(1);
    double value = 0.0;
    if (read_plain(text, value))
        return ReadNumber{value};
    std::string copy;
    const std::size_t exponent = letterless_exponent(text);
    const std::size_t letter = text.find_first_of("dDqQ");
    if (exponent != std::string_view::npos) {
        copy = std::string(text.substr(0, exponent)) + 'e' + std::string(text.substr(exponent));
        text = copy;
    } else if (letter != std::string_view::npos) {
        copy = text;
        copy[letter] = 'e';
        text = copy;
    }
    value = 0.0;
    if (read_decimal(text, value).ec != std::errc::result_out_of_range)
        return ReadNumber{value};
    // Whatever is not too small is too large.
    return decimal_exponent(text) < 0 ? std::optional(ReadNumber{0.0, true}) : std::nullopt;
}

NumberComparison compare_numbers(std::string_view golden, std::string_view value,
                                 const TextBound& bound) {
    if (golden == value && (bound.equal_nan || !is_nan_word(golden)))
        return {};
    NumberComparison found = compare_parsed(golden, value, bound);
    const std::size_t g = letterless_exponent(golden);
    const std::size_t v = letterless_exponent(value);
    if (found.is_within && g != std::string_view::npos && v != std::string_view::npos) {
        found.is_within =
            compare_parsed(golden.substr(0, g), value.substr(0, v), bound).is_within &&
            compare_parsed(golden.substr(g + 1), value.substr(v + 1), bound).is_within;
    }
    return found;
}

}  // namespace ciwrap
