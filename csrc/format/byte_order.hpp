// Little-endian integers out of and into byte strings.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "ciwrap/digest.hpp"

namespace ciwrap {

static_assert(std::endian::native == std::endian::little, "only little-endian hosts are supported");

template <typename T>
T load(std::span<const std::uint8_t> bytes, std::size_t offset) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, bytes.subspan(offset, sizeof value).data(), sizeof value);
    return value;
}

template <typename T>
void append(std::vector<std::uint8_t>& bytes, const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, Digest>);
    const std::size_t end = bytes.size();
    bytes.resize(end + sizeof value);
    std::memcpy(bytes.data() + end, &value, sizeof value);
}

}  // namespace ciwrap
