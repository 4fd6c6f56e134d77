// Compiled once per CPU level (see level_kernels.hpp). Loops without branches, for the compiler to
// vectorise.
#include "kernels/floating_point_mode.hpp"
#include "kernels/level_kernels.hpp"
#include "kernels/level_namespace.hpp"
#include "kernels/scalar_codes.hpp"

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

void widen_scalars(ScalarType scalar, const std::uint8_t* from, bool swap, std::size_t count,
                   double* to);
std::uint32_t find_fills(const double* tile, const double* fills, std::size_t fill_count,
                         bool nan_is_fill);

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

template <class Bits>
[[gnu::always_inline]] inline Bits swapped(Bits bits) {
    if constexpr (sizeof(Bits) == 8) {
        return __builtin_bswap64(bits);
    } else if constexpr (sizeof(Bits) == 4) {
        return __builtin_bswap32(bits);
    } else if constexpr (sizeof(Bits) == 2) {
        return __builtin_bswap16(bits);
    } else {
        return bits;
    }
}

template <class Bits, class Widen>
[[gnu::always_inline]] inline void widen_all(const std::uint8_t* from, bool swap, std::size_t count,
                                             double* to, const Widen& widen) {
    if (swap) {
        for (std::size_t i = 0; i < count; ++i) {
            Bits bits;
            __builtin_memcpy(&bits, from + i * sizeof bits, sizeof bits);
            to[i] = widen(swapped(bits));
        }
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        Bits bits;
        __builtin_memcpy(&bits, from + i * sizeof bits, sizeof bits);
        to[i] = widen(bits);
    }
}

template <class Bits, class Number>
void widen_numbers(const std::uint8_t* from, bool swap, std::size_t count, double* to) {
    widen_all<Bits>(from, swap, count, to,
                    [](Bits bits) { return static_cast<double>(bits_as<Number>(bits)); });
}

}  // namespace

void widen_scalars(ScalarType scalar, const std::uint8_t* from, bool swap, std::size_t count,
                   double* to) {
    const FloatingPointMode ieee;
    switch (scalar) {
        case ScalarType::float16:
            return widen_all<std::uint16_t>(from, swap, count, to, [](std::uint16_t bits) {
                return static_cast<double>(widen_float16(bits));
            });
        case ScalarType::bfloat16:
            return widen_all<std::uint16_t>(from, swap, count, to, [](std::uint16_t bits) {
                return static_cast<double>(widen_bfloat16(bits));
            });
        case ScalarType::float32:
            return widen_numbers<std::uint32_t, float>(from, swap, count, to);
        case ScalarType::float64:
            return widen_numbers<std::uint64_t, double>(from, swap, count, to);
        case ScalarType::int8:
            return widen_numbers<std::uint8_t, std::int8_t>(from, swap, count, to);
        case ScalarType::int16:
            return widen_numbers<std::uint16_t, std::int16_t>(from, swap, count, to);
        case ScalarType::int32:
            return widen_numbers<std::uint32_t, std::int32_t>(from, swap, count, to);
        case ScalarType::int64:
            return widen_numbers<std::uint64_t, std::int64_t>(from, swap, count, to);
        case ScalarType::uint8:
            return widen_numbers<std::uint8_t, std::uint8_t>(from, swap, count, to);
        case ScalarType::uint16:
            return widen_numbers<std::uint16_t, std::uint16_t>(from, swap, count, to);
        case ScalarType::uint32:
            return widen_numbers<std::uint32_t, std::uint32_t>(from, swap, count, to);
        case ScalarType::uint64:
            return widen_numbers<std::uint64_t, std::uint64_t>(from, swap, count, to);
        case ScalarType::boolean:
            return widen_all<std::uint8_t>(from, swap, count, to,
                                           [](std::uint8_t bits) { return bits != 0 ? 1.0 : 0.0; });
        case ScalarType::raw:
            break;
    }
}

std::uint32_t find_fills(const double* tile, const double* fills, std::size_t fill_count,
                         bool nan_is_fill) {
    const FloatingPointMode ieee;
    std::int64_t found[compare_tile] = {};
    if (nan_is_fill) {
        for (std::size_t i = 0; i < compare_tile; ++i)
            found[i] |= tile[i] != tile[i] ? 1 : 0;
    }
    for (std::size_t fill = 0; fill < fill_count; ++fill) {
        for (std::size_t i = 0; i < compare_tile; ++i)
            found[i] |= tile[i] == fills[fill] ? 1 : 0;
    }
    std::int64_t count = 0;
    for (std::size_t i = 0; i < compare_tile; ++i)
        count += found[i];
    return static_cast<std::uint32_t>(count);
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
