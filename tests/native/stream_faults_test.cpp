// Streams and trees over files whose reads fail half way, come short, or that are written
// meanwhile: what was not read is never compared.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/stream_compare.hpp"
#include "core/stream_session.hpp"
#include "core/tree_from_file.hpp"
#include "io_fixtures.hpp"
#include "read_faults.hpp"

namespace ciwrap::testing {
namespace {

class Faults : public IoFiles, public ::testing::WithParamInterface<EngineKind> {
  protected:
    struct Made {
        StreamJob job;
        std::uint64_t differing;
    };

    // Two files of floats, of which every `step`-th differs; long unchanged, so that a change
    // shows.
    Made make(const std::string& name, std::size_t elements, std::size_t step) {
        std::vector<float> golden(elements);
        for (std::size_t i = 0; i < elements; ++i)
            golden[i] = static_cast<float>(i % 1000);
        std::vector<float> value = golden;
        for (std::size_t i = 0; i < elements; i += step)
            value[i] += 1;
        Made made;
        made.job.parameters = StatedParameters{.dtype = "<f4"};
        made.job.golden_path = write(name + ".a", golden);
        made.job.value_path = write(name + ".b", value);
        made.job.byte_count = elements * sizeof(float);
        made.differing = (elements - 1) / step + 1;
        return made;
    }

    std::vector<StreamOutcome> run(const std::vector<Made>& made, DirectReads direct) {
        std::vector<StreamJob> jobs;
        for (const Made& one : made)
            jobs.push_back(one.job);
        StreamOptions options;
        options.engine.kind = GetParam();
        options.direct = direct;
        options.memory_bytes = std::size_t{1} << 20;
        return stream_compare(jobs, options, resolve_execution("serial", 1)).outcomes;
    }

    static void expect_right(const StreamOutcome& outcome, const Made& made) {
        ASSERT_FALSE(outcome.error) << outcome.error->what();
        EXPECT_EQ(outcome.comparison.element_count, made.job.byte_count / sizeof(float));
        EXPECT_EQ(outcome.comparison.differing_count, made.differing);
    }

  private:
    std::string write(const std::string& name, const std::vector<float>& values) {
        const std::filesystem::path path = directory_ / name;
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(values.data()),
                   static_cast<std::streamsize>(values.size() * sizeof(float)));
        std::filesystem::last_write_time(
            path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24));
        return path.string();
    }
};
INSTANTIATE_TEST_SUITE_P(Engines, Faults, ::testing::ValuesIn(usable_engines()),
                         [](const auto& kind) { return engine_name(kind.param); });

constexpr DirectReads ways[] = {DirectReads::always, DirectReads::never};

