// The contract's question, answered without rounding: is |v - g| <= atol + rtol * |g|, as real
// numbers?
#pragma once

namespace ciwrap {

// All finite; atol, rtol >= 0. Exact for every input, subnormals and results beyond the range of
// double included.
bool within_bound(double golden, double value, double atol, double rtol);

// |v - g| / (atol + rtol * |g|), with some roundings; 0 without a difference, and infinite for a
// bound of 0 or where it is more than a double holds. What is divided may be beyond the doubles.
double share_of_bound(double golden, double value, double atol, double rtol);

// |v - g| / |g|, likewise, of a golden that is not 0.
double relative_difference(double golden, double value);

}  // namespace ciwrap
