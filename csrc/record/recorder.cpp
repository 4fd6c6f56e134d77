#include "record/recorder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "ciwrap/error.hpp"
#include "record/memory_checks.hpp"
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

// CIWRAP_RECORD_DEBUG=1: look twice, at the cost of time.
bool is_debugging() {
    const char* const text = std::getenv("CIWRAP_RECORD_DEBUG");
    return text != nullptr && *text != '\0' && std::strcmp(text, "0") != 0;
}

int code_of(const std::string& fault) {
    if (fault == no_memory)
        return CIWRAP_NO_MEMORY;
    return fault == changed_meanwhile ? CIWRAP_CHANGED : CIWRAP_NO_DEVICE;
}

int code_of(const Error& error) {
    return error.code() == ErrorCode::not_available ? CIWRAP_NO_DEVICE : CIWRAP_BAD_ARRAY;
}

}  // namespace

Recorder::Recorder(const std::string& folder, const std::string& name, int rank, int ranks,
                   const std::string& bounds_path, const OnlineOptions& online)
    : pid_(getpid()), rank_(rank), is_debugging_(is_debugging()) {
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
        std::move(journal), [this](const char* what) { errors_.tell(CIWRAP_NOT_WRITTEN, what); },
        written);
    if (online.against.empty())
        return;
    ended_mark_ = online.ended_mark;
    try {
        online_ = std::make_shared<Online>(online, rank, ranks);
    } catch (const Error& error) {
        // It is recorded all the same; but what cannot match is not computed to its end.
        should_stop_ = online.ends_program();
        is_to_be_ended_ = online.on_divergence == OnDivergence::abort;
        (void)fail(CIWRAP_NO_REFERENCE, std::string("nothing is compared: ") + error.what());
    }
}

Recorder::~Recorder() {
    let_workers_go();
    writer_.reset();  // asks for what is next of `online_`
}

bool Recorder::is_ours() const {
    return getpid() == pid_;
}

// Its callers hold the lock.
int Recorder::fail(int code, const std::string& what) {
    errors_.tell(code, what.c_str());
    if (writer_)
        writer_->put({RecordType::error}, Payload().text(what));
    return -1;
}

int Recorder::report(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return fail(CIWRAP_REPORTED, what);
}

Recorder::Variable* Recorder::find(std::int64_t id) {
    if (id < 0 || id >= static_cast<std::int64_t>(variables_.size())) {
        fail(CIWRAP_BAD_CALL, "there is no array " + std::to_string(id));
        return nullptr;
    }
    return &variables_[static_cast<std::size_t>(id)];
}

Recorder::Variable& Recorder::insert(const std::string& name) {
    variables_.emplace_back().name = name;
    try {
        ids_.emplace(name, variables_.size() - 1);
    } catch (...) {
        variables_.pop_back();
        throw;
    }
    return variables_.back();
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
    variable.fault = no_memory;  // until all is known
    try {
        variable.view = ArrayView(array);
        auto parameters = std::make_unique<TreeParameters>(parameters_for(variable, array));
        if (!variable.parameters || !(*variable.parameters == *parameters)) {
            variable.parameters = std::move(parameters);
            variable.has_record = false;
        }
        variable.fault.clear();
        return 0;
    } catch (const Error& error) {
        variable.fault = error.what();
        return fail(code_of(error), variable.name + ": " + error.what());
    }
}

std::int64_t Recorder::add(const ciwrap_array& array) {
    const std::lock_guard lock(mutex_);
    if (!writer_)
        return -1;
    if (array.name == nullptr || *array.name == '\0')
        return fail(CIWRAP_BAD_CALL, "an array without a name");
    const std::string name = array.name;
    const auto known = ids_.find(name);
    const bool is_known = known != ids_.end();
    if (is_known && variables_[known->second].is_active)
        return fail(CIWRAP_BAD_CALL, name + ": there is an array of this name already");
    Variable& variable = is_known ? variables_[known->second] : insert(name);
    variable.is_active = true;
    return set(variable, array) == 0 ? &variable - variables_.data() : -1;
}

std::int64_t Recorder::find_name(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = ids_.find(name);
    return found == ids_.end() ? -1 : static_cast<std::int64_t>(found->second);
}

int Recorder::replace(std::int64_t id, const ciwrap_array& array) {
    const std::lock_guard lock(mutex_);
    Variable* const variable = writer_ ? find(id) : nullptr;
    if (variable == nullptr)
        return -1;
    variable->is_active = true;
    return set(*variable, array);
}

int Recorder::move(std::int64_t id, const void* data) {
    const std::lock_guard lock(mutex_);
    Variable* const variable = writer_ ? find(id) : nullptr;
    if (variable == nullptr)
        return -1;
    variable->view.move(data);
    return 0;
}

