// The reads an engine has still to do, shared between those who submit and those who read.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "ciwrap/error.hpp"
#include "io/read_engine.hpp"

namespace ciwrap {

// Guarded by the mutex of the queue it came from.
struct BatchState {
    std::size_t unfinished = 0;
    std::optional<Error> error;  // the first one; the batch's other reads are then dropped
};

// What is left of one request.
struct QueuedRead {
    ReadRequest rest;
    std::shared_ptr<BatchState> batch;
};

// Advances `read` by what one system call gave: `result` bytes, or -errno. True: done. False: to be
// tried again for the rest. Throws Error for a failure, or for a file that has ended too early.
bool advance(QueuedRead& read, long result);

// Most that one system call is asked for. Longer requests are cut, so that several threads share a
// large one; short neighbours are joined up to this.
inline constexpr std::size_t longest_read = std::size_t{1} << 20;

// Thread safe. Every read that is taken must be given back through finish() exactly once.
class ReadQueue {
  public:
    std::shared_ptr<BatchState> push(std::span<const ReadRequest> requests);

    // Moves up to `limit` reads to the end of `taken`. With `block`, waits until there is one or
    // the queue is closed. Returns false when closed.
    bool take(std::vector<QueuedRead>& taken, std::size_t limit, bool block);

    void finish(const QueuedRead& read, const Error* error = nullptr);

    // Until the batch has no unfinished read; returns its error.
    std::optional<Error> wait(BatchState& batch);

    // Fails what is still queued and lets take() return false.
    void close();

  private:
    void finish_locked(const QueuedRead& read, const Error* error);

    std::mutex mutex_;
    std::condition_variable work_;      // something was queued, or the queue was closed
    std::condition_variable finished_;  // a batch has ended
    std::deque<QueuedRead> queued_;
    bool closed_ = false;
};

}  // namespace ciwrap
