// Where and how wide work runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ciwrap {

// `portable` runs the device source on the host, one thread: a check that needs no device, far too
// slow for use.
enum class Backend : std::uint8_t { serial, openmp, cuda, portable };

constexpr bool is_device(Backend backend) {
    return backend >= Backend::cuda;
}

struct Execution {
    Backend backend = Backend::serial;
    int workers = 1;
};

// backend: "auto" (a host backend), "serial", "openmp", "cuda" or "portable"; threads: 0 for all
// there are. Throws Error: `invalid_argument` for an unknown name or a negative count,
// `not_available` for a backend that this build or machine does not have.
Execution resolve_execution(const std::string& backend, int threads);

// Called now and then during long work, from the calling thread; throws to stop it.
using Interrupt = std::function<void()>;

}  // namespace ciwrap
