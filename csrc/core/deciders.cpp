#include "ciwrap/compare.hpp"

#include <algorithm>
#include <string>

#include "ciwrap/chunk_summary.hpp"
#include "ciwrap/error.hpp"

namespace ciwrap {
namespace {

[[noreturn]] void contradict(std::int64_t leaf, const char* what) {
    throw Error(ErrorCode::internal,
                "block " + std::to_string(leaf) + ": " + what +
                    "; the data changed while they were compared, or ciwrap is wrong (an internal "
                    "error: please report it)");
}

}  // namespace

void check_deciders(const TreeParameters& parameters, const Comparison& comparison,
                    std::span<const std::int64_t> suspects,
                    std::optional<std::span<const std::int64_t>> compared) {
    const LeafSet& differing = comparison.differing_leaves;
    for (const std::uint64_t leaf : differing.list()) {
        const auto index = static_cast<std::int64_t>(leaf);
        if (!std::ranges::binary_search(suspects, index))
            contradict(index, "a value differs although its digests agree");
    }
    if (!suspect_is_proof(parameters))
        return;
    for (const std::int64_t leaf : suspects) {
        if (compared && !std::ranges::binary_search(*compared, leaf))
            continue;
        if (!differing.contains(static_cast<std::uint64_t>(leaf)))
            contradict(leaf, "its digests differ although none of its values does");
    }
}

}  // namespace ciwrap
