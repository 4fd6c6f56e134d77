// Comparison with a reference while the program runs: what does not match, and what follows.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "record/batch.hpp"
#include "record/reference.hpp"

namespace ciwrap::record {

enum class OnDivergence : std::uint8_t { report, callback, stop, abort };

// against: the folder of a recorded run; empty: none. patience: how many checkpoints the program
// goes on for after the first one that does not match. stop_seconds: for how long one may go on
// that is to stop, but does not. ended_mark: a file that is made when this library has ended a
// process, for who waits for the others; empty: none.
struct OnlineOptions {
    std::string against;
    OnDivergence on_divergence = OnDivergence::report;
    std::int64_t patience = 1;
    double wait_seconds = 60;
    double stop_seconds = 60;
    std::string ended_mark;

    // CIWRAP_RECORD_AGAINST, _ON_DIVERGENCE, _PATIENCE, _WAIT, _STOP_WITHIN, _ENDED_MARK. Throws
    // Error(invalid_argument).
    static OnlineOptions from_environment();
};

// Not thread safe, but for `should_stop`.
class Online {
  public:
    // Throws as `Reference` does.
    Online(const OnlineOptions& options, int rank, int ranks);

    Reference& reference() { return reference_; }
    void call_back(ciwrap_callback callback, void* data);
    // Compares a checkpoint that has been hashed, whose data are still there.
    void judge(Batch& batch);
    // Tells the program, if there is something to tell; whether it is to be ended at once. Outside
    // of any lock: the program may call us.
    bool tell();
    bool should_stop() const { return should_stop_.load(); }
    // Ends this process, whose journal is closed: `tell` said so.
    [[noreturn]] void end_process() const;

  private:
    void begin_telling(const Batch& batch, const Recorded& one);

    OnlineOptions options_;
    int rank_;
    Reference reference_;
    ciwrap_callback callback_ = nullptr;
    void* callback_data_ = nullptr;
    bool has_diverged_ = false;
    std::int64_t checkpoints_since_ = 0;
    std::uint64_t sampled_bytes_ = 0;
    std::atomic<bool> should_stop_{false};
    std::chrono::steady_clock::time_point told_to_stop_at_;
    // Of the checkpoint judged last, until it is told.
    struct News {
        std::int64_t iteration;
        std::string point;
        std::string variable;
        std::uint64_t leaf_count;
        std::uint64_t suspect_count;
    };
    std::optional<News> news_;
};

}  // namespace ciwrap::record
