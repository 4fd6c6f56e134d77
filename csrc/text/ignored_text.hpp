// What may be left out of a comparison of texts: named sets of words and numbers.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "text/text_tokens.hpp"

namespace ciwrap {

// Each set has signs that can be nothing else, whatever the line is about. What can be read as a
// number is none of them, whichever words or units stand near it:
// dates: 2026-11-22, 22.11.2026, 22 Nov 2026, Sun Nov 22 10:01:17 2026. times: 12:30:01, beside a
// date also 23: 5:20; at 16h28; a time directly between its name and its unit, Elapsed time: 3.2 s,
// CPU time [s] 3.2, 0.5s CPU. paths: /home/anna, ./b, ../c, ~/d. hosts: 10.0.0.17, and the name
// behind `hostname` or `host:`. pids: whole numbers behind `pid`, `process id`, `job id`. memory: a
// size directly between its name and its unit, RSS 12 MB.
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

// What the sets cover of a line: ascending pieces that do not overlap, in place of what the vector
// holds. A piece is the same whichever other sets are asked for.
void find_ignored(std::string_view line, unsigned sets, std::vector<LinePiece>& pieces);

}  // namespace ciwrap
