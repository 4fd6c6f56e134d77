#include "golden_map.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "base/xxh3.hpp"

namespace ciwrap::fuzz {
namespace {

constexpr std::size_t header_bytes = 80;
constexpr std::uint64_t zstd_magic = 0x28;  // its first byte

std::uint64_t number_at(const Bytes& file, std::size_t offset, std::size_t width) {
    std::uint64_t value = 0;
    std::memcpy(&value, file.data() + offset, width);
    return value;
}

void put_digest(Bytes& file, std::size_t offset, std::span<const std::uint8_t> of) {
    const Digest digest = xxh3_128(std::as_bytes(of));
    std::memcpy(file.data() + offset, digest.bytes.data(), sizeof digest);
}

// Steps through a directory, noting fields; `intact` becomes false at the first step beyond its
// end.
class Walker {
  public:
    Walker(const Bytes& file, Map& map) : file_(file), map_(map) {}

    std::uint64_t number(std::size_t width) {
        if (!skip(width))
            return 0;
        return number_at(file_, position - width, width);
    }

    bool skip(std::size_t width) {
        intact = intact && width <= map_.directory_end - position;
        if (intact && width > 0) {
            map_.fields.push_back({position, width});
            position += width;
        }
        return intact;
    }

    void numbers(std::uint64_t count, std::size_t width) {
        for (std::uint64_t i = 0; i < count && intact; ++i)
            skip(width);
    }

    std::size_t position = header_bytes;
    bool intact = true;

