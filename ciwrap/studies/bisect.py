"""`ciwrap bisect`: git's bisection, the records and words of what it found, and its page.

Configuration and goldens change over time, so those of the good commit are used for every commit;
they are kept outside of the working tree.
"""

from __future__ import annotations

import contextlib
import math
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import msgspec
from msgspec import Struct

from ciwrap.base.documents import DocumentHead
from ciwrap.base.errors import ConfigMissingError, RepositoryError, UsageError
from ciwrap.base.processes import Closing, later_interrupts
from ciwrap.base.repository import Repository, ask_git, place_below, revision_folder
from ciwrap.model import RunResult, Verdict, worst_of
from ciwrap.project.config import find_config_here, load_config, load_text
from ciwrap.project.settings import Config
from ciwrap.report.lead import checkpoint_words
from ciwrap.report.lead import lead as findings_lead
from ciwrap.report.page import cards_of, page_head, render_page, time_words
from ciwrap.report.text import (
    beyond_text,
    capital,
    plural,
    portable,
    portable_text,
    safe_name,
    seconds_text,
)
from ciwrap.report.words import variable_is_exact

# What git's log of a bisection says once it is at an end; never translated.
_FOUND = re.compile(r"^# first bad commit: \[([0-9a-f]{40,64})\]", re.MULTILINE)
_POSSIBLE = re.compile(r"^# possible first bad commit: \[([0-9a-f]{40,64})\]", re.MULTILINE)
_MOST_FILES = 3


def refuse_unless_ready(repository: Repository, good: str, bad: str) -> None:
    """Raises UsageError unless the working tree can be taken from commit to commit and back, and
    there is something between `good` and `bad`, both full names.
    """
    changed = repository.changed_files()
    if changed:
        names = ", ".join(changed[:_MOST_FILES]) + (", ..." if len(changed) > _MOST_FILES else "")
        raise UsageError(
            f"the working tree has changes that are not committed ({names})",
            file=repository.top,
            remedy="commit or stash them",
        )
    if (repository.top / repository.git("rev-parse", "--git-path", "BISECT_START")).exists():
        raise UsageError(
            "a bisection is under way in this working tree",
            file=repository.top,
            remedy="end it with `git bisect reset` in that folder",
        )
    if good == bad:
        raise UsageError("GOOD and BAD are one and the same commit")
    if ask_git(repository.top, "merge-base", "--is-ancestor", good, bad) is None:
        raise UsageError(
            f"{good[:10]} is not an ancestor of {bad[:10]}",
            remedy="name the commit that was good first, and one that came after it",
        )


def refuse_files_in_the_way(repository: Repository, good: str, bad: str) -> None:
    """Raises UsageError for files that git does not track here, but in a commit to look at.

    To check that commit out, git writes over them where they are ignored, and leaves none behind.
    """
    here = [name for name in repository.git("ls-files", "--others", "-z").split("\0") if name]
    ever = {name for name, one in repository.entries_at(bad).items() if not one.is_tree}
    changed = repository.git(
        "log", "-m", "--name-only", "--no-renames", "--format=", "-z", f"{good}..{bad}"
    )
    ever.update(name for name in changed.split("\0") if name)
    folders = {above for name in ever for above in _folders_above(name)}
    lost = [
        name
        for name in here
        if name in ever or name in folders or not ever.isdisjoint(_folders_above(name))
    ]
    if lost:
        more = f" and {plural(len(lost) - 1, 'other file')}" if len(lost) > 1 else ""
        raise UsageError(
            f"git does not track {lost[0]}{more} here, but in a commit between GOOD and BAD, which"
            " would be written over it",
            file=repository.top,
            remedy="move it away",
        )


def _folders_above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


