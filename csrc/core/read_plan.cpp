#include "core/read_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/quantize_plan.hpp"
#include "core/compare_block.hpp"

namespace ciwrap {
namespace {

constexpr std::uint64_t round_up(std::uint64_t x) {
    return (x + direct_alignment - 1) / direct_alignment * direct_alignment;
}
// No piece is longer, so that there are many to read while one is compared.
constexpr std::size_t longest_piece = std::size_t{4} << 20;

}  // namespace

ReadPlan::ReadPlan(StreamJobs& jobs, DirectReads direct,
                   std::function<void(JobUnderWay&)> on_planned)
    : jobs_(jobs), direct_(direct), on_planned_(std::move(on_planned)) {}

bool ReadPlan::take_job(bool wait) {
    std::optional<StreamJob> taken = jobs_.next(wait);
    if (!taken)
        return false;
    job_ = std::make_shared<JobUnderWay>();
    job_->number = taken_++;
    job_->job = std::move(*taken);
    leaf_ = 0;
    from_ = to_ = 0;
    try {
        open_job();
    } catch (const Error& error) {
        job_->outcome.error = error;
    }
    return true;
}

void ReadPlan::open_job() {
    const StreamJob& job = job_->job;
    const QuantizePlan plan = make_plan(job.parameters);
    const std::uint64_t element_bytes = job.parameters.data_type().element_bytes();
    chunk_bytes_ = plan.chunk_scalars * plan.scalar_bytes;
    chunk_count_ = job.byte_count == 0 ? 0 : (job.byte_count - 1) / chunk_bytes_ + 1;
    units_ = {std::lcm(element_bytes * compare_block_elements, std::uint64_t{direct_alignment}),
              std::lcm(element_bytes, std::uint64_t{direct_alignment}), element_bytes};
    if (job.byte_count % element_bytes != 0 || (job.leaves && chunk_bytes_ % element_bytes != 0)) {
        throw Error(ErrorCode::invalid_argument,
                    "arrays and blocks to compare must hold whole values");
    }
    if (job.leaves) {
        const auto& leaves = *job.leaves;
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            if (leaves[i] >= chunk_count_ || (i > 0 && leaves[i] <= leaves[i - 1])) {
                throw Error(ErrorCode::invalid_argument,
                            "blocks to compare must be ascending and inside the array");
            }
        }
    }
    const Access access = job.leaves ? Access::scattered : Access::in_order;
    job_->files = std::make_unique<const JobFiles>(
        JobFiles{StoredRange(job.golden_path, job.golden_offset, job.byte_count, direct_, access,
                             job.golden_stamp),
                 StoredRange(job.value_path, job.value_offset, job.byte_count, direct_, access,
                             job.value_stamp)});
}

std::uint64_t ReadPlan::job_bytes() const {
    const StreamJob& job = job_->job;
    return 2 * (job.leaves ? std::min(job.leaves->size() * chunk_bytes_, job.byte_count)
                           : job.byte_count);
}

void ReadPlan::end_job() {
    job_->is_planned = true;
    const std::shared_ptr<JobUnderWay> ended = std::exchange(job_, nullptr);
    on_planned_(*ended);
}

std::uint64_t ReadPlan::cut(std::uint64_t most) const {
    const auto unit = std::ranges::find_if(units_, [=](std::uint64_t one) { return one <= most; });
    return unit == units_.end() ? 0 : most / *unit * *unit;  // NOLINT: no unit is 0
}

bool ReadPlan::next_stretch() {
    const StreamJob& job = job_->job;
    if (!job.leaves) {
        from_ = to_;
        to_ = job.byte_count;
        return from_ < to_;
    }
    const auto& leaves = *job.leaves;
    if (leaf_ == leaves.size())
        return false;
    const std::uint64_t first = leaves[leaf_++];
    std::uint64_t last = first;
    while (leaf_ < leaves.size() && leaves[leaf_] == last + 1) {
        ++last;
        ++leaf_;
    }
    from_ = first * chunk_bytes_;
    to_ = std::min((last + 1) * chunk_bytes_, job.byte_count);
    return true;
}

bool ReadPlan::next(std::span<std::byte> memory, std::vector<Piece>& pieces,
                    std::vector<ReadRequest>& requests, bool wait) {
    pieces.clear();
    requests.clear();
    std::size_t used = 0;
    while (job_ || take_job(wait && pieces.empty())) {
        if (job_->outcome.error || (from_ == to_ && !next_stretch())) {
            end_job();
            continue;
        }
        // Both sides of a piece lie one behind the other, each from an aligned address on.
        const std::size_t left = memory.size() - used;
        const std::size_t overhead = 2 * (StoredRange::room_for(0) + direct_alignment);
        std::size_t most = left > overhead ? (left - overhead) / 2 : 0;
        most = std::min(most, longest_piece);
        std::uint64_t length = to_ - from_;
        if (length > most) {
            length = cut(most);
            if (length == 0 || (!pieces.empty() && length < to_ - from_ && most < longest_piece &&
                                length < longest_piece / 4)) {
                if (pieces.empty()) {
                    throw Error(ErrorCode::invalid_argument,
                                "the memory for buffers does not hold one value of each run");
                }
                return true;
            }
        }
        Piece piece{
            job_, from_, static_cast<std::size_t>(length), nullptr, nullptr, requests.size(), 0};
        const auto room = static_cast<std::size_t>(round_up(StoredRange::room_for(piece.length)));
        piece.golden =
            job_->files->golden.plan(from_, piece.length, memory.data() + used, requests);
        piece.value =
            job_->files->value.plan(from_, piece.length, memory.data() + used + room, requests);
        piece.request_count = requests.size() - piece.first_request;
        pieces.push_back(std::move(piece));
        ++job_->open_pieces;
        used += 2 * room;
        from_ += length;
    }
    return !pieces.empty();
}

}  // namespace ciwrap
