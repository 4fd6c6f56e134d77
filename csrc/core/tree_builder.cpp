#include "ciwrap/tree.hpp"

#include <algorithm>
#include <cstring>

#include "base/quantize_plan.hpp"
#include "ciwrap/error.hpp"
#include "kernels/device_hasher.hpp"
#include "kernels/executor.hpp"

namespace ciwrap {
namespace {

// Between two looks for an interrupt: some hundredths of a second.
constexpr std::uint64_t bytes_between_interrupts = std::uint64_t{64} << 20;
// Work handed to a thread at once: large against the cost of handing it over, small against the
// whole.
constexpr std::uint64_t bytes_per_grain = std::uint64_t{256} << 10;

std::uint64_t checked_bytes(const TreeParameters& parameters, std::uint64_t scalar_count) {
    const std::uint64_t scalar_bytes = parameters.data_type().scalar_bytes;
    if (scalar_count > (std::uint64_t{1} << 60) / scalar_bytes) {
        throw Error(ErrorCode::invalid_argument, "an array of more than 2^60 bytes");
    }
    return scalar_count * scalar_bytes;
}

}  // namespace

bool same_codes(const TreeParameters& a, const TreeParameters& b) {
    StatedParameters in_order = b.values();
    if (a.dtype().substr(1) == b.dtype().substr(1))
        in_order.dtype = a.dtype();
    return a.values() == in_order;
}

struct TreeBuilder::Impl {
    Impl(const TreeParameters& parameters, std::uint64_t scalar_count,
         std::shared_ptr<const MerkleTree> golden, const Execution& execution, Interrupt interrupt);

    void update(std::span<const std::byte> data);
    void update_device(const DeviceArray& array);
    std::shared_ptr<const MerkleTree> finish();

    void hash(std::span<const std::byte> chunks);
    ChunkBatch batch_at(std::uint64_t leaf, std::uint64_t scalar_count);
    std::uint64_t* device_histogram();

