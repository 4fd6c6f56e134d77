// The journal of one process: a file that only grows (docs/reference/recording-format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace ciwrap::record {

enum class RecordType : std::uint32_t {
    attempt = 1,     // a program began, or began again
    point = 2,       // the name of a point
    variable = 3,    // name, dtype and parameters of a variable
    tree = 4,        // a tree of a variable at a checkpoint
    complete = 5,    // the checkpoint before it counts
    hole = 6,        // what is not there, and why
    error = 7,       // what went wrong
    end = 8,         // the program closed the journal
    compared = 9,    // how a variable was compared with the reference, or why it was not
    sample = 10,     // the elements of a chunk that does not match the reference's
    summaries = 11,  // of the chunks of a tree before it
};

// What the payload of a tree record begins with.
enum class TreeKind : std::uint32_t { plain = 0, fine = 1, relative = 2 };

// Bytes of a payload, little-endian.
class Payload {
  public:
    Payload& u32(std::uint32_t value);
    Payload& u64(std::uint64_t value);
    Payload& f64(double value);
    Payload& text(const std::string& value);  // length and bytes
    Payload& bytes(std::span<const std::byte> value);
    std::span<const std::byte> span() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

struct RecordKey {
    RecordType type;
    std::int64_t iteration = 0;
    std::uint32_t point = 0;
    std::uint32_t variable = 0;
};

// Where the journal of a rank lies in the folder of a run: "/000/rank-000007.cwr". In folders of
// 1000 ranks each, as file systems like it.
std::string journal_name(int rank);

// Appends whole records, several at once. One writer to a file. Not thread safe.
class Journal {
  public:
    // Goes on behind the last whole record of a journal that is there, or begins one. Throws
    // Error(io) naming the file, and Error(corrupt_file) for a file that is no journal of this
    // rank.
    Journal(std::string path, std::uint64_t rank, std::uint64_t ranks);
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    // Puts a record behind those that wait to be written.
    void add(const RecordKey& key, std::span<const std::byte> payload = {});
    // The same for a payload with parts behind it that are not copied: they have to stay until they
    // are written or forgotten.
    void add(const RecordKey& key, std::span<const std::byte> payload,
             std::initializer_list<std::span<const std::byte>> lent);
    // Writes all that waits. If it fails, the file is as it was and what waited is
    // forgotten. Throws Error(io).
    void commit();
    // Forgets what waits.
    void discard();
    // Waits until the disk has it. Throws Error(io).
    void sync();

    const std::string& path() const { return path_; }
    std::uint64_t file_bytes() const { return end_; }
    // Of what waits, and what is kept for more; without what is lent.
    std::uint64_t memory_bytes() const { return waiting_.capacity(); }

  private:
    // Bytes that are written in front of waiting_[at].
    struct Lent {
        std::size_t at;
        std::span<const std::byte> bytes;
    };

    std::uint64_t write_waiting();
    void begin(std::uint64_t rank, std::uint64_t ranks);

    std::string path_;
    int descriptor_ = -1;
    std::uint64_t end_ = 0;            // behind the last whole record
    std::uint64_t written_ = 0;        // records in the file
    std::uint64_t waiting_count_ = 0;  // and in `waiting_`
    std::vector<std::byte> waiting_;
    std::vector<Lent> lent_;
};

}  // namespace ciwrap::record
