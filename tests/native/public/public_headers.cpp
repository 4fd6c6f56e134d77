// What a program can do that has the installed headers alone: trees, comparisons, goldens.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ciwrap/compare.hpp"
#include "ciwrap/device_array.hpp"
#include "ciwrap/digest.hpp"
#include "ciwrap/error.hpp"
#include "ciwrap/execution.hpp"
#include "ciwrap/golden.hpp"
#include "ciwrap/host_device.hpp"
#include "ciwrap/leaf_set.hpp"
#include "ciwrap/merkle_tree.hpp"
#include "ciwrap/parameters.hpp"
#include "ciwrap/scalar_type.hpp"
#include "ciwrap/share_bins.hpp"
#include "ciwrap/tree.hpp"
#include "ciwrap/tree_shape.hpp"
#include "ciwrap/uninitialized_bytes.hpp"

#if __has_include("base/quantize_plan.hpp") || __has_include("kernels/executor.hpp")
#error "private headers can be seen, so this test shows nothing"
#endif

namespace {

using Bytes = std::span<const std::byte>;

std::shared_ptr<const ciwrap::MerkleTree> tree_of(
    const ciwrap::TreeParameters& parameters, const std::vector<double>& values,
    const std::shared_ptr<const ciwrap::MerkleTree>& golden = nullptr) {
    ciwrap::TreeBuilder builder(parameters, values.size(), golden,
                                ciwrap::resolve_execution("auto", 0));
    builder.update(std::as_bytes(std::span(values)));
    return builder.finish();
}

TEST(PublicHeaders, AreEnoughToBuildCompareAndKeepAGolden) {
    const ciwrap::TreeParameters parameters(
        {.dtype = "<f8", .atol = 1e-3, .residue_levels = 15, .chunk_bytes = 800});
    std::vector<double> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<double>(i);
    const auto golden = tree_of(parameters, values);

    ciwrap::GoldenVariable variable;
    variable.name = "x";
    variable.shape = {values.size()};
    variable.tree = golden;
    const std::vector<std::uint8_t> file = ciwrap::encode_golden(std::span(&variable, 1));
    const auto read = ciwrap::decode_golden(file, "file");
    ASSERT_EQ(read.size(), 1U);
    EXPECT_EQ(read[0].tree->root(), golden->root());

    std::vector<double> moved = values;
    moved[250] += 1.0;
    moved[999] -= 0.5;
    const auto tree = tree_of(parameters, moved, read[0].tree);
    const std::vector<std::uint64_t> suspects =
        ciwrap::diff_trees(*read[0].tree, *tree, -1, ciwrap::resolve_execution("serial", 1));
    EXPECT_EQ(suspects, (std::vector<std::uint64_t>{2, 9}));

    ciwrap::ElementComparer comparer(parameters, 10, ciwrap::resolve_execution("serial", 1));
    comparer.update(std::as_bytes(std::span(values)), std::as_bytes(std::span(moved)), 0);
    EXPECT_EQ(comparer.result().indices, (std::vector<std::int64_t>{250, 999}));
    EXPECT_EQ(comparer.result().differing_leaves.list(), suspects);
    ciwrap::check_deciders(parameters, comparer.result(), std::vector<std::int64_t>{2, 9}, {});
}

TEST(PublicHeaders, ErrorsCarryCodes) {
    try {
        const ciwrap::TreeParameters parameters({.dtype = "object"});
        FAIL();
    } catch (const ciwrap::Error& error) {
        EXPECT_EQ(error.code(), ciwrap::ErrorCode::invalid_argument);
    }
}

}  // namespace
