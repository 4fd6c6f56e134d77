#include "ciwrap/tree.hpp"

#include <algorithm>
#include <cstring>

#include "ciwrap/error.hpp"
#include "kernels/cpu_level.hpp"
#include "kernels/device_array.hpp"
#include "kernels/device_hasher.hpp"
#include "kernels/executor.hpp"
#include "tree/tree_parts.hpp"

namespace ciwrap {
namespace {

// Between two looks for an interrupt: some hundredths of a second.
constexpr std::uint64_t bytes_between_interrupts = std::uint64_t{64} << 20;
// Work handed to a thread at once: large against the cost of handing it over, small against the
// whole.
constexpr std::uint64_t bytes_per_grain = std::uint64_t{256} << 10;

}  // namespace

struct TreeBuilder::Impl {
    Impl(const TreeParameters& parameters, std::uint64_t scalar_count,
         std::shared_ptr<const MerkleTree> golden, const Execution& execution, Interrupt interrupt,
         bool summaries);

    void update(std::span<const std::byte> data);
    void update_device(const DeviceArray& array);
    std::shared_ptr<const MerkleTree> finish();

    void hash(std::span<const std::byte> chunks);
    void summarize(ChunkBatch batch, std::uint64_t count) const;
    std::uint64_t* device_histogram();

