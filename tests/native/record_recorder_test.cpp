#include "record/recorder.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "record/in_call.hpp"
#include "record/whole_struct.hpp"
#include "record_fixtures.hpp"

namespace ciwrap::record {
namespace {

using RecorderTest = RecordTest;

std::vector<double> some_values(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> values(count);
    for (double& value : values)
        value = normal(random);
    return values;
}

// The root of an array, hashed in one go.
Digest root_of(const ciwrap_array& array) {
    const ArrayView view(array);
    StatedParameters stated;
    stated.dtype = view.dtype();
    Batch batch;
    batch.variables.push_back(std::make_unique<Recorded>(0, "x", view, TreeParameters(stated)));
    batch.cut();
    batch.work();
    TreeParts& parts = batch.variables[0]->plain;
    for (std::size_t level = parts.shape.level_count() - 1; level-- > 0;)
        hash_level(parts.shape, level, parts.tree.digests, 0, parts.shape.count(level));
    return parts.tree.root();
}

// Any strides and any order in memory give what the same indices give back to back.
TEST_F(RecorderTest, HashesInIndexOrder) {
    std::mt19937 random(7);
    for (int round = 0; round < 40; ++round) {
        const std::vector<double> memory = some_values(60000, 100u + static_cast<unsigned>(round));
        ciwrap_array array = doubles("x", memory);
        array.dimensions = 1 + round % 4;
        std::vector<std::size_t> order(static_cast<std::size_t>(array.dimensions));
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        std::int64_t stride = 1 + round % 2;
        for (const std::size_t i : order) {
            array.extents[i] =
                1 + static_cast<std::int64_t>(random() % (round % 4 == 0 ? 9000 : 12));
            array.strides[i] = stride;
            stride *= array.extents[i] + static_cast<std::int64_t>(random() % 3);
        }
        std::vector<double> packed;
        std::vector<std::int64_t> index(order.size());
        const std::uint64_t count = ArrayView(array).element_count();
        for (std::uint64_t i = 0; i < count; ++i) {
            std::int64_t at = 0;
            std::uint64_t rest = i;
            for (std::size_t d = order.size(); d-- > 0;) {
                const auto extent = static_cast<std::uint64_t>(array.extents[d]);
                at += static_cast<std::int64_t>(rest % extent) * array.strides[d];
                rest /= extent;
            }
            ASSERT_LT(static_cast<std::size_t>(at), memory.size());
            packed.push_back(memory[static_cast<std::size_t>(at)]);
        }
        EXPECT_EQ(root_of(array), root_of(doubles("x", packed))) << round;
    }
}

// Digests and residues of both trees, hashed in one go.
struct Trees {
    std::vector<Digest> plain;
    std::vector<Digest> fine;
    std::vector<std::uint8_t> residues;

