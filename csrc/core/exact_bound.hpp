// The contract's question, answered without rounding: is |v - g| <= atol + rtol * |g|, as real
// numbers?
#pragma once

namespace ciwrap {

// All finite; atol, rtol >= 0. Exact for every input, subnormals and results beyond the range of
// double included.
bool within_bound(double golden, double value, double atol, double rtol);

}  // namespace ciwrap
