"""`ciwrap trend --store`: results kept over commits, in a folder or on a branch."""

from __future__ import annotations

import itertools
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from e2e.cli_project import Project
from e2e.test_cli_trend import result, variable
from git_repository import GitRepository
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tiers import examples

from ciwrap.base.repository import Repository
from ciwrap.model import CommandOutcome, RunResult, Used
from ciwrap.report.document import document_text, to_document
from ciwrap.studies import result_store
from ciwrap.studies.observed import Moment, Observed, ObservedCheck, observed_text, read_observed
from ciwrap.studies.result_store import BranchStore, FolderStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KEPT = 500
BRANCH = "ciwrap-results"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "p")
    (made.folder / "ciwrap.yaml").unlink()
    repository = GitRepository.make(made.folder)
    repository.git("config", "user.name", "Ada Example")
    repository.git("config", "user.email", "ada@example.org")
    repository.commit("begin", {"source.c": "int x;\n", ".gitignore": "*.json\nout\n"})
    return made


def of(project: Project) -> GitRepository:
    return GitRepository(project.folder)


def told(number: int, share: float = 0.3, **more: Any) -> RunResult:
    """The result of commit `number`, on that hour."""
    return result(number, [variable("density", share)], seconds=2.0 + 0.01 * number, **more)


def written(project: Project, results: Sequence[RunResult]) -> list[str]:
    names = [f"r{number}.json" for number in range(len(results))]
    for name, one in zip(names, results, strict=True):
        (project.folder / name).write_text(document_text(to_document(one)))
    return names


def add(project: Project, *results: RunResult, store: str = BRANCH, **how: Any) -> Any:
    options = [word for name, value in how.items() for word in (f"--{name}", str(value))]
    outcome = project.run("trend", "--store", store, *options, *written(project, results))
    assert outcome.code == 0, outcome
    return outcome


def commits_of(document: Any) -> list[int]:
    """The numbers of the commits that results as a whole are from, in their order."""
    whole = next(one for one in document["checks"] if not one["check"])
    return [int(point["moment"]["commit"], 16) for point in whole["points"]]


def without_files(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: without_files(one) for key, one in document.items() if key != "file"}
    return [without_files(one) for one in document] if isinstance(document, list) else document


