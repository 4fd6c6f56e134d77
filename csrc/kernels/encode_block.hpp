// Blocks of scalars to codes, on the host: loops over scalar_codes.hpp that compilers turn into
// vector code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/scalar_codes.hpp"

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

inline constexpr std::size_t block_scalars = 1280;  // at most; see block_step

enum class Rounding { plain, golden, against };

template <class T>
static inline T load(const std::uint8_t* from, std::size_t index) {
    T value;
    __builtin_memcpy(&value, from + index * sizeof(T), sizeof(T));
    return value;
}

template <class T>
static inline void store(std::uint8_t* to, std::size_t index, T value) {
    __builtin_memcpy(to + index * sizeof(T), &value, sizeof(T));
}

// One scalar as the kernels want it.
template <ScalarType Type>
struct Loader;

template <>
struct Loader<ScalarType::float32> {
    using Value = float;
    static Value get(const std::uint8_t* in, std::size_t i) { return load<float>(in, i); }
};
template <>
struct Loader<ScalarType::float64> {
    using Value = double;
    static Value get(const std::uint8_t* in, std::size_t i) { return load<double>(in, i); }
};
template <>
struct Loader<ScalarType::float16> {
    using Value = float;
    static Value get(const std::uint8_t* in, std::size_t i) {
        return widen_float16(load<std::uint16_t>(in, i));
    }
};
template <>
struct Loader<ScalarType::bfloat16> {
    using Value = float;
    static Value get(const std::uint8_t* in, std::size_t i) {
        return widen_bfloat16(load<std::uint16_t>(in, i));
    }
};

template <class Code>
struct SpecialCode;

template <>
struct SpecialCode<std::int32_t> {
    using Unsigned = std::uint32_t;
    using Real = float;
    static constexpr std::int32_t lowest = -2147483647 - 1;
    static constexpr std::uint32_t infinity_bits = 0x7f800000;
    static constexpr std::uint32_t sign_bit = 0x80000000;
};
template <>
struct SpecialCode<std::int64_t> {
    using Unsigned = std::uint64_t;
    using Real = double;
    static constexpr std::int64_t lowest = -9223372036854775807 - 1;
    static constexpr std::uint64_t infinity_bits = 0x7ff0000000000000;
    static constexpr std::uint64_t sign_bit = 0x8000000000000000;
};

// absolute (Code int32 with float values, int64 with double) and relative (int64, everything
// widened to double).
template <CodeKind Kind, int LogTerms, Rounding Mode, ScalarType Type, class Code>
static void encode_floats(const QuantizePlan& shared_plan, const std::uint8_t* in,
                          std::size_t count, std::uint8_t* codes, std::uint8_t* residues,
                          std::uint8_t* deltas) {
    using Special = SpecialCode<Code>;
    using Unsigned = typename Special::Unsigned;
    const QuantizePlan plan = shared_plan;  // a copy: stores through byte pointers cannot alias it
    const auto special_from = static_cast<Unsigned>(plan.special_bits);
    const auto special_shift = static_cast<Unsigned>(plan.special_shift);
    const std::int32_t levels = plan.levels;
    const std::int32_t half = plan.half;

    for (std::size_t i = 0; i < count; ++i) {
        const auto x = static_cast<typename Special::Real>(Loader<Type>::get(in, i));
        const auto bits = bits_as<Unsigned>(x);
        const Unsigned magnitude = bits & ~Special::sign_bit;
        const bool negative = (bits & Special::sign_bit) != 0;
        bool special = magnitude >= special_from;
        // Unsigned arithmetic wraps where signed overflow would be undefined.
        const Unsigned beyond = special_shift + magnitude;
        Code special_code =
            bits_as<Code>(static_cast<Unsigned>(negative ? Unsigned{0} - beyond : beyond));
        special_code = magnitude > Special::infinity_bits ? Special::lowest : special_code;
        if constexpr (Kind == CodeKind::relative) {
            const bool zero = plan.zero_is_special && magnitude == 0;
            special_code = zero ? Special::lowest + 2 : special_code;
            special = special || zero;
        }

        const auto fine = [&] {
            if constexpr (Kind == CodeKind::relative) {
                return fine_relative<LogTerms>(x, plan);
            } else {
                return fine_absolute(x, plan);
            }
        }();
        if constexpr (Mode == Rounding::plain) {
            const auto cell = static_cast<Code>(whole_value(fine));
            store<Code>(codes, i, special ? special_code : cell);
        } else {
            const CellAndResidue split = split_cell(fine, plan);
            auto cell = static_cast<Code>(split.cell);
            if constexpr (Mode == Rounding::golden) {
                residues[i] = special ? std::uint8_t{0} : static_cast<std::uint8_t>(split.residue);
            } else {
                // Residues are below 256; what is left of those of special scalars is, too.
                std::int32_t delta =
                    (split.residue & 0xff) - static_cast<std::int32_t>(residues[i]);
                const std::int32_t above = delta > half ? 1 : 0;
                const std::int32_t below = delta < -half ? 1 : 0;
                cell = static_cast<Code>(wrapping_add(cell, above - below));
                delta -= (above - below) * levels;
                delta = delta < 0 ? -delta : delta;
                deltas[i] = special ? std::uint8_t{255} : static_cast<std::uint8_t>(delta);
            }
            store<Code>(codes, i, special ? special_code : cell);
        }
    }
}

// The integer image of section 7.
template <ScalarType Type>
struct Image;

