#include "kernels/executor.hpp"

#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <cstdlib>
#include <mutex>

#include "ciwrap/error.hpp"

namespace ciwrap {
namespace {

pid_t initialised_in = 0;

void finalise_ours() {
    // A forked child inherits this handler but not the threads that finalising would join.
    if (getpid() == initialised_in && Kokkos::is_initialized() && !Kokkos::is_finalized())
        Kokkos::finalize();
}

// Why Kokkos would not start here; empty if it would. One that was built for CUDA starts with a
// device only, and takes its host backends with it.
const std::string& obstacle() {
    static const std::string why = [] {
#if defined(KOKKOS_ENABLE_CUDA)
        int devices = 0;
        const cudaError_t status = cudaGetDeviceCount(&devices);
        if (status != cudaSuccess)
            return std::string("no CUDA device: ") + cudaGetErrorString(status);
        if (devices == 0)
            return std::string("no CUDA device found");
#endif
        return std::string();
    }();
    return why;
}

void ensure_initialised() {
    static std::once_flag once;
    std::call_once(once, [] {
        if (!Kokkos::is_initialized() && !obstacle().empty())
            throw Error(ErrorCode::not_available, obstacle());
        initialised_in = getpid();
        if (Kokkos::is_initialized())
            return;
        if (Kokkos::is_finalized()) {
            throw Error(ErrorCode::not_available,
                        "Kokkos was finalised before ciwrap could use it");
        }
        Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
        std::atexit(finalise_ours);
    });
}

bool forked() {
    return initialised_in != 0 && getpid() != initialised_in;
}

// One label for all host work; profilers show it.
template <class Space>
void launch(const Space& space, int workers, void (*work)(void*, int), void* context) {
    Kokkos::parallel_for("ciwrap::host_workers",
                         Kokkos::RangePolicy<Space>(space, 0, workers).set_chunk_size(1),
                         [work, context](int worker) { work(context, worker); });
    space.fence("ciwrap::host_workers");
}

void run_serially(int workers, void (*work)(void*, int), void* context) {
    for (int worker = 0; worker < workers; ++worker)
        work(context, worker);
}

int openmp_concurrency() {
#if defined(KOKKOS_ENABLE_OPENMP)
    if (!Kokkos::is_initialized() && !obstacle().empty())
        return 0;
    ensure_initialised();
    return Kokkos::OpenMP().concurrency();
#else
    return 0;
#endif
}

}  // namespace

std::string kokkos_version() {
    return std::to_string(KOKKOS_VERSION / 10000) + "." +
           std::to_string(KOKKOS_VERSION / 100 % 100) + "." + std::to_string(KOKKOS_VERSION % 100);
}

std::vector<BackendReport> backend_report() {
    std::vector<BackendReport> report{{"serial", true, "", 1}};
    const std::string reason = forked()                   ? "not usable in a forked process"
                               : Kokkos::is_initialized() ? ""
                                                          : obstacle();
#if defined(KOKKOS_ENABLE_OPENMP)
    report.push_back({"openmp", reason.empty(), reason, openmp_concurrency()});
#else
    report.push_back({"openmp", false, "not compiled in", 0});
#endif
#if defined(KOKKOS_ENABLE_CUDA)
    if (reason.empty())
        ensure_initialised();
    report.push_back(
        {"cuda", reason.empty(), reason, reason.empty() ? Kokkos::Cuda().concurrency() : 0});
#else
    report.push_back({"cuda", false, "not compiled in", 0});
#endif
    return report;
}

namespace {

Execution resolve_device(const std::string& backend) {
    ensure_initialised();
    if (forked()) {
        throw Error(ErrorCode::not_available, "device backends cannot be used in a forked process");
    }
    if (backend == "portable")
        return {Backend::portable, 1};
#if defined(KOKKOS_ENABLE_CUDA)
    return {Backend::cuda, 1};
#else
    throw Error(ErrorCode::not_available,
                "this build has no CUDA backend (build it with the 'cuda' preset)");
#endif
}

}  // namespace

Execution resolve_execution(const std::string& backend, int threads) {
    if (threads < 0)
        throw Error(ErrorCode::invalid_argument, "threads must not be negative");
    if (backend == "serial")
        return {Backend::serial, 1};
    if (backend == "portable" || backend == "cuda")
        return resolve_device(backend);
    if (backend != "auto" && backend != "openmp") {
        throw Error(ErrorCode::invalid_argument,
                    "unknown backend '" + backend + "' (known: auto, serial, openmp, cuda)");
    }
    const int available = openmp_concurrency();
    if (available == 0 && backend == "openmp") {
        throw Error(ErrorCode::not_available,
                    obstacle().empty() ? "this build has no OpenMP backend (use 'serial')"
                                       : obstacle() + " (use 'serial')");
    }
    const int workers = threads == 0 || threads > available ? available : threads;
    return workers <= 1 && backend == "auto"
               ? Execution{Backend::serial, 1}
               : Execution{Backend::openmp, workers < 1 ? 1 : workers};
}

void run_workers(const Execution& execution, void (*work)(void*, int), void* context) {
    // A thread pool that is busy with another thread's work, or that died in a fork, is not waited
    // for.
    if (execution.backend == Backend::openmp && !forked()) {
#if defined(KOKKOS_ENABLE_OPENMP)
        static std::mutex pool;
        const std::unique_lock<std::mutex> held(pool, std::try_to_lock);
        if (held)
            return launch(Kokkos::OpenMP(), execution.workers, work, context);
#endif
    }
    run_serially(execution.workers, work, context);
}

}  // namespace ciwrap