// Many jobs lie in one slice, so that its batch fails for all of them.
TEST_P(Faults, AReadThatFailsIsItsJobsErrorAndNoOthers) {
    std::vector<Made> made;
    for (const char* name : {"p", "q", "r"})
        made.push_back(make(name, 20'000, 100));
    for (const DirectReads direct : ways) {
        for (const bool is_golden : {true, false}) {
            const std::string bad = is_golden ? made[1].job.golden_path : made[1].job.value_path;
            const FaultyReads faulty([&](const ReadRequest& read, long result) {
                return read.file->path() == bad ? fail(read, EIO) : result;
            });
            const auto outcomes = run(made, direct);
            expect_right(outcomes[0], made[0]);
            expect_right(outcomes[2], made[2]);
            ASSERT_TRUE(outcomes[1].error);
            EXPECT_EQ(outcomes[1].error->code(), ErrorCode::io);
            EXPECT_EQ(std::string(outcomes[1].error->what()).rfind(bad + ": cannot be read", 0), 0U)
                << outcomes[1].error->what();
        }
    }
}

// Both sides' buffers hold the same then, whatever they hold.
TEST_P(Faults, AReadThatFailsHalfWayThroughALongJobIsItsError) {
    const std::vector<Made> made{make("long", 2'000'000, 1000), make("other", 50'000, 7)};
    for (const DirectReads direct : ways) {
        const FaultyReads faulty([&](const ReadRequest& read, long result) {
            const bool is_bad = read.file->path().find("long") != std::string::npos;
            return is_bad && read.offset >= 5'000'000 ? fail(read, EIO) : result;
        });
        const auto outcomes = run(made, direct);
        ASSERT_TRUE(outcomes[0].error);
        EXPECT_EQ(outcomes[0].error->code(), ErrorCode::io);
        expect_right(outcomes[1], made[1]);
    }
}

TEST_P(Faults, AReadThatFailsOnceIsReadAgain) {
    const std::vector<Made> made{make("long", 500'000, 1000), make("other", 50'000, 7)};
    for (const DirectReads direct : ways) {
        bool has_failed = false;
        const FaultyReads faulty([&](const ReadRequest& read, long result) {
            const bool is_bad = read.file->path() == made[0].job.value_path;
            if (!is_bad || read.offset < 600'000 || std::exchange(has_failed, true))
                return result;
            return fail(read, EIO);
        });
        const auto outcomes = run(made, direct);
        expect_right(outcomes[0], made[0]);
        expect_right(outcomes[1], made[1]);
        EXPECT_TRUE(has_failed);
    }
}

TEST_P(Faults, WhatComesShortIsReadOn) {
    const std::vector<Made> made{make("long", 700'000, 1000), make("short", 10, 3)};
    for (const DirectReads direct : ways) {
        // Reads past the cache go on at whole blocks only.
        const FaultyReads faulty([&](const ReadRequest& read, long result) {
            return only(read, result, 5 * static_cast<long>(direct_alignment));
        });
        const auto outcomes = run(made, direct);
        expect_right(outcomes[0], made[0]);
        expect_right(outcomes[1], made[1]);
    }
}

TEST_P(Faults, AFileCutMeanwhileIsItsJobsError) {
    for (const DirectReads direct : ways) {
        const std::vector<Made> made{make("long", 2'000'000, 1000), make("other", 50'000, 7)};
        const FaultyReads faulty([&](const ReadRequest& read, long result) {
            if (read.file->path() == made[0].job.value_path && read.offset < 4096)
                std::filesystem::resize_file(made[0].job.value_path, 6'000'001);
            return result;
        });
        const auto outcomes = run(made, direct);
        ASSERT_TRUE(outcomes[0].error);
        EXPECT_EQ(outcomes[0].error->code(), ErrorCode::corrupt_file);
        expect_right(outcomes[1], made[1]);
    }
}

// At a place that has been read already, with the time of change set back as well.
void overwrite(const std::string& path) {
    const auto before = std::filesystem::last_write_time(path);
    const int file = ::open(path.c_str(), O_WRONLY);
    ASSERT_GE(file, 0);
    EXPECT_EQ(::pwrite(file, "abcd", 4, 40), 4);
    EXPECT_EQ(::close(file), 0);
    std::filesystem::last_write_time(path, before);
}

TEST_P(Faults, AFileWrittenInPlaceWhileItIsReadIsItsJobsError) {
    for (const DirectReads direct : ways) {
        for (const bool is_golden : {true, false}) {
            const std::vector<Made> made{make("long", 1'000'000, 1000), make("other", 50'000, 7)};
            const std::string path = is_golden ? made[0].job.golden_path : made[0].job.value_path;
            bool is_done = false;
            const FaultyReads faulty([&](const ReadRequest& read, long result) {
                if (read.file->path() == path && read.offset > 2'000'000 && !is_done) {
                    is_done = true;
                    overwrite(path);
                }
                return result;
            });
            const auto outcomes = run(made, direct);
            EXPECT_TRUE(is_done);
            ASSERT_TRUE(outcomes[0].error);
            EXPECT_EQ(outcomes[0].error->code(), ErrorCode::corrupt_file);
            EXPECT_EQ(outcomes[0].error->what(), path + ": was written while it was read");
            expect_right(outcomes[1], made[1]);
        }
    }
}

TEST_P(Faults, AJobIsHeldAgainstTheStampsOfItsFiles) {
    std::vector<Made> made{make("p", 1000, 10), make("q", 1000, 10), make("r", 1000, 10)};
    for (Made& one : made) {
        one.job.golden_stamp = FileStamp::of(one.job.golden_path);
        one.job.value_stamp = FileStamp::of(one.job.value_path);
    }
    overwrite(made[0].job.golden_path);
    overwrite(made[1].job.value_path);
    const auto outcomes = run(made, DirectReads::never);
    EXPECT_EQ(outcomes[0].error->what(),
              made[0].job.golden_path + ": was written while it was read");
    EXPECT_EQ(outcomes[1].error->what(),
              made[1].job.value_path + ": was written while it was read");
    expect_right(outcomes[2], made[2]);
}

TEST_P(Faults, ASessionTellsOfAFailedReadAtItsJob) {
    const std::vector<Made> made{make("p", 300'000, 10), make("q", 300'000, 10)};
    const FaultyReads faulty([&](const ReadRequest& read, long result) {
        const bool is_bad = read.file->path() == made[1].job.golden_path;
        return is_bad && read.offset > 600'000 ? fail(read, EIO) : result;
    });
    StreamOptions options;
    options.engine.kind = GetParam();
    StreamSession session(options, {});
    for (int i = 0; i < 6; ++i)
        EXPECT_EQ(session.add(made[static_cast<std::size_t>(i % 2)].job),
                  static_cast<std::size_t>(i));
    (void)session.close();
    const auto done = session.take_done(true);
    ASSERT_EQ(done.size(), 6U);
    for (const StreamSession::Done& one : done) {
        if (one.job % 2 == 0) {
            expect_right(one.outcome, made[0]);
        } else {
            ASSERT_TRUE(one.outcome.error);
            EXPECT_EQ(one.outcome.error->code(), ErrorCode::io);
        }
    }
}

TEST_P(Faults, ATreeOfAFileIsWholeOrThereIsNone) {
    ReadEngine engine({.kind = GetParam(), .queue_depth = 1, .threads = 1});
    const Made made = make("tree", 1'000'000, 10);
    const std::string path = made.job.value_path;
    const auto build = [&](DirectReads direct, TreeBuilder& builder) {
        TreeBuilder* const builders[] = {&builder};
        update_from_file(builders, engine, path, 0, made.job.byte_count,
                         {.slab_bytes = std::size_t{1} << 19, .direct = direct});
        return builder.finish()->root();
    };
    const auto fresh = [&] {
        return TreeBuilder(made.job.parameters, 1'000'000, nullptr, resolve_execution("serial", 1));
    };
    for (const DirectReads direct : ways) {
        (void)make("tree", 1'000'000, 10);  // anew
        TreeBuilder first = fresh();
        const Digest whole = build(direct, first);
        {
            const FaultyReads faulty([](const ReadRequest& read, long result) {
                return only(read, result, static_cast<long>(direct_alignment));
            });
            TreeBuilder builder = fresh();
            EXPECT_EQ(build(direct, builder), whole);
        }
        {
            const FaultyReads faulty([](const ReadRequest& read, long result) {
                return read.offset >= 2'000'000 ? fail(read, EIO) : result;
            });
            TreeBuilder builder = fresh();
            EXPECT_EQ(error_of([&] { (void)build(direct, builder); }).first, ErrorCode::io);
            EXPECT_EQ(error_of([&] { (void)builder.finish(); }).first, ErrorCode::invalid_argument);
        }
        bool is_done = false;
        const FaultyReads faulty([&](const ReadRequest& read, long result) {
            if (read.offset >= 2'000'000 && !is_done) {
                is_done = true;
                overwrite(path);
            }
            return result;
        });
        TreeBuilder builder = fresh();
        const auto [code, text] = error_of([&] { (void)build(direct, builder); });
        EXPECT_EQ(code, ErrorCode::corrupt_file);
        EXPECT_EQ(text, path + ": was written while it was read");
    }
}

}  // namespace
}  // namespace ciwrap::testing
