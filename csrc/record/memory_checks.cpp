#include "record/memory_checks.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "record/in_call.hpp"

namespace ciwrap::record {

bool is_mapped(const std::byte* first, std::size_t bytes) {
    static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(first);
    const std::uintptr_t aligned = begin / page * page;
    // MS_ASYNC writes nothing: it only goes through the list of what is mapped.
    return bytes == 0 ||
           msync(reinterpret_cast<void*>(aligned), begin - aligned + bytes, MS_ASYNC) == 0 ||
           errno != ENOMEM;
}

bool is_of_returned_function(const std::byte* first) {
#if defined(__linux__) && !CIWRAP_POSIX_ONLY
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    void* lowest = nullptr;
    std::size_t size = 0;
    (void)pthread_attr_getstack(&attributes, &lowest, &size);
    (void)pthread_attr_destroy(&attributes);
    // It grows downwards.
    return first >= static_cast<std::byte*>(lowest) &&
           first < static_cast<const std::byte*>(call_frame);
#else
    (void)first;
    return false;
#endif
}

}  // namespace ciwrap::record
