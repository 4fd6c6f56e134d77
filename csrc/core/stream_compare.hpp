// Stage two over many pairs of stored arrays at once: suspect chunks of both runs are read, many at
// a time, while others are compared. Memory is bounded by the caller, whatever the size of the
// data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ciwrap/compare.hpp"
#include "ciwrap/error.hpp"
#include "ciwrap/parameters.hpp"
#include "io/read_engine.hpp"
#include "io/stored_range.hpp"
#include "kernels/executor.hpp"

namespace ciwrap {

// Two stored arrays of byte_count bytes, back to back in C order.
struct StreamJob {
    TreeParameters parameters;
    std::string golden_path;
    std::uint64_t golden_offset = 0;
    std::string value_path;
    std::uint64_t value_offset = 0;
    std::uint64_t byte_count = 0;
    // Which chunks to compare, ascending; none: all.
    std::optional<std::vector<std::uint64_t>> leaves{};
    // What the files have to be still, where their user has looked at them before.
    std::optional<FileStamp> golden_stamp{};
    std::optional<FileStamp> value_stamp{};
};

// What a job came to. error: why it could not be compared (a file that was written meanwhile, too);
// the comparison then means nothing.
// first_*: both sides' bytes of the first differing elements, back to back; as many as
// comparison.indices has, up to StreamOptions::max_values.
struct StreamOutcome {
    Comparison comparison;
    std::optional<Error> error;
    std::vector<std::byte> first_golden;
    std::vector<std::byte> first_value;
};

struct StreamOptions {
    EngineOptions engine;
    std::size_t memory_bytes = std::size_t{256} << 20;  // for buffers; at least 1 MiB
    DirectReads direct = DirectReads::automatic;
    std::size_t max_indices = 100;
    std::size_t max_values = 10;
};

// How all of it was read.
struct StreamTotals {
    std::uint64_t bytes_read = 0;         // asked of the files, alignment included
    std::uint64_t direct_bytes_read = 0;  // of these, past the cache
    std::uint64_t read_count = 0;         // stretches, before long ones are cut
    std::uint64_t buffer_bytes = 0;
    std::string engine;
};

struct StreamReport {
    std::vector<StreamOutcome> outcomes;  // one per job, in the same order
    StreamTotals totals;
};

// Every differing element, in ascending order within its job: flat indices, and both sides' bytes
// back to back in the dtype of the job's parameters. Called from the thread that compares; what it
// throws ends the comparison.
using DifferenceSink =
    std::function<void(std::size_t job, std::span<const std::int64_t> indices,
                       std::span<const std::byte> golden, std::span<const std::byte> value)>;

// Where a comparison gets its jobs, and leaves what became of them. Called from one thread.
class StreamJobs {
  public:
    virtual ~StreamJobs() = default;
    // The next job; none if there is none now, or, with `wait`, if there will be none any more.
    virtual std::optional<StreamJob> next(bool wait) = 0;
    // The job with this number, in the order in which they were taken, from 0 on, is done.
    virtual void done(std::size_t number, StreamOutcome&& outcome) = 0;
    // So many bytes more, of both sides, have been compared or given up.
    virtual void compared(std::uint64_t) {}
};

// Until there are no more jobs. Throws Error for arguments without a meaning, and what `interrupt`
// or `sink` throws; whatever is wrong with a job's files is in its outcome and stops no other job.
StreamTotals stream_compare(StreamJobs& jobs, const StreamOptions& options,
                            const Execution& execution, const Interrupt& interrupt = {},
                            const DifferenceSink& sink = {});

// The same for jobs that are all there.
StreamReport stream_compare(const std::vector<StreamJob>& jobs, const StreamOptions& options,
                            const Execution& execution, const Interrupt& interrupt = {},
                            const DifferenceSink& sink = {});

}  // namespace ciwrap
