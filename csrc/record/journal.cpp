#include "record/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/xxh3.hpp"
#include "ciwrap/error.hpp"
#include "record/record_scan.hpp"

namespace ciwrap::record {
namespace {

template <class Number>
void put(std::vector<std::byte>& to, Number value) {
    using Unsigned = std::make_unsigned_t<Number>;
    const auto bits = static_cast<Unsigned>(value);
    for (std::size_t i = 0; i < sizeof(Number); ++i)
        to.push_back(static_cast<std::byte>(bits >> (8 * i) & 0xff));
}

void put_checksum(std::vector<std::byte>& to, const Digest& digest) {
    for (const std::uint8_t byte : digest.bytes)
        to.push_back(std::byte{byte});
}

[[noreturn]] void fail(const std::string& path, const char* what) {
    const int reason = errno;
    throw Error(ErrorCode::io, path + ": " + what + ": " + std::strerror(reason));
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

std::string journal_name(int rank) {
    char name[64];
    std::snprintf(name, sizeof name, "/%03d/rank-%06d.cwr", rank / 1000, rank);
    return name;
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
    if (status.st_size < static_cast<off_t>(head_bytes)) {
        if (ftruncate(descriptor_, 0) != 0)
            fail(path_, "cannot be written");
        write_all(path_, descriptor_, make_head({rank, ranks}), 0);
        end_ = head_bytes;
        return;
    }
    const std::optional<JournalHead> head = read_head(path_, descriptor_);
    if (!head || head->rank != rank || head->ranks != ranks) {
        throw Error(ErrorCode::corrupt_file,
                    path_ + ": is not the journal of rank " + std::to_string(rank) + " of " +
                        std::to_string(ranks) + "; record into another folder");
    }
    if (head->version != journal_version) {
        throw Error(
            ErrorCode::unsupported,
            path_ + ": was begun by an earlier release of ciwrap; record into another folder");
    }
    RecordScan scan(path_, descriptor_);
    while (const auto place = scan.peek()) {
        if (!scan.read(*place))
            break;
        scan.pass(*place);
    }
    if (scan.is_damaged()) {
        throw Error(ErrorCode::corrupt_file, path_ + ": record " + std::to_string(scan.count()) +
                                                 " is damaged; it is left as it is, so record "
                                                 "into another folder");
    }
    end_ = scan.end();
    written_ = scan.count();
    // What a program that was killed left half written.
    if (ftruncate(descriptor_, static_cast<off_t>(end_)) != 0)
        fail(path_, "cannot be written");
}

void Journal::add(const RecordKey& key, std::span<const std::byte> payload) {
    add(key, payload, {});
}

void Journal::add(const RecordKey& key, std::span<const std::byte> payload,
                  std::initializer_list<std::span<const std::byte>> lent) {
    const std::size_t start = waiting_.size();
    std::size_t bytes = payload.size();
    for (const auto& part : lent)
        bytes += part.size();
    put(waiting_, record_magic);
    put(waiting_, static_cast<std::uint32_t>(key.type));
    put(waiting_, static_cast<std::uint64_t>(bytes));
    put(waiting_, key.iteration);
    put(waiting_, key.point);
    put(waiting_, key.variable);
    put(waiting_, std::uint64_t{0});
    put(waiting_, written_ + waiting_count_);
    waiting_.insert(waiting_.end(), payload.begin(), payload.end());
    const std::size_t at = waiting_.size();
    waiting_.resize(at + (8 - bytes % 8) % 8);
    std::vector<std::span<const std::byte>> parts{std::span(waiting_).subspan(start, at - start)};
    for (const auto& part : lent) {
        lent_.push_back({at, part});
        parts.push_back(part);
    }
    parts.push_back(std::span(waiting_).subspan(at));
    put_checksum(waiting_, xxh3_128_of_parts(parts));
    ++waiting_count_;
}

// Returns how many bytes these were.
std::uint64_t Journal::write_waiting() {
    std::uint64_t written = 0;
    const auto write = [&](std::span<const std::byte> bytes) {
        write_all(path_, descriptor_, bytes, end_ + written);
        written += bytes.size();
    };
    std::size_t at = 0;
    for (const Lent& lent : lent_) {
        write(std::span(waiting_).subspan(at, lent.at - at));
        at = lent.at;
        write(lent.bytes);
    }
    write(std::span(waiting_).subspan(at));
    return written;
}

void Journal::commit() {
    try {
        end_ += write_waiting();
    } catch (const std::exception&) {
        // The half that was written would only be taken for damage. If even that fails, the next
        // append overwrites it.
        (void)!ftruncate(descriptor_, static_cast<off_t>(end_));
        discard();
        throw;
    }
    written_ += waiting_count_;
    discard();
}

void Journal::discard() {
    waiting_.clear();
    lent_.clear();
    waiting_count_ = 0;
}

void Journal::sync() {
#if CIWRAP_POSIX_ONLY  // macOS declares no fdatasync
    const int result = fsync(descriptor_);
#else
    const int result = fdatasync(descriptor_);
#endif
    if (result != 0 && errno != EINVAL)
        fail(path_, "cannot be written");
}

}  // namespace ciwrap::record
