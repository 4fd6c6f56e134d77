#include "record/reference.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/quantize_plan.hpp"
#include "base/xxh3.hpp"
#include "ciwrap/error.hpp"
#include "record/payload_reader.hpp"

namespace ciwrap::record {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto longest_nap = std::chrono::milliseconds(20);
// A reference whose process has died is known by its lock, which is looked at after this.
constexpr auto patience_with_writer = std::chrono::seconds(1);
constexpr std::uint64_t most_fetched_bytes = std::uint64_t{256} << 20;

}  // namespace

std::uint64_t tree_bytes_of(const MerkleTree& tree) {
    return tree.digests.size() * sizeof(Digest) + tree.residues.size();
}

Digest identity_of(const MerkleTree& fine) {
    static constexpr char what[] = "ciwrap fine tree";
    const Digest residues = xxh3_128(std::as_bytes(std::span(fine.residues)));
    std::vector<std::byte> named(sizeof what - 1 + 2 * sizeof(Digest));
    std::memcpy(named.data(), what, sizeof what - 1);
    std::memcpy(named.data() + sizeof what - 1, fine.root().bytes.data(), sizeof(Digest));
    std::memcpy(named.data() + sizeof what - 1 + sizeof(Digest), residues.bytes.data(),
                sizeof(Digest));
    return xxh3_128(named);
}

void refuse_other_ranks(const std::string& path, std::uint64_t ranks) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    std::optional<JournalHead> head;
    try {
        head = read_head(path, descriptor);
    } catch (const Error&) {  // told by who reads it
        head.reset();
    }
    close(descriptor);
    if (!head || head->ranks == ranks)
        return;
    throw Error(ErrorCode::invalid_argument,
                path + ": the reference was recorded by " + std::to_string(head->ranks) +
                    " processes, and this program has " + std::to_string(ranks) +
                    "; both runs need the same number");
}

Reference::Reference(const std::string& path, std::uint64_t rank, std::uint64_t ranks,
                     double wait_seconds)
    : path_(path), rank_(rank), ranks_(ranks), wait_(wait_seconds) {
    try_open();
}

Reference::~Reference() {
    if (descriptor_ >= 0)
        close(descriptor_);
}

void Reference::try_open() {
    const int descriptor = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        if (errno == ENOENT)
            return;  // its process may not have begun
        const int reason = errno;
        throw Error(ErrorCode::io, path_ + ": cannot be opened: " + std::strerror(reason));
    }
    const off_t size = lseek(descriptor, 0, SEEK_END);
    if (size < static_cast<off_t>(head_bytes)) {
        close(descriptor);
        return;
    }
    const std::optional<JournalHead> head = read_head(path_, descriptor);
    if (!head || head->rank != rank_ || head->ranks != ranks_) {
        close(descriptor);
        refuse_other_ranks(path_, ranks_);
        throw Error(ErrorCode::corrupt_file, path_ + ": is not the journal of this rank");
    }
    descriptor_ = descriptor;
    scan_ = std::make_unique<RecordScan>(path_, descriptor_);
}

// Takes in what has been written since. Of a reference that is damaged, what was read before
// counts.
void Reference::refresh() {
    if (!fault_.empty())
        return;
    try {
        if (!scan_)
            try_open();
        if (!scan_)
            return;
        while (const auto place = scan_->peek()) {
            if (!take(*place))
                return;
            scan_->pass(*place);
        }
    } catch (const Error& error) {
        fault_ = error.what();
    }
}

// False for a record that is not whole yet. Of trees only the head is looked at: they are verified
// when they are loaded, and count once their checkpoint is complete.
bool Reference::take(const RecordPlace& place) {
    const RecordKey& key = place.key;
    if (key.type == RecordType::tree) {
        take_tree(place);
        return true;
    }
    if (key.type == RecordType::summaries) {
        take_summaries(place);
        return true;
    }
    const auto record = scan_->read(place);
    if (!record)
        return false;
    PayloadReader reader(path_, record->payload());
    switch (key.type) {
        case RecordType::attempt:
            points_ = {{0, ""}};
            variables_.clear();
            waiting_.clear();
            is_closed_ = false;
            break;
        case RecordType::point:
            points_[key.point] = reader.text();
            break;
        case RecordType::variable: {
            Variable variable{reader.text(), reader.parameters()};
            parameters_.emplace(variable.name, variable.stated);
            variables_[key.variable] = std::make_shared<const Variable>(std::move(variable));
            break;
        }
        case RecordType::hole:
            waiting_[key.variable];
            break;
        case RecordType::complete:
            complete(key);
            break;
        case RecordType::end:
            is_closed_ = true;
            break;
        default:
            break;
    }
    return true;
}

