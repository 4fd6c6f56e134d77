// Names for code that is compiled more than once: per CPU level on the host (CIWRAP_CPU_LEVEL is
// set by the build: v1, v3, v4, neon, generic), or as part of a Kokkos translation unit (where it
// is not set).
#pragma once

#include "ciwrap/host_device.hpp"

#if defined(CIWRAP_CPU_LEVEL)
#define CIWRAP_JOIN_(a, b) a##b
#define CIWRAP_JOIN(a, b) CIWRAP_JOIN_(a, b)
#define CIWRAP_LEVEL_NAMESPACE CIWRAP_JOIN(level_, CIWRAP_CPU_LEVEL)
#else
#define CIWRAP_LEVEL_NAMESPACE level_kokkos
#endif

#if defined(__CUDACC__) || defined(__HIPCC__)
#define CIWRAP_FUNCTION CIWRAP_HOST_DEVICE inline
#elif defined(CIWRAP_CPU_LEVEL)
#define CIWRAP_FUNCTION static inline  // no definition that a linker could share between levels
#else
#define CIWRAP_FUNCTION inline
#endif
