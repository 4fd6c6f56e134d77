#include "core/stream_session.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace ciwrap {
namespace {

constexpr std::chrono::milliseconds between_interrupts{50};

}  // namespace

struct StreamSession::Shared : StreamJobs {
    Shared(const StreamOptions& stream_options, const Execution& where, DifferenceSink taker)
        : options(stream_options), execution(where), sink(std::move(taker)) {}

    std::optional<StreamJob> next(bool wait) override {
        std::unique_lock lock(mutex);
        if (wait)
            added.wait(lock, [&] { return !jobs.empty() || is_closed || is_given_up; });
        refuse_if_given_up();
        if (jobs.empty())
            return std::nullopt;
        StreamJob job = std::move(jobs.front());
        jobs.pop_front();
        return job;
    }

    void done(std::size_t number, StreamOutcome&& outcome) override {
        {
            const std::lock_guard lock(mutex);
            outcomes.push_back({number, std::move(outcome)});
        }
        changed.notify_all();
    }

    void compared(std::uint64_t bytes) override {
        bytes_compared.fetch_add(bytes, std::memory_order_relaxed);
    }

    void refuse_if_given_up() const {
        if (is_given_up)
            throw Error(ErrorCode::interrupted, "the comparison was given up");
    }

    void work() noexcept {
        StreamTotals found;
        std::exception_ptr caught;
        try {
            found = stream_compare(
                *this, options, execution, [this] { refuse_if_given_up(); }, sink);
        } catch (...) {
            caught = std::current_exception();
        }
        {
            const std::lock_guard lock(mutex);
            totals = std::move(found);
            has_failed = caught != nullptr;
            failure = std::move(caught);
            has_ended = true;
        }
        changed.notify_all();
    }

    // Until `condition` holds or the comparison has ended, whether well or not.
    template <class Condition>
    void wait_for(std::unique_lock<std::mutex>& lock, const Interrupt& interrupt,
                  const Condition& condition) {
        while (
            !changed.wait_for(lock, between_interrupts, [&] { return has_ended || condition(); })) {
            if (!interrupt)
                continue;
            lock.unlock();  // it may take a lock that the sink waits for
            interrupt();
            lock.lock();
        }
        throw_failure();
    }

    // What has ended the comparison, once: what a sink throws may belong to another language, whose
    // exceptions cannot be thrown again. Under the mutex.
    void throw_failure() {
        if (failure)
            std::rethrow_exception(std::exchange(failure, nullptr));
        if (has_failed)
            throw Error(ErrorCode::interrupted, "the comparison has ended with an error");
    }

    const StreamOptions options;
    const Execution execution;
    const DifferenceSink sink;
    std::atomic<bool> is_given_up{false};
    std::atomic<std::uint64_t> bytes_compared{0};

    std::mutex mutex;                 // of all that follows
    std::condition_variable added;    // a job, or the end of jobs
    std::condition_variable changed;  // a job is done, or the thread has ended
    std::deque<StreamJob> jobs;
    std::size_t added_count = 0;
    std::size_t taken_count = 0;
    std::vector<Done> outcomes;
    bool is_closed = false;
    bool has_ended = false;
    StreamTotals totals;
    bool has_failed = false;
    std::exception_ptr failure;  // until it is thrown
    std::thread thread;
};

StreamSession::StreamSession(const StreamOptions& options, const Execution& execution,
                             DifferenceSink sink)
    : shared_(std::make_unique<Shared>(options, execution, std::move(sink))) {
    try {
        shared_->thread = std::thread([shared = shared_.get()] { shared->work(); });
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::not_available,
                    std::string("no thread can be started: ") + error.what());
    }
}

StreamSession::~StreamSession() {
    shared_->is_given_up = true;
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->is_closed = true;
    }
    shared_->added.notify_all();
    shared_->thread.join();
}

std::size_t StreamSession::add(StreamJob job) {
    std::size_t number = 0;
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->throw_failure();
        if (shared_->is_closed)
            throw Error(ErrorCode::invalid_argument, "the comparison is closed");
        shared_->jobs.push_back(std::move(job));
        number = shared_->added_count++;
    }
    shared_->added.notify_all();
    return number;
}

std::vector<StreamSession::Done> StreamSession::take_done(bool wait, const Interrupt& interrupt) {
    std::unique_lock lock(shared_->mutex);
    Shared& shared = *shared_;
    shared.throw_failure();
    if (wait && shared.taken_count < shared.added_count)
        shared.wait_for(lock, interrupt, [&] { return !shared.outcomes.empty(); });
    shared.taken_count += shared.outcomes.size();
    return std::exchange(shared.outcomes, {});
}

std::uint64_t StreamSession::bytes_compared() const {
    return shared_->bytes_compared.load(std::memory_order_relaxed);
}

StreamTotals StreamSession::close(const Interrupt& interrupt) {
    std::unique_lock lock(shared_->mutex);
    shared_->is_closed = true;
    shared_->added.notify_all();
    shared_->wait_for(lock, interrupt, [] { return false; });
    return shared_->totals;
}

}  // namespace ciwrap
