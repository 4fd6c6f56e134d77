// The tiles of every CPU level against the comparison element by element, for numbers of every
// kind: the same counts, indices, maxima and histogram, and on all levels the same sums.
#include <gtest/gtest.h>

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

// Stretches of a few tiles, each with a way of its own to be equal or not.
template <class Real>
Arrays make_arrays(const TreeParameters& parameters, std::size_t count, std::mt19937_64& random) {
    std::uniform_real_distribution<double> unit(-1.0, 1.0);
    const double extremes[] = {0.0,
                               -0.0,
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN(),
                               static_cast<double>(std::numeric_limits<Real>::max()),
                               -static_cast<double>(std::numeric_limits<Real>::max()),
                               static_cast<double>(std::numeric_limits<Real>::denorm_min()),
                               1.0,
                               1e-30};
    std::vector<Real> golden(count);
    std::vector<Real> value(count);
    unsigned way = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 96 == 0)
            way = static_cast<unsigned>(random() % 6);
        const double g = way == 5 ? extremes[random() % std::size(extremes)] : unit(random);
        const double bound = parameters.atol + parameters.rtol * std::abs(g);
        double v = g;
        if (way == 1)
            v = g + bound * unit(random);  // within
        if (way == 2)
            v = g + 4.0 * bound * unit(random);  // within or beyond
        if (way == 3)
            v = g + bound;  // on the bound, as far as roundings go
        if (way == 4)
            v = random() % 2 == 0 ? g : g * 1.5;
        if (way == 5)
            v = extremes[random() % std::size(extremes)];
        golden[i] = static_cast<Real>(g);
        value[i] = static_cast<Real>(v);
    }
    Arrays arrays;
    arrays.golden.resize(count * sizeof(Real));
    arrays.value.resize(count * sizeof(Real));
    std::memcpy(arrays.golden.data(), golden.data(), arrays.golden.size());
    std::memcpy(arrays.value.data(), value.data(), arrays.value.size());
    return arrays;
}

std::vector<TreeParameters> all_parameters() {
    std::vector<TreeParameters> all;
    const double bounds[][2] = {{0.0, 0.0},  {1e-3, 0.0},   {0.0, 1e-3},   {1e-6, 1e-3},
                                {1e30, 0.0}, {1e-290, 0.0}, {0.0, 1e-280}, {1e-3, 1e3}};
    for (const char* dtype : {"<f4", "<f8", "<c8", "<c16"}) {
        for (const auto& bound : bounds) {
            for (const bool equal_nan : {true, false}) {
                TreeParameters parameters;
                parameters.dtype = dtype;
                parameters.atol = bound[0];
                parameters.rtol = bound[1];
                parameters.equal_nan = equal_nan;
                all.push_back(parameters);
            }
        }
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
    EXPECT_EQ(tiles.histogram, each.histogram);
    const auto near = [](double a, double b) {
        return a == b || std::abs(a - b) <= 1e-12 * std::abs(b);
    };
    EXPECT_TRUE(near(tiles.sum_abs_difference, each.sum_abs_difference));
    EXPECT_TRUE(near(tiles.sum_rel_difference, each.sum_rel_difference));
}

TEST(CompareTiles, FindWhatIsFoundElementByElement) {
    std::mt19937_64 random(1);
    for (const TreeParameters& parameters : all_parameters()) {
        const QuantizePlan plan = make_plan(parameters);
        const DataType type = parameters.data_type();
        for (const std::size_t elements : {1u, 31u, 32u, 33u, 1000u, 20000u}) {
            const std::size_t scalars = elements * type.scalars_per_element;
            const Arrays arrays = plan.scalar == ScalarType::float32
                                      ? make_arrays<float>(parameters, scalars, random)
                                      : make_arrays<double>(parameters, scalars, random);
            const CompareInput input{arrays.golden.data(), arrays.value.data(), elements,
                                     first_element};
            SCOPED_TRACE(parameters.dtype + " atol " + std::to_string(parameters.atol) + " rtol " +
                         std::to_string(parameters.rtol) + " elements " + std::to_string(elements));
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

}  // namespace
}  // namespace ciwrap