class Search(Closing):
    """A bisection under way in the working tree; closing it checks out what was there before.

    Changes of tracked files that runs make are thrown away, and so is what they make in the place
    of one: there were none before. Raises RepositoryError.
    """

    def __init__(self, repository: Repository, good: str, bad: str) -> None:
        self.repository, self.good, self.bad = repository, good, bad
        self._has_begun = False
        self._before = ""  # the branch, or the commit, that was checked out

    def begin(self) -> None:
        """Checks out the first commit to look at, if there is one between `good` and `bad`."""
        branch = ask_git(self.repository.top, "symbolic-ref", "--quiet", "--short", "HEAD")
        self._before = branch or self.here
        self._has_begun = True
        self._bisect("start", self.bad, self.good)

    @property
    def here(self) -> str:
        """The commit that is checked out."""
        return self.repository.commit("HEAD")

    @property
    def found(self) -> str | None:
        """The first bad commit, once it is known."""
        match = _FOUND.search(self._log())
        return match[1] if match else None

    @property
    def possible(self) -> tuple[str, ...]:
        """The commits that the first bad one is among, where the rest could not be looked at."""
        return tuple(_POSSIBLE.findall(self._log()))

    @property
    def is_over(self) -> bool:
        return self.found is not None or bool(self.possible)

    def mark(self, verdict: Verdict) -> None:
        """Says what became of the commit here, and checks out the next one to look at."""
        self.throw_changes_away()
        if verdict is Verdict.NOT_COMPARABLE:  # which says nothing about a commit
            self._bisect("skip")
        else:
            self._bisect("good" if verdict.is_good else "bad")

    def look_at(self, commit: str) -> None:
        """Checks out a commit that the bisection itself does not ask for."""
        self.throw_changes_away()
        self.repository.git("checkout", "--quiet", "--detach", commit)

    def throw_changes_away(self) -> None:
        """Puts tracked files back to what the commit here has."""
        if self.repository.changed_files():
            self.repository.git("reset", "--quiet", "--hard")

    def close(self) -> None:
        if not self._has_begun:
            return
        with later_interrupts():  # a second Ctrl-C, of one who does not want to wait
            self._has_begun = False
            # An interrupt may have come before git had written all files of a commit.
            self.throw_changes_away()
            # What lies in the place of a tracked file has come since: git would not go back over it
            # by itself.
            self.repository.git("checkout", "--quiet", "--force", self._before, "--")
            self.repository.git("bisect", "reset")

    def _log(self) -> str:
        return self.repository.git("bisect", "log")

    def _bisect(self, *arguments: str) -> None:
        try:
            self.repository.git("bisect", *arguments)
        except RepositoryError:
            # git also fails where nothing but skipped commits is left, and says so in its log.
            if not self.is_over:
                raise


class Commit(Struct, frozen=True):
    """A commit as people know it. when: ISO 8601."""

    name: str
    title: str
    author: str
    when: str


def describe_commit(repository: Repository, name: str) -> Commit:
    """Raises RepositoryError for a commit that is not there."""
    said = repository.git("show", "--no-patch", "--format=%an%x00%aI%x00%s", name)
    author, when, title = said.split("\0", 2)
    return Commit(name, title, author, when)


_REMEDY = "--config FILE and --golden-dir DIR say which ones to take instead"


class Reference(Struct, frozen=True):
    """config: as if it stood in the working tree. golden_dir: where the goldens are; golden_text:
    where they are from, for people.
    """

    config: Config
    golden_dir: Path
    golden_text: str


@contextlib.contextmanager
def reference_of(
    repository: Repository, commit: str, config_path: str | None, golden_dir: str | None
) -> Iterator[Reference]:
    """The configuration and the goldens of a commit, for as long as the block lasts.

    config_path, golden_dir: what is taken as it is now, instead of what the commit has. Raises
    UsageError if the commit has none, ConfigError.
    """
    with (
        revision_folder(repository, commit, is_empty=True) as folder,
        tempfile.TemporaryDirectory(prefix="ciwrap-") as copies,
    ):
        then = _Then(repository, Repository(folder), commit)
        config = then.config() if config_path is None else load_config(Path(config_path))
        if golden_dir is None:
            goldens = then.goldens(config)
            place = goldens.relative_to(folder).as_posix()
            yield Reference(config, goldens, f"{commit[:10]}:{place}")
        else:
            # It may lie in the working tree, where it changes with every commit.
            copy = Path(copies) / "golden"
            shutil.copytree(golden_dir, copy)
            yield Reference(config, copy, golden_dir)


class _Then(Struct, frozen=True):
    """What a commit holds. now: the repository with its working tree; then: another one."""

    now: Repository
    then: Repository
    commit: str

    def config(self) -> Config:
        place = self._place(find_config_here())
        text = self._text(place)
        if text is None:
            raise ConfigMissingError(f"commit {self.commit[:10]} has no {place}", remedy=_REMEDY)
        return load_text(text, self.now.top / place, lambda path: self._text(self._place(path)))

    def _text(self, place: str) -> str | None:
        """A file as the commit has it; None if it has none."""
        if not self._check_out(place):
            return None
        return (self.then.top / place).read_text(encoding="utf-8-sig")

    def goldens(self, config: Config) -> Path:
        place = self._place(config.golden_dir)
        if not self._check_out(place):
            raise UsageError(f"commit {self.commit[:10]} has no goldens in {place}", remedy=_REMEDY)
        return self.then.top / place

    def _place(self, path: Path) -> str:
        """Where a file is in the repository. Raises UsageError if it is not in it."""
        place = place_below(path, self.now.top)
        if place is None:
            raise UsageError(
                f"this is not in the repository {self.now.top}", file=path, remedy=_REMEDY
            )
        return place

    def _check_out(self, place: str) -> bool:
        """Whether the commit has that file or folder."""
        try:
            self.then.git("checkout", "--quiet", self.commit, "--", f":(literal){place}")
        except RepositoryError:
            return False
        return True


