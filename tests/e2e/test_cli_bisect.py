"""`ciwrap bisect`: the commit that moved a number is named, and the repository left as it was."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.cli_project import Project
from git_repository import GitRepository

if TYPE_CHECKING:
    from pathlib import Path

BOUND = 1e-6
CONFIG = f"""
run: [{sys.executable!r}, simulate.py]
checks:
  fields: {{outputs: out, atol: {BOUND}}}
"""
PROGRAM = """
import os, sys
import numpy as np
{line}
os.makedirs("out", exist_ok=True)
density = np.arange(12.0).reshape(3, 4)
density[1, 3] += {by!r}
np.save("out/density.npy", density)
np.save("out/speed.npy", np.arange(5.0))
"""


class Told(Project):
    """A project in a git repository whose program changes from commit to commit."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.repository = GitRepository.make(folder)
        self.repository.commit(
            "Begin",
            {
                "ciwrap.yaml": CONFIG,
                ".gitignore": "out/\n*-result.json\n",
                "simulate.py": self.program(0),
            },
        )
        assert self.run("run", json_too=False).code == 3  # there is no golden yet
        self.accept()
        self.good = self.commit(0)

    @staticmethod
    def program(number: int, by: float = 0.0, line: str = "") -> str:
        return PROGRAM.format(by=by, line=line) + f"# {number}\n"

    def commit(self, number: int, by: float = 0.0, line: str = "") -> str:
        program = {"simulate.py": self.program(number, by, line)}
        return self.repository.commit(f"Change {number}", program)


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path / "p")


FAILS = "sys.exit('it does not build')"


def test_one_commit_of_sixty_is_named_in_nine_runs(told: Told) -> None:
    """Of 60 commits, number 41 moved a number by 3 bounds; some do not build."""
    names = []
    for number in range(1, 61):
        line = FAILS if number in {20, 21, 30, 38, 45, 46} else ""
        names.append(told.commit(number, 3 * BOUND if number >= 41 else 0.0, line))
    before = told.repository.state()
    outcome = told.run("bisect", told.good, "HEAD")
    assert outcome.code == 0, outcome
    found = outcome.document
    assert found["found"]["name"] == names[40]
    assert found["found"]["title"] == "Change 41"
    assert len(found["steps"]) <= 9
    assert {step["verdict"] for step in found["steps"]} == {"match", "differ", "not_comparable"}
    words = f"found: {names[40][:10]} moved density (up to 3.00 x the bound)"
    assert words in outcome.out
    result = found["result"]
    assert (result["verdict"], result["kind"]) == ("differ", "bisect")
    check = result["checks"][0]
    assert check["first_divergence"]["name"] == "density"
    assert check["golden_path"] == f"{told.good[:10]}:golden/fields.golden"
    assert told.repository.state() == before
    assert not (told.folder / ".ciwrap/revisions").exists()


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("moved", [1, 2, 3])
def test_the_ends_are_looked_at_where_the_answer_rests_on_them(told: Told, moved: int) -> None:
    """The first commit after GOOD, one between, and BAD itself."""
    names = [told.commit(n, 5 * BOUND if n >= moved else 0.0) for n in (1, 2, 3)]
    outcome = told.run("bisect", told.good, "main")
    assert outcome.code == 0, outcome
    assert outcome.document["found"]["name"] == names[moved - 1]
    looked_at = [step["commit"]["name"] for step in outcome.document["steps"]]
    assert len(looked_at) == len(set(looked_at)) <= 3
    assert names[moved - 1] in looked_at
    before = told.good if moved == 1 else names[moved - 2]
    assert before in looked_at


def test_goldens_and_bounds_are_those_of_the_good_commit(told: Told) -> None:
    """A golden that was accepted in between hides nothing; nor does a wider bound."""
    told.commit(1)
    moved = told.commit(2, 5 * BOUND)
    told.run("run", json_too=False)
    told.accept("--reason", "hides it")
    told.repository.commit("Accept", {"ciwrap.yaml": CONFIG.replace("1e-06", "1.0")})
    told.commit(3, 5 * BOUND)
    assert told.run("run").code == 0  # by the bound that is asked for now
    outcome = told.run("bisect", told.good, "HEAD")
    assert outcome.document["found"]["name"] == moved