int Recorder::remove(std::int64_t id) {
    const std::lock_guard lock(mutex_);
    Variable* const variable = writer_ ? find(id) : nullptr;
    if (variable == nullptr)
        return -1;
    variable->is_active = false;
    return 0;
}

std::uint32_t Recorder::point_number(const std::string& point) {
    const auto found = points_.find(point);
    if (found != points_.end())
        return found->second;
    const auto number = static_cast<std::uint32_t>(points_.size());
    // A number that no record gives a name would be damage: so first the name, then its use.
    writer_->put({RecordType::point, 0, number, 0}, Payload().text(point));
    points_.emplace(point, number);
    return number;
}

void Recorder::write_name(Variable& variable) {
    if (!variable.parameters)
        variable.parameters = std::make_unique<TreeParameters>(StatedParameters{.dtype = "|b1"});
    if (variable.has_record)
        return;
    const std::uint32_t number = next_number_++;
    writer_->put({RecordType::variable, 0, 0, number},
                 variable_payload(variable.name, *variable.parameters));
    variable.number = number;
    variable.has_record = true;
}

// Why an array cannot be read now; "" if it can.
std::string Recorder::why_not(const Variable& variable) const {
    const ArrayView& view = variable.view;
    if (!view.has_data())
        return "has no data";
    // What is exposed is there; what was added long ago may be gone.
    if (view.is_on_device() || !variable.is_active)
        return "";
    if (!is_mapped(view.first_byte(), view.span_bytes()))
        return "its memory is not there any more: remove it before it goes, or expose it";
    if (is_debugging_ && is_of_returned_function(view.first_byte()))
        return "lies in a function that has returned: expose it there instead of adding it";
    return "";
}

