#include "io/input_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "ciwrap/error.hpp"

namespace ciwrap {

namespace {

[[noreturn]] void throw_system_error(const std::string& path, const char* what, int error) {
    throw Error(ErrorCode::io, path + ": " + what + ": " + std::generic_category().message(error));
}

// Whether reads past the cache may begin at any multiple of direct_alignment. Kernels before 6.1
// do not say; they take 4096 wherever O_DIRECT can be opened.
bool allows_direct_reads(int descriptor) {
#if defined(STATX_DIOALIGN)
    struct statx status {};
    if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
        (status.stx_mask & STATX_DIOALIGN) != 0) {
        return status.stx_dio_offset_align != 0 &&
               direct_alignment % status.stx_dio_offset_align == 0 &&
               status.stx_dio_mem_align != 0 && direct_alignment % status.stx_dio_mem_align == 0;
    }
#endif
    (void)descriptor;
    return true;
}

}  // namespace

InputFile::InputFile(std::string path, ReadMode mode) : path_(std::move(path)) {
    const int flags = mode == ReadMode::direct ? O_DIRECT : 0;
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
    if (mode == ReadMode::direct && !allows_direct_reads(descriptor_)) {
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
    constexpr std::uint64_t samples = 8;
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    if (length == 0) {
        return true;
    }
    // Mapped, but not touched: that would read from the disk, as a read that does not wait does,
    // too.
    const std::uint64_t begin = offset / page * page;
    const auto mapped = static_cast<std::size_t>(offset + length - begin);
    void* const memory =
        ::mmap(nullptr, mapped, PROT_READ, MAP_SHARED, descriptor_, static_cast<off_t>(begin));
    if (memory == MAP_FAILED) {
        return true;
    }
    std::uint64_t cached = 0;
    for (std::uint64_t i = 0; i < samples; ++i) {
        const std::uint64_t at = (mapped - 1) / samples * i / page * page;
        unsigned char is_resident = 0;
        if (::mincore(static_cast<std::byte*>(memory) + at, 1, &is_resident) != 0) {
            is_resident = 1;
        }
        cached += is_resident & 1;
    }
    ::munmap(memory, mapped);
    return 2 * cached >= samples;
}

void InputFile::expect(Access access, std::uint64_t offset, std::uint64_t length) const {
    (void)::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(length),
                          access == Access::in_order ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_RANDOM);
}

}  // namespace ciwrap
