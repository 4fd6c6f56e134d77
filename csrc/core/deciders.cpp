#include "ciwrap/compare.hpp"

#include <algorithm>
#include <string>

#include "base/quantize_plan.hpp"
#include "ciwrap/error.hpp"

namespace ciwrap {
namespace {

[[noreturn]] void contradict(std::int64_t leaf, const char* what) {
    throw Error(ErrorCode::internal,
                "chunk " + std::to_string(leaf) + ": " + what +
                    "; the data changed while they were compared, or ciwrap is wrong (an internal "
                    "error: please report it)");
}

}  // namespace

bool suspect_is_proof(const TreeParameters& parameters) {
    const QuantizePlan plan = make_plan(parameters);
    if (plan.kind == CodeKind::steps)
        return plan.guaranteed_share >= 1.0;
    // Floats have exact codes as well where their bound is too small for others: stricter than it.
    const bool has_bound = parameters.atol() > 0.0 || parameters.rtol() > 0.0;
    return plan.kind == CodeKind::exact && !(is_float(plan.scalar) && has_bound);
}

void check_deciders(const TreeParameters& parameters, const Comparison& comparison,
                    std::span<const std::int64_t> suspects,
                    std::optional<std::span<const std::int64_t>> compared) {
    const LeafSet& differing = comparison.differing_leaves;
    for (const std::uint64_t leaf : differing.list()) {
        const auto index = static_cast<std::int64_t>(leaf);
        if (!std::ranges::binary_search(suspects, index))
            contradict(index, "an element differs although its digests agree");
    }
    if (!suspect_is_proof(parameters))
        return;
    for (const std::int64_t leaf : suspects) {
        if (compared && !std::ranges::binary_search(*compared, leaf))
            continue;
        if (!differing.contains(static_cast<std::uint64_t>(leaf)))
            contradict(leaf, "its digests differ although none of its elements does");
    }
}

}  // namespace ciwrap
