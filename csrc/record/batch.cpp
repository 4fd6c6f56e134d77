#include "record/batch.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "ciwrap/error.hpp"
#include "kernels/cpu_level.hpp"

namespace ciwrap::record {
namespace {

constexpr std::uint64_t bytes_per_piece = std::uint64_t{256} << 10;
// Of arrays whose columns lie together: the more rows a piece has, the more of each page is read at
// once, and the fewer rows are cut in two.
constexpr std::uint64_t bytes_per_transposed_piece = std::uint64_t{1} << 20;

// How many chunks are hashed at once. A device is given all of them.
std::uint64_t leaves_per_piece(const Recorded& one, std::uint64_t leaf_count) {
    if (one.view.is_on_device())
        return std::max<std::uint64_t>(1, leaf_count);
    const std::uint64_t bytes =
        one.view.is_transposed() ? bytes_per_transposed_piece : bytes_per_piece;
    return std::max<std::uint64_t>(1, bytes / one.plain.chunk_bytes());
}

TreeParameters without_residues(const TreeParameters& parameters) {
    StatedParameters stated = parameters.values();
    stated.residue_levels = 1;
    return TreeParameters(stated);
}

std::span<const Digest> leaves_of(const MerkleTree& tree, const TreeShape& shape) {
    return std::span(tree.digests).subspan(shape.offset(shape.level_count() - 1));
}

std::uint64_t scalars_per_element(const Recorded& one) {
    return one.view.element_bytes() / one.plain.plan.scalar_bytes;
}

std::uint64_t first_element(const Recorded& one, std::uint64_t leaf) {
    return leaf * one.plain.plan.chunk_scalars / scalars_per_element(one);
}

const std::byte* elements_of(const Recorded& one, std::uint64_t first_leaf, std::uint64_t scalars,
                             std::vector<std::byte>& buffer) {
    return one.view.elements(first_element(one, first_leaf), scalars / scalars_per_element(one),
                             buffer);
}

// As many as a piece has.
const std::byte* whole_elements_of(const Recorded& one, std::uint64_t first_leaf,
                                   std::uint64_t scalars, std::vector<std::byte>& buffer) {
    if (one.view.is_packed())
        return elements_of(one, first_leaf, scalars, buffer);
    return one.view.elements_by_rows(first_element(one, first_leaf),
                                     scalars / scalars_per_element(one), buffer);
}

std::uint64_t scalars_in(const Recorded& one, std::uint64_t first_leaf, std::uint64_t leaf_count) {
    const std::uint64_t per_leaf = one.plain.plan.chunk_scalars;
    return std::min(one.plain.tree.scalar_count - first_leaf * per_leaf, leaf_count * per_leaf);
}

// Chunks whose elements do not lie back to back, copied one by one, so that each is hashed out of
// the cache that it was copied into.
class CopiedChunks {
  public:
    CopiedChunks(const Recorded& one, std::uint64_t first, std::vector<std::byte>& buffer)
        : reader_(one.view, first),
          scalars_per_element_(scalars_per_element(one)),
          buffer_(buffer) {}

    ChunkSource source() { return {next, this}; }

  private:
    static const std::uint8_t* next(void* state, std::uint64_t scalars) {
        auto& chunks = *static_cast<CopiedChunks*>(state);
        const std::uint64_t elements = scalars / chunks.scalars_per_element_;
        return reinterpret_cast<const std::uint8_t*>(chunks.reader_.next(elements, chunks.buffer_));
    }