    bool operator==(const Trees&) const = default;
};

Trees trees_of(const ciwrap_array& array, double atol) {
    const ArrayView view(array);
    StatedParameters stated;
    stated.dtype = view.dtype();
    stated.atol = atol;
    stated.residue_levels = 15;
    Batch batch;
    batch.variables.push_back(std::make_unique<Recorded>(0, "x", view, TreeParameters(stated)));
    batch.cut();
    batch.work();
    const Recorded& one = *batch.variables[0];
    const auto& residues = one.fine->tree.residues;
    return {{one.plain.tree.digests.begin(), one.plain.tree.digests.end()},
            {one.fine->tree.digests.begin(), one.fine->tree.digests.end()},
            {residues.begin(), residues.end()}};
}

// Rows with ghost cells, every other element, columns that lie together: all as if copied first.
TEST_F(RecorderTest, MakesTheSameTreesWithAndWithoutGhosts) {
    constexpr std::int64_t rows = 150;
    for (const std::int64_t columns : {7, 512, 1000, 2003}) {
        const std::vector<double> memory =
            some_values(static_cast<std::size_t>(2 * (rows + 4) * (columns + 4)), 11);
        const std::int64_t padded = columns + 4;
        const std::int64_t strides[][2] = {{padded, 1},   {2 * columns, 2}, {1, rows},
                                           {1, rows + 3}, {2, 2 * rows},    {-padded, 1}};
        for (const auto& stride : strides) {
            ciwrap_array array = doubles("x", memory);
            array.data = memory.data() + (stride[0] < 0 ? rows * padded : 2 * padded + 2);
            array.dimensions = 2;
            array.extents[0] = rows;
            array.extents[1] = columns;
            array.strides[0] = stride[0];
            array.strides[1] = stride[1];
            std::vector<double> packed;
            for (std::int64_t i = 0; i < rows; ++i)
                for (std::int64_t j = 0; j < columns; ++j)
                    packed.push_back(
                        static_cast<const double*>(array.data)[i * stride[0] + j * stride[1]]);
            EXPECT_EQ(trees_of(array, 1e-6), trees_of(doubles("x", packed), 1e-6))
                << columns << " columns, strides " << stride[0] << " and " << stride[1];
        }
    }
}

TEST_F(RecorderTest, TakesStridesInBytesAndBackwards) {
    const std::vector<double> values = some_values(5000, 1);
    const std::vector<double> reversed(values.rbegin(), values.rend());
    ciwrap_array array = doubles("x", values);
    array.data = &values.back();
    array.flags = CIWRAP_BYTE_STRIDES;
    array.strides[0] = -8;
    EXPECT_EQ(root_of(array), root_of(doubles("x", reversed)));
}

TEST_F(RecorderTest, TakesEmptyArraysAndScalars) {
    const double one = 1;
    ciwrap_array array = doubles("x", {});
    array.data = nullptr;
    EXPECT_NO_THROW(root_of(array));
    array.dimensions = 2;
    array.extents[0] = 5;
    array.extents[1] = 0;
    array.strides[0] = 100;
    array.strides[1] = 1;
    EXPECT_EQ(root_of(array), root_of(doubles("x", {})));
    array.data = &one;
    array.dimensions = 0;
    EXPECT_EQ(root_of(array), root_of(doubles("x", {1.0})));
}

TEST_F(RecorderTest, CountsWhatCannotBeRecorded) {
    const std::vector<double> values(10);
    Recorder recorder(run(), "test", 0, 1, "");
    EXPECT_EQ(recorder.add(doubles("x", values)), 0);
    EXPECT_EQ(recorder.add(doubles("x", values)), -1);  // twice
    ciwrap_array nowhere = doubles("d", values);
    nowhere.location = 7;
    EXPECT_EQ(recorder.add(nowhere), -1);  // leaves holes
    EXPECT_EQ(recorder.find_name("d"), 1);
    ciwrap_array odd = doubles("o", values);
    odd.dtype = "x3";
    EXPECT_EQ(recorder.add(odd), -1);
    EXPECT_EQ(recorder.move(17, values.data()), -1);
    EXPECT_EQ(recorder.complete(), -1);
    EXPECT_EQ(recorder.checkpoint(-1, "", 0), -1);
    EXPECT_EQ(recorder.checkpoint(0, "", 77), -1);
    EXPECT_EQ(recorder.checkpoint(0, "", 0), 0);
    EXPECT_EQ(recorder.move(0, nullptr), 0);
    EXPECT_EQ(recorder.checkpoint(1, "", 0), 0);
    EXPECT_EQ(recorder.close(), 8);
}

TEST_F(RecorderTest, LetsManyThreadsHash) {
    const std::vector<double> values = some_values(1 << 18, 3);
    Recorder recorder(run(), "test", 0, 1, "");
    recorder.add(doubles("x", values));
    for (int n = 0; n < 20; ++n) {
        ASSERT_EQ(recorder.prepare(n, "p"), 0);
        EXPECT_EQ(recorder.prepare(n, "p"), -1);
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&] { recorder.work(); });
        EXPECT_EQ(recorder.complete(), 0);
        for (std::thread& thread : threads)
            thread.join();
    }
    EXPECT_EQ(recorder.close(), 20);
}

TEST_F(RecorderTest, WritesTheSameWhoeverHashes) {
    const std::vector<double> values = some_values(1 << 17, 4);
    const auto record = [&](const std::string& name, bool by_threads) {
        Recorder recorder((folder_ / name).string(), "test", 0, 1, "");
        recorder.add(doubles("x", values));
        recorder.prepare(0, "");
        if (by_threads) {
            std::thread one([&] { recorder.work(); });
            std::thread two([&] { recorder.work(); });
            one.join();
            two.join();
        }
        recorder.complete();
        const std::string path = recorder.path();
        recorder.close();
        std::vector<char> bytes = bytes_of(path);
        // Without the attempt, which has a time, and the end, which has statistics.
        return std::vector<char>(bytes.begin() + 200, bytes.end() - 200);
    };
    EXPECT_EQ(record("a", false), record("b", true));
}

// Each checkpoint of each thread is recorded, whoever comes first.
TEST_F(RecorderTest, LetsManyThreadsRecord) {
    const std::vector<double> values = some_values(20000, 5);
    Recorder recorder(run(), "test", 0, 1, "");
    recorder.add(doubles("x", values));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            for (int n = 0; n < 50; ++n)
                EXPECT_EQ(recorder.checkpoint(50 * i + n, "", 0), 0);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(recorder.close(), 0);
}

