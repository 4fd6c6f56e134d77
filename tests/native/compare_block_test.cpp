// The tiles of every CPU level against the comparison element by element, for numbers of every
// kind: the same counts, indices, maxima and histogram, and on all levels the same sums.
#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/compare_block.hpp"
#include "kernels/executor.hpp"

namespace ciwrap {
namespace {

constexpr std::uint64_t first_element = 1000;

struct Arrays {
    std::vector<std::uint8_t> golden;
    std::vector<std::uint8_t> value;
};

template <class Number>
void append(std::vector<std::uint8_t>& bytes, Number number, bool swap) {
    std::uint8_t raw[sizeof number];
    std::memcpy(raw, &number, sizeof number);
    if (swap)
        std::reverse(std::begin(raw), std::end(raw));
    bytes.insert(bytes.end(), std::begin(raw), std::end(raw));
}

// Somewhere in the type's range; floats of two bytes by their upper bits, which serves a test.
void append_as(std::vector<std::uint8_t>& bytes, const DataType& type, double x) {
    const auto whole = [&]<class Integer>(Integer) {
        const double low = static_cast<double>(std::numeric_limits<Integer>::min());
        const double high = static_cast<double>(std::numeric_limits<Integer>::max());
        const double fitted = x != x ? 0.0 : std::round(x * 100.0);
        append(bytes,
               fitted <= low    ? std::numeric_limits<Integer>::min()
               : fitted >= high ? std::numeric_limits<Integer>::max()
                                : static_cast<Integer>(fitted),
               type.big_endian);
    };
    switch (type.scalar) {
        case ScalarType::float16:
            return append(bytes,
                          static_cast<std::uint16_t>(
                              (std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> 31 << 15) |
                              (std::bit_cast<std::uint64_t>(x) >> 48 & 0x7fff)),
                          type.big_endian);
        case ScalarType::bfloat16:
            return append(bytes,
                          static_cast<std::uint16_t>(
                              std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> 16),
                          type.big_endian);
        case ScalarType::float32:
            return append(bytes, static_cast<float>(x), type.big_endian);
        case ScalarType::float64:
            return append(bytes, x, type.big_endian);
        case ScalarType::int8:
            return whole(std::int8_t{});
        case ScalarType::int16:
            return whole(std::int16_t{});
        case ScalarType::int32:
            return whole(std::int32_t{});
        case ScalarType::int64:
            return whole(std::int64_t{});
        case ScalarType::uint8:
            return whole(std::uint8_t{});
        case ScalarType::uint16:
            return whole(std::uint16_t{});
        case ScalarType::uint32:
            return whole(std::uint32_t{});
        case ScalarType::uint64:
            return whole(std::uint64_t{});
        case ScalarType::boolean:
            return append(bytes, static_cast<std::uint8_t>(x > 0.0 ? 1 + (x > 0.5) : 0), false);
        case ScalarType::raw:
            for (std::uint32_t i = 0; i < type.scalar_bytes; ++i)
                bytes.push_back(static_cast<std::uint8_t>(x * 3.0 + 40.0));
    }
}

// As many floats of the type further, as its bits count them.
double further(const DataType& type, double x, std::int64_t steps) {
    if (type.scalar == ScalarType::float64)
        return std::bit_cast<double>(std::bit_cast<std::int64_t>(x) + steps);
    const auto bits = std::bit_cast<std::int32_t>(static_cast<float>(x));
    return static_cast<double>(std::bit_cast<float>(bits + static_cast<std::int32_t>(steps)));
}

// Stretches of a few tiles, each with a way of its own to be equal or not.
Arrays make_arrays(const TreeParameters& parameters, std::size_t count, std::mt19937_64& random) {
    const DataType type = parameters.data_type();
    const bool is_double = type.scalar == ScalarType::float64;
    using Double = std::numeric_limits<double>;
    using Float = std::numeric_limits<float>;
    std::uniform_real_distribution<double> unit(-1.0, 1.0);
    const double most = is_double ? Double::max() : static_cast<double>(Float::max());
    const double least =
        is_double ? Double::denorm_min() : static_cast<double>(Float::denorm_min());
    const double extremes[] = {0.0,
                               -0.0,
                               Double::infinity(),
                               -Double::infinity(),
                               Double::quiet_NaN(),
                               most,
                               -most,
                               least,
                               1.0,
                               1e-30,
                               -9.99};
    Arrays arrays;
    unsigned way = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 96 == 0)
            way = static_cast<unsigned>(random() % 8);
        const double g = way == 5 ? extremes[random() % std::size(extremes)] : unit(random);
        const double bound = parameters.atol() + parameters.rtol() * std::abs(g);
        double v = g;
        if (way == 1)
            v = g + bound * unit(random);  // within
        if (way == 2)
            v = g + 4.0 * bound * unit(random);  // within or beyond
        if (way == 3)
            v = g + bound;  // on the bound, as far as roundings go
        if (parameters.ulps() > 0 && way < 4) {
            const std::int64_t steps = way < 2 ? 4 : 1 << 20;
            v = further(type, g, static_cast<std::int64_t>(random() >> 1) % (2 * steps) - steps);
        }
        if (way == 4)
            v = random() % 2 == 0 ? g : g * 1.5;
        if (way == 5)
            v = extremes[random() % std::size(extremes)];
        const bool missing = way == 7 || (way == 6 && random() % 4 == 0);  // a fill value
        append_as(arrays.golden, type, missing ? -9.99 : g);
        append_as(arrays.value, type, missing && random() % 200 != 0 ? -9.99 : v);
    }
    return arrays;
}