    MerkleTree tree_;
    QuantizePlan plan_;
    TreeShape shape_;
    std::shared_ptr<const MerkleTree> golden_;
    Execution execution_;
    std::unique_ptr<DeviceHasher> device_;  // null: the host's kernels
    Interrupt interrupt_;
    std::vector<std::byte> pending_;  // the beginning of a chunk whose end has not come yet
    std::uint64_t chunk_bytes_;
    std::uint64_t total_bytes_;
    std::uint64_t received_bytes_ = 0;
    std::uint64_t next_leaf_ = 0;
    std::vector<std::vector<std::uint64_t>> histograms_;  // one per worker
    std::optional<Drift> drift_;
    bool finished_ = false;
};

TreeBuilder::Impl::Impl(const TreeParameters& parameters, std::uint64_t scalar_count,
                        std::shared_ptr<const MerkleTree> golden, const Execution& execution,
                        Interrupt interrupt)
    : plan_(make_plan(parameters)),
      shape_(parameters.leaf_count(scalar_count), parameters.arity()),
      golden_(std::move(golden)),
      execution_(execution),
      interrupt_(std::move(interrupt)),
      chunk_bytes_(plan_.chunk_scalars * plan_.scalar_bytes),
      total_bytes_(checked_bytes(parameters, scalar_count)) {
    if (golden_) {
        if (!same_codes(golden_->parameters, parameters)) {
            throw Error(ErrorCode::invalid_argument,
                        "the golden tree was made with other parameters");
        }
        if (golden_->scalar_count != scalar_count) {
            throw Error(ErrorCode::invalid_argument,
                        "the golden tree is of " + std::to_string(golden_->scalar_count) +
                            " scalars, not " + std::to_string(scalar_count));
        }
        if (golden_->residues.size() != plan_.total_residue_bytes(scalar_count)) {
            throw Error(ErrorCode::invalid_argument,
                        "the golden tree has no residues (was it made against another?)");
        }
    }
    if (is_device(execution_.backend))
        device_ = make_device_hasher(execution_.backend);
    tree_.parameters = parameters;
    tree_.scalar_count = scalar_count;
    tree_.digests.resize(shape_.node_count());
    const bool against = golden_ && plan_.has_residues();
    if (against) {
        drift_.emplace();
        drift_->leaf_max_level.resize(shape_.leaf_count());
        histograms_.assign(static_cast<std::size_t>(execution_.workers),
                           std::vector<std::uint64_t>(static_cast<std::size_t>(plan_.half) + 1));
    } else {
        tree_.residues.resize(plan_.total_residue_bytes(scalar_count));
    }
}

// Leaves from `leaf` on and what belongs to them; the data are the caller's to fill in.
ChunkBatch TreeBuilder::Impl::batch_at(std::uint64_t leaf, std::uint64_t scalar_count) {
    const std::uint64_t leaf_offset = shape_.offset(shape_.level_count() - 1);
    const std::uint64_t residue_stride = plan_.residue_bytes(plan_.chunk_scalars);
    ChunkBatch batch;
    batch.plan = &plan_;
    batch.scalar_count = scalar_count;
    batch.leaves = tree_.digests.data() + leaf_offset + leaf;
    if (golden_ && plan_.has_residues()) {
        batch.golden_residues = golden_->residues.data() + leaf * residue_stride;
        batch.golden_leaves = golden_->digests.data() + leaf_offset + leaf;
        batch.leaf_levels = drift_->leaf_max_level.data() + leaf;
    } else if (plan_.has_residues()) {
        batch.residues = tree_.residues.data() + leaf * residue_stride;
    }
    return batch;
}

std::uint64_t* TreeBuilder::Impl::device_histogram() {
    return drift_ ? histograms_.front().data() : nullptr;
}

void TreeBuilder::Impl::hash(std::span<const std::byte> chunks) {
    ChunkBatch batch = batch_at(next_leaf_, chunks.size() / plan_.scalar_bytes);
    batch.data = reinterpret_cast<const std::uint8_t*>(chunks.data());
    const std::uint64_t count =
        batch.scalar_count == 0 ? 1 : (batch.scalar_count - 1) / plan_.chunk_scalars + 1;
    if (device_) {
        device_->hash(batch, count, device_histogram());
        next_leaf_ += count;
        return;
    }
    const bool against = drift_.has_value();
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

void TreeBuilder::Impl::update(std::span<const std::byte> data) {
    if (data.size() > total_bytes_ - received_bytes_) {
        throw Error(ErrorCode::invalid_argument,
                    "more data than the array has (" + std::to_string(total_bytes_) + " bytes)");
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
    if (received_bytes_ != 0 || array.byte_count() != total_bytes_ ||
        array.item_bytes % plan_.scalar_bytes != 0) {
        throw Error(ErrorCode::invalid_argument,
                    "an array on a device is hashed as a whole: " + std::to_string(total_bytes_) +
                        " bytes, not " + std::to_string(array.byte_count()));
    }
    device_->accept(array);
    const std::uint64_t step = std::max<std::uint64_t>(1, bytes_between_interrupts / chunk_bytes_);
    const std::uint64_t scalar_count = total_bytes_ / plan_.scalar_bytes;
    while (received_bytes_ < total_bytes_) {
        const std::uint64_t first = next_leaf_ * plan_.chunk_scalars;
        const std::uint64_t scalars = std::min(scalar_count - first, step * plan_.chunk_scalars);
        const std::uint64_t count = (scalars - 1) / plan_.chunk_scalars + 1;
        device_->hash_resident(array, first, batch_at(next_leaf_, scalars), count,
                               device_histogram());
        next_leaf_ += count;
        received_bytes_ += scalars * plan_.scalar_bytes;
        if (interrupt_)
            interrupt_();
    }
    device_->finish();
}

std::shared_ptr<const MerkleTree> TreeBuilder::Impl::finish() {
    if (finished_)
        throw Error(ErrorCode::invalid_argument, "the tree is finished already");
    if (received_bytes_ != total_bytes_) {
        throw Error(ErrorCode::invalid_argument, "the array ended after " +
                                                     std::to_string(received_bytes_) + " of " +
                                                     std::to_string(total_bytes_) + " bytes");
    }
    finished_ = true;
    if (!pending_.empty() || total_bytes_ == 0)
        hash(pending_);
    if (device_)
        device_->finish();
    build_upper_levels(shape_, execution_, tree_.digests);
    if (drift_) {
        drift_->histogram.resize(static_cast<std::size_t>(plan_.half) + 1);
        for (const auto& counts : histograms_) {
            for (std::size_t level = 0; level < counts.size(); ++level) {
                drift_->histogram[level] += counts[level];
                drift_->scalar_count += counts[level];
                if (counts[level] > 0)
                    drift_->max_level =
                        std::max(drift_->max_level, static_cast<std::int32_t>(level));
            }
        }
        drift_->max_share = drift_->max_level / (plan_.half + 1.0);
    }
    return std::make_shared<const MerkleTree>(std::move(tree_));
}

TreeBuilder::TreeBuilder(const TreeParameters& parameters, std::uint64_t scalar_count,
                         std::shared_ptr<const MerkleTree> golden, const Execution& execution,
                         Interrupt interrupt)
    : impl_(std::make_unique<Impl>(parameters, scalar_count, std::move(golden), execution,
                                   std::move(interrupt))) {}
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
    return impl_->drift_;
}

void build_upper_levels(const TreeShape& shape, const Execution& execution,
                        std::vector<Digest>& digests) {
    const LevelKernels& kernels = level_kernels();
    for (std::size_t level = shape.level_count() - 1; level-- > 0;) {
        const Digest* children = digests.data() + shape.offset(level + 1);
        Digest* parents = digests.data() + shape.offset(level);
        parallel_ranges(execution, shape.count(level), 1024,
                        [&](std::uint64_t first, std::uint64_t last, int) {
                            kernels.hash_nodes(children, shape.count(level + 1), shape.arity(),
                                               parents, first, last);
                        });
    }
}

}  // namespace ciwrap
