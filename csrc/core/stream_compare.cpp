#include "core/stream_compare.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "core/device_stage.hpp"
#include "core/read_plan.hpp"

namespace ciwrap {
namespace {

constexpr std::size_t smallest_memory = std::size_t{1} << 20;
// Fresh memory is slow to touch, what a slice brings should still be in the cache when it is
// compared, and whoever else reads from the disk waits for what is on its way: slices are small,
// and there are more of them where that brings anything.
// 512 KiB of each run, which are whole blocks of numbers of any size, and what alignment takes.
constexpr std::size_t largest_slice = (std::size_t{1} << 20) + (std::size_t{32} << 10);
// One slice being compared, the others on their way.
constexpr std::size_t fewest_slices = 4;
constexpr std::size_t most_slices = 128;
// A first job of this size is one of many that are read whole: it begins with more slices, and
// takes memory that is all touched at once.
constexpr std::size_t long_job = std::size_t{16} << 20;
constexpr std::size_t long_job_slices = 16;
// Elements whose differences are listed at once.
constexpr std::size_t listed_bytes = std::size_t{1} << 20;

using Clock = std::chrono::steady_clock;

// Finds how many slices are worth having on their way: doubles them as long as that brings
// anything, and stays with the best. Judges only while the comparison waits for the disk.
class SliceControl {
  public:
    SliceControl(std::size_t first, std::size_t most)
        : most_(most), count_(std::min(first, most)), best_count_(count_) {}

    std::size_t count() const { return count_; }

    void note(std::uint64_t bytes, Clock::duration waited, Clock::duration since_last) {
        if (is_settled_ || waited * 4 < since_last)
            return;
        bytes_ += bytes;
        seconds_ += std::chrono::duration<double>(since_last).count();
        if (bytes_ < bytes_per_step)
            return;
        const double rate = static_cast<double>(bytes_) / std::max(seconds_, 1e-9);
        bytes_ = 0;
        seconds_ = 0.0;
        const bool is_better = rate > 1.05 * best_rate_;
        if (is_better) {
            best_rate_ = rate;
            best_count_ = count_;
        }
        is_settled_ = !is_better || 2 * count_ > most_;
        count_ = is_settled_ ? best_count_ : 2 * count_;
    }

  private:
    static constexpr std::uint64_t bytes_per_step = std::uint64_t{128} << 20;
    std::size_t most_;
    std::size_t count_;
    std::size_t best_count_;
    double best_rate_ = 0.0;
    std::uint64_t bytes_ = 0;
    double seconds_ = 0.0;
    bool is_settled_ = false;
};

struct Slice {
    std::span<std::byte> memory;
    std::vector<Piece> pieces;
    std::vector<ReadRequest> requests;
    ReadBatch batch;
    std::uint64_t bytes = 0;
    std::vector<bool> arrived;  // by piece
    std::size_t turn = 0;       // of the device
};

class Streamer {
  public:
    Streamer(StreamJobs& jobs, const StreamOptions& options, const Execution& execution,
             const Interrupt& interrupt, const DifferenceSink& sink)
        : jobs_(jobs),
          options_(options),
          execution_(is_device(execution.backend) ? resolve_execution("auto", 0) : execution),
          backend_(execution.backend),
          interrupt_(interrupt),
          sink_(sink),
          slice_bytes_(std::min(options.memory_bytes / fewest_slices, largest_slice) /
                       direct_alignment * direct_alignment) {
        if (options_.memory_bytes < smallest_memory) {
            throw Error(ErrorCode::invalid_argument,
                        "at least 1 MiB of memory is needed for buffers");
        }
    }

