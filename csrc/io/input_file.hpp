// A regular file opened for reading.
#pragma once

#include <cstdint>
#include <string>

#include "io/file_calls.hpp"
#include "io/file_stamp.hpp"

namespace ciwrap {

// Owns the descriptor; move-only. Thread safe: reading through the descriptor moves no file offset.
class InputFile {
  public:
    // Throws Error: `io` if the system refuses, `invalid_argument` if the path is no regular file
    // (a directory, a pipe, a device).
    // `direct` also throws Error(not_available) where the system or file system cannot do that.
    explicit InputFile(std::string path, ReadMode mode = ReadMode::cached);
    ~InputFile();
    InputFile(InputFile&& other) noexcept;
    InputFile& operator=(InputFile&& other) noexcept;
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    const std::string& path() const noexcept { return path_; }
    int descriptor() const noexcept { return descriptor_; }

    // Bytes when it was opened. A file that shrinks afterwards is noticed by the read that misses
    // bytes; one that grows is read as if it had not.
    std::uint64_t size() const noexcept { return stamp_.size; }

    // What it was when it was opened.
    const FileStamp& stamp() const noexcept { return stamp_; }

    // Throws Error(corrupt_file), naming the file, if it was written, replaced or removed since it
    // was opened. To be called when the reads are done: costs two system calls.
    void require_unchanged() const { ciwrap::require_unchanged(path_, stamp_, descriptor_); }

    // Throws Error(corrupt_file), naming the file, unless [offset, offset + length) lies inside it.
    void require_range(std::uint64_t offset, std::uint64_t length) const;

    // Whether most of the range is in the system's cache, as far as a few samples tell; reads
    // nothing from the disk. True where the system cannot say.
    bool is_mostly_cached(std::uint64_t offset, std::uint64_t length) const;

    // Tells the system how the range will be read. Advice only.
    void expect(Access access, std::uint64_t offset, std::uint64_t length) const;

  private:
    std::string path_;
    FileStamp stamp_;
    int descriptor_ = -1;
};

}  // namespace ciwrap
