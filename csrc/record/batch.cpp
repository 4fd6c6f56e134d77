#include "record/batch.hpp"

#include <algorithm>
#include <span>

#include "ciwrap/error.hpp"
#include "kernels/cpu_level.hpp"

namespace ciwrap::record {
namespace {

constexpr std::uint64_t bytes_per_piece = std::uint64_t{256} << 10;

TreeParameters without_residues(const TreeParameters& parameters) {
    StatedParameters stated = parameters.values();
    stated.residue_levels = 1;
    return TreeParameters(stated);
}

std::span<const Digest> leaves_of(const MerkleTree& tree, const TreeShape& shape) {
    return std::span(tree.digests).subspan(shape.offset(shape.level_count() - 1));
}

const std::byte* elements_of(const Recorded& one, std::uint64_t first_leaf, std::uint64_t scalars,
                             std::vector<std::byte>& buffer) {
    const std::uint64_t per_element = one.view.element_bytes() / one.plain.plan.scalar_bytes;
    const std::uint64_t first = first_leaf * one.plain.plan.chunk_scalars;
    return one.view.elements(first / per_element, scalars / per_element, buffer);
}

std::uint64_t scalars_in(const Recorded& one, std::uint64_t first_leaf, std::uint64_t leaf_count) {
    const std::uint64_t per_leaf = one.plain.plan.chunk_scalars;
    return std::min(one.plain.tree.scalar_count - first_leaf * per_leaf, leaf_count * per_leaf);
}

void hash(Recorded& one, std::uint64_t first_leaf, std::uint64_t leaf_count,
          std::vector<std::byte>& buffer) {
    const std::uint64_t scalars = scalars_in(one, first_leaf, leaf_count);
    const std::byte* const data = elements_of(one, first_leaf, scalars, buffer);
    for (TreeParts* const parts : one.trees()) {
        ChunkBatch batch = parts->batch_at(first_leaf, scalars);
        batch.data = reinterpret_cast<const std::uint8_t*>(data);
        level_kernels().hash_chunks(batch, 0, leaf_count, nullptr);
    }
}

}  // namespace

Recorded::Recorded(std::uint32_t id, const std::string& called, const ArrayView& array,
                   const TreeParameters& parameters,
                   std::shared_ptr<const ReferenceTree> held_against)
    : variable(id),
      name(called),
      view(array),
      reference(std::move(held_against)),
      plain(without_residues(parameters), array.scalar_count(), nullptr) {
    if (reference && reference->shape != view.shape())
        throw Error(ErrorCode::invalid_argument, "the reference's has another shape");
    const bool has_levels = make_plan(parameters).has_residues();
    if (reference) {
        const std::shared_ptr<const MerkleTree> theirs(reference, &reference->tree);
        TreeParts parts(has_levels ? parameters : plain.tree.parameters, array.scalar_count(),
                        theirs);
        if (has_levels)
            fine = std::make_unique<TreeParts>(std::move(parts));
    } else if (has_levels) {
        fine = std::make_unique<TreeParts>(parameters, array.scalar_count(), nullptr);
    }
}

std::vector<TreeParts*> Recorded::trees() {
    std::vector<TreeParts*> found{&plain};
    if (fine)
        found.push_back(fine.get());
    return found;
}

void Recorded::compare() {
    const TreeParts& ours = fine ? *fine : plain;
    const std::span<const Digest> mine = leaves_of(ours.tree, ours.shape);
    const std::span<const Digest> theirs = leaves_of(reference->tree, ours.shape);
    compared = {mine.size(), {}, -1};
    for (std::size_t leaf = 0; leaf < mine.size(); ++leaf) {
        if (mine[leaf] != theirs[leaf] || mine[leaf] == unmatchable_digest)
            compared.suspects.push_back(leaf);
    }
    if (!is_relative())
        return;
    for (const std::uint8_t level : fine->drift->leaf_max_level) {
        if (level != no_match_level)
            compared.max_share = std::max(compared.max_share, level / (fine->plan.half + 1.0));
    }
}

void Recorded::keep_samples(std::uint64_t most_bytes) {
    std::vector<std::byte> buffer;
    for (const std::uint64_t leaf : compared.suspects) {
        const std::uint64_t scalars = scalars_in(*this, leaf, 1);
        const std::uint64_t bytes = scalars * plain.plan.scalar_bytes;
        if (bytes > most_bytes)
            return;
        most_bytes -= bytes;
        const std::byte* const data = elements_of(*this, leaf, scalars, buffer);
        samples.push_back({leaf, {data, data + bytes}});
    }
}

void Batch::cut() {
    for (const auto& one : variables) {
        const std::uint64_t leaves = one->plain.shape.leaf_count();
        const std::uint64_t step =
            std::max<std::uint64_t>(1, bytes_per_piece / one->plain.chunk_bytes());
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
    for (const auto& one : variables) {
        for (const TreeParts* const parts : one->trees())
            sum += parts->tree.digests.size() * sizeof(Digest) + parts->tree.residues.size();
        for (const Sample& sample : one->samples)
            sum += sample.elements.size();
    }
    return sum;
}

std::uint64_t Batch::data_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& one : variables)
        sum += one->plain.total_bytes;
    return sum;
}

}  // namespace ciwrap::record