    StreamTotals run() {
        ReadEngine engine(options_.engine);
        totals_.engine = engine.name();
        ReadPlan plan(jobs_, options_.direct, [this](JobUnderWay& job) { finish(job); });
        const bool is_long = plan.has_job() && plan.job_bytes() >= long_job;
        SliceControl control(is_long ? long_job_slices : fewest_slices,
                             std::min(options_.memory_bytes / slice_bytes_, most_slices));
        std::vector<ReadBuffers> memory;
        std::deque<Slice> slices;
        std::vector<Slice*> idle;
        std::deque<Slice*> under_way;
        Slice* held = nullptr;  // by the device, while the next one is waited for
        std::optional<DeviceStage> stage;
        if (is_device(backend_))
            stage.emplace(backend_);
        const auto begin = [&](bool wait) {
            if (slices.size() < control.count() && idle.empty()) {
                const std::size_t more = control.count() - slices.size();
                memory.push_back(engine.make_buffers(more, slice_bytes_, is_long));
                totals_.buffer_bytes += more * slice_bytes_;
                for (std::size_t i = 0; i < more; ++i) {
                    if (stage)
                        stage->lock(memory.back()[i]);
                    slices.emplace_back().memory = memory.back()[i];
                    idle.push_back(&slices.back());
                }
            }
            Slice& slice = *idle.back();
            if (!plan.next(slice.memory, slice.pieces, slice.requests, wait))
                return false;
            idle.pop_back();
            count(slice);
            slice.batch = engine.submit(slice.requests);
            under_way.push_back(&slice);
            return true;
        };
        const auto complete = [&](Slice& slice) {
            if (stage)
                stage->wait(slice.turn);
            for (std::size_t i = 0; i < slice.pieces.size(); ++i) {
                if (slice.arrived[i])
                    compare(slice.pieces[i], stage ? stage->tallies(slice.turn, i) : nullptr);
                jobs_.compared(2 * slice.pieces[i].length);
                JobUnderWay& job = *slice.pieces[i].job;
                --job.open_pieces;
                finish(job);
            }
            slice.pieces.clear();
            idle.push_back(&slice);
        };
        auto last = Clock::now();
        for (;;) {
            // With none under way, false means that there are no more jobs.
            while (under_way.size() + (held != nullptr ? 1 : 0) < control.count() &&
                   begin(under_way.empty() && held == nullptr)) {
            }
            if (under_way.empty()) {
                if (held == nullptr)
                    break;
                complete(*std::exchange(held, nullptr));
                continue;
            }
            Slice& slice = *under_way.front();
            const auto before = Clock::now();
            const bool arrived = wait(slice);
            const auto now = Clock::now();
            control.note(slice.bytes, now - before, now - last);
            last = now;
            slice.arrived.clear();
            for (const Piece& piece : slice.pieces)
                slice.arrived.push_back(arrived || read_alone(engine, slice, piece));
            under_way.pop_front();
            if (!stage) {
                complete(slice);
                continue;
            }
            slice.turn = held == nullptr ? 0 : held->turn ^ 1;
            stage->begin(slice.turn, slice.pieces, slice.arrived);
            if (Slice* before_it = std::exchange(held, &slice))
                complete(*before_it);
        }
        return totals_;
    }

  private:
    // Hands the job's outcome on if that was all of it.
    void finish(JobUnderWay& job) {
        if (!job.is_planned || job.open_pieces > 0)
            return;
        if (!job.outcome.error)
            require_unchanged(job);
        if (job.comparer)
            job.outcome.comparison = job.comparer->result();
        job.comparer.reset();
        job.files.reset();
        jobs_.done(job.number, std::move(job.outcome));
    }

    static void require_unchanged(JobUnderWay& job) {
        try {
            job.files->golden.require_unchanged();
            job.files->value.require_unchanged();
        } catch (const Error& error) {
            job.outcome.error = error;
        }
    }

    void count(Slice& slice) {
        slice.bytes = 0;
        for (const ReadRequest& request : slice.requests)
            slice.bytes += request.length;
        for (const Piece& piece : slice.pieces) {
            for (std::size_t i = 0; i < piece.request_count; ++i) {
                const ReadRequest& request = slice.requests[piece.first_request + i];
                if (request.file == piece.job->files->golden.direct_file() ||
                    request.file == piece.job->files->value.direct_file()) {
                    totals_.direct_bytes_read += request.length;
                }
            }
        }
        totals_.bytes_read += slice.bytes;
        totals_.read_count += slice.requests.size();
    }

    static bool wait(Slice& slice) {
        try {
            slice.batch.wait();
            return true;
        } catch (const Error&) {
            return false;  // one file's fault; each piece is then read by itself
        }
    }

    static bool read_alone(ReadEngine& engine, const Slice& slice, const Piece& piece) {
        try {
            engine.read(
                std::span(slice.requests).subspan(piece.first_request, piece.request_count));
            return true;
        } catch (const Error& error) {
            if (!piece.job->outcome.error)
                piece.job->outcome.error = error;
            return false;
        }
    }

