// Reads that fail half way, come short or are interrupted, and files that change meanwhile: with
// every engine, the bytes are right or there is an error that says what happened.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "io/slab_reader.hpp"
#include "io_fixtures.hpp"
#include "read_faults.hpp"

namespace ciwrap::testing {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

class IoFaults : public IoFiles, public ::testing::WithParamInterface<EngineKind> {
  protected:
    // One read after the other.
    ReadEngine engine_{{.kind = GetParam(), .queue_depth = 1, .threads = 1}};

    // A file that nobody has changed for long, so that a change shows.
    std::string old_file(const std::string& name, std::uint64_t bytes) const {
        const std::string path = make_file(name, bytes);
        std::filesystem::last_write_time(
            path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24));
        return path;
    }
};
INSTANTIATE_TEST_SUITE_P(Engines, IoFaults, ::testing::ValuesIn(usable_engines()),
                         [](const auto& kind) { return engine_name(kind.param); });

TEST_P(IoFaults, AReadThatFailsHalfWayIsAnErrorThatTellsWhere) {
    const InputFile file(make_file("a.bin", 8 * mebibyte));
    std::vector<std::byte> memory(8 * mebibyte);
    const ReadRequest request{&file, 0, memory.size(), memory.data()};
    {
        const FaultyReads faulty([](const ReadRequest& read, long result) {
            if (read.offset == 3 * mebibyte)
                return only(read, result, 4096);
            return read.offset == 3 * mebibyte + 4096 ? fail(read, EIO) : result;
        });
        const auto [code, text] = error_of([&] { engine_.read(std::span(&request, 1)); });
        EXPECT_EQ(code, ErrorCode::io);
        EXPECT_NE(text.find("a.bin: cannot be read at byte 3149824: Input/output error"),
                  std::string::npos)
            << text;
    }
    engine_.read(std::span(&request, 1));  // the engine goes on
    EXPECT_EQ(first_wrong_byte(memory, 0), -1);
}

TEST_P(IoFaults, OneFailedReadFailsItsBatchAlone) {
    const InputFile good(make_file("good.bin", 2 * mebibyte));
    const InputFile bad(make_file("bad.bin", 2 * mebibyte));
    std::vector<std::byte> memory(4 * mebibyte);
    const FaultyReads faulty([&](const ReadRequest& read, long result) {
        return read.file == &bad && read.offset > 0 ? fail(read, EIO) : result;
    });
    const ReadRequest requests[] = {{&bad, 0, 2 * mebibyte, memory.data()},
                                    {&good, 0, 2 * mebibyte, memory.data() + 2 * mebibyte}};
    ReadBatch failing = engine_.submit(std::span(requests).first(1));
    ReadBatch arriving = engine_.submit(std::span(requests).subspan(1));
    arriving.wait();
    EXPECT_EQ(first_wrong_byte(std::span(memory).subspan(2 * mebibyte), 0), -1);
    EXPECT_EQ(error_of([&] { failing.wait(); }).first, ErrorCode::io);
}

