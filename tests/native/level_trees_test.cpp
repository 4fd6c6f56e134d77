// What CPU levels do for the recording library, of every level this machine can run: two trees of
// one reading, parts that are hashed as one, columns that are copied row by row.
#include <gtest/gtest.h>

#include <limits>

#include "plain_hashing.hpp"

namespace ciwrap {
namespace {

TEST(LevelTrees, PartsAreHashedAsIfTheyWereOne) {
    Random random{6};
    for (int round = 0; round < 3000; ++round) {
        // Around the lengths at which the algorithm changes, and around whole blocks.
        const std::size_t lengths[] = {random() % 300, random() % 5000, 1024 * (random() % 5),
                                       1024 * (random() % 5) + random() % 3};
        Bytes data(lengths[random() % 4]);
        for (std::uint8_t& byte : data)
            byte = static_cast<std::uint8_t>(random());
        std::vector<ByteRange> parts;
        for (std::size_t at = 0; at < data.size();) {
            const std::size_t most = random() % 2 == 0 ? 80 : 3000;
            const std::size_t length = std::min<std::size_t>(random() % most, data.size() - at);
            parts.push_back({data.data() + at, length});
            at += length;
        }
        const Digest expected = scalar::hash_bytes(data.data(), data.size());
        for (const LevelKernels* level : usable_levels()) {
            const Digest found = level->hash_parts(parts.data(), parts.size());
            ASSERT_EQ(std::memcmp(&found, &expected, sizeof found), 0)
                << level->name << ", " << data.size() << " bytes in " << parts.size();
        }
    }
}

TEST(LevelTrees, ColumnsAreCopiedRowByRow) {
    Random random{7};
    for (const std::size_t bytes : {4u, 8u}) {
        for (int round = 0; round < 300; ++round) {
            const std::size_t rows = random() % 40;
            const std::size_t columns = random() % 40;
            const std::size_t stride = (rows + random() % 3) * bytes;
            Bytes from(stride * columns + 1);
            for (std::uint8_t& byte : from)
                byte = static_cast<std::uint8_t>(random());
            Bytes expected;
            for (std::size_t i = 0; i < rows; ++i)
                for (std::size_t j = 0; j < columns; ++j)
                    for (std::size_t b = 0; b < bytes; ++b)
                        expected.push_back(from[1 + j * stride + i * bytes + b]);
            expected.push_back(77);  // what is behind stays
            for (const LevelKernels* level : usable_levels()) {
                Bytes to(rows * columns * bytes + 1, 77);
                level->copy_columns({from.data() + 1, static_cast<std::int64_t>(stride), to.data(),
                                     rows, columns, bytes});
                ASSERT_EQ(to, expected) << level->name << ", " << rows << " x " << columns;
            }
        }
    }
}

// --- several trees of one reading --------------------------------------------------------------

// Numbers that quick tiles can round, many of them on boundaries between steps; now and then a
// chunk has one that they cannot.
Bytes ordinary_data(const QuantizePlan& plan, std::size_t count, Random& random) {
    const double unit = 1.0 / plan.scale;
    Bytes data(count * plan.scalar_bytes);
    for (std::size_t i = 0; i < count; ++i) {
        const double sign = random() % 2 == 0 ? 1.0 : -1.0;
        const auto steps = static_cast<double>(random() % 1000000);
        const double odd[] = {0.0, 0.5, 0.5 - 0x1p-54, random.uniform()};
        double x = sign * (steps + odd[random() % 4]) * unit;
        if (random() % 4 == 0)
            x = sign * odd[random() % 4] * unit;
        if (random() % (8 * plan.chunk_scalars) == 0)
            x = random() % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : 1e300;
        put_bits(plan, narrowed(plan.scalar, x), data.data() + i * plan.scalar_bytes);
    }
    return data;
}

// Hands out chunks from memory that is used anew for each.
struct CopiedChunks {
    const Bytes& data;
    std::size_t scalar_bytes;
    std::size_t at = 0;
    Bytes copy{};

