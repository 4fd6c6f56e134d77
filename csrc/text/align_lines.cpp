#include "text/align_lines.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ciwrap {
namespace {

// Lines that the search for the shortest edit may leave out before it takes what it has.
constexpr std::ptrdiff_t most_skipped = 512;
// Of the shorter side's lines: if one in so many has no partner, numbers have misled.
constexpr std::size_t most_lonely_share = 10;

using Keys = std::span<const LineKey>;

struct Gap {
    std::size_t golden_begin, golden_end, value_begin, value_end;

    bool is_empty() const { return golden_begin == golden_end || value_begin == value_end; }
};

// Lines that occur once on each side of a gap, and in one order on both: the longest such series.
std::vector<LinePair> anchors(Keys golden, Keys value, const Gap& gap,
                              std::uint64_t LineKey::*key) {
    struct Places {
        std::size_t golden = 0, value = 0;
        unsigned golden_count = 0, value_count = 0;
    };
    std::unordered_map<std::uint64_t, Places> places;
    places.reserve(gap.golden_end - gap.golden_begin);
    for (std::size_t i = gap.golden_begin; i < gap.golden_end; ++i) {
        Places& one = places[golden[i].*key];
        one.golden = i;
        ++one.golden_count;
    }
    for (std::size_t j = gap.value_begin; j < gap.value_end; ++j) {
        const auto found = places.find(value[j].*key);
        if (found == places.end())
            continue;
        found->second.value = j;
        ++found->second.value_count;
    }
    std::vector<LinePair> unique;
    for (std::size_t i = gap.golden_begin; i < gap.golden_end; ++i) {
        const Places& one = places.find(golden[i].*key)->second;
        if (one.golden_count == 1 && one.value_count == 1 &&
            golden[i].shape == value[one.value].shape)
            unique.push_back({i, one.value});
    }
    // The longest ascending series: piles, each of which remembers the one before.
    std::vector<std::size_t> tops;
    std::vector<std::size_t> before(unique.size());
    for (std::size_t k = 0; k < unique.size(); ++k) {
        const auto pile = std::lower_bound(
            tops.begin(), tops.end(), unique[k].value,
            [&](std::size_t top, std::size_t place) { return unique[top].value < place; });
        before[k] = pile == tops.begin() ? k : *(pile - 1);
        if (pile == tops.end())
            tops.push_back(k);
        else
            *pile = k;
    }
    std::vector<LinePair> series(tops.size());
    for (std::size_t k = tops.empty() ? 0 : tops.back(), n = tops.size(); n > 0; k = before[k])
        series[--n] = unique[k];
    return series;
}

class Aligner {
  public:
    Aligner(Keys golden, Keys value) : golden_(golden), value_(value) {}

    std::vector<LinePair> align() {
        between({0, golden_.size(), 0, value_.size()}, 0);
        return std::move(pairs_);
    }

  private:
    // level: 0: by what lines say; 1: by their shape; 2: the shortest edit.
    void between(Gap gap, int level) {
        std::vector<LinePair> ends;
        take_equal_ends(gap, ends);
        if (!gap.is_empty()) {
            if (level == 2)
                shortest_edit(gap);
            else
                around_anchors(gap, level);
        }
        pairs_.insert(pairs_.end(), ends.rbegin(), ends.rend());
    }

    // Equal lines at either end belong together. ends: those at the end, the last one first.
    void take_equal_ends(Gap& gap, std::vector<LinePair>& ends) {
        while (!gap.is_empty() && golden_[gap.golden_begin].near == value_[gap.value_begin].near &&
               golden_[gap.golden_begin].shape == value_[gap.value_begin].shape)
            pairs_.push_back({gap.golden_begin++, gap.value_begin++});
        while (!gap.is_empty() &&
               golden_[gap.golden_end - 1].near == value_[gap.value_end - 1].near &&
               golden_[gap.golden_end - 1].shape == value_[gap.value_end - 1].shape)
            ends.push_back({--gap.golden_end, --gap.value_end});
    }

