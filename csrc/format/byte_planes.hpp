// The bytes of numbers in planes, as what compresses them wants: all first bytes, then all second
// ones. HDF5's shuffle filter stores them so, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ciwrap {

// Unit: 0 where only `unit` knows it. The compiler makes vectors of the others.
template <std::size_t Unit>
void move_to_planes(const std::uint8_t* __restrict from, std::uint8_t* __restrict to,
                    std::size_t count, std::size_t unit) {
    const std::size_t width = Unit == 0 ? unit : Unit;
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = 0; j < width; ++j)
            to[j * count + i] = from[i * width + j];
}

template <std::size_t Unit>
void move_from_planes(const std::uint8_t* __restrict from, std::uint8_t* __restrict to,
                      std::size_t count, std::size_t unit) {
    const std::size_t width = Unit == 0 ? unit : Unit;
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = 0; j < width; ++j)
            to[i * width + j] = from[j * count + i];
}

// from, to: `count` numbers of `unit` bytes, which do not overlap.
inline void to_planes(const std::uint8_t* from, std::uint8_t* to, std::size_t count,
                      std::size_t unit) {
    const auto move = unit == 2   ? move_to_planes<2>
                      : unit == 4 ? move_to_planes<4>
                      : unit == 8 ? move_to_planes<8>
                                  : move_to_planes<0>;
    move(from, to, count, unit);
}

inline void from_planes(const std::uint8_t* from, std::uint8_t* to, std::size_t count,
                        std::size_t unit) {
    const auto move = unit == 2   ? move_from_planes<2>
                      : unit == 4 ? move_from_planes<4>
                      : unit == 8 ? move_from_planes<8>
                                  : move_from_planes<0>;
    move(from, to, count, unit);
}

}  // namespace ciwrap
