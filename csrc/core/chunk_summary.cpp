#include "ciwrap/chunk_summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/quantize_plan.hpp"
#include "ciwrap/error.hpp"
#include "kernels/cpu_level.hpp"
#include "kernels/packed_residues.hpp"
#include "tree/tree_parts.hpp"

namespace ciwrap {
namespace {

// Codes of one width: which of them are special, and what the others come to.
template <class Code>
class Summarizer {
  public:
    explicit Summarizer(const QuantizePlan& plan)
        : is_steps_(plan.kind == CodeKind::steps),
          has_infinities_(is_float(plan.scalar)),
          has_missing_(plan.fill_count > 0),
          has_zero_(plan.zero_is_special),
          infinity_(sizeof(Code) == 4 ? 0x7f800000 : 0x7ff0000000000000),
          shift_(plan.special_shift),
          // The first special code comes right after the last rounded one.
          most_(shift_ + static_cast<std::int64_t>(plan.special_bits) - 1) {}

    ChunkSummary of(const std::uint8_t* codes, std::size_t count) const {
        ChunkSummary found;
        std::int64_t least = std::numeric_limits<std::int64_t>::max();
        std::int64_t greatest = std::numeric_limits<std::int64_t>::min();
        std::uint64_t sum = 0;
        std::uint64_t moment = 0;
        std::size_t rounded = 0;
        for (std::size_t i = 0; i < count; ++i) {
            Code stored;
            std::memcpy(&stored, codes + i * sizeof stored, sizeof stored);
            const std::int64_t code = stored;
            if (is_special(code)) {
                count_special(code, found);
                continue;
            }
            least = std::min(least, code);
            greatest = std::max(greatest, code);
            sum += static_cast<std::uint64_t>(code);
            moment += static_cast<std::uint64_t>(code) * i;
            ++rounded;
        }
        if (rounded == 0)
            return found;
        found.least = least;
        found.greatest = greatest;
        found.sum = static_cast<std::int64_t>(sum);
        found.moment = static_cast<std::int64_t>(moment);
        return found;
    }

  private:
    static constexpr std::int64_t lowest = std::numeric_limits<Code>::min();
    static constexpr std::int64_t highest = std::numeric_limits<Code>::max();

    bool is_special(std::int64_t code) const {
        if (!is_steps_)
            return code > most_ || code < -most_;
        return (has_missing_ && code == lowest + 1) ||
               (has_infinities_ && (code == lowest || code >= highest - 1));
    }

    void count_special(std::int64_t code, ChunkSummary& found) const {
        if (has_missing_ && code == lowest + 1) {
            ++found.missing;
        } else if (code == lowest) {
            ++found.nan;
        } else if (is_steps_) {
            ++(code == highest ? found.plus_infinity : found.minus_infinity);
        } else if (has_zero_ && code == lowest + 2) {
            ++found.zero;
        } else if (code == shift_ + infinity_) {
            ++found.plus_infinity;
        } else if (code == -(shift_ + infinity_)) {
            ++found.minus_infinity;
        } else {
            ++found.huge;
        }
    }

    bool is_steps_;
    bool has_infinities_;
    bool has_missing_;
    bool has_zero_;
    std::int64_t infinity_;
    std::int64_t shift_;
    std::int64_t most_;
};

}  // namespace

std::vector<ChunkSummary> summarize_chunks(const TreeParameters& parameters,
                                           std::span<const std::byte> data,
                                           const MerkleTree* golden, std::uint64_t first_leaf) {
    const QuantizePlan plan = make_plan(parameters);
    if (plan.kind == CodeKind::exact)
        throw Error(ErrorCode::invalid_argument, "codes of this kind have no summary");
    if (data.size() % plan.scalar_bytes != 0)
        throw Error(ErrorCode::invalid_argument, "the data are not a whole number of scalars");
    const std::uint64_t count = data.size() / plan.scalar_bytes;
    const std::uint64_t chunks = (count + plan.chunk_scalars - 1) / plan.chunk_scalars;
    const bool against = golden != nullptr && !golden->residues.empty();
    if (golden != nullptr) {
        if (!same_codes(golden->parameters, parameters))
            throw Error(ErrorCode::invalid_argument, "the golden was made with other parameters");
        const std::uint64_t first = first_leaf * plan.chunk_scalars;
        if (first > golden->scalar_count || count > golden->scalar_count - first)
            throw Error(ErrorCode::invalid_argument, "the golden has no such chunks");
    }
    std::vector<ChunkSummary> found(static_cast<std::size_t>(chunks));
    const std::uint64_t most = std::min(count, plan.chunk_scalars);
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(most * plan.code_bytes));
    std::vector<std::uint8_t> residues(static_cast<std::size_t>(most));
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::uint64_t first = chunk * plan.chunk_scalars;
        const std::uint64_t scalars = std::min(plan.chunk_scalars, count - first);
        if (against) {
            const std::uint64_t packed_at =
                (first_leaf + chunk) * plan.residue_bytes(plan.chunk_scalars);
            unpack_residues(plan, golden->residues.data() + packed_at, scalars, residues.data());
        }
        level_kernels().encode(
            plan, reinterpret_cast<const std::uint8_t*>(data.data()) + first * plan.scalar_bytes,
            scalars, codes.data(), residues.data(), against);
        const auto size = static_cast<std::size_t>(scalars);
        found[static_cast<std::size_t>(chunk)] =
            plan.code_bytes == 4 ? Summarizer<std::int32_t>(plan).of(codes.data(), size)
                                 : Summarizer<std::int64_t>(plan).of(codes.data(), size);
    }
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