std::vector<StatedParameters> all_parameters() {
    std::vector<StatedParameters> all;
    const double bounds[][2] = {{0.0, 0.0},  {1e-3, 0.0},   {0.0, 1e-3},   {1e-6, 1e-3},
                                {1e30, 0.0}, {1e-290, 0.0}, {0.0, 1e-280}, {1e-3, 1e3}};
    for (const char* dtype : {"<f4", "<f8", "<c8", "<c16", ">f4", ">f8", ">c8", "<f2", "<bf2"}) {
        for (const auto& bound : bounds) {
            for (const bool equal_nan : {true, false}) {
                StatedParameters parameters;
                parameters.dtype = dtype;
                parameters.atol = bound[0];
                parameters.rtol = bound[1];
                parameters.equal_nan = equal_nan;
                all.push_back(parameters);
            }
        }
    }
    for (const char* dtype : {"<f4", "<f8", ">f8", "<f2", "<c8", "<c16"}) {
        StatedParameters parameters;
        parameters.dtype = dtype;
        for (const std::uint64_t ulps : {std::uint64_t{1}, std::uint64_t{4}, std::uint64_t{1} << 31,
                                         std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
            parameters.ulps = ulps;
            all.push_back(parameters);
            parameters.equal_nan = !parameters.equal_nan;
        }
        parameters.ulps = 0;
        parameters.atol = 1e-3;
        Arrays fill;
        const DataType type = DataType::parse(dtype);
        append_as(fill.golden, {type.scalar, type.scalar_bytes, 1, 1, false}, -9.99);
        fill.golden.resize(sizeof(std::uint64_t));
        for (const bool nan : {false, true}) {
            parameters.fill_bits.resize(1);
            std::memcpy(parameters.fill_bits.data(), fill.golden.data(), sizeof(std::uint64_t));
            if (nan) {
                parameters.fill_bits.push_back(type.scalar == ScalarType::float64
                                                   ? 0x7ff8000000000000
                                               : type.scalar == ScalarType::float16 ? 0x7e00
                                                                                    : 0x7fc00000);
            }
            for (const bool equal_nan : {true, false}) {
                parameters.equal_nan = equal_nan;
                all.push_back(parameters);
            }
        }
    }
    for (const char* dtype : {"|i1", "<i2", "<i4", "<i8", ">i8", "|u1", ">u2", "<u4", "<u8"}) {
        for (const double atol : {0.0, 0.5, 1.0, 30.0, 1e18, 1e300}) {
            StatedParameters parameters;
            parameters.dtype = dtype;
            parameters.atol = atol;
            all.push_back(parameters);
        }
        StatedParameters filled;
        filled.dtype = dtype;
        const DataType type = DataType::parse(dtype);
        Arrays fill;
        append_as(fill.golden, {type.scalar, type.scalar_bytes, 1, 1, false}, -9.99);
        fill.golden.resize(sizeof(std::uint64_t));
        filled.fill_bits.resize(1);
        std::memcpy(filled.fill_bits.data(), fill.golden.data(), sizeof(std::uint64_t));
        all.push_back(filled);
    }
    for (const char* dtype : {"|b1", "|S5", "<U2"}) {
        all.emplace_back();
        all.back().dtype = dtype;
    }
    return all;
}

void expect_same(const Comparison& tiles, const Comparison& each) {
    EXPECT_EQ(tiles.element_count, each.element_count);
    EXPECT_EQ(tiles.differing_count, each.differing_count);
    EXPECT_EQ(tiles.first_index, each.first_index);
    EXPECT_EQ(tiles.indices, each.indices);
    EXPECT_EQ(tiles.max_abs_difference, each.max_abs_difference);
    EXPECT_EQ(tiles.max_abs_index, each.max_abs_index);
    EXPECT_EQ(tiles.max_rel_difference, each.max_rel_difference);
    EXPECT_EQ(tiles.max_rel_index, each.max_rel_index);
    EXPECT_EQ(tiles.max_bound_share, each.max_bound_share);
    EXPECT_EQ(tiles.finite_count, each.finite_count);
    EXPECT_EQ(tiles.nonzero_count, each.nonzero_count);
    EXPECT_EQ(tiles.nan_mismatch_count, each.nan_mismatch_count);
    EXPECT_EQ(tiles.inf_mismatch_count, each.inf_mismatch_count);
    EXPECT_EQ(tiles.missing_mismatch_count, each.missing_mismatch_count);
    EXPECT_EQ(tiles.histogram, each.histogram);
    const auto near = [](double a, double b) {
        return a == b || std::abs(a - b) <= 1e-12 * std::abs(b);
    };
    EXPECT_TRUE(near(tiles.sum_abs_difference, each.sum_abs_difference));
    EXPECT_TRUE(near(tiles.sum_rel_difference, each.sum_rel_difference));
}

TEST(CompareTiles, FindWhatIsFoundElementByElement) {
    std::mt19937_64 random(1);
    for (const TreeParameters parameters : all_parameters()) {
        const QuantizePlan plan = make_plan(parameters);
        const DataType type = parameters.data_type();
        for (const std::size_t elements : {1u, 31u, 32u, 33u, 1000u, 16384u}) {
            const std::size_t scalars = elements * type.scalars_per_element;
            const Arrays arrays = make_arrays(parameters, scalars, random);
            const CompareInput input{arrays.golden.data(), arrays.value.data(), elements,
                                     first_element};
            SCOPED_TRACE(parameters.dtype() + " atol " + std::to_string(parameters.atol()) +
                         " rtol " + std::to_string(parameters.rtol()) + " ulps " +
                         std::to_string(parameters.ulps()) + " fills " +
                         std::to_string(parameters.fill_bits().size()) + " elements " +
                         std::to_string(elements));
            Comparison each;
            choose_compare(plan)(parameters, plan, type, input, 50, each);
            std::vector<double> sums;
            for (const CpuLevelReport& level : cpu_level_report()) {
                if (!level.usable)
                    continue;
                SCOPED_TRACE(level.name);
                set_cpu_level(level.name);
                Comparison tiles;
                compare_block(parameters, plan, type, input, 50, tiles);
                expect_same(tiles, each);
                sums.push_back(tiles.sum_abs_difference);
                sums.push_back(tiles.sum_rel_difference);
                EXPECT_EQ(sums[sums.size() - 2], sums[0]);
                EXPECT_EQ(sums[sums.size() - 1], sums[1]);
            }
            set_cpu_level("auto");
            if (HasFailure())
                return;
        }
    }
}

#if defined(__x86_64__)
// A program that loads a library built with -ffast-math has them switched off in its threads.
TEST(CompareTiles, SeeSubnormalsWhereTheThreadHasThemSwitchedOff) {
    for (const char* dtype : {"<f4", "<f8", ">f4", ">f8", "<c8", "<f2"}) {
        const TreeParameters parameters({.dtype = dtype});
        const QuantizePlan plan = make_plan(parameters);
        const DataType type = parameters.data_type();
        const std::size_t bytes = 100 * type.element_bytes();
        for (const std::size_t place : {0u, 31u, 64u, 99u}) {
            std::vector<std::uint8_t> golden(bytes);
            std::vector<std::uint8_t> value(bytes);
            // The smallest number, on one side or the other.
            const std::size_t at = place * type.element_bytes();
            const std::size_t lowest = type.big_endian ? type.scalar_bytes - 1 : 0;
            for (std::vector<std::uint8_t>* side : {&golden, &value}) {
                (*side)[at + lowest] = 1;
                Comparison found;
                const unsigned before = _mm_getcsr();
                _mm_setcsr(before | 0x8040);  // flush to zero, subnormals are zeros
                compare_block(parameters, plan, type, {golden.data(), value.data(), 100, 0}, 50,
                              found);
                EXPECT_EQ(_mm_getcsr(), before | 0x8040);
                _mm_setcsr(before);
                EXPECT_EQ(found.differing_count, 1U) << dtype << " at " << place;
                EXPECT_EQ(found.first_index, static_cast<std::int64_t>(place));
                (*side)[at + lowest] = 0;
            }
        }
    }
}
#endif

}  // namespace
}  // namespace ciwrap