class Step(msgspec.Struct, frozen=True):
    """A commit that was looked at. reason: why it could not be compared."""

    commit: Commit
    verdict: Verdict
    seconds: float
    reason: str | None = None


class BisectDocument(DocumentHead, frozen=True):
    """What bisect found. good, bad: the full names of the commits between which it looked. found:
    the commit that moved a number. candidates: those that it is among, where the rest could not be
    compared. steps: all commits that were looked at, in that order. result: what the commit that
    was found left, against the goldens of the good one.
    """

    kind: Literal["bisect"]
    exit_code: Literal[0, 3]
    good: str
    bad: str
    steps: tuple[Step, ...]
    seconds: float
    ciwrap_version: str
    started_at: str
    found: Commit | None = None
    candidates: tuple[Commit, ...] = ()
    result: RunResult | None = None


def found_text(document: BisectDocument) -> str:
    """`1a2b3c4d5e moved vy (iteration 20, rank 1, up to 18 x the bound)`."""
    assert document.found is not None
    assert document.result is not None
    return f"{document.found.name[:10]} moved {_what_moved(document.result)}"


def not_found_text(document: BisectDocument) -> str:
    """Why there is no answer."""
    return (
        f"not found: one of these {plural(len(document.candidates), 'commit')} moved a number, and"
        " the others could not be compared"
    )


def _what_moved(result: RunResult) -> str:
    """The first variable whose numbers differ, where, and by how much at most: `v (iteration 50,
    rank 1, up to 300 x the bound)`.
    """
    for check in result.checks:
        divergence = check.first_numeric_divergence
        if divergence is None:
            continue
        first = divergence.variable
        worst = worst_of(one for one in check.variables if one.name == first.name)
        share = worst.max_bound_share
        known = share is not None and math.isfinite(share) and not variable_is_exact(worst)
        size = f"up to {beyond_text(share or 0.0)}" if known else ""
        parts = ", ".join(filter(None, (checkpoint_words(first), size)))
        return f"{safe_name(first.name)}{f' ({parts})' if parts else ''}"
    for check in result.checks:
        if check.verdict.is_statistical and not check.verdict.is_good:
            return f"the statistics of {safe_name(check.name)}"
    return "a number"


MOST_STEPS = 200
_MOST_SHOWN = 10


def render_bisect_html(document: BisectDocument) -> str:
    """The page of a search, self-contained as that of a comparison is."""
    result = None if document.result is None else portable(document.result)
    cards, left_out = (None, "") if result is None else cards_of(result)
    found = document.found
    lead: list[str] = []
    if found is not None and result is not None:
        lead = [f"{_commit(found)}, by {safe_name(found.author, 80)}, {time_words(found.when)}."]
        lead += findings_lead(result)
    page = SimpleNamespace(
        title=capital(not_found_text(document)) if found is None else found_text(document),
        lead=tuple(lead),
        commands=_next_steps(document),
        hue="not_comparable" if found is None else "differ",
        runs=plural(len(document.steps), "run"),
        ends=f"between {document.good[:10]} (good) and {document.bad[:10]} (bad)",
        candidates=tuple(map(_commit, document.candidates)),
        cards=cards,
        cards_left_out=left_out,
        steps=tuple(_row(step, document) for step in document.steps[:MOST_STEPS]),
        steps_left_out=max(0, len(document.steps) - MOST_STEPS),
    )
    head = page_head("bisect", document.started_at, document.ciwrap_version)
    return render_page("bisect.html.j2", head, page)


def _next_steps(document: BisectDocument) -> tuple[tuple[str, str], ...]:
    """The command that shows what was changed, as (what for, the command)."""
    if document.found is not None:
        return (("what it changed", f"git show {document.found.name[:10]}"),)
    names = [one.name[:10] for one in document.candidates[:_MOST_SHOWN]]
    return (("what they changed", f"git show {' '.join(names)}"),) if names else ()


def _commit(one: Commit) -> str:
    return f"{one.name[:10]} {safe_name(one.title, 120)}"


def _row(step: Step, document: BisectDocument) -> SimpleNamespace:
    return SimpleNamespace(
        commit=step.commit.name[:10],
        title=safe_name(step.commit.title, 120),
        verdict=step.verdict,
        seconds=seconds_text(step.seconds),
        reason=safe_name(portable_text(step.reason or ""), 300),
        is_found=document.found is not None and step.commit.name == document.found.name,
    )
