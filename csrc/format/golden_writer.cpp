#include <algorithm>
#include <numeric>

#include "base/quantize_plan.hpp"
#include "ciwrap/error.hpp"
#include "ciwrap/golden.hpp"
#include "format/block_codec.hpp"
#include "format/golden_directory.hpp"
#include "format/golden_tree.hpp"
#include "format/text_rules.hpp"

namespace ciwrap {
namespace {

using Bytes = std::vector<std::uint8_t>;

// One variable, ready to be written.
struct Prepared {
    const GoldenVariable* variable = nullptr;
    DirectoryEntry entry;
    DecodedSizes sizes;
    Bytes residues;   // stored form
    Bytes summaries;  // stored form
    Bytes data;       // stored form
};

[[noreturn]] void refuse_variable(const GoldenVariable& variable, const std::string& what) {
    throw Error(ErrorCode::invalid_argument,
                variable_label(variable.name, variable.iteration, variable.rank) + " " + what);
}

// Name, parameters and shape; digests and sections stay empty.
DirectoryEntry bare_entry(const GoldenVariable& variable) {
    DirectoryEntry entry;
    entry.name = variable.name;
    entry.iteration = variable.iteration;
    entry.rank = variable.rank;
    entry.shape = variable.shape;
    entry.parameters = variable.tree->parameters;
    entry.levels = static_cast<std::uint32_t>(make_plan(entry.parameters).levels);
    return entry;
}

std::span<const std::uint8_t> node_bytes(const MerkleTree& tree) {
    return {tree.digests.data()->bytes.data(), tree.digests.size() * sizeof(Digest)};
}

SectionRecord record_of(std::span<const std::uint8_t> stored) {
    return {stored.size(), digest_of(stored)};
}

Prepared prepare(const GoldenVariable& variable, const Poll& poll) {
    check_variable(variable);
    const MerkleTree& tree = *variable.tree;
    if (const auto fault = tree_fault(tree))
        refuse_variable(variable, *fault);
    if (const auto fault = residue_fault(tree))
        refuse_variable(variable, *fault);
    Prepared prepared;
    prepared.variable = &variable;
    DirectoryEntry& entry = prepared.entry = bare_entry(variable);
    prepared.sizes = decoded_sizes(entry);
    entry.tree_root = tree.root();
    const auto below_root = node_bytes(tree).subspan(sizeof(Digest));
    const auto crown = below_root.first(prepared.sizes.crown_bytes);
    const auto lower = below_root.subspan(prepared.sizes.crown_bytes);
    if (!crown.empty())
        entry.sections[layout::crown] = record_of(crown);
    if (!lower.empty())
        entry.sections[layout::lower] = record_of(lower);
    if (entry.levels > 1) {
        entry.residues_digest = digest_of(tree.residues);
        prepared.residues = pack_blocks(tree.residues, 1, poll);
        entry.sections[layout::residues] = record_of(prepared.residues);
    }
    if (variable.summaries) {
        entry.summaries_digest = digest_of(*variable.summaries);
        prepared.summaries = pack_blocks(*variable.summaries, sizeof(std::int64_t), poll);
        entry.sections[layout::summaries] = record_of(prepared.summaries);
    }
    if (variable.data) {
        entry.data_digest = digest_of(*variable.data);
        prepared.data = pack_blocks(*variable.data, entry.parameters.data_type().swap_unit, poll);
        entry.sections[layout::data] = record_of(prepared.data);
    }
    return prepared;
}

void append_bytes(Bytes& file, std::span<const std::uint8_t> bytes) {
    file.insert(file.end(), bytes.begin(), bytes.end());
}

}  // namespace

void check_variable(const GoldenVariable& variable) {
    if (const auto fault = name_fault(variable.name)) {
        throw Error(ErrorCode::invalid_argument,
                    "the variable name '" + printable(variable.name.substr(0, 80)) + "' " + *fault);
    }
    if (!variable.tree)
        refuse_variable(variable, "has no tree");
    if (std::max(variable.iteration.value_or(0), variable.rank.value_or(0)) >
        layout::max_iteration) {
        refuse_variable(variable, "has an iteration or rank beyond 2^63 - 1");
    }
    const MerkleTree& tree = *variable.tree;
    DecodedSizes sizes;
    try {
        sizes = decoded_sizes(bare_entry(variable));
    } catch (const Error& error) {
        refuse_variable(variable, std::string("is invalid: ") + error.what());
    }
    if (!fill_values_are_canonical(tree.parameters)) {
        refuse_variable(variable, "has a fill value that is not in canonical form");
    }
    if (tree.scalar_count != sizes.scalar_count) {
        refuse_variable(variable, "has a shape of " + std::to_string(sizes.scalar_count) +
                                      " scalars, but a tree of " +
                                      std::to_string(tree.scalar_count));
    }
    if (tree.residues.empty() && sizes.residue_bytes > 0) {
        refuse_variable(variable,
                        "has a tree without the residues that its parameters ask for (only a tree "
                        "that was not built against a golden has them)");
    }
    if (tree.digests.size() != tree.shape().node_count() ||
        tree.residues.size() != sizes.residue_bytes) {
        refuse_variable(variable, "has a tree of another size than its parameters give");
    }
    if (variable.summaries && (variable.summaries->size() != sizes.summary_bytes ||
                               !can_have_summaries(tree.parameters))) {
        refuse_variable(variable, "has summaries that are not those of its blocks");
    }
    if (variable.data && variable.data->size() != sizes.data_bytes) {
        refuse_variable(variable, "has " + std::to_string(variable.data->size()) +
                                      " bytes of data, but its shape takes " +
                                      std::to_string(sizes.data_bytes));
    }
}

std::vector<std::uint8_t> encode_golden(std::span<const GoldenVariable> variables,
                                        const Poll& poll) {
    if (variables.empty()) {
        throw Error(ErrorCode::invalid_argument, "a golden file needs at least one variable");
    }
    std::vector<Prepared> prepared;
    prepared.reserve(variables.size());
    for (const GoldenVariable& variable : variables) {
        if (poll)
            poll();
        prepared.push_back(prepare(variable, poll));
    }
    std::sort(prepared.begin(), prepared.end(),
              [](const Prepared& a, const Prepared& b) { return comes_before(a.entry, b.entry); });
    std::vector<DirectoryEntry> entries;
    for (const Prepared& one : prepared) {
        if (!entries.empty() && !comes_before(entries.back(), one.entry)) {
            refuse_variable(*one.variable, "is there twice");
        }
        entries.push_back(one.entry);
    }

    Header header;
    for (const DirectoryEntry& entry : entries) {
        if (entry.summaries_digest)
            header.version = layout::format_version;
    }
    const Bytes directory = encode_directory(entries, header.root);
    if (directory.size() > layout::max_directory_bytes) {
        throw Error(ErrorCode::invalid_argument, "too many variables for one golden file");
    }
    header.directory_bytes = directory.size();
    header.directory_digest = digest_of(directory);
    header.file_bytes = layout::header_bytes + directory.size();
    for (const DirectoryEntry& entry : entries) {
        for (const auto& section : entry.sections) {
            if (section)
                header.file_bytes += section->stored_bytes;
        }
    }

    Bytes file;
    file.reserve(header.file_bytes);
    append_bytes(file, encode_header(header));
    append_bytes(file, directory);
    for (const Prepared& one : prepared) {
        append_bytes(
            file, node_bytes(*one.variable->tree).subspan(sizeof(Digest), one.sizes.crown_bytes));
    }
    for (const Prepared& one : prepared) {
        append_bytes(
            file, node_bytes(*one.variable->tree).subspan(sizeof(Digest) + one.sizes.crown_bytes));
    }
    for (const Prepared& one : prepared)
        append_bytes(file, one.residues);
    for (const Prepared& one : prepared)
        append_bytes(file, one.summaries);
    for (const Prepared& one : prepared)
        append_bytes(file, one.data);
    return file;
}

}  // namespace ciwrap
