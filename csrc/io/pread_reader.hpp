// The engine that works everywhere: a few threads calling pread.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "io/read_queue.hpp"

namespace ciwrap {

class PreadReader {
  public:
    // 0 threads: chosen by the machine. Throws Error(not_available) if no thread can be started.
    PreadReader(std::shared_ptr<ReadQueue> queue, unsigned threads);
    // Closes the queue and waits for the reads under way.
    ~PreadReader();
    PreadReader(const PreadReader&) = delete;
    PreadReader& operator=(const PreadReader&) = delete;

  private:
    std::shared_ptr<ReadQueue> queue_;
    std::vector<std::thread> threads_;
};

}  // namespace ciwrap