def test_a_command_that_builds_and_runs(told: Told) -> None:
    for number in (1, 2, 3, 4):
        told.commit(number, 5 * BOUND if number >= 3 else 0.0)
    target = told.folder.parent / "result.json"
    for words in (
        [f"{sys.executable} simulate.py && echo x >> ../log"],
        ["sh", "-c", f"{sys.executable} simulate.py && echo x >> ../log"],
    ):
        (told.folder.parent / "log").write_text("")
        outcome = told.run(
            *("bisect", "--json", str(target), told.good, "HEAD", "--"), *words, json_too=False
        )
        assert outcome.code == 0, outcome
        document = json.loads(target.read_text())
        assert document["found"]["title"] == "Change 3"
        runs = (told.folder.parent / "log").read_text().count("x")
        assert runs == len(document["steps"]) > 1


def test_only_commits_that_cannot_be_compared_are_left(told: Told) -> None:
    told.commit(1)
    names = [told.commit(n, 5 * BOUND if n > 3 else 0.0, FAILS) for n in (2, 3, 4)]
    last = told.commit(5, 5 * BOUND)
    before = told.repository.state()
    outcome = told.run("bisect", told.good, "HEAD")
    assert outcome.code == outcome.document["exit_code"] == 3
    assert "found" not in outcome.document
    assert {one["name"] for one in outcome.document["candidates"]} == {*names, last}
    assert "not found: one of these 4 commits moved a number" in outcome.out
    assert "ended with exit code 1" in outcome.out
    assert told.repository.state() == before


def test_outputs_of_another_commit_are_never_compared(told: Told) -> None:
    """Commit 2 alone writes a file more; what lay there before comes back."""
    more = "os.makedirs('out', exist_ok=True); np.save('out/more.npy', np.ones(3))"
    told.commit(1)
    told.commit(2, 0.0, more)
    for number in (3, 4, 5):
        told.commit(number, 5 * BOUND if number >= 4 else 0.0)
    kept = np.full(7, 3.0)
    np.save(told.folder / "out/speed.npy", kept)
    np.save(told.folder / "out/of_mine.npy", kept)
    files = {path.name: path.read_bytes() for path in (told.folder / "out").iterdir()}
    outcome = told.run("bisect", told.good, "HEAD")
    assert outcome.document["found"]["title"] == "Change 4"
    after = {path.name: path.read_bytes() for path in (told.folder / "out").iterdir()}
    assert after == files
    extra = [s for s in outcome.document["steps"] if s["commit"]["title"] == "Change 2"]
    assert all(step["verdict"] == "not_comparable" for step in extra)


def test_files_of_the_repository_that_runs_write_are_put_back(told: Told) -> None:
    told.repository.commit("Keep a log", {"log.txt": "begin\n"})
    for number in (1, 2, 3, 4):
        line = "open('log.txt', 'a').write('one more\\n')"
        told.commit(number, 5 * BOUND if number >= 2 else 0.0, line)
    before = told.repository.state()
    outcome = told.run("bisect", told.good, "HEAD")
    assert outcome.document["found"]["title"] == "Change 2"
    assert told.repository.state() == before
    assert (told.folder / "log.txt").read_text() == "begin\n"


def refused(told: Told, *arguments: str) -> str:
    before = told.repository.state()
    outcome = told.run("bisect", *arguments)
    assert outcome.code == 2, outcome
    assert told.repository.state() == before
    (line,) = outcome.error_lines
    assert outcome.document["kind"] == "bisect"
    return line


def test_a_file_that_a_run_made_in_the_place_of_a_tracked_one(told: Told) -> None:
    """git neither goes on over it nor back: the tree was left in the middle of a bisection."""
    told.commit(1, line="open('made.txt', 'w').write('by the run')")
    told.commit(2, line="open('made.txt', 'w').write('by the run')")
    told.commit(3, line="open('made.txt', 'w').write('by the run')")
    told.repository.commit("Keep what is made", {"made.txt": "committed"})
    before = told.repository.state()
    outcome = told.run("bisect", told.good, "HEAD")
    assert outcome.code == 3
    assert "made.txt" in outcome.err
    assert told.repository.state() == before
    assert (told.folder / "made.txt").read_text() == "committed"


