// Cuts the jobs of a streaming comparison into slices that fit a buffer. Internal to csrc/core.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/piece_comparer.hpp"
#include "core/stream_compare.hpp"
#include "io/stored_range.hpp"

namespace ciwrap {

struct JobFiles {
    StoredRange golden;
    StoredRange value;
};

// A job on its way through the comparison.
struct JobUnderWay {
    std::size_t number;
    StreamJob job;
    StreamOutcome outcome;
    std::unique_ptr<const JobFiles> files;    // until it is done
    std::unique_ptr<PieceComparer> comparer;  // once there is something to compare
    std::size_t open_pieces = 0;              // planned, and not compared yet
    bool is_planned = false;                  // there will be no more pieces
};

// A stretch of a job's arrays, in both runs.
struct Piece {
    std::shared_ptr<JobUnderWay> job;
    std::uint64_t from;  // byte of the array
    std::size_t length;
    const std::byte* golden;
    const std::byte* value;
    std::size_t first_request;
    std::size_t request_count;
};

// Goes once through all jobs. Jobs whose files cannot be opened get their error on the way.
class ReadPlan {
  public:
    // on_planned: told of every job from which no more pieces will come, `open_pieces` may be 0.
    ReadPlan(StreamJobs& jobs, DirectReads direct, std::function<void(JobUnderWay&)> on_planned);

    // Waits for the first job; false if there will be none.
    bool has_job() { return job_ || take_job(true); }
    // Both sides' bytes of the current job.
    std::uint64_t job_bytes() const;

    // Fills `memory` with the next pieces, as far as there are jobs; false if there are no pieces.
    // wait: for a job, if there is none; false then means that all are planned. Pieces of jobs that
    // have failed meanwhile are left out. Throws Error(invalid_argument) for memory that is too
    // small.
    bool next(std::span<std::byte> memory, std::vector<Piece>& pieces,
              std::vector<ReadRequest>& requests, bool wait);

  private:
    bool take_job(bool wait);
    void open_job();
    void end_job();
    // Bytes of a piece, as many as fit into `most`; 0 if that does not hold one element.
    std::uint64_t cut(std::uint64_t most) const;
    // The next stretch of neighbouring chunks of the current job; false at its end.
    bool next_stretch();

    StreamJobs& jobs_;
    DirectReads direct_;
    std::function<void(JobUnderWay&)> on_planned_;
    std::size_t taken_ = 0;
    std::shared_ptr<JobUnderWay> job_;  // the current one
    std::uint64_t chunk_bytes_ = 0;
    std::uint64_t chunk_count_ = 0;
    // A stretch is cut at multiples of the first of these that fits: blocks of elements, so that
    // sums run over the same ones as in an array that is compared in one go; elements that begin
    // where reads past the cache may; elements.
    std::array<std::uint64_t, 3> units_{1, 1, 1};
    std::size_t leaf_ = 0;    // position in leaves
    std::uint64_t from_ = 0;  // of the rest of the current stretch
    std::uint64_t to_ = 0;
};

}  // namespace ciwrap
