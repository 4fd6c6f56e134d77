// The comparison of texts, against plain loops that share no code with it.
#include "text/text_compare.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "ciwrap/error.hpp"
#include "text/align_lines.hpp"
#include "text/ignored_text.hpp"
#include "text/line_pattern.hpp"

namespace ciwrap {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span<const char>(text));
}

TextComparison compare(const std::string& golden, const std::string& value,
                       const TextOptions& options = {}) {
    HeldText ours(bytes_of(golden), "golden");
    HeldText theirs(bytes_of(value), "new");
    return compare_texts(ours, theirs, options);
}

// Hands a text out a few bytes at a time.
class SlowText : public TextSource {
  public:
    SlowText(const std::string& text, std::size_t step) : text_(text), step_(step) {}
    std::span<const std::byte> next() override {
        const std::size_t count = std::min(step_, text_.size() - at_);
        const auto piece = bytes_of(text_).subspan(at_, count);
        at_ += count;
        return piece;
    }
    const std::string& name() const override { return name_; }
    std::unique_ptr<TextSource> again() const override {
        return std::make_unique<SlowText>(text_, step_);
    }

  private:
    const std::string& text_;
    std::size_t step_;
    std::size_t at_ = 0;
    std::string name_ = "slow";
};

std::string random_text(std::mt19937& random, std::size_t size) {
    static const std::string alphabet = "00123456789012345.+-eEdDqnNaAiIfFtyY_xXz :,()/\n\n  ";
    std::string text;
    for (std::size_t i = 0; i < size; ++i)
        text += alphabet[random() % alphabet.size()];
    return text;
}

// Numbers as the reader of tokens finds them, line by line.
std::uint64_t numbers_by_tokens(const std::string& text) {
    std::uint64_t count = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        TokenReader tokens(std::string_view(text).substr(at, end - at));
        for (Token one = tokens.next(); one.kind != Token::Kind::end; one = tokens.next())
            count += one.kind == Token::Kind::number ? 1 : 0;
        at = end + 1;
    }
    return count;
}

std::vector<std::string> numbers_in(const std::string& line) {
    std::vector<std::string> found;
    TokenReader tokens(line);
    for (Token one = tokens.next(); one.kind != Token::Kind::end; one = tokens.next())
        if (one.kind == Token::Kind::number)
            found.emplace_back(one.text);
    return found;
}

using Texts = std::vector<std::string>;

TEST(TextTokens, FindsNumbers) {
    EXPECT_EQ(numbers_in("total......12.5 ..5 0..5"), (Texts{"12.5", "5", "0.", "5"}));
    EXPECT_EQ(numbers_in("H2O fp64 E=-1.0, x_3"), (Texts{"-1.0"}));
    EXPECT_EQ(numbers_in("1.0D-05 1e5 5. 5.txt .5 1.5-100"),
              (Texts{"1.0D-05", "1e5", "5.", "5", ".5", "1.5-100"}));
    EXPECT_EQ(numbers_in("NaN -inf Infinity nano info"), (Texts{"NaN", "-inf", "Infinity"}));
    EXPECT_EQ(numbers_in("2026-11-22 1.2.3 3-5 10ms"),
              (Texts{"2026", "11", "22", "1.2", "3", "3", "5", "10"}));
    EXPECT_EQ(numbers_in("0x1F -0X1p3 0 x 0.5 00x1"), (Texts{"0", "0.5", "00"}));
    EXPECT_EQ(numbers_in("1.5-1000 1.5-100.5"), (Texts{"1.5", "1000", "1.5", "100.5"}));
}

TEST(TextTokens, CountsWhatTheReaderFinds) {
    std::mt19937 random(7);
    for (int turn = 0; turn < 20000; ++turn) {
        const std::string text = random_text(random, 1 + random() % 40);
        ASSERT_EQ(count_numbers(text), numbers_by_tokens(text)) << text;
    }
}