// What a tree is, or the tree that summaries are of.
std::optional<TreeKind> Reference::kind_at(const RecordPlace& place) const {
    std::byte kind[4] = {};
    if (pread(descriptor_, kind, sizeof kind,
              static_cast<off_t>(place.offset + record_head_bytes)) != sizeof kind)
        return std::nullopt;
    return static_cast<TreeKind>(get_number(kind, sizeof kind));
}

void Reference::take_summaries(const RecordPlace& place) {
    if (kind_at(place) == TreeKind::fine)
        waiting_[place.key.variable].summaries = place;
}

void Reference::take_tree(const RecordPlace& place) {
    const std::optional<TreeKind> kind = kind_at(place);
    if (!kind)
        return;
    Place& known = waiting_[place.key.variable];
    switch (*kind) {
        case TreeKind::fine:
            known.fine = place;
            break;
        case TreeKind::plain:
            known.plain = place;
            break;
        case TreeKind::relative:
            break;  // one of its own residues is needed
    }
}

void Reference::complete(const RecordKey& key) {
    const auto point = points_.find(key.point);
    for (auto& [number, place] : waiting_) {
        const auto variable = variables_.find(number);
        if (point == points_.end() || variable == variables_.end())
            continue;
        place.variable = variable->second;
        places_.emplace(Key{key.iteration, point->second, place.variable->name}, std::move(place));
    }
    waiting_.clear();
    last_iteration_ = std::max(last_iteration_, key.iteration);
}

bool Reference::may_still_come(std::int64_t iteration) const {
    return !is_closed_ && !has_given_up_ && fault_.empty() && last_iteration_ <= iteration;
}

// A program that records holds a lock. Where there are no locks, nobody can tell.
bool Reference::is_being_written() const {
    if (descriptor_ < 0)
        return true;
    if (flock(descriptor_, LOCK_SH | LOCK_NB) != 0)
        return true;
    flock(descriptor_, LOCK_UN);
    return false;
}

template <class Have>
void Reference::wait_until(std::int64_t iteration, Have have) {
    refresh();
    const auto began = Clock::now();
    auto nap = std::chrono::milliseconds(1);
    while (!have() && may_still_come(iteration)) {
        const auto waited = Clock::now() - began;
        if (waited >= wait_ || (waited >= patience_with_writer && !is_being_written())) {
            refresh();
            has_given_up_ = true;  // it is taken as it is from now on
            return;
        }
        std::this_thread::sleep_for(nap);
        nap = std::min<std::chrono::milliseconds>(2 * nap, longest_nap);
        refresh();
    }
}

std::optional<StatedParameters> Reference::parameters_of(const std::string& name) {
    const std::lock_guard lock(mutex_);
    wait_until(-1, [&] { return parameters_.contains(name); });
    const auto found = parameters_.find(name);
    if (found == parameters_.end())
        return std::nullopt;
    return found->second;
}

std::shared_ptr<const ReferenceTree> Reference::find(std::int64_t iteration,
                                                     const std::string& point,
                                                     const std::string& name, std::string& why) {
    const Key key{iteration, point, name};
    const std::lock_guard lock(mutex_);
    if (auto fetched = fetched_.extract(key)) {
        fetched_bytes_ -= tree_bytes_of(fetched.mapped()->tree);
        return std::move(fetched.mapped());
    }
    wait_until(iteration, [&] { return places_.contains(key); });
    const auto found = places_.find(key);
    if (found == places_.end()) {
        why = fault_.empty() ? "the reference does not have it" : fault_;
        return nullptr;
    }
    return load(found->second, why);
}

