#include "format/byte_planes.hpp"

namespace ciwrap {
namespace {

enum class Way { into, out_of };

// Width: 0 where only `unit` knows it. The compiler makes vectors of the others.
template <Way way, std::size_t Width>
void move_planes(const std::uint8_t* __restrict from, std::uint8_t* __restrict to,
                 std::size_t count, std::size_t unit) {
    const std::size_t width = Width == 0 ? unit : Width;
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < width; ++j) {
            if constexpr (way == Way::into)
                to[j * count + i] = from[i * width + j];
            else
                to[i * width + j] = from[j * count + i];
        }
    }
}

template <Way way>
void move_planes(const std::uint8_t* from, std::uint8_t* to, std::size_t count, std::size_t unit) {
    const auto move = unit == 2   ? move_planes<way, 2>
                      : unit == 4 ? move_planes<way, 4>
                      : unit == 8 ? move_planes<way, 8>
                                  : move_planes<way, 0>;
    move(from, to, count, unit);
}

}  // namespace

void to_planes(const std::uint8_t* from, std::uint8_t* to, std::size_t count, std::size_t unit) {
    move_planes<Way::into>(from, to, count, unit);
}

void from_planes(const std::uint8_t* from, std::uint8_t* to, std::size_t count, std::size_t unit) {
    move_planes<Way::out_of>(from, to, count, unit);
}

}  // namespace ciwrap
