#include "io/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace ciwrap {

namespace {

[[noreturn]] void throw_system_error(const std::string& path, const char* what, int error) {
    throw Error(ErrorCode::io, path + ": " + what + ": " + std::generic_category().message(error));
}

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)) {
    // O_NONBLOCK: opening a pipe without a writer must not hang.
    do {
        descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (descriptor_ < 0 && errno == EINTR);
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
    if (::fcntl(descriptor_, F_SETFL, 0) != 0) {
        const int error = errno;
        ::close(descriptor_);
        throw_system_error(path_, "cannot be prepared for reading", error);
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      size_(std::exchange(other.size_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(size_, other.size_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

void InputFile::require_range(std::uint64_t offset, std::uint64_t length) const {
    if (offset > size_ || length > size_ - offset) {
        throw Error(ErrorCode::corrupt_file, path_ + ": has " + std::to_string(size_) +
                                                 " bytes, but " + std::to_string(length) +
                                                 " bytes from byte " + std::to_string(offset) +
                                                 " on are wanted; is it truncated?");
    }
}

}  // namespace ciwrap
