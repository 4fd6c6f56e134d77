#include <algorithm>

#include "ciwrap/error.hpp"
#include "ciwrap/golden.hpp"
#include "format/block_codec.hpp"
#include "format/golden_directory.hpp"
#include "format/golden_tree.hpp"
#include "format/text_rules.hpp"

namespace ciwrap {
namespace {

using ByteView = std::span<const std::uint8_t>;
using Sections = std::array<ByteView, layout::section_count>;

struct Opened {
    Directory directory;
    ByteView sections;  // all that follows the directory
};

Opened open_file(ByteView file, const std::string& source) {
    const Header header = decode_header(file, source);
    check_length(header, file.size(), source);
    const ByteView behind_header = file.subspan(layout::header_bytes);
    return {decode_directory(header, behind_header.first(header.directory_bytes), source),
            behind_header.subspan(header.directory_bytes)};
}

// Where every section of every variable lies. Together they must fill the rest of the file.
std::vector<Sections> locate_sections(ByteView rest, const Directory& directory,
                                      const std::string& source) {
    std::vector<Sections> located(directory.entries.size());
    for (std::size_t section = 0; section < layout::section_count; ++section) {
        for (std::size_t i = 0; i < located.size(); ++i) {
            const auto& record = directory.entries[i].sections[section];
            if (!record)
                continue;
            if (record->stored_bytes > rest.size()) {
                const DirectoryEntry& entry = directory.entries[i];
                refuse_file(source, "is corrupt: the " +
                                        std::string(layout::section_names[section]) + " of " +
                                        variable_label(entry.name, entry.iteration, entry.rank) +
                                        " would reach beyond its end");
            }
            located[i][section] = rest.first(record->stored_bytes);
            rest = rest.subspan(record->stored_bytes);
        }
    }
    if (!rest.empty()) {
        refuse_file(source, "is corrupt: it has " + std::to_string(rest.size()) +
                                " bytes that belong to no variable");
    }
    return located;
}

void check_limit(const Directory& directory, std::uint64_t max_decoded_bytes,
                 const std::string& source) {
    std::uint64_t total = 0;
    for (const DirectoryEntry& entry : directory.entries) {
        const DecodedSizes sizes = decoded_sizes(entry);
        // Each term is at most 2^62, so the sum cannot wrap before it is beyond the limit.
        std::uint64_t one = sizeof(Digest) + sizes.crown_bytes + sizes.lower_bytes;
        for (const std::uint64_t part :
             {one, sizes.residue_bytes, entry.summaries_digest ? sizes.summary_bytes : 0,
              entry.data_digest ? sizes.data_bytes : 0}) {
            if (__builtin_add_overflow(total, part, &total) || total > max_decoded_bytes) {
                throw Error(
                    ErrorCode::too_large,
                    printable(source + ": would take more than " +
                              std::to_string(max_decoded_bytes) + " bytes decoded, first at " +
                              variable_label(entry.name, entry.iteration, entry.rank) +
                              "; raise the limit if that is right"));
            }
        }
    }
}

// Verifies and decodes the sections of one variable.
class VariableReader {
  public:
    VariableReader(const DirectoryEntry& entry, const Sections& stored, const std::string& source,
                   const Poll& poll)
        : entry_(entry), stored_(stored), source_(source), poll_(poll) {}

    GoldenVariable read() const {
        for (std::size_t section = 0; section < layout::section_count; ++section) {
            if (poll_)
                poll_();
            const auto& record = entry_.sections[section];
            if (record && digest_of(stored_[section]) != record->digest) {
                refuse(section, "are damaged: they do not have the checksum they should have");
            }
        }
        auto tree = std::make_shared<MerkleTree>();
        const DecodedSizes sizes = decoded_sizes(entry_);
        tree->parameters = entry_.parameters;
        tree->scalar_count = sizes.scalar_count;
        read_nodes(*tree);
        if (const auto fault = tree_fault(*tree))
            refuse_variable(*fault);
        if (entry_.residues_digest) {
            tree->residues =
                unpack(layout::residues, sizes.residue_bytes, 1, *entry_.residues_digest);
            if (const auto fault = residue_fault(*tree))
                refuse_variable(*fault);
        }
        GoldenVariable variable;
        variable.name = entry_.name;
        variable.iteration = entry_.iteration;
        variable.rank = entry_.rank;
        variable.shape = entry_.shape;
        variable.tree = std::move(tree);
        if (entry_.summaries_digest) {
            variable.summaries = std::make_shared<const UninitializedBytes>(
                unpack(layout::summaries, sizes.summary_bytes, sizeof(std::int64_t),
                       *entry_.summaries_digest));
        }
        if (entry_.data_digest) {
            variable.data = std::make_shared<const UninitializedBytes>(
                unpack(layout::data, sizes.data_bytes, entry_.parameters.data_type().swap_unit,
                       *entry_.data_digest));
        }
        return variable;
    }

  private:
    // The lengths have been verified against the shape, and lie in the file.
    void read_nodes(MerkleTree& tree) const {
        const ByteView crown = stored_[layout::crown];
        const ByteView lower = stored_[layout::lower];
        tree.digests.resize(1 + (crown.size() + lower.size()) / sizeof(Digest));
        tree.digests.front() = entry_.tree_root;
        std::uint8_t* nodes = tree.digests.data()->bytes.data() + sizeof(Digest);
        std::copy(lower.begin(), lower.end(), std::copy(crown.begin(), crown.end(), nodes));
    }

    UninitializedBytes unpack(layout::Section section, std::uint64_t raw_bytes, std::uint32_t unit,
                              const Digest& digest) const {
        const auto refuse_block = [&](const std::string& what) { refuse(section, what); };
        UninitializedBytes raw =
            unpack_blocks(stored_[section], raw_bytes, unit, refuse_block, poll_);
        if (digest_of(raw) != digest)
            refuse(section, "are not what they were, once decompressed");
        return raw;
    }

    std::string label() const { return variable_label(entry_.name, entry_.iteration, entry_.rank); }
    [[noreturn]] void refuse(std::size_t section, const std::string& what) const {
        refuse_file(source_, std::string("is corrupt: the ") + layout::section_names[section] +
                                 " of " + label() + " " + what);
    }
    [[noreturn]] void refuse_variable(const std::string& what) const {
        refuse_file(source_, "is corrupt: " + label() + " " + what);
    }

    const DirectoryEntry& entry_;
    const Sections& stored_;
    const std::string& source_;
    const Poll& poll_;
};

}  // namespace

std::vector<GoldenVariable> decode_golden(std::span<const std::uint8_t> file,
                                          const std::string& source,
                                          std::uint64_t max_decoded_bytes, const Poll& poll) {
    const auto [directory, sections] = open_file(file, source);
    const std::vector<Sections> located = locate_sections(sections, directory, source);
    check_limit(directory, max_decoded_bytes, source);
    std::vector<GoldenVariable> variables;
    variables.reserve(located.size());
    for (std::size_t i = 0; i < located.size(); ++i) {
        variables.push_back(VariableReader(directory.entries[i], located[i], source, poll).read());
    }
    return variables;
}

Digest golden_root(std::span<const std::uint8_t> file, const std::string& source) {
    return open_file(file, source).directory.root;
}

}  // namespace ciwrap