template <class Bits>
static inline std::int64_t float_image(Bits bits) {
    constexpr Bits sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
    const auto magnitude =
        static_cast<std::int64_t>(static_cast<Bits>(bits & static_cast<Bits>(~sign)));
    return (bits & sign) != 0 ? -magnitude : magnitude;
}

template <>
struct Image<ScalarType::float16> {
    using Bits = std::uint16_t;
    static constexpr std::int64_t infinity = 0x7c00;
    static std::int64_t get(const std::uint8_t* in, std::size_t i) {
        return float_image(load<std::uint16_t>(in, i));
    }
};
template <>
struct Image<ScalarType::bfloat16> {
    using Bits = std::uint16_t;
    static constexpr std::int64_t infinity = 0x7f80;
    static std::int64_t get(const std::uint8_t* in, std::size_t i) {
        return float_image(load<std::uint16_t>(in, i));
    }
};
template <>
struct Image<ScalarType::float32> {
    using Bits = std::uint32_t;
    static constexpr std::int64_t infinity = 0x7f800000;
    static std::int64_t get(const std::uint8_t* in, std::size_t i) {
        return float_image(load<std::uint32_t>(in, i));
    }
};
template <>
struct Image<ScalarType::float64> {
    using Bits = std::uint64_t;
    static constexpr std::int64_t infinity = 0x7ff0000000000000;
    static std::int64_t get(const std::uint8_t* in, std::size_t i) {
        return float_image(load<std::uint64_t>(in, i));
    }
};
template <class T>
struct SignedImage {
    using Bits = T;
    static std::int64_t get(const std::uint8_t* in, std::size_t i) { return load<T>(in, i); }
};
template <class T>
struct UnsignedImage {
    using Bits = T;
    static std::int64_t get(const std::uint8_t* in, std::size_t i) {
        constexpr auto top = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
        using Signed = decltype([] {
            if constexpr (sizeof(T) == 1)
                return std::int8_t{};
            else if constexpr (sizeof(T) == 2)
                return std::int16_t{};
            else if constexpr (sizeof(T) == 4)
                return std::int32_t{};
            else
                return std::int64_t{};
        }());
        return bits_as<Signed>(static_cast<T>(load<T>(in, i) ^ top));
    }
};
template <>
struct Image<ScalarType::int8> : SignedImage<std::int8_t> {};
template <>
struct Image<ScalarType::int16> : SignedImage<std::int16_t> {};
template <>
struct Image<ScalarType::int32> : SignedImage<std::int32_t> {};
template <>
struct Image<ScalarType::int64> : SignedImage<std::int64_t> {};
template <>
struct Image<ScalarType::uint8> : UnsignedImage<std::uint8_t> {};
template <>
struct Image<ScalarType::uint16> : UnsignedImage<std::uint16_t> {};
template <>
struct Image<ScalarType::uint32> : UnsignedImage<std::uint32_t> {};
template <>
struct Image<ScalarType::uint64> : UnsignedImage<std::uint64_t> {};

template <Rounding Mode, ScalarType Type, class Code>
static void encode_steps(const QuantizePlan& shared_plan, const std::uint8_t* in, std::size_t count,
                         std::uint8_t* codes, std::uint8_t* residues, std::uint8_t* deltas) {
    using Special = SpecialCode<Code>;
    const QuantizePlan plan = shared_plan;
    const std::int64_t levels = plan.levels;
    const std::int64_t half = plan.half;
    for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t image = Image<Type>::get(in, i);
        bool special = false;
        Code special_code = 0;
        if constexpr (is_float(Type)) {
            constexpr std::int64_t infinity = Image<Type>::infinity;
            special = image >= infinity || image <= -infinity;
            special_code = image == infinity    ? -(Special::lowest + 1)
                           : image == -infinity ? -(Special::lowest + 2)
                                                : Special::lowest;
        }
        const std::int64_t fine = floor_divide(image, plan.step);
        if constexpr (Mode == Rounding::plain) {
            store<Code>(codes, i, special ? special_code : static_cast<Code>(fine));
        } else {
            std::int64_t cell = floor_divide(fine, levels);
            const std::int64_t residue = wrapping_subtract(fine, wrapping_multiply(cell, levels));
            if constexpr (Mode == Rounding::golden) {
                residues[i] = special ? std::uint8_t{0} : static_cast<std::uint8_t>(residue);
            } else {
                std::int64_t delta = residue - residues[i];
                const std::int64_t carry = delta > half ? 1 : delta < -half ? -1 : 0;
                cell += carry;
                delta -= carry * levels;
                deltas[i] = special ? std::uint8_t{255}
                                    : static_cast<std::uint8_t>(delta < 0 ? -delta : delta);
            }
            store<Code>(codes, i, special ? special_code : static_cast<Code>(cell));
        }
    }
}

// exact, for floats: -0 becomes +0, every NaN the canonical one.
template <class Bits>
static void encode_exact_floats(Bits infinity, Bits canonical_nan, const std::uint8_t* in,
                                std::size_t count, std::uint8_t* codes) {
    constexpr Bits sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
    for (std::size_t i = 0; i < count; ++i) {
        const Bits bits = load<Bits>(in, i);
        const auto magnitude = static_cast<Bits>(bits & static_cast<Bits>(~sign));
        const Bits code = magnitude == 0 ? Bits{0} : magnitude > infinity ? canonical_nan : bits;
        store<Bits>(codes, i, code);
    }
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