  private:
    const Bytes& file_;
    Map& map_;
};

struct Tree {
    bool has_crown = false;
    bool has_lower = false;
};

std::uint64_t product_of_dimensions(const Bytes& file, std::size_t offset, std::uint64_t count) {
    std::uint64_t product = 1;
    for (std::uint64_t i = 0; i < count; ++i)
        product *= number_at(file, offset + 8 * i, 8);
    return product;
}

// Which tree sections there are; nonsense in, something out.
Tree tree_of(std::string_view dtype, std::uint64_t elements, std::uint64_t chunk_bytes) {
    std::uint64_t size = 0;
    for (const char c : dtype)
        size = c >= '0' && c <= '9' ? size * 10 + static_cast<unsigned>(c - '0') : size;
    const bool complex = dtype.size() > 1 && dtype[1] == 'c';
    if (dtype.size() > 1 && dtype[1] == 'U')
        size *= 4;
    const std::uint64_t scalar_bytes = std::max<std::uint64_t>(1, complex ? size / 2 : size);
    std::uint64_t chunk = std::max<std::uint64_t>(1, chunk_bytes / scalar_bytes);
    if (complex && chunk > 1)
        chunk -= chunk % 2;
    const std::uint64_t scalars = complex ? 2 * elements : elements;
    const std::uint64_t leaves = scalars == 0 ? 1 : (scalars - 1) / chunk + 1;
    // Inner levels of more than 256 nodes come with more than 256 leaves, whatever the arity.
    return {leaves > 1, leaves > 256};
}

// Whether atol, rtol or ulps, three numbers at `bound`, say something that the type does not know.
bool states_idle_bound(const Bytes& file, std::string_view dtype, std::size_t bound) {
    const bool is_float =
        dtype.size() > 2 && (dtype[1] == 'f' || dtype[1] == 'c' || dtype.substr(1, 2) == "bf");
    const bool is_integer = dtype.size() > 2 && (dtype[1] == 'i' || dtype[1] == 'u');
    const bool has_atol = number_at(file, bound, 8) != 0;
    const bool has_more = number_at(file, bound + 8, 8) != 0 || number_at(file, bound + 16, 8) != 0;
    return !is_float && (has_more || (has_atol && !is_integer));
}

bool walk_entry(const Bytes& file, Walker& walker, Entry& entry) {
    entry.begin = walker.position;
    walker.skip(walker.number(2));  // name
    walker.numbers(2, 8);           // iteration, rank
    const std::uint64_t dtype_bytes = walker.number(1);
    const std::size_t dtype = walker.position;
    walker.skip(dtype_bytes);
    const std::uint64_t dimensions = walker.number(1);
    const std::size_t shape = walker.position;
    walker.numbers(dimensions + 3, 8);  // shape, atol, rtol, ulps
    const std::uint64_t chunk_bytes = walker.number(4);
    walker.number(2);  // arity
    walker.number(1);  // residue levels, requested
    const std::uint64_t levels = walker.number(1);
    const std::uint64_t flags = walker.number(1);
    walker.numbers(walker.number(1), 8);  // fill values
    const bool has_residues = levels > 1;
    const bool has_data = (flags & 2) != 0;
    walker.numbers(1 + (has_residues ? 1 : 0) + (has_data ? 1 : 0), 16);
    entry.description_end = walker.position;
    if (!walker.intact)
        return false;
    const std::string_view name(reinterpret_cast<const char*>(file.data()) + dtype, dtype_bytes);
    entry.has_idle_bound = states_idle_bound(file, name, shape + 8 * dimensions);
    const Tree tree = tree_of(name, product_of_dimensions(file, shape, dimensions), chunk_bytes);
    const std::array<bool, 4> present{tree.has_crown, tree.has_lower, has_residues, has_data};
    if (has_data)
        entry.contents[3] = entry.description_end - 16;
    if (has_residues)
        entry.contents[2] = entry.description_end - (has_data ? 32 : 16);
    for (std::size_t kind = 0; kind < present.size(); ++kind) {
        if (!present[kind])
            continue;
        entry.records[kind] = walker.position;
        walker.number(8);
        walker.skip(16);
    }
    entry.end = walker.position;
    return walker.intact;
}

}  // namespace

Map map_of(const Bytes& file) {
    Map map;
    if (file.size() < header_bytes)
        return map;
    map.fields = {{0, 8}, {8, 4}, {12, 4}, {16, 8}, {24, 8}, {32, 16}, {48, 16}, {64, 16}};
    const std::uint64_t directory_bytes = number_at(file, 24, 8);
    map.directory_end =
        header_bytes + std::min<std::uint64_t>(directory_bytes, file.size() - header_bytes);
    Walker walker(file, map);
    const std::uint64_t count = walker.number(4);
    for (std::uint64_t i = 0; i < count; ++i) {
        Entry entry;
        if (!walk_entry(file, walker, entry))
            break;
        map.entries.push_back(entry);
    }
    std::size_t at = map.directory_end;
    for (std::size_t kind = 0; kind < 4; ++kind) {
        for (const Entry& entry : map.entries) {
            const std::size_t record = entry.records[kind];
            if (record == 0)
                continue;
            const std::uint64_t bytes = number_at(file, record, 8);
            if (bytes > file.size() - at)
                return map;
            map.sections.push_back({at, at + bytes, record, entry.contents[kind]});
            at += bytes;
        }
    }
    return map;
}

void reseal(Bytes& file) {
    if (file.size() < header_bytes)
        return;
    const Map map = map_of(file);
    const std::span<const std::uint8_t> all = file;
    for (const Stored& section : map.sections) {
        const auto stored = all.subspan(section.begin, section.end - section.begin);
        if (section.content != 0 && stored.size() > 4 &&
            number_at(file, section.begin, 4) == stored.size() - 4 &&
            number_at(file, section.begin + 4, 1) != zstd_magic) {
            put_digest(file, section.content, stored.subspan(4));
        }
        put_digest(file, section.record + 8, stored);
    }
    if (map.directory_end >= header_bytes + 4) {
        Bytes described(file.begin() + header_bytes, file.begin() + header_bytes + 4);
        for (const Entry& entry : map.entries) {
            const auto piece = all.subspan(entry.begin, entry.description_end - entry.begin);
            described.insert(described.end(), piece.begin(), piece.end());
        }
        put_digest(file, 32, described);
    }
    put_digest(file, 48, all.subspan(header_bytes, map.directory_end - header_bytes));
    put_digest(file, 64, all.first(64));
}

}  // namespace ciwrap::fuzz
