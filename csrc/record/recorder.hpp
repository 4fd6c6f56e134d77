// A process's part of a recorded run: its variables, and the checkpoint that is being taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/array_view.hpp"
#include "record/batch.hpp"
#include "record/bounds_table.hpp"
#include "record/last_error.hpp"
#include "record/online.hpp"
#include "record/writer.hpp"

namespace ciwrap::record {

// Thread safe. A call that lacks memory throws std::bad_alloc, and nothing else throws but the
// constructor: what goes wrong is counted, and printed once. Once it is closed it records nothing.
class Recorder {
  public:
    // What calls that record return once the run is closed.
    static constexpr int lost = -2;

    // Throws Error if the journal cannot be opened or the table of bounds not be read.
    Recorder(const std::string& folder, const std::string& name, int rank, int ranks,
             const std::string& bounds_path, const OnlineOptions& online = {});
    ~Recorder();

    // The id of the array; -1 if it cannot be recorded, which leaves a hole in every checkpoint.
    std::int64_t add(const ciwrap_array& array);
    // The id of the array of a name, or -1.
    std::int64_t find_name(const std::string& name);
    int replace(std::int64_t id, const ciwrap_array& array);
    int move(std::int64_t id, const void* data);
    int remove(std::int64_t id);
    int prepare(std::int64_t iteration, const std::string& point);
    // Hashes an array of the checkpoint that is prepared, and forgets where it lies.
    int expose(const ciwrap_array& array);
    int work();
    int complete();
    int checkpoint(std::int64_t iteration, const std::string& point, int flags);
    // callback: of policy `callback`; is called in `complete`, by the thread that calls that.
    void on_divergence(ciwrap_callback callback, void* data);
    // Whether the program is to end, since it does not match the reference.
    bool should_stop() const { return should_stop_.load(); }
    std::int64_t errors() const { return errors_.count(); }
    LastError& error() { return errors_; }
    // An error of the program's own. Returns -1.
    int report(const std::string& what);
    // Ends the journal; the number of errors. Calls that follow change nothing.
    std::int64_t close();
    // The program ends: all that waits is written now, and what is still to come as it comes.
    void write_all();

    const std::string& path() const { return path_; }
    // A child made by fork() has no thread that writes: its calls do nothing.
    bool is_ours() const;

  private:
    struct Variable {
        std::string name;
        ArrayView view;
        std::string fault;         // why it cannot be recorded; empty: it can
        bool is_active = false;    // once it was added, until it is removed
        bool has_record = false;   // of its name and its parameters
        std::uint32_t number = 0;  // of that record: another one for another type or bound
        std::unique_ptr<TreeParameters> parameters;
    };

    // Counts an error, and writes it down. Returns -1.
    int fail(int code, const std::string& what);
    Variable* find(std::int64_t id);
    Variable& insert(const std::string& name);
    int set(Variable& variable, const ciwrap_array& array);
    TreeParameters parameters_for(const Variable& variable, const ciwrap_array& array);
    void write_name(Variable& variable);
    std::uint32_t point_number(const std::string& point);
    int prepare_locked(std::int64_t iteration, const std::string& point);
    Recorded* take(Variable& variable, Batch& batch);
    std::string why_not(const Variable& variable) const;
    std::unique_ptr<Recorded> recorded(const Variable& one, const Batch& batch);
    int hand_over(Online::Answer& answer);
    int follow(int result, const Online::Answer& answer);
    void let_workers_go();
    std::uint64_t held_bytes(const Batch& batch);
    void write_end();

    std::string path_;
    int pid_;
    int rank_;
    bool is_debugging_;
    BoundsTable bounds_;
    LastError errors_;
    std::mutex mutex_;
    std::vector<Variable> variables_;
    std::unordered_map<std::string, std::size_t> ids_;
    std::map<std::string, std::uint32_t> points_{{"", 0}};
    std::uint32_t next_number_ = 0;
    std::shared_ptr<Online> online_;        // null: nothing is compared
    std::unique_ptr<Batch> batch_;          // from prepare to complete
    std::atomic<Batch*> working_{nullptr};  // the same, for `work`
    std::atomic<int> workers_{0};
    std::atomic<bool> should_stop_{false};
    bool is_to_be_ended_ = false;  // its reference cannot serve, and what does not match is aborted
    std::string ended_mark_;
    std::uint64_t checkpoints_ = 0;
    std::uint64_t data_bytes_ = 0;
    std::uint64_t blocked_ns_ = 0;
    std::uint64_t most_bytes_ = 0;
    std::int64_t prepared_at_ns_ = 0;
    bool is_ending_ = false;          // the program has come to its exit handlers
    std::unique_ptr<Writer> writer_;  // null once it is closed
};

}  // namespace ciwrap::record
