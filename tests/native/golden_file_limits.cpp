// What the golden file's writer refuses, what its reader bounds, and how both treat the file
// system.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/quantize_plan.hpp"
#include "base/xxh3.hpp"
#include "ciwrap/error.hpp"
#include "ciwrap/golden.hpp"

namespace ciwrap {
namespace {

// A tree over arbitrary leaves: the format does not care where digests come from.
std::shared_ptr<MerkleTree> make_tree(const TreeParameters& parameters, std::uint64_t scalars) {
    auto tree = std::make_shared<MerkleTree>();
    tree->parameters = parameters;
    tree->scalar_count = scalars;
    const TreeShape shape = tree->shape();
    tree->digests.resize(shape.node_count());
    tree->residues.assign(make_plan(parameters).total_residue_bytes(scalars), 0);
    const std::size_t leaves = shape.level_count() - 1;
    for (std::uint64_t i = 0; i < shape.count(leaves); ++i) {
        tree->digests[shape.offset(leaves) + i] = xxh3_128(std::as_bytes(std::span(&i, 1)));
    }
    for (std::size_t level = leaves; level > 0; --level) {
        for (std::uint64_t i = 0; i < shape.count(level - 1); ++i) {
            const std::uint64_t first = i * shape.arity();
            const std::uint64_t count =
                std::min<std::uint64_t>(shape.arity(), shape.count(level) - first);
            tree->digests[shape.offset(level - 1) + i] = xxh3_128(
                std::as_bytes(std::span(&tree->digests[shape.offset(level) + first], count)));
        }
    }
    return tree;
}

TreeParameters parameters_of(const std::string& dtype, double atol = 0.0,
                             std::uint32_t residue_levels = 1) {
    StatedParameters parameters;
    parameters.dtype = dtype;
    parameters.atol = atol;
    parameters.residue_levels = residue_levels;
    return parameters;
}

GoldenVariable make_variable(const std::string& name, std::uint64_t scalars = 4) {
    return {name, {}, {}, {scalars}, make_tree(parameters_of("<f4"), scalars), nullptr, nullptr};
}

std::string refusal(const GoldenVariable& variable) {
    try {
        encode_golden(std::span(&variable, 1));
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        return error.what();
    }
    return "accepted";
}

TEST(GoldenWriter, RefusesWhatTheReaderWouldRefuse) {
    EXPECT_NE(refusal(make_variable("")).find("is empty"), std::string::npos);
    EXPECT_NE(refusal(make_variable("a\nb")).find("control character"), std::string::npos);
    EXPECT_NE(refusal(make_variable("\xff")).find("not valid UTF-8"), std::string::npos);
    EXPECT_NE(refusal(make_variable(std::string(4097, 'n'))).find("4096"), std::string::npos);

    GoldenVariable variable = make_variable("x");
    variable.shape = {5};
    EXPECT_NE(refusal(variable).find("a shape of 5 scalars, but a tree of 4"), std::string::npos);
    variable.shape = {std::uint64_t{1} << 62, 4};
    EXPECT_NE(refusal(variable).find("2^62"), std::string::npos);
    variable.shape.assign(65, 1);
    EXPECT_NE(refusal(variable).find("64 dimensions"), std::string::npos);

    variable = make_variable("x");
    variable.data = std::make_shared<UninitializedBytes>(15, std::uint8_t{0});
    EXPECT_NE(refusal(variable).find("15 bytes of data"), std::string::npos);
    variable = make_variable("x");
    variable.iteration = std::uint64_t{1} << 63;
    EXPECT_NE(refusal(variable).find("2^63"), std::string::npos);
    variable = make_variable("x");
    variable.tree = nullptr;
    EXPECT_NE(refusal(variable).find("no tree"), std::string::npos);

    auto tree = make_tree(parameters_of("<f8"), 40000);
    tree->digests[3].bytes[0] ^= 1;
    variable.shape = {40000};
    variable.tree = tree;
    EXPECT_NE(refusal(variable).find("not what its children give"), std::string::npos);
    tree = make_tree(parameters_of("<f8", 1.0, 15), 3);
    variable.shape = {3};
    variable.tree = tree;
    EXPECT_EQ(refusal(variable), "accepted");
    tree->residues[1] = 15;
    EXPECT_NE(refusal(variable).find("out of range"), std::string::npos);
    tree->residues.push_back(0);
    EXPECT_NE(refusal(variable).find("another size"), std::string::npos);
}

TEST(GoldenWriter, RefusesNothingAndDuplicates) {
    EXPECT_THROW(encode_golden({}), Error);
    std::vector<GoldenVariable> variables{make_variable("x"), make_variable("y"),
                                          make_variable("x")};
    try {
        encode_golden(variables);
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "variable 'x' is there twice");
    }
    variables[2].rank = 0;
    EXPECT_EQ(decode_golden(encode_golden(variables), "file").size(), 3u);
}

TEST(GoldenWriter, TakesMinusZeroAsZero) {
    GoldenVariable minus = make_variable("x");
    GoldenVariable plus = minus;
    auto tree = std::make_shared<MerkleTree>(*minus.tree);
    StatedParameters stated = tree->parameters.values();
    stated.atol = stated.rtol = -0.0;
    tree->parameters = stated;
    minus.tree = tree;
    EXPECT_EQ(encode_golden(std::span(&minus, 1)), encode_golden(std::span(&plus, 1)));
}

TEST(GoldenWriter, CanBeInterrupted) {
    GoldenVariable variable = make_variable("x", 1u << 20);
    variable.data = std::make_shared<UninitializedBytes>(4u << 20, std::uint8_t{0});
    int calls = 0;
    const Poll poll = [&] {
        if (++calls == 4)
            throw Error(ErrorCode::interrupted, "enough");
    };
    EXPECT_THROW(encode_golden(std::span(&variable, 1), poll), Error);
    EXPECT_EQ(calls, 4);
    const auto file = encode_golden(std::span(&variable, 1));
    calls = 0;
    EXPECT_THROW(decode_golden(file, "file", default_max_decoded_bytes, poll), Error);
    EXPECT_EQ(calls, 4);
}

TEST(GoldenFile, KeepsItsSizeBudget) {
    // 1 GiB of float32 in chunks of 4 KiB: 262144 leaves.
    GoldenVariable variable = make_variable("field", std::uint64_t{1} << 28);
    EXPECT_LE(encode_golden(std::span(&variable, 1)).size(), 4.5 * (1 << 20));

    // Random residues at k = 15 of 16 MiB of float32.
    constexpr std::uint64_t scalars = 1u << 22;
    auto tree = make_tree(parameters_of("<f4", 1e-3, 15), scalars);
    std::uint64_t state = 1;
    for (std::uint8_t& byte : tree->residues) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<std::uint8_t>((state >> 33) % 225);
    }
    variable.shape = {scalars};
    variable.tree = tree;
    const auto file = encode_golden(std::span(&variable, 1));
    EXPECT_LE(static_cast<double>(file.size()), 0.13 * 4 * scalars);
    EXPECT_EQ(decode_golden(file, "file")[0].tree->residues, tree->residues);
}

