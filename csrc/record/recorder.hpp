// A process's part of a recorded run: its variables, and the checkpoint that is being taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "record/array_view.hpp"
#include "record/batch.hpp"
#include "record/bounds_table.hpp"
#include "record/online.hpp"
#include "record/writer.hpp"

namespace ciwrap::record {

// Thread safe. Nothing throws but the constructor: what goes wrong is counted, and told once.
class Recorder {
  public:
    // Throws Error if the journal cannot be opened or the table of bounds not be read.
    Recorder(const std::string& folder, const std::string& name, int rank, int ranks,
             const std::string& bounds_path, const OnlineOptions& online = {});
    ~Recorder();

    std::int64_t add(const ciwrap_array& array);
    // The id of the array of a name, or -1.
    std::int64_t find_name(const std::string& name);
    int replace(std::int64_t id, const ciwrap_array& array);
    int move(std::int64_t id, const void* data);
    int remove(std::int64_t id);
    int prepare(std::int64_t iteration, const std::string& point);
    int work();
    int complete();
    int checkpoint(std::int64_t iteration, const std::string& point, int flags);
    // callback: of policy `callback`; is called in `complete`, by the thread that calls that.
    void on_divergence(ciwrap_callback callback, void* data);
    // Whether the program is to end, since it does not match the reference.
    bool should_stop() const { return online_ && online_->should_stop(); }
    std::int64_t errors() const { return errors_.load(); }
    void count_error() { errors_.fetch_add(1); }
    // Ends the journal; the number of errors.
    std::int64_t close();

    const std::string& path() const { return path_; }
    // A child made by fork() has no thread that writes: its calls do nothing.
    bool is_ours() const;

  private:
    struct Variable {
        std::string name;
        ArrayView view;
        double atol = -1;
        double rtol = -1;
        std::string fault;         // why it cannot be recorded; empty: it can
        bool is_active = true;     // false once it was removed
        std::uint32_t number = 0;  // of its record: another one for another type or bound
        std::unique_ptr<TreeParameters> parameters;
    };

    int set(Variable& variable, const ciwrap_array& array);
    TreeParameters parameters_for(const Variable& variable, const ciwrap_array& array);
    std::unique_ptr<Recorded> recorded(const Variable& one, std::int64_t iteration,
                                       const std::string& point);
    int hand_over();
    std::uint64_t held_bytes();
    Variable* find(std::int64_t id);
    std::uint32_t point_number(const std::string& point);
    int fail(const std::string& what);
    void tell(const std::string& what);

    std::string path_;
    int pid_;
    int rank_;
    BoundsTable bounds_;
    std::mutex mutex_;
    std::vector<Variable> variables_;
    std::map<std::string, std::uint32_t> points_{{"", 0}};
    std::uint32_t next_number_ = 0;
    std::unique_ptr<Online> online_;        // null: nothing is compared
    std::unique_ptr<Batch> batch_;          // from prepare to complete
    std::atomic<Batch*> working_{nullptr};  // the same, for `work`
    std::atomic<int> workers_{0};
    std::atomic<std::int64_t> errors_{0};
    std::uint64_t checkpoints_ = 0;
    std::uint64_t data_bytes_ = 0;
    std::uint64_t blocked_ns_ = 0;
    std::uint64_t most_bytes_ = 0;
    std::int64_t prepared_at_ns_ = 0;
    std::unique_ptr<Writer> writer_;
};

}  // namespace ciwrap::record
