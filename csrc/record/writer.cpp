#include "record/writer.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <new>

#if defined(__APPLE__)
#include <pthread/qos.h>
#elif !CIWRAP_POSIX_ONLY
#include <sys/resource.h>
#include <sys/syscall.h>
#endif

#include "ciwrap/error.hpp"
#include "record/now.hpp"

namespace ciwrap::record {
namespace {

constexpr std::size_t most_waiting = 8;
constexpr std::uint64_t most_waiting_bytes = std::uint64_t{256} << 20;
constexpr std::int64_t seconds_between_syncs = 30;

// With all signals blocked: they are the program's.
std::thread start_quietly(std::function<void()> body) {
    struct Blocked {
        sigset_t before;
        Blocked() {
            sigset_t all;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &before);
        }
        ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    };
    const Blocked blocked;
    return std::thread(std::move(body));
}

// The program goes first. POSIX knows the priority of processes alone, not that of this thread.
void yield_to_others() {
#if defined(__APPLE__)
    (void)pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0);
#elif !CIWRAP_POSIX_ONLY
    (void)setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);
#endif
}

void hash_upper_levels(TreeParts& parts) {
    for (std::size_t level = parts.shape.level_count() - 1; level-- > 0;)
        hash_level(parts.shape, level, parts.tree.digests, 0, parts.shape.count(level));
}

TreeKind kind_of(const Recorded& one, const TreeParts& parts) {
    if (&parts == &one.plain)
        return TreeKind::plain;
    if (&parts == one.own.get())
        return TreeKind::fine;
    return one.is_relative() ? TreeKind::relative : TreeKind::fine;
}

// What is before the digests.
Payload tree_head(const Recorded& one, const TreeParts& parts) {
    const TreeKind kind = kind_of(one, parts);
    Payload payload;
    payload.u32(static_cast<std::uint32_t>(kind));
    payload.u32(static_cast<std::uint32_t>(one.view.shape().size()));
    for (const std::uint64_t extent : one.view.shape())
        payload.u64(extent);
    if (kind == TreeKind::relative) {
        payload.bytes(std::as_bytes(std::span(one.reference->identity.bytes)));
        payload.f64(one.compared.max_share);
    }
    return payload;
}

Payload compared_payload(const Recorded& one) {
    Payload payload;
    payload.text(one.not_compared).u64(one.compared.leaf_count);
    payload.u64(one.compared.suspects.size()).f64(one.compared.max_share);
    payload.u64(one.compared.proven_count).f64(one.compared.least_share);
    return payload;
}

// How many records a checkpoint has: what it says of itself, so that none is missed.
class CheckpointRecords {
  public:
    CheckpointRecords(Journal& journal, const Batch& batch) : journal_(journal), batch_(batch) {}

    void add(RecordType type, std::uint32_t variable, const Payload& payload) {
        journal_.add({type, batch_.iteration, batch_.point, variable}, payload.span());
        ++count_;
    }
    // A tree with residues of its own has them; one made against a reference has none.
    void add_tree(const Recorded& one, const TreeParts& parts) {
        journal_.add({RecordType::tree, batch_.iteration, batch_.point, one.variable},
                     tree_head(one, parts).span(),
                     {std::as_bytes(std::span(parts.tree.digests)),
                      std::as_bytes(std::span(parts.tree.residues))});
        ++count_;
        if (parts.summaries.empty())
            return;
        Payload kind;
        kind.u32(static_cast<std::uint32_t>(kind_of(one, parts))).u32(0);
        journal_.add({RecordType::summaries, batch_.iteration, batch_.point, one.variable},
                     kind.span(), {std::as_bytes(std::span(parts.summaries))});
        ++count_;
    }
    void complete() {
        journal_.add({RecordType::complete, batch_.iteration, batch_.point},
                     Payload().u32(count_).span());
    }

  private:
    Journal& journal_;
    const Batch& batch_;
    std::uint32_t count_ = 0;
};

}  // namespace

