// Many arrays in one stream: every engine, through the cache and past it, in little memory, against
// a comparison of the same bytes in memory; and files that are missing, short or cut meanwhile.
#include "core/stream_compare.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "core/read_plan.hpp"
#include "core/stream_session.hpp"
#include "io_fixtures.hpp"

namespace ciwrap::testing {
namespace {

using Bytes = std::vector<std::byte>;

class StreamTest : public IoFiles {
  protected:
    std::string write(const std::string& name, const Bytes& bytes, std::size_t offset) {
        const std::string path = (directory_ / name).string();
        std::ofstream out(path, std::ios::binary);
        const std::string before(offset, '#');
        out.write(before.data(), static_cast<std::streamsize>(before.size()));
        out.write(reinterpret_cast<const char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
        return path;
    }

    struct Made {
        StreamJob job;
        Bytes golden;
        Bytes value;
    };

    // Floats of which about one in `rarity` differs.
    Made make(std::mt19937_64& random, const std::string& dtype, std::size_t elements,
              std::size_t offset, std::uint64_t rarity) {
        Made made;
        made.job.parameters = StatedParameters{.dtype = dtype, .atol = 0.5, .chunk_bytes = 4096};
        const std::size_t size = dtype == "<f8" ? 8 : 4;
        made.golden.resize(elements * size);
        made.value.resize(elements * size);
        for (std::size_t i = 0; i < elements; ++i) {
            const double g = static_cast<double>(random() % 1000);
            const double v = random() % rarity == 0 ? g + 1 : g + 0.25;
            if (size == 8) {
                std::memcpy(made.golden.data() + i * 8, &g, 8);
                std::memcpy(made.value.data() + i * 8, &v, 8);
            } else {
                const auto g4 = static_cast<float>(g);
                const auto v4 = static_cast<float>(v);
                std::memcpy(made.golden.data() + i * 4, &g4, 4);
                std::memcpy(made.value.data() + i * 4, &v4, 4);
            }
        }
        const std::string number = std::to_string(random());
        made.job.golden_path = write(number + ".a", made.golden, offset);
        made.job.value_path = write(number + ".b", made.value, 2 * offset);
        made.job.golden_offset = offset;
        made.job.value_offset = 2 * offset;
        made.job.byte_count = made.golden.size();
        return made;
    }

    static Comparison in_memory(const Made& made) {
        ElementComparer comparer(made.job.parameters, 100, {});
        const std::size_t chunk = made.job.parameters.chunk_bytes();
        const std::size_t element = made.job.parameters.data_type().element_bytes();
        std::vector<std::uint64_t> leaves;
        if (made.job.leaves) {
            leaves = *made.job.leaves;
        } else {
            for (std::size_t at = 0; at < made.golden.size(); at += chunk)
                leaves.push_back(at / chunk);
        }
        for (const std::uint64_t leaf : leaves) {
            const std::size_t from = static_cast<std::size_t>(leaf) * chunk;
            const std::size_t length = std::min(chunk, made.golden.size() - from);
            comparer.update(std::span(made.golden).subspan(from, length),
                            std::span(made.value).subspan(from, length), from / element);
        }
        return comparer.result();
    }

    static std::vector<StreamJob> jobs_of(const std::vector<Made>& made) {
        std::vector<StreamJob> jobs;
        for (const Made& one : made)
            jobs.push_back(one.job);
        return jobs;
    }
};

// On the host, and with the device's source on the host.
class StreamOn : public StreamTest, public ::testing::WithParamInterface<const char*> {
  protected:
    static Execution where() { return resolve_execution(GetParam(), 0); }
};
INSTANTIATE_TEST_SUITE_P(Backends, StreamOn, ::testing::Values("auto", "portable"),
                         [](const auto& backend) { return std::string(backend.param); });

TEST_P(StreamOn, FindsWhatAComparisonInMemoryFinds) {
    std::mt19937_64 random(7);
    std::vector<Made> made;
    for (const std::size_t elements : {1UL, 1000UL, 1024UL, 1025UL, 50'000UL, 700'001UL, 0UL}) {
        for (const std::size_t offset : {0UL, 128UL, 4096UL, 5001UL}) {
            made.push_back(make(random, elements % 2 == 0 ? "<f4" : "<f8", elements, offset,
                                1 + random() % 99));
            StreamJob& job = made.back().job;
            if (random() % 5 == 0) {  // no kernel for that: compared element by element
                job.parameters = StatedParameters{
                    .dtype = job.parameters.dtype(), .ulps = 3, .chunk_bytes = 4096};
            }
            const std::uint64_t chunks = (job.byte_count + 4095) / 4096;
            if (random() % 3 != 0) {
                job.leaves.emplace();
                for (std::uint64_t leaf = 0; leaf < chunks; ++leaf) {
                    if (random() % 3 == 0)
                        job.leaves->push_back(leaf);
                }
            }
        }
    }
    const std::vector<StreamJob> jobs = jobs_of(made);
    std::vector<Comparison> all_wanted;
    for (const Made& one : made)
        all_wanted.push_back(in_memory(one));
    for (const EngineKind engine : usable_engines()) {
        for (const DirectReads direct :
             {DirectReads::automatic, DirectReads::always, DirectReads::never}) {
            for (const std::size_t memory : {std::size_t{1} << 20, std::size_t{64} << 20}) {
                std::map<std::size_t, std::vector<std::int64_t>> listed;
                const DifferenceSink sink =
                    [&](std::size_t job, std::span<const std::int64_t> indices,
                        std::span<const std::byte> golden, std::span<const std::byte> value) {
                        const std::size_t size = golden.size() / indices.size();
                        ASSERT_EQ(golden.size(), value.size());
                        bool same = true;  // one assertion for all: there are millions
                        for (std::size_t i = 0; i < indices.size(); ++i) {
                            const auto at = static_cast<std::size_t>(indices[i]) * size;
                            same = same &&
                                   std::memcmp(made[job].golden.data() + at,
                                               golden.data() + i * size, size) == 0 &&
                                   std::memcmp(made[job].value.data() + at, value.data() + i * size,
                                               size) == 0;
                        }
                        ASSERT_TRUE(same);
                        listed[job].insert(listed[job].end(), indices.begin(), indices.end());
                    };
                StreamOptions options;
                options.engine.kind = engine;
                options.direct = direct;
                options.memory_bytes = memory;
                const StreamReport report = stream_compare(jobs, options, where(), {}, sink);
                EXPECT_LE(report.totals.buffer_bytes, memory);
                EXPECT_EQ(report.totals.engine, engine_name(engine));
                std::uint64_t least = 0;
                for (std::size_t job = 0; job < jobs.size(); ++job) {
                    const Comparison& wanted = all_wanted[job];
                    const StreamOutcome& found = report.outcomes[job];
                    ASSERT_FALSE(found.error) << found.error->what();
                    EXPECT_EQ(found.comparison.element_count, wanted.element_count);
                    EXPECT_EQ(found.comparison.differing_count, wanted.differing_count);
                    EXPECT_EQ(found.comparison.indices, wanted.indices);
                    EXPECT_EQ(found.comparison.histogram, wanted.histogram);
                    EXPECT_EQ(found.comparison.max_abs_index, wanted.max_abs_index);
                    EXPECT_EQ(found.comparison.max_bound_share, wanted.max_bound_share);
                    EXPECT_EQ(listed[job].size(), wanted.differing_count);
                    const std::size_t size = jobs[job].parameters.data_type().element_bytes();
                    const std::size_t kept = std::min<std::size_t>(wanted.indices.size(), 10);
                    ASSERT_EQ(found.first_golden.size(), kept * size);
                    ASSERT_EQ(found.first_value.size(), kept * size);
                    for (std::size_t i = 0; i < kept; ++i) {
                        const auto at = static_cast<std::size_t>(wanted.indices[i]) * size;
                        EXPECT_EQ(std::memcmp(found.first_golden.data() + i * size,
                                              made[job].golden.data() + at, size),
                                  0);
                        EXPECT_EQ(std::memcmp(found.first_value.data() + i * size,
                                              made[job].value.data() + at, size),
                                  0);
                    }
                    EXPECT_TRUE(std::is_sorted(listed[job].begin(), listed[job].end()));
                    least +=
                        2 * wanted.element_count * jobs[job].parameters.data_type().element_bytes();
                }
                EXPECT_GE(report.totals.bytes_read, least);
                EXPECT_LE(report.totals.direct_bytes_read, report.totals.bytes_read);
                if (direct == DirectReads::never) {
                    EXPECT_EQ(report.totals.bytes_read, least);
                    EXPECT_EQ(report.totals.direct_bytes_read, 0U);
                }
            }
        }
    }
}

TEST_P(StreamOn, OneBadFileStopsNoOther) {
    std::mt19937_64 random(8);
    std::vector<Made> made;
    for (int i = 0; i < 6; ++i)
        made.push_back(make(random, "<f4", 300'000, 128, 50));
    std::vector<StreamJob> jobs = jobs_of(made);
    jobs[0].golden_path += ".none";
    jobs[2].byte_count += 4;                               // more than there is
    jobs[3].leaves = std::vector<std::uint64_t>{5, 5};     // not ascending
    jobs[4].leaves = std::vector<std::uint64_t>{1 << 20};  // not there
    for (const EngineKind engine : usable_engines()) {
        StreamOptions options;
        options.engine.kind = engine;
        options.memory_bytes = std::size_t{1} << 20;
        const StreamReport report = stream_compare(jobs, options, where());
        const auto code = [&](std::size_t job) { return report.outcomes[job].error->code(); };
        EXPECT_EQ(code(0), ErrorCode::io);
        EXPECT_EQ(code(2), ErrorCode::corrupt_file);
        EXPECT_EQ(code(3), ErrorCode::invalid_argument);
        EXPECT_EQ(code(4), ErrorCode::invalid_argument);
        for (const std::size_t job : {1UL, 5UL}) {
            ASSERT_FALSE(report.outcomes[job].error);
            EXPECT_EQ(report.outcomes[job].comparison.differing_count,
                      in_memory(made[job]).differing_count);
        }
    }
}

// Cut from inside the sink, that is, while later parts are still to be read.
TEST_P(StreamOn, AFileCutMeanwhileIsItsJobsErrorAlone) {
    for (const EngineKind engine : usable_engines()) {
        for (const DirectReads direct : {DirectReads::always, DirectReads::never}) {
            std::mt19937_64 random(9);
            std::vector<Made> made;
            made.push_back(make(random, "<f4", 2'000'000, 128, 50));
            made.push_back(make(random, "<f8", 500'000, 128, 50));
            StreamOptions options;
            options.engine.kind = engine;
            options.direct = direct;
            options.memory_bytes = std::size_t{1} << 20;
            bool is_cut = false;
            const StreamReport report = stream_compare(
                jobs_of(made), options, where(), {},
                [&](std::size_t, std::span<const std::int64_t>, std::span<const std::byte>,
                    std::span<const std::byte>) {
                    if (!is_cut)
                        std::filesystem::resize_file(made[0].job.value_path, 5'000'001);
                    is_cut = true;
                });
            ASSERT_TRUE(report.outcomes[0].error);
            EXPECT_EQ(report.outcomes[0].error->code(), ErrorCode::corrupt_file)
                << report.outcomes[0].error->what();
            ASSERT_FALSE(report.outcomes[1].error);
            EXPECT_EQ(report.outcomes[1].comparison.differing_count,
                      in_memory(made[1]).differing_count);
        }
    }
}

TEST_F(StreamTest, RefusesWhatMakesNoSense) {
    StreamOptions options;
    options.memory_bytes = 1000;
    EXPECT_EQ(error_of([&] { (void)stream_compare(std::vector<StreamJob>{}, options, {}); }).first,
              ErrorCode::invalid_argument);
    options.memory_bytes = std::size_t{1} << 20;
    EXPECT_EQ(stream_compare(std::vector<StreamJob>{}, options, {}).totals.bytes_read, 0U);
}

TEST_P(StreamOn, WhatTheSinkThrowsEndsIt) {
    std::mt19937_64 random(10);
    const Made made = make(random, "<f4", 2'000'000, 0, 50);
    EXPECT_THROW((void)stream_compare(
                     std::vector{made.job}, {}, where(), {},
                     [](std::size_t, std::span<const std::int64_t>, std::span<const std::byte>,
                        std::span<const std::byte>) { throw std::runtime_error("disk full"); }),
                 std::runtime_error);
}

TEST_P(StreamOn, ASessionFindsTheSameWheneverJobsCome) {
    std::mt19937_64 random(11);
    std::vector<Made> made;
    for (const std::size_t elements : {1000UL, 0UL, 700'001UL, 1UL, 2'000'000UL})
        made.push_back(make(random, "<f4", elements, 128, 50));
    made[3].job.golden_path += ".none";
    for (const EngineKind engine : usable_engines()) {
        for (const int pause : {0, 1, 20}) {
            StreamOptions options;
            options.engine.kind = engine;
            std::map<std::size_t, StreamOutcome> outcomes;
            const auto take = [&](std::vector<StreamSession::Done> done) {
                for (StreamSession::Done& one : done)
                    EXPECT_TRUE(outcomes.emplace(one.job, std::move(one.outcome)).second);
            };
            StreamSession session(options, where());
            EXPECT_TRUE(session.take_done(true).empty());  // there is nothing to wait for
            for (std::size_t i = 0; i < made.size(); ++i) {
                EXPECT_EQ(session.add(made[i].job), i);
                std::this_thread::sleep_for(std::chrono::milliseconds(pause));
                take(session.take_done(pause == 20 && i == 2));
            }
            const StreamTotals totals = session.close();
            take(session.take_done(true));
            EXPECT_EQ(error_of([&] { (void)session.add(made[0].job); }).first,
                      ErrorCode::invalid_argument);
            EXPECT_EQ(totals.engine, engine_name(engine));
            ASSERT_EQ(outcomes.size(), made.size());
            for (std::size_t i = 0; i < made.size(); ++i) {
                if (i == 3) {
                    EXPECT_EQ(outcomes[i].error->code(), ErrorCode::io);
                    continue;
                }
                ASSERT_FALSE(outcomes[i].error);
                EXPECT_EQ(outcomes[i].comparison.indices, in_memory(made[i]).indices);
            }
        }
    }
}

TEST_P(StreamOn, ASessionTellsOnceWhatEndedIt) {
    std::mt19937_64 random(12);
    const Made made = make(random, "<f4", 2'000'000, 0, 50);
    {
        StreamSession session(
            {}, {},
            [](std::size_t, std::span<const std::int64_t>, std::span<const std::byte>,
               std::span<const std::byte>) { throw std::runtime_error("full"); });
        (void)session.add(made.job);
        EXPECT_THROW((void)session.take_done(true), std::runtime_error);
        for (int i = 0; i < 2; ++i) {
            EXPECT_EQ(error_of([&] { (void)session.take_done(true); }).first,
                      ErrorCode::interrupted);
            EXPECT_EQ(error_of([&] { (void)session.add(made.job); }).first, ErrorCode::interrupted);
            EXPECT_EQ(error_of([&] { (void)session.close(); }).first, ErrorCode::interrupted);
        }
    }
    StreamOptions options;
    options.memory_bytes = 1000;
    StreamSession session(options, where());
    EXPECT_EQ(error_of([&] { (void)session.close(); }).first, ErrorCode::invalid_argument);
}

TEST_P(StreamOn, ASessionCanBeGivenUpAndInterrupted) {
    std::mt19937_64 random(13);
    const Made made = make(random, "<f4", 2'000'000, 0, 50);
    for (int repetition = 0; repetition < 5; ++repetition) {
        StreamSession session({}, where());
        for (int i = 0; i < 200; ++i)
            (void)session.add(made.job);
        if (repetition == 1)
            (void)session.take_done(true);
        if (repetition >= 2) {
            EXPECT_THROW((void)session.close([] { throw std::runtime_error("Ctrl-C"); }),
                         std::runtime_error);
        }
    }
}

TEST_F(StreamTest, DirectReadsStayInsideTheFileAndBringTheRightBytes) {
    const std::string path = make_file("a.bin", 1'000'003);
    const StoredRange side(path, 100, 999'903, DirectReads::always, Access::scattered);
    ReadEngine engine;
    for (const std::uint64_t from : {0UL, 1UL, 3996UL, 4095UL, 990'000UL, 999'000UL, 999'902UL}) {
        for (const std::size_t length : {1UL, 4096UL, 9903UL}) {
            if (from + length > 999'903)
                continue;
            const std::size_t room = (StoredRange::room_for(length) + 4095) / 4096 * 4096;
            ReadBuffers buffers = engine.make_buffers(1, room);
            std::vector<ReadRequest> requests;
            const std::byte* at = side.plan(from, length, buffers[0].data(), requests);
            for (const ReadRequest& request : requests) {
                ASSERT_GE(request.destination, buffers[0].data());
                ASSERT_LE(request.destination + request.length,
                          buffers[0].data() + buffers[0].size());
            }
            engine.read(requests);
            EXPECT_EQ(first_wrong_byte({at, length}, 100 + from), -1)
                << "from " << from << ", length " << length;
        }
    }
}

}  // namespace
}  // namespace ciwrap::testing