    static const std::uint8_t* next(void* state, std::uint64_t scalars) {
        auto& self = *static_cast<CopiedChunks*>(state);
        const auto from = self.data.begin() + static_cast<std::ptrdiff_t>(self.at);
        self.at += scalars * self.scalar_bytes;
        self.copy.assign(from, self.data.begin() + static_cast<std::ptrdiff_t>(self.at));
        return self.copy.data();
    }
};

struct Tree {
    QuantizePlan plan;
    Hashed expected;
    std::vector<Digest> leaves{};
    Bytes residues{};
    Bytes leaf_levels{};

    ChunkBatch batch(const Bytes& data, std::uint64_t count, const Hashed* golden) {
        leaves.assign(expected.leaves.size(), Digest{});
        residues.assign(expected.residues.size(), 99);
        leaf_levels.assign(expected.leaves.size(), 99);
        ChunkBatch made;
        made.plan = &plan;
        made.data = data.data();
        made.scalar_count = count;
        made.leaves = leaves.data();
        if (golden != nullptr) {
            made.golden_residues = golden->residues.data();
            made.golden_leaves = golden->leaves.data();
            made.leaf_levels = leaf_levels.data();
        } else if (plan.has_residues()) {
            made.residues = residues.data();
        }
        return made;
    }
};

void expect_tree(const Tree& tree, bool is_relative) {
    for (std::size_t i = 0; i < tree.leaves.size(); ++i)
        ASSERT_EQ(std::memcmp(&tree.leaves[i], &tree.expected.leaves[i], sizeof(Digest)), 0) << i;
    if (is_relative)
        ASSERT_EQ(tree.leaf_levels, tree.expected.leaf_levels);
    else
        ASSERT_EQ(first_difference(tree.residues, tree.expected.residues), tree.residues.size());
}

// A plain tree and one with residues, its own or a golden's, of `count` numbers.
void expect_trees(StatedParameters stated, std::uint64_t count, Random& random) {
    const std::uint32_t levels = stated.residue_levels;
    stated.residue_levels = 1;
    Tree plain{make_plan(TreeParameters(stated)), {}};
    stated.residue_levels = levels;
    const TreeParameters parameters(stated);
    Tree fine{make_plan(parameters), {}};
    SCOPED_TRACE(described(parameters) + " count " + std::to_string(count));
    const Bytes golden = ordinary_data(fine.plan, count, random);
    const Bytes current = random() % 2 == 0 ? golden : moved(parameters, golden, random);
    const Hashed first = hash_plainly(fine.plan, golden, count, nullptr, nullptr);
    plain.expected = hash_plainly(plain.plan, current, count, nullptr, nullptr);
    for (const bool is_relative : {false, true}) {
        fine.expected = is_relative ? hash_plainly(fine.plan, current, count, &golden, &first)
                                    : hash_plainly(fine.plan, current, count, nullptr, nullptr);
        const std::uint64_t leaves = first.leaves.size();
        for (const LevelKernels* level : usable_levels()) {
            SCOPED_TRACE(level->name);
            CopiedChunks chunks{current, fine.plan.scalar_bytes};
            const ChunkSource source{CopiedChunks::next, &chunks};
            for (const ChunkSource* from : {static_cast<const ChunkSource*>(nullptr), &source}) {
                const ChunkBatch batches[2] = {
                    plain.batch(current, count, nullptr),
                    fine.batch(current, count, is_relative ? &first : nullptr)};
                level->hash_trees(batches, 2, 0, leaves, from);
                expect_tree(plain, false);
                expect_tree(fine, is_relative);
            }
            const ChunkBatch alone = plain.batch(current, count, nullptr);
            level->hash_trees(&alone, 1, 0, leaves, nullptr);
            expect_tree(plain, false);
        }
    }
}

TEST(LevelTrees, TreesOfOneReadingAreThoseOfThePlainLoop) {
    Random random{5};
    for (const char* dtype : {"<f4", "<f8", ">f8", "<f2"}) {
        for (const std::uint32_t levels : {3u, 7u, 15u, 255u}) {
            for (const std::uint64_t chunk_bytes : {256u, 512u, 1280u, 4096u, 5632u, 16384u}) {
                StatedParameters parameters;
                parameters.dtype = dtype;
                parameters.atol = 1e-3;
                parameters.residue_levels = levels;
                parameters.chunk_bytes = chunk_bytes;
                expect_trees(parameters, 20000 + random() % 500, random);
                if (HasFatalFailure())
                    return;
            }
        }
    }
}

}  // namespace
}  // namespace ciwrap
