// The run that this one is compared with while it runs: the journal of its process of that rank,
// which may still grow.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ciwrap/chunk_summary.hpp"
#include "ciwrap/merkle_tree.hpp"
#include "record/record_scan.hpp"

namespace ciwrap::record {

// A variable of the reference at a checkpoint. identity: what tells a tree with residues from all
// others, residues and all. summaries: where those of its chunks lie, if there are any.
struct ReferenceTree {
    MerkleTree tree;
    std::vector<std::uint64_t> shape;
    Digest identity;
    std::optional<RecordPlace> summaries;
};

std::uint64_t tree_bytes_of(const MerkleTree& tree);
// What tells a tree with residues from all others (docs/reference/recording-format.md).
Digest identity_of(const MerkleTree& fine);

// Throws Error(invalid_argument) if a journal is of another number of processes. One that is not
// there yet says nothing, and what is no journal is refused by who reads it.
void refuse_other_ranks(const std::string& path, std::uint64_t ranks);

// Thread safe.
class Reference {
  public:
    // wait_seconds: for a checkpoint that a reference which still runs has not come to. Throws
    // Error(io, corrupt_file) for a journal that is there and is not that of this rank.
    Reference(const std::string& path, std::uint64_t rank, std::uint64_t ranks,
              double wait_seconds);
    ~Reference();
    Reference(const Reference&) = delete;
    Reference& operator=(const Reference&) = delete;

    // What a variable's trees were made with; nothing if the reference has no such variable.
    std::optional<StatedParameters> parameters_of(const std::string& name);
    // The variable's tree with residues, or the plain one if it was compared exactly. Null, with
    // the reason in `why`, if there is none. Waits for it where it may still come.
    std::shared_ptr<const ReferenceTree> find(std::int64_t iteration, const std::string& point,
                                              const std::string& name, std::string& why);
    // Of all chunks of a tree that was found; none if there are none, or if they are damaged.
    std::vector<ChunkSummary> summaries_of(const ReferenceTree& tree);
    // Reads what `find` will be asked for after this checkpoint at the same point, if it is there
    // already. Returns at once while another thread waits for the reference.
    void fetch_next(std::int64_t iteration, const std::string& point);
    // Of what was read so and not asked for yet. Waits for nobody.
    std::uint64_t fetched_bytes() const { return fetched_bytes_.load(); }

  private:
    using Key = std::tuple<std::int64_t, std::string, std::string>;  // iteration, point, name
    struct Variable {
        std::string name;
        StatedParameters stated;
    };
    // A variable of a checkpoint: of an iteration that was recorded twice, that of the first time.
    struct Place {
        std::shared_ptr<const Variable> variable;
        std::optional<RecordPlace> fine;
        std::optional<RecordPlace> plain;
        std::optional<RecordPlace> summaries;  // of the fine one
    };

    void try_open();
    void refresh();
    bool take(const RecordPlace& place);
    void take_tree(const RecordPlace& place);
    void take_summaries(const RecordPlace& place);
    std::optional<TreeKind> kind_at(const RecordPlace& place) const;
    void complete(const RecordKey& key);
    bool may_still_come(std::int64_t iteration) const;
    bool is_being_written() const;
    template <class Have>
    void wait_until(std::int64_t iteration, Have have);
    std::shared_ptr<const ReferenceTree> load(const Place& place, std::string& why) const;

    std::string path_;
    std::uint64_t rank_;
    std::uint64_t ranks_;
    std::chrono::duration<double> wait_;
    int descriptor_ = -1;
    std::unique_ptr<RecordScan> scan_;
    std::string fault_;  // why nothing more is read of it
    bool is_closed_ = false;
    bool has_given_up_ = false;
    std::int64_t last_iteration_ = -1;  // of those that are complete
    std::mutex mutex_;                  // of all that follows, and of what is before
    std::map<Key, Place> places_;
    std::map<Key, std::shared_ptr<const ReferenceTree>> fetched_;
    std::atomic<std::uint64_t> fetched_bytes_{0};
    std::map<std::string, StatedParameters> parameters_;
    // Of the attempt and of the checkpoint that are being read.
    std::map<std::uint32_t, std::string> points_;
    std::map<std::uint32_t, std::shared_ptr<const Variable>> variables_;
    std::map<std::uint32_t, Place> waiting_;
};

}  // namespace ciwrap::record
