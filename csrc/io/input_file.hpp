// A regular file opened for reading.
#pragma once

#include <cstdint>
#include <string>

namespace ciwrap {

// Owns the descriptor; move-only. Thread safe: reading through the descriptor moves no file offset.
class InputFile {
  public:
    // Throws Error: `io` if the system refuses, `invalid_argument` if the path is no regular file
    // (a directory, a pipe, a device).
    explicit InputFile(std::string path);
    ~InputFile();
    InputFile(InputFile&& other) noexcept;
    InputFile& operator=(InputFile&& other) noexcept;
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    const std::string& path() const noexcept { return path_; }
    int descriptor() const noexcept { return descriptor_; }

    // Bytes when it was opened. A file that shrinks afterwards is noticed by the read that misses
    // bytes; one that grows is read as if it had not.
    std::uint64_t size() const noexcept { return size_; }

    // Throws Error(corrupt_file), naming the file, unless [offset, offset + length) lies inside it.
    void require_range(std::uint64_t offset, std::uint64_t length) const;

  private:
    std::string path_;
    std::uint64_t size_ = 0;
    int descriptor_ = -1;
};

}  // namespace ciwrap
