"""Whatever a program does with its recorder and its arrays, it ends as it does without recording.

What was lost is counted, and makes a run that matches nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from e2e.online_runs import ciwrap, quietly
from recorded_runs import build, need_library, recording, start

from ciwrap.base.errors import ExitCode
from ciwrap.recording.native import include_folder

PROGRAM = r"""
#include <ciwrap/record.hpp>
#include <sys/mman.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

static std::unique_ptr<ciwrap::Recorder> global;

struct Singleton {
    ciwrap_run* run = nullptr;
    std::vector<double> last = std::vector<double>(1000, 2.0);
    ~Singleton() {
        std::puts("singleton ends");
        if (run == nullptr) return;
        ciwrap_array array{};
        array.size = sizeof array;
        array.name = "last";
        array.dtype = "f8";
        array.data = last.data();
        array.dimensions = 1;
        array.extents[0] = 1000;
        ciwrap_prepare(run, 7, "");
        ciwrap_expose(run, &array);
        ciwrap_complete(run);
        ciwrap_close(run);
        ciwrap_close(run);
    }
};
static Singleton singleton;

static void close_global() {
    if (global) global->close();
    std::puts("exit handler");
}

static void finish(void* data, const ciwrap_divergence*) {
    static_cast<ciwrap::Recorder*>(data)->close();
}

static void leave(void*, const ciwrap_divergence*) { std::exit(5); }

int main(int, char** words) {
    const std::string what = words[1];
    if (what == "handler before") std::atexit(close_global);
    if (what == "singleton") singleton.run = ciwrap_open("s", 0, 1);
    else global = std::make_unique<ciwrap::Recorder>("g");
    if (what == "handler after") std::atexit(close_global);
    std::vector<double> big(1 << 19, 1.0), other(1 << 19, 1.0);
    const double moved = std::atof(words[2]);
    big[77] += moved;
    ciwrap::Recorder* const r = global.get();
    if (r) {
        if (what == "callback closes") r->on_divergence(finish, r);
        if (what == "callback exits") r->on_divergence(leave);
        r->add("big", big);
        r->checkpoint(0);
    }
    if (what == "gone") {
        std::vector<double>().swap(big);
        r->checkpoint(1);
    } else if (what == "removed") {
        r->remove("big");
        std::vector<double>().swap(big);
        r->checkpoint(1);
    } else if (what == "swapped") {
        std::swap(big, other);
        r->checkpoint(1);
    } else if (what == "after the end") {
        r->close();
        r->checkpoint(1);
        r->close();
    } else if (what == "throws") {
        try {
            ciwrap::Recorder second("second");
            throw std::runtime_error("out");
        } catch (const std::exception& error) {
            std::puts(error.what());
        }
    } else if (what == "callback closes") {
        r->checkpoint(1);
        std::puts("goes on");
    } else if (what == "leaked") {
        global.release();
    } else if (what == "quick") {
        std::fflush(stdout);
        std::_Exit(4);
    }
    std::puts("main ends");
    return 3;
}
"""

# What the run lacks, or "" if it is all there.
LIVES = {
    "global": "",
    "leaked": "",
    "handler before": "",
    "handler after": "",
    "singleton": "",
    "removed": "",
    "throws": "another process records as rank 0",
    "gone": "big: its memory is not there any more",
    "after the end": "a checkpoint came after the run was closed",
    "callback closes": "a checkpoint came after the run was closed",
    "callback exits": "",
    "quick": "not all was recorded",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_library()
    folder = tmp_path_factory.mktemp("lives")
    source = folder / "lives.cpp"
    source.write_text(PROGRAM)
    return build("c++", ["-std=c++17", f"-I{include_folder()}", source], folder / "lives")


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("life", LIVES)
def test_a_program_ends_as_without_recording(
    program: Path, life: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorder in a global crashed at exit, as did an array that was no more, and a callback
    that closed.
    """
    monkeypatch.chdir(tmp_path)
    is_answered = life.startswith("callback")
    moved = "1" if is_answered else "0"
    expected = start([program, life, moved], recording(None))
    if life == "callback exits":  # nobody calls it back without recording
        expected.returncode, expected.stdout = 5, "singleton ends\n"
    options = []
    if is_answered:
        other = ciwrap("record", "-o", "old", "--", str(program), "global", "0")
        assert "recorded 1 iteration" in other[1]
        options = ["--against", "old", "--on-divergence", "callback"]
    words = [sys.executable, "-c", RUN, str(program), life, moved]
    code, text = ciwrap("record", "-o", "new", *options, "--", *words)
    assert f"ended with {expected.returncode}, said {expected.stdout!r}" in text
    lost = LIVES[life]
    if lost:  # which weighs more than a difference
        assert code == ExitCode.NOT_COMPARABLE, text
    else:
        assert code == (ExitCode.DIFFER if is_answered else ExitCode.MATCH), text
    assert lost in text


RUN = """
import subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(f"ended with {done.returncode}, said {done.stdout!r}")
print(done.stderr, file=sys.stderr)
"""


