#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <tuple>
#include <utility>

#include "base/quantize_plan.hpp"
#include "ciwrap/error.hpp"
#include "ciwrap/solve.hpp"
#include "core/patched_hash.hpp"
#include "kernels/executor.hpp"
#include "kernels/packed_residues.hpp"

namespace ciwrap {
namespace {

using Codes = std::vector<std::int64_t>;

// Pairs are looked for among cells so near, and in chunks of so many scalars at most.
constexpr std::int64_t pair_cells = 4;
constexpr std::size_t most_pair_scalars = std::size_t{1} << 16;
// Scalars that stand out of their neighbours: looked at far from where they are now.
constexpr std::size_t most_standouts = 4;

class Solver {
  public:
    Solver(const QuantizePlan& plan, PatchedHash hash, std::vector<std::uint8_t> residues,
           const Digest& golden, std::uint64_t most_trials)
        : plan_(plan),
          hash_(std::move(hash)),
          residues_(std::move(residues)),
          golden_(golden),
          sum_(hash_.sum_of_terms(golden)),
          trials_(most_trials) {}

    std::vector<MovedScalar> solve() {
        if (hash_.with({}) == golden_)
            return {};
        if (near(1) || special_codes() || standouts() || pairs() || further())
            return found_;
        return {};
    }

  private:
    // The codes of what is not rounded, for scalars that may have been it: the golden's residue of
    // those is 0.
    bool special_codes() {
        const Codes codes = codes_of_specials();
        for (std::size_t i = 0; i < hash_.count(); ++i) {
            if ((residues_.empty() || residues_[i] == 0) && tries(i, codes))
                return true;
        }
        return false;
    }

    Codes codes_of_specials() const {
        const std::int64_t lowest = plan_.code_bytes == 4
                                        ? -(std::int64_t{1} << 31)
                                        : std::numeric_limits<std::int64_t>::min();
        Codes codes;
        switch (plan_.kind) {
            case CodeKind::exact:
                codes = {0};
                break;
            case CodeKind::steps:
                codes = {lowest, -(lowest + 1), -(lowest + 2)};
                break;
            default: {
                const std::int64_t infinite =
                    plan_.special_shift + (plan_.code_bytes == 4 ? 0x7f800000 : 0x7ff0000000000000);
                codes = {lowest, lowest + 2, infinite, -infinite};
            }
        }
        if (plan_.fill_count > 0 && plan_.kind != CodeKind::exact)
            codes.push_back(lowest + 1);
        return codes;
    }

    // Every scalar, `turn` times four cells away in either direction; single bits, where codes are
    // the scalars' own.
    bool near(std::int64_t turn) {
        Codes codes;
        for (std::size_t i = 0; i < hash_.count(); ++i) {
            codes.clear();
            around(hash_.code(i), 4 * (turn - 1), 4 * turn, codes);
            if (plan_.kind == CodeKind::exact && turn == 1) {
                for (std::uint32_t bit = 0; bit < 8 * plan_.code_bytes; ++bit)
                    codes.push_back(hash_.code(i) ^ static_cast<std::int64_t>(1ull << bit));
            }
            if (tries(i, codes))
                return true;
        }
        return false;
    }

    bool further() {
        for (std::int64_t turn = 2; trials_ > 0; ++turn) {
            if (near(turn))
                return true;
        }
        return false;
    }

    static void around(std::int64_t middle, std::int64_t beyond, std::int64_t up_to, Codes& codes) {
        const auto base = static_cast<std::uint64_t>(middle);
        for (auto away = static_cast<std::uint64_t>(beyond + 1);
             away <= static_cast<std::uint64_t>(up_to); ++away) {
            codes.push_back(static_cast<std::int64_t>(base + away));
            codes.push_back(static_cast<std::int64_t>(base - away));
        }
    }

