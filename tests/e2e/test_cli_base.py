"""`ciwrap run --base`: two revisions and no golden, and the repository left as it was."""

from __future__ import annotations

import _ctypes
import json
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from e2e.cli_project import Project
from git_repository import GitRepository

if TYPE_CHECKING:
    from e2e.cli_project import Outcome

BOUND = 1e-6
CONFIG = f"""
run: [{sys.executable!r}, simulate.py]
checks:
  fields: {{outputs: out, atol: {BOUND}}}
"""
# `{line}` is what a revision does of its own. The file is a table, so NumPy need not be started.
PROGRAM = """
import os, sys
os.makedirs("out", exist_ok=True)
x, by = 1.0, {by!r}
{line}
with open("out/t.csv", "w") as file:
    file.write("i,x,y\\n")
    file.writelines(f"{{i}},{{x + i + by!r}},{{2.0 * i!r}}\\n" for i in range(5))
"""


class Revisions(Project):
    """A branch `work`, and a `main` that it left."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.repository = GitRepository.make(folder)
        self.base = self.commit(0, more={"ciwrap.yaml": CONFIG, ".gitignore": "out/\nout.*\n"})
        self.repository.git("switch", "--quiet", "-c", "work")

    def program(self, by: float = 0.0, line: str = "") -> str:
        return PROGRAM.format(by=by, line=line)

    def commit(self, by: float, line: str = "", more: dict[str, str] | None = None) -> str:
        return self.repository.commit(
            f"by {by}", {"simulate.py": self.program(by, line), **(more or {})}
        )

    def against(self, *arguments: str, **env: str) -> Outcome:
        """Runs it, and sees that nothing is left."""
        before = self.repository.state()
        outcome = self.run("run", "--base", *(arguments or ("main",)), **env)
        assert self.repository.state() == before
        assert not (self.folder / ".ciwrap/revisions").exists()
        assert not (self.folder / ".ciwrap/repeat").exists()
        return outcome


@pytest.fixture
def project(tmp_path: Path) -> Revisions:
    return Revisions(tmp_path / "p")


def test_a_planted_change_differs_and_is_told_everywhere(project: Revisions) -> None:
    project.commit(1e-3)
    page, junit, summary = (project.folder / f"out.{one}" for one in ("html", "xml", "md"))
    documents = ("--report", str(page), "--junit", str(junit), "--markdown", str(summary))
    outcome = project.run("run", "--base", "main", *documents)
    assert outcome.code == 1
    assert outcome.document["kind"] == "run --base"
    assert outcome.variable("t/x")["verdict"] == "differ"
    assert outcome.variable("t/y")["verdict"] == "match"
    assert f"note: A is main ({project.base[:10]}); B is the working tree (" in outcome.out
    assert "A 1.0, B 1.001" in outcome.out
    assert "ciwrap accept" not in outcome.out
    assert "golden" not in outcome.out
    assert "B" in page.read_text()
    assert all(word in summary.read_text() for word in ("t/x", "note: A is main ("))
    (suite,) = ElementTree.parse(junit).getroot().iter("testsuite")
    assert suite.get("failures") == "1"


def test_equal_revisions_match_within_the_checks_bound(project: Revisions) -> None:
    project.commit(BOUND / 2)
    outcome = project.against()
    assert (outcome.code, outcome.document["verdict"]) == (0, "match")
    assert not (project.folder / "golden").exists()
    # The same is beyond a bound that the present configuration asks for.
    project.commit(BOUND / 2, more={"ciwrap.yaml": CONFIG.replace(str(BOUND), str(BOUND / 4))})
    outcome = project.against()
    assert outcome.code == 1
    assert "A has another ciwrap.yaml; the present one holds for both sides" in outcome.out


def test_a_branch_counts_where_this_one_left_it_and_a_commit_as_it_is(project: Revisions) -> None:
    project.commit(0, "# work")
    project.repository.git("switch", "--quiet", "main")
    moved = project.commit(1.0)
    project.repository.git("tag", "v2")
    project.repository.git("switch", "--quiet", "work")
    outcome = project.against("main")
    assert outcome.code == 0
    assert f"A is main ({project.base[:10]}), where this branch left it;" in outcome.out
    for name in ("v2", moved):
        assert project.against(name).code == 1
    outcome = project.against("no-such-branch")
    assert outcome.code == 2
    assert "there is no commit 'no-such-branch'" in outcome.err


@pytest.mark.slow
def test_a_clone_of_ci_has_the_base_as_a_remote_branch(project: Revisions) -> None:
    project.commit(1e-3)
    project.repository.git("update-ref", "refs/remotes/origin/main", "main")
    project.repository.git("branch", "-D", "main")
    outcome = project.against("main")
    assert outcome.code == 1
    assert f"A is origin/main ({project.base[:10]})" in outcome.out


def test_changes_that_are_not_committed_count_and_are_told(project: Revisions) -> None:
    (project.folder / "simulate.py").write_text(project.program(1e-3))
    outcome = project.against("HEAD")
    assert outcome.code == 1
    assert "with changes of simulate.py that are not committed" in outcome.out
    project.repository.git("restore", "simulate.py")
    outcome = project.against("HEAD")
    assert outcome.code == 0
    assert "both sides are one and the same program" in outcome.out


def test_a_base_without_the_configuration_is_judged_by_the_present_one(tmp_path: Path) -> None:
    project = Revisions(tmp_path / "p")
    project.repository.git("rm", "--quiet", "ciwrap.yaml")
    project.commit(0)
    project.repository.git("branch", "bare")
    project.commit(1e-3, more={"ciwrap.yaml": CONFIG})
    outcome = project.against("bare")
    assert outcome.code == 1
    assert "A does not have ciwrap.yaml; the present one holds for both sides" in outcome.out


def test_a_base_that_fails_is_said_as_such_and_this_side_is_not_run(project: Revisions) -> None:
    project.commit(0, "sys.exit('no mesh')")
    project.repository.git("branch", "--force", "main", "work")
    project.commit(0, "open('out/ran', 'w')")
    outcome = project.against()
    assert outcome.code == 3
    assert "at main (" in outcome.out
    assert "ended with exit code 1, so its outputs were not compared" in outcome.out
    assert "A's working tree holds what git tracks" in outcome.out
    assert not (project.folder / "out/ran").exists()


def test_a_build_that_fails_at_the_base_is_said_as_such(project: Revisions) -> None:
    build = CONFIG + "timing: {build: test -e Makefile}\n"
    project.commit(0, more={"ciwrap.yaml": build, "Makefile": ""})
    outcome = project.against()
    assert outcome.code == 3
    assert f"the build of main ({project.base[:10]}) (test -e Makefile) ended" in outcome.err
    assert outcome.document["kind"] == "run --base"
    assert outcome.document["messages"][0]["slug"] == "command-failed"
    # It is built before it runs, on both sides.
    line = "by = float(open('built').read())"
    build = CONFIG + "timing: {build: 'cat by > built'}\n"
    project.commit(0, line, more={"ciwrap.yaml": build, "by": "1", ".gitignore": "out/\nbuilt\n"})
    project.repository.git("branch", "--force", "main", "work")
    project.commit(0, line, more={"by": "2"})
    outcome = project.against()
    assert (outcome.code, outcome.variable("t/x")["max_abs_difference"]) == (1, 1.0)


def test_old_outputs_prove_nothing_on_either_side(project: Revisions) -> None:
    """What git tracks lies in the base's working tree before the command has run."""
    project.against()
    project.repository.git("add", "--force", "out")
    project.commit(0, "sys.exit()")
    project.repository.git("branch", "--force", "main", "work")
    project.commit(0)
    outcome = project.run("run", "--base", "main")
    assert outcome.code == 3
    assert "at main (" in outcome.out


