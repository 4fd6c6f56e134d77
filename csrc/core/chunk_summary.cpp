#include <algorithm>

#include "base/quantize_plan.hpp"
#include "ciwrap/error.hpp"
#include "ciwrap/tree.hpp"
#include "kernels/cpu_level.hpp"
#include "tree/tree_parts.hpp"

namespace ciwrap {

std::vector<ChunkSummary> summarize_chunks(const TreeParameters& parameters,
                                           std::span<const std::byte> data,
                                           const MerkleTree* golden, std::uint64_t first_leaf) {
    const QuantizePlan plan = make_plan(parameters);
    if (plan.kind == CodeKind::exact)
        throw Error(ErrorCode::invalid_argument, "codes of this kind have no summary");
    if (data.size() % plan.scalar_bytes != 0)
        throw Error(ErrorCode::invalid_argument, "the data are not a whole number of scalars");
    ChunkBatch batch;
    batch.plan = &plan;
    batch.data = reinterpret_cast<const std::uint8_t*>(data.data());
    batch.scalar_count = data.size() / plan.scalar_bytes;
    if (golden != nullptr) {
        if (!same_codes(golden->parameters, parameters))
            throw Error(ErrorCode::invalid_argument, "the golden was made with other parameters");
        const std::uint64_t first = first_leaf * plan.chunk_scalars;
        if (first > golden->scalar_count || batch.scalar_count > golden->scalar_count - first)
            throw Error(ErrorCode::invalid_argument, "the golden has no such blocks");
        if (!golden->residues.empty())
            batch.golden_residues =
                golden->residues.data() + first_leaf * plan.residue_bytes(plan.chunk_scalars);
    }
    const std::uint64_t chunks = (batch.scalar_count + plan.chunk_scalars - 1) / plan.chunk_scalars;
    std::vector<Digest> digests(static_cast<std::size_t>(chunks));
    std::vector<ChunkSummary> found(digests.size());
    batch.leaves = digests.data();
    batch.summaries = found.data();
    level_kernels().hash_chunks(batch, 0, chunks, nullptr);
    return found;
}

}  // namespace ciwrap