TEST(GoldenReader, LimitCountsEverythingBeforeDecoding) {
    GoldenVariable variable = make_variable("x", 1u << 20);
    variable.data = std::make_shared<UninitializedBytes>(4u << 20, std::uint8_t{0});
    const auto file = encode_golden(std::span(&variable, 1));
    const std::uint64_t needed = (4u << 20) + 16 * variable.tree->digests.size();
    EXPECT_EQ(decode_golden(file, "file", needed).size(), 1u);
    try {
        decode_golden(file, "file", needed - 1);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::too_large);
    }
}

TEST(GoldenReader, MakesAnySourceOneHarmlessLine) {
    try {
        decode_golden({}, "bad\n\x1b[31mname\xff");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()),
                  "bad\\x0a\\x1b[31mname\\xff: is empty; restore it from version control");
    }
}

class GoldenOnDisk : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "goldenXXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder); }

    ErrorCode header_error(const std::filesystem::path& path) {
        try {
            read_golden_header(path.string());
        } catch (const Error& error) {
            EXPECT_EQ(std::string(error.what()).rfind(path.string() + ": ", 0), 0u);
            return error.code();
        }
        ADD_FAILURE() << "no error";
        return ErrorCode::not_available;
    }

    std::filesystem::path folder;
};

TEST_F(GoldenOnDisk, WritesAndReadsTheHeader) {
    const GoldenVariable variable = make_variable("x", 100000);
    const auto file = encode_golden(std::span(&variable, 1));
    const auto path = folder / "x.golden";
    write_file(path.string(), file);
    EXPECT_EQ(std::filesystem::file_size(path), file.size());
    EXPECT_EQ(read_golden_header(path.string()), golden_root(file, "file"));
    std::filesystem::resize_file(path, file.size() - 1);
    EXPECT_EQ(header_error(path), ErrorCode::corrupt_file);
}

TEST_F(GoldenOnDisk, ReportsWhatTheSystemRefuses) {
    EXPECT_EQ(header_error(folder / "missing"), ErrorCode::io);
    EXPECT_EQ(header_error(folder), ErrorCode::io);
    ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
    EXPECT_EQ(header_error(folder / "pipe"), ErrorCode::io);
    EXPECT_THROW(write_file((folder / "no" / "folder").string(), {}), Error);
    const std::vector<std::uint8_t> bytes(100);
    if (std::filesystem::exists("/dev/full")) {
        EXPECT_THROW(write_file("/dev/full", bytes), Error);
    }
}

TEST_F(GoldenOnDisk, SparseFileDoesNotCostMemory) {
    const GoldenVariable variable = make_variable("x");
    auto file = encode_golden(std::span(&variable, 1));
    // A header that promises a directory of 2^40 bytes in a file that has them, as a hole.
    const std::uint64_t lie = std::uint64_t{1} << 40;
    const std::uint64_t file_bytes = lie + 80;
    std::memcpy(file.data() + 16, &file_bytes, 8);
    std::memcpy(file.data() + 24, &lie, 8);
    const Digest seal = xxh3_128(std::as_bytes(std::span(file).first(64)));
    std::memcpy(file.data() + 64, &seal, 16);
    const auto path = folder / "sparse.golden";
    write_file(path.string(), file);
    if (::truncate(path.c_str(), static_cast<off_t>(file_bytes)) != 0)
        GTEST_SKIP();
    EXPECT_EQ(header_error(path), ErrorCode::corrupt_file);
}

}  // namespace
}  // namespace ciwrap
