// A 128-bit digest in canonical XXH3 byte order (big-endian), as written to files and printed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ciwrap {

struct Digest {
    std::array<std::uint8_t, 16> bytes{};

    friend bool operator==(const Digest&, const Digest&) = default;
};
static_assert(sizeof(Digest) == 16, "digest arrays are stored back to back");

// A chunk that can match nothing, not even itself (a NaN where NaN is not equal to NaN).
// That a real hash takes this value has probability 2^-128 and would only cause a false alarm.
inline constexpr Digest unmatchable_digest{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,  //
                                            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

}  // namespace ciwrap
