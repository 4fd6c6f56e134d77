// Included before everything else in files that nvcc compiles against Kokkos.
//
// CUDA 13 changed the signatures of two runtime functions that Kokkos 4.7 still calls in their
// older form. These overloads take the older form and call the new one; with an older toolkit, or a
// Kokkos that knows CUDA 13, nothing refers to them.
#pragma once

#if defined(__CUDACC__)
#include <cuda_runtime.h>

#if CUDART_VERSION >= 13000

inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, size_t count) {
    return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}

inline cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device,
                                        cudaStream_t stream) {
    cudaMemLocation location{};
    location.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    location.id = device == cudaCpuDeviceId ? 0 : device;
    return cudaMemPrefetchAsync(pointer, bytes, location, 0U, stream);
}

#endif
#endif
