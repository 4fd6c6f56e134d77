// Where and how wide host work runs. Kokkos stays behind this header.
//
// Kokkos is initialised on first use, unless the host program has done so already, and finalised at
// exit if it was us. In a build with CUDA that is the first use of a device: host work does without
// Kokkos there, so that it neither needs nor touches a GPU, and nothing is finalised at exit. In a
// child made by fork() the parent's thread pool does not exist: work runs serially there. When
// several threads of the program ask for the OpenMP backend at once, one gets it and the others run
// serially meanwhile, since the pool has one user at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "ciwrap/execution.hpp"
#include "kernels/cpu_level.hpp"

namespace ciwrap {

struct BackendReport {
    std::string name;
    bool usable;
    std::string reason;  // why it is not usable, else empty
    int concurrency;     // threads at most
};

// Every backend this project knows; those not built in say so.
std::vector<BackendReport> backend_report();
std::string kokkos_version();

// Calls work(context, worker) once per worker, worker = 0 .. workers - 1, at the same time where it
// can. `work` must not throw. Safe from several threads and after fork.
void run_workers(const Execution& execution, void (*work)(void* context, int worker),
                 void* context);

// Deals [0, count) out in ranges of `grain`: body(first, last, worker). Which worker gets what is
// left to chance, so results must not depend on it.
template <class Body>
void parallel_ranges(const Execution& execution, std::uint64_t count, std::uint64_t grain,
                     Body&& body) {
    struct Shared {
        std::remove_reference_t<Body>* body;
        std::uint64_t count;
        std::uint64_t grain;
        std::uint64_t next;
    } shared{&body, count, grain, 0};
    const std::uint64_t ranges = count == 0 ? 0 : (count - 1) / grain + 1;
    Execution fitted = execution;
    if (ranges < static_cast<std::uint64_t>(fitted.workers))
        fitted.workers = static_cast<int>(ranges);
    if (fitted.workers <= 1) {
        if (count > 0)
            body(std::uint64_t{0}, count, 0);
        return;
    }
    run_workers(
        fitted,
        [](void* context, int worker) {
            auto& s = *static_cast<Shared*>(context);
            for (;;) {
                const std::uint64_t first = __atomic_fetch_add(&s.next, s.grain, __ATOMIC_RELAXED);
                if (first >= s.count)
                    return;
                const std::uint64_t last = s.count - first < s.grain ? s.count : first + s.grain;
                (*s.body)(first, last, worker);
            }
        },
        &shared);
}

}  // namespace ciwrap
