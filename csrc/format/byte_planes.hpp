// The bytes of numbers in planes, as what compresses them wants: all first bytes, then all second
// ones. HDF5's shuffle filter stores them so, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ciwrap {

// from, to: `count` numbers of `unit` bytes, which do not overlap.
void to_planes(const std::uint8_t* from, std::uint8_t* to, std::size_t count, std::size_t unit);
void from_planes(const std::uint8_t* from, std::uint8_t* to, std::size_t count, std::size_t unit);

}  // namespace ciwrap
