#include "io/slab_reader.hpp"

#include <algorithm>

#include "io_fixtures.hpp"

namespace ciwrap::testing {
namespace {

class SlabReaderTest : public IoFiles, public ::testing::WithParamInterface<EngineKind> {
  protected:
    ReadEngine engine_{{.kind = GetParam(), .queue_depth = 8, .threads = 3}};
};

TEST_P(SlabReaderTest, GivesEveryByteOnceInOrder) {
    const InputFile file(make_file("a.bin", 1'000'003));
    for (const DirectReads direct : {DirectReads::always, DirectReads::never})
        for (const std::size_t slab : {1UL, 4095UL, 4096UL, 65'537UL, 2'000'000UL}) {
            for (const unsigned buffers : {2U, 3U, 7U}) {
                for (const std::uint64_t offset : {0UL, 1UL, 4097UL, 999'999UL}) {
                    const std::uint64_t most = file.size() - offset;
                    for (const std::uint64_t length :
                         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4096}, most}) {
                        // A million slabs of one byte tell no more than some thousands.
                        const std::uint64_t wanted =
                            std::min(most, slab == 1 ? length % 5000 : length);
                        SlabReader reader(
                            engine_, file.path(), offset, wanted,
                            {.slab_bytes = slab, .buffer_count = buffers, .direct = direct});
                        std::uint64_t at = offset;
                        for (auto bytes = reader.next(); !bytes.empty(); bytes = reader.next()) {
                            ASSERT_EQ(first_wrong_byte(bytes, at), -1)
                                << "slab " << slab << ", offset " << offset << ", length "
                                << wanted;
                            at += bytes.size();
                            ASSERT_TRUE(bytes.size() == slab || at == offset + wanted);
                        }
                        ASSERT_EQ(at, offset + wanted);
                        ASSERT_TRUE(reader.next().empty());  // the end stays the end
                    }
                }
            }
        }
}

TEST_P(SlabReaderTest, ChecksItsArguments) {
    const InputFile file(make_file("a.bin", 1000));
    EXPECT_EQ(error_of([&] { SlabReader(engine_, file.path(), 500, 501); }).first,
              ErrorCode::corrupt_file);
    EXPECT_EQ(error_of([&] { SlabReader(engine_, file.path(), ~std::uint64_t{0}, 2); }).first,
              ErrorCode::corrupt_file);
    EXPECT_EQ(error_of([&] { SlabReader(engine_, file.path(), 0, 10, {.slab_bytes = 0}); }).first,
              ErrorCode::invalid_argument);
    EXPECT_EQ(error_of([&] { SlabReader(engine_, file.path(), 0, 10, {.buffer_count = 1}); }).first,
              ErrorCode::invalid_argument);
}

TEST_P(SlabReaderTest, AFileTruncatedMeanwhileIsAnErrorNotACrash) {
    const std::string path = make_file("cut.bin", 4'000'000);
    const InputFile file(path);
    SlabReader reader(engine_, file.path(), 0, file.size(), {.slab_bytes = 100'000});
    EXPECT_EQ(first_wrong_byte(reader.next(), 0), -1);
    std::filesystem::resize_file(path, 1'000'000);
    std::uint64_t at = 100'000;
    const auto [code, text] = error_of([&] {
        for (auto bytes = reader.next(); !bytes.empty(); bytes = reader.next()) {
            ASSERT_EQ(first_wrong_byte(bytes, at), -1);
            at += bytes.size();
        }
    });
    EXPECT_EQ(code, ErrorCode::corrupt_file);
    EXPECT_LE(at, 1'000'000U);
    EXPECT_NE(text.find("cut.bin"), std::string::npos) << text;
}

TEST_P(SlabReaderTest, CanBeLeftHalfWay) {
    const InputFile file(make_file("a.bin", 3'000'000));
    for (int round = 0; round < 20; ++round) {
        SlabReader reader(engine_, file.path(), 0, file.size(),
                          {.slab_bytes = 50'000, .buffer_count = 4});
        for (int slab = 0; slab < round; ++slab) {
            ASSERT_FALSE(reader.next().empty());
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Engines, SlabReaderTest, ::testing::ValuesIn(usable_engines()),
                         [](const auto& test) { return engine_name(test.param); });

}  // namespace
}  // namespace ciwrap::testing
