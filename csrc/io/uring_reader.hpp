// The engine that keeps many reads in flight from one thread, by way of io_uring.
//
// A thread of its own fills and reaps the ring: the kernel copies data that it has cached during
// the system call that submits, and that copying is to overlap with the caller's computing.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "io/read_queue.hpp"

namespace ciwrap {

class UringReader {
  public:
    // Sets up the ring, sees whether it really answers, and starts to serve the queue.
    // Throws Error(not_available) with the reason.
    UringReader(std::shared_ptr<ReadQueue> queue, unsigned queue_depth);
    // Closes the queue and waits for the reads under way.
    ~UringReader();
    UringReader(const UringReader&) = delete;
    UringReader& operator=(const UringReader&) = delete;

    // Why io_uring cannot be used in this process; none if it can.
    static std::optional<std::string> why_unusable();
    static std::string library_version();

    // Registers memory that reads go to. False if some is registered already or the system refuses.
    // No read into it may be under way at either call.
    bool register_memory(std::span<std::byte> memory);
    void unregister_memory();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ciwrap
