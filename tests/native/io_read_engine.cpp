#include <sys/stat.h>

#include <algorithm>
#include <random>
#include <thread>

#include "io_fixtures.hpp"

namespace ciwrap::testing {
namespace {

using InputFileTest = IoFiles;

TEST_F(InputFileTest, OpensARegularFile) {
    const InputFile file(make_file("a.bin", 1234));
    EXPECT_EQ(file.size(), 1234U);
    EXPECT_EQ(file.path(), (directory_ / "a.bin").string());
    EXPECT_NO_THROW(file.require_range(1234, 0));
    EXPECT_NO_THROW(file.require_range(0, 1234));
}

TEST_F(InputFileTest, RefusesWhatIsNoFile) {
    const auto [missing, text] = error_of([&] { InputFile((directory_ / "none").string()); });
    EXPECT_EQ(missing, ErrorCode::io);
    EXPECT_NE(text.find("none: cannot be opened: No such file"), std::string::npos) << text;

    EXPECT_EQ(error_of([&] { InputFile(directory_.string()); }).first, ErrorCode::invalid_argument);

    const std::string pipe = (directory_ / "pipe").string();
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(error_of([&] { InputFile{pipe}; }).first, ErrorCode::invalid_argument);
    EXPECT_EQ(error_of([&] { InputFile("/dev/zero"); }).first, ErrorCode::invalid_argument);
}

TEST_F(InputFileTest, RangeChecksDoNotOverflow) {
    const InputFile file(make_file("a.bin", 100));
    constexpr std::uint64_t huge = ~std::uint64_t{0};
    for (const auto& [offset, length] : {std::pair<std::uint64_t, std::uint64_t>{0, 101},
                                         {101, 0},
                                         {100, 1},
                                         {1, huge},
                                         {huge, 1},
                                         {huge, huge}}) {
        const auto [code, text] = error_of([&] { file.require_range(offset, length); });
        EXPECT_EQ(code, ErrorCode::corrupt_file);
        EXPECT_NE(text.find("a.bin: has 100 bytes"), std::string::npos) << text;
    }
}

TEST_F(InputFileTest, MovesItsDescriptor) {
    InputFile first(make_file("a.bin", 10));
    InputFile second(make_file("b.bin", 20));
    const int descriptor = second.descriptor();
    first = std::move(second);
    EXPECT_EQ(first.descriptor(), descriptor);
    EXPECT_EQ(first.size(), 20U);
}

TEST(EngineKindTest, NamesAreChecked) {
    EXPECT_EQ(parse_engine_kind("auto"), EngineKind::automatic);
    EXPECT_EQ(parse_engine_kind("io_uring"), EngineKind::io_uring);
    EXPECT_EQ(parse_engine_kind("pread"), EngineKind::pread);
    EXPECT_EQ(error_of([] { parse_engine_kind("mmap"); }).first, ErrorCode::invalid_argument);
}

TEST(EngineChoiceTest, AutomaticTakesTheFirstUsableAndSaysWhyNotAnother) {
    const std::vector<EngineReport> reports = io_engine_report();
    ASSERT_EQ(reports.size(), 2U);
    EXPECT_EQ(reports[0].name, "io_uring");
    EXPECT_EQ(reports[1].name, "pread");
    EXPECT_TRUE(reports[1].usable);
    const ReadEngine engine;
    if (reports[0].usable) {
        EXPECT_EQ(engine.name(), "io_uring");
        EXPECT_EQ(engine.fallback_reason(), "");
    } else {
        EXPECT_EQ(engine.name(), "pread");
        EXPECT_EQ(engine.fallback_reason(), reports[0].reason);
        EXPECT_NE(reports[0].reason, "");
        EXPECT_EQ(error_of([] { ReadEngine({.kind = EngineKind::io_uring}); }).first,
                  ErrorCode::not_available);
    }
}

TEST(EngineChoiceTest, QueueDepthIsChecked) {
    for (const unsigned depth : {0U, 4097U}) {
        EXPECT_EQ(error_of([&] { ReadEngine({.queue_depth = depth}); }).first,
                  ErrorCode::invalid_argument);
    }
}

class ReadEngineTest : public IoFiles, public ::testing::WithParamInterface<EngineKind> {};

TEST_P(ReadEngineTest, IsTheOneAskedFor) {
    EXPECT_EQ(ReadEngine({.kind = GetParam()}).name(), engine_name(GetParam()));
}

TEST_P(ReadEngineTest, ReadsWholePiecesAndNothing) {
    const InputFile file(make_file("a.bin", 5'000'003));
    ReadEngine engine({.kind = GetParam(), .queue_depth = 4, .threads = 3});
    std::vector<std::byte> bytes(file.size());
    const ReadRequest whole{&file, 0, bytes.size(), bytes.data()};
    engine.read({&whole, 1});
    EXPECT_EQ(first_wrong_byte(bytes, 0), -1);

    engine.read({});
    const ReadRequest nothing[] = {{&file, 0, 0, bytes.data()}, {&file, file.size(), 0, nullptr}};
    engine.read(nothing);
    ReadBatch none;
    none.wait();
}

TEST_P(ReadEngineTest, ManyScatteredReadsOfSeveralFiles) {
    std::mt19937_64 random(7);
    std::vector<InputFile> files;
    for (const std::uint64_t bytes : {1ULL, 4096ULL, 1'000'001ULL, 7'340'032ULL}) {
        files.emplace_back(make_file(std::to_string(bytes), bytes));
    }
    for (const unsigned depth : {1U, 3U, 128U}) {
        ReadEngine engine({.kind = GetParam(), .queue_depth = depth, .threads = depth % 7});
        struct Wanted {
            std::size_t file;
            std::uint64_t offset;
            std::size_t length;
            std::size_t position;
        };
        std::vector<Wanted> wanted;
        std::size_t total = 0;
        for (int i = 0; i < 3000; ++i) {
            const std::size_t which = random() % files.size();
            const std::uint64_t size = files[which].size();
            const std::uint64_t offset = random() % (size + 1);
            const std::uint64_t most = i % 50 == 0 ? size : 5000;
            const auto length =
                static_cast<std::size_t>(std::min(size - offset, random() % (most + 1)));
            wanted.push_back({which, offset, length, total});
            total += length + random() % 3;  // some side by side, some with bytes between
        }
        std::vector<std::byte> memory(total + 1, std::byte{0xEE});
        std::vector<std::byte> expected = memory;
        std::vector<ReadRequest> requests;
        for (const Wanted& want : wanted) {
            requests.push_back(
                {&files[want.file], want.offset, want.length, memory.data() + want.position});
            const auto known = known_bytes(want.offset + want.length);
            std::copy_n(known.begin() + static_cast<std::ptrdiff_t>(want.offset), want.length,
                        expected.begin() + static_cast<std::ptrdiff_t>(want.position));
        }
        // Several batches under way at once, waited for in another order.
        std::vector<ReadBatch> batches;
        for (std::size_t at = 0; at < requests.size(); at += 700) {
            batches.push_back(engine.submit(
                std::span(requests).subspan(at, std::min<std::size_t>(700, requests.size() - at))));
        }
        for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch) {
            batch->wait();
        }
        for (const Wanted& want : wanted) {
            ASSERT_EQ(first_wrong_byte(std::span(memory).subspan(want.position, want.length),
                                       want.offset),
                      -1)
                << "offset " << want.offset << ", length " << want.length;
        }
        ASSERT_TRUE(memory == expected) << "written outside";
    }
}

TEST_P(ReadEngineTest, NeighboursAreReadTogetherAndRight) {
    const InputFile file(make_file("a.bin", 3'000'000));
    ReadEngine engine({.kind = GetParam()});
    std::vector<std::byte> bytes(file.size());
    std::vector<ReadRequest> requests;
    for (std::size_t at = 0; at < bytes.size(); at += 4096) {
        requests.push_back(
            {&file, at, std::min<std::size_t>(4096, bytes.size() - at), bytes.data() + at});
    }
    engine.read(requests);
    EXPECT_EQ(first_wrong_byte(bytes, 0), -1);
}

TEST_P(ReadEngineTest, ARangeBeyondTheFileIsRefusedBeforeReading) {
    const InputFile file(make_file("short.bin", 1000));
    ReadEngine engine({.kind = GetParam()});
    std::vector<std::byte> bytes(2000, std::byte{0xEE});
    const ReadRequest requests[] = {{&file, 0, 10, bytes.data()},
                                    {&file, 500, 501, bytes.data() + 10}};
    const auto [code, text] = error_of([&] { engine.read(requests); });
    EXPECT_EQ(code, ErrorCode::corrupt_file);
    EXPECT_NE(text.find("short.bin"), std::string::npos) << text;
    EXPECT_TRUE(
        std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0xEE}; }));
}

