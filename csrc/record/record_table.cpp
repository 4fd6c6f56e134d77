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
#include <new>
#include <string>

#include "ciwrap/error.hpp"
#include "record/in_call.hpp"
#include "record/last_error.hpp"
#include "record/recorder.hpp"
#include "record/whole_struct.hpp"

using ciwrap::record::InCall;
using ciwrap::record::Recorder;

namespace {

// What the header sees, and what is behind it. Never destroyed: a program may still call when it
// has closed, from destructors and exit handlers, and from a callback.
struct Run : ciwrap_run {
    Run(const ciwrap_table* functions, const char* folder, const char* name, int rank, int ranks,
        const char* bounds)
        : ciwrap_run{functions},
          recorder(folder, name, rank, ranks, bounds,
                   ciwrap::record::OnlineOptions::from_environment()) {}
    Recorder recorder;
    std::atomic<bool> has_lost{false};  // something that came after it was closed
    Run* next = nullptr;
};

Recorder& recorder_of(ciwrap_run* run) {
    return static_cast<Run*>(run)->recorder;
}

// The last child made by fork() that was told so.
std::atomic<pid_t> told_of_child{0};

// All runs of this process, and those of its parent.
std::atomic<Run*> newest_run{nullptr};

const char* folder_of_run() {
    const char* const folder = std::getenv("CIWRAP_RECORD");
    return folder == nullptr ? "" : folder;
}

// A file beside the journals for what a process did not record at all: the journals of others do
// not tell of it, and without it would be taken for all that there is.
void tell_unrecorded(const char* what) noexcept {
    static std::atomic<int> count{0};
    std::fprintf(stderr, "ciwrap: nothing is recorded: %s\n", what);
    char path[4096];
    std::snprintf(path, sizeof path, "%s/unrecorded-%ld-%d.txt", folder_of_run(),
                  static_cast<long>(getpid()), count.fetch_add(1));
    if (std::FILE* const file = std::fopen(path, "wxe")) {
        std::fprintf(file, "%s\n", what);
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

// An array of a program that was compiled with an older or a newer header.
ciwrap_array given_array(const ciwrap_array* array) {
    return ciwrap::record::whole_struct<ciwrap_array>(&given(array, "an array"),
                                                      given(array, "an array").size,
                                                      ciwrap::record::first_array_bytes);
}

template <class Call>
auto guarded(ciwrap_run* run, Call call) -> decltype(call(recorder_of(run))) {
    using Result = decltype(call(recorder_of(run)));
    Recorder& recorder = recorder_of(run);
    const int before = errno;
    Result result{};
    if (ciwrap::record::is_in_call) {
        recorder.error().tell(CIWRAP_BAD_CALL, "a call from a signal handler");
        result = static_cast<Result>(-1);
    } else if (recorder.is_ours()) {
        const InCall in_call(true);
        try {
            result = call(recorder);
        } catch (const std::bad_alloc&) {
            // There is no memory to write it down with.
            recorder.error().tell(CIWRAP_NO_MEMORY, ciwrap::record::no_memory);
            result = static_cast<Result>(-1);
        } catch (const std::exception& error) {
            recorder.error().tell(CIWRAP_BAD_CALL, error.what());
            result = static_cast<Result>(-1);
        }
    }
    errno = before;
    return result;
}

// A call that records. In a child made by fork() it cannot: the journal is its parent's. Nor can it
// once the run is closed.
template <class Call>
int recording(ciwrap_run* run, Call call) {
    const int before = errno;
    const bool is_ours = recorder_of(run).is_ours();
    if (!is_ours && told_of_child.exchange(getpid()) != getpid())
        tell_unrecorded("this is a child of fork(); let it open a run with a rank of its own");
    errno = before;
    const int result = guarded(run, call);
    if (result != Recorder::lost)
        return result;
    if (!static_cast<Run*>(run)->has_lost.exchange(true))
        tell_unrecorded("a checkpoint came after the run was closed");
    errno = before;
    return -1;
}

// A program that ends without closing, or before it closes: what waits is written now.
void write_all_runs() {
    for (Run* run = newest_run.load(); run != nullptr; run = run->next) {
        (void)guarded(run, [](Recorder& one) {
            one.write_all();
            return 0;
        });
    }
}

const ciwrap_table* table();

ciwrap_run* open_run(const char* name, int rank, int ranks) {
    const int before = errno;
    const InCall in_call(true);
    ciwrap_run* opened = nullptr;
    try {
        const char* const bounds = std::getenv("CIWRAP_RECORD_BOUNDS");
        auto run = std::make_unique<Run>(table(), folder_of_run(), name == nullptr ? "" : name,
                                         rank, ranks, bounds == nullptr ? "" : bounds);
        static const int registered = std::atexit(write_all_runs);
        (void)registered;
        run->next = newest_run.load();
        while (!newest_run.compare_exchange_weak(run->next, run.get())) {
        }
        opened = run.release();
    } catch (const std::exception& error) {
        tell_unrecorded(ciwrap::record::words_of(error));
    }
    errno = before;
    return opened;
}

const ciwrap_table* table() {
    static const ciwrap_table functions = {
        sizeof(ciwrap_table),
        open_run,
        [](ciwrap_run* run, const ciwrap_array* array) {
            return guarded(run, [&](Recorder& one) { return one.add(given_array(array)); });
        },
        [](ciwrap_run* run, std::int64_t id, const ciwrap_array* array) {
            return guarded(run, [&](Recorder& one) { return one.replace(id, given_array(array)); });
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
        [](ciwrap_run* run) {
            return recording(run, [](Recorder& one) { return one.complete(); });
        },
        [](ciwrap_run* run, std::int64_t iteration, const char* point, int flags) {
            return recording(run, [&](Recorder& one) {
                return one.checkpoint(iteration, given_text(point, "a point's name"), flags);
            });
        },
        [](ciwrap_run* run) { return guarded(run, [](Recorder& one) { return one.errors(); }); },
        [](ciwrap_run* run) { return guarded(run, [](Recorder& one) { return one.close(); }); },
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
        [](ciwrap_run* run, const ciwrap_array* array) {
            return recording(run, [&](Recorder& one) { return one.expose(given_array(array)); });
        },
        [](ciwrap_run* run, char* text, std::size_t bytes) {
            return recorder_of(run).error().last(text, bytes);
        },
        [](ciwrap_run* run, const char* text) {
            return guarded(run, [&](Recorder& one) {
                return one.report(given_text(text, "an error's words"));
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
