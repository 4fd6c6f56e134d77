#include "record/record_scan.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/xxh3.hpp"
#include "ciwrap/error.hpp"

namespace ciwrap::record {
namespace {

constexpr unsigned char file_magic[8] = {0x89, 'C', 'W', 'R', 'E', 'C', '\r', '\n'};
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

[[noreturn]] void fail(const std::string& path) {
    const int reason = errno;
    throw Error(ErrorCode::io, path + ": cannot be read: " + std::strerror(reason));
}

void put_number(std::byte* to, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
        to[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
}

// False at the end of the file.
bool read_all(const std::string& path, int descriptor, std::span<std::byte> to,
              std::uint64_t offset) {
    while (!to.empty()) {
        const ssize_t got = pread(descriptor, to.data(), to.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            fail(path);
        if (got == 0)
            return false;
        to = to.subspan(static_cast<std::size_t>(got));
        offset += static_cast<std::uint64_t>(got);
    }
    return true;
}

std::uint64_t padded(std::uint64_t bytes) {
    return (bytes + 7) / 8 * 8;
}

bool is_checksum(std::span<const std::byte> of, std::span<const std::byte> found) {
    const Digest digest = xxh3_128(of);
    return std::memcmp(found.data(), digest.bytes.data(), checksum_bytes) == 0;
}

// Whether a record begins here whose number is more than that one.
bool is_later_head(const std::byte* head, std::uint64_t number) {
    constexpr std::uint64_t most_records = std::uint64_t{1} << 32;
    if (get_number(head, 4) != record_magic || get_number(head + 32, 8) != 0)
        return false;
    const std::uint64_t found = get_number(head + 40, 8);
    return found > number && found - number < most_records;
}

}  // namespace

std::uint64_t get_number(const std::byte* from, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        value |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
    return value;
}

std::vector<std::byte> make_head(const JournalHead& head) {
    std::vector<std::byte> made(head_bytes);
    std::memcpy(made.data(), file_magic, sizeof file_magic);
    put_number(made.data() + 8, head.version, 4);
    put_number(made.data() + 16, head.rank, 8);
    put_number(made.data() + 24, head.ranks, 8);
    const Digest digest = xxh3_128(std::span(made).first(head_bytes - checksum_bytes));
    std::memcpy(made.data() + head_bytes - checksum_bytes, digest.bytes.data(), checksum_bytes);
    return made;
}

std::optional<JournalHead> read_head(const std::string& path, int descriptor) {
    std::vector<std::byte> found(head_bytes);
    if (!read_all(path, descriptor, found, 0))
        return std::nullopt;
    const JournalHead head{get_number(found.data() + 16, 8), get_number(found.data() + 24, 8),
                           static_cast<std::uint32_t>(get_number(found.data() + 8, 4))};
    const bool is_known = head.version >= oldest_journal_version && head.version <= journal_version;
    if (!is_known || found != make_head(head))
        return std::nullopt;
    return head;
}

std::optional<RecordPlace> RecordScan::peek() {
    if (size_ < end_ + record_head_bytes + checksum_bytes) {
        struct stat status {};
        if (fstat(descriptor_, &status) != 0)
            fail(path_);
        size_ = static_cast<std::uint64_t>(status.st_size);
        if (size_ < end_ + record_head_bytes + checksum_bytes)
            return std::nullopt;
    }
    std::byte head[record_head_bytes];
    if (!read_all(path_, descriptor_, head, end_))
        return std::nullopt;
    const std::uint64_t length = get_number(head + 8, 8);
    const bool is_next = get_number(head, 4) == record_magic && get_number(head + 40, 8) == count_;
    const std::uint64_t room = size_ - end_ - record_head_bytes - checksum_bytes;
    if (!is_next || length > room || padded(length) > room) {
        size_ = 0;  // is looked at again: more may have been written
        return std::nullopt;
    }
    const RecordKey key{static_cast<RecordType>(get_number(head + 4, 4)),
                        static_cast<std::int64_t>(get_number(head + 16, 8)),
                        static_cast<std::uint32_t>(get_number(head + 24, 4)),
                        static_cast<std::uint32_t>(get_number(head + 28, 4))};
    return RecordPlace{key, end_, length};
}

std::optional<ReadRecord> RecordScan::read(const RecordPlace& place) const {
    const std::uint64_t covered = record_head_bytes + padded(place.payload_bytes);
    ReadRecord record{UninitializedBytes(covered + checksum_bytes), place.payload_bytes};
    const auto bytes = std::as_writable_bytes(std::span(record.bytes));
    if (!read_all(path_, descriptor_, bytes, place.offset))
        return std::nullopt;
    if (!is_checksum(bytes.first(covered), bytes.subspan(covered)))
        return std::nullopt;
    return record;
}

void RecordScan::pass(const RecordPlace& place) {
    end_ = place.offset + record_head_bytes + padded(place.payload_bytes) + checksum_bytes;
    ++count_;
}

bool RecordScan::is_damaged() const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0)
        fail(path_);
    const auto size = static_cast<std::uint64_t>(status.st_size);
    std::vector<std::byte> piece;
    const std::uint64_t behind_head = end_ + record_head_bytes;
    for (std::uint64_t at = behind_head; at + record_head_bytes <= size; at += piece_bytes) {
        piece.resize(std::min<std::uint64_t>(piece_bytes + record_head_bytes - 1, size - at));
        if (!read_all(path_, descriptor_, piece, at))
            return false;
        for (std::size_t i = 0; i + record_head_bytes <= piece.size(); ++i) {
            if (is_later_head(piece.data() + i, count_))
                return true;
        }
    }
    return false;
}

}  // namespace ciwrap::record
