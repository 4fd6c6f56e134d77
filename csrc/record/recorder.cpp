#include "record/recorder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "ciwrap/error.hpp"
#include "record/now.hpp"

namespace ciwrap::record {
namespace {

void make_folder(const std::string& path) {
    if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
        const int reason = errno;
        throw Error(ErrorCode::io, path + ": cannot be made: " + std::strerror(reason));
    }
}

std::string journal_path(const std::string& folder, int rank) {
    const std::string path = folder + journal_name(rank);
    make_folder(folder);
    make_folder(path.substr(0, path.rfind('/')));
    return path;
}

Payload variable_payload(const std::string& name, const TreeParameters& p) {
    Payload payload;
    payload.text(name).text(p.dtype()).f64(p.atol()).f64(p.rtol()).u64(p.ulps());
    payload.u32(p.residue_levels()).u32(p.arity()).u64(p.chunk_bytes()).u32(p.equal_nan() ? 1 : 0);
    payload.u32(static_cast<std::uint32_t>(p.fill_bits().size()));
    for (const std::uint64_t bits : p.fill_bits())
        payload.u64(bits);
    return payload;
}

}  // namespace

Recorder::Recorder(const std::string& folder, const std::string& name, int rank, int ranks,
                   const std::string& bounds_path, const OnlineOptions& online)
    : pid_(getpid()), rank_(rank) {
    if (rank < 0 || ranks < 1 || rank >= ranks) {
        throw Error(ErrorCode::invalid_argument,
                    "there is no rank " + std::to_string(rank) + " of " + std::to_string(ranks));
    }
    if (!bounds_path.empty())
        bounds_ = BoundsTable(bounds_path);
    path_ = journal_path(folder, rank);
    auto journal = std::make_unique<Journal>(path_, static_cast<std::uint64_t>(rank),
                                             static_cast<std::uint64_t>(ranks));
    const auto seconds = static_cast<std::uint64_t>(std::time(nullptr));
    const std::uint32_t has_bounds = bounds_.has_bounds() ? 1 : 0;
    journal->add({RecordType::attempt},
                 Payload().text(name).text(CIWRAP_VERSION).u64(seconds).u32(has_bounds).span());
    journal->commit();
    // What the next checkpoint will be compared with is read while the program computes.
    const auto written = [this](const Batch& batch) {
        if (online_)
            online_->reference().fetch_next(batch.iteration, batch.point_name);
    };
    writer_ = std::make_unique<Writer>(
        std::move(journal), [this](const std::string& what) { tell(what); }, written);
    if (online.against.empty())
        return;
    try {
        online_ = std::make_unique<Online>(online, rank, ranks);
    } catch (const Error& error) {
        // It is recorded all the same: compared it can be later.
        (void)fail(std::string("nothing is compared: ") + error.what());
    }
}

Recorder::~Recorder() = default;

bool Recorder::is_ours() const {
    return getpid() == pid_;
}

void Recorder::tell(const std::string& what) {
    if (errors_.fetch_add(1) == 0)
        std::fprintf(stderr, "ciwrap: %s (further errors are counted)\n", what.c_str());
}

int Recorder::fail(const std::string& what) {
    tell(what);
    writer_->put({RecordType::error}, Payload().text(what));
    return -1;
}

Recorder::Variable* Recorder::find(std::int64_t id) {
    if (id < 0 || id >= static_cast<std::int64_t>(variables_.size())) {
        fail("there is no array " + std::to_string(id));
        return nullptr;
    }
    return &variables_[static_cast<std::size_t>(id)];
}

// What the table asks for; else the reference's, so that the two can be compared; else what the
// program says.
TreeParameters Recorder::parameters_for(const Variable& variable, const ciwrap_array& array) {
    StatedParameters stated;
    stated.dtype = variable.view.dtype();
    stated.atol = std::max(array.atol, 0.0);
    stated.rtol = std::max(array.rtol, 0.0);
    if (online_) {
        const auto theirs = online_->reference().parameters_of(variable.name);
        if (theirs && theirs->dtype == stated.dtype)
            stated = *theirs;
    }
    return bounds_.parameters_for(variable.name, std::move(stated));
}

// A variable that cannot be recorded stays, and leaves a hole in every checkpoint.
int Recorder::set(Variable& variable, const ciwrap_array& array) {
    variable.is_active = true;
    try {
        variable.view = ArrayView(array);
        auto parameters = std::make_unique<TreeParameters>(parameters_for(variable, array));
        variable.fault.clear();
        if (variable.parameters && *variable.parameters == *parameters)
            return 0;
        variable.parameters = std::move(parameters);
    } catch (const Error& error) {
        variable.fault = error.what();
        if (!variable.parameters)
            variable.parameters =
                std::make_unique<TreeParameters>(StatedParameters{.dtype = "|b1"});
        (void)fail(variable.name + ": " + error.what());
    }
    variable.number = next_number_++;
    writer_->put({RecordType::variable, 0, 0, variable.number},
                 variable_payload(variable.name, *variable.parameters));
    return variable.fault.empty() ? 0 : -1;
}

std::int64_t Recorder::add(const ciwrap_array& array) {
    const std::lock_guard lock(mutex_);
    if (array.size < sizeof(ciwrap_array) || array.name == nullptr || *array.name == '\0')
        return fail("an array without a name, or of another version of the header");
    for (const Variable& known : variables_) {
        if (known.name == array.name)
            return fail(known.name + ": there is an array of this name already");
    }
    Variable variable;
    variable.name = array.name;
    (void)set(variable, array);
    variables_.push_back(std::move(variable));
    return static_cast<std::int64_t>(variables_.size()) - 1;
}