TEST(TextCompare, CountsTheSameInEveryWay) {
    std::mt19937 random(11);
    TextOptions careful;
    careful.bound.equal_nan = false;  // no line is taken as equal unseen
    for (int turn = 0; turn < 500; ++turn) {
        const std::string text = random_text(random, random() % 2000);
        const TextComparison quick = compare(text, text);
        const TextComparison slow = compare(text, text, careful);
        ASSERT_EQ(quick.number_count, slow.number_count) << text;
        ASSERT_EQ(quick.golden.line_count, slow.golden.line_count) << text;
        ASSERT_EQ(quick.differing_count, 0u);
        ASSERT_EQ(quick.golden.unpaired_lines + slow.value.unpaired_lines, 0u) << text;
    }
}

// However the bytes arrive, the result is one.
TEST(TextCompare, IsTheSameInAnyPieces) {
    std::mt19937 random(13);
    for (int turn = 0; turn < 200; ++turn) {
        const std::string golden = random_text(random, random() % 3000);
        std::string value = golden;
        for (std::size_t k = 0; k < random() % 5 && !value.empty(); ++k)
            value[random() % value.size()] = "0159\n .x"[random() % 8];
        const TextComparison whole = compare(golden, value);
        SlowText ours(golden, 1 + random() % 97);
        SlowText theirs(value, 1 + random() % 97);
        const TextComparison parts = compare_texts(ours, theirs, {});
        ASSERT_EQ(whole.number_count, parts.number_count);
        ASSERT_EQ(whole.differing_count, parts.differing_count);
        ASSERT_EQ(whole.golden.unpaired_lines, parts.golden.unpaired_lines);
        ASSERT_EQ(whole.value.unpaired_lines, parts.value.unpaired_lines);
    }
}

// Every line is paired or told of, whatever the texts.
TEST(TextCompare, AccountsForEveryLine) {
    std::mt19937 random(17);
    for (int turn = 0; turn < 200; ++turn) {
        const std::string golden = random_text(random, random() % 1500);
        const std::string value = random_text(random, random() % 1500);
        const TextComparison found = compare(golden, value);
        ASSERT_EQ(found.pair_count + found.golden.unpaired_lines, found.golden.line_count);
        ASSERT_EQ(found.pair_count + found.value.unpaired_lines, found.value.line_count);
    }
}

TEST(TextCompare, RefusesWhatIsNoText) {
    EXPECT_THROW(compare(std::string("a\0b", 3), "a"), Error);
    const std::string long_line(most_line_bytes + 1, 'x');
    EXPECT_THROW(compare(long_line, "a"), Error);
    EXPECT_THROW(compare(long_line, long_line), Error);
    TextOptions all;
    all.left_out.lines = {"*"};
    EXPECT_THROW(compare("a", "a", all), Error);
}

TEST(TextCompare, FindsPlacesBehindInsertedLines) {
    std::string golden;
    std::string value;
    for (int i = 0; i < 3000; ++i) {
        const std::string line =
            "step " + std::to_string(i) + " energy " + std::to_string(i * 0.37) + "\n";
        golden += line;
        if (i == 1500)
            for (int k = 0; k < 5000; ++k)
                value += "warning: late " + std::to_string(k) + "\n";
        value += i == 2000 ? "step 2000 energy 741.5\n" : line;
    }
    const TextComparison found = compare(golden, value);
    EXPECT_EQ(found.value.unpaired_lines, 5000u);
    EXPECT_EQ(found.golden.unpaired_lines, 0u);
    ASSERT_EQ(found.differing_count, 1u);
    EXPECT_EQ(found.number_groups[0].golden.line, 2001u);
    EXPECT_EQ(found.number_groups[0].value.line, 7001u);
    EXPECT_EQ(found.number_groups[0].value.column, 18u);
}