// What is exposed is read then, and never again.
TEST_F(RecorderTest, RecordsWhatIsExposedAsIfItHadBeenAdded) {
    const std::vector<double> values = some_values(70000, 6);
    const auto record = [&](const std::string& name, bool is_exposed) {
        Recorder recorder((folder_ / name).string(), "test", 0, 1, "");
        for (int n = 0; n < 3; ++n) {
            std::vector<double> here = values;
            here[7] += n;
            if (is_exposed) {
                EXPECT_EQ(recorder.prepare(n, "p"), 0);
                EXPECT_EQ(recorder.expose(doubles("x", here)), 0);
                std::fill(here.begin(), here.end(), -1.0);
                EXPECT_EQ(recorder.complete(), 0);
            } else {
                n == 0 ? (void)recorder.add(doubles("x", here))
                       : (void)recorder.move(0, here.data());
                EXPECT_EQ(recorder.checkpoint(n, "p", 0), 0);
            }
        }
        const std::string path = recorder.path();
        EXPECT_EQ(recorder.close(), 0);
        std::vector<char> bytes = bytes_of(path);
        std::vector<std::vector<char>> records;  // of trees alone
        for (std::size_t at = 64; at < bytes.size();) {
            std::uint64_t payload = 0;
            std::uint32_t type = 0;
            std::memcpy(&type, &bytes[at + 4], sizeof type);
            std::memcpy(&payload, &bytes[at + 8], sizeof payload);
            const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at) + 48;
            if (type == 4)
                records.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(payload));
            at += 48 + (payload + 7) / 8 * 8 + 16;
        }
        EXPECT_EQ(records.size(), 3U);
        return records;
    };
    EXPECT_EQ(record("a", true), record("b", false));
}

TEST_F(RecorderTest, RefusesToExposeWhatIsNotOfACheckpoint) {
    const std::vector<double> values(10);
    Recorder recorder(run(), "test", 0, 1, "");
    EXPECT_EQ(recorder.expose(doubles("x", values)), -1);  // not prepared
    recorder.add(doubles("y", values));
    EXPECT_EQ(recorder.prepare(0, ""), 0);
    EXPECT_EQ(recorder.expose(doubles("x", values)), 0);
    EXPECT_EQ(recorder.expose(doubles("x", values)), -1);  // twice
    EXPECT_EQ(recorder.expose(doubles("y", values)), -1);  // is added
    EXPECT_EQ(recorder.expose(doubles("", values)), -1);
    EXPECT_EQ(recorder.complete(), 0);
    EXPECT_EQ(recorder.checkpoint(1, "", 0), 0);
    EXPECT_EQ(recorder.close(), 4);
}

TEST_F(RecorderTest, RecordsAnArrayAgainThatWasRemoved) {
    const std::vector<double> values(10);
    Recorder recorder(run(), "test", 0, 1, "");
    EXPECT_EQ(recorder.add(doubles("x", values)), 0);
    EXPECT_EQ(recorder.remove(0), 0);
    EXPECT_EQ(recorder.add(doubles("x", values)), 0);
    EXPECT_EQ(recorder.close(), 0);
}

TEST_F(RecorderTest, LeavesAHoleWhereMemoryIsGone) {
    constexpr std::size_t bytes = 1 << 20;
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    ciwrap_array array = doubles("x", {});
    array.data = memory;
    array.extents[0] = bytes / 8;
    Recorder recorder(run(), "test", 0, 1, "");
    EXPECT_EQ(recorder.add(array), 0);
    EXPECT_EQ(recorder.checkpoint(0, "", 0), 0);
    EXPECT_EQ(recorder.errors(), 0);
    munmap(static_cast<char*>(memory) + bytes / 2, bytes / 2);
    EXPECT_EQ(recorder.checkpoint(1, "", 0), 0);
    char text[200];
    EXPECT_EQ(recorder.error().last(text, sizeof text), CIWRAP_MEMORY_GONE);
    EXPECT_NE(std::string(text).find("x: its memory is not there any more"), std::string::npos);
    munmap(memory, bytes / 2);
    // Backwards, from its last element on.
    std::vector<double> values(1000);
    array = doubles("y", values);
    array.data = &values.back();
    array.strides[0] = -1;
    EXPECT_EQ(recorder.remove(0), 0);
    EXPECT_EQ(recorder.add(array), 1);
    EXPECT_EQ(recorder.checkpoint(2, "", 0), 0);
    EXPECT_EQ(recorder.close(), 1);
}