std::int64_t Recorder::find_name(const std::string& name) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < variables_.size(); ++i) {
        if (variables_[i].name == name)
            return static_cast<std::int64_t>(i);
    }
    return -1;
}

int Recorder::replace(std::int64_t id, const ciwrap_array& array) {
    const std::lock_guard lock(mutex_);
    if (array.size < sizeof(ciwrap_array))
        return fail("an array of another version of the header");
    Variable* const variable = find(id);
    return variable == nullptr ? -1 : set(*variable, array);
}

int Recorder::move(std::int64_t id, const void* data) {
    const std::lock_guard lock(mutex_);
    Variable* const variable = find(id);
    if (variable == nullptr)
        return -1;
    variable->view.move(data);
    return 0;
}

int Recorder::remove(std::int64_t id) {
    const std::lock_guard lock(mutex_);
    Variable* const variable = find(id);
    if (variable == nullptr)
        return -1;
    variable->is_active = false;
    return 0;
}

std::uint32_t Recorder::point_number(const std::string& point) {
    const auto [found, is_new] = points_.emplace(point, static_cast<std::uint32_t>(points_.size()));
    if (is_new)
        writer_->put({RecordType::point, 0, found->second, 0}, Payload().text(point));
    return found->second;
}

// Compared with the reference if that has the same of it.
std::unique_ptr<Recorded> Recorder::recorded(const Variable& one, std::int64_t iteration,
                                             const std::string& point) {
    std::string why;
    if (online_) {
        try {
            auto reference = online_->reference().find(iteration, point, one.name, why);
            if (reference) {
                auto held =
                    std::make_unique<Recorded>(one.number, one.name, one.view, *one.parameters,
                                               std::move(reference), writer_->spare(one.name));
                const std::string name = point.empty() ? one.name : one.name + "@" + point;
                held->is_ignored = bounds_.is_ignored(name, iteration, rank_);
                return held;
            }
        } catch (const Error& error) {
            why = error.what();
        }
    }
    auto alone = std::make_unique<Recorded>(one.number, one.name, one.view, *one.parameters,
                                            nullptr, writer_->spare(one.name));
    alone->not_compared = why;
    return alone;
}

int Recorder::prepare(std::int64_t iteration, const std::string& point) {
    const std::lock_guard lock(mutex_);
    if (batch_)
        return fail("a checkpoint is prepared while another is not complete");
    if (iteration < 0)
        return fail("iteration " + std::to_string(iteration) + " is negative");
    prepared_at_ns_ = now_ns();
    auto batch = std::make_unique<Batch>();
    batch->iteration = iteration;
    batch->point = point_number(point);
    batch->point_name = point;
    for (const Variable& one : variables_) {
        if (!one.is_active)
            continue;
        if (!one.fault.empty()) {
            batch->holes.emplace_back(one.number, one.fault);
        } else if (!one.view.has_data()) {
            (void)fail(one.name + ": has no data");
            batch->holes.emplace_back(one.number, "has no data");
        } else {
            batch->variables.push_back(recorded(one, iteration, point));
        }
    }
    batch->cut();
    batch_ = std::move(batch);
    working_.store(batch_.get());
    return 0;
}

int Recorder::work() {
    workers_.fetch_add(1);
    Batch* const batch = working_.load();
    if (batch != nullptr)
        batch->work();
    workers_.fetch_sub(1);
    return batch == nullptr ? -1 : 0;
}

int Recorder::complete() {
    const int result = hand_over();
    // Without the lock: a program that is called back may call us.
    if (result == 0 && online_ && online_->tell()) {
        (void)close();  // writes what waits
        online_->end_process();
    }
    return result;
}

int Recorder::hand_over() {
    const std::lock_guard lock(mutex_);
    if (!batch_)
        return fail("a checkpoint is completed that nobody prepared");
    batch_->work();
    working_.store(nullptr);
    while (workers_.load() != 0)
        std::this_thread::yield();
    for (const std::string& what : batch_->drop_faulty())
        (void)fail(what);
    if (online_)
        online_->judge(*batch_);
    ++checkpoints_;
    data_bytes_ += batch_->data_bytes();
    most_bytes_ = std::max(most_bytes_, held_bytes());
    writer_->put(std::move(batch_));
    blocked_ns_ += static_cast<std::uint64_t>(now_ns() - prepared_at_ns_);
    return 0;
}

// With a checkpoint that has been hashed, when the most is held.
std::uint64_t Recorder::held_bytes() {
    const std::uint64_t fetched = online_ ? online_->reference().fetched_bytes() : 0;
    return batch_->tree_bytes() + batch_->reference_bytes() + writer_->held_bytes() + fetched;
}

int Recorder::checkpoint(std::int64_t iteration, const std::string& point, int flags) {
    if (flags != CIWRAP_IN_PLACE) {
        const std::lock_guard lock(mutex_);
        return fail("unknown flags of a checkpoint");
    }
    const int failed = prepare(iteration, point);
    return failed != 0 ? failed : complete();
}

void Recorder::on_divergence(ciwrap_callback callback, void* data) {
    const std::lock_guard lock(mutex_);
    if (online_)
        online_->call_back(callback, data);
}

std::int64_t Recorder::close() {
    const std::lock_guard lock(mutex_);
    if (batch_)
        (void)fail("the run was closed within a checkpoint");
    Payload statistics;
    statistics.u64(checkpoints_).u64(data_bytes_).u64(blocked_ns_).u64(writer_->waited_ns());
    statistics.u64(static_cast<std::uint64_t>(errors_.load())).u64(most_bytes_);
    writer_->finish(std::move(statistics));
    writer_.reset();  // waits
    return errors_.load();
}

}  // namespace ciwrap::record
