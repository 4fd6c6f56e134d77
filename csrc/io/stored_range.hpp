// A range of a file, read through the system's cache or past it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_file.hpp"
#include "io/read_engine.hpp"

namespace ciwrap {

// Whether to read past the system's cache where the file system can: `automatic` does
// where most of a range is not in it. Filling the cache costs more than it brings for data that are
// read once.
enum class DirectReads : std::uint8_t { automatic, always, never };

// "auto", "always" or "never"; throws Error(invalid_argument) for anything else.
DirectReads parse_direct_reads(std::string_view name);

// Past the cache, all but the bytes behind the last whole block are. Requests point into it: stays
// where it is while any is under way.
class StoredRange {
  public:
    // Throws Error as InputFile does, and corrupt_file if the range exceeds the file, or the file
    // is not what it was at `stamp`.
    StoredRange(const std::string& path, std::uint64_t offset, std::uint64_t byte_count,
                DirectReads direct, Access access, const std::optional<FileStamp>& stamp = {});

    std::uint64_t byte_count() const { return byte_count_; }
    // When the reads are done; throws as InputFile does.
    void require_unchanged() const { cached_.require_unchanged(); }

    // Memory that reading `length` bytes may need, wherever they lie.
    static std::size_t room_for(std::size_t length) { return length + 2 * direct_alignment; }

    // Adds the reads that bring [from, from + length) of the range to `memory` (aligned to
    // direct_alignment, room_for(length) bytes); returns where its first byte will be.
    const std::byte* plan(std::uint64_t from, std::size_t length, std::byte* memory,
                          std::vector<ReadRequest>& requests) const;

    bool is_direct() const { return direct_.has_value(); }
    const InputFile* direct_file() const { return direct_ ? &*direct_ : nullptr; }

  private:
    InputFile cached_;
    std::optional<InputFile> direct_;
    std::uint64_t offset_;
    std::uint64_t byte_count_;
};

}  // namespace ciwrap
