#include <algorithm>
#include <cmath>

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
            throw Error(ErrorCode::invalid_argument, "the golden has no such chunks");
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

double least_share(const TreeParameters& parameters, std::uint64_t codes_apart) {
    const QuantizePlan plan = make_plan(parameters);
    if (codes_apart < 2 || plan.kind == CodeKind::exact)
        return 0.0;
    // Both sides are rounded to fine steps, and these to cells of k of them.
    const double steps = static_cast<double>(codes_apart - 1) * plan.levels;
    constexpr double rounding = 1.0 - 0x1p-18;
    switch (plan.kind) {
        case CodeKind::steps:
            return rounding * steps * static_cast<double>(plan.step) /
                   static_cast<double>(parameters.allowed_steps());
        case CodeKind::absolute:
            return rounding * steps / (plan.half + 1.0);
        default: {
            const double error = plan.log_terms == 16 ? 0x1p-37 : 0x1p-47;
            const double apart = rounding * steps / plan.scale - 2.0 * error;
            return apart > 0.0 ? rounding * -std::expm1(-apart * std::log(2.0)) / parameters.rtol()
                               : 0.0;
        }
    }
}

}  // namespace ciwrap