def test_a_tree_with_changes_is_refused(told: Told) -> None:
    told.commit(1)
    (told.folder / "simulate.py").write_text("changed")
    line = refused(told, told.good, "HEAD")
    assert "the working tree has changes that are not committed (simulate.py)" in line
    assert line.endswith("commit or stash them")
    told.repository.git("add", "simulate.py")
    assert "not committed" in refused(told, told.good, "HEAD")
    assert (told.folder / "simulate.py").read_text() == "changed"
    # What git does not track is nobody's business.
    told.repository.git("reset", "-q", "--hard")
    (told.folder / "notes.txt").write_text("mine")
    told.commit(2, 5 * BOUND)
    told.repository.git("rm", "-q", "--cached", "notes.txt")
    told.repository.git("commit", "-q", "--amend", "-m", "Change 2")
    assert told.run("bisect", told.good, "HEAD").code == 0
    assert (told.folder / "notes.txt").read_text() == "mine"


def test_ends_between_which_there_is_nothing(told: Told) -> None:
    first = told.commit(1)
    told.commit(2)
    assert "one and the same commit" in refused(told, "HEAD", "main")
    assert "is not an ancestor of" in refused(told, "HEAD", told.good)
    assert "there is no commit 'nothing'" in refused(told, "nothing", "HEAD")
    assert "BAD (" in refused(told, told.good, "HEAD")
    assert "matches the goldens" in refused(told, told.good, "HEAD")
    told.repository.git("bisect", "start", "HEAD", told.good)
    assert "a bisection is under way" in refused(told, told.good, first)
    told.repository.git("bisect", "reset")


def test_a_good_commit_that_is_none(told: Told) -> None:
    bad = told.commit(1, 5 * BOUND)
    told.commit(2, 5 * BOUND)
    line = refused(told, bad, "HEAD")
    assert "GOOD (" in line
    assert "differs from the goldens" in line


def test_a_commit_without_configuration_or_goldens(told: Told) -> None:
    told.repository.git("rm", "-q", "-r", "golden")
    none = told.commit(1)
    told.repository.git("checkout", "-q", told.good, "--", "golden")
    told.commit(2)
    told.commit(3, 5 * BOUND)
    line = refused(told, none, "HEAD")
    assert "has no goldens in golden" in line
    outcome = told.run("bisect", none, "HEAD", "--golden-dir", "golden")
    assert outcome.document["found"]["title"] == "Change 3"
    root = told.repository.git("rev-list", "--max-parents=0", "HEAD")
    told.repository.git("rm", "-q", "ciwrap.yaml")
    gone = told.commit(4)
    (told.folder / "ciwrap.yaml").write_text(CONFIG)
    told.commit(5)
    assert "has no ciwrap.yaml" in refused(told, gone, "HEAD")
    assert "has no goldens" in refused(told, root, "HEAD")


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("detached", [False, True])
def test_an_interrupt_leaves_all_as_it_was(
    told: Told, number: signal.Signals, detached: bool
) -> None:
    for n in (1, 2, 3, 4):
        told.commit(n, 5 * BOUND if n >= 3 else 0.0)
    if detached:
        told.repository.git("checkout", "-q", "--detach", "HEAD~1")
    before = told.repository.state()
    mine = (told.folder / "out/speed.npy").read_bytes()
    mark = told.folder.parent / "started"
    process = told.begin("bisect", told.good, "main", "--", f"touch {mark}; sleep 60")
    wait_for(mark)
    process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130, error
    assert told.repository.state() == before
    assert (told.folder / "out/speed.npy").read_bytes() == mine
    assert told.run("bisect", told.good, "main").document["found"]["title"] == "Change 3"


def test_after_a_kill_git_says_how_to_go_on(told: Told) -> None:
    for n in (1, 2, 3, 4):
        told.commit(n, 5 * BOUND if n >= 3 else 0.0)
    before = told.repository.state()
    mine = (told.folder / "out/speed.npy").read_bytes()
    mark = told.folder.parent / "started"
    process = told.begin("bisect", told.good, "main", "--", f"touch {mark}; sleep 5")
    wait_for(mark)
    process.kill()
    process.communicate(timeout=30)
    outcome = told.run("bisect", told.good, "main")
    assert outcome.code == 2
    assert "end it with `git bisect reset` in that folder" in outcome.err
    told.repository.git("bisect", "reset")
    np.save(told.folder / "out/speed.npy", np.arange(3.0))  # somebody goes on working here
    outcome = told.run("bisect", told.good, "main")
    assert outcome.document["found"]["title"] == "Change 3"
    assert told.repository.state() == before
    assert (told.folder / "out/speed.npy").read_bytes() == mine
    first = outcome.out.splitlines()[0]
    assert first.startswith("warning: an earlier call was killed, and the outputs that it had set")
    assert first.endswith("; what had come in its place is in .ciwrap/repeat/found")
    assert np.load(told.folder / ".ciwrap/repeat/found/out/speed.npy").size == 3


