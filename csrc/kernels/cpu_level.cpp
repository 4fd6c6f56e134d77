// Which CPU level's kernels run: the best one the machine has, unless a test asks for another.
#include <atomic>
#include <iterator>
#include <span>

#include "base/error.hpp"
#include "base/xxh3.hpp"
#include "kernels/executor.hpp"

namespace ciwrap {
namespace {

struct Level {
    const LevelKernels* kernels;
    bool (*usable)();
};

#if defined(CIWRAP_HAVE_CPU_LEVEL_v1)
bool has_v1() {
    return true;
}
bool has_v3() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("movbe") &&
           __builtin_cpu_supports("f16c");
}
bool has_v4() {
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
constexpr Level levels[] = {{&kernels_v1, has_v1}, {&kernels_v3, has_v3}, {&kernels_v4, has_v4}};
#else
constexpr Level levels[] = {{&kernels_generic, [] { return true; }}};
#endif

const LevelKernels* best_level() {
    const LevelKernels* best = nullptr;
    for (const Level& level : levels) {
        if (level.usable())
            best = level.kernels;
    }
    return best;
}

std::atomic<const LevelKernels*>& active_level() {
    static std::atomic<const LevelKernels*> active{best_level()};
    return active;
}

}  // namespace

const LevelKernels& level_kernels() {
    return *active_level().load(std::memory_order_relaxed);
}

std::vector<CpuLevelReport> cpu_level_report() {
    std::vector<CpuLevelReport> report;
    for (const Level& level : levels) {
        report.push_back({level.kernels->name, level.usable(), level.kernels == &level_kernels()});
    }
    return report;
}

void set_cpu_level(const std::string& name) {
    if (name == "auto") {
        active_level() = best_level();
        return;
    }
    for (const Level& level : levels) {
        if (name != level.kernels->name)
            continue;
        if (!level.usable()) {
            throw Error(ErrorCode::not_available,
                        "this processor cannot run CPU level '" + name + "'");
        }
        active_level() = level.kernels;
        return;
    }
    throw Error(ErrorCode::invalid_argument, "this build has no CPU level '" + name + "'");
}

Digest xxh3_128(std::span<const std::byte> data) {
    return level_kernels().hash_bytes(reinterpret_cast<const std::uint8_t*>(data.data()),
                                      data.size());
}

}  // namespace ciwrap
