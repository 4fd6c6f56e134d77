// Header and directory of a golden file: everything but the sections (tree-format.md sections 2, 3,
// 5). Internal to csrc/format.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ciwrap/golden.hpp"
#include "format/golden_layout.hpp"

namespace ciwrap {

struct SectionRecord {
    std::uint64_t stored_bytes = 0;
    Digest digest;
};

struct DirectoryEntry {
    std::string name;
    std::optional<std::uint64_t> iteration;
    std::optional<std::uint64_t> rank;
    std::vector<std::uint64_t> shape;
    TreeParameters parameters;
    std::uint32_t levels = 1;  // residue levels, effective
    Digest tree_root;
    std::optional<Digest> residues_digest;   // of the packed residues; present iff levels > 1
    std::optional<Digest> summaries_digest;  // present iff they are kept
    std::optional<Digest> data_digest;       // of the data; present iff they are kept
    std::array<std::optional<SectionRecord>, layout::section_count> sections;
};

// What follows from shape and parameters.
struct DecodedSizes {
    std::uint64_t scalar_count = 0;
    std::uint64_t crown_bytes = 0;  // without the root
    std::uint64_t lower_bytes = 0;
    std::uint64_t residue_bytes = 0;
    std::uint64_t summary_bytes = 0;  // whether kept or not
    std::uint64_t data_bytes = 0;     // whether kept or not
};

struct Header {
    std::uint32_t version = layout::first_version;
    std::uint64_t file_bytes = 0;
    std::uint64_t directory_bytes = 0;
    Digest root;
    Digest directory_digest;
};

struct Directory {
    std::vector<DirectoryEntry> entries;
    Digest root;
};

Digest digest_of(std::span<const std::uint8_t> bytes);

// "variable 'x' (iteration 3, rank 0)", for messages.
std::string variable_label(const std::string& name, const std::optional<std::uint64_t>& iteration,
                           const std::optional<std::uint64_t>& rank);

// Elements times scalars per element. Throws Error(invalid_argument) for more than 64 dimensions or
// 2^62 bytes.
std::uint64_t scalars_in(std::span<const std::uint64_t> shape, const DataType& type);

// Throws Error(invalid_argument) for parameters that have no meaning.
DecodedSizes decoded_sizes(const DirectoryEntry& entry);

// Whether chunks of these parameters have summaries.
bool can_have_summaries(const TreeParameters& parameters);

// Whether fill values are in the one form that cell-codes.md section 3 allows.
bool fill_values_are_canonical(const TreeParameters& parameters);

// Strict ascending order of the file.
bool comes_before(const DirectoryEntry& a, const DirectoryEntry& b);

std::vector<std::uint8_t> encode_directory(std::span<const DirectoryEntry> entries, Digest& root);
std::array<std::uint8_t, layout::header_bytes> encode_header(const Header& header);

// `front`: the first bytes of the file, at least the header if the file is that long.
Header decode_header(std::span<const std::uint8_t> front, const std::string& source);
// Throws if the file's length is not what its header says.
void check_length(const Header& header, std::uint64_t file_bytes, const std::string& source);
// `bytes`: exactly the directory. Its digest and the root are verified against the header.
Directory decode_directory(const Header& header, std::span<const std::uint8_t> bytes,
                           const std::string& source);

// Throw Error with "<source>: <what>", made printable.
[[noreturn]] void refuse_file(const std::string& source, const std::string& what);

}  // namespace ciwrap