@pytest.mark.parametrize("store", [BRANCH, "kept/"])
def test_kept_results_say_what_the_results_said(project: Project, store: str) -> None:
    """All of it: shares, verdicts, times, memory and warnings, added one by one in any order."""
    results = [told(n, 0.1 + 0.05 * n, OMP_NUM_THREADS=str(1 + n // 10)) for n in range(20)]
    used = Used(1.0, 0, 0, 0, 0, peak_bytes=64 << 20)
    command = replace(results[3].command, used=used)
    results[3] = replace(results[3], command=command)
    results[5] = replace(results[5], command=CommandOutcome("./simulate", ".", 1, 99.0))
    plain = project.run("trend", *written(project, results)).document
    for some in (results[11:], results[:4], results[4:11]):
        kept = add(project, *some, store=store).document
    assert without_files(kept) == without_files(plain)
    assert plain["memory"][0]["median"] == 64 << 20
    again = project.run("trend", "--store", store)
    assert again.document == kept
    assert "memory of ./simulate on A processor" in again.out
    assert "  all checks  19 of 20 results match; differ since 0000000000" in again.out


def test_the_branch_grows_beside_the_working_tree(project: Project) -> None:
    git = of(project)
    (project.folder / "source.c").write_text("int changed;\n")
    before = git.state()[:4]
    add(project, told(1), told(2))
    first = git.git("ls-tree", "-r", BRANCH)
    add(project, told(3))
    assert git.state()[:4] == before
    names = git.git("ls-tree", "-r", "--name-only", BRANCH).splitlines()
    assert names == ["README.md", *(f"results/{n:040x}.json" for n in (1, 2, 3))]
    # What was there is as it was, and each commit follows the one before.
    assert set(first.splitlines()[1:]) < set(git.git("ls-tree", "-r", BRANCH).splitlines())
    assert git.git("rev-list", "--count", BRANCH) == "2"
    assert git.git("log", "-1", "--format=%an", BRANCH) == "Ada Example"
    readme = git.git("show", f"{BRANCH}:README.md")
    assert readme.startswith("## ciwrap trend: nothing to warn of in 3 results")
    assert "| mesh | 3 of 3 results match | `...` |" in readme
    # The same once more is no change.
    add(project, told(3))
    assert git.git("rev-list", "--count", BRANCH) == "2"


@pytest.mark.parametrize("store", [BRANCH, "kept/"])
def test_a_commit_that_comes_again_replaces_its_own(project: Project, store: str) -> None:
    add(project, told(1, 0.2), told(2, 0.2), store=store)
    later = replace(told(1, 1.5), started_at="2026-03-01T00:00:00+00:00")
    document = add(project, later, store=store).document
    assert commits_of(document) == [1, 2]  # it stays where it was
    (density,) = document["shares"]
    assert [point["share"] for point in density["points"]] == [1.5, 0.2]
    (whole, mesh) = document["checks"]
    assert [point["verdict"] for point in whole["points"]] == ["differ", "match"]
    # Another check of the commit joins those that are there, and what failed once is put right.
    one = told(1, 0.1)
    other = replace(one.checks[0], name="other")
    document = add(project, replace(one, checks=(other,)), store=store).document
    (whole, mesh, other) = document["checks"]
    assert [len(each["points"]) for each in (whole, mesh, other)] == [2, 2, 1]
    assert whole["points"][0]["verdict"] == "differ"
    document = add(project, one, store=store).document
    assert document["checks"][0]["points"][0]["verdict"] == "match"
    # A label keeps platforms apart.
    document = add(project, told(1, 0.9), store=store, label="arm").document
    assert [each["check"] for each in document["checks"]] == ["", "mesh", "mesh (arm)", "other"]
    assert [each["cpu"] for each in document["times"]] == ["A processor", "A processor (arm)"]


@pytest.mark.parametrize("store", [BRANCH, "kept/"])
def test_the_oldest_go(project: Project, store: str) -> None:
    add(project, *map(told, range(1, 6)), store=store)
    document = add(project, told(6), store=store, keep=3).document
    assert commits_of(document) == [4, 5, 6]
    # Of an older one than all that are kept nothing stays.
    assert commits_of(add(project, told(2), store=store, keep=3).document) == [4, 5, 6]


def observed(number: int, *, hour: int | None = None, label: str = "") -> Observed:
    when = f"2026-01-01T{number if hour is None else hour:02}:00:00+00:00"
    check = ObservedCheck("mesh", told(0).verdict)
    return Observed(1, Moment("", when, f"{number:040x}"), {}, check.verdict, (check,), label=label)


def page(results: list[Observed]) -> str:
    return f"{len(results)} results\n"


def store_in(project: Project, kind: str) -> FolderStore | BranchStore:
    if kind == "folder":
        return FolderStore(project.folder / "kept")
    return BranchStore(Repository.around(project.folder), BRANCH)


@pytest.mark.parametrize("kind", ["branch", "folder"])
def test_many_writers_at_once(project: Project, kind: str) -> None:
    """Nobody's result is lost, and the page is over all of them."""
    store = store_in(project, kind)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.add([observed(n)], KEPT, page), range(8)))
    assert [int(one.moment.commit, 16) for one in store.read()] == list(range(8))
    if kind == "branch":
        assert of(project).git("show", f"{BRANCH}:README.md") == "8 results"
        assert of(project).git("rev-list", "--count", BRANCH) == "8"
    else:
        assert (store.folder / "README.md").read_text() == "8 results\n"


def killed(work: Callable[[], None]) -> None:
    """Does the work in a process of its own, which has to end by a signal."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def ending_at(count: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose call number `count` never comes back: the process is killed."""
    calls = itertools.count()

    def called(*arguments: Any, **more: Any) -> Any:
        if next(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **more)

    return called


@pytest.mark.parametrize("at", range(4))
def test_a_writer_that_is_killed_leaves_whole_files(
    project: Project, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Before each file that it writes, or takes out; the next one finds what was written."""
    store = store_in(project, "folder")
    store.add([observed(1), observed(2)], KEPT, page)
    with monkeypatch.context() as patch:
        name = "write_atomically" if at < 3 else "remove"
        patch.setattr(result_store, name, ending_at(at % 3, getattr(result_store, name)))
        killed(lambda: store.add([observed(3), observed(4)], 3, page))
    found = [int(one.moment.commit, 16) for one in store.read()]
    assert found == [1, 2, 3, 4][: (2, 3, 4, 4)[at]]
    store.add([observed(3), observed(4)], 3, page)
    assert [int(one.moment.commit, 16) for one in store.read()] == [2, 3, 4]
    assert (store.folder / "README.md").read_text() == "3 results\n"


@pytest.mark.parametrize("at", range(0, 10, 3))
def test_a_branch_moves_at_once_or_not_at_all(
    project: Project, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Killed before a call of git."""
    store = store_in(project, "branch")
    store.add([observed(1)], KEPT, page)
    tip = of(project).git("rev-parse", BRANCH)
    with monkeypatch.context() as patch:
        patch.setattr(Repository, "_answer", ending_at(at, Repository._answer))
        killed(lambda: store.add([observed(2)], KEPT, page))
    assert of(project).git("rev-parse", BRANCH) == tip
    store.add([observed(2)], KEPT, page)
    assert len(store.read()) == 2


def test_who_is_faster_wins_and_the_other_one_adds_to_it(project: Project) -> None:
    """Another writer comes between reading and writing; so does one that rewrites the branch."""
    git, store = of(project), store_in(project, "branch")
    store.add([observed(1)], KEPT, page)
    first = git.git("rev-parse", BRANCH)
    others = [observed(2), observed(3)]

    def disturbed(results: list[Observed]) -> str:
        if others:
            store.add([others.pop(0)], KEPT, page)
        return page(results)

    store.add([observed(4)], KEPT, disturbed)
    assert [int(one.moment.commit, 16) for one in store.read()] == [1, 2, 3, 4]
    rewrites = [first]

    def rewritten(results: list[Observed]) -> str:
        if rewrites:
            git.git("update-ref", f"refs/heads/{BRANCH}", rewrites.pop())
        return page(results)

    store.add([observed(5)], KEPT, rewritten)
    # What somebody has taken out on purpose stays out.
    assert [int(one.moment.commit, 16) for one in store.read()] == [1, 5]


def test_commits_that_history_no_longer_has(project: Project) -> None:
    """A rebase: the old commits' results stay until they are the oldest ones."""
    git = of(project)
    old = git.commit("one", {"source.c": "1"})
    add(project, replace(told(1), environment={"git_commit": old}))
    git.git("commit", "--amend", "-m", "another")
    new = git.git("rev-parse", "HEAD")
    document = add(project, replace(told(2), environment={"git_commit": f"{new}-dirty"})).document
    points = document["checks"][0]["points"]
    assert [one["moment"]["commit"] for one in points] == [old, f"{new}-dirty"]
    assert f"results/{new}.json" in git.git("ls-tree", "-r", "--name-only", BRANCH)


def test_a_branch_of_origin(project: Project, tmp_path: Path) -> None:
    """Clones, shallow ones too, that know nothing of each other; the remote is rewritten once."""
    here = of(project)
    remote = tmp_path / "remote.git"
    here.git("clone", "--quiet", "--bare", ".", str(remote))
    clones = []
    for name, depth in (("a", ()), ("b", ("--depth=1",))):
        here.git("clone", "--quiet", *depth, remote.as_uri(), str(tmp_path / name))
        clones.append(Repository.around(tmp_path / name))
    stores = [BranchStore(one, BRANCH, "origin") for one in clones]
    before = [GitRepository(one.top).state()[:4] for one in clones]
    for number, store in enumerate((*stores, *stores)):
        store.add([observed(number)], KEPT, page)
    for store in stores:
        assert [int(one.moment.commit, 16) for one in store.read()] == [0, 1, 2, 3]
    assert [GitRepository(one.top).state()[:4] for one in clones] == before
    # Without --push: what was fetched is read, and a branch here follows it.
    clones[0].git("fetch", "--quiet")
    local = BranchStore(clones[0], BRANCH)
    assert len(local.read()) == 4
    local.add([observed(4)], KEPT, page)
    assert (len(local.read()), len(stores[0].read())) == (5, 4)
    GitRepository(remote).git("update-ref", f"refs/heads/{BRANCH}", f"{BRANCH}~2")
    stores[1].add([observed(7)], KEPT, page)
    assert [int(one.moment.commit, 16) for one in stores[0].read()] == [0, 1, 7]
    remote.rename(tmp_path / "gone.git")
    with pytest.raises(result_store.RepositoryError, match="ls-remote failed"):
        stores[0].add([observed(8)], KEPT, page)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--store", "main"), "holds other files than results"),
        (("--store", "a..b"), "is no name of a branch; for a folder, end it with '/'"),
        (("--store", "-x"), "is no name of a branch"),
        (("--store", "out", "--push"), "--push is for a branch, and out is a folder"),
        (("--store", "kept/", "--label", "../x"), "--label '../x' is no label"),
        (("--push",), "--push needs --store"),
        (("--label", "x"), "--label needs --store"),
    ],
)
def test_stores_that_are_none(project: Project, options: tuple[str, ...], words: str) -> None:
    git = of(project)
    git.git("checkout", "--quiet", "-b", "elsewhere")
    before = git.state()[:4]
    outcome = project.run("trend", *options, *written(project, [told(1)]))
    assert (outcome.code, words in outcome.err) == (2, True), outcome
    assert git.state()[:4] == before
    assert not (project.folder / "kept").exists()


