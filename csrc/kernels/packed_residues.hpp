// Residues of one chunk, packed several to a byte (docs/reference/cell-codes.md, section 8).
#pragma once

#include <cstdint>

#include "base/quantize_plan.hpp"

namespace ciwrap {

// One chunk of `count` scalars; `unpacked` takes one residue per scalar.
inline void unpack_residues(const QuantizePlan& plan, const std::uint8_t* packed,
                            std::uint64_t count, std::uint8_t* unpacked) {
    const auto k = static_cast<std::uint32_t>(plan.levels);
    for (std::uint64_t i = 0; i < count;) {
        std::uint32_t value = *packed++;
        for (std::uint32_t p = 0; p < plan.packed && i < count; ++p, ++i, value /= k) {
            unpacked[i] = static_cast<std::uint8_t>(value % k);
        }
    }
}

}  // namespace ciwrap
