#include "core/stream_compare.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>

#include "core/read_plan.hpp"

namespace ciwrap {
namespace {

constexpr std::size_t smallest_memory = std::size_t{1} << 20;
// More than this per slice gains nothing, and fresh memory is slow to touch.
constexpr std::size_t largest_slice = std::size_t{16} << 20;
// One slice being compared, the others on their way.
constexpr std::size_t slice_count = 4;
// Elements whose differences are listed at once.
constexpr std::size_t listed_bytes = std::size_t{1} << 20;

using Clock = std::chrono::steady_clock;

// Finds how many reads in flight are worth having: doubles as long as that brings anything, and
// stays with the best. Judges only while the comparison waits for the disk.
class DepthControl {
  public:
    DepthControl(ReadEngine& engine, unsigned most) : engine_(engine), most_(most) {
        depth_ = std::min(most_, first_depth);
        engine_.limit_in_flight(depth_);
    }

    void note(std::uint64_t bytes, Clock::duration waited, Clock::duration since_last) {
        if (is_settled_ || waited * 4 < since_last)
            return;
        bytes_ += bytes;
        seconds_ += std::chrono::duration<double>(since_last).count();
        if (++slices_ < slices_per_step)
            return;
        const double rate = static_cast<double>(bytes_) / std::max(seconds_, 1e-9);
        bytes_ = 0;
        seconds_ = 0.0;
        slices_ = 0;
        if (rate > 1.05 * best_rate_ && depth_ < most_) {
            best_rate_ = rate;
            best_depth_ = depth_;
            depth_ = std::min(most_, 2 * depth_);
        } else {
            depth_ = rate > best_rate_ ? depth_ : std::max(best_depth_, 1U);
            is_settled_ = true;
        }
        engine_.limit_in_flight(depth_);
    }

    unsigned depth() const { return depth_; }

  private:
    static constexpr unsigned first_depth = 64;
    static constexpr unsigned slices_per_step = 4;
    ReadEngine& engine_;
    unsigned most_;
    unsigned depth_ = 0;
    unsigned best_depth_ = 0;
    double best_rate_ = 0.0;
    std::uint64_t bytes_ = 0;
    double seconds_ = 0.0;
    unsigned slices_ = 0;
    bool is_settled_ = false;
};

struct Slice {
    std::vector<Piece> pieces;
    std::vector<ReadRequest> requests;
    ReadBatch batch;
    std::uint64_t bytes = 0;
};

class Streamer {
  public:
    Streamer(const std::vector<StreamJob>& jobs, const StreamOptions& options,
             const Execution& execution, const Interrupt& interrupt, const DifferenceSink& sink)
        : jobs_(jobs),
          options_(options),
          execution_(execution),
          interrupt_(interrupt),
          sink_(sink),
          comparers_(jobs.size()) {
        report_.outcomes.resize(jobs.size());
    }

    StreamReport run() {
        if (options_.memory_bytes < smallest_memory) {
            throw Error(ErrorCode::invalid_argument,
                        "at least 1 MiB of memory is needed for buffers");
        }
        if (is_device(execution_.backend)) {
            throw Error(ErrorCode::unsupported, "elements are compared on the host");
        }
        ReadEngine engine(options_.engine);
        report_.engine = engine.name();
        ReadPlan plan(jobs_, options_.direct, report_.outcomes);
        const std::size_t bytes = slice_bytes();
        ReadBuffers buffers = engine.make_buffers(slice_count, bytes);
        report_.buffer_bytes = slice_count * bytes;
        std::vector<Slice> slices(slice_count);
        DepthControl depth(engine, options_.engine.queue_depth);

        std::deque<std::size_t> under_way;
        std::size_t next = 0;
        const auto begin = [&] {
            Slice& slice = slices[next];
            if (!plan.next(buffers[next], slice.pieces, slice.requests))
                return false;
            count(slice);
            slice.batch = engine.submit(slice.requests);
            under_way.push_back(next);
            next = (next + 1) % slice_count;
            return true;
        };
        bool more = true;
        while (more && under_way.size() + 1 < slice_count)
            more = begin();
        auto last = Clock::now();
        while (!under_way.empty()) {
            if (more)
                more = begin();
            Slice& slice = slices[under_way.front()];
            under_way.pop_front();
            const auto before = Clock::now();
            const bool arrived = wait(slice);
            const auto now = Clock::now();
            depth.note(slice.bytes, now - before, now - last);
            last = now;
            for (const Piece& piece : slice.pieces) {
                if (arrived || read_alone(engine, slice, piece))
                    compare(piece);
            }
            slice.pieces.clear();
        }
        report_.reads_in_flight = report_.engine == "io_uring" ? depth.depth() : 0;
        for (std::size_t job = 0; job < jobs_.size(); ++job) {
            if (comparers_[job])
                report_.outcomes[job].comparison = comparers_[job]->result();
        }
        return std::move(report_);
    }