    // Scalars that are far from their neighbours, around the cell between these.
    bool standouts() {
        const std::vector<std::pair<double, std::size_t>> found = find_standouts();
        if (found.empty())
            return false;
        const std::uint64_t each = trials_ / 2 / found.size();
        Codes codes;
        for (const auto& [far, i] : found) {
            const std::int64_t middle = between_neighbours(i);
            const std::uint64_t stop = trials_ - std::min(trials_, each);
            if (tries(i, {middle}))
                return true;
            for (std::int64_t turn = 1; trials_ > stop; ++turn) {
                codes.clear();
                around(middle, 4 * (turn - 1), 4 * turn, codes);
                if (tries(i, codes))
                    return true;
            }
        }
        return false;
    }

    std::vector<std::pair<double, std::size_t>> find_standouts() const {
        std::vector<std::pair<double, std::size_t>> found;
        for (std::size_t i = 0; i < hash_.count(); ++i) {
            const double far = std::abs(static_cast<double>(hash_.code(i)) -
                                        static_cast<double>(between_neighbours(i)));
            if (far <= static_cast<double>(pair_cells))
                continue;
            found.emplace_back(far, i);
        }
        const std::size_t kept = std::min(found.size(), most_standouts);
        std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kept),
                          found.end(), [](const auto& a, const auto& b) {
                              return a.first != b.first ? a.first > b.first : a.second < b.second;
                          });
        found.resize(kept);
        return found;
    }

    std::int64_t between_neighbours(std::size_t i) const {
        const std::size_t last = hash_.count() - 1;
        const std::int64_t left = hash_.code(i == 0 ? std::min<std::size_t>(1, last) : i - 1);
        const std::int64_t right = hash_.code(i == last ? (last == 0 ? 0 : last - 1) : i + 1);
        return (left >> 1) + (right >> 1) + (left & right & 1);
    }

    // Two scalars whose words enter different pairs of lanes: the terms of one pair are looked up
    // among those that the other pair's would need.
    bool pairs() {
        const std::size_t count = hash_.count();
        if (count > most_pair_scalars || trials_ < 2 * pair_cells * count)
            return false;
        std::array<std::vector<Move>, PatchedHash::lane_pairs> moves = all_moves();
        for (std::vector<Move>& each : moves) {
            std::sort(each.begin(), each.end(), [](const Move& a, const Move& b) {
                return std::tie(a.term, a.index, a.code) < std::tie(b.term, b.index, b.code);
            });
        }
        for (int p = 0; p < PatchedHash::lane_pairs; ++p) {
            for (int q = p + 1; q < PatchedHash::lane_pairs; ++q) {
                if (meet(p, moves[static_cast<std::size_t>(p)], q,
                         moves[static_cast<std::size_t>(q)]))
                    return true;
            }
        }
        return false;
    }

    struct Move {
        std::uint64_t term;
        std::size_t index;
        std::int64_t code;
    };

    std::array<std::vector<Move>, PatchedHash::lane_pairs> all_moves() {
        std::array<std::vector<Move>, PatchedHash::lane_pairs> moves;
        Codes codes;
        std::array<std::uint64_t, PatchedHash::most_at_once> terms{};
        for (std::size_t i = 0; i < hash_.count(); ++i) {
            if (!hash_.has_place(i))
                continue;
            codes.clear();
            around(hash_.code(i), 0, pair_cells, codes);
            hash_.terms(i, codes, terms);
            for (std::size_t c = 0; c < codes.size(); ++c) {
                moves[static_cast<std::size_t>(hash_.pair_of(i))].push_back(
                    {terms[c], i, codes[c]});
            }
        }
        return moves;
    }

    bool meet(int p, const std::vector<Move>& ours, int q, const std::vector<Move>& theirs) {
        const std::uint64_t others = hash_.term(0) + hash_.term(1) + hash_.term(2) + hash_.term(3) -
                                     hash_.term(p) - hash_.term(q);
        for (const Move& one : ours) {
            const std::uint64_t wanted = sum_ - others - one.term;
            auto other = std::lower_bound(
                theirs.begin(), theirs.end(), wanted,
                [](const Move& move, std::uint64_t term) { return move.term < term; });
            for (; other != theirs.end() && other->term == wanted; ++other) {
                if (proves({{one.index, one.code}, {other->index, other->code}}))
                    return true;
            }
        }
        return false;
    }

