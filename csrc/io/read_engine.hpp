// Reads byte ranges of files, many at a time, while the caller computes.
//
// One class over two engines. `io_uring` keeps many reads in flight from one thread; `pread` does
// the same with a small pool of threads and works everywhere. io_uring is probed at construction,
// since containers and system settings often forbid it: `automatic` then takes pread and says why,
// while an engine that was asked for by name and is missing is an error.
//
// Files are never mapped: a file that is truncated underneath is an Error here, not a SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_file.hpp"

namespace ciwrap {

struct BatchState;
class ReadEngine;
class ReadQueue;

enum class EngineKind { automatic, io_uring, pread };

// "auto", "io_uring" or "pread"; throws Error(invalid_argument) for anything else.
EngineKind parse_engine_kind(std::string_view name);

struct EngineReport {
    std::string name;
    bool usable;
    std::string reason;  // why it is not usable, else empty
};

// Tries every engine on this machine now; the preferred one comes first.
std::vector<EngineReport> io_engine_report();

// Version of the liburing that is built in, "none" without one.
std::string liburing_version();

// `length` bytes from `offset` on of `file`, to be written to `destination`. File and destination
// must stay until the batch has been waited for.
struct ReadRequest {
    const InputFile* file;
    std::uint64_t offset;
    std::size_t length;
    std::byte* destination;
};

// Reads under way. Move-only; the destructor waits, so that no read is left writing into memory
// that its owner frees while an exception unwinds. Declare it after the buffers it fills.
class ReadBatch {
  public:
    ReadBatch() = default;
    ~ReadBatch();
    ReadBatch(ReadBatch&&) noexcept = default;
    ReadBatch& operator=(ReadBatch&& other) noexcept;
    ReadBatch(const ReadBatch&) = delete;
    ReadBatch& operator=(const ReadBatch&) = delete;

    // Returns when every byte has arrived. Throws the first Error met: `io`, or `corrupt_file` when
    // a file ended before its range did; no read of the batch is under way any more then either.
    // At once for an empty or a moved-from batch.
    void wait();

  private:
    friend class ReadEngine;
    ReadBatch(std::shared_ptr<ReadQueue> queue, std::shared_ptr<BatchState> state);
    void finish() noexcept;

    std::shared_ptr<ReadQueue> queue_;
    std::shared_ptr<BatchState> state_;
};

// Page-aligned memory to read into, registered with the kernel where the engine can do that.
// Move-only; must not outlive its engine, nor be destroyed while a read into it is under way.
class ReadBuffers {
  public:
    ReadBuffers() = default;
    ~ReadBuffers();
    ReadBuffers(ReadBuffers&& other) noexcept;
    ReadBuffers& operator=(ReadBuffers&& other) noexcept;
    ReadBuffers(const ReadBuffers&) = delete;
    ReadBuffers& operator=(const ReadBuffers&) = delete;

    std::size_t count() const noexcept { return count_; }
    std::span<std::byte> operator[](std::size_t index) const noexcept {
        return {memory_ + index * stride_, bytes_};
    }

  private:
    friend class ReadEngine;
    std::byte* memory_ = nullptr;
    std::size_t count_ = 0;
    std::size_t bytes_ = 0;
    std::size_t stride_ = 0;
    ReadEngine* registered_with_ = nullptr;
};

struct EngineOptions {
    EngineKind kind = EngineKind::automatic;
    unsigned queue_depth = 128;  // io_uring: reads in flight; at least 1, at most 4096
    unsigned threads = 0;        // pread: reading threads; 0 chooses by the machine
};

// Thread safe: several threads may submit. Not to be used in a child after fork. The destructor
// gives up reads that have not begun and waits for the others. Stays where it was made.
class ReadEngine {
  public:
    // Throws Error(not_available) when a named engine cannot be used, Error(invalid_argument) for a
    // queue depth out of range.
    explicit ReadEngine(const EngineOptions& options = {});
    ~ReadEngine();
    ReadEngine(const ReadEngine&) = delete;
    ReadEngine& operator=(const ReadEngine&) = delete;

    // "io_uring" or "pread": the one that reads.
    std::string_view name() const noexcept;
    // Why `automatic` did not take io_uring; empty otherwise.
    const std::string& fallback_reason() const noexcept;

    // Begins to read and returns at once, whatever the number of requests. Requests that continue
    // each other in file and memory are read together, long ones in pieces; in any order.
    // Throws Error(corrupt_file) before anything is read if a range exceeds its file.
    [[nodiscard]] ReadBatch submit(std::span<const ReadRequest> requests);

    // submit and wait.
    void read(std::span<const ReadRequest> requests);

    // `count` buffers of `bytes` each. Registration with io_uring spares it to look up memory at
    // every read, but touches all of it at once. It is had by the first buffers alive that ask for
    // it, if the system lets io_uring lock that much memory; without it they work the same.
    ReadBuffers make_buffers(std::size_t count, std::size_t bytes, bool is_registered = true);

  private:
    friend class ReadBuffers;
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ciwrap