def test_a_command_may_be_given(project: Revisions) -> None:
    project.commit(0)
    line = (
        "mkdir -p out; echo x > out/t.csv; echo 1 >> out/t.csv; test -e new && echo 2 >> out/t.csv"
    )
    (project.folder / "new").touch()
    outcome = project.run("run", "--base", "main", "--command", f"{line}; true")
    assert outcome.code == 3
    assert "shape" in outcome.out
    outcome = project.run("run", "--base", "main", "--", sys.executable, "simulate.py")
    assert outcome.code == 0


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--pending",), "--pending cannot be used with --base"),
        (("--golden-dir", "x"), "--golden-dir cannot be used with --base"),
        (("--repeat", "3", "--junit", "out.xml"), "--junit cannot be used with --repeat"),
    ],
)
def test_what_has_no_meaning_is_refused(
    project: Revisions, arguments: tuple[str, ...], words: str
) -> None:
    outcome = project.against("main", *arguments)
    assert outcome.code == 2
    assert words in outcome.err
    assert "--repeat needs --base" in project.run("run", "--repeat", "3").err


def test_outputs_outside_of_the_repository_are_refused(project: Revisions) -> None:
    config = CONFIG.replace("outputs: out", "outputs: ../elsewhere")
    (project.folder / "ciwrap.yaml").write_text(config)
    outcome = project.against()
    assert outcome.code == 2
    assert (
        "the outputs of check 'fields' lie outside of the repository (../elsewhere)" in outcome.err
    )


