// Arrays on a device, of which there is none here: the second library with the host in its place.
// What is shown is that it is asked for the right things, and what becomes of its faults.
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "ciwrap/error.hpp"
#include "record/device_library.hpp"
#include "record/online.hpp"
#include "record/recorder.hpp"
#include "record_fixtures.hpp"

namespace ciwrap::record {
namespace {

class DeviceTest : public RecordTest {
  protected:
    static void SetUpTestSuite() {
        setenv("CIWRAP_RECORD_DEVICE_LIBRARY", CIWRAP_RECORD_DEVICE_LIBRARY_PATH, 1);
    }

    void SetUp() override {
        RecordTest::SetUp();
        table_ = (folder_ / "bounds.txt").string();
        std::ofstream(table_) << "ciwrap-bounds 3\n*\t*\t1e-3 0 0\t-\t512\t-\t15\n";
        std::mt19937 random(5);
        std::normal_distribution<double> normal;
        for (double& value : values_)
            value = normal(random);
    }

    std::string named(const char* name) const { return (folder_ / name).string(); }

    // Every second column of all rows but the first and the last, in another order than that of
    // memory.
    ciwrap_array inner(int location) const {
        ciwrap_array array = doubles("x", values_);
        array.location = location;
        array.data = values_.data() + 60;
        array.dimensions = 2;
        array.extents[0] = 30;
        array.strides[0] = 2;
        array.extents[1] = 48;
        array.strides[1] = 60;
        return array;
    }

    void record(const char* name, const ciwrap_array& array, int iterations) const {
        Recorder recorder(named(name), "test", 0, 1, table_);
        recorder.add(array);
        for (int n = 0; n < iterations; ++n)
            EXPECT_EQ(recorder.checkpoint(n, "", CIWRAP_IN_PLACE), 0);
        EXPECT_EQ(recorder.close(), 0);
    }

    Digest identity(const char* name, int iteration) const {
        Reference reference(named(name) + journal_name(0), 0, 1, 0);
        std::string why;
        const auto found = reference.find(iteration, "", "x", why);
        EXPECT_NE(found, nullptr) << why;
        return found ? found->identity : Digest{};
    }

    std::string table_;
    std::vector<double> values_ = std::vector<double>(3000);
};

TEST_F(DeviceTest, HasTheTreesOfTheHost) {
    record("host", inner(CIWRAP_HOST), 2);
    record("device", inner(CIWRAP_DEVICE), 2);
    EXPECT_EQ(identity("device", 1), identity("host", 1));
    ciwrap_array all = doubles("x", values_);
    record("host all", all, 1);
    all.location = CIWRAP_DEVICE;
    record("device all", all, 1);
    EXPECT_EQ(identity("device all", 0), identity("host all", 0));
    EXPECT_NE(identity("device all", 0), identity("host", 0));
}

TEST_F(DeviceTest, IsHeldAgainstARunOfTheHost) {
    record("host", inner(CIWRAP_HOST), 3);
    OnlineOptions options;
    options.against = named("host");
    options.on_divergence = OnDivergence::stop;
    options.patience = 0;
    Recorder recorder(named("device"), "test", 0, 1, "", options);
    recorder.add(inner(CIWRAP_DEVICE));
    values_[60 + 2 * 7 + 60 * 9] += 0.8e-3;
    recorder.checkpoint(0, "", CIWRAP_IN_PLACE);
    values_[61] += 5;  // of a column that is not recorded
    recorder.checkpoint(1, "", CIWRAP_IN_PLACE);
    EXPECT_FALSE(recorder.should_stop());
    values_[60 + 2 * 7 + 60 * 9] += 0.8e-3;
    recorder.checkpoint(2, "", CIWRAP_IN_PLACE);
    EXPECT_TRUE(recorder.should_stop());
    EXPECT_EQ(recorder.close(), 0);
}

TEST_F(DeviceTest, IsHashedByOneOfManyThreads) {
    record("host", inner(CIWRAP_HOST), 1);
    {
        Recorder recorder(named("device"), "test", 0, 1, table_);
        recorder.add(inner(CIWRAP_DEVICE));
        ASSERT_EQ(recorder.prepare(0, ""), 0);
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&] { recorder.work(); });
        for (std::thread& one : threads)
            one.join();
        ASSERT_EQ(recorder.complete(), 0);
        EXPECT_EQ(recorder.close(), 0);
    }
    EXPECT_EQ(identity("device", 0), identity("host", 0));
}

TEST_F(DeviceTest, CopiesElementsInIndexOrder) {
    const ArrayView view(inner(CIWRAP_DEVICE));
    std::vector<std::byte> buffer;
    const std::byte* const found = view.elements(100, 3, buffer);
    for (std::size_t i = 0; i < 3; ++i) {
        double value;
        std::memcpy(&value, found + 8 * i, sizeof value);
        EXPECT_EQ(value, values_[60 + 2 * ((100 + i) / 48) + 60 * ((100 + i) % 48)]);
    }
    EXPECT_THROW(view.elements(30 * 48, 1, buffer), Error);
}

// What the device cannot hash is a hole in the checkpoint, and never a match; all else is recorded.
TEST_F(DeviceTest, MakesHolesOfFaults) {
    Batch batch;
    StatedParameters stated;
    stated.dtype = "<f8";
    for (const char* name : {"x", "y"}) {
        const ArrayView view(inner(CIWRAP_DEVICE));
        batch.variables.push_back(
            std::make_unique<Recorded>(name[0] - 'x', name, view, TreeParameters(stated)));
    }
    batch.cut();
    batch.work();
    batch.variables[1]->fault = "the device is lost";
    const std::vector<std::pair<std::string, std::string>> said{{"y", "the device is lost"}};
    EXPECT_EQ(batch.drop_faulty(), said);
    ASSERT_EQ(batch.variables.size(), 1u);
    EXPECT_EQ(batch.variables[0]->name, "x");
    ASSERT_EQ(batch.holes.size(), 1u);
    EXPECT_EQ(batch.holes[0].first, 1u);
}

}  // namespace
}  // namespace ciwrap::record
