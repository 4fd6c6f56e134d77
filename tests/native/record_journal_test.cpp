#include "record/journal.hpp"

#include <sys/resource.h>

#include <csignal>

#include "ciwrap/error.hpp"
#include "record/record_scan.hpp"
#include "record_fixtures.hpp"

namespace ciwrap::record {
namespace {

constexpr std::uint64_t head = 64;

class JournalTest : public RecordTest {
  protected:
    std::string path() const { return (folder_ / "rank-000000.cwr").string(); }
    std::uint64_t size() const { return std::filesystem::file_size(path()); }

    std::uint64_t write_three() {
        Journal journal(path(), 0, 1);
        for (const char* text : {"one", "three and more", ""}) {
            journal.add({RecordType::error}, Payload().text(text).span());
            journal.commit();
        }
        return journal.file_bytes();
    }

    void write(const std::vector<char>& bytes) const {
        std::ofstream(path(), std::ios::binary | std::ios::trunc)
            .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
};

TEST_F(JournalTest, HasAHeadAndWholeRecords) {
    const std::uint64_t end = write_three();
    EXPECT_EQ(end, size());
    EXPECT_EQ((end - head) % 8, 0u);
}

// What is lent is written as if it had been copied, and is read when it is written.
TEST_F(JournalTest, WritesWhatIsLentInItsPlace) {
    const auto key = RecordKey{RecordType::tree, 3, 1, 2};
    const auto write = [&](bool is_lent) {
        std::filesystem::remove(path());
        Journal journal(path(), 0, 1);
        for (const std::size_t length : {0u, 1u, 7u, 8u, 1000u, 5000u}) {
            const std::vector<std::byte> first(length, std::byte{5});
            const std::vector<std::byte> second(length / 3, std::byte{6});
            const Payload begin = std::move(Payload().u32(9));
            if (is_lent) {
                journal.add(key, begin.span(), {first, second});
                journal.add({RecordType::error}, Payload().text("between").span());
                journal.add(key, begin.span(), {second});
            } else {
                Payload whole = begin;
                journal.add(key, whole.bytes(first).bytes(second).span());
                journal.add({RecordType::error}, Payload().text("between").span());
                Payload half = begin;
                journal.add(key, half.bytes(second).span());
            }
            journal.commit();
        }
        EXPECT_EQ(journal.file_bytes(), size());
        return bytes_of(path());
    };
    const std::vector<char> copied = write(false);
    EXPECT_EQ(write(true), copied);
    EXPECT_EQ(Journal(path(), 0, 1).file_bytes(), copied.size());
}

TEST_F(JournalTest, ForgetsWhatIsLent) {
    Journal journal(path(), 0, 1);
    {
        const std::vector<std::byte> gone(100);
        journal.add({RecordType::tree}, {}, {gone});
        journal.discard();
    }
    journal.add({RecordType::end});
    journal.commit();
    EXPECT_EQ(size(), head + 64);
}

// What was begun in the format of an earlier release is not continued in another.
TEST_F(JournalTest, RefusesAnEarlierVersion) {
    const std::vector<std::byte> older = make_head({0, 1, oldest_journal_version});
    std::ofstream(path(), std::ios::binary)
        .write(reinterpret_cast<const char*>(older.data()), static_cast<std::streamsize>(head));
    try {
        const Journal journal(path(), 0, 1);
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("by an earlier release"), std::string::npos);
    }
    EXPECT_EQ(size(), head);
}

TEST_F(JournalTest, GoesOnBehindTheLastRecord) {
    const std::uint64_t end = write_three();
    Journal again(path(), 0, 1);
    EXPECT_EQ(again.file_bytes(), end);
    again.add({RecordType::end});
    again.commit();
    EXPECT_EQ(size(), end + 64);
}

// Whatever moment a program is killed at.
TEST_F(JournalTest, CutsOffWhatIsHalfWritten) {
    const std::uint64_t end = write_three();
    const std::vector<char> whole = bytes_of(path());
    std::uint64_t last_end = 0;
    for (std::uint64_t length = 0; length <= end; ++length) {
        std::ofstream(path(), std::ios::binary | std::ios::trunc)
            .write(whole.data(), static_cast<std::streamsize>(length));
        const Journal journal(path(), 0, 1);
        EXPECT_GE(journal.file_bytes(), last_end);
        EXPECT_LE(journal.file_bytes(), std::max(length, head));
        EXPECT_EQ(journal.file_bytes(), size());
        last_end = journal.file_bytes();
    }
    EXPECT_EQ(last_end, end);
}

// Damage is told from what is half written by what lies behind it, and stays as it is.
TEST_F(JournalTest, LeavesDamageAsItIs) {
    const std::uint64_t end = write_three();
    const std::vector<char> whole = bytes_of(path());
    // Behind the last record, which has no text of its own, lies nothing.
    const std::uint64_t last = end - record_head_bytes - 8 - checksum_bytes;
    for (std::uint64_t at = head; at < end; ++at) {
        std::vector<char> damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
        write(damaged);
        if (at < last) {
            EXPECT_THROW(Journal(path(), 0, 1), Error) << at;
            EXPECT_EQ(bytes_of(path()), damaged) << at;
        } else {
            EXPECT_EQ(Journal(path(), 0, 1).file_bytes(), last) << at;
        }
    }
}

// The head of a later record is looked for piece by piece.
TEST_F(JournalTest, FindsALaterRecordWhereverItBegins) {
    constexpr std::size_t piece = std::size_t{1} << 20;
    for (std::size_t length = piece - 136; length <= piece; length += 8) {
        std::filesystem::remove(path());
        {
            Journal journal(path(), 0, 1);
            const std::vector<std::byte> payload(length);
            journal.add({RecordType::tree}, payload);
            journal.add({RecordType::end});
            journal.commit();
        }
        std::vector<char> damaged = bytes_of(path());
        damaged[head + 100] ^= 1;
        write(damaged);
        EXPECT_THROW(Journal(path(), 0, 1), Error) << length;
        damaged.resize(damaged.size() - 64);  // without that record
        write(damaged);
        EXPECT_EQ(Journal(path(), 0, 1).file_bytes(), head) << length;
    }
}

TEST_F(JournalTest, RefusesTheJournalOfAnotherRank) {
    write_three();
    EXPECT_THROW(Journal(path(), 1, 2), Error);
    EXPECT_THROW(Journal(path(), 0, 2), Error);
}

TEST_F(JournalTest, HasOneWriter) {
    const Journal journal(path(), 0, 1);
    EXPECT_THROW(Journal(path(), 0, 1), Error);
}

TEST_F(JournalTest, IsAsItWasWhereTheDiskIsFull) {
    struct rlimit before {};
    getrlimit(RLIMIT_FSIZE, &before);
    const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
    Journal journal(path(), 0, 1);
    journal.add({RecordType::error}, Payload().text("fits").span());
    journal.commit();
    const std::uint64_t end = journal.file_bytes();
    const struct rlimit small { end + 100, before.rlim_max };
    setrlimit(RLIMIT_FSIZE, &small);
    journal.add({RecordType::error}, Payload().text(std::string(1000, 'x')).span());
    EXPECT_THROW(journal.commit(), Error);
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, ignored);
    EXPECT_EQ(size(), end);
    journal.add({RecordType::error}, Payload().text("again").span());
    journal.commit();
    EXPECT_EQ(size(), journal.file_bytes());
}

}  // namespace
}  // namespace ciwrap::record