def test_outputs_behind_a_link_are_not_compared_with_themselves(
    project: Revisions, tmp_path: Path
) -> None:
    (tmp_path / "scratch").mkdir()
    (project.folder / "out").symlink_to(tmp_path / "scratch")
    project.commit(0, more={".gitignore": ""})
    project.repository.git("branch", "--force", "main", "work")
    project.commit(1.0)
    outcome = project.run("run", "--base", "main")
    assert outcome.code == 3
    assert "would be compared with itself" in outcome.out


@pytest.mark.linux
@pytest.mark.slow
def test_a_program_of_this_working_tree_is_no_base(project: Revisions) -> None:
    """An absolute path in the command means the same program on both sides."""
    program = project.folder / "wait"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    config = CONFIG.replace("run: [", f"run: '{program} 0.5; ").replace(
        ", simulate.py]", " simulate.py'"
    )
    config = config.replace(repr(sys.executable), sys.executable)
    project.commit(0, more={"ciwrap.yaml": config, ".gitignore": "out/\nwait\n"})
    project.repository.git("branch", "--force", "main", "work")
    project.commit(1.0)
    outcome = project.against()
    assert outcome.code == 3
    assert "the command ran wait of the working tree here" in outcome.err


@pytest.mark.linux
@pytest.mark.slow
def test_a_package_that_is_installed_from_here_is_no_base(
    project: Revisions, tmp_path: Path
) -> None:
    """Unless the base has imported its own. What a program loads tells where packages lie."""
    site = tmp_path / "site-packages"
    (site / "sim-1.dist-info").mkdir(parents=True)
    url = json.dumps({"url": project.folder.as_uri(), "dir_info": {"editable": True}})
    (site / "sim-1.dist-info/direct_url.json").write_text(url)
    library = Path(_ctypes.__file__)
    (site / "_ctypes.so").write_bytes(library.read_bytes())
    line = f"import time, ctypes; ctypes.CDLL({str(site / '_ctypes.so')!r}); time.sleep(0.5)"
    package = "import os, sys\nsys.path.append(os.environ.get('WHERE', 'src'))\nimport sim\n"
    source = {"src/sim/__init__.py": project.program(0, line), "simulate.py": package}
    config = CONFIG.replace("[", f"[env, WHERE={project.folder}/src, ", 1)
    ignored = {".gitignore": "out/\n__pycache__/\n"}
    for by, words in ((0.0, config), (1e-3, config)):
        source["src/sim/__init__.py"] = project.program(by, line)
        project.repository.commit("x", {**source, **ignored, "ciwrap.yaml": words})
        if by == 0:
            project.repository.git("branch", "--force", "main", "work")
    outcome = project.against()
    assert outcome.code == 3
    assert "the Python package sim is installed from the working tree here" in outcome.err
    (project.folder / "ciwrap.yaml").write_text(CONFIG)
    assert project.against().code == 1


