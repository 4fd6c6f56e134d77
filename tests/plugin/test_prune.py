"""`ciwrap prune` deletes what the tests that are there now do not use; else it says why."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from plugin.conftest import Suite, summary

from ciwrap.cli import accept as prune
from ciwrap.golden.show import list_path

if TYPE_CHECKING:
    from pathlib import Path

TWO = """
    def test_a(ciwrap): ciwrap.check(1.0)
    def test_b(ciwrap): ciwrap.check(2.0); ciwrap.check(3.0, "more")
"""
LESS = TWO.replace('; ciwrap.check(3.0, "more")', "")
MORE = "golden/tests/test_it.goldens (test_b-more)"
# Its name in a parameter, and the data that make it, lie outside the test's file.
CASES = """
    from pathlib import Path
    FOUND = sorted(path.stem for path in Path(__file__).parent.glob("*.case"))
    @pytest.mark.parametrize("case", FOUND)
    def test_case(ciwrap, case): ciwrap.check(1.0)
"""


@pytest.fixture
def two(suite: Suite) -> Suite:
    """Three goldens, committed, of two tests."""
    suite.write(TWO)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    suite.git("init", "-q", "-b", "main")
    (suite.root / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
    commit(suite, "first")
    return suite


def commit(suite: Suite, title: str) -> None:
    suite.git("add", "-A")
    suite.git("commit", "-qm", title)


def note(suite: Suite, *arguments: str, text: str = LESS) -> None:
    """The tests no longer use one golden, and a run of them all finds it out."""
    suite.write(text)
    assert "unused" in summary(suite.run(*arguments))


def pruned(suite: Suite) -> str:
    done = suite.cli("prune", "--yes")
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_kept(suite: Suite, said: str, count: int = 3) -> None:
    before = suite.goldens()
    assert len(before) == count
    told = pruned(suite)
    assert suite.goldens() == before, told
    lines = [line for line in told.splitlines() if line.startswith("kept ")]
    assert len(lines) == 1, told
    assert said in lines[0]
    assert lines[0].endswith("; run all tests, then prune")


def test_what_was_found_in_this_state_is_deleted_also_after_a_commit(two: Suite) -> None:
    note(two)
    commit(two, "second")
    assert f"deleted  {MORE}\n" in pruned(two)
    assert len(two.goldens()) == 2
    assert "no unused golden was found" in pruned(two)


def test_another_branch(two: Suite) -> None:
    two.git("checkout", "-qb", "less")
    two.write(LESS)
    commit(two, "less")
    note(two)
    two.git("checkout", "-q", "main")
    assert_kept(two, "another commit is checked out")
    # And back: the project is what it was.
    two.git("checkout", "-q", "less")
    assert f"deleted  {MORE}\n" in pruned(two)


def test_another_branch_whose_tests_are_told_by_data(suite: Suite) -> None:
    suite.write(CASES)
    for name in "ab":
        (suite.root / f"tests/{name}.case").write_text("")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    suite.git("init", "-q", "-b", "main")
    commit(suite, "first")
    suite.git("checkout", "-qb", "less")
    (suite.root / "tests/b.case").unlink()
    assert "1 unused" in summary(suite.run())
    commit(suite, "less")
    suite.git("checkout", "-q", "main")
    assert_kept(suite, "files of the project have changed since", 2)


@pytest.mark.parametrize("with_git", [True, False])
def test_tests_that_have_changed_since(two: Suite, with_git: bool) -> None:
    if not with_git:
        shutil.rmtree(two.root / ".git")
    note(two)
    two.write(TWO)
    assert_kept(two, "files of the project have changed since")


@pytest.mark.parametrize("name", ["conftest.py", "tests/helper.py", "pytest.ini", "tests/more.py"])
def test_what_tests_are_made_of_has_changed_since(two: Suite, name: str) -> None:
    (two.root / "conftest.py").write_text("")
    (two.root / "tests/helper.py").write_text("")
    note(two)
    with (two.root / name).open("a") as stream:
        stream.write("\n# more\n")
    assert_kept(two, "files of the project have changed since")


def test_another_checkout(two: Suite, tmp_path: Path) -> None:
    note(two)
    commit(two, "second")
    other = tmp_path / "other"
    shutil.copytree(two.root, other, ignore=shutil.ignore_patterns("other"))
    done = subprocess.run(
        [sys.executable, "-m", "ciwrap", "prune", "--yes"],
        cwd=other,
        env=two.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"kept  1 golden that no test used: that was found in {two.root}" in done.stdout
    assert (other / "golden/tests/test_it.goldens").read_bytes() == (
        two.root / "golden/tests/test_it.goldens"
    ).read_bytes()


def test_another_golden_folder(two: Suite) -> None:
    """Goldens of the same names and numbers lie there."""
    shutil.copytree(two.root / "golden", two.root / "kept")
    note(two, "-o", "ciwrap_golden_dir=kept")
    assert_kept(two, "that was found of the golden folder kept")
    assert len(two.files("kept")) == 1


@pytest.mark.parametrize(
    "arguments",
    [("-k", "test_b"), ("-m", "fast"), ("--lf",), ("tests/test_it.py::test_b",), ("-n", "2")],
)
def test_a_run_of_a_part_forgets_what_is_of_another_state(
    two: Suite, arguments: tuple[str, ...]
) -> None:
    """What such a run cannot know stays unknown."""
    note(two)
    two.write(LESS.replace("def test_b", "@pytest.mark.fast\n    def test_b"))
    ini = two.root / "pytest.ini"
    ini.write_text(f"{ini.read_text()}markers = fast\n")
    if arguments[0] != "-n":
        two.run(*arguments)
        assert "no unused golden was found" in pruned(two)
        assert len(two.goldens()) == 3
        return
    assert two.subprocess(*arguments).returncode == 0
    assert f"deleted  {MORE}\n" in pruned(two)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("more", [(), ("-n", "2")])
def test_tests_named_on_the_command_line(two: Suite, more: tuple[str, ...]) -> None:
    two.write(LESS)
    done = two.subprocess("tests/test_it.py::test_b", "-p", "no:hypothesispytest", *more)
    assert done.returncode == 0, done.stdout
    assert "no unused golden was found" in pruned(two)
    assert len(two.goldens()) == 3


def test_a_file_that_cannot_be_collected(two: Suite) -> None:
    two.write("def test_c(): pass", "tests/test_other.py")
    two.write("import no_such_module")
    two.run("--continue-on-collection-errors")
    two.run()
    assert "no unused golden was found" in pruned(two)
    assert len(two.goldens()) == 3


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("where", ["", "def test_a(ciwrap):\n    "])
def test_a_run_that_was_interrupted(two: Suite, where: str) -> None:
    """While tests are collected, and while they run: those behind it did not say what they use."""
    two.write(f"{where}raise KeyboardInterrupt\ndef test_b(ciwrap): ciwrap.check(2.0)")
    assert two.subprocess().returncode == 2
    assert "no unused golden was found" in pruned(two)
    assert len(two.goldens()) == 3


def test_a_test_file_that_changes_while_the_tests_run(two: Suite) -> None:
    """What ran is no longer what is there."""
    edit = "    def test_z(): Path(__file__).write_text(Path(__file__).read_text() + '# more')\n"
    text = f"    from pathlib import Path\n{LESS}{edit}"
    two.write(text)
    result = two.run()
    assert "1 unused" in summary(result)
    assert (
        "  warning: tests/test_it.py has changed while the tests ran: nobody knows which goldens"
        " the tests use that are there now, so none is noted for `ciwrap prune`" in result.outlines
    )
    assert "  to delete what no test uses: ciwrap prune" not in result.outlines
    assert "no unused golden was found" in pruned(two)
    two.write(text)
    result = two.run("--ciwrap-unused=delete")
    assert "so none is deleted" in result.stdout.str()
    assert len(two.goldens()) == 3


def test_a_golden_written_between_the_look_and_the_deletion(two: Suite) -> None:
    from ciwrap.golden.places import Place
    from ciwrap.golden.show import UnusedGolden, delete_goldens

    other = UnusedGolden("tests/test_it", "test_b-more", "0" * 32)
    assert delete_goldens(two.root / "golden", [other]) == []
    assert len(two.goldens()) == 3
    assert other.place == Place("tests/test_it", "test_b-more")


def test_a_golden_that_cannot_be_read(two: Suite) -> None:
    """Its numbers may be others than when the tests ran."""
    two.write("def test_a(ciwrap): ciwrap.check(np.arange(5000.0))")
    two.run("--ciwrap-update=failed", "--ciwrap-reason=large")
    golden = two.root / "golden/tests/test_it/test_a.golden"
    golden.write_bytes(b"torn")
    two.write("def test_c(): pass")
    assert "3 unused" in summary(two.run())
    done = two.cli("prune", "--yes")
    assert "left as it is  golden/tests/test_it/test_a.golden: " in done.stdout
    assert golden.read_bytes() == b"torn"
    assert two.goldens() == ["tests/test_it/test_a.golden"]


def test_another_branch_while_somebody_is_asked(
    two: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was shown is what is done, and only if it still holds."""
    two.git("checkout", "-qb", "less")
    two.write(LESS)
    commit(two, "less")
    note(two)

    def agreed(_: int) -> bool:
        two.git("checkout", "-q", "main")
        return True

    monkeypatch.setattr(prune, "_is_wanted", agreed)
    done = two.cli("prune")
    kept = f"kept  {MORE}: it is no longer known to be unused\n"
    assert (done.returncode, done.stdout) == (0, f"unused  {MORE}\n{kept}")
    assert len(two.goldens()) == 3
    monkeypatch.setattr(prune, "_is_wanted", lambda _: True)
    two.git("checkout", "-q", "less")
    assert two.cli("prune").stdout == f"unused  {MORE}\ndeleted  {MORE}\n"


