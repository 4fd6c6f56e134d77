// Where things are in the bytes of a golden file, found without the reader that is being tested,
// and the re-sealing of digests after a change, so that changes reach the code behind the
// checksums.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ciwrap::fuzz {

using Bytes = std::vector<std::uint8_t>;

struct Field {
    std::size_t offset = 0;
    std::size_t width = 0;  // 1, 2, 4 or 8: a number; else text or a digest
};

struct Stored {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t record = 0;   // offset of its u64 length, which its digest follows
    std::size_t content = 0;  // offset of the digest of what it decodes to; 0: it has none
};

struct Entry {
    std::size_t begin = 0;            // of the description
    std::size_t description_end = 0;  // where its section records begin
    std::size_t end = 0;
    std::array<std::size_t, 4> records{};   // offsets, 0 if there is none
    std::array<std::size_t, 4> contents{};  // likewise
    bool has_idle_bound = false;  // states part of a bound that means nothing for the dtype
};

struct Map {
    std::size_t directory_end = 80;
    std::vector<Field> fields;  // of header and directory
    std::vector<Entry> entries;
    std::vector<Stored> sections;  // in the order of the file, as far as they lie in it
};

// Follows the directory as far as it makes sense.
Map map_of(const Bytes& file);

// Makes every digest right that the map reaches: contents (of sections that are one stored block),
// sections, root, directory, header.
void reseal(Bytes& file);

}  // namespace ciwrap::fuzz
