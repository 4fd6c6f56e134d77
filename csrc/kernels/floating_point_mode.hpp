// The floating-point environment the kernels rely on: round to nearest, subnormals kept. A library
// built with -ffast-math that the host program loads may have switched subnormals off for the whole
// thread.
#pragma once

#include "kernels/level_namespace.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

class FloatingPointMode {
  public:
#if defined(__x86_64__)
    FloatingPointMode() : saved_(_mm_getcsr()) {
        _mm_setcsr(0x1f80);
    }
    ~FloatingPointMode() {
        _mm_setcsr(saved_);
    }

  private:
    unsigned saved_;

  public:
#elif defined(__aarch64__)
    FloatingPointMode() {
        __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
        __asm__ volatile("msr fpcr, %0" : : "r"(0ul));
    }
    ~FloatingPointMode() {
        __asm__ volatile("msr fpcr, %0" : : "r"(saved_));
    }

  private:
    unsigned long saved_;

  public:
#else
    FloatingPointMode() = default;
    ~FloatingPointMode() = default;
#endif
    FloatingPointMode(const FloatingPointMode&) = delete;
    FloatingPointMode& operator=(const FloatingPointMode&) = delete;
};

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