    bool tries(std::size_t i, std::span<const std::int64_t> codes) {
        if (!hash_.has_place(i)) {
            for (const std::int64_t code : codes) {
                spend(1);
                if (proves({{i, code}}))
                    return true;
            }
            return false;
        }
        const int pair = hash_.pair_of(i);
        const std::uint64_t wanted =
            sum_ - hash_.term(0) - hash_.term(1) - hash_.term(2) - hash_.term(3) + hash_.term(pair);
        std::array<std::uint64_t, PatchedHash::most_at_once> terms{};
        for (std::size_t done = 0; done < codes.size(); done += PatchedHash::most_at_once) {
            const auto some =
                codes.subspan(done, std::min(PatchedHash::most_at_once, codes.size() - done));
            spend(some.size());
            hash_.terms(i, some, terms);
            for (std::size_t c = 0; c < some.size(); ++c) {
                if (terms[c] == wanted && proves({{i, some[c]}}))
                    return true;
            }
        }
        return false;
    }

    bool tries(std::size_t i, std::initializer_list<std::int64_t> codes) {
        return tries(i, std::span<const std::int64_t>(codes.begin(), codes.size()));
    }

    void spend(std::uint64_t trials) { trials_ -= std::min(trials_, trials); }

    bool proves(std::initializer_list<PatchedHash::Patch> patches) {
        if (hash_.with({patches.begin(), patches.size()}) != golden_)
            return false;
        const auto unused = static_cast<int>(64 - 8 * plan_.code_bytes);
        for (const PatchedHash::Patch& patch : patches) {
            const auto code =
                static_cast<std::int64_t>(static_cast<std::uint64_t>(patch.code) << unused) >>
                unused;
            found_.push_back(
                {patch.index, code, residues_.empty() ? std::uint8_t{0} : residues_[patch.index]});
        }
        std::sort(found_.begin(), found_.end(),
                  [](const MovedScalar& a, const MovedScalar& b) { return a.index < b.index; });
        return true;
    }

    const QuantizePlan& plan_;
    PatchedHash hash_;
    std::vector<std::uint8_t> residues_;
    Digest golden_;
    std::uint64_t sum_;
    std::uint64_t trials_;
    std::vector<MovedScalar> found_;
};

}  // namespace

std::vector<MovedScalar> solve_chunk(const TreeParameters& parameters,
                                     std::span<const std::byte> data, const Digest& golden_leaf,
                                     std::span<const std::uint8_t> packed_residues,
                                     const SolveLimits& limits) {
    const QuantizePlan plan = make_plan(parameters);
    const std::size_t count = data.size() / plan.scalar_bytes;
    if (count > plan.chunk_scalars || data.size() % plan.scalar_bytes != 0)
        throw Error(ErrorCode::invalid_argument, "the data are not the scalars of one block");
    const bool against = plan.has_residues() && !packed_residues.empty();
    if (!packed_residues.empty() && packed_residues.size() != plan.residue_bytes(count))
        throw Error(ErrorCode::invalid_argument, "the residues are not those of the block");
    if (count == 0 || plan.scalar == ScalarType::raw || golden_leaf == unmatchable_digest ||
        (plan.has_residues() && !against))
        return {};
    std::vector<std::uint8_t> residues(against ? count : 0);
    if (against)
        unpack_residues(plan, packed_residues.data(), count, residues.data());
    std::vector<std::uint8_t> codes(count * plan.code_bytes);
    level_kernels().encode(plan, reinterpret_cast<const std::uint8_t*>(data.data()), count,
                           codes.data(), residues.data(), against);
    return Solver(plan, PatchedHash(std::move(codes), plan.code_bytes), std::move(residues),
                  golden_leaf, limits.most_trials)
        .solve();
}

}  // namespace ciwrap
