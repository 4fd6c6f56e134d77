// The arithmetic behind TreeParameters: every constant that the kernels need, derived once on the
// host. The derivation uses nothing but single-rounded IEEE operations, so it is the same on every
// machine. Specification: docs/reference/cell-codes.md (section numbers below).
#pragma once

#include <cstdint>

#include "ciwrap/host_device.hpp"
#include "ciwrap/parameters.hpp"
#include "ciwrap/scalar_type.hpp"

namespace ciwrap {

enum class CodeKind : std::uint8_t { exact, absolute, relative, steps };

inline constexpr std::uint32_t max_plan_fill_values = 16;
static_assert(max_plan_fill_values == max_fill_values);

// Trivially copyable: it travels to devices by value.
struct QuantizePlan {
    CodeKind kind = CodeKind::exact;
    ScalarType scalar = ScalarType::raw;
    std::uint32_t scalar_bytes = 1;
    std::uint32_t code_bytes = 1;
    std::uint32_t swap_unit = 1;   // > 1: the data are big-endian, units of so many bytes
    std::uint32_t log_terms = 24;  // 16 or 24 (section 6)
    std::int32_t levels = 1;       // residue levels k, effective
    std::int32_t half = 0;         // h = (k - 1) / 2
    std::uint32_t packed = 1;      // residues to a byte (section 8)
    std::uint32_t fill_count = 0;
    bool equal_nan = true;
    bool zero_is_special = false;  // relative with atol = 0

    std::uint64_t chunk_scalars = 1;
    double scale = 0.0;              // inv (section 5) or c2 (section 6)
    double offset_slope = 0.0;       // c1 (section 6)
    double exponent_offset = 0.0;    // E (section 6)
    double inverse_levels = 1.0;     // 1 / k
    std::uint64_t special_bits = 0;  // bits(X)
    std::int64_t special_shift = 0;  // K
    std::int64_t step = 1;           // d (section 7)
    std::uint64_t fill_bits[max_plan_fill_values] = {};

    double guaranteed_share = 1.0;
    double exact_above = 0.0;  // X as a magnitude; infinity where nothing is compared exactly

    CIWRAP_HOST_DEVICE bool has_residues() const { return levels > 1; }
    // Packed residue bytes of a chunk of so many scalars.
    CIWRAP_HOST_DEVICE std::uint64_t residue_bytes(std::uint64_t scalars) const {
        return has_residues() ? (scalars + packed - 1) / packed : 0;
    }
    // Packed residue bytes of a whole array.
    std::uint64_t total_residue_bytes(std::uint64_t scalar_count) const;
};

QuantizePlan make_plan(const TreeParameters& parameters);

}  // namespace ciwrap
