// Marks what device code calls too; nothing where only a host compiles.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define CIWRAP_HOST_DEVICE __host__ __device__
#else
#define CIWRAP_HOST_DEVICE
#endif
