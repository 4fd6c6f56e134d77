// Comparison with a reference while the program runs: what does not match, and what follows.
#pragma once

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
// process, for who waits for the others; empty: none. keeps_residues: whether the run is to have
// residues of its own, so that others can be compared with it.
struct OnlineOptions {
    std::string against;
    OnDivergence on_divergence = OnDivergence::report;
    std::int64_t patience = 1;
    double wait_seconds = 60;
    double stop_seconds = 60;
    std::string ended_mark;
    bool keeps_residues = false;

    // Whether what does not match ends the program.
    bool ends_program() const {
        return on_divergence == OnDivergence::stop || on_divergence == OnDivergence::abort;
    }
    // CIWRAP_RECORD_AGAINST, _ON_DIVERGENCE, _PATIENCE, _WAIT, _STOP_WITHIN, _ENDED_MARK,
    // _RESIDUES. Throws Error(invalid_argument).
    static OnlineOptions from_environment();
};

// Not thread safe.
class Online {
  public:
    // What a checkpoint comes to for the program.
    struct Answer {
        // Calls the program back, if it is to be: outside of any lock, since it may call us.
        void tell() const;

        ciwrap_callback callback = nullptr;  // null: there is nothing to tell
        void* callback_data = nullptr;
        std::int64_t iteration = 0;
        std::string point;
        std::string variable;
        std::uint64_t suspect_count = 0;
        std::uint64_t leaf_count = 0;
        bool is_to_stop = false;
        bool is_to_be_ended = false;  // at once, by `end_process`
    };

    // Throws as `Reference` does, and Error(invalid_argument) for a reference of another number of
    // processes.
    Online(const OnlineOptions& options, int rank, int ranks);

    Reference& reference() { return reference_; }
    bool keeps_residues() const { return options_.keeps_residues; }
    void call_back(ciwrap_callback callback, void* data);
    // Compares a variable that has been hashed, whose data are still there, with its reference if
    // it has one; a second time nothing is done.
    void look_at(Recorded& one);
    // Compares a checkpoint that has been hashed.
    Answer judge(Batch& batch);
    // Ends this process, whose journal is closed.
    [[noreturn]] static void end_process(const std::string& ended_mark);

  private:
    void tell_of(const Batch& batch, const Recorded& one) const;

    OnlineOptions options_;
    int rank_;
    Reference reference_;
    ciwrap_callback callback_ = nullptr;
    void* callback_data_ = nullptr;
    bool has_diverged_ = false;
    bool has_proven_ = false;  // and that this is a difference
    std::int64_t checkpoints_since_ = 0;
    std::uint64_t sampled_bytes_ = 0;
    std::optional<std::chrono::steady_clock::time_point> told_to_stop_at_;
};

}  // namespace ciwrap::record