def test_a_store_to_read_that_is_not_there(project: Project) -> None:
    outcome = project.run("trend", "--store", BRANCH)
    assert outcome.code == 2
    assert "there is no branch 'ciwrap-results' yet" in outcome.err
    outcome = project.run("trend", "--store", "kept/")
    assert outcome.code == 2
    assert "holds no results" in outcome.err


def test_a_branch_that_is_checked_out(project: Project) -> None:
    add(project, told(1))
    of(project).git("checkout", "--quiet", BRANCH)
    outcome = project.run("trend", "--store", BRANCH, *written(project, [told(2)]))
    assert (outcome.code, "is checked out" in outcome.err) == (2, True)
    assert of(project).git("status", "--porcelain", "--untracked-files=no") == ""
    # As a folder it is one: the layout is the same.
    assert commits_of(add(project, told(2), store="./").document) == [1, 2]


@pytest.mark.parametrize("text", ["", "{}", '{"format": 2}', observed_text(observed(1))[:-9]])
def test_a_file_of_the_store_that_is_damaged(project: Project, text: str) -> None:
    add(project, told(1), store="kept/")
    (project.folder / f"kept/results/{1:040x}.json").write_text(text)
    outcome = project.run("trend", "--store", "kept/", *written(project, [told(2)]))
    assert outcome.code == 3
    assert f"kept/results/{1:040x}.json: " in outcome.err
    assert len(list((project.folder / "kept/results").iterdir())) == 1