    ElementReader reader_;
    std::uint64_t scalars_per_element_;
    std::vector<std::byte>& buffer_;
};

// One or two trees.
void hash_trees(const Recorded& one, std::span<TreeParts* const> trees, std::uint64_t first_leaf,
                std::uint64_t leaf_count, std::vector<std::byte>& buffer) {
    const std::uint64_t scalars = scalars_in(one, first_leaf, leaf_count);
    std::vector<ChunkBatch> batches;
    for (TreeParts* const parts : trees)
        batches.push_back(parts->batch_at(first_leaf, scalars));
    if (one.view.is_on_device())
        return one.view.hash_on_device(batches, leaf_count);
    if (one.view.is_packed() || one.view.is_transposed()) {
        const std::byte* const data = whole_elements_of(one, first_leaf, scalars, buffer);
        for (ChunkBatch& batch : batches)
            batch.data = reinterpret_cast<const std::uint8_t*>(data);
        return level_kernels().hash_trees(batches.data(), batches.size(), 0, leaf_count, nullptr);
    }
    CopiedChunks chunks(one, first_element(one, first_leaf), buffer);
    const ChunkSource source = chunks.source();
    level_kernels().hash_trees(batches.data(), batches.size(), 0, leaf_count, &source);
}

void hash(Recorded& one, std::uint64_t first_leaf, std::uint64_t leaf_count,
          std::vector<std::byte>& buffer) {
    const std::vector<TreeParts*> trees = one.trees();
    constexpr std::size_t at_once = 2;
    for (std::size_t first = 0; first < trees.size(); first += at_once) {
        const std::size_t count = std::min(at_once, trees.size() - first);
        hash_trees(one, std::span(trees).subspan(first, count), first_leaf, leaf_count, buffer);
    }
}

}  // namespace

Recorded::Recorded(std::uint32_t id, const std::string& called, const ArrayView& array,
                   const TreeParameters& parameters,
                   std::shared_ptr<const ReferenceTree> held_against, SpareTrees spare,
                   bool keeps_residues)
    : variable(id),
      name(called),
      view(array),
      reference(std::move(held_against)),
      plain(without_residues(parameters), array.scalar_count(), nullptr, std::move(spare.plain)) {
    if (reference && reference->shape != view.shape())
        throw Error(ErrorCode::invalid_argument, "the reference's has another shape");
    // Devices make none.
    const bool has_summaries = !view.is_on_device();
    if (has_summaries)
        plain.ask_for_summaries();
    const bool has_levels = make_plan(parameters).has_residues();
    if (!reference && !has_levels)
        return;
    std::shared_ptr<const MerkleTree> theirs;
    if (reference)
        theirs = {reference, &reference->tree};
    TreeParts parts(has_levels ? parameters : plain.tree.parameters, array.scalar_count(), theirs,
                    std::move(spare.fine));
    if (!has_levels)
        return;
    if (has_summaries)
        parts.ask_for_summaries();
    fine = std::make_unique<TreeParts>(std::move(parts));
    if (!is_relative() || !keeps_residues)
        return;
    own = std::make_unique<TreeParts>(parameters, array.scalar_count(), nullptr,
                                      std::move(spare.own));
    if (has_summaries)
        own->ask_for_summaries();
}

std::vector<TreeParts*> Recorded::trees() {
    std::vector<TreeParts*> found{&plain};
    for (TreeParts* const parts : {fine.get(), own.get()}) {
        if (parts != nullptr)
            found.push_back(parts);
    }
    return found;
}

SpareTrees Recorded::give_trees() {
    return {std::move(plain.tree), fine ? std::move(fine->tree) : MerkleTree{},
            own ? std::move(own->tree) : MerkleTree{}};
}

void Recorded::compare() {
    const TreeParts& ours = fine ? *fine : plain;
    const std::span<const Digest> mine = leaves_of(ours.tree, ours.shape);
    const std::span<const Digest> theirs = leaves_of(reference->tree, ours.shape);
    compared = {};
    compared.leaf_count = mine.size();
    for (std::size_t leaf = 0; leaf < mine.size(); ++leaf) {
        if (mine[leaf] != theirs[leaf] || mine[leaf] == unmatchable_digest)
            compared.suspects.push_back(leaf);
    }
    if (!is_relative())
        return;
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): what is relative has a drift
    for (const std::uint8_t level : fine->drift->leaf_max_level) {
        if (level != no_match_level)
            compared.max_share = std::max(compared.max_share, level / (fine->plan.half + 1.0));
    }
}

