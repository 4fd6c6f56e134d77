// What digests and summaries of changed chunks prove (docs/reference/cell-codes.md, section 9).
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/quantize_plan.hpp"
#include "ciwrap/chunk_summary.hpp"
#include "ciwrap/error.hpp"

namespace ciwrap {
namespace {

// A little less than 1, for what doubles round.
constexpr double rounding = 1.0 - 0x1p-18;

// By which values surely differ whose codes are so many apart.
double share_of(const QuantizePlan& plan, const TreeParameters& parameters,
                std::uint64_t codes_apart) {
    if (codes_apart < 2 || plan.kind == CodeKind::exact)
        return 0.0;
    // Both sides are rounded to fine steps, and these to cells of k of them.
    const double steps = static_cast<double>(codes_apart - 1) * plan.levels;
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

// Sums wrap around at 64 bits, and so do their differences: these are never the larger ones.
std::uint64_t difference(std::int64_t one, std::int64_t other) {
    return static_cast<std::uint64_t>(one) - static_cast<std::uint64_t>(other);
}

std::uint64_t magnitude(std::uint64_t wrapped) {
    return static_cast<std::int64_t>(wrapped) < 0 ? 0 - wrapped : wrapped;
}

// Some pair is as far apart as the mean, rounded up.
std::uint64_t mean(std::uint64_t wrapped, std::uint64_t of) {
    const std::uint64_t divisor = std::max<std::uint64_t>(1, of);
    const std::uint64_t size = magnitude(wrapped);
    return size / divisor + (size % divisor != 0 ? 1 : 0);
}

// How many codes some scalar of a chunk of n is apart, at least.
std::uint64_t codes_apart(const ChunkSummary& ours, const ChunkSummary& theirs, std::uint64_t n) {
    std::uint64_t rounded = n;
    for (const std::int64_t count :
         {ours.nan, ours.plus_infinity, ours.minus_infinity, ours.missing, ours.zero, ours.huge})
        rounded -= static_cast<std::uint64_t>(count);
    if (rounded > n)  // of a file that says what cannot be
        rounded = 1;
    const std::uint64_t by_sum = difference(theirs.sum, ours.sum);
    const std::uint64_t by_moment = difference(theirs.moment, ours.moment);
    // Around the middle of the chunk, where a constant offset has no moment.
    const std::uint64_t centred = 2 * by_moment - (n - 1) * by_sum;
    return std::max({magnitude(difference(theirs.least, ours.least)),
                     magnitude(difference(theirs.greatest, ours.greatest)), mean(by_sum, rounded),
                     mean(by_moment, n * (n - 1) / 2), mean(centred, n * n / 2)});
}

bool has_other_classes(const ChunkSummary& ours, const ChunkSummary& theirs) {
    return ours.nan != theirs.nan || ours.plus_infinity != theirs.plus_infinity ||
           ours.minus_infinity != theirs.minus_infinity || ours.missing != theirs.missing;
}

bool has_classes(const ChunkSummary& one) {
    return (one.nan | one.plus_infinity | one.minus_infinity | one.missing) != 0;
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

bool is_narrowed(const TreeParameters& parameters) {
    const QuantizePlan plan = make_plan(parameters);
    const double atol = parameters.atol();
    if (plan.kind == CodeKind::absolute)
        return parameters.rtol() > 0.0 || (atol > 0x1p+960 && plan.code_bytes == 8);
    return plan.kind == CodeKind::relative && atol > 0.0 && parameters.rtol() / atol > 0x1p+1000;
}

double least_share(const TreeParameters& parameters, std::uint64_t codes_apart) {
    return share_of(make_plan(parameters), parameters, codes_apart);
}

std::vector<LeastShare> least_shares(const TreeParameters& parameters, std::uint64_t scalar_count,
                                     std::span<const std::uint64_t> leaves,
                                     std::span<const ChunkSummary> golden,
                                     std::span<const ChunkSummary> other) {
    if (golden.size() != leaves.size() || other.size() != leaves.size())
        throw Error(ErrorCode::invalid_argument, "each block needs a summary of either side");
    std::vector<LeastShare> found(leaves.size());
    if (is_narrowed(parameters))
        return found;
    const QuantizePlan plan = make_plan(parameters);
    for (std::size_t at = 0; at < leaves.size(); ++at) {
        const ChunkSummary& ours = golden[at];
        const ChunkSummary& theirs = other[at];
        const std::uint64_t first = leaves[at] * plan.chunk_scalars;
        if (first > scalar_count)
            throw Error(ErrorCode::invalid_argument, "the array has no such block");
        const std::uint64_t n = std::min(plan.chunk_scalars, scalar_count - first);
        double& share = found[at].share;
        // Numbers that are compared bit by bit have codes of their own: a step across is no
        // distance.
        if ((ours.huge | theirs.huge) == 0)
            share = share_of(plan, parameters, codes_apart(ours, theirs, n));
        // From g to 0 it is exactly 1 / rtol bounds: with an rtol of 1, within it.
        if (plan.zero_is_special && ours.zero != theirs.zero)
            share = std::max(share, rounding / parameters.rtol());
        if (has_other_classes(ours, theirs))
            share = std::numeric_limits<double>::infinity();
        found[at].has_size = !has_classes(ours) && !has_classes(theirs);
    }
    return found;
}

}  // namespace ciwrap
