#include "record/online.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "ciwrap/error.hpp"
#include "record/in_call.hpp"
#include "record/journal.hpp"

namespace ciwrap::record {
namespace {

using Clock = std::chrono::steady_clock;

// Of a variable at a checkpoint, and of all: the first chunks that do not match tell most.
constexpr std::uint64_t most_sample_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t most_bytes_of_all = std::uint64_t{32} << 20;

std::string variable_of(const char* name) {
    const char* const text = std::getenv(name);
    return text == nullptr ? "" : text;
}

double number_of(const char* name, double otherwise) {
    const std::string text = variable_of(name);
    if (text.empty())
        return otherwise;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (*end != '\0' || !(value >= 0) || value > 1e15)
        throw Error(ErrorCode::invalid_argument, std::string(name) + " is not a number: " + text);
    return value;
}

OnDivergence policy_of(const std::string& text) {
    if (text.empty() || text == "report")
        return OnDivergence::report;
    if (text == "callback")
        return OnDivergence::callback;
    if (text == "stop")
        return OnDivergence::stop;
    if (text == "abort")
        return OnDivergence::abort;
    throw Error(ErrorCode::invalid_argument,
                "CIWRAP_RECORD_ON_DIVERGENCE is not one of report, callback, stop, abort: " + text);
}

// To three digits.
double rounded_down(double share) {
    const double unit = std::pow(10.0, std::floor(std::log10(share)) - 2);
    return std::floor(share / unit) * unit;
}

}  // namespace

OnlineOptions OnlineOptions::from_environment() {
    OnlineOptions found;
    found.against = variable_of("CIWRAP_RECORD_AGAINST");
    found.on_divergence = policy_of(variable_of("CIWRAP_RECORD_ON_DIVERGENCE"));
    found.patience = static_cast<std::int64_t>(number_of("CIWRAP_RECORD_PATIENCE", 1));
    found.wait_seconds = number_of("CIWRAP_RECORD_WAIT", found.wait_seconds);
    found.stop_seconds = number_of("CIWRAP_RECORD_STOP_WITHIN", found.stop_seconds);
    found.ended_mark = variable_of("CIWRAP_RECORD_ENDED_MARK");
    found.keeps_residues = variable_of("CIWRAP_RECORD_RESIDUES") == "1";
    return found;
}

Online::Online(const OnlineOptions& options, int rank, int ranks)
    : options_(options),
      rank_(rank),
      reference_(options.against + journal_name(rank), static_cast<std::uint64_t>(rank),
                 static_cast<std::uint64_t>(ranks), options.wait_seconds) {
    // A rank that the reference does not have would wait for its journal.
    refuse_other_ranks(options.against + journal_name(0), static_cast<std::uint64_t>(ranks));
}

void Online::call_back(ciwrap_callback callback, void* data) {
    callback_ = callback;
    callback_data_ = data;
}

void Online::look_at(Recorded& one) {
    if (!one.reference || one.is_looked_at)
        return;
    one.is_looked_at = true;
    one.compare();
    if (!one.does_not_match())
        return;
    one.prove(reference_.summaries_of(*one.reference));
    one.keep_samples(std::min(most_sample_bytes, most_bytes_of_all - sampled_bytes_));
    for (const Sample& sample : one.samples)
        sampled_bytes_ += sample.elements.size();
}

Online::Answer Online::judge(Batch& batch) {
    const Recorded* first = nullptr;
    const Recorded* proven = nullptr;
    for (const auto& one : batch.variables) {
        look_at(*one);
        if (first == nullptr && one->does_not_match())
            first = one.get();
        if (proven == nullptr && one->surely_differs())
            proven = one.get();
    }
    Answer answer;
    if (first != nullptr && options_.on_divergence == OnDivergence::callback) {
        answer = {callback_,
                  callback_data_,
                  batch.iteration,
                  batch.point_name,
                  first->name,
                  first->compared.suspects.size(),
                  first->compared.leaf_count};
    }
    if (!has_diverged_ && first == nullptr)
        return answer;
    if (has_diverged_)
        ++checkpoints_since_;
    else if (first != proven)
        tell_of(batch, *first);
    if (proven != nullptr && !has_proven_)
        tell_of(batch, *proven);
    has_diverged_ = true;
    has_proven_ = has_proven_ || proven != nullptr;
    answer.is_to_stop = options_.ends_program() && checkpoints_since_ >= options_.patience;
    if (!answer.is_to_stop)
        return answer;
    if (!told_to_stop_at_)
        told_to_stop_at_ = Clock::now();
    // A program that never asks, or does not do as it is told.
    const std::chrono::duration<double> since = Clock::now() - *told_to_stop_at_;
    answer.is_to_be_ended =
        options_.on_divergence == OnDivergence::abort || since.count() > options_.stop_seconds;
    return answer;
}

void Online::tell_of(const Batch& batch, const Recorded& one) const {
    const std::string& point = batch.point_name;
    char size[64] = "";
    if (one.compared.least_share > 0)
        std::snprintf(size, sizeof size, ", by at least %.3g x the bound",
                      rounded_down(one.compared.least_share));
    std::fprintf(stderr,
                 "ciwrap: rank %d: %s%s%s %s the reference in iteration %lld%s (%llu of %llu %s)\n",
                 rank_, one.name.c_str(), point.empty() ? "" : "@", point.c_str(),
                 one.surely_differs() ? "differs from" : "does not match",
                 static_cast<long long>(batch.iteration), size,
                 static_cast<unsigned long long>(one.compared.suspects.size()),
                 static_cast<unsigned long long>(one.compared.leaf_count),
                 one.compared.leaf_count == 1 ? "block" : "blocks");
}

void Online::Answer::tell() const {
    if (callback == nullptr)
        return;
    const ciwrap_divergence told{sizeof told,      iteration,     point.c_str(),
                                 variable.c_str(), suspect_count, leaf_count};
    const InCall program_again(false);
    callback(callback_data, &told);
}

// A program that is ended has no ending of its own. Launchers of MPI end the other processes, but
// some were seen to wait for them instead.
void Online::end_process(const std::string& ended_mark) {
    std::fprintf(stderr, "ciwrap: the program is ended, since it does not match the reference\n");
    if (!ended_mark.empty()) {
        std::FILE* const mark = std::fopen(ended_mark.c_str(), "w");
        if (mark == nullptr)
            std::fprintf(stderr, "ciwrap: cannot write %s\n", ended_mark.c_str());
        else
            (void)std::fclose(mark);
    }
    std::_Exit(1);
}

}  // namespace ciwrap::record
