#include "io/read_queue.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "io/read_result.hpp"

namespace ciwrap {

bool advance(QueuedRead& read, long result) {
    ReadRequest& rest = read.rest;
    result = read_result(rest, result);
    if (result == -EINTR || result == -EAGAIN) {
        return false;
    }
    struct stat status {};
    // A direct read that goes on behind a cut within a block is refused rather than empty.
    if (result == -EINVAL && ::fstat(rest.file->descriptor(), &status) == 0 &&
        rest.offset >= static_cast<std::uint64_t>(status.st_size)) {
        result = 0;
    }
    if (result < 0) {
        throw Error(ErrorCode::io, rest.file->path() + ": cannot be read at byte " +
                                       std::to_string(rest.offset) + ": " +
                                       std::generic_category().message(static_cast<int>(-result)));
    }
    if (result == 0) {
        throw Error(ErrorCode::corrupt_file,
                    rest.file->path() + ": ends at or before byte " + std::to_string(rest.offset) +
                        ", but had " + std::to_string(rest.file->size()) +
                        " bytes when it was opened; it was truncated meanwhile");
    }
    const auto bytes = static_cast<std::size_t>(result);
    rest.offset += bytes;
    rest.destination += bytes;
    rest.length -= bytes;
    return rest.length == 0;
}

namespace {

bool continues(const ReadRequest& before, const ReadRequest& after) {
    return before.file == after.file && before.offset + before.length == after.offset &&
           before.destination + before.length == after.destination;
}

// Joins neighbours and cuts what is long.
std::vector<ReadRequest> plan_reads(std::span<const ReadRequest> requests) {
    std::vector<ReadRequest> planned;
    planned.reserve(requests.size());
    for (const ReadRequest& request : requests) {
        ReadRequest rest = request;
        if (rest.length != 0 && !planned.empty() && continues(planned.back(), rest)) {
            const std::size_t joined = std::min(rest.length, longest_read - planned.back().length);
            planned.back().length += joined;
            rest.offset += joined;
            rest.destination += joined;
            rest.length -= joined;
        }
        while (rest.length != 0) {
            ReadRequest piece = rest;
            piece.length = std::min(rest.length, longest_read);
            rest.offset += piece.length;
            rest.destination += piece.length;
            rest.length -= piece.length;
            planned.push_back(piece);
        }
    }
    return planned;
}

}  // namespace

std::shared_ptr<BatchState> ReadQueue::push(std::span<const ReadRequest> requests) {
    const std::vector<ReadRequest> planned = plan_reads(requests);
    auto batch = std::make_shared<BatchState>();
    batch->unfinished = planned.size();
    {
        const std::lock_guard lock(mutex_);
        for (const ReadRequest& piece : planned) {
            queued_.push_back({piece, batch});
        }
    }
    work_.notify_all();
    return batch;
}

bool ReadQueue::take(std::vector<QueuedRead>& taken, std::size_t limit, bool block) {
    std::unique_lock lock(mutex_);
    std::size_t count = 0;
    while (count < limit) {
        if (queued_.empty()) {
            if (!block || count != 0 || closed_) {
                break;
            }
            work_.wait(lock);
            continue;
        }
        QueuedRead read = std::move(queued_.front());
        queued_.pop_front();
        if (read.batch->error) {
            finish_locked(read, nullptr);
            continue;
        }
        taken.push_back(std::move(read));
        ++count;
    }
    return !closed_;
}

void ReadQueue::finish(const QueuedRead& read, const Error* error) {
    const std::lock_guard lock(mutex_);
    finish_locked(read, error);
}

void ReadQueue::finish_locked(const QueuedRead& read, const Error* error) {
    if (error != nullptr && !read.batch->error) {
        read.batch->error = *error;
    }
    if (--read.batch->unfinished == 0) {
        finished_.notify_all();
    }
}

std::optional<Error> ReadQueue::wait(BatchState& batch) {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return batch.unfinished == 0; });
    return batch.error;
}

void ReadQueue::close() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        const Error given_up(ErrorCode::interrupted, "reading was given up");
        for (const QueuedRead& read : queued_) {
            finish_locked(read, &given_up);
        }
        queued_.clear();
    }
    work_.notify_all();
}

}  // namespace ciwrap
