// Every CPU level this machine can run against a plain loop over the scalar arithmetic: codes,
// residues, drift and leaves must agree to the bit, for every kind of code, type, number of residue
// levels and length, whatever vectors the level uses.
#include <gtest/gtest.h>

#include <limits>

#include "plain_hashing.hpp"

namespace ciwrap {
namespace {

// --- cases -------------------------------------------------------------------------------------

// Numbers around the bound, on boundaries between steps, of every magnitude, any bits at all, and
// now and then or (`specials`) often NaN, infinities, zeros, subnormals and huge numbers.
Bytes make_data(const TreeParameters& parameters, std::size_t count, bool specials,
                Random& random) {
    const QuantizePlan plan = make_plan(parameters);
    const double unit = parameters.atol() > 0.0 ? parameters.atol() : 1.0;
    const double extreme[] = {0.0,
                              -0.0,
                              1e300,
                              -1e300,
                              1e-310,
                              -1e-310,
                              3e38,
                              1e-40,
                              65504.0,
                              plan.exact_above,
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN()};
    Bytes data(count * plan.scalar_bytes);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t bits = random();
        const std::uint64_t choice = random() % 64;
        const double sign = random() % 2 == 0 ? 1.0 : -1.0;
        if (is_float(plan.scalar)) {
            const double u = random.uniform();
            if (choice < 24) {
                bits = narrowed(plan.scalar, sign * u * unit * 1e4);
            } else if (choice < 40) {
                bits = narrowed(plan.scalar, sign * std::exp2(u * 80.0 - 40.0) * unit);
            } else if (choice < 48) {
                const auto steps = static_cast<double>(random() % 100000);
                bits = narrowed(plan.scalar, sign * (steps + 0.5) / std::max(plan.scale, 1e-300));
            } else if (choice < (specials ? 56 : 63)) {
                bits = narrowed(plan.scalar, sign * (1.0 + u));
            } else {
                bits = choice % 2 == 0 ? random() : narrowed(plan.scalar, extreme[random() % 13]);
            }
        } else if (choice < 16) {
            bits = (random() % 200) - 100;
        }
        if (plan.scalar == ScalarType::boolean)
            bits %= 2;
        put_bits(plan, bits, data.data() + i * plan.scalar_bytes);
    }
    return data;
}

std::vector<StatedParameters> all_parameters() {
    std::vector<StatedParameters> all;
    const auto add = [&](const char* dtype, double atol, double rtol, std::uint64_t ulps) {
        for (const std::uint32_t levels : {1u, 3u, 5u, 7u, 15u, 17u, 255u}) {
            StatedParameters parameters;
            parameters.dtype = dtype;
            parameters.atol = atol;
            parameters.rtol = rtol;
            parameters.ulps = ulps;
            parameters.residue_levels = levels;
            parameters.chunk_bytes = 4096;
            all.push_back(parameters);
        }
    };
    for (const char* dtype : {"<f2", "<bf2", "<f4", "<f8", ">f4", ">f8"}) {
        add(dtype, 0.0, 0.0, 0);
        for (const double atol : {1e-3, 0.25, 1e-30, 3e20})
            add(dtype, atol, 0.0, 0);
        for (const double rtol : {1e-5, 1e-9, 0.3, 1e-12}) {
            add(dtype, 1e-6, rtol, 0);
            add(dtype, 0.0, rtol, 0);
        }
        for (const std::uint64_t ulps : {1u, 4u, 1000u})
            add(dtype, 0.0, 0.0, ulps);
        add(dtype, 0.0, 0.0, std::uint64_t{1} << 40);
    }
    for (const char* dtype : {"|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", ">i4"}) {
        for (const double atol : {0.0, 1.0, 7.0, 1e6, 1e19})
            add(dtype, atol, 0.0, 0);
    }
    add("|b1", 0.0, 0.0, 0);
    return all;
}

// --- tests -------------------------------------------------------------------------------------

TEST(LevelKernels, CodesAreThoseOfThePlainLoop) {
    Random random{1};
    for (const TreeParameters parameters : all_parameters()) {
        SCOPED_TRACE(described(parameters));
        const QuantizePlan plan = make_plan(parameters);
        for (const bool specials : {false, true}) {
            const std::size_t count = 2000 + random() % 100;
            const Bytes golden = make_data(parameters, count, specials, random);
            const Bytes current = moved(parameters, golden, random);
            const Block first = encode_plainly(plan, golden.data(), count, nullptr);
            const Block second = encode_plainly(plan, current.data(), count, first.residues.data());
            for (const LevelKernels* level : usable_levels()) {
                SCOPED_TRACE(level->name);
                Bytes codes(first.codes.size());
                Bytes residues(count);
                level->encode(plan, golden.data(), count, codes.data(), residues.data(), false);
                ASSERT_EQ(first_difference(codes, first.codes), codes.size());
                if (!plan.has_residues())
                    continue;
                ASSERT_EQ(first_difference(residues, first.residues), count);
                level->encode(plan, current.data(), count, codes.data(), residues.data(), true);
                ASSERT_EQ(first_difference(codes, second.codes), codes.size());
            }
        }
    }
}

void expect_hashes(const TreeParameters& parameters, std::uint64_t count, bool specials,
                   Random& random) {
    SCOPED_TRACE(described(parameters) + " count " + std::to_string(count));
    const QuantizePlan plan = make_plan(parameters);
    const Bytes golden = make_data(parameters, count, specials, random);
    // Half of the runs are the golden one again, so that leaves with residues match.
    const Bytes current = random() % 2 == 0 ? golden : moved(parameters, golden, random);
    const Hashed first = hash_plainly(plan, golden, count, nullptr, nullptr);
    const Hashed second = hash_plainly(plan, current, count, &golden, &first);
    const std::uint64_t leaves = first.leaves.size();
    for (const LevelKernels* level : usable_levels()) {
        SCOPED_TRACE(level->name);
        Bytes unaligned(golden.size() + 1);
        std::copy(golden.begin(), golden.end(), unaligned.begin() + 1);
        std::vector<Digest> digests(leaves);
        Bytes residues(first.residues.size());
        ChunkBatch batch;
        batch.plan = &plan;
        batch.data = unaligned.data() + 1;
        batch.scalar_count = count;
        batch.leaves = digests.data();
        batch.residues = plan.has_residues() ? residues.data() : nullptr;
        level->hash_chunks(batch, 0, leaves, nullptr);
        ASSERT_TRUE(std::memcmp(digests.data(), first.leaves.data(), leaves * sizeof(Digest)) == 0);
        ASSERT_EQ(residues, first.residues);

        std::copy(current.begin(), current.end(), unaligned.begin() + 1);
        Bytes levels(leaves);
        std::vector<std::uint64_t> histogram(second.histogram.size());
        batch.residues = nullptr;
        batch.golden_residues = plan.has_residues() ? residues.data() : nullptr;
        batch.golden_leaves = first.leaves.data();
        batch.leaf_levels = levels.data();
        level->hash_chunks(batch, 0, leaves, histogram.data());
        ASSERT_TRUE(std::memcmp(digests.data(), second.leaves.data(), leaves * sizeof(Digest)) ==
                    0);
        ASSERT_EQ(levels, second.leaf_levels);
        ASSERT_EQ(histogram, second.histogram);
    }
}

TEST(LevelKernels, LeavesResiduesAndDriftAreThoseOfThePlainLoop) {
    Random random{2};
    for (StatedParameters parameters : all_parameters()) {
        parameters.chunk_bytes = 64 + random() % 9000;
        expect_hashes(parameters, random() % 5000, false, random);
        parameters.equal_nan = random() % 2 == 0;
        expect_hashes(parameters, random() % 5000, true, random);
    }
}

TEST(LevelKernels, EveryLengthOfTheLastChunk) {
    Random random{3};
    for (const char* dtype : {"<f4", "<f8", "<i2"}) {
        for (const std::uint32_t levels : {1u, 3u, 5u, 15u, 255u}) {
            StatedParameters parameters;
            parameters.dtype = dtype;
            parameters.atol = dtype[1] == 'i' ? 300.0 : 1e-3;
            parameters.residue_levels = levels;
            parameters.chunk_bytes = 16384;
            for (std::uint64_t count = 1; count <= 1300; ++count) {
                expect_hashes(parameters, count, false, random);
                if (HasFatalFailure())
                    return;
            }
        }
    }
}

TEST(LevelKernels, FillValuesAreMissing) {
    Random random{4};
    for (const std::uint32_t levels : {1u, 3u, 15u, 255u}) {
        for (const double rtol : {0.0, 1e-5}) {
            StatedParameters parameters;
            parameters.dtype = "<f4";
            parameters.atol = 1e-3;
            parameters.rtol = rtol;
            parameters.residue_levels = levels;
            parameters.fill_bits = {0x7fc00000, 0, 0x477fe000};  // NaN, 0, 65504
            parameters.equal_nan = false;
            expect_hashes(parameters, 4000, true, random);
        }
    }
}

}  // namespace
}  // namespace ciwrap
