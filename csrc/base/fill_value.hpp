// Fill values as they are kept in TreeParameters: the bits of one scalar, in the canonical form of
// section 3 of docs/reference/cell-codes.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ciwrap/scalar_type.hpp"

namespace ciwrap {

// The value as a scalar of that type holds it; nothing for a type that takes no fill values, or one
// that cannot hold it.
std::optional<std::uint64_t> rounded_fill_bits(ScalarType type, double value);

// Throws Error(invalid_argument), naming the dtype, if it cannot hold the value exactly or takes no
// fill values.
std::uint64_t float_fill_bits(const std::string& dtype, ScalarType type, double value);
// The value as two's complement in `bits`; is_negative tells which half of the range is meant.
std::uint64_t integer_fill_bits(const std::string& dtype, ScalarType type, bool is_negative,
                                std::uint64_t bits);

double float_fill_value(ScalarType type, std::uint64_t bits);
std::int64_t signed_fill_value(ScalarType type, std::uint64_t bits);

}  // namespace ciwrap