TEST_P(IoFaults, WhatComesShortIsReadOn) {
    const InputFile file(make_file("a.bin", 3 * mebibyte + 17));
    std::vector<std::byte> memory(file.size());
    std::uint64_t state = 1;
    std::size_t answers = 0;
    const FaultyReads faulty([&](const ReadRequest& read, long result) {
        ++answers;
        state = state * 6364136223846793005 + 1442695040888963407;
        return only(read, result, 1 + static_cast<long>(state >> 33) % 70'000);
    });
    const ReadRequest request{&file, 0, memory.size(), memory.data()};
    engine_.read(std::span(&request, 1));
    EXPECT_GT(answers, 40U);
    EXPECT_EQ(first_wrong_byte(memory, 0), -1);
}

TEST_P(IoFaults, InterruptedReadsAreTriedAgain) {
    const InputFile file(make_file("a.bin", 2 * mebibyte));
    std::vector<std::byte> memory(file.size());
    std::set<std::pair<std::uint64_t, int>> seen;
    const FaultyReads faulty([&](const ReadRequest& read, long result) {
        for (const int error : {EINTR, EAGAIN}) {
            if (seen.insert({read.offset, error}).second)
                return fail(read, error);
        }
        return result;
    });
    const ReadRequest request{&file, 0, memory.size(), memory.data()};
    engine_.read(std::span(&request, 1));
    EXPECT_EQ(seen.size(), 4U);
    EXPECT_EQ(first_wrong_byte(memory, 0), -1);
}

TEST_P(IoFaults, AFileCutBetweenTwoReadsIsCutNotEmpty) {
    for (const std::uint64_t left : {std::uint64_t{0}, std::uint64_t{mebibyte + 5000}}) {
        const std::string path = make_file("cut.bin", 4 * mebibyte);
        const InputFile file(path);
        std::vector<std::byte> memory(file.size());
        const FaultyReads faulty([&](const ReadRequest& read, long result) {
            if (read.offset == 0)
                std::filesystem::resize_file(path, left);
            return result;
        });
        const ReadRequest request{&file, 0, memory.size(), memory.data()};
        const auto [code, text] = error_of([&] { engine_.read(std::span(&request, 1)); });
        EXPECT_EQ(code, ErrorCode::corrupt_file);
        EXPECT_NE(text.find("cut.bin: ends at or before byte"), std::string::npos) << text;
    }
}

TEST_P(IoFaults, SlabsEndAtTheOneThatCouldNotBeRead) {
    const std::string path = make_file("a.bin", 8 * mebibyte);
    for (const DirectReads direct : {DirectReads::always, DirectReads::never}) {
        const FaultyReads faulty([](const ReadRequest& read, long result) {
            return read.offset >= 5 * mebibyte ? fail(read, EIO) : result;
        });
        SlabReader reader(engine_, path, 0, 8 * mebibyte,
                          {.slab_bytes = mebibyte, .buffer_count = 3, .direct = direct});
        for (std::size_t slab = 0; slab < 5; ++slab)
            ASSERT_EQ(first_wrong_byte(reader.next(), slab * mebibyte), -1) << slab;
        // However often it is asked.
        for (int again = 0; again < 3; ++again)
            EXPECT_EQ(error_of([&] { (void)reader.next(); }).first, ErrorCode::io) << again;
    }
}

using Change = void (*)(const std::string& path);

void write_in_place(const std::string& path) {
    const int file = ::open(path.c_str(), O_WRONLY);
    ASSERT_GE(file, 0);
    EXPECT_EQ(::pwrite(file, "x", 1, 100), 1);
    EXPECT_EQ(::close(file), 0);
}

void grow(const std::string& path) {
    std::ofstream(path, std::ios::app) << "more";
}

void replace(const std::string& path) {
    std::filesystem::copy_file(path, path + ".new");
    std::filesystem::rename(path + ".new", path);
}

void remove_file(const std::string& path) {
    std::filesystem::remove(path);
}

constexpr Change changes[] = {write_in_place, grow, replace, remove_file};

TEST_P(IoFaults, AFileThatIsWrittenWhileItIsReadIsNoticedAtTheEnd) {
    for (const Change change : changes) {
        for (const DirectReads direct : {DirectReads::always, DirectReads::never}) {
            const std::string path = old_file("a.bin", 4 * mebibyte);
            SlabReader reader(engine_, path, 0, 4 * mebibyte,
                              {.slab_bytes = mebibyte, .buffer_count = 2, .direct = direct});
            EXPECT_NO_THROW(reader.require_unchanged());
            (void)reader.next();
            EXPECT_NO_THROW(reader.require_unchanged());
            change(path);
            const auto [code, text] = error_of([&] { reader.require_unchanged(); });
            EXPECT_EQ(code, ErrorCode::corrupt_file);
            EXPECT_EQ(text, path + ": was written while it was read");
            std::filesystem::remove(path);
        }
    }
}

TEST_P(IoFaults, AnotherFileUnderTheNameIsNoticed) {
    const std::string name = (directory_ / "latest").string();
    std::filesystem::create_symlink(old_file("a.bin", 4096), name);
    SlabReader reader(engine_, name, 0, 4096);
    (void)reader.next();
    EXPECT_NO_THROW(reader.require_unchanged());
    std::filesystem::remove(name);
    std::filesystem::create_symlink(old_file("b.bin", 4096), name);
    EXPECT_EQ(error_of([&] { reader.require_unchanged(); }).second,
              name + ": was written while it was read");
}

TEST_P(IoFaults, AFileIsHeldAgainstAnEarlierStamp) {
    for (const Change change : {write_in_place, grow, replace}) {
        const std::string path = old_file("a.bin", 4 * mebibyte);
        const FileStamp stamp = FileStamp::of(path);
        const SlabOptions options{.stamp = stamp};
        EXPECT_NO_THROW(SlabReader(engine_, path, 0, 100, options));
        EXPECT_NO_THROW(require_unchanged(path, stamp));
        change(path);
        const auto [code, text] = error_of([&] { SlabReader(engine_, path, 0, 100, options); });
        EXPECT_EQ(code, ErrorCode::corrupt_file);
        EXPECT_EQ(text, path + ": was written while it was read");
        EXPECT_EQ(error_of([&] { require_unchanged(path, stamp); }).second, text);
        std::filesystem::remove(path);
        EXPECT_EQ(error_of([&] { require_unchanged(path, stamp); }).second, text);
    }
    EXPECT_EQ(error_of([] { (void)FileStamp::of("/no/such/file"); }).first, ErrorCode::io);
}

}  // namespace
}  // namespace ciwrap::testing