Writer::Writer(std::unique_ptr<Journal> journal, std::function<void(const char*)> failed,
               std::function<void(const Batch&)> written)
    : journal_(std::move(journal)),
      failed_(std::move(failed)),
      written_(std::move(written)),
      synced_at_s_(now_ns() / 1'000'000'000),
      thread_(start_quietly([this] { run(); })) {}

Writer::~Writer() {
    write_at_once();
}

void Writer::write_at_once() {
    if (!thread_.joinable())
        return;
    {
        const std::lock_guard lock(mutex_);
        is_ending_ = true;
    }
    has_job_.notify_all();
    thread_.join();
}

void Writer::put(const RecordKey& key, Payload payload) {
    push({nullptr, key, std::move(payload), 0});
}

void Writer::put(std::unique_ptr<Batch> batch) {
    push({std::move(batch), {}, {}, 0});
}

void Writer::finish(Payload statistics) {
    push({nullptr, {RecordType::end}, std::move(statistics), 0});
}

void Writer::push(Job job) {
    if (!thread_.joinable()) {
        write(job);
        return done_with(job);
    }
    job.bytes = job.batch ? job.batch->tree_bytes() : 0;
    const std::uint64_t bytes = job.bytes;
    std::unique_lock lock(mutex_);
    const auto has_room = [&] {
        return jobs_.empty() ||
               (jobs_.size() < most_waiting && waiting_bytes_ + bytes <= most_waiting_bytes);
    };
    if (!has_room()) {
        const std::int64_t started = now_ns();
        has_room_.wait(lock, has_room);
        waited_ns_ += static_cast<std::uint64_t>(now_ns() - started);
    }
    jobs_.push_back(std::move(job));
    waiting_bytes_ += bytes;
    has_job_.notify_one();
}

void Writer::run() noexcept {
    yield_to_others();
    std::unique_lock lock(mutex_);
    for (;;) {
        has_job_.wait(lock, [&] { return is_ending_ || !jobs_.empty(); });
        if (jobs_.empty())
            return;
        Job job = std::move(jobs_.front());
        lock.unlock();
        write(job);
        lock.lock();
        // Only now: what is being written counts as waiting.
        jobs_.pop_front();
        waiting_bytes_ -= job.bytes;
        journal_bytes_ = journal_->memory_bytes();
        has_room_.notify_all();
        lock.unlock();
        done_with(job);
        lock.lock();
    }
}

// What only saves time later is left where there is no memory for it.
void Writer::done_with(Job& job) noexcept {
    if (!job.batch)
        return;
    try {
        {
            const std::lock_guard lock(mutex_);
            keep_spares(*job.batch);
        }
        job.batch->variables.clear();  // and what they were compared with, before more is read
        written_(*job.batch);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
    job = {};
}

// With the lock.
void Writer::keep_spares(Batch& batch) {
    for (const auto& one : batch.variables)
        spares_.insert_or_assign(one->name, one->give_trees());
}

SpareTrees Writer::spare(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = spares_.extract(name);
    return found ? std::move(found.mapped()) : SpareTrees{};
}

std::uint64_t Writer::held_bytes() {
    const std::lock_guard lock(mutex_);
    std::uint64_t sum = waiting_bytes_ + journal_bytes_;
    for (const auto& [name, trees] : spares_)
        sum += trees.bytes();
    return sum;
}

void Writer::give_up(const char* why) noexcept {
    has_given_up_ = true;
    failed_(why);
}

void Writer::write(Job& job) noexcept {
    if (has_given_up_)
        return;
    try {
        for (const auto& [key, payload] : lost_)
            journal_->add(key, payload.span());
        if (job.batch)
            write_batch(*job.batch);
        else
            journal_->add(job.key, job.payload.span());
        journal_->commit();
        lost_.clear();
        if (job.key.type == RecordType::end)
            journal_->sync();
        else
            sync_now_and_then();
    } catch (const std::exception& error) {
        journal_->discard();
        failed_(words_of(error));
        try {
            lose(job, words_of(error));
        } catch (const std::bad_alloc&) {
            give_up("memory ran out, so nothing more is recorded");
        }
    }
}

// What is named in records to come is written as soon as there is room again; of a checkpoint, that
// it is not there.
void Writer::lose(Job& job, const std::string& why) {
    if (!job.batch) {
        lost_.emplace_back(job.key, std::move(job.payload));
        return;
    }
    const Batch& batch = *job.batch;
    lost_.emplace_back(RecordKey{RecordType::error}, Payload().text(why));
    for (const auto& one : batch.variables)
        lost_.emplace_back(RecordKey{RecordType::hole, batch.iteration, batch.point, one->variable},
                           Payload().text(why));
    for (const auto& [variable, own] : batch.holes)
        lost_.emplace_back(RecordKey{RecordType::hole, batch.iteration, batch.point, variable},
                           Payload().text(own));
    lost_.emplace_back(
        RecordKey{RecordType::complete, batch.iteration, batch.point},
        Payload().u32(static_cast<std::uint32_t>(batch.variables.size() + batch.holes.size())));
}

void Writer::write_batch(Batch& batch) {
    CheckpointRecords records(*journal_, batch);
    for (const auto& one : batch.variables) {
        for (TreeParts* const parts : one->trees()) {
            hash_upper_levels(*parts);
            records.add_tree(*one, *parts);
        }
        if (one->reference || !one->not_compared.empty())
            records.add(RecordType::compared, one->variable, compared_payload(*one));
        for (const Sample& sample : one->samples)
            records.add(RecordType::sample, one->variable,
                        Payload().u64(sample.leaf).bytes(sample.elements));
    }
    for (const auto& [variable, why] : batch.holes)
        records.add(RecordType::hole, variable, Payload().text(why));
    records.complete();
}

void Writer::sync_now_and_then() {
    const std::int64_t now = now_ns() / 1'000'000'000;
    if (now - synced_at_s_ < seconds_between_syncs)
        return;
    synced_at_s_ = now;
    journal_->sync();
}

}  // namespace ciwrap::record
