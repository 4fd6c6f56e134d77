// Which CPU level's kernels run. No Kokkos, no threads.
#pragma once

#include <string>
#include <vector>

#include "kernels/level_kernels.hpp"

namespace ciwrap {

// The CPU levels this build has, best last, and whether this machine can run them.
struct CpuLevelReport {
    std::string name;
    bool usable;
    std::string reason;  // why it is not
    bool active;
};
std::vector<CpuLevelReport> cpu_level_report();

// "auto" or a level's name; for tests. Throws Error(not_available) or Error(invalid_argument).
void set_cpu_level(const std::string& name);

// The kernels of the active level.
const LevelKernels& level_kernels();
const CompareKernels& compare_kernels();

}  // namespace ciwrap
