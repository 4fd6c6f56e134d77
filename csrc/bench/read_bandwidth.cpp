#include "bench/read_bandwidth.hpp"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ciwrap::bench {

namespace {

// Several independent sums, so that additions never wait for one another and only the loads count.
std::uint64_t sum_portable(const std::uint64_t* words, std::size_t count) {
    std::uint64_t sums[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (std::size_t lane = 0; lane < 8; ++lane) {
            sums[lane] += words[i + lane];
        }
    }
    std::uint64_t total = 0;
    for (const std::uint64_t sum : sums) {
        total += sum;
    }
    for (; i < count; ++i) {
        total += words[i];
    }
    return total;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) std::uint64_t sum_avx2(const std::uint64_t* words,
                                                       std::size_t count) {
    __m256i sums[4] = {};
    std::size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        for (std::size_t lane = 0; lane < 4; ++lane) {
            const auto* address = reinterpret_cast<const __m256i*>(words + i + 4 * lane);
            sums[lane] = _mm256_add_epi64(sums[lane], _mm256_loadu_si256(address));
        }
    }
    const __m256i sum =
        _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
    alignas(32) std::uint64_t parts[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(parts), sum);
    return parts[0] + parts[1] + parts[2] + parts[3] + sum_portable(words + i, count - i);
}
#endif

std::uint64_t sum_part(const std::uint64_t* words, std::size_t count) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        return sum_avx2(words, count);
    }
#endif
    return sum_portable(words, count);
}

}  // namespace

std::uint64_t sum_words(const std::uint64_t* words, std::size_t count, std::size_t threads) {
    threads = std::max<std::size_t>(threads, 1);
    std::vector<std::uint64_t> sums(threads);
    const auto part = [&](std::size_t t) {
        const std::size_t begin = count / threads * t;
        const std::size_t end = t + 1 == threads ? count : count / threads * (t + 1);
        sums[t] = sum_part(words + begin, end - begin);
    };
    std::vector<std::thread> workers;
    workers.reserve(threads);
    for (std::size_t t = 1; t < threads; ++t) {
        try {
            workers.emplace_back(part, t);
        } catch (const std::system_error&) {
            part(t);  // no more threads to be had
        }
    }
    part(0);
    for (std::thread& worker : workers) {
        worker.join();
    }
    std::uint64_t total = 0;
    for (const std::uint64_t sum : sums) {
        total += sum;
    }
    return total;
}

}  // namespace ciwrap::bench