// A thread that writes while it is recorded is found by hashing twice.
TEST_F(RecorderTest, SaysInDebugModeWhatChangedMeanwhile) {
    setenv("CIWRAP_RECORD_DEBUG", "1", 1);
    std::vector<double> values(1000);
    Recorder recorder(run(), "test", 0, 1, "");
    unsetenv("CIWRAP_RECORD_DEBUG");
    recorder.add(doubles("x", values));
    EXPECT_EQ(recorder.checkpoint(0, "", 0), 0);
    EXPECT_EQ(recorder.errors(), 0);
    EXPECT_EQ(recorder.prepare(1, ""), 0);
    EXPECT_EQ(recorder.work(), 0);
    values[500] = 1;
    EXPECT_EQ(recorder.complete(), 0);
    EXPECT_EQ(recorder.error().last(nullptr, 0), CIWRAP_CHANGED);
    EXPECT_EQ(recorder.close(), 1);
}

#if defined(__linux__) && !CIWRAP_POSIX_ONLY
__attribute__((noinline)) void add_a_local(Recorder& recorder) {
    volatile double values[100] = {};
    ciwrap_array array{};
    array.size = sizeof array;
    array.name = "local";
    array.dtype = "f8";
    array.data = const_cast<double*>(values);
    array.dimensions = 1;
    array.extents[0] = 100;
    array.atol = array.rtol = -1;
    EXPECT_EQ(recorder.add(array), 1);
}

__attribute__((noinline)) void call_checkpoint(Recorder& recorder, int iteration) {
    const InCall in_call(true);
    EXPECT_EQ(recorder.checkpoint(iteration, "", 0), 0);
}

TEST_F(RecorderTest, SaysInDebugModeWhatIsOfAFunctionThatHasReturned) {
    setenv("CIWRAP_RECORD_DEBUG", "1", 1);
    Recorder recorder(run(), "test", 0, 1, "");
    unsetenv("CIWRAP_RECORD_DEBUG");
    const double here[3] = {};
    ciwrap_array array = doubles("here", {});
    array.data = here;
    array.extents[0] = 3;
    EXPECT_EQ(recorder.add(array), 0);
    call_checkpoint(recorder, 0);
    EXPECT_EQ(recorder.errors(), 0);
    add_a_local(recorder);
    call_checkpoint(recorder, 1);
    EXPECT_EQ(recorder.close(), 1);
}
#endif

TEST_F(RecorderTest, TellsTheLastError) {
    Recorder recorder(run(), "test", 0, 1, "");
    char text[12] = "?";
    EXPECT_EQ(recorder.error().last(text, sizeof text), CIWRAP_NO_ERROR);
    EXPECT_STREQ(text, "");
    EXPECT_EQ(recorder.move(5, nullptr), -1);
    EXPECT_EQ(recorder.error().last(text, sizeof text), CIWRAP_BAD_CALL);
    EXPECT_STREQ(text, "there is no");
    EXPECT_EQ(recorder.report("the mesh has no name"), -1);
    EXPECT_EQ(recorder.error().last(nullptr, 0), CIWRAP_REPORTED);
    EXPECT_EQ(recorder.close(), 2);
}

// Programs of other versions of the header: their structs are shorter or longer than ours.
TEST(WholeStruct, TakesThoseOfOlderAndNewerPrograms) {
    struct Grown {
        ciwrap_array first;
        int more;
    };
    ciwrap_array old{};
    old.size = sizeof old;
    old.rtol = 0.5;
    const Grown ours = whole_struct<Grown>(&old, old.size, first_array_bytes);
    EXPECT_EQ(ours.first.rtol, 0.5);
    EXPECT_EQ(ours.more, 0);
    Grown theirs{old, 7};
    theirs.first.size = sizeof theirs;
    const auto here = whole_struct<ciwrap_array>(&theirs, theirs.first.size, first_array_bytes);
    EXPECT_EQ(here.rtol, 0.5);
    EXPECT_ANY_THROW(whole_struct<ciwrap_array>(&old, first_array_bytes - 1, first_array_bytes));
    EXPECT_EQ(first_array_bytes, 304U);  // of the first version, for ever
}

TEST_F(RecorderTest, RefusesRanksThatAreNone) {
    EXPECT_ANY_THROW(Recorder(run(), "test", 2, 2, ""));
    EXPECT_ANY_THROW(Recorder(run(), "test", 0, 1, "/no/such/table"));
}

