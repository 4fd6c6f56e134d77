// Everything that decides the digests of an array. How it turns into arithmetic is in
// quantize_plan.hpp; the meaning is docs/reference/cell-codes.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ciwrap/scalar_type.hpp"

namespace ciwrap {

// As a user states it.
struct StatedParameters {
    std::string dtype = "<f8";  // "<f4", ">c16", "<bf2", ...
    double atol = 0.0;
    double rtol = 0.0;
    std::uint64_t ulps = 0;
    std::uint32_t residue_levels = 1;  // as asked; QuantizePlan holds the effective number
    std::uint64_t chunk_bytes = 4096;
    std::uint32_t arity = 16;
    bool equal_nan = true;
    // Fill values as bytes of one scalar, little endian, each in the canonical form of section 3,
    // in the user's order (the first one stands for all of them). No duplicates.
    std::vector<std::uint64_t> fill_bits{};

    friend bool operator==(const StatedParameters&, const StatedParameters&) = default;
};

// In range, and with the bound that the type allows: only floats and complex numbers have rtol and
// ulps, and booleans, bytes and text have no atol either. This is the one place where a bound that
// means nothing for a type is dropped; whoever hashes or compares sees what is left.
class TreeParameters {
  public:
    // Throws Error(invalid_argument) with one clear line unless everything is in range and fits
    // together.
    TreeParameters(StatedParameters stated = {});

    const StatedParameters& values() const { return values_; }
    const std::string& dtype() const { return values_.dtype; }
    double atol() const { return values_.atol; }
    double rtol() const { return values_.rtol; }
    std::uint64_t ulps() const { return values_.ulps; }
    std::uint32_t residue_levels() const { return values_.residue_levels; }
    std::uint64_t chunk_bytes() const { return values_.chunk_bytes; }
    std::uint32_t arity() const { return values_.arity; }
    bool equal_nan() const { return values_.equal_nan; }
    const std::vector<std::uint64_t>& fill_bits() const { return values_.fill_bits; }

    friend bool operator==(const TreeParameters& a, const TreeParameters& b) {
        return a.values_ == b.values_;
    }

    const DataType& data_type() const { return type_; }
    // How many whole numbers integers may be apart, which is atol rounded down, or how many
    // representable ones floats may be under a ULP bound; else 0.
    std::uint64_t allowed_steps() const;
    std::uint64_t chunk_scalars() const;
    std::uint64_t leaf_count(std::uint64_t scalar_count) const;  // at least 1

  private:
    StatedParameters values_;
    DataType type_;
};

inline constexpr std::uint64_t min_chunk_bytes = 64;
inline constexpr std::uint64_t max_chunk_bytes = std::uint64_t{1} << 24;
inline constexpr std::size_t max_fill_values = 16;

}  // namespace ciwrap
