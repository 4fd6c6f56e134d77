"""Kokkos programs that know nothing of ciwrap: Views by label, recorded through Kokkos's tools."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from recorded_runs import build, captured, find_kokkos_with_tools, need_library, roots

from ciwrap import _core
from ciwrap.base.errors import ExitCode, NotAvailableError
from ciwrap.cli.main import run as run_cli
from ciwrap.recording.native import kokkos_path

EXAMPLE = Path(__file__).parents[2] / "examples" / "recording" / "unchanged.cpp"

# Does what Kokkos does: loads the tool, lays out its allocations behind a header, tells of them.
# Its arguments are words: what is otherwise than with a Kokkos that we know.
STAND_IN = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { char name[64]; } space;
typedef struct { void (*fence)(uint32_t); void (*padding[31])(void); } actions;
static int fences;
static void fence(uint32_t device) { (void)device; ++fences; }
static char memory[4][128 + 600 * 8];
static double* data(int i) { return (double*)(memory[i] + 128); }
static void* tool;
static void* find(const char* name) { return dlsym(tool, name); }
typedef void (*told)(space, const char*, const void*, uint64_t);
static void tell(const char* what, int i, const char* where, const char* label) {
    space one = {{0}};
    strcpy(one.name, where);
    ((told)find(what))(one, label, memory[i], 600 * 8);
    strncpy(memory[i] + sizeof(void*), label, 119); /* filled in afterwards, as Kokkos does it */
}
int main(int count, char** words) {
    uint64_t version = 20240906, kernel = 7;
    const char* where = "Host";
    int i, n, wrong = -1, header = 1, twins = 0;
    actions given = {fence, {0}};
    for (i = 1; i < count; ++i) {
        if (!strcmp(words[i], "version")) version = strtoull(words[++i], 0, 10);
        else if (!strcmp(words[i], "wrong")) wrong = atoi(words[++i]);
        else if (!strcmp(words[i], "space")) where = words[++i];
        else if (!strcmp(words[i], "header")) header = 0;
        else if (!strcmp(words[i], "twins")) twins = 1;
    }
    tool = dlopen(strtok(getenv("KOKKOS_TOOLS_LIBS"), ";"), RTLD_NOW);
    if (!tool) return 9;
    ((void (*)(int, uint64_t, uint32_t, void*))find("kokkosp_init_library"))(0, version, 0, 0);
    ((void (*)(uint32_t, actions))find("kokkosp_provide_tool_programming_interface"))(1, given);
    tell("kokkosp_allocate_data", 0, where, "field one");
    tell("kokkosp_allocate_data", 1, "Host", "other");
    if (twins) tell("kokkosp_allocate_data", 2, "Host", "field one");
    if (!header) memory[0][10] ^= 1;
    for (n = 0; n < 6; ++n) {
        ((void (*)(const char*))find("kokkosp_push_profile_region"))("outer");
        ((void (*)(const char*, uint32_t, uint64_t*))find("kokkosp_begin_parallel_for"))(
            "advance", 0, &kernel);
        for (i = 0; i < 600; ++i) data(0)[i] = 0.25 * i * n + (n == wrong && i == 321);
        ((void (*)(uint64_t))find("kokkosp_end_parallel_for"))(kernel);
        ((void (*)(void))find("kokkosp_pop_profile_region"))();
        if (n == 3) { /* made anew, as when a View is resized */
            tell("kokkosp_deallocate_data", 0, where, "field one");
            tell("kokkosp_allocate_data", 0, where, "field one");
        }
    }
    tell("kokkosp_deallocate_data", 0, where, "field one");
    ((void (*)(void))find("kokkosp_finalize_library"))();
    return fences == 6 || version != 20240906 ? 0 : 8;
}
"""


def ciwrap(*words: str) -> tuple[int, str]:
    """Of a command that starts a program only stdout is told."""
    told = io.StringIO()
    errors = sys.__stderr__ if words[0] == "record" else told
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(errors or told):
        code = run_cli(words)
    return code, told.getvalue()


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> str:
    need_library()
    try:
        kokkos_path()
    except NotAvailableError:
        pytest.skip("the recording library is not built here")
    folder = tmp_path_factory.mktemp("stand-in")
    (folder / "program.c").write_text(STAND_IN)
    return str(build("cc", [folder / "program.c"], folder / "program"))


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def record(run: str, *words: str, view: str = "field*=f8[20,30]", step: str = "advance") -> int:
    return ciwrap("record", "--view", view, "--step", step, "-o", run, "--", *words)[0]


