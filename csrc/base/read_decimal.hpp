// A decimal number in a text as a double, whatever the locale.
#pragma once

#include <charconv>
#include <string_view>

namespace ciwrap {

// As std::from_chars() does for doubles, which the C++ library of macOS has only lately: the
// longest number at the beginning of the text; no sign but a minus, no space and no 0x before it.
// `value` stays as it is where the error is invalid_argument (no number) or result_out_of_range
// (beyond the range of double, or nearer to zero than half of the least one).
std::from_chars_result read_decimal(std::string_view text, double& value);

}  // namespace ciwrap