TEST_P(ReadEngineTest, AFileTruncatedAfterOpeningIsAnErrorAndTheEngineGoesOn) {
    const std::string path = make_file("cut.bin", 3'000'000);
    const InputFile file(path);
    const InputFile other(make_file("other.bin", 100'000));
    std::filesystem::resize_file(path, 1'500'000);
    ReadEngine engine({.kind = GetParam(), .queue_depth = 2, .threads = 2});
    std::vector<std::byte> bytes(file.size());
    std::vector<std::byte> good(other.size());
    const ReadRequest cut{&file, 0, bytes.size(), bytes.data()};
    const ReadRequest whole{&other, 0, good.size(), good.data()};
    ReadBatch failing = engine.submit({&cut, 1});
    ReadBatch passing = engine.submit({&whole, 1});
    const auto [code, text] = error_of([&] { failing.wait(); });
    EXPECT_EQ(code, ErrorCode::corrupt_file);
    EXPECT_NE(text.find("cut.bin: ends at or before byte"), std::string::npos) << text;
    EXPECT_NE(text.find("truncated"), std::string::npos) << text;
    passing.wait();
    EXPECT_EQ(first_wrong_byte(good, 0), -1);
    failing.wait();  // has been waited for: nothing left to tell
}

TEST_P(ReadEngineTest, BatchesAndEnginesCanBeDropped) {
    const InputFile file(make_file("a.bin", 8'000'000));
    std::vector<std::byte> bytes(file.size());
    const ReadRequest whole{&file, 0, bytes.size(), bytes.data()};
    {
        ReadEngine engine({.kind = GetParam(), .queue_depth = 1, .threads = 1});
        { const ReadBatch dropped = engine.submit({&whole, 1}); }
        EXPECT_EQ(first_wrong_byte(bytes, 0), -1);  // dropping a batch waits for it
    }
    ReadBatch survivor;
    {
        ReadEngine engine({.kind = GetParam(), .queue_depth = 1, .threads = 1});
        survivor = engine.submit({&whole, 1});
    }
    try {
        survivor.wait();
        EXPECT_EQ(first_wrong_byte(bytes, 0), -1);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::interrupted);
    }
}

TEST_P(ReadEngineTest, SeveralThreadsMayShareAnEngine) {
    const InputFile file(make_file("a.bin", 2'000'000));
    ReadEngine engine({.kind = GetParam(), .queue_depth = 8, .threads = 2});
    std::vector<std::int64_t> wrong(4, -2);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
        threads.emplace_back([&, t] {
            ReadBuffers buffers = engine.make_buffers(1, 30'000);
            wrong[t] = -1;
            for (std::uint64_t i = 0; i < 200; ++i) {
                const std::uint64_t offset = (i * 7919 + t * 104'729) % (file.size() - 30'000);
                const ReadRequest request{&file, offset, 30'000, buffers[0].data()};
                engine.read({&request, 1});
                wrong[t] = std::max(wrong[t], first_wrong_byte(buffers[0], offset));
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, std::vector<std::int64_t>(4, -1));
}

TEST_P(ReadEngineTest, BuffersAreAlignedApartAndReusable) {
    const InputFile file(make_file("a.bin", 100'000));
    ReadEngine engine({.kind = GetParam()});
    for (int round = 0; round < 3; ++round) {
        ReadBuffers first = engine.make_buffers(3, 5000);
        const ReadBuffers second = engine.make_buffers(2, 70'000);
        EXPECT_EQ(engine.make_buffers(0, 10).count(), 0U);
        std::vector<ReadRequest> requests;
        for (std::size_t i = 0; i < first.count(); ++i) {
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first[i].data()) % 4096, 0U);
            requests.push_back({&file, 11 + i, first[i].size(), first[i].data()});
        }
        for (std::size_t i = 0; i < second.count(); ++i) {
            requests.push_back({&file, 1000 + i, second[i].size(), second[i].data()});
        }
        engine.read(requests);
        const ReadBuffers moved = std::move(first);
        for (std::size_t i = 0; i < moved.count(); ++i) {
            EXPECT_EQ(first_wrong_byte(moved[i], 11 + i), -1);
        }
        for (std::size_t i = 0; i < second.count(); ++i) {
            EXPECT_EQ(first_wrong_byte(second[i], 1000 + i), -1);
        }
    }
    EXPECT_EQ(error_of([&] { (void)engine.make_buffers(~std::size_t{0} / 4096, 1 << 20); }).first,
              ErrorCode::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Engines, ReadEngineTest, ::testing::ValuesIn(usable_engines()),
                         [](const auto& test) { return engine_name(test.param); });

}  // namespace
}  // namespace ciwrap::testing
