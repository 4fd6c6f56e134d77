#include "io/file_stamp.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "ciwrap/error.hpp"

namespace ciwrap {
namespace {

std::int64_t nanoseconds(const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

[[noreturn]] void refuse(const std::string& path, int error) {
    throw Error(ErrorCode::io,
                path + ": cannot be examined: " + std::generic_category().message(error));
}

[[noreturn]] void refuse_change(const std::string& path) {
    throw Error(ErrorCode::corrupt_file, path + ": was written while it was read");
}

}  // namespace

FileStamp FileStamp::of(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
        refuse(path, errno);
    return of(status);
}

FileStamp FileStamp::of(const struct ::stat& status) {
#if defined(__APPLE__)
    const timespec& modified = status.st_mtimespec;
    const timespec& changed = status.st_ctimespec;
#else
    const timespec& modified = status.st_mtim;
    const timespec& changed = status.st_ctim;
#endif
    return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino),
            static_cast<std::uint64_t>(status.st_size), nanoseconds(modified),
            nanoseconds(changed)};
}

void require_unchanged(const std::string& path, const FileStamp& stamp) {
    struct stat status {};
    const bool is_there = ::stat(path.c_str(), &status) == 0;
    if (!is_there && errno != ENOENT)
        refuse(path, errno);
    if (!is_there || FileStamp::of(status) != stamp)
        refuse_change(path);
}

void require_unchanged(const std::string& path, const FileStamp& stamp, int descriptor) {
    // The file that was opened, and the one that has its name now: another one may have taken it.
    // Without any, who removed it has changed its stamp; if not, the name is relative, and the
    // working folder is another.
    struct stat opened {};
    if (::fstat(descriptor, &opened) != 0)
        refuse(path, errno);
    struct stat named {};
    if (FileStamp::of(opened) != stamp ||
        (::stat(path.c_str(), &named) == 0 && FileStamp::of(named) != stamp)) {
        refuse_change(path);
    }
}

}  // namespace ciwrap
