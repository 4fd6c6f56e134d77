// Which CPU level's kernels run: the best one the machine has, unless a test asks for another.
#include "kernels/cpu_level.hpp"

#include <atomic>
#include <iterator>
#include <span>
#include <vector>

#include "base/xxh3.hpp"
#include "ciwrap/error.hpp"
#include "kernels/prefetch_distance.hpp"

namespace ciwrap {
namespace {

struct Level {
    const LevelKernels* kernels;
    std::string (*missing)();  // what the processor lacks for it; empty: nothing

    bool usable() const { return missing().empty(); }
};

std::string nothing() {
    return {};
}

#if defined(CIWRAP_HAVE_CPU_LEVEL_v1)

// The builtin takes literals alone.
#define CIWRAP_REQUIRE(feature)             \
    if (!__builtin_cpu_supports(feature)) { \
        lacking += " " feature;             \
    }

std::string missing_for_v3() {
    std::string lacking;
    CIWRAP_REQUIRE("avx2")
    CIWRAP_REQUIRE("fma")
    CIWRAP_REQUIRE("bmi")
    CIWRAP_REQUIRE("bmi2")
    CIWRAP_REQUIRE("lzcnt")
    CIWRAP_REQUIRE("movbe")
    CIWRAP_REQUIRE("f16c")
    return lacking;
}

std::string missing_for_v4() {
    std::string lacking = missing_for_v3();
    CIWRAP_REQUIRE("avx512f")
    CIWRAP_REQUIRE("avx512bw")
    CIWRAP_REQUIRE("avx512cd")
    CIWRAP_REQUIRE("avx512dq")
    CIWRAP_REQUIRE("avx512vl")
    return lacking;
}

#undef CIWRAP_REQUIRE

constexpr Level levels[] = {
    {&kernels_v1, nothing}, {&kernels_v3, missing_for_v3}, {&kernels_v4, missing_for_v4}};
constexpr const CompareKernels* comparing[] = {&compare_kernels_v1, &compare_kernels_v3,
                                               &compare_kernels_v4};
#elif defined(CIWRAP_HAVE_CPU_LEVEL_neon)
constexpr Level levels[] = {{&kernels_neon, nothing}};
constexpr const CompareKernels* comparing[] = {&compare_kernels_neon};
#else
constexpr Level levels[] = {{&kernels_generic, nothing}};
constexpr const CompareKernels* comparing[] = {&compare_kernels_generic};
#endif
static_assert(std::size(levels) == std::size(comparing));

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

#if defined(CIWRAP_HAVE_CPU_LEVEL_v1)
std::size_t distance_here() {
    return __builtin_cpu_is("amd") ? 512 : 4096;
}
#else
std::size_t distance_here() {
    return 4096;
}
#endif

}  // namespace

const std::size_t prefetch_distance = distance_here();

const LevelKernels& level_kernels() {
    return *active_level().load(std::memory_order_relaxed);
}

// Not a part of what Level says: the linker leaves out what nobody calls.
const CompareKernels& compare_kernels() {
    std::size_t active = 0;
    while (levels[active].kernels != &level_kernels())
        ++active;
    return *comparing[active];
}

std::vector<CpuLevelReport> cpu_level_report() {
    std::vector<CpuLevelReport> report;
    for (const Level& level : levels) {
        const std::string missing = level.missing();
        report.push_back({level.kernels->name, missing.empty(),
                          missing.empty() ? "" : "this processor lacks" + missing,
                          level.kernels == &level_kernels()});
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
            throw Error(
                ErrorCode::not_available,
                "CPU level '" + name + "' is not usable: this processor lacks" + level.missing());
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

Digest xxh3_128_of_parts(std::span<const std::span<const std::byte>> parts) {
    std::vector<ByteRange> ranges;
    for (const auto& part : parts)
        ranges.push_back({reinterpret_cast<const std::uint8_t*>(part.data()), part.size()});
    return level_kernels().hash_parts(ranges.data(), ranges.size());
}

}  // namespace ciwrap