@pytest.mark.slow
def test_submodules_are_told(project: Revisions, tmp_path: Path) -> None:
    other = GitRepository.make(tmp_path / "lib")
    other.commit("Begin", {"a": "1"})
    allow = ("-c", "protocol.file.allow=always")
    project.repository.git(*allow, "submodule", "--quiet", "add", str(other.folder), "ext/lib")
    project.commit(0)
    project.repository.git("branch", "--force", "main", "work")
    project.commit(0, "# more")
    outcome = project.against()
    assert outcome.code == 0
    assert "A was run without its submodules (ext/lib)" in outcome.out


@pytest.mark.slow
def test_what_the_configuration_states_is_judged_here(project: Revisions) -> None:
    """A time may move within its range, where a value that a golden would judge may not."""
    log = "open('out/log', 'w').write(f'took {by} s\\nenergy {by // 10}\\n')"
    config = CONFIG.replace(
        f"outputs: out, atol: {BOUND}",
        "outputs: out/log, format: log, values: {time: {match: 'took {time}', range: [0, 5]},"
        " energy: 'energy {energy}'}",
    )
    project.commit(1.0, log, more={"ciwrap.yaml": config})
    project.repository.git("branch", "--force", "main", "work")
    for by, code in ((2.0, 0), (6.0, 1), (-9.0, 1)):
        project.commit(by, log)
        outcome = project.against()
        assert outcome.code == code, outcome
    assert "compared 2 variables, 2 values" in outcome.out


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_ended_leaves_nothing(project: Revisions, number: int) -> None:
    project.commit(0, "import time; time.sleep(60)")
    project.repository.git("branch", "--force", "main", "work")
    before = project.repository.state()
    process = project.begin("run", "--base", "main")
    _wait_for_run(project)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert project.repository.state() == before
    assert not (project.folder / ".ciwrap/revisions").exists()


def test_what_a_killed_run_left_the_next_one_removes(project: Revisions) -> None:
    project.commit(0, "import time; time.sleep(60)")
    project.repository.git("branch", "--force", "main", "work")
    process = project.begin("run", "--base", "main")
    _wait_for_run(project)
    process.kill()
    process.communicate(timeout=30)
    assert [*(project.folder / ".ciwrap/revisions").iterdir()]
    project.commit(0)
    project.repository.git("branch", "--force", "main", "work")
    outcome = project.run("run", "--base", "main")
    assert outcome.code == 0
    assert not (project.folder / ".ciwrap/revisions").exists()
    assert len(project.repository.git("worktree", "list").splitlines()) == 1


def _wait_for_run(project: Revisions) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if [*(project.folder / ".ciwrap").glob("revisions/*/out")]:
            return
        time.sleep(0.02)
    raise AssertionError("the base's command did not begin")


NOISE = "import random; x += 1e-4 * random.random()"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "count", "code", "words"),
    [
        (0.0, 8, 0, " by more than the bound, but not than the noise: t/x"),
        (1e-2, 8, 1, " by more than the bound and the noise: t/x"),
        (1e-2, 2, 3, "2 runs of each cannot tell whether this differs from main ("),
    ],
)
def test_repeated_runs_tell_noise_from_a_change(
    project: Revisions, by: float, count: int, code: int, words: str
) -> None:
    line = f"{NOISE}; random.seed(int(sys.argv[1])); x = 1 + 1e-4 * random.random()"
    config = CONFIG.replace("simulate.py]", "simulate.py, '{seed}']")
    project.commit(0, line, more={"ciwrap.yaml": config})
    project.repository.git("branch", "--force", "main", "work")
    project.commit(by, line)
    outcome = project.against("main", "--repeat", str(count))
    assert outcome.code == code, outcome
    assert words in outcome.out.splitlines()[0]
    assert outcome.document["kind"] == "repeat"
    assert len(outcome.document["runs"]) == 2 * count
    assert "would hold" not in outcome.out


def test_equal_runs_have_no_noise(project: Revisions) -> None:
    project.commit(1e-3)
    outcome = project.against("main", "--repeat", "2")
    assert outcome.code == 1
    assert "changes t/x" in outcome.out


@pytest.mark.slow
def test_equal_runs_within_the_bound_are_good(project: Revisions) -> None:
    project.commit(BOUND / 2)
    outcome = project.against("main", "--repeat", "2")
    assert outcome.code == 0
    assert "by no more than the bound, in 2 runs of each" in outcome.out.splitlines()[0]