TEST(TextCompare, PairsTextsOfTheSameTemplatesByPosition) {
    std::string golden;
    std::string value;
    for (int i = 0; i < 5000; ++i) {
        golden += "head\n" + std::to_string(i % 13) + "\nvalue " + std::to_string(i % 97) + "\n";
        value +=
            "head\n" + std::to_string((i + 1) % 13) + "\nvalue " + std::to_string(i % 89) + "\n";
    }
    TextOptions options;
    const TextComparison found = compare(golden, value, options);
    EXPECT_EQ(found.golden.unpaired_lines + found.value.unpaired_lines, 0u);
    EXPECT_GT(found.differing_count, 9000u);
    // Lines that are left out count for nothing.
    options.left_out.lines = {"note *"};
    const TextComparison noted = compare("note 1\n" + golden + "note 2\n", value, options);
    EXPECT_EQ(noted.differing_count, found.differing_count);
    EXPECT_EQ(noted.golden.unpaired_lines + noted.value.unpaired_lines, 0u);
}

// One line more, and every number changed.
TEST(TextCompare, PairsRecordsAroundAnInsertedLine) {
    std::mt19937 random(31);
    std::string golden;
    std::string value;
    for (int i = 0; i < 2000; ++i) {
        for (std::string* side : {&golden, &value})
            *side += "record\n" + std::to_string(random() % 1000) + "\n" +
                     std::to_string(random() % 1000) + " " + std::to_string(random() % 1000) + "\n";
        if (i == 1000)
            value += "warning: late\n";
    }
    const TextComparison found = compare(golden, value);
    EXPECT_EQ(found.golden.unpaired_lines, 0u);
    EXPECT_EQ(found.value.unpaired_lines, 1u);
}

TEST(AlignLines, PairsAscendAndAgree) {
    std::mt19937 random(19);
    for (int turn = 0; turn < 2000; ++turn) {
        std::vector<LineKey> golden(random() % 60);
        std::vector<LineKey> value(random() % 60);
        for (std::vector<LineKey>* side : {&golden, &value})
            for (LineKey& one : *side)
                one = {random() % 8, 0};
        for (std::vector<LineKey>* side : {&golden, &value})
            for (LineKey& one : *side)
                one.shape = one.near % 4;
        std::size_t next_golden = 0;
        std::size_t next_value = 0;
        for (const LinePair& one : align_lines(golden, value)) {
            ASSERT_GE(one.golden, next_golden);
            ASSERT_GE(one.value, next_value);
            ASSERT_EQ(golden[one.golden].shape, value[one.value].shape);
            next_golden = one.golden + 1;
            next_value = one.value + 1;
        }
        ASSERT_LE(next_golden, golden.size());
        ASSERT_LE(next_value, value.size());
    }
}

// Far more lines than the search for the shortest edit looks through: it takes what it has.
TEST(AlignLines, EndsWhereNothingFits) {
    std::mt19937 random(23);
    std::vector<LineKey> golden(30000);
    std::vector<LineKey> value(20000);
    for (std::vector<LineKey>* side : {&golden, &value})
        for (LineKey& one : *side)
            one = {random(), random() % 50};
    const std::vector<LinePair> pairs = align_lines(golden, value);
    EXPECT_GT(pairs.size(), 1000u);
}

std::string covered(const std::string& line, unsigned sets) {
    std::vector<LinePiece> pieces;
    find_ignored(line, sets, pieces);
    std::string found;
    for (const LinePiece& one : pieces)
        found.append("[").append(line, one.begin, one.end - one.begin).append("]");
    return found;
}