void Recorded::prove(std::span<const ChunkSummary> theirs) {
    const TreeParts& ours = fine ? *fine : plain;
    const std::vector<std::uint64_t>& suspects = compared.suspects;
    if (suspect_is_proof(ours.tree.parameters))
        compared.proven_count = suspects.size();
    if (theirs.size() != compared.leaf_count || ours.summaries.size() != theirs.size())
        return;
    std::vector<ChunkSummary> golden;
    std::vector<ChunkSummary> other;
    for (const std::uint64_t leaf : suspects) {
        golden.push_back(theirs[leaf]);
        other.push_back(ours.summaries[leaf]);
    }
    std::uint64_t proven = 0;
    for (const LeastShare& one :
         least_shares(ours.tree.parameters, ours.tree.scalar_count, suspects, golden, other)) {
        if (!(one.share >= 1))
            continue;
        ++proven;
        if (one.has_size && std::isfinite(one.share))
            compared.least_share = std::max(compared.least_share, one.share);
    }
    compared.proven_count = std::max(compared.proven_count, proven);
}

void Recorded::keep_samples(std::uint64_t most_bytes) {
    std::vector<std::byte> buffer;
    for (const std::uint64_t leaf : compared.suspects) {
        const std::uint64_t scalars = scalars_in(*this, leaf, 1);
        const std::uint64_t bytes = scalars * plain.plan.scalar_bytes;
        if (bytes > most_bytes)
            return;
        most_bytes -= bytes;
        try {
            const std::byte* const data = elements_of(*this, leaf, scalars, buffer);
            samples.push_back({leaf, {data, data + bytes}});
        } catch (const Error&) {
            return;  // of a device; that the chunk does not match is told all the same
        }
    }
}

bool Recorded::is_stable() const {
    Batch batch;
    auto again = std::make_unique<Recorded>(variable, name, view, plain.tree.parameters);
    batch.hash_now(*again);
    if (!again->has_memory || !again->fault.empty())
        return true;  // nobody knows
    const auto first = leaves_of(plain.tree, plain.shape);
    const auto second = leaves_of(again->plain.tree, plain.shape);
    return std::equal(first.begin(), first.end(), second.begin(), second.end());
}

void Batch::cut() {
    for (const auto& one : variables) {
        const std::uint64_t leaves = one->plain.shape.leaf_count();
        const std::uint64_t step = leaves_per_piece(*one, leaves);
        for (std::uint64_t leaf = 0; leaf < leaves; leaf += step)
            pieces_.push_back({one.get(), leaf, std::min(step, leaves - leaf)});
    }
}

void Batch::hash_piece(const Piece& piece, std::vector<std::byte>& buffer) noexcept {
    try {
        try {
            hash(*piece.variable, piece.first_leaf, piece.leaf_count, buffer);
        } catch (const Error& error) {
            piece.variable->fault = error.what();  // of a device, so this is its only piece
        }
    } catch (const std::exception&) {
        piece.variable->has_memory = false;  // its leaves may be those of another checkpoint
    }
}

void Batch::work() noexcept {
    std::vector<std::byte> buffer;
    for (;;) {
        const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
        if (index >= pieces_.size())
            return;
        hash_piece(pieces_[index], buffer);
    }
}

void Batch::hash_now(Recorded& one) noexcept {
    std::vector<std::byte> buffer;
    const std::uint64_t leaves = one.plain.shape.leaf_count();
    const std::uint64_t step = leaves_per_piece(one, leaves);
    for (std::uint64_t leaf = 0; leaf < leaves; leaf += step)
        hash_piece({&one, leaf, std::min(step, leaves - leaf)}, buffer);
}

std::vector<std::pair<std::string, std::string>> Batch::drop_faulty() {
    std::vector<std::pair<std::string, std::string>> told;
    for (const auto& one : variables) {
        if (!one->has_memory)
            one->fault = no_memory;
        if (one->fault.empty())
            continue;
        told.emplace_back(one->name, one->fault);
        holes.emplace_back(one->variable, one->fault);
    }
    std::erase_if(variables, [](const auto& one) { return !one->fault.empty(); });
    return told;
}

std::uint64_t Batch::tree_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& one : variables) {
        for (const TreeParts* const parts : one->trees())
            sum += tree_bytes_of(parts->tree);
        for (const Sample& sample : one->samples)
            sum += sample.elements.size();
    }
    return sum;
}

std::uint64_t Batch::reference_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& one : variables)
        sum += one->reference ? tree_bytes_of(one->reference->tree) : 0;
    return sum;
}

std::uint64_t Batch::data_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& one : variables)
        sum += one->plain.total_bytes;
    return sum;
}

}  // namespace ciwrap::record