class LibraryTest : public RecordTest {
  protected:
    void SetUp() override {
        RecordTest::SetUp();
        setenv("CIWRAP_RECORD_LIBRARY", CIWRAP_RECORD_LIBRARY_PATH, 1);
        setenv("CIWRAP_RECORD", run().c_str(), 1);
    }
    void TearDown() override {
        unsetenv("CIWRAP_RECORD");
        RecordTest::TearDown();
    }
    std::string journal() const { return run() + "/000/rank-000000.cwr"; }
};

TEST_F(LibraryTest, KeepsErrnoAndEndsItsThread) {
    const std::vector<double> values(1000, 1.0);
    const ciwrap_array array = doubles("x", values);
    errno = 42;
    ciwrap_run* const run = ciwrap_open("test", 0, 1);
    ASSERT_NE(run, nullptr);
    ciwrap_add(run, &array);
    EXPECT_EQ(ciwrap_checkpoint(run, 0, CIWRAP_IN_PLACE), 0);
    EXPECT_EQ(ciwrap_close(run), 0);
    EXPECT_EQ(errno, 42);
}

TEST_F(LibraryTest, IsOffWithoutAFolder) {
    unsetenv("CIWRAP_RECORD");
    ciwrap_run* const run = ciwrap_open("test", 0, 1);
    EXPECT_EQ(run, nullptr);
    EXPECT_EQ(ciwrap_add(run, nullptr), -1);
    EXPECT_EQ(ciwrap_checkpoint(run, 0, 0), 0);
    EXPECT_EQ(ciwrap_close(run), 0);
}

TEST_F(LibraryTest, IsOffWithoutALibrary) {
    setenv("CIWRAP_RECORD_LIBRARY", "/no/such/library.so", 1);
    EXPECT_EQ(ciwrap_open("test", 0, 1), nullptr);
}

TEST_F(LibraryTest, LeavesAForkedChildAlone) {
    const std::vector<double> values(1000, 1.0);
    const ciwrap_array array = doubles("x", values);
    ciwrap_run* const run = ciwrap_open("test", 0, 1);
    ciwrap_add(run, &array);
    ciwrap_checkpoint(run, 0, CIWRAP_IN_PLACE);
    const pid_t child = fork();
    if (child == 0) {
        const bool is_quiet = ciwrap_checkpoint(run, 1, CIWRAP_IN_PLACE) == 0 &&
                              ciwrap_add(run, &array) == 0 && ciwrap_close(run) == 0;
        _exit(is_quiet ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    ciwrap_checkpoint(run, 2, CIWRAP_IN_PLACE);
    EXPECT_EQ(ciwrap_close(run), 0);
    const std::uint64_t size = std::filesystem::file_size(journal());
    const Journal again(journal(), 0, 1);
    EXPECT_EQ(again.file_bytes(), size);
}

TEST_F(LibraryTest, TakesCallsAfterItWasClosed) {
    const std::vector<double> values(1000, 1.0);
    const ciwrap_array array = doubles("x", values);
    ciwrap_run* const run = ciwrap_open("test", 0, 1);
    ciwrap_add(run, &array);
    ciwrap_checkpoint(run, 0, CIWRAP_IN_PLACE);
    EXPECT_EQ(ciwrap_close(run), 0);
    const std::uint64_t size = std::filesystem::file_size(journal());
    EXPECT_EQ(ciwrap_close(run), 0);
    EXPECT_EQ(ciwrap_remove(run, 0), -1);
    EXPECT_EQ(ciwrap_add(run, &array), -1);
    EXPECT_EQ(ciwrap_should_stop(run), 0);
    EXPECT_EQ(ciwrap_checkpoint(run, 1, CIWRAP_IN_PLACE), -1);
    EXPECT_EQ(ciwrap_prepare(run, 2, ""), -1);
    EXPECT_EQ(ciwrap_expose(run, &array), -1);
    EXPECT_EQ(ciwrap_complete(run), -1);
    EXPECT_EQ(std::filesystem::file_size(journal()), size);
    // What was lost is said: without it, the run would be all there.
    int lost = 0;
    for (const auto& one : std::filesystem::directory_iterator(this->run()))
        lost += one.path().filename().string().starts_with("unrecorded-") ? 1 : 0;
    EXPECT_EQ(lost, 1);
}

TEST_F(LibraryTest, HasOneRunInAFolder) {
    ciwrap_run* const run = ciwrap_open("test", 0, 1);
    EXPECT_EQ(ciwrap_open("test", 0, 1), nullptr);
    EXPECT_EQ(ciwrap_close(run), 0);
    ciwrap_run* const again = ciwrap_open("test", 0, 1);
    ASSERT_NE(again, nullptr);
    ciwrap_close(again);
}

}  // namespace
}  // namespace ciwrap::record
