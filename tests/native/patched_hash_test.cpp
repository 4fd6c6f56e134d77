// Codes replaced within a hash that is kept, against the hash of the input with them in place.
#include "core/patched_hash.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "base/xxh3.hpp"

namespace ciwrap {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes random_bytes(std::mt19937_64& random, std::size_t count) {
    Bytes bytes(count);
    for (auto& byte : bytes)
        byte = static_cast<std::uint8_t>(random());
    return bytes;
}

Digest hash_of(const Bytes& bytes) {
    return xxh3_128(std::as_bytes(std::span(bytes)));
}

Bytes replaced(Bytes bytes, std::size_t width, std::size_t index, std::int64_t code) {
    std::memcpy(bytes.data() + index * width, &code, width);
    return bytes;
}

class PatchedHashTest : public ::testing::TestWithParam<std::size_t> {};

// Every length up to a few stripes behind two blocks, so that all ends of the input are met.
TEST_P(PatchedHashTest, OneCodeAnywhere) {
    const std::size_t width = GetParam();
    std::mt19937_64 random(width);
    for (std::size_t bytes = width; bytes <= 2500; bytes += width * (1 + random() % 7)) {
        const Bytes input = random_bytes(random, bytes);
        PatchedHash patched(input, width);
        ASSERT_EQ(patched.with({}), hash_of(input));
        for (int trial = 0; trial < 6; ++trial) {
            const std::size_t index = random() % patched.count();
            const auto code = static_cast<std::int64_t>(random());
            const Digest wanted = hash_of(replaced(input, width, index, code));
            const PatchedHash::Patch patch[] = {{index, code}};
            ASSERT_EQ(patched.with(patch), wanted) << bytes << " bytes, code " << index;
            if (!patched.has_place(index))
                continue;
            const std::int64_t codes[] = {code, patched.code(index)};
            std::uint64_t terms[2];
            patched.terms(index, codes, terms);
            std::uint64_t rest = 0;
            for (int pair = 0; pair < PatchedHash::lane_pairs; ++pair)
                rest += pair == patched.pair_of(index) ? 0 : patched.term(pair);
            ASSERT_EQ(rest + terms[0], patched.sum_of_terms(wanted)) << bytes << ", " << index;
            ASSERT_EQ(terms[1], patched.term(patched.pair_of(index)));
        }
    }
}

TEST_P(PatchedHashTest, TwoCodesAtOnceAndNothingIsLeftBehind) {
    const std::size_t width = GetParam();
    std::mt19937_64 random(width + 100);
    const Bytes input = random_bytes(random, 4096);
    PatchedHash patched(input, width);
    for (int trial = 0; trial < 200; ++trial) {
        const std::size_t a = random() % patched.count();
        const std::size_t b = random() % patched.count();
        const auto code = static_cast<std::int64_t>(random());
        const Bytes wanted = replaced(replaced(input, width, a, code), width, b, code + 1);
        const PatchedHash::Patch patches[] = {{a, code}, {b, code + 1}};
        ASSERT_EQ(patched.with(patches), hash_of(wanted));
    }
    EXPECT_EQ(patched.with({}), hash_of(input));
}

INSTANTIATE_TEST_SUITE_P(Widths, PatchedHashTest, ::testing::Values(1, 2, 4, 8));

}  // namespace
}  // namespace ciwrap
