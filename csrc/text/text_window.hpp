// A text that is read once, from front to back, a bounded part of it at hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/slab_reader.hpp"

namespace ciwrap {

// Lines are no longer than this; a longer one is no line of a log.
inline constexpr std::size_t most_line_bytes = std::size_t{1} << 20;

// Where a text comes from, in pieces.
class TextSource {
  public:
    virtual ~TextSource() = default;
    // The next bytes, valid until the next call; none at the end. Throws Error.
    virtual std::span<const std::byte> next() = 0;
    // What messages call it.
    virtual const std::string& name() const = 0;
    // The same text from its beginning.
    virtual std::unique_ptr<TextSource> again() const = 0;
};

// A file. When all of it was read, throws corrupt_file if it was written meanwhile.
class FileText : public TextSource {
  public:
    FileText(ReadEngine& engine, std::string path);
    std::span<const std::byte> next() override;
    const std::string& name() const override { return path_; }
    std::unique_ptr<TextSource> again() const override;

  private:
    ReadEngine& engine_;
    std::string path_;
    std::unique_ptr<SlabReader> slabs_;  // none for an empty file
};

// Bytes in memory, which are to outlive this.
class HeldText : public TextSource {
  public:
    HeldText(std::span<const std::byte> bytes, std::string name)
        : bytes_(bytes), left_(bytes), name_(std::move(name)) {}
    std::span<const std::byte> next() override { return std::exchange(left_, {}); }
    const std::string& name() const override { return name_; }
    std::unique_ptr<TextSource> again() const override {
        return std::make_unique<HeldText>(bytes_, name_);
    }

  private:
    std::span<const std::byte> bytes_;
    std::span<const std::byte> left_;
    std::string name_;
};

// The part of a text that is at hand, from the first line that was not consumed.
class TextWindow {
  public:
    explicit TextWindow(TextSource& source) : source_(source) {}

    // Reads until `want` bytes are at hand or the text ends. Throws Error(corrupt_file) for a NUL
    // byte, and what the source throws. Views of the text become invalid.
    void fill(std::size_t want);

    std::string_view text() const { return {buffer_.data() + begin_, end_ - begin_}; }
    bool has_all() const { return is_at_end_; }  // whether nothing is left to be read
    bool is_empty() const { return begin_ == end_ && is_at_end_; }
    std::uint64_t line_number() const { return line_; }  // of the first line at hand, from 1
    // Whether all that was read is UTF-8; a character that is not yet whole counts as such.
    bool is_utf8() const { return is_utf8_; }
    std::uint64_t byte_count() const { return bytes_read_; }

    // The first line at hand without its line break, after reading all of it. Throws
    // Error(too_large) for one of more than most_line_bytes.
    std::string_view first_line();
    // The bytes that `line`, at the beginning of the text at hand, takes with its line break.
    std::size_t taken_by(std::string_view line) const;

    void consume(std::size_t bytes, std::uint64_t lines) {
        begin_ += bytes;
        line_ += lines;
    }

    [[noreturn]] void refuse_long_line(std::uint64_t line) const;

  private:
    void take(std::span<const std::byte> bytes);
    void check_encoding(std::span<const std::byte> bytes);

    TextSource& source_;
    std::vector<char> buffer_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::span<const std::byte> pending_;  // of the source's last piece
    bool is_at_end_ = false;
    std::uint64_t line_ = 1;
    std::uint64_t bytes_read_ = 0;
    bool is_utf8_ = true;
    unsigned continuation_ = 0;  // bytes that the character before is short of
};

// Characters of UTF-8 in front of `at`, or bytes if the line is not UTF-8.
std::size_t column_of(std::string_view line, std::size_t at);

}  // namespace ciwrap