def test_two_sessions_at_once(two: Suite) -> None:
    """Neither is in the other's way, and what both found is known."""
    two.write("def test_c(ciwrap): ciwrap.check(4.0)", "tests/test_other.py")
    two.run("--ciwrap-update=new")
    two.write(LESS)
    two.write("def test_d(): pass", "tests/test_other.py")
    runs = [
        subprocess.Popen(
            two.command(f"tests/{name}.py"),
            cwd=two.root,
            env=two.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("test_it", "test_other") * 2
    ]
    for run in runs:
        told, _ = run.communicate(timeout=120)
        assert run.returncode == 0, told
        assert "1 unused" in told
    done = two.cli("prune", "--dry-run")
    assert done.stdout.count("unused  golden/tests") == 2
    assert {one.name for one in list_path(two.root).parent.iterdir()} == {
        *(".gitignore", "unused.json")
    }


def test_a_test_that_this_machine_leaves_out(two: Suite) -> None:
    """It is there, though it was not collected; one that is only spoken of is not."""
    two.write(
        "import sys\n"
        "if sys.platform == 'other':\n"
        "    def test_a(ciwrap): ciwrap.check(1.0)\n"
        "# def test_b(ciwrap): ciwrap.check(2.0)\ndef test_c(): pass\n"
    )
    result = two.run("--ciwrap-unused=fail")
    assert (result.ret, summary(result)) == (1, "ciwrap: 2 unused")
    assert "test_a" not in "".join(line for line in result.outlines if "unused:" in line)


@pytest.mark.parametrize("cases", ["[]", "[pytest.param('x', marks=pytest.mark.skip)]"])
def test_parameters_that_this_machine_leaves_out(suite: Suite, cases: str) -> None:
    """A test of which nothing ran says nothing of its goldens."""
    text = """
        @pytest.mark.parametrize("kind", {})
        def test_a(ciwrap, kind): ciwrap.check(1.0)
        def test_b(): pass
    """
    suite.write(text.format("['cpu', 'gpu']"))
    suite.run("--ciwrap-update=new")
    suite.write(text.format(cases))
    assert summary(suite.run("--ciwrap-unused=fail")) == ""
    suite.write(text.format("['cpu']"))
    assert summary(suite.run("--ciwrap-unused=fail")) == "ciwrap: 1 matched, 1 unused"


def test_a_check_that_only_another_kind_of_machine_makes(two: Suite) -> None:
    """That a test made no such check here says nothing about the machine that has the golden."""
    two.write(LESS.replace("ciwrap.check(2.0)", 'ciwrap.check(2.0); ciwrap.check(4.0, "arm")'))
    two.run("--ciwrap-variant=arm64", "--ciwrap-update=new").assert_outcomes(passed=2)
    two.write(LESS)
    result = two.run("--ciwrap-unused=fail")
    assert summary(result) == "ciwrap: 2 matched, 1 unused"
    assert summary(two.run("--ciwrap-variant=arm64", "--ciwrap-unused=fail")).endswith("2 unused")
    two.write("def test_c(): pass")
    assert summary(two.run("--ciwrap-unused=fail")) == "ciwrap: 4 unused"


def test_the_list_of_an_earlier_format(two: Suite) -> None:
    note(two)
    path = list_path(two.root)
    old = json.loads(path.read_text())
    path.write_text(json.dumps({"format": 1, "unused": old["unused"]}))
    done = two.cli("prune", "--yes")
    assert done.returncode == 3
    assert "delete it, run the tests" in done.stderr
    two.run()
    assert f"deleted  {MORE}\n" in pruned(two)


LONG = "mesh " + "é" * 60


def test_goldens_with_shortened_names(suite: Suite) -> None:
    """They are told by the files that they lie in, and deleted."""
    config = f"version: 1\nchecks: {{'{LONG}': {{outputs: out.csv}}, old: {{outputs: out.csv}}}}\n"
    (suite.root / "ciwrap.yaml").write_text(config)
    (suite.root / "out.csv").write_text("x\n1.0\n2.0\n")
    assert suite.cli("accept").returncode == 0
    (suite.root / "ciwrap.yaml").write_text("version: 1\nchecks: {old: {outputs: out.csv}}\n")
    [golden] = (suite.root / "golden").glob("mesh*~*.golden")
    path = golden.relative_to(suite.root).as_posix()
    said = suite.cli("check").stdout
    assert f"the golden of '{LONG}' belongs to no check" in said
    manifest = golden.with_name(f"{golden.name}.yaml")
    text = manifest.read_text()
    manifest.write_text("torn: [")
    assert f"left as it is  {path}: its manifest cannot be read" in pruned(suite)
    assert golden.exists()
    manifest.write_text(text)
    assert f"unused  {path}\ndeleted  {path}\n" in pruned(suite)
    assert suite.goldens() == ["old.golden"]


def test_large_goldens_with_shortened_names_beside_small_ones(suite: Suite) -> None:
    """The file's stem is no check of its own."""
    text = """
        def test_a(ciwrap): ciwrap.check(1.0)
        def test_b(ciwrap): ciwrap.check(np.arange(5000.0), "é" * 60)
    """
    suite.write(text)
    assert suite.run("--ciwrap-update=new").ret == 0
    assert len(suite.goldens()) == 2
    assert "~" in "".join(suite.files("golden"))
    assert summary(suite.run("--ciwrap-unused=fail")) == "ciwrap: 2 matched"


def test_whatever_the_order_no_golden_of_present_tests_is_deleted(suite: Suite) -> None:
    """Edits, runs of all and of parts, branches, commits, acceptances and rejections, in any order.

    Each check has one number of its own, so what is used is known from the text of the tests.
    """
    draw = random.Random(20261123)
    steps = Steps(suite, draw)
    steps.begin()
    deleted = 0
    for _ in range(20):
        for name in ("edit", "write_new", "run", draw.choice(Steps.SOMETIMES)):
            if draw.random() < 0.6:
                getattr(steps, name)()
        before = set(suite.goldens())
        told = pruned(suite)
        gone = before - set(suite.goldens())
        assert not gone & steps.used(), told
        deleted += len(gone)
    assert deleted > 3, "there was something to delete"


class Steps:
    """What people do to a project with tests of the checks a to d."""

    SOMETIMES = ("run_part", "switch", "switch", "accept", "reject")

    def __init__(self, suite: Suite, draw: random.Random) -> None:
        self._suite = suite
        self._draw = draw
        self._path = suite.root / "tests/test_it.py"

    def begin(self) -> None:
        """Three branches, on which all tests have goldens."""
        self._write("abcd")
        self._suite.run("--ciwrap-update=new")
        (self._suite.root / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n.ciwrap/\n")
        self._suite.git("init", "-q", "-b", "main")
        commit(self._suite, "first")
        for branch in ("one", "two"):
            self._suite.git("branch", branch)

    def _write(self, names: str) -> None:
        lines = [f"def test_{name}(ciwrap): ciwrap.check({ord(name)}.0)" for name in names]
        self._suite.write("\n".join([*lines, "def test_none(): pass"]))

    def edit(self) -> None:
        self._write("".join(name for name in "abcd" if self._draw.random() < 0.6))

    def write_new(self) -> None:
        self._suite.run("--ciwrap-update=new")

    def run(self) -> None:
        self._suite.run()

    def run_part(self) -> None:
        self._suite.run("-k", "test_a or test_none")

    def switch(self) -> None:
        if self._suite.git("status", "--porcelain"):
            commit(self._suite, "more")
        self._suite.git("checkout", "-q", self._draw.choice(("main", "one", "two")))

    def accept(self) -> None:
        self._suite.cli("accept", "--pending", "--reason", "drawn")

    def reject(self) -> None:
        self._suite.cli("reject", "--all")

    def used(self) -> set[str]:
        text = self._path.read_text()
        return {f"tests/test_it/test_{name}.golden" for name in "abcd" if f"test_{name}(" in text}


@pytest.mark.parametrize("delete", [False, True])
def test_tests_that_a_sparse_checkout_leaves_out(suite: Suite, delete: bool) -> None:
    """Neither are they gone, nor are files that others may look at."""
    suite.write("def test_a(ciwrap): ciwrap.check(1.0)")
    suite.write("def test_b(ciwrap): ciwrap.check(2.0)", "tests/far/test_far.py")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    suite.git("init", "-q", "-b", "main")
    commit(suite, "both")
    suite.git("sparse-checkout", "set", "--no-cone", "/*", "!/tests/far/")
    assert not (suite.root / "tests/far").exists()
    more = ("--ciwrap-unused=delete",) if delete else ()
    result = suite.run("--ciwrap-unused=fail")
    assert (result.ret, summary(result)) == (0, "ciwrap: 1 matched")
    suite.write("def test_a(): pass")
    result = suite.run(*more)
    assert summary(result) == "ciwrap: 1 unused"
    # With what Python has compiled of it there are two.
    result.stdout.re_match_lines([r".*warning: the sparse checkout leaves out \d files?: nobody"])
    suite.cli("prune", "--yes")
    assert len(suite.goldens()) == 2
    suite.git("sparse-checkout", "disable")
    suite.run(*more)
    suite.cli("prune", "--yes")
    assert suite.goldens() == ["tests/far/test_far/test_b.golden"]


def test_goldens_that_a_sparse_checkout_leaves_out(suite: Suite) -> None:
    """Their snapshot stays."""
    suite.write("def test_b(ciwrap): ciwrap.check(2.0)", "tests/far/test_far.py")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.git("init", "-q", "-b", "main")
    commit(suite, "far")
    snapshots = sorted((suite.root / "golden/.snapshots").iterdir())
    assert snapshots
    suite.git("sparse-checkout", "set", "--no-cone", "/*", "!/golden/tests/")
    said = suite.cli("prune", "--yes").stdout
    assert "snapshots stay: " in said
    assert "test_far.goldens: cannot be read" in said
    assert "the sparse checkout leaves it out" in said
    assert sorted((suite.root / "golden/.snapshots").iterdir()) == snapshots


def test_goldens_in_a_linked_folder_keep_their_snapshot(suite: Suite) -> None:
    suite.write("def test_a(ciwrap): ciwrap.check(2.0)")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    (suite.root / "golden/tests").rename(suite.root / "far")
    (suite.root / "golden/tests").symlink_to("../far")
    suite.run().assert_outcomes(passed=1)
    said = suite.cli("prune", "--yes").stdout
    assert "golden/tests: cannot be read, so nobody knows which snapshot it needs" in said
    assert any((suite.root / "golden/.snapshots").iterdir())
