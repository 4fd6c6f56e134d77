#include "record/online.hpp"

#include <random>
#include <thread>

#include "ciwrap/error.hpp"
#include "record/recorder.hpp"
#include "record_fixtures.hpp"

namespace ciwrap::record {
namespace {

class OnlineTest : public RecordTest {
  protected:
    void SetUp() override {
        RecordTest::SetUp();
        table_ = (folder_ / "bounds.txt").string();
        std::ofstream(table_) << "ciwrap-bounds 3\n*\t*\t1e-3 0 0\t-\t512\t-\t15\n";
        std::mt19937 random(3);
        std::normal_distribution<double> normal;
        for (double& value : values_)
            value = normal(random);
    }

    std::string named(const char* name) const { return (folder_ / name).string(); }

    OnlineOptions against(const char* name, OnDivergence policy = OnDivergence::stop) const {
        OnlineOptions options;
        options.against = named(name);
        options.on_divergence = policy;
        options.patience = 0;
        options.wait_seconds = 20;
        return options;
    }

    // The values of an iteration; one of them moved by so many bounds.
    std::vector<double> at(int iteration, double moved = 0, std::size_t place = 0) const {
        std::vector<double> found = values_;
        for (double& value : found)
            value += 0.01 * iteration;
        found[place] += 1e-3 * moved;
        return found;
    }

    void record_reference(const char* name, int iterations) const {
        Recorder recorder(named(name), "test", 0, 1, table_);
        for (int n = 0; n < iterations; ++n) {
            const std::vector<double> now = at(n);
            if (n == 0)
                recorder.add(doubles("x", now));
            recorder.move(0, now.data());
            recorder.checkpoint(n, "p", CIWRAP_IN_PLACE);
        }
        EXPECT_EQ(recorder.close(), 0);
    }