TEST(IgnoredText, CoversWhatItSays) {
    EXPECT_EQ(covered("on 2026-11-22 at 12:30:01", ignore_dates), "[2026-11-22]");
    EXPECT_EQ(covered("on 2026-11-22 12:30:01.5+01:00", ignore_times), "[12:30:01.5+01:00]");
    EXPECT_EQ(covered("2026-11-22T12:30:01,125Z x", ignore_times), "[12:30:01,125Z]");
    EXPECT_EQ(covered("Sun Nov 22 2026", ignore_dates), "[Sun Nov 22 2026]");
    EXPECT_EQ(covered("22.11.2026 or 22-Nov-2026", ignore_dates), "[22.11.2026][22-Nov-2026]");
    EXPECT_EQ(covered("starts on 22Nov2026 at", ignore_dates), "[22Nov2026]");
    EXPECT_EQ(covered("Sun Nov 22 10:01:17 UTC 2026", ignore_dates),
              "[Sun Nov 22 10:01:17 UTC 2026]");
    EXPECT_EQ(covered("terminated on:  23: 5:20  30Nov2026", ignore_times), "[23: 5:20]");
    EXPECT_EQ(covered("terminated on:   9:13: 1   3Nov2026", ignore_times), "[9:13: 1]");
    EXPECT_EQ(covered("starts on 30Nov2026 at  0: 5: 0", ignore_times), "[0: 5: 0]");
    EXPECT_EQ(covered("Elapsed: 3.5 s, dt = 0.5 s", ignore_times), "[3.5 s]");
    EXPECT_EQ(covered("MD| CPU time per MD step [s] 2.5", ignore_times), "[2.5]");
    EXPECT_EQ(covered("ExecutionTime = 0.05 s  ClockTime = 1 s", ignore_times), "[0.05 s][1 s]");
    EXPECT_EQ(covered("scf : 0.05s CPU 1m02.10s WALL ( 7 calls)", ignore_times),
              "[0.05s][1m02.10s]");
    EXPECT_EQ(covered("Total wall time: 0:00:03", ignore_times), "[0:00:03]");
    EXPECT_EQ(covered("- ( at 16h28 )", ignore_times), "[16h28]");
    EXPECT_EQ(covered("TOTAL JOB TIME: 0.02 SECONDS", ignore_times), "[0.02 SECONDS]");
    EXPECT_EQ(covered("COMPUTATION TIME = 0.006 SECONDS", ignore_times), "[0.006 SECONDS]");
    EXPECT_EQ(covered("in /home/a/b.in, ./c and 3/4", ignore_paths), "[/home/a/b.in][./c]");
    EXPECT_EQ(covered("from 10.0.0.17:80", ignore_hosts), "[10.0.0.17]");
    EXPECT_EQ(covered("hostname: node17 x", ignore_hosts), "[node17]");
    EXPECT_EQ(covered("Host   : \"n7.site.org\"", ignore_hosts), "[n7.site.org]");
    EXPECT_EQ(covered("PID 417, process id = 9", ignore_pids), "[417][9]");
    EXPECT_EQ(covered("memory used: 12.5 MB of 3 rows", ignore_memory), "[12.5 MB]");
    EXPECT_EQ(covered("maximum resident set size (kbytes): 5120", ignore_memory), "[5120]");
}

// Beside a date, a clock with blanks for zeros has three parts, of two characters each.
TEST(IgnoredText, CoversNoOtherNumbersBesideDates) {
    for (const char* line : {
             "12: 5  30Nov2026",
             "30Nov2026  1: 2: 3: 4",
             "4: 1: 2: 3  30Nov2026",
             "24: 5: 3  30Nov2026",
             "23: 5:60:1  30Nov2026",
             "23:60: 1  30Nov2026",
             "23: 5: 72  30Nov2026",
             "23:  5: 7  30Nov2026",
             "23 : 5: 7  30Nov2026",
             "23: 5: 7.5 1.5 30Nov2026",
             " 1:2:3  30Nov2026",
             "-9:13: 1  30Nov2026",
             "1.9:13: 1  30Nov2026",
             "23: 5: 7 0.5 30Nov2026",
         })
        EXPECT_EQ(covered(line, ignore_times), "") << line;
}

// Numbers of physics that stand near words and units of time, and numbers that ran together.
TEST(IgnoredText, CoversNothingThatMayBeAResult) {
    for (const char* line : {
             "wall shear stress = 5.0",
             "wall temperature = 310.2 K",
             "WALL potential 0.5 V",
             "wall time constant = 3.2 s",
             "wall 3.2 s",
             "k = 2.5e+03 s^-1",
             "CPU 3 s^-1",
             "E = -76.026 H",
             "2 H s 5 S p 3 ns 4 ms 1 h",
             "took 3.5 s",
             "time = 0.5 s",
             "total time 3.0 s",
             "step: 10 t: 0.68 dt: 6.2e-2 cpu: 0.01",
             "dec -12:30:45.2",
             "RA 12:30:45.25",
             "ratio 12:30",
             "ratio  1: 2: 3",
             "ratio 12: 2: 3 of 7",
             "RA 16h28",
             "at 16h28m12s",
             "at 26h28",
             "job time step 3",
             "4.08572E-05-1.30075E-02-2.73575E-03",
             "0.125000-12.500000-100.250000",
             "1.2.3.256",
             "v1.2.3.4.5",
             "node 17 x.y.z",
             "host MOF5",
             "host: nan",
             "pid 0.5",
             "PID gain 3",
             "p = 1013 mb",
             "12 MB",
             "x = 3 /0.5 /s",
             "dec 22 30 15",
             "may 5",
             "2026-13-22",
             "12026-11-22",
             "1.2026-11-22",
             "energy -1.5 at step 3",
         })
        EXPECT_EQ(covered(line, ignore_all), "") << line;
}

