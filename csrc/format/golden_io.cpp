#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "ciwrap/error.hpp"
#include "ciwrap/golden.hpp"
#include "format/golden_directory.hpp"
#include "format/text_rules.hpp"

namespace ciwrap {
namespace {

[[noreturn]] void refuse_io(const std::string& path, const char* what, int reason) {
    throw Error(ErrorCode::io, printable(path + ": cannot be " + what + ": " +
                                         std::generic_category().message(reason)));
}

class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0)
            ::close(number_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    int get() const { return number_; }
    // Some file systems report a failed write only here.
    int close() {
        const int result = ::close(number_);
        number_ = -1;
        return result;
    }

  private:
    int number_;
};

std::vector<std::uint8_t> read_at(const Descriptor& file, std::uint64_t offset, std::size_t count,
                                  const std::string& path) {
    std::vector<std::uint8_t> bytes(count);
    std::size_t done = 0;
    while (done < count) {
        const ssize_t got = ::pread(file.get(), bytes.data() + done, count - done,
                                    static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            refuse_io(path, "read", errno);
        if (got == 0)
            break;
        done += static_cast<std::size_t>(got);
    }
    bytes.resize(done);
    return bytes;
}

}  // namespace

Digest read_golden_header(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0)
        refuse_io(path, "opened", errno);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0)
        refuse_io(path, "examined", errno);
    if (!S_ISREG(status.st_mode)) {
        throw Error(ErrorCode::io, printable(path + ": is not a regular file"));
    }
    const Header header = decode_header(read_at(file, 0, layout::header_bytes, path), path);
    check_length(header, static_cast<std::uint64_t>(status.st_size), path);
    const auto directory = read_at(file, layout::header_bytes, header.directory_bytes, path);
    return decode_directory(header, directory, path).root;
}

void write_file(const std::string& path, std::span<const std::uint8_t> bytes) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.get() < 0)
        refuse_io(path, "created", errno);
    while (!bytes.empty()) {
        // Linux writes at most 2 GiB at once anyway.
        const std::size_t piece = std::min<std::size_t>(bytes.size(), std::size_t{1} << 30);
        const ssize_t written = ::write(file.get(), bytes.data(), piece);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            refuse_io(path, "written", errno);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    // Not everything that can be written can be flushed: a pipe cannot (EINVAL).
    if (::fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS) {
        refuse_io(path, "flushed to the disk", errno);
    }
    if (file.close() != 0)
        refuse_io(path, "closed", errno);
}

}  // namespace ciwrap