    void around_anchors(const Gap& gap, int level) {
        const std::vector<LinePair> found =
            anchors(golden_, value_, gap, level == 0 ? &LineKey::near : &LineKey::shape);
        Gap rest = gap;
        for (const LinePair& anchor : found) {
            // Equal lines next to an anchor were taken with the one before.
            if (anchor.golden < rest.golden_begin || anchor.value < rest.value_begin)
                continue;
            between({rest.golden_begin, anchor.golden, rest.value_begin, anchor.value}, level + 1);
            pairs_.push_back(anchor);
            rest.golden_begin = anchor.golden + 1;
            rest.value_begin = anchor.value + 1;
            while (!rest.is_empty() &&
                   golden_[rest.golden_begin].near == value_[rest.value_begin].near &&
                   golden_[rest.golden_begin].shape == value_[rest.value_begin].shape)
                pairs_.push_back({rest.golden_begin++, rest.value_begin++});
        }
        between(rest, level + 1);
    }

    // Lines of shapes that the other side has, too; the others have no partner in this gap.
    static std::vector<std::size_t> shared_lines(Keys lines, std::size_t begin, std::size_t end,
                                                 const std::unordered_set<std::uint64_t>& shapes) {
        std::vector<std::size_t> kept;
        for (std::size_t i = begin; i < end; ++i)
            if (shapes.contains(lines[i].shape))
                kept.push_back(i);
        return kept;
    }

    static std::unordered_set<std::uint64_t> shapes_of(Keys lines, std::size_t begin,
                                                       std::size_t end) {
        std::unordered_set<std::uint64_t> shapes;
        for (std::size_t i = begin; i < end; ++i)
            shapes.insert(lines[i].shape);
        return shapes;
    }

    void shortest_edit(const Gap& lines) {
        ours_ = shared_lines(golden_, lines.golden_begin, lines.golden_end,
                             shapes_of(value_, lines.value_begin, lines.value_end));
        theirs_ = shared_lines(value_, lines.value_begin, lines.value_end,
                               shapes_of(golden_, lines.golden_begin, lines.golden_end));
        // From here on a gap counts these lines.
        Gap gap{0, ours_.size(), 0, theirs_.size()};
        while (!gap.is_empty()) {
            const std::size_t before = gap.golden_begin + gap.value_begin;
            edit_part(gap);
            if (gap.golden_begin + gap.value_begin == before)
                return;
        }
    }

    struct Run {
        std::ptrdiff_t x, y, length, previous;
    };

