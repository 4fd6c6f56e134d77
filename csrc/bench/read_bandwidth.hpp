// Reading memory as fast as this machine allows, the yardstick of the benchmarks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ciwrap::bench {

// Sum (modulo 2^64) of `count` words, read once by `threads` threads, each a contiguous part. The
// widest vector unit the CPU has is used. Thread-safe; starts and joins its threads in the call.
std::uint64_t sum_words(const std::uint64_t* words, std::size_t count, std::size_t threads);

}  // namespace ciwrap::bench
