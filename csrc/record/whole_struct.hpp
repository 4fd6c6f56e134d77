// Structs that programs hand over: those of an older header are shorter, those of a newer one
// longer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "ciwrap/error.hpp"
#include "record/include/ciwrap/record.h"

namespace ciwrap::record {

// What ciwrap_array had in the first version. Fields that come later are 0 in an older program.
inline constexpr std::size_t first_array_bytes = offsetof(ciwrap_array, rtol) + sizeof(double);

// As this library knows it. bytes: of what is given, as its first field says. Throws
// Error(invalid_argument) for less than the first version had.
template <class Struct>
Struct whole_struct(const void* given, std::size_t bytes, std::size_t first_bytes) {
    if (bytes < first_bytes)
        throw Error(ErrorCode::invalid_argument,
                    "an array whose size is not given: set it to sizeof(ciwrap_array)");
    Struct whole{};
    std::memcpy(&whole, given, std::min(bytes, sizeof whole));
    return whole;
}

}  // namespace ciwrap::record
