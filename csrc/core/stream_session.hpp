// A streaming comparison that reads and compares on a thread of its own, while its user still finds
// out what else there is to compare, and makes results of what is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/stream_compare.hpp"

namespace ciwrap {

// Used by one thread. Must not be alive across a fork that goes on to use it in the child.
class StreamSession {
  public:
    struct Done {
        std::size_t job;
        StreamOutcome outcome;
    };

    // The sink is called from the session's thread. Errors of the options come out of the calls
    // below. Throws Error(not_available) if no thread can be started.
    StreamSession(const StreamOptions& options, const Execution& execution,
                  DifferenceSink sink = {});
    // Gives up what is not done yet, and waits for the reads under way.
    ~StreamSession();
    StreamSession(const StreamSession&) = delete;
    StreamSession& operator=(const StreamSession&) = delete;

    // The first call after something has ended the comparison throws it, and each further one
    // Error(interrupted).

    // Returns the job's number: 0, 1, ... Error(invalid_argument) after close().
    std::size_t add(StreamJob job);
    // Jobs that are done and were not returned before. wait: until there is one, or all are done;
    // `interrupt` is called now and then meanwhile, and what it throws is passed on.
    std::vector<Done> take_done(bool wait, const Interrupt& interrupt = {});
    // Of both sides, so far.
    std::uint64_t bytes_compared() const;
    // There will be no more jobs; waits for those that are not done. take_done then has the rest.
    StreamTotals close(const Interrupt& interrupt = {});

  private:
    struct Shared;
    std::unique_ptr<Shared> shared_;
};

}  // namespace ciwrap