def expected(n: int, *, is_left: bool = False) -> bytes:
    """The root of the field in a step, by the core."""
    field = 0.25 * np.arange(600.0) * n
    if is_left:
        field = field.reshape(30, 20).T.copy()
    parameters = _core.TreeParameters("<f8", residue_levels=1)
    return _core.build_tree(parameters, field.tobytes()).root


@pytest.mark.parametrize(
    ("view", "shape"),
    [("field*=f8[20,30]", (20, 30)), ("field one=f8", (600,)), ("f*=f8[20,30]/left", (20, 30))],
)
@pytest.mark.parametrize("step", ["advance", "outer"])
def test_views_are_recorded_as_they_are(
    stand_in: str, view: str, shape: tuple[int, ...], step: str
) -> None:
    assert record("run", stand_in, view=view, step=step) == 0
    found = captured(Path("run"))
    assert {one.shape for one in found.values()} == {shape}
    assert roots(Path("run")) == {
        f"iter {n} / rank 0 / field one": expected(n, is_left="left" in view) for n in range(6)
    }


def test_a_defect_is_told(stand_in: str) -> None:
    assert record("a", stand_in) == 0
    assert record("b", stand_in, "wrong", "4") == 0
    code, text = ciwrap("compare", "a", "b")
    assert code == ExitCode.DIFFER, text
    assert "first difference: iter 4 / rank 0 / field one" in text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["twins"], "another one has the same label"),
        (["space", "Cuda"], "it is not in the host's memory"),
        (["header"], "this Kokkos lays its memory out otherwise"),
    ],
)
def test_what_cannot_be_recorded_is_no_match(
    stand_in: str, words: list[str], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for run in "ab":
        assert record(run, stand_in, *words) == ExitCode.NOT_COMPARABLE
    assert f"the View 'field one' is not recorded: {why}" in capfd.readouterr().err
    assert ciwrap("compare", "a", "b")[0] == ExitCode.NOT_COMPARABLE


def test_other_shapes_and_kokkos_are_refused(
    stand_in: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert record("a", stand_in, view="field*=f8[20,31]") == ExitCode.NOT_COMPARABLE
    assert "more or fewer bytes than the shape" in capfd.readouterr().err
    for number, version in enumerate(("20190101", "20990101")):
        assert record(f"v{number}", stand_in, "version", version) == ExitCode.NOT_COMPARABLE
        assert f"the tools interface {version}" in capfd.readouterr().err
    assert record("n", stand_in, view="nothing=f8") == ExitCode.NOT_COMPARABLE
    for words in (["--view", "x=f8"], ["--step", "s"], ["--view", "x=q8", "--step", "s"]):
        assert ciwrap("record", *words, "-o", "u", "--", "true")[0] == ExitCode.USAGE


@pytest.mark.slow
def test_a_program_with_kokkos(tmp_path: Path) -> None:
    need_library()
    package, cmake = find_kokkos_with_tools(), shutil.which("cmake")
    if package is None or cmake is None:
        pytest.skip("there is no Kokkos here that loads tools")
    folder = tmp_path / "build"
    for words in (
        ["-S", str(EXAMPLE.parent), "-B", str(folder), f"-DKokkos_DIR={package}", "-DWITH_MPI=OFF"],
        ["--build", str(folder), "--target", "unchanged"],
    ):
        if words[0] == "-S":
            words.append(f"-Dciwrap-record_DIR={Path(ciwrap('native', '--cmake')[1].strip())}")
        done = subprocess.run([cmake, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    program, view = str(folder / "unchanged"), "substance *=f8[66,66]"
    for run, more in (("a", []), ("b", []), ("c", ["7"])):
        assert record(run, program, *more, view=view, step="step") == 0
    found = captured(Path("a"))
    assert len(found) == 24
    assert {one.identity.name for one in found.values()} == {"substance u", "substance v"}
    assert ciwrap("compare", "a", "b")[0] == ExitCode.MATCH
    code, text = ciwrap("compare", "a", "c")
    assert code == ExitCode.DIFFER
    assert "first difference: iter 7 / rank 0 / substance v" in text
