// Whether a file is in the system's cache is found out without bringing it there.
#include <fcntl.h>
#include <unistd.h>

#if !CIWRAP_POSIX_ONLY
#include <sys/vfs.h>
#endif

#include "io/input_file.hpp"
#include "io_fixtures.hpp"

namespace ciwrap::testing {
namespace {

class CachedTest : public IoFiles {};

#if CIWRAP_POSIX_ONLY

TEST_F(CachedTest, IsTakenForGrantedWhereTheSystemDoesNotSay) {
    const InputFile file(make_file("a.bin", 4'000'003));
    EXPECT_TRUE(file.is_mostly_cached(0, 0));
    EXPECT_TRUE(file.is_mostly_cached(5001, 3'000'000));
    file.expect(Access::scattered, 0, file.size());
}

#else

TEST_F(CachedTest, IsAskedWithoutReading) {
    const std::string path = make_file("a.bin", 4'000'003);
    const InputFile file(path);
    EXPECT_TRUE(file.is_mostly_cached(0, 0));
    EXPECT_TRUE(file.is_mostly_cached(0, 4'000'003));  // just written
    struct statfs system {};
    ASSERT_EQ(::statfs(path.c_str(), &system), 0);
    constexpr long tmpfs = 0x01021994;
    if (system.f_type == tmpfs)
        return;  // nowhere else to be
    ASSERT_EQ(::fsync(file.descriptor()), 0);
    ASSERT_EQ(::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED), 0);
    for (int i = 0; i < 100; ++i) {
        ASSERT_FALSE(file.is_mostly_cached(0, 4'000'003)) << i;
        ASSERT_FALSE(file.is_mostly_cached(5001, 3'000'000)) << i;
    }
    // No reading ahead, which goes as far as the system likes.
    file.expect(Access::scattered, 0, file.size());
    std::vector<char> half(2'600'000);
    ASSERT_EQ(::pread(file.descriptor(), half.data(), half.size(), 0),
              static_cast<ssize_t>(half.size()));
    EXPECT_TRUE(file.is_mostly_cached(0, 4'000'003));
    EXPECT_FALSE(file.is_mostly_cached(3'200'000, 800'000));
}

#endif

}  // namespace
}  // namespace ciwrap::testing
