#include "base/read_decimal.hpp"

#if CIWRAP_POSIX_ONLY
#include <locale.h>
#include <stdlib.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

#include <cerrno>
#include <cmath>
#include <string>
#endif

namespace ciwrap {

#if CIWRAP_POSIX_ONLY

namespace {

// Never freed: programs may read numbers until their very end.
locale_t plain_locale() {
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    return plain;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// What strtod() takes and from_chars() does not: spaces, a plus, hexadecimal digits.
bool begins_like_a_number(std::string_view text) {
    if (!text.empty() && text[0] == '-')
        text.remove_prefix(1);
    if (text.empty() || text[0] == '+' || text[0] == '-')
        return false;
    return is_digit(text[0]) || text[0] == '.' || text[0] == 'i' || text[0] == 'I' ||
           text[0] == 'n' || text[0] == 'N';
}

// Without the x of a 0x, at which the number ends.
std::string_view before_hexadecimal(std::string_view text) {
    const std::size_t zero = text[0] == '-' ? 1 : 0;
    const bool is_hexadecimal = text.size() > zero + 1 && text[zero] == '0' &&
                                (text[zero + 1] == 'x' || text[zero + 1] == 'X');
    return is_hexadecimal ? text.substr(0, zero + 1) : text;
}

}  // namespace

std::from_chars_result read_decimal(std::string_view text, double& value) {
    if (!begins_like_a_number(text))
        return {text.data(), std::errc::invalid_argument};
    const std::string copy(before_hexadecimal(text));  // ends in a zero byte
    char* end = nullptr;
    const int before = errno;
    errno = 0;
    const double read = strtod_l(copy.c_str(), &end, plain_locale());
    // Set for subnormal numbers, too, which are numbers.
    const bool is_out_of_range = errno == ERANGE && (read == 0.0 || std::isinf(read));
    errno = before;
    if (end == copy.c_str())
        return {text.data(), std::errc::invalid_argument};
    const char* const stop = text.data() + (end - copy.c_str());
    if (is_out_of_range)
        return {stop, std::errc::result_out_of_range};
    value = read;
    return {stop, std::errc()};
}

#else

std::from_chars_result read_decimal(std::string_view text, double& value) {
    return std::from_chars(text.data(), text.data() + text.size(), value);
}

#endif

}  // namespace ciwrap
