// What each operating system does with an open file in a way of its own. One of two sources is
// compiled: file_calls_linux.cpp, or file_calls_posix.cpp for macOS and for builds with
// CIWRAP_POSIX_ONLY.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ciwrap {

// How a file is read: through the system's cache, or past it, when offsets, lengths and addresses
// must be multiples of direct_alignment.
enum class ReadMode { cached, direct };
enum class Access { in_order, scattered };
inline constexpr std::size_t direct_alignment = 4096;

// Flags of open() for this mode, beside others. open() fails with EINVAL where the file system has
// no direct reads.
int open_flags(ReadMode mode);

// Makes reads go past the cache, and says whether they may begin at any multiple of
// direct_alignment. For a file opened with open_flags(ReadMode::direct).
bool start_direct_reads(int descriptor);

// Whether most of a range that is not empty is in the system's cache, as far as a few samples tell;
// reads nothing. True where the system does not say.
bool is_range_cached(int descriptor, std::uint64_t offset, std::uint64_t length);

// Tells the system how the range will be read. Advice only.
void advise_access(int descriptor, Access access, std::uint64_t offset, std::uint64_t length);

}  // namespace ciwrap
