// Constants of the golden file. The specification, byte by byte, is docs/reference/tree-format.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ciwrap::layout {

inline constexpr std::array<std::uint8_t, 8> magic{0x89, 'C', 'I', 'W', '\r', '\n', 0x1a, '\n'};
// A file without summaries is of the first version, and of the last one with them.
inline constexpr std::uint32_t first_version = 1;
inline constexpr std::uint32_t format_version = 2;
inline constexpr std::uint32_t hash_xxh3_128 = 1;

inline constexpr std::size_t header_bytes = 80;
inline constexpr std::size_t version_offset = 8;
inline constexpr std::size_t hash_offset = 12;
inline constexpr std::size_t file_bytes_offset = 16;
inline constexpr std::size_t directory_bytes_offset = 24;
inline constexpr std::size_t root_offset = 32;
inline constexpr std::size_t directory_digest_offset = 48;
inline constexpr std::size_t header_digest_offset = 64;

inline constexpr std::uint64_t max_directory_bytes = std::uint64_t{1} << 30;
inline constexpr std::size_t max_name_bytes = 4096;
inline constexpr std::size_t max_dimensions = 64;
inline constexpr std::uint64_t max_array_bytes = std::uint64_t{1} << 62;
inline constexpr std::uint64_t max_iteration = (std::uint64_t{1} << 63) - 1;  // of ranks, too

inline constexpr std::uint8_t flag_equal_nan = 1;
inline constexpr std::uint8_t flag_data = 2;
inline constexpr std::uint8_t flag_summaries = 4;

// Levels of at most so many nodes belong to the crown, the others to the lower section.
inline constexpr std::uint64_t crown_nodes = 256;

inline constexpr std::size_t block_bytes = std::size_t{1} << 20;
inline constexpr std::uint32_t block_shuffled = std::uint32_t{1} << 31;
inline constexpr int zstd_level = 3;

enum Section : std::size_t { crown, lower, residues, summaries, data };
inline constexpr std::size_t section_count = 5;
inline constexpr std::array<const char*, section_count> section_names{
    "upper tree levels", "lower tree levels", "residues", "summaries", "data"};

}  // namespace ciwrap::layout
