// The C++ face against arrays in C order: vectors, spans, and Kokkos Views of any layout.
#include "record/include/ciwrap/record.hpp"

#include <Kokkos_Core.hpp>
#include <cstring>
#include <span>

#include "record_fixtures.hpp"

namespace {

using ciwrap::record::RecordTest;

class ViewsTest : public RecordTest {
  protected:
    static void SetUpTestSuite() {
        if (!Kokkos::is_initialized())
            Kokkos::initialize();
    }
    void SetUp() override {
        RecordTest::SetUp();
        setenv("CIWRAP_RECORD_LIBRARY", CIWRAP_RECORD_LIBRARY_PATH, 1);
        setenv("CIWRAP_RECORD", run().c_str(), 1);
    }
    void TearDown() override {
        unsetenv("CIWRAP_RECORD");
        RecordTest::TearDown();
    }

    // The tree records of a journal: all from the shape on, without keys and checksums.
    std::vector<std::vector<char>> trees() const {
        const std::vector<char> bytes = bytes_of(run() + "/000/rank-000000.cwr");
        std::vector<std::vector<char>> found;
        for (std::size_t at = 64; at + 64 <= bytes.size();) {
            std::uint32_t type = 0;
            std::uint64_t length = 0;
            std::memcpy(&type, &bytes[at + 4], 4);
            std::memcpy(&length, &bytes[at + 8], 8);
            const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at) + 48;
            if (type == 4)
                found.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(length));
            at += 48 + (length + 7) / 8 * 8 + 16;
        }
        return found;
    }
};

constexpr std::size_t rows = 70;
constexpr std::size_t columns = 33;

template <class View>
void fill(const View& view) {
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
            view(i, j) = static_cast<double>(i * columns + j) * 0.5;
}

TEST_F(ViewsTest, AreTheSameInAnyLayout) {
    Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> right("right", rows, columns);
    Kokkos::View<double**, Kokkos::LayoutLeft, Kokkos::HostSpace> left("left", rows, columns);
    Kokkos::View<double**, Kokkos::LayoutLeft, Kokkos::HostSpace> whole("whole", rows + 4,
                                                                        columns + 6);
    Kokkos::deep_copy(whole, -1.0);
    const auto inner = Kokkos::subview(whole, std::pair<std::size_t, std::size_t>(2, rows + 2),
                                       std::pair<std::size_t, std::size_t>(3, columns + 3));
    fill(right);
    fill(left);
    fill(inner);
    {
        ciwrap::Recorder recorder("views");
        ASSERT_TRUE(recorder.is_on());
        recorder.add(right);
        recorder.add(left);
        recorder.add("inner", inner);
        recorder.checkpoint(1);
        EXPECT_EQ(recorder.close(), 0);
    }
    const auto found = trees();
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0], found[1]);
    EXPECT_EQ(found[0], found[2]);
}

TEST_F(ViewsTest, AreTheSameAsVectorsAndSpans) {
    const std::vector<float> values(3000, 1.5f);
    const Kokkos::View<const float*, Kokkos::HostSpace> view(values.data(), values.size());
    ciwrap::Recorder recorder("lists");
    recorder.add("vector", values, {1e-6, -1});
    recorder.add("vector", values);
    recorder.add("span", std::span<const float>(values));
    recorder.add("view", view);
    recorder.point(2, "p");
    EXPECT_EQ(recorder.close(), 0);
    const auto found = trees();
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0], found[1]);
    EXPECT_EQ(found[0], found[2]);
}

}  // namespace