def test_a_result_without_a_commit_is_kept_by_its_time(project: Project) -> None:
    results = [replace(told(n), environment={}) for n in (1, 2)]
    add(project, *results, store="kept/")
    names = sorted(path.name for path in (project.folder / "kept/results").iterdir())
    assert names == ["20260101010000.json", "20260101020000.json"]


def test_what_is_kept_reads_as_it_was(tmp_path: Path) -> None:
    one = replace(observed(3, label="arm"), environment={"cpu": "A", "LANG": "C"})
    assert read_observed(observed_text(one).encode(), tmp_path) == one
    assert json.loads(observed_text(one))["format"] == 1


NUMBERS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 23)), min_size=1, max_size=12)


@settings(max_examples=examples(60))
@given(NUMBERS, st.integers(1, 6))
def test_against_a_list_of_commits(
    tmp_path_factory: pytest.TempPathFactory, added: list[tuple[int, int]], keep: int
) -> None:
    """One after the other: a commit keeps its first hour, and the latest hours stay."""
    store = FolderStore(tmp_path_factory.mktemp("store"))
    known: dict[str, int] = {}
    for number, hour in added:
        store.add([observed(number, hour=hour)], keep, page)
        name = f"{number:040x}"
        known.setdefault(name, hour)
        known = dict(sorted(known.items(), key=lambda one: (one[1], one[0]))[-keep:])
    found = {one.moment.commit: int(one.moment.when[11:13]) for one in store.read()}
    assert found == known
