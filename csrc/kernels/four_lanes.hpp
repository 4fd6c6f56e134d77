// Vectors of four 64-bit lanes at every CPU level, for sums that come out the same everywhere.
//
// Where the machine's vectors have 16 bytes, two of them stand for one: compilers split wider ones
// themselves, but take comparisons apart lane by lane.
#pragma once

#include <cstddef>
#include <cstdint>

#define CIWRAP_FOUR_LANES 1
#include "kernels/simd.hpp"

#define CIWRAP_LANES_FUNCTION [[gnu::always_inline]] inline

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

inline constexpr std::size_t lanes = 4;

template <class To, class From>
CIWRAP_LANES_FUNCTION To as(const From& from) {
    return __builtin_bit_cast(To, from);
}

#if defined(CIWRAP_HAVE_SIMD) && !defined(__AVX2__)

template <class Half>
struct Pair {
    Half low;
    Half high;

    CIWRAP_LANES_FUNCTION auto operator[](std::size_t lane) const {
        return lane < 2 ? low[lane] : high[lane - 2];
    }
};

template <class Half>
CIWRAP_LANES_FUNCTION Pair<Half> pair_of(Half low, Half high) {
    return {low, high};
}

// Of two pairs, or of a pair and one number for all lanes.
#define CIWRAP_LANEWISE(op)                                                            \
    template <class Half>                                                              \
    CIWRAP_LANES_FUNCTION auto operator op(const Pair<Half>& a, const Pair<Half>& b) { \
        return pair_of(a.low op b.low, a.high op b.high);                              \
    }                                                                                  \
    template <class Half, class Number>                                                \
    CIWRAP_LANES_FUNCTION auto operator op(const Pair<Half>& a, Number b) {            \
        return pair_of(a.low op b, a.high op b);                                       \
    }
// -1 in lanes where it holds, else 0. Clang's results are of another type of 64 bits than ours.
#define CIWRAP_LANETEST(op)                                                                 \
    template <class Half>                                                                   \
    CIWRAP_LANES_FUNCTION Pair<I64> operator op(const Pair<Half>& a, const Pair<Half>& b) { \
        return pair_of(as<I64>(a.low op b.low), as<I64>(a.high op b.high));                 \
    }
#define CIWRAP_LANEWISE_TO(op)                                                      \
    template <class Half>                                                           \
    CIWRAP_LANES_FUNCTION void operator op##=(Pair<Half>& a, const Pair<Half>& b) { \
        a = a op b;                                                                 \
    }
CIWRAP_LANEWISE(+)
CIWRAP_LANEWISE(-)
CIWRAP_LANEWISE(*)
CIWRAP_LANEWISE(/)
CIWRAP_LANEWISE(&)
CIWRAP_LANEWISE(|)
CIWRAP_LANEWISE(^)
CIWRAP_LANEWISE(>>)
CIWRAP_LANEWISE(<<)
CIWRAP_LANETEST(<)
CIWRAP_LANETEST(<=)
CIWRAP_LANETEST(>)
CIWRAP_LANETEST(>=)
CIWRAP_LANETEST(==)
CIWRAP_LANEWISE_TO(+)
CIWRAP_LANEWISE_TO(-)
CIWRAP_LANEWISE_TO(|)
#undef CIWRAP_LANETEST
#undef CIWRAP_LANEWISE
#undef CIWRAP_LANEWISE_TO

template <class Half>
CIWRAP_LANES_FUNCTION Pair<Half> operator~(const Pair<Half>& a) {
    return {~a.low, ~a.high};
}

using Reals = Pair<F64>;
using Words = Pair<I64>;
using UnsignedWords = Pair<U64>;

CIWRAP_LANES_FUNCTION Reals larger(const Reals& a, const Reals& b) {
    return {larger(a.low, b.low), larger(a.high, b.high)};
}

CIWRAP_LANES_FUNCTION Reals smaller(const Reals& a, const Reals& b) {
    return {smaller(a.low, b.low), smaller(a.high, b.high)};
}

// One bit a lane of a mask.
CIWRAP_LANES_FUNCTION std::uint32_t lane_bits(const Words& mask) {
    return lane_bits(as<U64>(mask.low)) | lane_bits(as<U64>(mask.high)) << 2;
}

CIWRAP_LANES_FUNCTION Reals widen_four_floats(const std::uint8_t* from) {
    return {widen_floats(from), widen_floats(from + 8)};
}

// Lanes 0 and 1 in each other's place, and 2 and 3.
CIWRAP_LANES_FUNCTION UnsignedWords swapped_neighbours(const UnsignedWords& words) {
    return {__builtin_shufflevector(words.low, words.low, 1, 0),
            __builtin_shufflevector(words.high, words.high, 1, 0)};
}

CIWRAP_LANES_FUNCTION UnsignedWords four_words(std::uint64_t even, std::uint64_t odd) {
    return {U64{even, odd}, U64{even, odd}};
}