def test_from_a_folder_that_earlier_commits_do_not_have(told: Told) -> None:
    told.commit(1)
    told.repository.commit("Add a folder", {"later/file": ""})
    told.commit(2, 5 * BOUND)
    told.commit(3, 5 * BOUND)
    target = told.folder.parent / "result.json"
    below = Told.__new__(Told)
    below.folder = told.folder / "later"
    outcome = below.run("bisect", told.good, "HEAD", "--json", str(target), json_too=False)
    assert outcome.code == 0, outcome
    assert json.loads(target.read_text())["found"]["title"] == "Change 2"


def test_a_commit_of_a_branch_that_was_merged(told: Told) -> None:
    """The change came in by a merge; the commit of the branch is named, not the merge."""
    told.commit(1)
    told.repository.git("checkout", "-q", "-b", "side")
    told.repository.commit("Begin a side", {"side.txt": "1"})
    moved = told.repository.commit("Move it", {"simulate.py": told.program(1, 5 * BOUND)})
    told.repository.commit("Go on", {"side.txt": "2"})
    told.repository.git("checkout", "-q", "main")
    for number in (2, 3):
        told.repository.commit(f"Main {number}", {"main.txt": str(number)})
    told.repository.git("merge", "-q", "--no-ff", "-m", "Merge side", "side")
    told.repository.commit("After", {"main.txt": "4"})
    before = told.repository.state()
    outcome = told.run("bisect", told.good, "HEAD")
    assert outcome.code == 0, outcome
    assert outcome.document["found"]["name"] == moved
    assert told.repository.state() == before


def test_another_bisection_of_another_project_in_a_folder_below(told: Told) -> None:
    """ciwrap.yaml may lie in a folder of the repository; outputs and goldens are below it."""
    below = told.folder / "parts" / "ocean"
    below.mkdir(parents=True)
    files = {f"parts/ocean/{name}": (told.folder / name).read_text() for name in
             ("ciwrap.yaml", "simulate.py", ".gitignore")}  # fmt: skip
    told.repository.commit("Add the ocean", files)
    ocean = Told.__new__(Told)
    ocean.folder = below
    ocean.run("run", json_too=False)
    ocean.accept()
    good = told.repository.commit("Accept the ocean", {})
    for number in (1, 2, 3, 4):
        program = told.program(number, 5 * BOUND if number >= 3 else 0.0)
        told.repository.commit(f"Ocean {number}", {"parts/ocean/simulate.py": program})
    outcome = ocean.run("bisect", good, "HEAD")
    assert outcome.code == 0, outcome
    assert outcome.document["found"]["title"] == "Ocean 3"
    golden = outcome.document["result"]["checks"][0]["golden_path"]
    assert golden == f"{good[:10]}:parts/ocean/golden/fields.golden"


def test_the_page_names_the_commit_and_shows_what_it_moved(told: Told) -> None:
    names = [
        told.commit(n, 5 * BOUND if n >= 4 else 0.0, FAILS if n == 6 else "") for n in range(1, 8)
    ]
    page = told.folder.parent / "page.html"
    outcome = told.run("bisect", told.good, "HEAD", "--report", str(page))
    assert outcome.code == 0, outcome
    text = page.read_text()
    assert f"<span>{names[3][:10]} moved density (up to" in text
    assert f'<code id="next-1">git show {names[3][:10]}</code>' in text
    assert text.count("<b>found</b>") == 1
    for step in outcome.document["steps"]:
        assert f'<span class="mono">{step["commit"]["name"][:10]}</span>' in text
    assert 'id="c1" data-v="differ"' in text
    assert sys.executable not in text


def test_the_page_of_a_search_without_an_answer(told: Told) -> None:
    for number in (1, 2, 3):
        told.commit(number, 5 * BOUND if number == 3 else 0.0, FAILS if number < 3 else "")
    page = told.folder.parent / "page.html"
    outcome = told.run("bisect", told.good, "HEAD", "--report", str(page))
    assert outcome.code == 3, outcome
    text = page.read_text()
    assert "<span>Not found: one of these 3 commits moved a number" in text
    assert re.search(r'<code id="next-1">git show( [0-9a-f]{10}){3}</code>', text)
    assert "Commits that may have moved a number" in text
    assert "ended with exit code 1, so its outputs were not compared" in text
