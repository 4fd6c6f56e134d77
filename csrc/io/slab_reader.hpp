// Streams a byte range of a file in order, reading ahead while the caller computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ciwrap/error.hpp"
#include "io/read_engine.hpp"
#include "io/stored_range.hpp"

namespace ciwrap {

struct SlabOptions {
    std::size_t slab_bytes = std::size_t{2} << 20;
    unsigned buffer_count = 4;  // at least 2: one to compute on, the others being filled
    DirectReads direct = DirectReads::automatic;
    std::optional<FileStamp> stamp{};  // what the file has to be still when it is opened
};

// Memory: buffer_count * slab_bytes, whatever the length. One consumer. The engine must outlive it.
class SlabReader {
  public:
    // Begins to read. Throws Error as InputFile does, corrupt_file if the file is shorter than
    // offset + length, invalid_argument for slabs of no bytes or fewer than two buffers.
    SlabReader(ReadEngine& engine, const std::string& path, std::uint64_t offset,
               std::uint64_t length, const SlabOptions& options = {});
    SlabReader(const SlabReader&) = delete;
    SlabReader& operator=(const SlabReader&) = delete;

    // The next bytes: slab_bytes of them, fewer in the last slab, none (an empty span) after it.
    // Valid until the next call. Throws what ReadBatch::wait throws, and so do later calls then.
    std::span<const std::byte> next();

    // After the last bytes. Throws Error(corrupt_file) if the file was written since it was opened.
    void require_unchanged() const { range_.require_unchanged(); }

  private:
    struct Slab {
        std::span<const std::byte> bytes;
        ReadBatch batch;
    };
    void fill(std::size_t index);

    ReadEngine& engine_;
    StoredRange range_;
    std::uint64_t position_ = 0;  // in the range, of the first byte not yet asked for
    std::size_t slab_bytes_;
    std::vector<ReadRequest> requests_;
    ReadBuffers buffers_;
    std::vector<Slab> slabs_;  // after buffers_: its batches end first
    std::size_t current_ = 0;
    bool started_ = false;
    std::optional<Error> error_;  // what lies behind it is never given
};

}  // namespace ciwrap
