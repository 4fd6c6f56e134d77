// The library's one exported function, and the C functions behind it. Here end all exceptions, and
// errno stays what the program had.
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ciwrap/error.hpp"
#include "record/recorder.hpp"

using ciwrap::record::Recorder;

namespace {

// What the header sees, and what is behind it.
struct Run : ciwrap_run {
    Run(const ciwrap_table* functions, const char* folder, const char* name, int rank, int ranks,
        const char* bounds)
        : ciwrap_run{functions},
          recorder(folder, name, rank, ranks, bounds,
                   ciwrap::record::OnlineOptions::from_environment()) {}
    Recorder recorder;
};

Recorder& recorder_of(ciwrap_run* run) {
    return static_cast<Run*>(run)->recorder;
}

// Of this process; never destroyed, since programs may record until their very end.
struct OpenRuns {
    const pid_t process = getpid();
    std::mutex mutex;
    std::vector<Run*> runs;
};
OpenRuns& open_runs() {
    static auto* const runs = new OpenRuns;
    return *runs;
}

const char* folder_of_run() {
    const char* const folder = std::getenv("CIWRAP_RECORD");
    return folder == nullptr ? "" : folder;
}

// A file beside the journals for what a process did not record at all: the journals of others do
// not tell of it, and without it would be taken for all that there is.
void tell_unrecorded(const std::string& what) {
    static std::atomic<int> count{0};
    std::fprintf(stderr, "ciwrap: nothing is recorded: %s\n", what.c_str());
    const std::string path = std::string(folder_of_run()) + "/unrecorded-" +
                             std::to_string(getpid()) + "-" + std::to_string(count.fetch_add(1)) +
                             ".txt";
    if (std::FILE* const file = std::fopen(path.c_str(), "wxe")) {
        std::fprintf(file, "%s\n", what.c_str());
        (void)std::fclose(file);
    }
}

template <class Given>
Given& given(Given* pointer, const char* what) {
    if (pointer == nullptr)
        throw ciwrap::Error(ciwrap::ErrorCode::invalid_argument,
                            std::string("NULL was given for ") + what);
    return *pointer;
}

const char* given_text(const char* text, const char* what) {
    return &given(text, what);
}

template <class Call>
auto guarded(ciwrap_run* run, Call call) -> decltype(call(recorder_of(run))) {
    using Result = decltype(call(recorder_of(run)));
    const int before = errno;
    Result result{};
    if (recorder_of(run).is_ours()) {
        try {
            result = call(recorder_of(run));
        } catch (const std::exception& error) {
            // Memory has run out: there is none to write it down with.
            std::fprintf(stderr, "ciwrap: %s\n", error.what());
            recorder_of(run).count_error();
            result = static_cast<Result>(-1);
        }
    }
    errno = before;
    return result;
}

// A call that records. In a child made by fork() it cannot: the journal is its parent's.
template <class Call>
int recording(ciwrap_run* run, Call call) {
    if (!recorder_of(run).is_ours()) {
        static std::atomic<pid_t> told{0};
        const int before = errno;
        if (told.exchange(getpid()) != getpid())
            tell_unrecorded("this is a child of fork(); let it open a run with a rank of its own");
        errno = before;
    }
    return guarded(run, call);
}

const ciwrap_table* table();

std::int64_t close_run(ciwrap_run* run) {
    const std::int64_t errors = guarded(run, [](Recorder& one) { return one.close(); });
    if (!recorder_of(run).is_ours())
        return 0;  // the parent's
    Run* const whole = static_cast<Run*>(run);
    {
        const std::lock_guard lock(open_runs().mutex);
        std::erase(open_runs().runs, whole);
    }
    delete whole;
    return errors;
}

// A program that ends without closing: what waits is written all the same.
void close_all() {
    if (getpid() != open_runs().process)
        return;  // a child made by fork(), where nobody may hold the lock to let go of it
    std::vector<Run*> runs;
    {
        const std::lock_guard lock(open_runs().mutex);
        runs = open_runs().runs;
    }
    for (Run* const run : runs)
        (void)close_run(run);
}

ciwrap_run* open_run(const char* name, int rank, int ranks) {
    const int before = errno;
    ciwrap_run* opened = nullptr;
    try {
        const char* const bounds = std::getenv("CIWRAP_RECORD_BOUNDS");
        auto run = std::make_unique<Run>(table(), folder_of_run(), name == nullptr ? "" : name,
                                         rank, ranks, bounds == nullptr ? "" : bounds);
        const std::lock_guard lock(open_runs().mutex);
        static const int registered = std::atexit(close_all);
        (void)registered;
        open_runs().runs.push_back(run.get());
        opened = run.release();
    } catch (const std::exception& error) {
        tell_unrecorded(error.what());
    }
    errno = before;
    return opened;
}

const ciwrap_table* table() {
    static const ciwrap_table functions = {
        sizeof(ciwrap_table),
        open_run,
        [](ciwrap_run* run, const ciwrap_array* array) {
            return guarded(run, [&](Recorder& one) { return one.add(given(array, "an array")); });
        },
        [](ciwrap_run* run, std::int64_t id, const ciwrap_array* array) {
            return guarded(
                run, [&](Recorder& one) { return one.replace(id, given(array, "an array")); });
        },
        [](ciwrap_run* run, std::int64_t id, const void* data) {
            return guarded(run, [&](Recorder& one) { return one.move(id, data); });
        },
        [](ciwrap_run* run, std::int64_t id) {
            return guarded(run, [&](Recorder& one) { return one.remove(id); });
        },
        [](ciwrap_run* run, std::int64_t iteration, const char* point) {
            return recording(run, [&](Recorder& one) {
                return one.prepare(iteration, given_text(point, "a point's name"));
            });
        },
        [](ciwrap_run* run) { return guarded(run, [](Recorder& one) { return one.work(); }); },
        [](ciwrap_run* run) { return guarded(run, [](Recorder& one) { return one.complete(); }); },
        [](ciwrap_run* run, std::int64_t iteration, const char* point, int flags) {
            return recording(run, [&](Recorder& one) {
                return one.checkpoint(iteration, given_text(point, "a point's name"), flags);
            });
        },
        [](ciwrap_run* run) { return guarded(run, [](Recorder& one) { return one.errors(); }); },
        close_run,
        [](ciwrap_run* run, const char* name) {
            return guarded(run, [&](Recorder& one) {
                return one.find_name(given_text(name, "an array's name"));
            });
        },
        [](ciwrap_run* run) {
            return guarded(run, [](Recorder& one) { return one.should_stop() ? 1 : 0; });
        },
        [](ciwrap_run* run, ciwrap_callback callback, void* data) {
            (void)guarded(run, [&](Recorder& one) {
                one.on_divergence(callback, data);
                return 0;
            });
        },
    };
    return &functions;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ciwrap_table* ciwrap_record_table(
    std::uint32_t version) {
    return version == CIWRAP_TABLE_VERSION ? table() : nullptr;
}
