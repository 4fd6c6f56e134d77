// Numbers in their line: whether one stands alone, or may be a part of something longer.
#pragma once

#include <string_view>

#include "text/text_number.hpp"

namespace ciwrap {

// A number in what may be looked at of its line: all of it, or what follows an ignored piece.
struct PlacedNumber {
    std::string_view line;
    std::string_view text;  // a part of the line
};

// Whether nothing beside the number could belong to it. Such are: digits behind a decimal comma, a
// separator of thousands or a second point (1,995, 1'995, 1.2.3), digits behind a single point
// (v.5), powers and factors (10^3, 2**8, 3*0.5, 1.5 x 10^3), exponents that `number_end` leaves to
// themselves (1d-5, 1.0+05, 1.5(3)e-5, 1.5 E-5), and what has the sign of an angle (-1:30, -00 30).
bool stands_alone(const PlacedNumber& number);

// As `compare_numbers` where both stand alone; else they have to be written alike as well.
NumberComparison compare_placed(const PlacedNumber& golden, const PlacedNumber& value,
                                const TextBound& bound);

}  // namespace ciwrap
