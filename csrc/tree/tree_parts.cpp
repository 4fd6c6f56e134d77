#include "tree/tree_parts.hpp"

#include <algorithm>
#include <string>

#include "ciwrap/error.hpp"
#include "kernels/cpu_level.hpp"

namespace ciwrap {
namespace {

std::uint64_t checked_bytes(const TreeParameters& parameters, std::uint64_t scalar_count) {
    const std::uint64_t scalar_bytes = parameters.data_type().scalar_bytes;
    if (scalar_count > (std::uint64_t{1} << 60) / scalar_bytes) {
        throw Error(ErrorCode::invalid_argument, "an array of more than 2^60 bytes");
    }
    return scalar_count * scalar_bytes;
}

void check_golden(const MerkleTree& golden, const TreeParameters& parameters,
                  std::uint64_t scalar_count, const QuantizePlan& plan) {
    if (!same_codes(golden.parameters, parameters)) {
        throw Error(ErrorCode::invalid_argument, "the golden tree was made with other parameters");
    }
    if (golden.scalar_count != scalar_count) {
        throw Error(ErrorCode::invalid_argument,
                    "the golden tree is of " + std::to_string(golden.scalar_count) +
                        " scalars, not " + std::to_string(scalar_count));
    }
    if (golden.residues.size() != plan.total_residue_bytes(scalar_count)) {
        throw Error(ErrorCode::invalid_argument,
                    "the golden tree has no residues (was it made against another?)");
    }
}

}  // namespace

bool same_codes(const TreeParameters& a, const TreeParameters& b) {
    StatedParameters in_order = b.values();
    if (a.dtype().substr(1) == b.dtype().substr(1))
        in_order.dtype = a.dtype();
    return a.values() == in_order;
}

TreeParts::TreeParts(const TreeParameters& parameters, std::uint64_t scalar_count,
                     std::shared_ptr<const MerkleTree> golden_tree, MerkleTree spare)
    : tree(std::move(spare)),
      plan(make_plan(parameters)),
      shape(parameters.leaf_count(scalar_count), parameters.arity()),
      golden(std::move(golden_tree)),
      total_bytes(checked_bytes(parameters, scalar_count)) {
    if (golden)
        check_golden(*golden, parameters, scalar_count, plan);
    tree.parameters = parameters;
    tree.scalar_count = scalar_count;
    tree.digests.resize(shape.node_count());
    if (golden && plan.has_residues()) {
        drift.emplace();
        drift->leaf_max_level.resize(shape.leaf_count());
        drift->histogram = histogram();
        tree.residues.clear();
    } else {
        tree.residues.resize(plan.total_residue_bytes(scalar_count));
    }
}

void TreeParts::ask_for_summaries() {
    if (plan.kind != CodeKind::exact && total_bytes > 0)
        summaries.resize(shape.leaf_count());
}

ChunkBatch TreeParts::batch_at(std::uint64_t leaf, std::uint64_t scalar_count) {
    const std::uint64_t leaf_offset = shape.offset(shape.level_count() - 1);
    const std::uint64_t residue_stride = plan.residue_bytes(plan.chunk_scalars);
    ChunkBatch batch;
    batch.plan = &plan;
    batch.scalar_count = scalar_count;
    batch.leaves = tree.digests.data() + leaf_offset + leaf;
    if (!summaries.empty())
        batch.summaries = summaries.data() + leaf;
    if (drift) {
        batch.golden_residues = golden->residues.data() + leaf * residue_stride;
        batch.golden_leaves = golden->digests.data() + leaf_offset + leaf;
        batch.leaf_levels = drift->leaf_max_level.data() + leaf;
    } else if (plan.has_residues()) {
        batch.residues = tree.residues.data() + leaf * residue_stride;
    }
    return batch;
}

std::vector<std::uint64_t> TreeParts::histogram() const {
    return std::vector<std::uint64_t>(static_cast<std::size_t>(plan.half) + 1);
}

void TreeParts::add_drift(std::span<const std::uint64_t> counts) {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): who has counts has one
    Drift& found = *drift;
    for (std::size_t level = 0; level < counts.size(); ++level) {
        found.histogram[level] += counts[level];
        found.scalar_count += counts[level];
        if (counts[level] > 0)
            found.max_level = std::max(found.max_level, static_cast<std::int32_t>(level));
    }
    found.max_share = found.max_level / (plan.half + 1.0);
}

void hash_level(const TreeShape& shape, std::size_t level, std::vector<Digest>& digests,
                std::uint64_t first, std::uint64_t last) {
    level_kernels().hash_nodes(digests.data() + shape.offset(level + 1), shape.count(level + 1),
                               shape.arity(), digests.data() + shape.offset(level), first, last);
}

}  // namespace ciwrap
