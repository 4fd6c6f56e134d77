#include "text/text_window.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ciwrap/error.hpp"

namespace ciwrap {
namespace {

constexpr std::size_t slab_bytes = std::size_t{1} << 20;
constexpr std::size_t piece_bytes = std::size_t{64} << 10;

bool is_ascii(std::span<const std::byte> bytes) {
    std::uint64_t all = 0;
    std::uint64_t part = 0;
    for (; bytes.size() >= sizeof part; bytes = bytes.subspan(sizeof part)) {
        std::memcpy(&part, bytes.data(), sizeof part);
        all |= part;
    }
    for (const std::byte one : bytes)
        all |= static_cast<std::uint64_t>(one);
    return (all & 0x8080808080808080ULL) == 0;
}

// Bytes that follow a first byte of UTF-8; -1 for what is none.
int followers(unsigned char first) {
    if (first < 0x80)
        return 0;
    if (first >= 0xc2 && first < 0xe0)
        return 1;
    if (first >= 0xe0 && first < 0xf0)
        return 2;
    return first >= 0xf0 && first < 0xf5 ? 3 : -1;
}

}  // namespace

FileText::FileText(ReadEngine& engine, std::string path) : engine_(engine), path_(std::move(path)) {
    const std::uint64_t size = InputFile(path_).size();
    if (size > 0)
        slabs_ = std::make_unique<SlabReader>(
            engine, path_, 0, size, SlabOptions{.slab_bytes = slab_bytes, .buffer_count = 4});
}

std::unique_ptr<TextSource> FileText::again() const {
    return std::make_unique<FileText>(engine_, path_);
}

std::span<const std::byte> FileText::next() {
    if (!slabs_)
        return {};
    const std::span<const std::byte> bytes = slabs_->next();
    if (bytes.empty())
        slabs_->require_unchanged();
    return bytes;
}

void TextWindow::fill(std::size_t want) {
    while (end_ - begin_ < want && !is_at_end_) {
        if (pending_.empty())
            pending_ = source_.next();
        if (pending_.empty()) {
            is_at_end_ = true;
            return;
        }
        // Small pieces: what is looked at here is still near when it is compared.
        const std::size_t count = std::min(pending_.size(), piece_bytes);
        take(pending_.first(count));
        pending_ = pending_.subspan(count);
    }
}

void TextWindow::take(std::span<const std::byte> bytes) {
    if (std::memchr(bytes.data(), 0, bytes.size()) != nullptr)
        throw Error(ErrorCode::corrupt_file,
                    source_.name() + ": holds a NUL byte, so it is not text");
    check_encoding(bytes);
    if (buffer_.size() - end_ < bytes.size()) {
        const std::size_t kept = end_ - begin_;
        // To the front where that leaves as much room as it costs moving, else into more memory.
        if (buffer_.size() < 2 * (kept + bytes.size()))
            buffer_.resize(std::max(2 * (kept + bytes.size()), std::size_t{1} << 19));
        std::memmove(buffer_.data(), buffer_.data() + begin_, kept);
        begin_ = 0;
        end_ = kept;
    }
    std::memcpy(buffer_.data() + end_, bytes.data(), bytes.size());
    end_ += bytes.size();
    bytes_read_ += bytes.size();
}

void TextWindow::check_encoding(std::span<const std::byte> bytes) {
    if (!is_utf8_ || (continuation_ == 0 && is_ascii(bytes)))
        return;
    for (const std::byte one : bytes) {
        const auto c = static_cast<unsigned char>(one);
        if (continuation_ > 0) {
            is_utf8_ = is_utf8_ && (c & 0xc0) == 0x80;
            --continuation_;
            continue;
        }
        const int count = followers(c);
        if (count < 0) {
            is_utf8_ = false;
            return;
        }
        continuation_ = static_cast<unsigned>(count);
    }
}

std::string_view TextWindow::first_line() {
    for (std::size_t want = piece_bytes;; want *= 4) {
        const std::string_view found = text();
        const std::size_t end = found.find('\n');
        if (end != std::string_view::npos || is_at_end_) {
            const std::string_view line = found.substr(0, end);
            if (line.size() > most_line_bytes)
                refuse_long_line(line_);
            return line;
        }
        if (found.size() > most_line_bytes)
            refuse_long_line(line_);
        fill(want);
    }
}

std::size_t TextWindow::taken_by(std::string_view line) const {
    return std::min(line.size() + 1, end_ - begin_);
}

void TextWindow::refuse_long_line(std::uint64_t line) const {
    throw Error(ErrorCode::too_large, source_.name() + ": line " + std::to_string(line) +
                                          " is longer than 1 MiB, so it cannot be compared"
                                          " token by token");
}

std::size_t column_of(std::string_view line, std::size_t at) {
    std::size_t characters = 0;
    for (std::size_t i = 0; i < at;) {
        const int count = followers(static_cast<unsigned char>(line[i]));
        if (count < 0)
            return at;
        for (int k = 1; k <= count; ++k)
            if (i + static_cast<std::size_t>(k) >= line.size() ||
                (static_cast<unsigned char>(line[i + static_cast<std::size_t>(k)]) & 0xc0) != 0x80)
                return at;
        i += 1 + static_cast<std::size_t>(count);
        ++characters;
    }
    return characters;
}

}  // namespace ciwrap
