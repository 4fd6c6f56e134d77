// What may be left out of a comparison of texts: named sets of words and numbers.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "text/text_tokens.hpp"

namespace ciwrap {

// dates: 2026-11-22, 22.11.2026, Nov 22 2026. times: 12:30:01; a number with a unit of time, or in
// a line that speaks of CPU, wall or elapsed time. paths: words that begin with / ./ ../ or ~/.
// hosts: IPv4 addresses, names with two points or more, the word after `host` or `hostname`.
// pids: whole numbers after `pid`, `process id`, `job id`. memory: a number with a unit of bytes,
// or in a line that speaks of memory.
enum IgnoredSets : unsigned {
    ignore_dates = 1,
    ignore_times = 2,
    ignore_paths = 4,
    ignore_hosts = 8,
    ignore_pids = 16,
    ignore_memory = 32,
    ignore_all = 63,
};

struct NamedIgnoredSet {
    std::string_view name;
    IgnoredSets set;
};

inline constexpr std::array<NamedIgnoredSet, 6> named_ignored_sets{{{"dates", ignore_dates},
                                                                    {"times", ignore_times},
                                                                    {"paths", ignore_paths},
                                                                    {"hosts", ignore_hosts},
                                                                    {"pids", ignore_pids},
                                                                    {"memory", ignore_memory}}};

// Throws Error(invalid_argument) for a name that no set has.
IgnoredSets ignored_set(std::string_view name);

// What the sets cover of a line: ascending pieces that do not overlap. Takes the vector's place.
void find_ignored(std::string_view line, unsigned sets, std::vector<LinePiece>& pieces);

}  // namespace ciwrap
