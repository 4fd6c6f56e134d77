// Everything that decides the digests of an array, as the user states it. Plain values, compared as
// such. How they turn into arithmetic is in quantize_plan.hpp; the meaning is
// docs/reference/cell-codes.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/scalar_type.hpp"

namespace ciwrap {

struct TreeParameters {
    std::string dtype;  // "<f4", ">c16", "<bf2", ...
    double atol = 0.0;
    double rtol = 0.0;
    std::uint64_t ulps = 0;
    std::uint32_t residue_levels = 1;  // as asked; QuantizePlan holds the effective number
    std::uint64_t chunk_bytes = 4096;
    std::uint32_t arity = 16;
    bool equal_nan = true;
    // Fill values as bytes of one scalar, little endian, each in the canonical form of section 3,
    // in the user's order (the first one stands for all of them). No duplicates.
    std::vector<std::uint64_t> fill_bits;

    friend bool operator==(const TreeParameters&, const TreeParameters&) = default;

    // Throws Error(invalid_argument) with one clear line unless everything is in range and fits
    // together.
    void validate() const;
    DataType data_type() const { return DataType::parse(dtype); }
    std::uint64_t chunk_scalars() const;
    std::uint64_t leaf_count(std::uint64_t scalar_count) const;  // at least 1
};

inline constexpr std::uint64_t min_chunk_bytes = 64;
inline constexpr std::uint64_t max_chunk_bytes = std::uint64_t{1} << 24;
inline constexpr std::size_t max_fill_values = 16;

}  // namespace ciwrap
