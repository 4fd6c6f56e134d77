#include "io/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "ciwrap/error.hpp"

namespace ciwrap {

namespace {

[[noreturn]] void throw_system_error(const std::string& path, const char* what, int error) {
    throw Error(ErrorCode::io, path + ": " + what + ": " + std::generic_category().message(error));
}

}  // namespace

InputFile::InputFile(std::string path, ReadMode mode) : path_(std::move(path)) {
    const int flags = open_flags(mode);
    // O_NONBLOCK: opening a pipe without a writer must not hang.
    do {
        descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0 && errno == EINVAL && mode == ReadMode::direct) {
        throw Error(ErrorCode::not_available, path_ + ": this file system has no direct reads");
    }
    if (descriptor_ < 0) {
        throw_system_error(path_, "cannot be opened", errno);
    }
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) {
        const int error = errno;
        ::close(descriptor_);
        throw_system_error(path_, "cannot be examined", error);
    }
    if (!S_ISREG(status.st_mode)) {
        ::close(descriptor_);
        throw Error(ErrorCode::invalid_argument,
                    path_ + (S_ISDIR(status.st_mode) ? ": is a directory, not a file"
                                                     : ": is not a regular file"));
    }
    // io_uring would answer EAGAIN instead of waiting for the disk if the flag stayed.
    if (::fcntl(descriptor_, F_SETFL, flags) != 0) {
        const int error = errno;
        ::close(descriptor_);
        throw_system_error(path_, "cannot be prepared for reading", error);
    }
    stamp_ = FileStamp::of(status);
    if (mode == ReadMode::direct && !start_direct_reads(descriptor_)) {
        ::close(descriptor_);
        throw Error(ErrorCode::not_available,
                    path_ + ": this file system has no direct reads of 4096 bytes");
    }
}

InputFile::~InputFile() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      stamp_(std::exchange(other.stamp_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(stamp_, other.stamp_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

void InputFile::require_range(std::uint64_t offset, std::uint64_t length) const {
    if (offset > size() || length > size() - offset) {
        throw Error(ErrorCode::corrupt_file, path_ + ": has " + std::to_string(size()) +
                                                 " bytes, but " + std::to_string(length) +
                                                 " bytes from byte " + std::to_string(offset) +
                                                 " on are wanted; is it truncated?");
    }
}

bool InputFile::is_mostly_cached(std::uint64_t offset, std::uint64_t length) const {
    return length == 0 || is_range_cached(descriptor_, offset, length);
}

void InputFile::expect(Access access, std::uint64_t offset, std::uint64_t length) const {
    advise_access(descriptor_, access, offset, length);
}

}  // namespace ciwrap
