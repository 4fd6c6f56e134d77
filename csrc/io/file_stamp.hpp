// What tells that a file was written meanwhile, without reading it again.
#pragma once

#include <cstdint>
#include <string>

struct stat;

namespace ciwrap {

// Which file it is and when it was last changed. A write in the same tick of the system's clock
// (some milliseconds) as an earlier one may leave it as it is.
struct FileStamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    std::int64_t modified_ns = 0;  // the contents, since 1970
    std::int64_t changed_ns = 0;   // contents, name or rights; programs cannot set it

    friend bool operator==(const FileStamp&, const FileStamp&) = default;

    // Throws Error(io), naming the file, if the system refuses.
    static FileStamp of(const std::string& path);
    static FileStamp of(const struct ::stat& status);
};

// Throws Error(corrupt_file), naming the file, unless it is what it was at `stamp`: neither
// written, nor replaced, nor removed since.
void require_unchanged(const std::string& path, const FileStamp& stamp);
// The same for an open file.
void require_unchanged(const std::string& path, const FileStamp& stamp, int descriptor);

}  // namespace ciwrap
