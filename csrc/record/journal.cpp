#include "record/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "base/xxh3.hpp"
#include "ciwrap/error.hpp"

namespace ciwrap::record {
namespace {

constexpr unsigned char file_magic[8] = {0x89, 'C', 'W', 'R', 'E', 'C', '\r', '\n'};
constexpr std::uint32_t file_version = 1;
constexpr std::uint32_t record_magic = 0x52575243;  // "CRWR"
constexpr std::size_t head_bytes = 64;
constexpr std::size_t record_head_bytes = 48;
constexpr std::size_t checksum_bytes = 16;

template <class Number>
void put(std::vector<std::byte>& to, Number value) {
    using Unsigned = std::make_unsigned_t<Number>;
    const auto bits = static_cast<Unsigned>(value);
    for (std::size_t i = 0; i < sizeof(Number); ++i)
        to.push_back(static_cast<std::byte>(bits >> (8 * i) & 0xff));
}

std::uint64_t get(const std::byte* from, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        value |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
    return value;
}

void put_checksum(std::vector<std::byte>& to, std::size_t from) {
    const Digest digest = xxh3_128(std::span(to).subspan(from));
    for (const std::uint8_t byte : digest.bytes)
        to.push_back(std::byte{byte});
}

[[noreturn]] void fail(const std::string& path, const char* what) {
    const int reason = errno;
    throw Error(ErrorCode::io, path + ": " + what + ": " + std::strerror(reason));
}

std::vector<std::byte> make_head(std::uint64_t rank, std::uint64_t ranks) {
    std::vector<std::byte> head;
    for (const unsigned char c : file_magic)
        head.push_back(std::byte{c});
    put(head, file_version);
    put(head, std::uint32_t{0});
    put(head, rank);
    put(head, ranks);
    head.resize(head_bytes - checksum_bytes);
    put_checksum(head, 0);
    return head;
}

// False at the end of the file.
bool read_all(const std::string& path, int descriptor, std::byte* to, std::size_t count,
              std::uint64_t offset) {
    while (count > 0) {
        const ssize_t got = pread(descriptor, to, count, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            fail(path, "cannot be read");
        if (got == 0)
            return false;
        to += got;
        offset += static_cast<std::uint64_t>(got);
        count -= static_cast<std::size_t>(got);
    }
    return true;
}

void write_all(const std::string& path, int descriptor, std::span<const std::byte> data,
               std::uint64_t offset) {
    while (!data.empty()) {
        const ssize_t put_count =
            pwrite(descriptor, data.data(), data.size(), static_cast<off_t>(offset));
        if (put_count < 0 && errno == EINTR)
            continue;
        if (put_count <= 0)
            fail(path, "cannot be written");
        offset += static_cast<std::uint64_t>(put_count);
        data = data.subspan(static_cast<std::size_t>(put_count));
    }
}

}  // namespace

Payload& Payload::u32(std::uint32_t value) {
    put(bytes_, value);
    return *this;
}
Payload& Payload::u64(std::uint64_t value) {
    put(bytes_, value);
    return *this;
}
Payload& Payload::f64(double value) {
    return u64(std::bit_cast<std::uint64_t>(value));
}
Payload& Payload::text(const std::string& value) {
    u32(static_cast<std::uint32_t>(value.size()));
    return bytes(std::as_bytes(std::span(value)));
}
Payload& Payload::bytes(std::span<const std::byte> value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    return *this;
}

Journal::Journal(std::string path, std::uint64_t rank, std::uint64_t ranks)
    : path_(std::move(path)) {
    descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
        fail(path_, "cannot be opened");
    try {
        begin(rank, ranks);
    } catch (...) {
        close(descriptor_);
        throw;
    }
}

Journal::~Journal() {
    close(descriptor_);
}

void Journal::begin(std::uint64_t rank, std::uint64_t ranks) {
    // A file system without locks is one where nobody else can be seen.
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        throw Error(ErrorCode::io, path_ + ": another process records as rank " +
                                       std::to_string(rank) + ", too; tell each its own rank");
    }
    struct stat status {};
    if (fstat(descriptor_, &status) != 0)
        fail(path_, "cannot be read");
    const std::vector<std::byte> head = make_head(rank, ranks);
    if (status.st_size < static_cast<off_t>(head_bytes)) {
        if (ftruncate(descriptor_, 0) != 0)
            fail(path_, "cannot be written");
        write_all(path_, descriptor_, head, 0);
        end_ = head_bytes;
        return;
    }
    std::vector<std::byte> found(head_bytes);
    read_all(path_, descriptor_, found.data(), head_bytes, 0);
    if (found != head) {
        throw Error(ErrorCode::corrupt_file,
                    path_ + ": is no journal of rank " + std::to_string(rank) + " of " +
                        std::to_string(ranks) + "; record into another folder");
    }
    find_end();
    // What a program that was killed left half written.
    if (ftruncate(descriptor_, static_cast<off_t>(end_)) != 0)
        fail(path_, "cannot be written");
}

void Journal::find_end() {
    end_ = head_bytes;
    std::vector<std::byte> record(record_head_bytes);
    struct stat status {};
    if (fstat(descriptor_, &status) != 0)
        fail(path_, "cannot be read");
    const auto size = static_cast<std::uint64_t>(status.st_size);
    while (size - end_ >= record_head_bytes + checksum_bytes) {
        read_all(path_, descriptor_, record.data(), record_head_bytes, end_);
        const std::uint64_t length = get(record.data() + 8, 8);
        const bool is_next =
            get(record.data(), 4) == record_magic && get(record.data() + 40, 8) == written_;
        if (!is_next || length > size - end_ - record_head_bytes - checksum_bytes)
            return;
        const std::uint64_t padded = (length + 7) / 8 * 8;
        record.resize(record_head_bytes + padded + checksum_bytes);
        if (!read_all(path_, descriptor_, record.data(), record.size(), end_))
            return;
        const Digest digest = xxh3_128(std::span(record).first(record_head_bytes + padded));
        if (std::memcmp(record.data() + record_head_bytes + padded, digest.bytes.data(),
                        checksum_bytes) != 0)
            return;
        end_ += record.size();
        ++written_;
    }
}

void Journal::add(const RecordKey& key, std::span<const std::byte> payload) {
    const std::size_t start = waiting_.size();
    waiting_.reserve(start + record_head_bytes + payload.size() + 8 + checksum_bytes);
    put(waiting_, record_magic);
    put(waiting_, static_cast<std::uint32_t>(key.type));
    put(waiting_, static_cast<std::uint64_t>(payload.size()));
    put(waiting_, key.iteration);
    put(waiting_, key.point);
    put(waiting_, key.variable);
    put(waiting_, std::uint64_t{0});
    put(waiting_, written_ + waiting_count_);
    waiting_.insert(waiting_.end(), payload.begin(), payload.end());
    waiting_.resize(start + record_head_bytes + (payload.size() + 7) / 8 * 8);
    put_checksum(waiting_, start);
    ++waiting_count_;
}

void Journal::commit() {
    try {
        write_all(path_, descriptor_, waiting_, end_);
    } catch (const Error&) {
        // The half that was written would only be taken for damage. If even that fails, the next
        // append overwrites it.
        (void)!ftruncate(descriptor_, static_cast<off_t>(end_));
        discard();
        throw;
    }
    end_ += waiting_.size();
    written_ += waiting_count_;
    discard();
}

void Journal::discard() {
    waiting_.clear();
    waiting_count_ = 0;
}

void Journal::sync() {
    if (fdatasync(descriptor_) != 0 && errno != EINVAL)
        fail(path_, "cannot be written");
}

}  // namespace ciwrap::record