def test_what_a_destructor_records_at_exit_is_kept(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [sys.executable, "-c", RUN, str(program), "singleton", "0"]
    assert ciwrap("record", "-o", "a", "--", *words)[0] == ExitCode.MATCH
    code, text = ciwrap("show", "a")
    assert code == ExitCode.MATCH
    assert "variable last" in text
    assert "iterations: 7" in text


def test_debug_mode_finds_a_vector_that_was_swapped(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its old memory was recorded, without a word."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIWRAP_RECORD_DEBUG", "1")
    words = [sys.executable, "-c", RUN, str(program), "swapped", "0"]
    code, text = ciwrap("record", "-o", "a", "--", *words)
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "big: was swapped or resized since it was added" in text


SOAK = r"""
#include <ciwrap/record.hpp>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static unsigned long state;
static unsigned draw(unsigned most) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return static_cast<unsigned>(state >> 33) % most;
}
static std::vector<double> arrays[3];
static std::unique_ptr<ciwrap::Recorder> recorder;
static ciwrap_run* raw = nullptr;
static long step = 0;
static bool is_defect = false, has_closed = false;

static std::vector<double> fresh() {
    static const unsigned sizes[] = {3, 500, 9000, 200000};
    return std::vector<double>(sizes[draw(4)], 0.25 * draw(100));
}
static std::vector<double> lent(const std::vector<double>& from) {
    std::vector<double> made = from;
    if (is_defect) {
        made[0] += 1;
        if (recorder && !has_closed) std::puts("seen");
    }
    return made;
}
static void expose() {
    if (!recorder) return;
    recorder->prepare(step, draw(2) ? "half" : "");
    for (int i = 0; i < 3; ++i)
        if (draw(3)) recorder->expose("lent" + std::to_string(i), lent(arrays[i]), {1e-9, -1});
    recorder->complete();
}
static void at_exit() {
    if (recorder && draw(2)) recorder->checkpoint(step++);
    if (recorder && draw(2)) recorder->close();
    if (raw) ciwrap_close(raw);
    std::puts("at exit");
}
static void act(unsigned what) {
    std::vector<double>& one = arrays[draw(3)];
    const std::string name = "x" + std::to_string(draw(3));
    switch (what) {
        case 0: if (!recorder) recorder = std::make_unique<ciwrap::Recorder>("soak"); break;
        case 1: if (recorder) recorder->add(name, one); break;
        case 2: if (recorder) recorder->remove(name); break;
        case 3: case 4: expose(); break;
        case 5: one = fresh(); break;
        case 6: std::swap(one, arrays[0]); break;
        case 7: if (recorder) recorder->checkpoint(step); break;
        case 8: if (draw(4) == 0 && recorder) recorder->close(), has_closed = true; break;
        case 9: if (draw(4) == 0) std::atexit(at_exit); break;
        case 10: if (draw(12) == 0 && !raw) raw = ciwrap_open("raw", 0, 1); break;
        case 11: {
            std::fflush(stdout);
            const pid_t child = fork();
            if (child == 0) {
                if (draw(4) == 0) expose();
                if (recorder && draw(4) == 0) recorder->checkpoint(step);
                if (draw(2)) std::_Exit(3);
                std::exit(4);
            }
            int status = 0;
            waitpid(child, &status, 0);
            std::printf("child %d\n", WEXITSTATUS(status));
            break;
        }
        case 12:
            if (draw(12)) break;
            try {
                ciwrap::Recorder other("other", 1, 2);
                other.add("o", one);
                if (draw(2)) throw std::runtime_error("thrown");
            } catch (const std::exception& error) {
                std::puts(error.what());
            }
            break;
        case 13: one.push_back(1.0); break;
        case 14:
            if (recorder) {
                recorder->prepare(step);
                recorder->work();
                if (draw(12)) recorder->complete();
            }
            break;
        default: one[0] += 0.5;
    }
}
int main(int, char** words) {
    state = std::strtoul(words[1], nullptr, 10) * 7919 + 1;
    is_defect = words[2][0] == '1';
    for (auto& one : arrays) one = fresh();
    const unsigned count = 5 + draw(40);
    for (unsigned i = 0; i < count; ++i) {
        act(i == 0 && draw(4) ? 0 : draw(17));
        step += draw(2);
        std::printf("%g\n", arrays[0][0] + arrays[1][0] + arrays[2].back());
    }
    std::fflush(stdout);
    switch (draw(5)) {
        case 0: return 3;
        case 1: std::exit(7);
        case 2: std::_Exit(8);
        case 3: recorder.reset(); return 0;
        default: return 0;
    }
}
"""


@pytest.fixture(scope="module")
def soak(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_library()
    folder = tmp_path_factory.mktemp("soak")
    source = folder / "soak.cpp"
    source.write_text(SOAK)
    return build("c++", ["-std=c++17", f"-I{include_folder()}", source], folder / "soak")


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 1040), marks=pytest.mark.slow)]
)
def test_random_lives_change_nothing_and_match_nothing_wrongly(
    soak: Path, seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    matched = 0
    for seed in seeds:
        expected = start([soak, str(seed), "0"], recording(None))
        runs = (Path(f"a{seed}"), Path(f"b{seed}"))
        done = start([soak, str(seed), "0"], recording(runs[0]))
        assert (done.returncode, done.stdout) == (expected.returncode, expected.stdout), seed
        if seed % 4 or not runs[0].is_dir():
            continue
        moved = start([soak, str(seed), "1"], recording(runs[1]))
        code = quietly("compare", *map(str, runs))
        assert code != ExitCode.MATCH or "seen" not in moved.stdout, seed
        again = start([soak, str(seed), "0"], recording(Path(f"c{seed}")))
        assert again.returncode == expected.returncode
        code = quietly("compare", str(runs[0]), f"c{seed}")
        matched += code == ExitCode.MATCH
    assert matched > 0
