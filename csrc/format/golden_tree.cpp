#include "format/golden_tree.hpp"

#include <algorithm>
#include <span>

#include "base/quantize_plan.hpp"
#include "base/xxh3.hpp"

namespace ciwrap {
namespace {

std::uint32_t power(std::uint32_t base, std::uint64_t exponent) {
    std::uint32_t product = 1;
    for (std::uint64_t i = 0; i < exponent; ++i)
        product *= base;
    return product;
}

Digest node_over(std::span<const Digest> children) {
    const bool unmatchable =
        std::find(children.begin(), children.end(), unmatchable_digest) != children.end();
    return unmatchable ? unmatchable_digest : xxh3_128(std::as_bytes(children));
}

}  // namespace

std::optional<std::string> tree_fault(const MerkleTree& tree) {
    const TreeShape shape = tree.shape();
    const std::span<const Digest> nodes = tree.digests;
    for (std::size_t level = shape.level_count() - 1; level > 0; --level) {
        const auto below = nodes.subspan(shape.offset(level), shape.count(level));
        const auto here = nodes.subspan(shape.offset(level - 1), shape.count(level - 1));
        for (std::size_t i = 0; i < here.size(); ++i) {
            const std::size_t first = i * shape.arity();
            const std::size_t count = std::min<std::size_t>(shape.arity(), below.size() - first);
            if (node_over(below.subspan(first, count)) != here[i]) {
                return "has a tree whose node " + std::to_string(i) + " of level " +
                       std::to_string(level - 1) + " is not what its children give";
            }
        }
    }
    return std::nullopt;
}

std::optional<std::string> residue_fault(const MerkleTree& tree) {
    const QuantizePlan plan = make_plan(tree.parameters);
    if (!plan.has_residues())
        return std::nullopt;
    const auto levels = static_cast<std::uint32_t>(plan.levels);
    const std::span<const std::uint8_t> packed = tree.residues;
    const auto largest = std::max_element(packed.begin(), packed.end());
    bool valid = largest == packed.end() || *largest < power(levels, plan.packed);
    // What a last byte holds beyond its chunk must be zero. Usually chunks are whole bytes.
    const std::uint64_t chunk_bytes = plan.residue_bytes(plan.chunk_scalars);
    const auto check_tail = [&](std::uint64_t scalars, std::uint64_t last_byte) {
        const std::uint64_t used = (scalars - 1) % plan.packed + 1;
        valid = valid && packed[last_byte] < power(levels, used);
    };
    const std::uint64_t full_chunks = tree.scalar_count / plan.chunk_scalars;
    if (plan.chunk_scalars % plan.packed != 0) {
        for (std::uint64_t chunk = 1; chunk <= full_chunks; ++chunk) {
            check_tail(plan.chunk_scalars, chunk * chunk_bytes - 1);
        }
    }
    if (const std::uint64_t rest = tree.scalar_count % plan.chunk_scalars; rest != 0) {
        check_tail(rest, packed.size() - 1);
    }
    return valid ? std::nullopt : std::optional<std::string>("has residues that are out of range");
}

}  // namespace ciwrap
