#include "golden_mutations.hpp"

#include <algorithm>
#include <cstring>

#include "base/quantize_plan.hpp"
#include "base/xxh3.hpp"

namespace ciwrap::fuzz {
namespace {

using Offset = std::ptrdiff_t;

std::uint64_t interesting(Random& random, std::uint64_t old) {
    switch (random.below(8)) {
        case 0:
            return random.below(4);
        case 1:
            return old + 1;
        case 2:
            return old - 1;
        case 3:
            return std::uint64_t{1} << random.below(64);
        case 4:
            return (std::uint64_t{1} << random.below(64)) - 1;
        case 5:
            return ~random.below(4);
        case 6:
            return old ^ (std::uint64_t{1} << random.below(64));
        default:
            return random.next();
    }
}

void add_to(Bytes& file, std::size_t offset, std::int64_t change) {
    std::uint64_t value = 0;
    std::memcpy(&value, file.data() + offset, sizeof value);
    value += static_cast<std::uint64_t>(change);
    std::memcpy(file.data() + offset, &value, sizeof value);
}

// Replaces bytes and keeps the lengths true that enclose them: of the file, the directory, the
// section.
void replace(Bytes& file, const Map& map, std::size_t at, std::size_t removed,
             const Bytes& inserted) {
    const auto change =
        static_cast<std::int64_t>(inserted.size()) - static_cast<std::int64_t>(removed);
    for (const Stored& section : map.sections) {
        if (at >= section.begin && at + removed <= section.end) {
            add_to(file, section.record, change);
            break;
        }
    }
    if (at < map.directory_end)
        add_to(file, 24, change);
    add_to(file, 16, change);
    file.erase(file.begin() + static_cast<Offset>(at),
               file.begin() + static_cast<Offset>(at + removed));
    file.insert(file.begin() + static_cast<Offset>(at), inserted.begin(), inserted.end());
}

Bytes piece_of(const Bytes& file, std::size_t begin, std::size_t end) {
    return {file.begin() + static_cast<Offset>(begin), file.begin() + static_cast<Offset>(end)};
}

Bytes random_bytes(Random& random, std::size_t count) {
    Bytes bytes(count);
    for (auto& byte : bytes)
        byte = static_cast<std::uint8_t>(random.next());
    return bytes;
}

void edit_field(Bytes& file, const Map& map, Random& random) {
    const Field field = map.fields[random.below(map.fields.size())];
    if (field.width <= 8) {
        std::uint64_t value = 0;
        std::memcpy(&value, file.data() + field.offset, field.width);
        value = interesting(random, value);
        std::memcpy(file.data() + field.offset, &value, field.width);
    } else {
        file[field.offset + random.below(field.width)] ^=
            static_cast<std::uint8_t>(1 << random.below(8));
    }
}

void edit_section(Bytes& file, const Map& map, Random& random) {
    const Stored section = map.sections[random.below(map.sections.size())];
    const std::size_t size = section.end - section.begin;
    if (size == 0)
        return replace(file, map, section.begin, 0, random_bytes(random, 1 + random.below(8)));
    // Block tables lie at the front of a section.
    const std::size_t near = random.one_in(2) ? std::min<std::size_t>(size, 16) : size;
    const std::size_t at = section.begin + random.below(near);
    const std::size_t some = std::min<std::size_t>(section.end - at, 1 + random.below(20));
    switch (random.below(5)) {
        case 0:
            file[at] ^= static_cast<std::uint8_t>(1 << random.below(8));
            break;
        case 1:
            replace(file, map, at, some, random_bytes(random, some));
            break;
        case 2:
            replace(file, map, at, some, {});
            break;
        case 3:
            replace(file, map, at, 0, random_bytes(random, some));
            break;
        default:
            replace(file, map, at, some, piece_of(file, section.begin, section.begin + some));
            break;
    }
}

void edit_entries(Bytes& file, const Map& map, Random& random) {
    const Entry& entry = map.entries[random.below(map.entries.size())];
    const Bytes copy = piece_of(file, entry.begin, entry.end);
    std::int32_t change = 0;
    if (random.one_in(2)) {
        replace(file, map, entry.begin, entry.end - entry.begin, {});
        change = -1;
    }
    if (change == 0 || random.one_in(2)) {
        const Map now = map_of(file);
        const std::size_t at = now.entries.empty()
                                   ? now.directory_end
                                   : now.entries[random.below(now.entries.size())].begin;
        replace(file, now, at, 0, copy);
        ++change;
    }
    std::uint32_t count = 0;
    std::memcpy(&count, file.data() + 80, sizeof count);
    count += static_cast<std::uint32_t>(change);
    if (!random.one_in(8))
        std::memcpy(file.data() + 80, &count, sizeof count);
}

void edit_description(Bytes& file, const Map& map, Random& random) {
    const Entry& entry = map.entries[random.below(map.entries.size())];
    const std::size_t at = entry.begin + random.below(entry.description_end - entry.begin);
    const std::size_t some = std::min<std::size_t>(entry.description_end - at, 1 + random.below(9));
    if (random.one_in(2))
        return replace(file, map, at, some, {});
    replace(file, map, at, 0, random_bytes(random, some));
}

void rebuild(MerkleTree& tree) {
    const TreeShape shape = tree.shape();
    for (std::size_t level = shape.level_count() - 1; level > 0; --level) {
        for (std::uint64_t i = 0; i < shape.count(level - 1); ++i) {
            const std::uint64_t first = i * shape.arity();
            const auto count = std::min<std::uint64_t>(shape.arity(), shape.count(level) - first);
            const std::span<const Digest> children(&tree.digests[shape.offset(level) + first],
                                                   count);
            const bool never = std::count(children.begin(), children.end(), unmatchable_digest) > 0;
            tree.digests[shape.offset(level - 1) + i] =
                never ? unmatchable_digest : xxh3_128(std::as_bytes(children));
        }
    }
}

}  // namespace

std::uint64_t Random::next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

void mutate_bytes(Bytes& file, const Bytes& other, Random& random) {
    for (std::uint64_t left = 1 + random.below(4); left > 0 && !file.empty(); --left) {
        const std::size_t at = random.below(file.size());
        const std::size_t some = std::min<std::size_t>(file.size() - at, 1 + random.below(40));
        const auto here = file.begin() + static_cast<Offset>(at);
        switch (random.below(7)) {
            case 0:
            case 1:
                *here ^= static_cast<std::uint8_t>(1 << random.below(8));
                break;
            case 2:
                *here = static_cast<std::uint8_t>(random.next());
                break;
            case 3:
                file.resize(at);
                break;
            case 4:
                file.erase(here, here + static_cast<Offset>(some));
                break;
            case 5: {
                const Bytes inserted =
                    random.one_in(2) ? random_bytes(random, some) : piece_of(file, at, at + some);
                file.insert(here, inserted.begin(), inserted.end());
                break;
            }
            default: {
                const std::size_t from = random.below(other.size());
                const std::size_t count = std::min(other.size() - from, file.size() - at);
                std::copy_n(other.begin() + static_cast<Offset>(from), random.below(count + 1),
                            here);
            }
        }
    }
}

void mutate_structure(Bytes& file, Random& random) {
    for (std::uint64_t left = 1 + random.below(3); left > 0; --left) {
        const Map map = map_of(file);
        const std::uint64_t choice = random.below(8);
        if (choice < 3 && !map.fields.empty()) {
            edit_field(file, map, random);
        } else if (choice < 6 && !map.sections.empty()) {
            edit_section(file, map, random);
        } else if (!map.entries.empty()) {
            random.one_in(2) ? edit_entries(file, map, random)
                             : edit_description(file, map, random);
        }
    }
}

std::vector<GoldenVariable> mutate_contents(std::vector<GoldenVariable> variables, Random& random) {
    for (GoldenVariable& variable : variables) {
        if (!random.one_in(3))
            continue;
        auto tree = std::make_shared<MerkleTree>(*variable.tree);
        const std::size_t leaves = tree->leaf_count();
        Digest& leaf = tree->digests[tree->digests.size() - 1 - random.below(leaves)];
        leaf.bytes[random.below(16)] ^= static_cast<std::uint8_t>(1 + random.below(255));
        if (random.one_in(8))
            leaf = unmatchable_digest;
        rebuild(*tree);
        if (!tree->residues.empty()) {
            const auto k = static_cast<std::uint64_t>(make_plan(tree->parameters).levels);
            tree->residues[random.below(tree->residues.size())] =
                static_cast<std::uint8_t>(random.below(k));
        }
        if (variable.data && !variable.data->empty()) {
            auto data = std::make_shared<UninitializedBytes>(*variable.data);
            const std::size_t at = random.below(data->size());
            const std::size_t count =
                random.below(std::min<std::size_t>(data->size() - at, 5000)) + 1;
            const Bytes noise = random_bytes(random, count);
            std::copy(noise.begin(), noise.end(), data->begin() + static_cast<Offset>(at));
            variable.data = data;
        }
        variable.tree = tree;
        // Names stay unique: nothing else in the vectors ends like this.
        if (random.one_in(4))
            variable.name.append("~").append(std::to_string(random.next()));
    }
    std::reverse(variables.begin(),
                 variables.begin() + static_cast<Offset>(random.below(variables.size() + 1)));
    return variables;
}

}  // namespace ciwrap::fuzz
