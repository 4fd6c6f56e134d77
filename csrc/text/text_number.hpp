// Two numbers as they are written, under a bound.
#pragma once

#include <optional>
#include <string_view>

namespace ciwrap {

struct TextBound {
    double atol = 0.0;
    double rtol = 0.0;
    bool equal_nan = true;
};

struct NumberComparison {
    bool is_within = true;
    bool is_nan_mismatch = false;       // NaN on one side only
    bool is_infinity_mismatch = false;  // an infinity not met by the same one
    bool is_part =
        false;  // within the bound, but not written alike, as parts of numbers have to be
    // Of two finite numbers; else 0.
    double abs_difference = 0.0;
    double rel_difference = 0.0;  // 0 beside a golden of 0
    double bound_share = 0.0;     // infinite for a bound of 0, and where one side alone is finite
};

// The double nearest to a number. Infinities and NaN as such.
struct ReadNumber {
    double value = 0.0;
    bool is_too_small = false;  // nearer to zero than any double but zero, and no zero
};

// Both of a number as `number_end` finds it. None if it is beyond the range of double.
std::optional<ReadNumber> read_number(std::string_view text);
// Whether all of a text is one decimal number without a plus, or nan or inf, and is read.
bool read_plain(std::string_view text, double& value);
bool is_whole_number(std::string_view number);

// The contract's inequality over the doubles nearest to both. Both as `number_end` finds them.
//
// Stricter in three places, where doubles would hide a difference: whole numbers beyond 2^53 are
// compared digit by digit; a number beyond the range of double equals its own text alone, and so
// does one that is too small for it where nothing is allowed; and where both may be Fortran's
// 1.5-100 as well as two numbers, 1.5 and 100, both readings have to hold.
NumberComparison compare_numbers(std::string_view golden, std::string_view value,
                                 const TextBound& bound);

}  // namespace ciwrap
