// Golden files: what one check compares a new run with, as one file of any number of variables.
// Specification: docs/reference/tree-format.md. All functions are thread-safe and hold no state.
//
// Reading is safe against any input. Errors are ciwrap::Error: `corrupt_file` for bytes that are
// not what they should be, `unsupported` for a newer format or contents beyond the caller's limit.
// The message is one line that begins with `source`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ciwrap/digest.hpp"
#include "ciwrap/merkle_tree.hpp"
#include "ciwrap/uninitialized_bytes.hpp"

namespace ciwrap {

// One variable. Copies share the tree and the data.
struct GoldenVariable {
    std::string name;  // UTF-8, 1 to 4096 bytes, no control characters
    std::optional<std::uint64_t> iteration;
    std::optional<std::uint64_t> rank;
    std::vector<std::uint64_t> shape;
    std::shared_ptr<const MerkleTree> tree;          // never null
    std::shared_ptr<const UninitializedBytes> data;  // the array as in memory; null: not kept
    // A ChunkSummary for each leaf, little-endian; null: not kept.
    std::shared_ptr<const UninitializedBytes> summaries;
};

// Called now and then in long calls; may throw, which ends the call.
using Poll = std::function<void()>;

inline constexpr std::uint64_t default_max_decoded_bytes = std::uint64_t{1} << 34;

// Throws Error(invalid_argument), naming the variable, unless name, shape, tree and data fit
// together.
void check_variable(const GoldenVariable& variable);

// The file, the same bytes for the same variables in any order. Throws Error(invalid_argument) for
// no variables, duplicates, and whatever check_variable refuses.
std::vector<std::uint8_t> encode_golden(std::span<const GoldenVariable> variables,
                                        const Poll& poll = {});

// All variables in canonical order; every byte of the file has been verified.
// max_decoded_bytes bounds digests, residues and data together; it is checked before anything is
// decoded.
std::vector<GoldenVariable> decode_golden(
    std::span<const std::uint8_t> file, const std::string& source,
    std::uint64_t max_decoded_bytes = default_max_decoded_bytes, const Poll& poll = {});

// The root of the file; verifies the header, the length and the directory.
Digest golden_root(std::span<const std::uint8_t> file, const std::string& source);

// The same, reading no more than the header and the directory of the file.
Digest read_golden_header(const std::string& path);

// Version of the zstd that is built in; part of what makes files the same everywhere.
std::string zstd_version();

// Writes the file and flushes it to the disk; not atomic. Throws Error(io) with the system's
// reason.
void write_file(const std::string& path, std::span<const std::uint8_t> bytes);

}  // namespace ciwrap