CIWRAP_LANES_FUNCTION I64 widen_two_integers(const std::uint8_t* from) {
    using Integers = std::int32_t __attribute__((vector_size(8)));
    return __builtin_convertvector(load_vector<Integers>(from), I64);
}

CIWRAP_LANES_FUNCTION Words widen_four_integers(const std::uint8_t* from) {
    return {widen_two_integers(from), widen_two_integers(from + 8)};
}

#else

using Reals = double __attribute__((vector_size(32)));
using Words = std::int64_t __attribute__((vector_size(32)));
using UnsignedWords = std::uint64_t __attribute__((vector_size(32)));

#if defined(CIWRAP_HAVE_SIMD)
CIWRAP_LANES_FUNCTION std::uint32_t lane_bits(Words mask) {
    return lane_bits(as<U64>(mask));
}
#else
CIWRAP_LANES_FUNCTION Reals larger(Reals a, Reals b) {
    return a > b ? a : b;
}

CIWRAP_LANES_FUNCTION Reals smaller(Reals a, Reals b) {
    return a < b ? a : b;
}

CIWRAP_LANES_FUNCTION std::uint32_t lane_bits(Words mask) {
    std::uint32_t bits = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane)
        bits |= static_cast<std::uint32_t>(mask[lane] < 0) << lane;
    return bits;
}
#endif

// GCC 12 converts vectors of another size by halves, through memory.
CIWRAP_LANES_FUNCTION Reals widen_four_floats(const std::uint8_t* from) {
#if defined(CIWRAP_HAVE_SIMD)
    return widen_floats(from);
#else
    using Floats = float __attribute__((vector_size(16)));
    Floats value;
    __builtin_memcpy(&value, from, sizeof value);
    return __builtin_convertvector(value, Reals);
#endif
}

CIWRAP_LANES_FUNCTION Words widen_four_integers(const std::uint8_t* from) {
#if defined(CIWRAP_HAVE_SIMD)
    return as<Words>(_mm256_cvtepi32_epi64(load_vector<__m128i>(from)));
#else
    using Integers = std::int32_t __attribute__((vector_size(16)));
    Integers value;
    __builtin_memcpy(&value, from, sizeof value);
    return __builtin_convertvector(value, Words);
#endif
}

CIWRAP_LANES_FUNCTION UnsignedWords swapped_neighbours(UnsignedWords words) {
    return __builtin_shufflevector(words, words, 1, 0, 3, 2);
}

CIWRAP_LANES_FUNCTION UnsignedWords four_words(std::uint64_t even, std::uint64_t odd) {
    return UnsignedWords{even, odd, even, odd};
}

#endif

CIWRAP_LANES_FUNCTION Reals all(double value) {
    return Reals{} + value;
}
CIWRAP_LANES_FUNCTION Reals masked(const Reals& value, const Words& mask) {
    return as<Reals>(as<Words>(value) & mask);
}
CIWRAP_LANES_FUNCTION Reals magnitude(const Reals& value) {
    return masked(value, ~(Words{} + (std::int64_t{1} << 63)));
}

CIWRAP_LANES_FUNCTION double largest(const Reals& value) {
    const double first = value[0] > value[1] ? value[0] : value[1];
    const double second = value[2] > value[3] ? value[2] : value[3];
    return first > second ? first : second;
}

template <class Real>
CIWRAP_LANES_FUNCTION Reals load_reals(const std::uint8_t* from) {
    if constexpr (sizeof(Real) == 8) {
        Reals value;
        __builtin_memcpy(&value, from, sizeof value);
        return value;
    } else {
        return widen_four_floats(from);
    }
}

// Where floats stand in the order of all floats of their size: 0 at zero, one more for each next.
template <class Real>
CIWRAP_LANES_FUNCTION Words load_places(const std::uint8_t* from) {
    constexpr std::int64_t magnitude_bits =
        sizeof(Real) == 8 ? ~(std::int64_t{1} << 63) : 0x7fffffff;
    Words bits;
    if constexpr (sizeof(Real) == 8) {
        __builtin_memcpy(&bits, from, sizeof bits);
    } else {
        bits = widen_four_integers(from);
    }
    const Words negative = bits < Words{};
    return ((bits & (Words{} + magnitude_bits)) ^ negative) - negative;
}

// Steps between floats of that size, rounded to nearest, once: both halves are exact.
template <class Real>
CIWRAP_LANES_FUNCTION Reals to_reals(const UnsignedWords& counts) {
    constexpr std::uint64_t low_exponent = std::uint64_t{0x433} << 52;   // 2^52
    constexpr std::uint64_t high_exponent = std::uint64_t{0x453} << 52;  // 2^84
    if constexpr (sizeof(Real) == 4)
        return as<Reals>(counts | (UnsignedWords{} + low_exponent)) - all(0x1p+52);
    const UnsignedWords low =
        (counts & (UnsignedWords{} + 0xffffffff)) | (UnsignedWords{} + low_exponent);
    const UnsignedWords high = (counts >> 32) | (UnsignedWords{} + high_exponent);
    return (as<Reals>(high) - all(0x1p+84 + 0x1p+52)) + as<Reals>(low);
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
