// Reading the records of a journal one after the other, also while it grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ciwrap/uninitialized_bytes.hpp"
#include "record/journal.hpp"

namespace ciwrap::record {

inline constexpr std::uint32_t record_magic = 0x52575243;  // "CRWR"
inline constexpr std::size_t head_bytes = 64;
inline constexpr std::size_t record_head_bytes = 48;
inline constexpr std::size_t checksum_bytes = 16;

// What this library writes, and the oldest version that it reads. Version 3 has summaries, and says
// what they prove.
inline constexpr std::uint32_t journal_version = 3;
inline constexpr std::uint32_t oldest_journal_version = 2;

struct JournalHead {
    std::uint64_t rank = 0;
    std::uint64_t ranks = 1;
    std::uint32_t version = journal_version;
};

std::vector<std::byte> make_head(const JournalHead& head);
// Nothing for a file that does not begin as a journal that can be read. Throws Error(io).
std::optional<JournalHead> read_head(const std::string& path, int descriptor);
std::uint64_t get_number(const std::byte* from, std::size_t bytes);

// Where a record lies, as its head says.
struct RecordPlace {
    RecordKey key;
    std::uint64_t offset;
    std::uint64_t payload_bytes;
};

// All of a record. A payload may be as large as the residues of an array, so nothing is copied.
struct ReadRecord {
    UninitializedBytes bytes;
    std::uint64_t payload_bytes;

    std::span<const std::byte> payload() const {
        return std::as_bytes(std::span(bytes)).subspan(record_head_bytes, payload_bytes);
    }
};

// Goes through a journal that somebody else holds open. Throws Error(io) where it cannot be read.
class RecordScan {
  public:
    RecordScan(std::string path, int descriptor)
        : path_(std::move(path)), descriptor_(descriptor) {}

    // The next record, if all of it is in the file as it is now. Only its head was looked at.
    std::optional<RecordPlace> peek();
    // Nothing if the record is not what its checksum says.
    std::optional<ReadRecord> read(const RecordPlace& place) const;
    void pass(const RecordPlace& place);
    // Whether a later record begins behind a place where none can be read: then that place is
    // damaged, not half written. What is written last has nothing behind it.
    bool is_damaged() const;

    std::uint64_t end() const { return end_; }  // behind the last record that was passed
    std::uint64_t count() const { return count_; }

  private:
    std::string path_;
    int descriptor_;
    std::uint64_t size_ = 0;
    std::uint64_t end_ = head_bytes;
    std::uint64_t count_ = 0;
};

}  // namespace ciwrap::record
