#include <fcntl.h>

#include "io/file_calls.hpp"

namespace ciwrap {

int open_flags(ReadMode) {
    return 0;
}

// F_NOCACHE keeps what is read out of the cache of macOS; what lies there already is taken from it.
bool start_direct_reads(int descriptor) {
#if defined(F_NOCACHE)
    return ::fcntl(descriptor, F_NOCACHE, 1) != -1;
#else
    (void)descriptor;
    return false;
#endif
}

// POSIX has no such question, and mincore() of macOS tells of the process, not of the cache: reads
// go through the cache, but for those that ask to go past it.
bool is_range_cached(int, std::uint64_t, std::uint64_t) {
    return true;
}

void advise_access(int descriptor, Access access, std::uint64_t, std::uint64_t) {
#if defined(F_RDAHEAD)
    (void)::fcntl(descriptor, F_RDAHEAD, access == Access::in_order ? 1 : 0);
#else
    (void)descriptor;
    (void)access;
#endif
}

}  // namespace ciwrap