  private:
    // Small jobs need no large buffers.
    std::size_t slice_bytes() const {
        std::uint64_t wanted = 0;
        for (const StreamJob& job : jobs_) {
            wanted += 2 * job.byte_count + 4 * SideFile::room_for(0);
            if (wanted > options_.memory_bytes)
                break;
        }
        const std::size_t most = std::min(options_.memory_bytes / slice_count, largest_slice);
        const auto fitted = static_cast<std::size_t>(
            std::clamp<std::uint64_t>(wanted, smallest_memory / slice_count, most));
        return fitted / direct_alignment * direct_alignment;
    }

    void count(Slice& slice) {
        slice.bytes = 0;
        for (const ReadRequest& request : slice.requests)
            slice.bytes += request.length;
        for (const Piece& piece : slice.pieces) {
            for (std::size_t i = 0; i < piece.request_count; ++i) {
                const ReadRequest& request = slice.requests[piece.first_request + i];
                if (request.file == piece.files->golden.direct_file() ||
                    request.file == piece.files->value.direct_file()) {
                    report_.direct_bytes_read += request.length;
                }
            }
        }
        report_.bytes_read += slice.bytes;
        report_.read_count += slice.requests.size();
    }

    static bool wait(Slice& slice) {
        try {
            slice.batch.wait();
            return true;
        } catch (const Error&) {
            return false;  // one file's fault; each piece is then read by itself
        }
    }

    bool read_alone(ReadEngine& engine, const Slice& slice, const Piece& piece) {
        try {
            engine.read(
                std::span(slice.requests).subspan(piece.first_request, piece.request_count));
            return true;
        } catch (const Error& error) {
            if (!report_.outcomes[piece.job].error)
                report_.outcomes[piece.job].error = error;
            return false;
        }
    }

    void compare(const Piece& piece) {
        if (report_.outcomes[piece.job].error)
            return;
        std::unique_ptr<ElementComparer>& comparer = comparers_[piece.job];
        const TreeParameters& parameters = jobs_[piece.job].parameters;
        if (!comparer) {
            comparer = std::make_unique<ElementComparer>(parameters, options_.max_indices,
                                                         execution_, interrupt_);
        }
        const std::size_t element_bytes =
            static_cast<std::size_t>(parameters.data_type().element_bytes());
        const std::uint64_t differing = comparer->result().differing_count;
        const std::size_t known = comparer->result().indices.size();
        comparer->update({piece.golden, piece.length}, {piece.value, piece.length},
                         piece.from / element_bytes);
        keep_values(piece, element_bytes, comparer->result().indices, known);
        if (sink_ && comparer->result().differing_count > differing)
            list(piece, element_bytes);
    }

    // The values at indices[known] and later ones, all of this piece, while there is room for them.
    void keep_values(const Piece& piece, std::size_t element_bytes,
                     const std::vector<std::int64_t>& indices, std::size_t known) {
        StreamOutcome& outcome = report_.outcomes[piece.job];
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
            ElementComparer all(jobs_[piece.job].parameters, length / element_bytes, execution_,
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
            sink_(piece.job, indices, golden, value);
        }
    }

    const std::vector<StreamJob>& jobs_;
    const StreamOptions& options_;
    const Execution& execution_;
    const Interrupt& interrupt_;
    const DifferenceSink& sink_;
    std::vector<std::unique_ptr<ElementComparer>> comparers_;
    StreamReport report_;
};

}  // namespace

StreamReport stream_compare(const std::vector<StreamJob>& jobs, const StreamOptions& options,
                            const Execution& execution, const Interrupt& interrupt,
                            const DifferenceSink& sink) {
    return Streamer(jobs, options, execution, interrupt, sink).run();
}

}  // namespace ciwrap