    // Pairs lines from the gap's front on, and takes them off it: all, or as far as the search
    // came. The shorter side runs along x.
    void edit_part(Gap& gap) {
        const auto n0 = static_cast<std::ptrdiff_t>(gap.golden_end - gap.golden_begin);
        const auto m0 = static_cast<std::ptrdiff_t>(gap.value_end - gap.value_begin);
        const bool is_swapped = n0 > m0;
        const std::ptrdiff_t n = std::min(n0, m0);
        // A search over one side's far more lines would be all memory.
        const std::ptrdiff_t m = std::min(std::max(n0, m0), n + (std::ptrdiff_t{1} << 17));
        const auto same = [&](std::ptrdiff_t x, std::ptrdiff_t y) {
            const auto i = static_cast<std::size_t>(is_swapped ? y : x) + gap.golden_begin;
            const auto j = static_cast<std::size_t>(is_swapped ? x : y) + gap.value_begin;
            return golden_[ours_[i]].shape == value_[theirs_[j]].shape;
        };
        const std::ptrdiff_t delta = m - n;
        const std::ptrdiff_t offset = most_skipped + 1;
        const auto width = static_cast<std::size_t>(delta + 2 * offset + 1);
        std::vector<std::ptrdiff_t> reach(width, -1);
        std::vector<std::ptrdiff_t> last(width, -1);
        std::vector<Run> runs;
        const auto snake = [&](std::ptrdiff_t k) {
            const auto at = static_cast<std::size_t>(k + offset);
            const std::ptrdiff_t down = reach[at - 1] + 1;
            const std::ptrdiff_t right = reach[at + 1];
            const std::ptrdiff_t previous = down > right ? last[at - 1] : last[at + 1];
            std::ptrdiff_t y = std::max(down, right);
            const std::ptrdiff_t first = y;
            while (y - k < n && y < m && same(y - k, y))
                ++y;
            reach[at] = y;
            last[at] = previous;
            if (y > first) {
                last[at] = static_cast<std::ptrdiff_t>(runs.size());
                runs.push_back({first - k, first, y - first, previous});
            }
        };
        std::ptrdiff_t best = delta;
        std::ptrdiff_t skipped = 0;
        for (;; ++skipped) {
            for (std::ptrdiff_t k = -skipped; k < delta; ++k)
                snake(k);
            for (std::ptrdiff_t k = delta + skipped; k > delta; --k)
                snake(k);
            snake(delta);
            if (reach[static_cast<std::size_t>(delta + offset)] >= m)
                break;
            if (skipped + 1 == most_skipped || runs.size() > (std::size_t{1} << 21)) {
                best = furthest(reach, offset, skipped, delta);
                break;
            }
        }
        const auto at = static_cast<std::size_t>(best + offset);
        const std::ptrdiff_t y_end = std::min(reach[at], m);
        const std::ptrdiff_t x_end = std::clamp<std::ptrdiff_t>(y_end - best, 0, n);
        const std::size_t first = pairs_.size();
        for (std::ptrdiff_t r = last[at]; r >= 0; r = runs[static_cast<std::size_t>(r)].previous) {
            const Run& run = runs[static_cast<std::size_t>(r)];
            for (std::ptrdiff_t i = run.length - 1; i >= 0; --i) {
                const auto x = static_cast<std::size_t>(run.x + i);
                const auto y = static_cast<std::size_t>(run.y + i);
                pairs_.push_back({ours_[(is_swapped ? y : x) + gap.golden_begin],
                                  theirs_[(is_swapped ? x : y) + gap.value_begin]});
            }
        }
        std::reverse(pairs_.begin() + static_cast<std::ptrdiff_t>(first), pairs_.end());
        gap.golden_begin += static_cast<std::size_t>(is_swapped ? y_end : x_end);
        gap.value_begin += static_cast<std::size_t>(is_swapped ? x_end : y_end);
    }

    // The diagonal along which both sides came furthest.
    static std::ptrdiff_t furthest(const std::vector<std::ptrdiff_t>& reach, std::ptrdiff_t offset,
                                   std::ptrdiff_t skipped, std::ptrdiff_t delta) {
        std::ptrdiff_t best = delta;
        std::ptrdiff_t most = -1;
        for (std::ptrdiff_t k = -skipped; k <= delta + skipped; ++k) {
            const std::ptrdiff_t sum = 2 * reach[static_cast<std::size_t>(k + offset)] - k;
            if (sum > most) {
                most = sum;
                best = k;
            }
        }
        return best;
    }

    Keys golden_;
    Keys value_;
    std::vector<LinePair> pairs_;
    // The lines that the search for the shortest edit is about.
    std::vector<std::size_t> ours_;
    std::vector<std::size_t> theirs_;
};

std::vector<LineKey> by_shape_alone(Keys lines) {
    std::vector<LineKey> keys(lines.begin(), lines.end());
    for (LineKey& one : keys)
        one.near = one.shape;
    return keys;
}

}  // namespace

std::vector<LinePair> align_lines(std::span<const LineKey> golden, std::span<const LineKey> value) {
    std::vector<LinePair> pairs = Aligner(golden, value).align();
    const std::size_t most = std::min(golden.size(), value.size());
    if (most_lonely_share * (most - pairs.size()) <= most)
        return pairs;
    const std::vector<LineKey> ours = by_shape_alone(golden);
    const std::vector<LineKey> theirs = by_shape_alone(value);
    std::vector<LinePair> others = Aligner(ours, theirs).align();
    return others.size() > pairs.size() ? others : pairs;
}

}  // namespace ciwrap