// Compared with the reference if that has the same of it.
std::unique_ptr<Recorded> Recorder::recorded(const Variable& one, const Batch& batch) {
    const std::string& point = batch.point_name;
    std::string why;
    if (online_) {
        try {
            auto reference = online_->reference().find(batch.iteration, point, one.name, why);
            if (reference) {
                auto held = std::make_unique<Recorded>(
                    one.number, one.name, one.view, *one.parameters, std::move(reference),
                    writer_->spare(one.name), online_->keeps_residues());
                const std::string name = point.empty() ? one.name : one.name + "@" + point;
                held->is_ignored = bounds_.is_ignored(name, batch.iteration, rank_);
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

// Makes a variable part of a checkpoint; null for one that leaves a hole in it.
Recorded* Recorder::take(Variable& one, Batch& batch) {
    write_name(one);
    std::string why = one.fault;
    if (why.empty()) {
        why = why_not(one);
        if (!why.empty())
            (void)fail(CIWRAP_MEMORY_GONE, one.name + ": " + why);
    }
    if (why.empty()) {
        try {
            batch.variables.push_back(recorded(one, batch));
            return batch.variables.back().get();
        } catch (const std::bad_alloc&) {
            why = no_memory;
            (void)fail(CIWRAP_NO_MEMORY, one.name + ": " + why);
        }
    }
    batch.holes.emplace_back(one.number, why);
    return nullptr;
}

int Recorder::prepare(std::int64_t iteration, const std::string& point) {
    const std::lock_guard lock(mutex_);
    return prepare_locked(iteration, point);
}

int Recorder::prepare_locked(std::int64_t iteration, const std::string& point) {
    if (!writer_)
        return lost;
    if (batch_)
        return fail(CIWRAP_BAD_CALL, "a checkpoint is prepared while another is not complete");
    if (iteration < 0)
        return fail(CIWRAP_BAD_CALL, "iteration " + std::to_string(iteration) + " is negative");
    prepared_at_ns_ = now_ns();
    auto batch = std::make_unique<Batch>();
    batch->iteration = iteration;
    batch->point = point_number(point);
    batch->point_name = point;
    for (Variable& one : variables_) {
        if (one.is_active)
            (void)take(one, *batch);
    }
    batch->cut();
    batch_ = std::move(batch);
    working_.store(batch_.get());
    return 0;
}

int Recorder::expose(const ciwrap_array& array) {
    const std::lock_guard lock(mutex_);
    if (!writer_)
        return lost;
    if (array.name == nullptr || *array.name == '\0')
        return fail(CIWRAP_BAD_CALL, "an array without a name");
    const std::string name = array.name;
    if (!batch_)
        return fail(CIWRAP_BAD_CALL, name + ": is exposed outside of prepare and complete");
    const auto known = ids_.find(name);
    Variable& variable = known == ids_.end() ? insert(name) : variables_[known->second];
    if (variable.is_active && known != ids_.end())
        return fail(CIWRAP_BAD_CALL, name + ": is exposed, but is added already");
    variable.is_active = false;
    if (!batch_->exposed.insert(name).second)
        return fail(CIWRAP_BAD_CALL, name + ": is exposed twice in one checkpoint");
    (void)set(variable, array);
    Recorded* const one = take(variable, *batch_);
    variable.view.move(nullptr);
    if (one == nullptr)
        return -1;
    try {
        batch_->hash_now(*one);
        if (is_debugging_ && !one->is_stable())
            one->fault = changed_meanwhile;
        if (online_)
            online_->look_at(*one);
    } catch (const std::bad_alloc&) {
        one->has_memory = false;  // leaves a hole
    }
    one->view.move(nullptr);
    return one->fault.empty() && one->has_memory ? 0 : -1;
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
    Online::Answer answer;
    int result = lost;
    {
        const std::lock_guard lock(mutex_);
        if (writer_)
            result = hand_over(answer);
    }
    return follow(result, answer);
}

int Recorder::checkpoint(std::int64_t iteration, const std::string& point, int flags) {
    Online::Answer answer;
    int result = lost;
    {
        const std::lock_guard lock(mutex_);
        if (flags != CIWRAP_IN_PLACE)
            return fail(CIWRAP_BAD_CALL, "unknown flags of a checkpoint");
        result = prepare_locked(iteration, point);
        if (result == 0)
            result = hand_over(answer);
    }
    return follow(result, answer);
}

// Without the lock: a program that is called back may call us.
int Recorder::follow(int result, const Online::Answer& answer) {
    answer.tell();
    if (answer.is_to_be_ended) {
        (void)close();  // writes what waits
        Online::end_process(ended_mark_);
    }
    return result;
}

// Whoever hashes ends; nobody begins.
void Recorder::let_workers_go() {
    working_.store(nullptr);
    while (workers_.load() != 0)
        std::this_thread::yield();
}

int Recorder::hand_over(Online::Answer& answer) {
    if (!batch_)
        return fail(CIWRAP_BAD_CALL, "a checkpoint is completed that nobody prepared");
    batch_->work();
    let_workers_go();
    // If memory runs out from here on, the checkpoint is lost as a whole, and that is counted.
    std::unique_ptr<Batch> whole = std::move(batch_);
    Batch& batch = *whole;
    if (is_debugging_) {
        for (const auto& one : batch.variables) {
            if (one->view.has_data() && !one->is_stable())
                one->fault = changed_meanwhile;
        }
    }
    for (auto& [name, why] : batch.drop_faulty())
        (void)fail(code_of(why), name.append(": ").append(why));
    if (online_)
        answer = online_->judge(batch);
    answer.is_to_be_ended = answer.is_to_be_ended || is_to_be_ended_;
    if (answer.is_to_stop)
        should_stop_ = true;
    ++checkpoints_;
    data_bytes_ += batch.data_bytes();
    most_bytes_ = std::max(most_bytes_, held_bytes(batch));
    writer_->put(std::move(whole));
    blocked_ns_ += static_cast<std::uint64_t>(now_ns() - prepared_at_ns_);
    if (is_ending_)
        write_end();
    return 0;
}

// With a checkpoint that has been hashed, when the most is held.
std::uint64_t Recorder::held_bytes(const Batch& batch) {
    const std::uint64_t fetched = online_ ? online_->reference().fetched_bytes() : 0;
    return batch.tree_bytes() + batch.reference_bytes() + writer_->held_bytes() + fetched;
}

void Recorder::on_divergence(ciwrap_callback callback, void* data) {
    const std::lock_guard lock(mutex_);
    if (online_)
        online_->call_back(callback, data);
}

void Recorder::write_end() {
    Payload statistics;
    statistics.u64(checkpoints_).u64(data_bytes_).u64(blocked_ns_).u64(writer_->waited_ns());
    statistics.u64(static_cast<std::uint64_t>(errors_.count())).u64(most_bytes_);
    writer_->finish(std::move(statistics));
}

std::int64_t Recorder::close() {
    const std::lock_guard lock(mutex_);
    if (!writer_)
        return errors_.count();
    let_workers_go();
    try {
        if (batch_)
            (void)fail(CIWRAP_BAD_CALL, "the run was closed within a checkpoint");
        write_end();
    } catch (const std::bad_alloc&) {
        errors_.tell(CIWRAP_NO_MEMORY, no_memory);  // a journal without an end is not all there
    }
    batch_.reset();
    writer_.reset();  // waits
    online_.reset();
    variables_.clear();
    ids_.clear();
    return errors_.count();
}

void Recorder::write_all() {
    const std::lock_guard lock(mutex_);
    if (!writer_ || is_ending_)
        return;
    is_ending_ = true;
    if (batch_)
        (void)fail(CIWRAP_BAD_CALL, "the program ended within a checkpoint");
    write_end();
    writer_->write_at_once();
}

}  // namespace ciwrap::record