    void compare(const Piece& piece, const PieceTallies* made) {
        JobUnderWay& job = *piece.job;
        if (job.outcome.error)
            return;
        const TreeParameters& parameters = job.job.parameters;
        if (!job.comparer) {
            job.comparer = std::make_unique<PieceComparer>(parameters, options_.max_indices,
                                                           execution_, interrupt_);
        }
        const std::size_t element_bytes =
            static_cast<std::size_t>(parameters.data_type().element_bytes());
        const Comparison& found = job.comparer->result();
        const std::uint64_t differing = found.differing_count;
        const std::size_t known = found.indices.size();
        const std::span golden(piece.golden, piece.length);
        const std::span value(piece.value, piece.length);
        if (made != nullptr) {
            job.comparer->update(golden, value, piece.from / element_bytes, *made);
        } else {
            job.comparer->update(golden, value, piece.from / element_bytes);
        }
        keep_values(piece, element_bytes, found.indices, known);
        if (sink_ && found.differing_count > differing)
            list(piece, element_bytes);
    }

    // The values at indices[known] and later ones, all of this piece, while there is room for them.
    void keep_values(const Piece& piece, std::size_t element_bytes,
                     const std::vector<std::int64_t>& indices, std::size_t known) const {
        StreamOutcome& outcome = piece.job->outcome;
        const std::size_t most = std::min(indices.size(), options_.max_values);
        for (std::size_t i = known; i < most; ++i) {
            const std::size_t at =
                static_cast<std::size_t>(indices[i]) * element_bytes - piece.from;
            outcome.first_golden.insert(outcome.first_golden.end(), piece.golden + at,
                                        piece.golden + at + element_bytes);
            outcome.first_value.insert(outcome.first_value.end(), piece.value + at,
                                       piece.value + at + element_bytes);
        }
    }

    // Looks at the piece once more, for all indices this time.
    void list(const Piece& piece, std::size_t element_bytes) {
        const std::size_t step =
            std::max<std::size_t>(1, listed_bytes / element_bytes) * element_bytes;
        for (std::size_t at = 0; at < piece.length; at += step) {
            const std::size_t length = std::min(step, piece.length - at);
            PieceComparer all(piece.job->job.parameters, length / element_bytes, execution_,
                              interrupt_);
            const std::uint64_t first = (piece.from + at) / element_bytes;
            all.update({piece.golden + at, length}, {piece.value + at, length}, first);
            const std::vector<std::int64_t>& indices = all.result().indices;
            if (indices.empty())
                continue;
            std::vector<std::byte> golden(indices.size() * element_bytes);
            std::vector<std::byte> value(golden.size());
            for (std::size_t i = 0; i < indices.size(); ++i) {
                const std::size_t from =
                    at + (static_cast<std::size_t>(indices[i]) - static_cast<std::size_t>(first)) *
                             element_bytes;
                std::memcpy(golden.data() + i * element_bytes, piece.golden + from, element_bytes);
                std::memcpy(value.data() + i * element_bytes, piece.value + from, element_bytes);
            }
            sink_(piece.job->number, indices, golden, value);
        }
    }

    StreamJobs& jobs_;
    const StreamOptions& options_;
    const Execution execution_;  // of a host
    const Backend backend_;
    const Interrupt& interrupt_;
    const DifferenceSink& sink_;
    std::size_t slice_bytes_;
    StreamTotals totals_;
};

class JobList : public StreamJobs {
  public:
    explicit JobList(const std::vector<StreamJob>& jobs) : jobs_(jobs), outcomes_(jobs.size()) {}

    std::optional<StreamJob> next(bool) override {
        return taken_ < jobs_.size() ? std::optional(jobs_[taken_++]) : std::nullopt;
    }
    void done(std::size_t number, StreamOutcome&& outcome) override {
        outcomes_[number] = std::move(outcome);
    }
    std::vector<StreamOutcome>&& outcomes() { return std::move(outcomes_); }

  private:
    const std::vector<StreamJob>& jobs_;
    std::size_t taken_ = 0;
    std::vector<StreamOutcome> outcomes_;
};

}  // namespace

StreamTotals stream_compare(StreamJobs& jobs, const StreamOptions& options,
                            const Execution& execution, const Interrupt& interrupt,
                            const DifferenceSink& sink) {
    return Streamer(jobs, options, execution, interrupt, sink).run();
}

StreamReport stream_compare(const std::vector<StreamJob>& jobs, const StreamOptions& options,
                            const Execution& execution, const Interrupt& interrupt,
                            const DifferenceSink& sink) {
    JobList list(jobs);
    const StreamTotals totals = stream_compare(list, options, execution, interrupt, sink);
    return {list.outcomes(), totals};
}

}  // namespace ciwrap