std::vector<ChunkSummary> Reference::summaries_of(const ReferenceTree& tree) {
    const std::lock_guard lock(mutex_);
    const auto record = tree.summaries ? scan_->read(*tree.summaries) : std::nullopt;
    if (!record)
        return {};
    PayloadReader reader(path_, record->payload());
    (void)reader.u64();  // of which tree
    const auto rows = reader.rest();
    std::vector<ChunkSummary> found(tree.tree.leaf_count());
    if (rows.size() != std::span(found).size_bytes())
        return {};
    std::memcpy(found.data(), rows.data(), rows.size());
    return found;
}

void Reference::fetch_next(std::int64_t iteration, const std::string& point) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock)
        return;
    refresh();
    std::erase_if(fetched_, [&](const auto& one) {
        const auto& [key, tree] = one;
        const bool is_past = std::get<0>(key) <= iteration && std::get<1>(key) == point;
        if (is_past)
            fetched_bytes_ -= tree_bytes_of(tree->tree);
        return is_past;
    });
    std::optional<std::int64_t> next;
    for (auto place = places_.lower_bound({iteration + 1, "", ""});
         place != places_.end() && fetched_bytes_ < most_fetched_bytes; ++place) {
        const Key& key = place->first;
        if (next && std::get<0>(key) != *next)
            return;
        if (std::get<1>(key) != point || fetched_.contains(key))
            continue;
        next = std::get<0>(key);
        std::string why;  // told when it is asked for
        auto tree = load(place->second, why);
        if (!tree)
            continue;
        fetched_bytes_ += tree_bytes_of(tree->tree);
        fetched_.emplace(key, std::move(tree));
    }
}

std::shared_ptr<const ReferenceTree> Reference::load(const Place& place, std::string& why) const {
    const auto& chosen = place.fine ? place.fine : place.plain;
    if (!chosen) {
        why = "the reference has no tree of it";
        return nullptr;
    }
    StatedParameters stated = place.variable->stated;
    if (!place.fine)
        stated.residue_levels = 1;
    auto found = std::make_shared<ReferenceTree>();
    if (place.fine)
        found->summaries = place.summaries;
    found->tree.parameters = TreeParameters(stated);
    const QuantizePlan plan = make_plan(found->tree.parameters);
    if (!place.fine && plan.kind != CodeKind::exact) {
        why = "the reference was recorded without residues";
        return nullptr;
    }
    auto record = scan_->read(*chosen);
    if (!record) {
        why = "the reference is damaged there";
        return nullptr;
    }
    PayloadReader reader(path_, record->payload());
    (void)reader.u32();  // its kind
    found->shape = reader.shape();
    found->tree.scalar_count = found->tree.parameters.data_type().scalars_per_element;
    for (const std::uint64_t extent : found->shape) {
        if (extent != 0 && found->tree.scalar_count > (std::uint64_t{1} << 56) / extent) {
            why = "the reference is damaged there";
            return nullptr;
        }
        found->tree.scalar_count *= extent;
    }
    const std::uint64_t nodes = found->tree.shape().node_count();
    const std::uint64_t residue_bytes = plan.total_residue_bytes(found->tree.scalar_count);
    const auto rest = reader.rest();
    if (rest.size() / sizeof(Digest) < nodes ||
        rest.size() - nodes * sizeof(Digest) != (place.fine ? residue_bytes : 0)) {
        why = "the reference is damaged there";
        return nullptr;
    }
    found->tree.digests.resize(nodes);
    std::memcpy(found->tree.digests.data(), rest.data(), nodes * sizeof(Digest));
    if (place.fine) {
        // They stay in the memory into which they were read.
        UninitializedBytes& bytes = record->bytes;
        const auto end_of_digests = reader.rest().data() + nodes * sizeof(Digest);
        const auto before = end_of_digests - std::as_bytes(std::span(bytes)).data();
        bytes.erase(bytes.begin(), bytes.begin() + before);
        bytes.resize(residue_bytes);
        found->tree.residues = std::move(bytes);
        found->identity = identity_of(found->tree);
    }
    return found;
}

}  // namespace ciwrap::record
