// Numbers in their line: what stands around a number may make it a part of a longer one.
#pragma once

#include <string_view>

#include "text/text_number.hpp"

namespace ciwrap {

// A number in what may be looked at of its line: all of it, or what follows an ignored piece.
struct PlacedNumber {
    std::string_view line;
    std::string_view text;  // a part of the line
};

// As `compare_numbers`, and stricter where the numbers may be parts of longer ones, or of words:
// behind a point that none begins with (1.2.3, X10.05, 0x1.8p3), behind a power's mark (10^3,
// 2**8), in a hexadecimal number, and -0 in front of a colon or as -00 (degrees, minutes, seconds)
// they have to be written alike. 1,995 may be two numbers, thousands, or a decimal number, v.5 a
// fraction, and 1d-5, 1.0+05, 1.5(3)e-5 or 1.5 E-5 one number with its exponent: all readings have
// to be within the bound.
NumberComparison compare_placed(const PlacedNumber& golden, const PlacedNumber& value,
                                const TextBound& bound);

}  // namespace ciwrap
