// Time that only goes on.
#pragma once

#include <chrono>
#include <cstdint>

namespace ciwrap::record {

inline std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace ciwrap::record
