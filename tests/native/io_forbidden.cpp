// io_uring forbidden by a seccomp filter, as container runtimes install it: set up in a child
// process, since a filter cannot be taken off again.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>

#include "io_fixtures.hpp"

namespace ciwrap::testing {
namespace {

// Lets one system call fail with `error` in this process from here on.
bool forbid(long call, unsigned error) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog filter{4, program};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Runs in the child: 0 if everything is as it should be, else the number of the check that failed.
int check_fallback(const std::string& path, long call, unsigned error, const char* reason) {
    if (!forbid(call, error)) {
        return 77;
    }
    const EngineReport report = io_engine_report().front();
    if (report.usable || report.reason.find(reason) == std::string::npos) {
        std::fprintf(stderr, "reason: %s\n", report.reason.c_str());
        return 1;
    }
    try {
        const ReadEngine forced({.kind = EngineKind::io_uring});
        return 2;
    } catch (const Error& refused) {
        if (refused.code() != ErrorCode::not_available ||
            std::string(refused.what()).find(report.reason) == std::string::npos) {
            return 3;
        }
    }
    const InputFile file(path);
    ReadEngine engine;
    if (engine.name() != "pread" || engine.fallback_reason() != report.reason) {
        return 4;
    }
    std::vector<std::byte> bytes(file.size());
    const ReadRequest whole{&file, 0, bytes.size(), bytes.data()};
    engine.read({&whole, 1});
    return first_wrong_byte(bytes, 0) == -1 ? 0 : 5;
}

class Forbidden : public IoFiles, public ::testing::WithParamInterface<int> {};

TEST_P(Forbidden, AutomaticFallsBackAndAForcedEngineIsAnError) {
    struct Case {
        long call;
        unsigned error;
        const char* reason;
    };
    const Case cases[] = {
        {SYS_io_uring_setup, EPERM, "io_uring_setup: Operation not permitted (forbidden"},
        {SYS_io_uring_setup, ENOSYS, "io_uring_setup: Function not implemented (the kernel"},
        {SYS_io_uring_enter, EPERM, "io_uring_enter: Operation not permitted (forbidden"},
    };
    const Case& tried = cases[GetParam()];
    // Where it is forbidden already, the reason is this machine's own.
    const char* reason = io_engine_report().front().usable ? tried.reason : "";
    const std::string path = make_file("a.bin", 2'000'000);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        ::_exit(check_fallback(path, tried.call, tried.error, reason));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        GTEST_SKIP() << "this process may not install a seccomp filter";
    }
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(Calls, Forbidden, ::testing::Range(0, 3));

}  // namespace
}  // namespace ciwrap::testing
