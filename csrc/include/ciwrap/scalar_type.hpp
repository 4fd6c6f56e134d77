// The numbers arrays are made of, and the dtype strings they are known by.
#pragma once

#include <cstdint>
#include <string>

#include "ciwrap/host_device.hpp"

namespace ciwrap {

enum class ScalarType : std::uint8_t {
    float16,
    bfloat16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    boolean,
    raw,  // fixed-width bytes or unicode: compared byte by byte
};

CIWRAP_HOST_DEVICE constexpr bool is_float(ScalarType type) {
    return type <= ScalarType::float64;
}
CIWRAP_HOST_DEVICE constexpr bool is_integer(ScalarType type) {
    return type >= ScalarType::int8 && type <= ScalarType::uint64;
}
CIWRAP_HOST_DEVICE constexpr bool is_unsigned(ScalarType type) {
    return type >= ScalarType::uint8 && type <= ScalarType::uint64;
}

// A dtype: NumPy's array-protocol string ("<f4", ">c16", "|S12", "<U5") or "<bf2", parsed.
struct DataType {
    ScalarType scalar = ScalarType::raw;
    std::uint32_t scalar_bytes = 1;         // bytes of one scalar (raw: the whole item)
    std::uint32_t scalars_per_element = 1;  // 2 for complex
    std::uint32_t swap_unit = 1;            // bytes reversed together; 1: nothing to swap
    bool big_endian = false;

    // Throws Error(invalid_argument) naming the dtype if it is none of ours.
    static DataType parse(const std::string& dtype);
    std::uint64_t element_bytes() const {
        return std::uint64_t{scalar_bytes} * scalars_per_element;
    }
};

}  // namespace ciwrap
