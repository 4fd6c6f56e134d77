// Memory that runs out at any moment of a program that records: the program goes on, and what was
// lost is counted.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "record/recorder.hpp"
#include "record_fixtures.hpp"

namespace {

// How many allocations succeed until one fails, and how many fail then; negative: all succeed.
std::atomic<long> good_ones{-1};
std::atomic<long> bad_ones{0};

void* allocate(std::size_t bytes) {
    if (good_ones.load() >= 0 && good_ones.fetch_sub(1) <= 0) {
        good_ones = 0;
        if (bad_ones.fetch_sub(1) > 0)
            throw std::bad_alloc();
        good_ones = -1;
    }
    if (void* const found = std::malloc(bytes == 0 ? 1 : bytes))
        return found;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) {
    return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
    return allocate(bytes);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace ciwrap::record {
namespace {

class MemoryTest : public RecordTest {
  protected:
    // A thousand journals are written: in memory, where it is to be had.
    void SetUp() override {
        RecordTest::SetUp();
        if (!std::filesystem::is_directory("/dev/shm"))
            return;
        std::filesystem::remove_all(folder_);
        folder_ = "/dev/shm" / folder_.filename();
        std::filesystem::create_directories(folder_);
    }

    // What a program does; each call may lack memory. Returns how many checkpoints were recorded.
    int live(const OnlineOptions& online, const std::vector<double>& values) {
        const auto call = [](auto&& body) {
            try {
                return static_cast<int>(body());
            } catch (const std::bad_alloc&) {
                ++lost_calls;  // as the table of the library does
                return -1;
            }
        };
        lost_calls = 0;
        std::unique_ptr<Recorder> recorder;
        (void)call([&] {
            recorder = std::make_unique<Recorder>(run(), "test", 0, 1, "", online);
            return 0;
        });
        if (!recorder)
            return 0;
        int done = 0;
        (void)call([&] { return recorder->add(doubles("a variable with a long name", values)); });
        for (int n = 0; n < 3; ++n) {
            done += call([&] { return recorder->prepare(n, "a point with a long name"); }) == 0;
            (void)call([&] { return recorder->work(); });
            (void)call(
                [&] { return recorder->expose(doubles("another long name of one", values)); });
            (void)call([&] { return recorder->complete(); });
            (void)call([&] { return recorder->checkpoint(n, "", 0); });
        }
        (void)call([&] { return recorder->replace(0, doubles("x", values)); });
        (void)call([&] { return recorder->checkpoint(3, "", 0); });
        errors = recorder->close();
        recorder.reset();
        return done;
    }

    static inline int lost_calls = 0;
    static inline std::int64_t errors = 0;
};

// The records of each type in a journal, or nothing if there is none.
std::vector<int> count_records(const std::vector<char>& bytes) {
    std::vector<int> counts(16);
    for (std::size_t at = 64; at + 64 <= bytes.size();) {
        std::uint64_t payload = 0;
        std::uint32_t type = 0;
        std::memcpy(&type, &bytes[at + 4], sizeof type);
        std::memcpy(&payload, &bytes[at + 8], sizeof payload);
        ++counts[type];
        at += 48 + (payload + 7) / 8 * 8 + 16;
    }
    return counts;
}

TEST_F(MemoryTest, LosesNoMoreThanItCounts) {
    const std::vector<double> values(3000, 0.25);
    const OnlineOptions alone;
    ASSERT_EQ(live(alone, values), 3);
    EXPECT_EQ(errors, 0);
    const std::string journal = run() + "/000/rank-000000.cwr";
    const std::vector<int> whole = count_records(bytes_of(journal));
    OnlineOptions online;
    online.wait_seconds = 0;
    online.against = (folder_ / "reference").string();
    std::filesystem::rename(run(), online.against);
    int complete = 0;
    for (const OnlineOptions& options : {alone, online}) {
        for (const long in_a_row : {1L, 3L, 1000000L}) {
            bool has_failed = true;
            for (long n = 0; has_failed; n += in_a_row == 1 ? 1 : 7) {
                std::filesystem::remove_all(run());
                bad_ones = in_a_row;
                good_ones = n;
                (void)live(options, values);
                has_failed = bad_ones.load() != in_a_row;  // past the last one nothing fails
                good_ones = -1;
                const std::vector<int> found = count_records(bytes_of(journal));
                const bool has_end = found[8] == 1;
                const bool is_all_there = found[4] == whole[4] && found[6] == 0 && has_end;
                complete += is_all_there ? 1 : 0;
                // No end, an error, or a hole: each makes a run that is not all there.
                EXPECT_TRUE(is_all_there || errors + lost_calls > 0 || !has_end) << n;
                EXPECT_TRUE(has_failed || (is_all_there && errors == 0)) << n;
            }
        }
    }
    EXPECT_GT(complete, 10);
}

}  // namespace
}  // namespace ciwrap::record
