#include "kernels/executor.hpp"

#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <cstdlib>
#include <mutex>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "ciwrap/error.hpp"

namespace ciwrap {
namespace {

pid_t initialised_in = 0;  // which process started Kokkos
pid_t pool_in = 0;         // and which has the threads of the host

#if defined(KOKKOS_ENABLE_CUDA)
// Ten times the least compute capability that the device code runs on; 0 if it is not known here.
constexpr int compiled_capability =
#if defined(KOKKOS_ARCH_BLACKWELL120)
    120;
#elif defined(KOKKOS_ARCH_BLACKWELL100)
    100;
#elif defined(KOKKOS_ARCH_HOPPER90)
    90;
#elif defined(KOKKOS_ARCH_ADA89)
    89;
#elif defined(KOKKOS_ARCH_AMPERE86)
    86;
#elif defined(KOKKOS_ARCH_AMPERE80)
    80;
#elif defined(KOKKOS_ARCH_TURING75)
    75;
#elif defined(KOKKOS_ARCH_VOLTA72)
    72;
#elif defined(KOKKOS_ARCH_VOLTA70)
    70;
#else
    0;
#endif

std::string as_version(int capability) {
    return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

struct Devices {
    std::string obstacle;  // why Kokkos would not start with them; empty if it would
    int concurrency = 0;   // threads of the first one
};

// Asks the driver and makes no context. Kokkos ends the process where its code cannot run on the
// device that it takes, so none may be older than the code.
Devices ask_devices() {
    Devices found;
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0) {
        found.obstacle = status == cudaSuccess
                             ? "no CUDA device found"
                             : std::string("no CUDA device: ") + cudaGetErrorString(status);
        return found;
    }
    for (int device = 0; device < count; ++device) {
        cudaDeviceProp properties{};
        if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
            found.obstacle = "CUDA device " + std::to_string(device) + " does not answer";
            return found;
        }
        const int capability = 10 * properties.major + properties.minor;
        if (capability < compiled_capability) {
            found.obstacle = "CUDA device " + std::to_string(device) + " has compute capability " +
                             as_version(capability) + ", and this build needs " +
                             as_version(compiled_capability) +
                             " (build it for that device, or hide it by CUDA_VISIBLE_DEVICES)";
            return found;
        }
        if (device == 0)
            found.concurrency =
                properties.multiProcessorCount * properties.maxThreadsPerMultiProcessor;
    }
    return found;
}

const Devices& devices() {
    static const Devices found = ask_devices();
    return found;
}
#endif

void finalise_ours() {
#if !defined(KOKKOS_ENABLE_CUDA)  // at exit the driver may be gone already, and takes all with it
    // A forked child inherits this handler but not the threads that finalising would join.
    if (getpid() == initialised_in && Kokkos::is_initialized() && !Kokkos::is_finalized())
        Kokkos::finalize();
#endif
}

// Starts all that Kokkos was built for: with CUDA that makes a context on a device.
void ensure_initialised() {
    static std::once_flag once;
    std::call_once(once, [] {
#if defined(KOKKOS_ENABLE_CUDA)
        if (!Kokkos::is_initialized() && !devices().obstacle.empty())
            throw Error(ErrorCode::not_available, devices().obstacle);
#endif
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

bool is_of_parent(pid_t process) {
    return process != 0 && getpid() != process;
}

#if defined(KOKKOS_ENABLE_OPENMP)
void launch(int workers, void (*work)(void*, int), void* context) {
#if defined(KOKKOS_ENABLE_CUDA)
    // Kokkos would start with a device, which host work shall leave alone.
#pragma omp parallel for num_threads(workers) schedule(static, 1)
    for (int worker = 0; worker < workers; ++worker)
        work(context, worker);
#else
    // One label for all host work; profilers show it.
    const Kokkos::OpenMP space;
    Kokkos::parallel_for("ciwrap::host_workers",
                         Kokkos::RangePolicy<Kokkos::OpenMP>(space, 0, workers).set_chunk_size(1),
                         [work, context](int worker) { work(context, worker); });
    space.fence("ciwrap::host_workers");
#endif
}
#endif

void run_serially(int workers, void (*work)(void*, int), void* context) {
    for (int worker = 0; worker < workers; ++worker)
        work(context, worker);
}

int openmp_concurrency() {
#if defined(KOKKOS_ENABLE_OPENMP)
    static std::once_flag once;
#if defined(KOKKOS_ENABLE_CUDA)
    std::call_once(once, [] { pool_in = getpid(); });
    return omp_get_max_threads();
#else
    ensure_initialised();
    std::call_once(once, [] { pool_in = initialised_in; });
    return Kokkos::OpenMP().concurrency();
#endif
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
    const std::string forked = "not usable in a forked process";
#if defined(KOKKOS_ENABLE_OPENMP)
    const int threads = openmp_concurrency();
    const bool has_pool = !is_of_parent(pool_in);
    report.push_back({"openmp", has_pool, has_pool ? "" : forked, threads});
#else
    report.push_back({"openmp", false, "not compiled in", 0});
#endif
#if defined(KOKKOS_ENABLE_CUDA)
    const std::string reason = is_of_parent(initialised_in) ? forked : devices().obstacle;
    report.push_back({"cuda", reason.empty(), reason, reason.empty() ? devices().concurrency : 0});
#else
    report.push_back({"cuda", false, "not compiled in", 0});
#endif
    return report;
}

namespace {

Execution resolve_device(const std::string& backend) {
    ensure_initialised();
    if (is_of_parent(initialised_in)) {
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
        throw Error(ErrorCode::not_available, "this build has no OpenMP backend (use 'serial')");
    }
    const int workers = threads == 0 || threads > available ? available : threads;
    return workers <= 1 && backend == "auto"
               ? Execution{Backend::serial, 1}
               : Execution{Backend::openmp, workers < 1 ? 1 : workers};
}

void run_workers(const Execution& execution, void (*work)(void*, int), void* context) {
    // A thread pool that is busy with another thread's work, or that died in a fork, is not waited
    // for.
    if (execution.backend == Backend::openmp && !is_of_parent(pool_in)) {
#if defined(KOKKOS_ENABLE_OPENMP)
        static std::mutex pool;
        const std::unique_lock<std::mutex> held(pool, std::try_to_lock);
        if (held)
            return launch(execution.workers, work, context);
#endif
    }
    run_serially(execution.workers, work, context);
}

}  // namespace ciwrap
