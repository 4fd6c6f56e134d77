#include "record/batch.hpp"

#include <algorithm>

#include "kernels/cpu_level.hpp"

namespace ciwrap::record {
namespace {

constexpr std::uint64_t bytes_per_piece = std::uint64_t{256} << 10;

void hash(Recorded& one, std::uint64_t first_leaf, std::uint64_t leaf_count,
          std::vector<std::byte>& buffer) {
    const std::uint64_t scalars = one.parts.tree.scalar_count;
    const std::uint64_t first = first_leaf * one.parts.plan.chunk_scalars;
    const std::uint64_t count =
        std::min(scalars - first, leaf_count * one.parts.plan.chunk_scalars);
    const std::uint64_t bytes = one.parts.plan.scalar_bytes;
    const std::uint64_t per_element = one.view.element_bytes() / bytes;
    ChunkBatch batch = one.parts.batch_at(first_leaf, count);
    batch.data = reinterpret_cast<const std::uint8_t*>(
        one.view.elements(first / per_element, count / per_element, buffer));
    level_kernels().hash_chunks(batch, 0, leaf_count, nullptr);
}

}  // namespace

void Batch::cut() {
    for (const auto& one : variables) {
        const std::uint64_t leaves = one->parts.shape.leaf_count();
        const std::uint64_t step =
            std::max<std::uint64_t>(1, bytes_per_piece / one->parts.chunk_bytes());
        for (std::uint64_t leaf = 0; leaf < leaves; leaf += step)
            pieces_.push_back({one.get(), leaf, std::min(step, leaves - leaf)});
    }
}

void Batch::work() {
    std::vector<std::byte> buffer;
    for (;;) {
        const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
        if (index >= pieces_.size())
            return;
        const Piece& piece = pieces_[index];
        hash(*piece.variable, piece.first_leaf, piece.leaf_count, buffer);
    }
}

std::uint64_t Batch::tree_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& one : variables)
        sum += one->parts.tree.digests.size() * sizeof(Digest);
    return sum;
}

std::uint64_t Batch::data_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& one : variables)
        sum += one->parts.total_bytes;
    return sum;
}

}  // namespace ciwrap::record
