// Decimal numbers are read the same with and without std::from_chars for doubles.
#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "base/read_decimal.hpp"

namespace ciwrap {
namespace {

struct Read {
    std::errc error;
    std::ptrdiff_t length;
    std::uint64_t bits;
    friend bool operator==(const Read&, const Read&) = default;
};

Read read(const std::string& text) {
    double value = 42.0;
    const auto [end, error] = read_decimal(text, value);
    return {error, end - text.data(), std::bit_cast<std::uint64_t>(value)};
}

Read number(double value, std::ptrdiff_t length) {
    return {std::errc(), length, std::bit_cast<std::uint64_t>(value)};
}

TEST(ReadDecimal, ReadsNumbersWhateverComesBehindThem) {
    EXPECT_EQ(read("1.5"), number(1.5, 3));
    EXPECT_EQ(read("-.5e1x"), number(-5.0, 5));
    EXPECT_EQ(read("1e"), number(1.0, 1));
    EXPECT_EQ(read("0x1p3"), number(0.0, 1));
    EXPECT_EQ(read("-0"), number(-0.0, 2));
    EXPECT_EQ(read("4.9e-324"), number(0x1p-1074, 8));
    EXPECT_EQ(read("2.2250738585072011e-308"), number(0x0.fffffffffffffp-1022, 23));
    EXPECT_EQ(read("-inf"), number(-std::numeric_limits<double>::infinity(), 4));
    EXPECT_EQ(read("NaN").error, std::errc());
}

TEST(ReadDecimal, LeavesTheValueAloneWhereThereIsNone) {
    const std::uint64_t before = std::bit_cast<std::uint64_t>(42.0);
    for (const char* const text : {"", " 1", "+1", "-", "--1", "-+1", "e5", ".", "x", "\t1", "- 1"})
        EXPECT_EQ(read(text), (Read{std::errc::invalid_argument, 0, before})) << text;
    for (const char* const text : {"1e400", "-1e400", "1e-400", "2e-324"})
        EXPECT_EQ(read(text).error, std::errc::result_out_of_range) << text;
    EXPECT_EQ(read("1e400").bits, before);
    EXPECT_EQ(read("1e-400").bits, before);
}

TEST(ReadDecimal, KnowsNoLocale) {
    const char* const comma = std::setlocale(LC_ALL, "de_DE.UTF-8");
    EXPECT_EQ(read("1.5"), number(1.5, 3)) << (comma == nullptr ? "C" : comma);
    EXPECT_EQ(read("1,5"), number(1.0, 1));
    std::setlocale(LC_ALL, "C");
}

#if !defined(__APPLE__)  // whose library has this function only lately
TEST(ReadDecimal, ReadsWhatFromCharsReads) {
    std::mt19937_64 random(17);
    const std::string letters = "0123456789..--+eExXnaif ";
    for (int i = 0; i < 200'000; ++i) {
        std::string text;
        if (i % 2 == 0) {
            char printed[64];
            std::snprintf(printed, sizeof(printed), "%.*g", static_cast<int>(random() % 20),
                          std::bit_cast<double>(random()));
            text = printed;
        } else {
            for (std::size_t n = random() % 12; n > 0; --n)
                text += letters[random() % letters.size()];
        }
        double value = 42.0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        EXPECT_EQ(read(text), (Read{error, end - text.data(), std::bit_cast<std::uint64_t>(value)}))
            << text;
    }
}
#endif

}  // namespace
}  // namespace ciwrap