    std::string table_;
    std::vector<double> values_ = std::vector<double>(3000);
};

TEST_F(OnlineTest, KnowsAtOnceWhatDoesNotMatch) {
    record_reference("a", 6);
    Recorder recorder(named("b"), "test", 0, 1, "", against("a"));
    for (int n = 0; n < 6; ++n) {
        const std::vector<double> now = at(n, n < 4 ? 0.8 : 1.2, 1717);
        if (n == 0)
            recorder.add(doubles("x", now));
        recorder.move(0, now.data());
        recorder.checkpoint(n, "p", CIWRAP_IN_PLACE);
        EXPECT_EQ(recorder.should_stop(), n >= 4) << n;
    }
    EXPECT_EQ(recorder.close(), 0);
}

TEST_F(OnlineTest, KeepsElementsOfWhatWasExposed) {
    record_reference("a", 2);
    Recorder recorder(named("b"), "test", 0, 1, "", against("a"));
    for (int n = 0; n < 2; ++n) {
        std::vector<double> now = at(n, n < 1 ? 0 : 1.2, 1717);
        recorder.prepare(n, "p");
        recorder.expose(doubles("x", now));
        std::vector<double>().swap(now);
        recorder.complete();
        EXPECT_EQ(recorder.should_stop(), n == 1);
    }
    EXPECT_EQ(recorder.close(), 0);
    EXPECT_GT(std::filesystem::file_size(named("b") + "/000/rank-000000.cwr"), 512U);
}

TEST_F(OnlineTest, RefusesAReferenceOfAnotherNumberOfProcessesAtOnce) {
    record_reference("a", 1);
    for (const int rank : {0, 3}) {  // the reference has no journal of rank 3 to wait for
        for (const OnDivergence policy : {OnDivergence::report, OnDivergence::stop}) {
            Recorder recorder(named("b"), "test", rank, 4, "", against("a", policy));
            EXPECT_EQ(recorder.should_stop(), policy == OnDivergence::stop);
            char text[400];
            EXPECT_EQ(recorder.error().last(text, sizeof text), CIWRAP_NO_REFERENCE);
            EXPECT_NE(std::string(text).find("by 1 processes, and this program has 4"),
                      std::string::npos)
                << text;
            recorder.close();
        }
    }
}

// A callback may do whatever a program may.
TEST_F(OnlineTest, LetsACallbackClose) {
    record_reference("a", 2);
    Recorder recorder(named("b"), "test", 0, 1, "", against("a", OnDivergence::callback));
    const std::vector<double> now = at(0, 1.5);
    recorder.add(doubles("x", now));
    recorder.on_divergence(
        [](void* data, const ciwrap_divergence*) { static_cast<Recorder*>(data)->close(); },
        &recorder);
    EXPECT_EQ(recorder.checkpoint(0, "p", CIWRAP_IN_PLACE), 0);
    EXPECT_EQ(recorder.checkpoint(1, "p", CIWRAP_IN_PLACE), Recorder::lost);
    EXPECT_EQ(recorder.close(), 0);
}

TEST_F(OnlineTest, ComparesWhoeverHashes) {
    record_reference("a", 3);
    Recorder recorder(named("b"), "test", 0, 1, "", against("a"));
    const std::vector<double> right = at(0);
    const std::vector<double> wrong = at(1, -1.5, 2999);
    recorder.add(doubles("x", right));
    for (int n = 0; n < 2; ++n) {
        recorder.move(0, n == 0 ? right.data() : wrong.data());
        ASSERT_EQ(recorder.prepare(n, "p"), 0);
        std::thread one([&] { recorder.work(); });
        std::thread two([&] { recorder.work(); });
        one.join();
        two.join();
        ASSERT_EQ(recorder.complete(), 0);
        EXPECT_EQ(recorder.should_stop(), n == 1);
    }
    EXPECT_EQ(recorder.close(), 0);
}

// Both in one process: the second one reads what the first one's thread writes.
TEST_F(OnlineTest, FollowsAReferenceThatGrows) {
    Recorder first(named("a"), "test", 0, 1, table_);
    const std::vector<double> begin = at(0);
    first.add(doubles("x", begin));
    std::thread slow([&] {
        for (int n = 0; n < 30; ++n) {
            const std::vector<double> now = at(n);
            first.move(0, now.data());
            first.checkpoint(n, "p", CIWRAP_IN_PLACE);
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
        }
    });
    Recorder second(named("b"), "test", 0, 1, "", against("a"));
    second.add(doubles("x", begin));
    for (int n = 0; n < 30; ++n) {
        const std::vector<double> now = at(n, n == 29 ? 3.0 : 0.5, 42);
        second.move(0, now.data());
        second.checkpoint(n, "p", CIWRAP_IN_PLACE);
        EXPECT_EQ(second.should_stop(), n == 29) << n;
    }
    slow.join();
    EXPECT_EQ(first.close(), 0);
    EXPECT_EQ(second.close(), 0);
}

TEST_F(OnlineTest, CallsBackAndMayBeCalled) {
    record_reference("a", 4);
    Recorder recorder(named("b"), "test", 0, 1, "", against("a", OnDivergence::callback));
    const std::vector<double> wrong = at(0, 5, 1000);
    recorder.add(doubles("x", wrong));
    struct Told {
        Recorder& recorder;
        int count = 0;
    } told{recorder};
    recorder.on_divergence(
        [](void* data, const ciwrap_divergence* found) {
            auto& one = *static_cast<Told*>(data);
            ++one.count;
            EXPECT_EQ(found->iteration, 0);
            EXPECT_STREQ(found->point, "p");
            EXPECT_STREQ(found->variable, "x");
            EXPECT_EQ(found->suspect_chunks, 1u);
            EXPECT_EQ(found->chunks, 47u);
            EXPECT_EQ(one.recorder.find_name("x"), 0);  // takes the lock
        },
        &told);
    recorder.checkpoint(0, "p", CIWRAP_IN_PLACE);
    EXPECT_EQ(told.count, 1);
    EXPECT_FALSE(recorder.should_stop());
    EXPECT_EQ(recorder.close(), 0);
}

TEST_F(OnlineTest, SaysWhyThereIsNothingToCompareWith) {
    record_reference("a", 2);
    Reference reference(named("a") + journal_name(0), 0, 1, 0);
    std::string why;
    EXPECT_NE(reference.find(1, "p", "x", why), nullptr);
    EXPECT_EQ(reference.find(2, "p", "x", why), nullptr);
    EXPECT_NE(why.find("does not have it"), std::string::npos);
    EXPECT_EQ(reference.find(1, "q", "x", why), nullptr);
    EXPECT_FALSE(reference.parameters_of("y").has_value());
    EXPECT_TRUE(reference.parameters_of("x").has_value());
    EXPECT_THROW(Reference(named("a") + journal_name(0), 0, 2, 0), Error);
    Reference missing(named("nowhere") + journal_name(0), 0, 1, 0.05);
    EXPECT_EQ(missing.find(0, "p", "x", why), nullptr);
}

// What was read ahead is what is asked for, in whatever order a program goes.
TEST_F(OnlineTest, ReadsAheadWhatComesNext) {
    record_reference("a", 12);
    const std::string path = named("a") + journal_name(0);
    Reference ahead(path, 0, 1, 0);
    std::string why;
    std::mt19937 random(4);
    for (int round = 0; round < 200; ++round) {
        const auto iteration = static_cast<std::int64_t>(random() % 14);
        if (random() % 2 == 0)
            ahead.fetch_next(iteration - 1, random() % 8 == 0 ? "q" : "p");
        Reference fresh(path, 0, 1, 0);
        const auto expected = fresh.find(iteration, "p", "x", why);
        const auto found = ahead.find(iteration, "p", "x", why);
        ASSERT_EQ(found == nullptr, expected == nullptr) << round;
        ASSERT_EQ(found == nullptr, iteration >= 12) << round;
        if (found) {
            EXPECT_EQ(found->identity, expected->identity) << round;
            EXPECT_EQ(found->tree.digests, expected->tree.digests) << round;
        }
    }
}

// Trees of one checkpoint lie where those of another lay, of more or fewer elements, compared with
// the reference or not: nothing of what was there is left.
TEST_F(OnlineTest, LeavesNothingInMemoryThatIsUsedAgain) {
    record_reference("a", 8);
    const auto sized = [&](int n) {
        std::vector<double> now = at(n);
        if (n % 3 != 0)  // then it is of the reference's shape
            now.resize(static_cast<std::size_t>(700 * (n % 5) + 1));
        return now;
    };
    Recorder recorder(named("b"), "test", 0, 1, table_, against("a", OnDivergence::report));
    for (int n = 0; n < 16; ++n) {
        const std::vector<double> now = sized(n);
        if (n == 0)
            recorder.add(doubles("x", now));
        recorder.replace(0, doubles("x", now));
        recorder.checkpoint(n, "p", CIWRAP_IN_PLACE);
    }
    EXPECT_EQ(recorder.close(), 0);
    Reference found(named("b") + journal_name(0), 0, 1, 0);
    std::string why;
    for (int n = 0; n < 16; ++n) {
        if (n % 3 == 0 && n < 8)
            continue;  // of those there is no tree with residues
        const std::string alone = named("alone") + std::to_string(n);
        const std::vector<double> now = sized(n);
        Recorder one(alone, "test", 0, 1, table_);
        one.add(doubles("x", now));
        one.checkpoint(n, "p", CIWRAP_IN_PLACE);
        EXPECT_EQ(one.close(), 0);
        Reference expected(alone + journal_name(0), 0, 1, 0);
        const auto mine = found.find(n, "p", "x", why);
        const auto theirs = expected.find(n, "p", "x", why);
        ASSERT_TRUE(mine && theirs) << n << why;
        EXPECT_EQ(mine->identity, theirs->identity) << n;
        EXPECT_EQ(mine->tree.digests, theirs->tree.digests) << n;
    }
}

// Damage anywhere: what is found is what was written, or nothing.
TEST_F(OnlineTest, TakesNoDamageForTrees) {
    record_reference("a", 3);
    const std::string path = named("a") + journal_name(0);
    const std::vector<char> whole = bytes_of(path);
    std::string why;
    Reference right(path, 0, 1, 0);
    const Digest known = right.find(2, "p", "x", why)->identity;
    std::mt19937 random(9);
    for (int round = 0; round < 400; ++round) {
        std::vector<char> damaged = whole;
        for (unsigned i = 0; i <= random() % 3; ++i) {
            const std::size_t place = 64 + random() % (whole.size() - 64);
            damaged[place] = static_cast<char>(damaged[place] ^ (1 << random() % 8));
        }
        if (round % 3 == 0)
            damaged.resize(random() % damaged.size());
        std::ofstream(path, std::ios::binary | std::ios::trunc)
            .write(damaged.data(), static_cast<std::streamsize>(damaged.size()));
        try {
            Reference reference(path, 0, 1, 0);
            const auto found = reference.find(2, "p", "x", why);
            EXPECT_TRUE(found == nullptr || found->identity == known) << round;
        } catch (const Error&) {
            EXPECT_LT(damaged.size(), whole.size()) << round;
        }
    }
}

}  // namespace
}  // namespace ciwrap::record