@pytest.mark.slow
def test_a_side_that_fails_among_repeated_runs_is_told(project: Revisions) -> None:
    project.commit(0, "sys.exit('no mesh')")
    outcome = project.against("main", "--repeat", "2")
    assert outcome.code == 3
    assert "run 2: B: the command ended with exit code 1" in outcome.out
    project.repository.git("branch", "--force", "main", "work")
    outcome = project.against("main", "--repeat", "2")
    assert outcome.code == 3
    assert "error: at main (" in outcome.err


@pytest.mark.slow
def test_outputs_that_a_killed_call_set_aside_come_back(project: Revisions) -> None:
    project.against()
    written = (project.folder / "out/t.csv").read_text()
    project.commit(1.0, "import time; time.sleep(60)")
    process = project.begin("run", "--base", "main", "--repeat", "2")
    deadline = time.monotonic() + 30
    while not (project.folder / ".ciwrap/repeat/before/out/t.csv").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=30)
    project.commit(1.0)
    outcome = project.run("run", "--base", "main", "--repeat", "2")
    assert outcome.code == 1
    assert "the outputs that it had set aside are back" in outcome.out
    assert (project.folder / "out/t.csv").read_text() == written
    assert not (project.folder / ".ciwrap/revisions").exists()


CPP = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.16)\nproject(heat CXX)\n"
    "add_executable(heat heat.cpp)\n",
    "heat.cpp": """
#include <fstream>
int main() {
  double u[64] = {};
  u[32] = 1.0;
  for (int t = 0; t < 50; ++t)
    for (int i = 1; i < 63; ++i) u[i] += 0.25 * (u[i - 1] - 2 * u[i] + u[i + 1]);
  std::ofstream file("out/u.csv");
  file.precision(17);
  file << "u\\n";
  for (double x : u) file << x << "\\n";
}
""",
    "ciwrap.yaml": "run: mkdir -p out && build/heat\n"
    "timing: {build: cmake -S . -B build && cmake --build build}\n"
    "checks: {heat: {outputs: out, atol: 1e-12}}\n",
}
FORTRAN = {
    "heat.f90": """
program heat
  double precision :: u(64) = 0d0
  integer :: i, t
  u(32) = 1d0
  do t = 1, 50
    do i = 2, 63
      u(i) = u(i) + 0.25d0 * (u(i - 1) - 2 * u(i) + u(i + 1))
    end do
  end do
  open (10, file="out/u.csv")
  write (10, "(a)") "u"
  write (10, "(es24.16)") u
end program
""",
    "ciwrap.yaml": "run: mkdir -p out && gfortran heat.f90 -o heat && ./heat\n"
    "checks: {heat: {outputs: out, atol: 1e-12}}\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "source", "tool"),
    [(CPP, "heat.cpp", "cmake"), (FORTRAN, "heat.f90", "gfortran")],
    ids=["C++ with CMake", "Fortran"],
)
def test_a_project_that_is_built(
    tmp_path: Path, files: dict[str, str], source: str, tool: str
) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool}")
    project = Revisions(tmp_path / "p")
    project.repository.commit("Heat", {**files, ".gitignore": "out/\nbuild/\nheat\n"})
    project.repository.git("branch", "--force", "main", "work")
    path = project.folder / source
    # The same arithmetic, then another constant, then what does not build.
    good = path.read_text()
    path.write_text(good.replace("2 * ", "2.0 * "))
    assert project.against().code == 0
    path.write_text(good.replace("0.25", "0.2500001"))
    outcome = project.against()
    assert (outcome.code, outcome.document["verdict"]) == (1, "differ")
    assert f"with changes of {source} that are not committed" in outcome.out
    path.write_text("?")
    outcome = project.against()
    assert outcome.code == 3
    project.repository.git("commit", "--quiet", "--all", "-m", "broken")
    project.repository.git("branch", "--force", "main", "work")
    path.write_text(good)
    outcome = project.against()
    assert outcome.code == 3
    assert "main (" in outcome.out + outcome.err