TEST(IgnoredText, PiecesAscendWhateverTheLine) {
    std::mt19937 random(29);
    static const std::string alphabet = "0123456789.:-/ ~ajnuovhstpid,[]()=MBk\xc3\xb1";
    std::vector<LinePiece> pieces;
    for (int turn = 0; turn < 20000; ++turn) {
        std::string line;
        for (std::size_t i = 0; i < random() % 60; ++i)
            line += alphabet[random() % alphabet.size()];
        find_ignored(line, ignore_all, pieces);
        std::size_t before = 0;
        for (const LinePiece& one : pieces) {
            ASSERT_LE(before, one.begin) << line;
            ASSERT_LT(one.begin, one.end) << line;
            ASSERT_LE(one.end, line.size()) << line;
            before = one.end;
        }
    }
}

TEST(IgnoredText, PatternsFitLines) {
    EXPECT_TRUE(LinePattern("* SUBROUTINE *").fits("  1 SUBROUTINE  calls"));
    EXPECT_TRUE(LinePattern("took * s").fits("  took   3.5 s "));
    EXPECT_FALSE(LinePattern("took * s").fits("took 3.5 ms"));
    EXPECT_FALSE(LinePattern("ab*ba").fits("aba"));
    EXPECT_TRUE(LinePattern("a*b*c").fits("a b b c"));
    EXPECT_FALSE(LinePattern("energy [a.u.]").fits("energy a"));
}

TEST(TextNumber, KeepsTheContract) {
    const auto within = [](const char* g, const char* v, double atol, double rtol) {
        return compare_numbers(g, v, {atol, rtol, true}).is_within;
    };
    EXPECT_TRUE(within("1.0D0", "1", 0, 0));
    EXPECT_TRUE(within("-0", "0", 0, 0));
    EXPECT_TRUE(within("NaN", "-nan", 0, 0));
    EXPECT_FALSE(within("inf", "-inf", 1e300, 0));
    EXPECT_FALSE(within("1e400", "1e401", 0, 1));
    EXPECT_TRUE(within("1e400", "1e400", 0, 0));
    EXPECT_FALSE(within("1e-400", "0", 0, 1));
    EXPECT_FALSE(within("1e-400", "2e-400", 0, 0));
    EXPECT_FALSE(within("5e-324", "1e-400", 5e-324, 0));
    EXPECT_TRUE(within("1e-400", "1e-400", 0, 0));
    EXPECT_TRUE(within("-1e-400", "1e-400", 1e-300, 0));
    EXPECT_TRUE(within("0e-400", "0", 0, 0));
    EXPECT_TRUE(within("1", "1e-400", 0, 2));
    EXPECT_FALSE(within("9007199254740993", "9007199254740992", 0, 0));
    EXPECT_TRUE(within("9007199254740993", "9007199254740992", 1, 0));
    EXPECT_FALSE(within("0.123456", "0.123457", 1e-6, 0));  // exact in doubles: beyond
    EXPECT_TRUE(within("1.5-100", "1.5e-100", 0, 0));
    EXPECT_FALSE(within("10.5-100", "11.5-100", 1e-8, 0));  // may be two numbers
    EXPECT_FALSE(compare_numbers("nan", "nan", {0, 0, false}).is_within);
}

}  // namespace
}  // namespace ciwrap
