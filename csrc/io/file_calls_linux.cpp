#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>

#include "io/file_calls.hpp"

namespace ciwrap {

int open_flags(ReadMode mode) {
    return mode == ReadMode::direct ? O_DIRECT : 0;
}

// Kernels before 6.1 do not say; they take 4096 wherever O_DIRECT can be opened.
bool start_direct_reads(int descriptor) {
#if defined(STATX_DIOALIGN)
    struct statx status {};
    if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
        (status.stx_mask & STATX_DIOALIGN) != 0) {
        return status.stx_dio_offset_align != 0 &&
               direct_alignment % status.stx_dio_offset_align == 0 &&
               status.stx_dio_mem_align != 0 && direct_alignment % status.stx_dio_mem_align == 0;
    }
#endif
    (void)descriptor;
    return true;
}

bool is_range_cached(int descriptor, std::uint64_t offset, std::uint64_t length) {
    constexpr std::uint64_t samples = 8;
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    // Mapped, but not touched: that would read from the disk, as a read that does not wait does,
    // too.
    const std::uint64_t begin = offset / page * page;
    const auto mapped = static_cast<std::size_t>(offset + length - begin);
    void* const memory =
        ::mmap(nullptr, mapped, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(begin));
    if (memory == MAP_FAILED)
        return true;
    std::uint64_t cached = 0;
    for (std::uint64_t i = 0; i < samples; ++i) {
        const std::uint64_t at = (mapped - 1) / samples * i / page * page;
        unsigned char is_resident = 0;
        if (::mincore(static_cast<std::byte*>(memory) + at, 1, &is_resident) != 0)
            is_resident = 1;
        cached += is_resident & 1;
    }
    ::munmap(memory, mapped);
    return 2 * cached >= samples;
}

void advise_access(int descriptor, Access access, std::uint64_t offset, std::uint64_t length) {
    (void)::posix_fadvise(descriptor, static_cast<off_t>(offset), static_cast<off_t>(length),
                          access == Access::in_order ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_RANDOM);
}

}  // namespace ciwrap
