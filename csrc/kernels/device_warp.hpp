// Thirty-two threads in step, as a device's warp has them. Where the device is the host, one thread
// takes the turns of all, so that the same source can be tested there.
//
// Values that a thread keeps are a PerThread, whose index is the thread's number and counts on the
// host alone. On a device this is called by all threads of a warp, in teams with a vector length of
// 32.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>

namespace ciwrap::device_warp {

inline constexpr int width = 32;

template <class T>
struct PerThread {
#if defined(__CUDA_ARCH__)
    T own;
    KOKKOS_FUNCTION T& operator[](int) {
        return own;
    }
#else
    T all[width];
    KOKKOS_FUNCTION T& operator[](int thread) {
        return all[thread];
    }
#endif
};

// Calls body(thread) in each thread.
template <class Body>
KOKKOS_FUNCTION inline void each(Body&& body) {
#if defined(__CUDA_ARCH__)
    body(static_cast<int>(threadIdx.x));
#else
    for (int thread = 0; thread < width; ++thread)
        body(thread);
#endif
}

// Every thread adds the value of thread ^ mask to its own.
template <class T>
KOKKOS_FUNCTION inline void add_partner(PerThread<T>& values, int mask) {
#if defined(__CUDA_ARCH__)
    values.own += __shfl_xor_sync(0xffffffffu, values.own, mask);
#else
    const PerThread<T> before = values;
    for (int thread = 0; thread < width; ++thread)
        values.all[thread] += before.all[thread ^ mask];
#endif
}

KOKKOS_FUNCTION inline bool any(PerThread<bool>& values) {
#if defined(__CUDA_ARCH__)
    return __any_sync(0xffffffffu, values.own) != 0;
#else
    bool found = false;
    for (const bool value : values.all)
        found = found || value;
    return found;
#endif
}

}  // namespace ciwrap::device_warp