    TreeParts parts_;
    Execution execution_;
    std::unique_ptr<DeviceHasher> device_;  // null: the host's kernels
    Interrupt interrupt_;
    std::vector<std::byte> pending_;  // the beginning of a chunk whose end has not come yet
    std::uint64_t chunk_bytes_;
    std::uint64_t received_bytes_ = 0;
    std::uint64_t next_leaf_ = 0;
    std::vector<std::vector<std::uint64_t>> histograms_;  // one per worker
    bool finished_ = false;
};

TreeBuilder::Impl::Impl(const TreeParameters& parameters, std::uint64_t scalar_count,
                        std::shared_ptr<const MerkleTree> golden, const Execution& execution,
                        Interrupt interrupt, bool summaries)
    : parts_(parameters, scalar_count, std::move(golden)),
      execution_(execution),
      interrupt_(std::move(interrupt)),
      chunk_bytes_(parts_.chunk_bytes()) {
    if (is_device(execution_.backend))
        device_ = make_device_hasher(execution_.backend);
    if (summaries)
        parts_.ask_for_summaries();
    if (parts_.drift)
        histograms_.assign(static_cast<std::size_t>(execution_.workers), parts_.histogram());
}

std::uint64_t* TreeBuilder::Impl::device_histogram() {
    return parts_.drift ? histograms_.front().data() : nullptr;
}

void TreeBuilder::Impl::hash(std::span<const std::byte> chunks) {
    ChunkBatch batch = parts_.batch_at(next_leaf_, chunks.size() / parts_.plan.scalar_bytes);
    batch.data = reinterpret_cast<const std::uint8_t*>(chunks.data());
    const std::uint64_t count =
        batch.scalar_count == 0 ? 1 : (batch.scalar_count - 1) / parts_.plan.chunk_scalars + 1;
    if (device_) {
        device_->hash(batch, count, device_histogram());
        summarize(batch, count);
        next_leaf_ += count;
        return;
    }
    const bool against = parts_.drift.has_value();
    const LevelKernels& kernels = level_kernels();
    parallel_ranges(execution_, count, std::max<std::uint64_t>(1, bytes_per_grain / chunk_bytes_),
                    [&](std::uint64_t first, std::uint64_t last, int worker) {
                        std::uint64_t* histogram =
                            against ? histograms_[static_cast<std::size_t>(worker)].data()
                                    : nullptr;
                        kernels.hash_chunks(batch, first, last, histogram);
                    });
    next_leaf_ += count;
}

// What devices do not do: by the host's kernels, whose leaves are those that the device makes.
void TreeBuilder::Impl::summarize(ChunkBatch batch, std::uint64_t count) const {
    if (batch.summaries == nullptr)
        return;
    std::vector<Digest> leaves(static_cast<std::size_t>(count));
    batch.leaves = leaves.data();
    batch.residues = nullptr;
    batch.leaf_levels = nullptr;
    level_kernels().hash_chunks(batch, 0, count, nullptr);
}

void TreeBuilder::Impl::update(std::span<const std::byte> data) {
    if (data.size() > parts_.total_bytes - received_bytes_) {
        throw Error(
            ErrorCode::invalid_argument,
            "more data than the array has (" + std::to_string(parts_.total_bytes) + " bytes)");
    }
    received_bytes_ += data.size();
    if (!pending_.empty()) {
        const auto wanted = static_cast<std::size_t>(chunk_bytes_ - pending_.size());
        const std::size_t taken = std::min(wanted, data.size());
        pending_.insert(pending_.end(), data.begin(),
                        data.begin() + static_cast<std::ptrdiff_t>(taken));
        data = data.subspan(taken);
        if (taken == wanted) {
            hash(pending_);
            pending_.clear();
        }
    }
    while (data.size() >= chunk_bytes_) {
        const std::uint64_t piece =
            std::min<std::uint64_t>(data.size(), std::max(bytes_between_interrupts, chunk_bytes_));
        const auto whole = static_cast<std::size_t>(piece - piece % chunk_bytes_);
        hash(data.first(whole));
        data = data.subspan(whole);
        if (interrupt_)
            interrupt_();
    }
    pending_.insert(pending_.end(), data.begin(), data.end());
}

void TreeBuilder::Impl::update_device(const DeviceArray& array) {
    if (!device_) {
        throw Error(ErrorCode::invalid_argument,
                    "an array on a device cannot be hashed by a host backend");
    }
    if (received_bytes_ != 0 || array.byte_count() != parts_.total_bytes ||
        array.item_bytes % parts_.plan.scalar_bytes != 0) {
        throw Error(
            ErrorCode::invalid_argument,
            "an array on a device is hashed as a whole: " + std::to_string(parts_.total_bytes) +
                " bytes, not " + std::to_string(array.byte_count()));
    }
    device_->accept(array);
    const std::uint64_t step = std::max<std::uint64_t>(1, bytes_between_interrupts / chunk_bytes_);
    const std::uint64_t scalar_count = parts_.total_bytes / parts_.plan.scalar_bytes;
    while (received_bytes_ < parts_.total_bytes) {
        const std::uint64_t first = next_leaf_ * parts_.plan.chunk_scalars;
        const std::uint64_t scalars =
            std::min(scalar_count - first, step * parts_.plan.chunk_scalars);
        const std::uint64_t count = (scalars - 1) / parts_.plan.chunk_scalars + 1;
        ChunkBatch batch = parts_.batch_at(next_leaf_, scalars);
        device_->hash_resident(array, first, batch, count, device_histogram());
        if (batch.summaries != nullptr) {
            const std::uint64_t per_item = array.item_bytes / parts_.plan.scalar_bytes;
            std::vector<std::byte> copied(
                static_cast<std::size_t>(scalars * parts_.plan.scalar_bytes));
            copy_to_host(execution_.backend, array, first / per_item, scalars / per_item,
                         copied.data());
            batch.data = reinterpret_cast<const std::uint8_t*>(copied.data());
            summarize(batch, count);
        }
        next_leaf_ += count;
        received_bytes_ += scalars * parts_.plan.scalar_bytes;
        if (interrupt_)
            interrupt_();
    }
    device_->finish();
}

std::shared_ptr<const MerkleTree> TreeBuilder::Impl::finish() {
    if (finished_)
        throw Error(ErrorCode::invalid_argument, "the tree is finished already");
    if (received_bytes_ != parts_.total_bytes) {
        throw Error(ErrorCode::invalid_argument, "the array ended after " +
                                                     std::to_string(received_bytes_) + " of " +
                                                     std::to_string(parts_.total_bytes) + " bytes");
    }
    finished_ = true;
    if (!pending_.empty() || parts_.total_bytes == 0)
        hash(pending_);
    if (device_)
        device_->finish();
    build_upper_levels(parts_.shape, execution_, parts_.tree.digests);
    for (const auto& counts : histograms_)
        parts_.add_drift(counts);
    return std::make_shared<const MerkleTree>(std::move(parts_.tree));
}

TreeBuilder::TreeBuilder(const TreeParameters& parameters, std::uint64_t scalar_count,
                         std::shared_ptr<const MerkleTree> golden, const Execution& execution,
                         Interrupt interrupt, bool summaries)
    : impl_(std::make_unique<Impl>(parameters, scalar_count, std::move(golden), execution,
                                   std::move(interrupt), summaries)) {}
TreeBuilder::~TreeBuilder() = default;
TreeBuilder::TreeBuilder(TreeBuilder&& other) noexcept = default;
TreeBuilder& TreeBuilder::operator=(TreeBuilder&& other) noexcept = default;

void TreeBuilder::update(std::span<const std::byte> data) {
    impl_->update(data);
}

void TreeBuilder::update_device(const DeviceArray& array) {
    impl_->update_device(array);
}

std::shared_ptr<const MerkleTree> TreeBuilder::finish() {
    return impl_->finish();
}

const std::optional<Drift>& TreeBuilder::drift() const {
    return impl_->parts_.drift;
}

const std::vector<ChunkSummary>& TreeBuilder::summaries() const {
    return impl_->parts_.summaries;
}

void build_upper_levels(const TreeShape& shape, const Execution& execution,
                        std::vector<Digest>& digests) {
    for (std::size_t level = shape.level_count() - 1; level-- > 0;) {
        parallel_ranges(execution, shape.count(level), 1024,
                        [&](std::uint64_t first, std::uint64_t last, int) {
                            hash_level(shape, level, digests, first, last);
                        });
    }
}

}  // namespace ciwrap
