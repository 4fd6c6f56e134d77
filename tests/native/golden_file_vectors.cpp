// Every conformance vector of tests/conformance/golden: sound files decode and encode to the same
// bytes, which another implementation wrote; those of earlier builds are read too; unsound ones are
// refused for the reason given there.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ciwrap/error.hpp"
#include "ciwrap/golden.hpp"

namespace ciwrap {
namespace {

const std::filesystem::path folder =
    std::filesystem::path(__FILE__).parent_path().parent_path() / "conformance" / "golden";

std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

enum class Kind { sound, earlier, unsound };

Kind kind_of(const std::string& name) {
    if (name.starts_with("damaged_") || name.starts_with("hostile_"))
        return Kind::unsound;
    return name.starts_with("earlier_") ? Kind::earlier : Kind::sound;
}

std::vector<std::filesystem::path> vectors(Kind kind) {
    std::vector<std::filesystem::path> found;
    for (const auto& item : std::filesystem::directory_iterator(folder)) {
        if (item.path().extension() == ".golden" &&
            kind_of(item.path().filename().string()) == kind)
            found.push_back(item.path());
    }
    return found;
}

TEST(GoldenVectors, SoundFilesComeBackByteForByte) {
    const auto found = vectors(Kind::sound);
    ASSERT_GE(found.size(), 10u);
    for (const auto& path : found) {
        SCOPED_TRACE(path.filename().string());
        const auto file = read_bytes(path);
        const auto variables = decode_golden(file, path.filename().string());
        EXPECT_EQ(encode_golden(variables), file);
        EXPECT_EQ(golden_root(file, "file"), read_golden_header(path.string()));
        // The order in which variables are given does not matter.
        const std::vector<GoldenVariable> reversed(variables.rbegin(), variables.rend());
        EXPECT_EQ(encode_golden(reversed), file);
    }
}

TEST(GoldenVectors, EarlierFilesHaveTheirRootAndAreWrittenWithTheBoundsThatTypesAllow) {
    const auto found = vectors(Kind::earlier);
    ASSERT_GE(found.size(), 1u);
    for (const auto& path : found) {
        SCOPED_TRACE(path.filename().string());
        const auto file = read_bytes(path);
        const auto variables = decode_golden(file, path.filename().string());
        for (const GoldenVariable& variable : variables) {
            const TreeParameters& parameters = variable.tree->parameters;
            const ScalarType scalar = parameters.data_type().scalar;
            EXPECT_TRUE(is_float(scalar) || parameters.rtol() == 0.0) << variable.name;
            EXPECT_TRUE(is_float(scalar) || is_integer(scalar) || parameters.atol() == 0.0)
                << variable.name;
        }
        EXPECT_EQ(golden_root(file, "file"), read_golden_header(path.string()));
        const auto anew = encode_golden(variables);
        EXPECT_NE(golden_root(anew, "file"), golden_root(file, "file"));
        EXPECT_EQ(encode_golden(decode_golden(anew, "file")), anew);
    }
}

TEST(GoldenVectors, UnsoundFilesAreRefusedInOneLineThatNamesThem) {
    const auto found = vectors(Kind::unsound);
    ASSERT_GE(found.size(), 90u);
    for (const auto& path : found) {
        const std::string name = path.filename().string();
        SCOPED_TRACE(name);
        const auto file = read_bytes(path);
        const std::uint64_t limit =
            name == "hostile_bomb.golden" ? 1u << 20 : default_max_decoded_bytes;
        try {
            decode_golden(file, name, limit);
            ADD_FAILURE() << "was accepted";
        } catch (const Error& error) {
            const std::string text = error.what();
            EXPECT_TRUE(error.code() == ErrorCode::corrupt_file ||
                        error.code() == ErrorCode::unsupported ||
                        error.code() == ErrorCode::too_large);
            EXPECT_EQ(text.rfind(name + ": ", 0), 0u) << text;
            EXPECT_EQ(text.find_first_of("\n\r\t\x1b"), std::string::npos) << text;
        }
    }
}

TEST(GoldenVectors, NoBitOfASmallFileCanChangeUnnoticed) {
    for (const char* name : {"scalar", "empty", "specials", "history"}) {
        SCOPED_TRACE(name);
        auto file = read_bytes(folder / (std::string(name) + ".golden"));
        for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
            const auto mask = static_cast<std::uint8_t>(1u << (bit % 8));
            file[bit / 8] = static_cast<std::uint8_t>(file[bit / 8] ^ mask);
            EXPECT_THROW(decode_golden(file, "flipped"), Error) << "bit " << bit;
            file[bit / 8] = static_cast<std::uint8_t>(file[bit / 8] ^ mask);
        }
    }
}

TEST(GoldenVectors, NoPrefixIsAccepted) {
    for (const char* name : {"specials", "tree"}) {
        const auto file = read_bytes(folder / (std::string(name) + ".golden"));
        for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
            EXPECT_THROW(decode_golden(std::span(file).first(bytes), "prefix"), Error) << bytes;
        }
    }
}

}  // namespace
}  // namespace ciwrap
