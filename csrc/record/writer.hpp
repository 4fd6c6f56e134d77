// The one background thread of a process: upper levels, checksums, and all writing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "record/batch.hpp"
#include "record/journal.hpp"

namespace ciwrap::record {

// Takes hashed checkpoints and writes them in the order in which they come. At most 8 of them, or
// 256 MiB of trees, wait; then `put` waits. Where memory runs out, it writes nothing more, and the
// journal has no end.
class Writer {
  public:
    // The writer's thread calls `failed`, which must not throw, with what could not be written, and
    // `written` for every checkpoint that is done with.
    Writer(std::unique_ptr<Journal> journal, std::function<void(const char*)> failed,
           std::function<void(const Batch&)> written);
    ~Writer();

    // Records of no checkpoint: names of points, variables, errors.
    void put(const RecordKey& key, Payload payload);
    void put(std::unique_ptr<Batch> batch);
    // Writes what waits and then the last record.
    void finish(Payload statistics);
    // Ends the thread once it has written what waits. From then on callers write by themselves.
    void write_at_once();

    // The last trees of a variable that were written, if nobody has asked for them yet.
    SpareTrees spare(const std::string& name);

    std::uint64_t waited_ns() const { return waited_ns_; }
    // Trees that wait, memory that is kept for later ones, and what is being put together.
    std::uint64_t held_bytes();

  private:
    struct Job {
        std::unique_ptr<Batch> batch;  // null: `key` and `payload`
        RecordKey key{};
        Payload payload;
        std::uint64_t bytes = 0;  // of its trees
    };

    void push(Job job);
    void run() noexcept;
    void write(Job& job) noexcept;
    void give_up(const char* why) noexcept;
    void write_batch(Batch& batch);
    void lose(Job& job, const std::string& why);
    void sync_now_and_then();
    void done_with(Job& job) noexcept;
    void keep_spares(Batch& batch);

    std::unique_ptr<Journal> journal_;
    std::function<void(const char*)> failed_;
    std::function<void(const Batch&)> written_;
    std::mutex mutex_;
    std::condition_variable has_job_;
    std::condition_variable has_room_;
    std::deque<Job> jobs_;
    std::map<std::string, SpareTrees> spares_;  // by name of the variable
    std::uint64_t waiting_bytes_ = 0;
    std::uint64_t journal_bytes_ = 0;
    std::uint64_t waited_ns_ = 0;
    bool is_ending_ = false;
    // Of who writes alone.
    bool has_given_up_ = false;
    std::vector<std::pair<RecordKey, Payload>> lost_;  // could not be written yet
    std::int64_t synced_at_s_ = 0;
    std::thread thread_;
};

}  // namespace ciwrap::record
