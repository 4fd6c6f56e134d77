#include "io/pread_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace ciwrap {

namespace {

void read_all(QueuedRead& read) {
    for (;;) {
        const ssize_t result = ::pread(read.rest.file->descriptor(), read.rest.destination,
                                       read.rest.length, static_cast<off_t>(read.rest.offset));
        if (advance(read, result < 0 ? -static_cast<long>(errno) : result)) {
            return;
        }
    }
}

void serve(ReadQueue& queue) {
    std::vector<QueuedRead> taken;
    while (queue.take(taken, 1, true) || !taken.empty()) {
        for (QueuedRead& read : taken) {
            try {
                read_all(read);
                queue.finish(read);
            } catch (const Error& error) {
                queue.finish(read, &error);
            }
        }
        taken.clear();
    }
}

// The threads mostly wait for the disk, so there are more of them than cores, within reason.
unsigned default_thread_count() {
    return std::clamp(2 * std::thread::hardware_concurrency(), 4U, 16U);
}

}  // namespace

PreadReader::PreadReader(std::shared_ptr<ReadQueue> queue, unsigned threads)
    : queue_(std::move(queue)) {
    const unsigned wanted = threads != 0 ? threads : default_thread_count();
    threads_.reserve(wanted);
    for (unsigned i = 0; i < wanted; ++i) {
        try {
            threads_.emplace_back([shared = queue_] { serve(*shared); });
        } catch (const std::system_error& error) {
            if (threads_.empty()) {
                throw Error(ErrorCode::not_available,
                            std::string("pread: no thread can be started: ") + error.what());
            }
            break;  // fewer will do
        }
    }
}

PreadReader::~PreadReader() {
    queue_->close();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

}  // namespace ciwrap
