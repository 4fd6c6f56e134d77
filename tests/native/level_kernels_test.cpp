// Every CPU level this machine can run against a plain loop over the scalar arithmetic: codes,
// residues, drift and leaves must agree to the bit, for every kind of code, type, number of residue
// levels and length, whatever vectors the level uses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/executor.hpp"
#include "kernels/level_kernels.hpp"
#include "kernels/xxh3_core.hpp"
#include "plain_encoding.hpp"

namespace ciwrap {
namespace {

// --- cases -------------------------------------------------------------------------------------

std::vector<const LevelKernels*> usable_levels() {
    std::vector<const LevelKernels*> levels;
    for (const CpuLevelReport& level : cpu_level_report()) {
        if (!level.usable)
            continue;
        set_cpu_level(level.name);
        levels.push_back(&level_kernels());
    }
    set_cpu_level("auto");
    return levels;
}

struct Random {
    std::uint64_t state;
    std::uint64_t operator()() {
        state += 0x9E3779B97F4A7C15;
        std::uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }
    double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }
};

std::uint64_t narrowed(ScalarType type, double x) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    switch (type) {
        case ScalarType::float64:
            return std::bit_cast<std::uint64_t>(x);
        case ScalarType::float32:
            return bits;
        case ScalarType::bfloat16:
            return bits >> 16;
        default: {  // float16, truncated; too small or large becomes zero or infinity
            const std::uint32_t exponent = (bits >> 23) & 0xff;
            const std::uint32_t sign = (bits >> 16) & 0x8000;
            if (exponent < 113)
                return sign;
            if (exponent > 142)
                return sign | 0x7c00;
            return sign | ((exponent - 112) << 10) | ((bits >> 13) & 0x3ff);
        }
    }
}

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

// A run near the golden one: most scalars moved by less than the bound, a few by anything.
Bytes moved(const TreeParameters& parameters, Bytes data, Random& random) {
    const QuantizePlan plan = make_plan(parameters);
    for (std::size_t i = 0; i < data.size(); i += plan.scalar_bytes) {
        if (random() % 16 == 0 || plan.scalar == ScalarType::boolean)
            continue;
        std::uint64_t bits = bits_at(plan, data.data() + i, 0);
        if (is_float(plan.scalar) && parameters.ulps() == 0) {
            const double x = value_of(plan.scalar, bits);
            const double by = parameters.atol() + parameters.rtol() * std::abs(x);
            bits = narrowed(plan.scalar, x + by * (2.0 * random.uniform() - 1.0));
        } else {
            bits += random() % 9 - 4;
        }
        put_bits(plan, bits, data.data() + i);
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

std::string described(const TreeParameters& p) {
    return p.dtype() + " atol " + std::to_string(p.atol()) + " rtol " + std::to_string(p.rtol()) +
           " ulps " + std::to_string(p.ulps()) + " k " + std::to_string(p.residue_levels());
}

// --- tests -------------------------------------------------------------------------------------

// Where two runs of bytes first differ; their length if nowhere.
std::size_t first_difference(const Bytes& a, const Bytes& b) {
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

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

struct Hashed {
    std::vector<Digest> leaves;
    Bytes residues;
    Bytes leaf_levels;
    std::vector<std::uint64_t> histogram;
};

bool is_unmatchable(const Digest& digest) {
    return std::memcmp(&digest, &unmatchable_digest, sizeof digest) == 0;
}

// Golden and new run over one loop of chunks; `golden` null: the golden run.
Hashed hash_plainly(const QuantizePlan& plan, const Bytes& data, std::uint64_t count,
                    const Bytes* golden_data, const Hashed* golden) {
    Hashed result;
    result.histogram.resize(static_cast<std::size_t>(plan.half) + 1);
    for (std::uint64_t done = 0; done < count || done == 0; done += plan.chunk_scalars) {
        const std::size_t n = std::min(plan.chunk_scalars, count - done);
        const std::uint8_t* from = data.data() + done * plan.scalar_bytes;
        Block reference;
        if (golden_data != nullptr) {
            reference =
                encode_plainly(plan, golden_data->data() + done * plan.scalar_bytes, n, nullptr);
        }
        const bool against = golden_data != nullptr && plan.has_residues();
        const Block block =
            encode_plainly(plan, from, n, against ? reference.residues.data() : nullptr);
        Digest leaf = scalar::hash_bytes(block.codes.data(), block.codes.size());
        if (block.has_nan && !plan.equal_nan)
            leaf = unmatchable_digest;
        result.leaves.push_back(leaf);
        if (plan.has_residues()) {
            const Bytes packed = pack_plainly(plan, block.residues);
            result.residues.insert(result.residues.end(), packed.begin(), packed.end());
        }
        if (golden == nullptr)
            continue;
        const Digest& before = golden->leaves[result.leaves.size() - 1];
        const bool match = std::memcmp(&leaf, &before, sizeof leaf) == 0 && !is_unmatchable(leaf);
        std::uint8_t largest = 0;
        for (const std::uint8_t delta : block.deltas) {
            if (!match || !against || delta == 255)
                continue;
            largest = std::max(largest, delta);
            ++result.histogram[delta];
        }
        result.leaf_levels.push_back(match ? largest : no_match_level);
    }
    return result;
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
