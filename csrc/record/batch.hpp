// One checkpoint of a process while it is hashed, by any number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "record/array_view.hpp"
#include "record/last_error.hpp"
#include "record/reference.hpp"
#include "tree/tree_parts.hpp"

namespace ciwrap::record {

// Why something is not there that was hashed twice, not to the same.
inline constexpr const char* changed_meanwhile =
    "changed while it was recorded: another thread, or a message, writes it";

// How a variable was compared with the reference. max_share: how much of its bound the values
// moved, over chunks that match; negative where nobody can tell. proven_count: how many suspects
// surely hold a value beyond its bound; least_share: the share of it that one of these moved by, at
// least; negative where no distance is sure.
struct Compared {
    std::uint64_t leaf_count = 0;
    std::vector<std::uint64_t> suspects;
    double max_share = -1;
    std::uint64_t proven_count = 0;
    double least_share = -1;
};

// The elements of a chunk, in index order.
struct Sample {
    std::uint64_t leaf;
    std::vector<std::byte> elements;
};

// Trees of a checkpoint that is written, for their memory: fresh memory costs the program more than
// hashing into it does. What these were compared with is not kept with them.
struct SpareTrees {
    MerkleTree plain;
    MerkleTree fine;
    MerkleTree own;

    std::uint64_t bytes() const {
        return tree_bytes_of(plain) + tree_bytes_of(fine) + tree_bytes_of(own);
    }
};

// A variable at a checkpoint: its plain tree, and one with residues if it has residue levels, which
// is made relative to the reference's if there is one; then, if asked for, also one of its own.
struct Recorded {
    // reference: what it is compared with, or null. spare: trees whose memory is used again.
    // keeps_residues: whether there are to be residues of its own beside those that are relative.
    // Throws Error(invalid_argument) if the reference is of other parameters or another shape.
    Recorded(std::uint32_t id, const std::string& name, const ArrayView& array,
             const TreeParameters& parameters,
             std::shared_ptr<const ReferenceTree> reference = nullptr, SpareTrees spare = {},
             bool keeps_residues = false);

    // Once it was compared: whether that counts.
    bool does_not_match() const { return !compared.suspects.empty() && !is_ignored; }
    bool surely_differs() const { return compared.proven_count > 0 && !is_ignored; }
    bool is_relative() const { return fine && fine->drift.has_value(); }
    std::vector<TreeParts*> trees();
    // Once it has been hashed, if it has a reference.
    void compare();
    // Once it was compared: what the summaries of the reference's chunks prove of suspects.
    void prove(std::span<const ChunkSummary> theirs);
    // Hashes all of it once more: whether that comes to the same.
    bool is_stable() const;
    // Keeps elements of suspect chunks, up to so many bytes, as far as a device gives them.
    void keep_samples(std::uint64_t most_bytes);
    // Nothing but the destructor is called after it.
    SpareTrees give_trees();

    std::uint32_t variable;
    std::string name;
    ArrayView view;
    std::shared_ptr<const ReferenceTree> reference;
    TreeParts plain;
    std::unique_ptr<TreeParts> fine;
    std::unique_ptr<TreeParts> own;
    Compared compared;
    std::vector<Sample> samples;
    bool is_ignored = false;             // what does not match of it is of no account
    bool is_looked_at = false;           // it was compared, and elements of it were kept
    std::string not_compared;            // why, if there is a reference run and it was not
    std::string fault;                   // why it could not be hashed; empty: it was
    std::atomic<bool> has_memory{true};  // false: it could not be hashed for lack of it
};

struct Batch {
    std::int64_t iteration = 0;
    std::uint32_t point = 0;
    std::string point_name;
    std::vector<std::unique_ptr<Recorded>> variables;
    // What is not there: which variable, and why.
    std::vector<std::pair<std::uint32_t, std::string>> holes;
    std::set<std::string> exposed;  // names of those that are not there any more

    // Cuts all variables into pieces of 256 KiB and more.
    void cut();
    // Hashes pieces until none is left. From any number of threads.
    void work() noexcept;
    // Hashes a variable that came after `cut`.
    void hash_now(Recorded& one) noexcept;
    // Makes holes of what could not be hashed. Returns what to say of each: name, and why.
    std::vector<std::pair<std::string, std::string>> drop_faulty();
    std::uint64_t tree_bytes() const;
    std::uint64_t reference_bytes() const;
    std::uint64_t data_bytes() const;

  private:
    struct Piece {
        Recorded* variable;
        std::uint64_t first_leaf;
        std::uint64_t leaf_count;
    };
    static void hash_piece(const Piece& piece, std::vector<std::byte>& buffer) noexcept;

    std::vector<Piece> pieces_;
    std::atomic<std::size_t> next_{0};
};

}  // namespace ciwrap::record
