"""`ciwrap bisect`: which commit moved a number?"""

from __future__ import annotations

import contextlib
import os
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ciwrap.cli.options import (
    check_option,
    config_options,
    json_option,
    report_option,
    resource_options,
)
from ciwrap.errors import NotComparableError, UsageError
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.bisect.document import BisectDocument, Step
    from ciwrap.bisect.search import Search
    from ciwrap.cli.session import Session
    from ciwrap.model import RunResult
    from ciwrap.repeat.folders import RunFolders
    from ciwrap.review.project import Project


@click.command(name="bisect", short_help="Find the commit that moved a number.")
@click.argument("good")
@click.argument("bad")
@click.argument("words", nargs=-1, metavar="[-- COMMAND]")
@check_option
@config_options
@json_option
@report_option
@resource_options
@click.pass_obj
def command(
    session: Session,
    good: str,
    bad: str,
    words: tuple[str, ...],
    check_names: tuple[str, ...],
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Find the first commit after GOOD whose outputs differ from the goldens of GOOD.

    At each commit that git's bisection asks for, the command of `run` (or COMMAND, which should
    build the program and run it) runs in the working tree, and `ciwrap run` judges what it wrote.
    A commit that cannot be compared (exit code 3), say since it does not build, is passed over.
    Configuration and goldens are those of GOOD at every commit.

    The working tree must have no changes, and in the end is what it was, also after Ctrl-C.

    Exit codes: 0 found, 2 usage or configuration, 3 not found, since too much could not be
    compared.
    """
    from ciwrap.bisect.reference import reference_of
    from ciwrap.bisect.search import Search, refuse_files_in_the_way, refuse_unless_ready
    from ciwrap.cli.load_project import project_of
    from ciwrap.cli.run import with_command
    from ciwrap.interrupts import ends_are_interrupts
    from ciwrap.repeat.folders import RunFolders
    from ciwrap.report.text import safe_text
    from ciwrap.repository import Repository

    started = time.monotonic()
    repository = Repository.around(Path.cwd())
    first, last = repository.commit(good), repository.commit(bad)
    refuse_unless_ready(repository, first, last)
    with (
        ends_are_interrupts(),
        reference_of(repository, first, config_path, golden_dir) as reference,
        _working_at(repository.top),
    ):
        project = project_of(reference.config, reference.golden_dir, check_names)
        if words:
            project = with_command(project, words[0] if len(words) == 1 else words)
        with (
            # Runs that `repeat --keep` has kept stay.
            RunFolders(project.root, prefix="commit", by_ensemble=True) as folders,
            Search(repository, first, last) as search,
        ):
            for note in folders.notes:
                session.console.print(f"warning: {safe_text(note)}")
            folders.set_aside(project.checks)
            refuse_files_in_the_way(repository, first, last)
            finding = _Finding(session, project, search, folders, reference.golden_text)
            document = finding.run(started)
    session.emit_document(_plain(document))
    if session.report_target is not None:
        from ciwrap.bisect.bisect_page import render_bisect_html
        from ciwrap.report.document import write_text

        write_text(render_bisect_html(document), session.report_target, "the report")
    return _tell(session, document)


def _plain(document: BisectDocument) -> dict[str, Any]:
    from ciwrap.report.document import plain, to_document

    if document.result is None:
        return plain(document)  # type: ignore[no-any-return]
    return {**plain(document), "result": to_document(document.result)}


@contextlib.contextmanager
def _working_at(folder: Path) -> Iterator[None]:
    """The folder that this was called in may not be there in every commit."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.chdir(before)


class _Finding:
    """One search, commit by commit."""

    def __init__(
        self,
        session: Session,
        project: Project,
        search: Search,
        folders: RunFolders,
        golden_text: str,
    ) -> None:
        self._session = session
        self._project = project
        self._search = search
        self._folders = folders
        self._golden_text = golden_text
        self._steps: list[Step] = []
        self._results: dict[str, RunResult] = {}

    def run(self, started: float) -> BisectDocument:
        """Searches to the end. Raises UsageError if GOOD or BAD is not what it should be, and
        NotComparableError if that cannot be said.
        """
        from ciwrap.bisect.document import BisectDocument
        from ciwrap.bisect.search import describe_commit

        search = self._search
        search.begin()
        while not search.is_over:
            search.mark(self._look(search.here).verdict)
        found = search.found
        if found is None:
            self._check_sides()
        else:
            self._check_ends(found)
        result = None if found is None else self._as_told(self._results[found])
        return BisectDocument(
            schema_version=1,
            kind="bisect",
            exit_code=3 if found is None else 0,
            good=search.good,
            bad=search.bad,
            found=None if found is None else describe_commit(search.repository, found),
            candidates=tuple(describe_commit(search.repository, one) for one in search.possible),
            steps=tuple(self._steps),
            result=result,
            seconds=time.monotonic() - started,
            ciwrap_version=version("ciwrap"),
            started_at=self._session.started_at,
        )

    def _as_told(self, result: RunResult) -> RunResult:
        """The result, which names where the goldens are from and no folder of this machine."""
        from ciwrap.report.paths import relative_to
        from ciwrap.report.trim import trimmed

        checks = tuple(
            replace(check, golden_path=f"{self._golden_text}/{Path(check.golden_path).name}")
            if check.golden_path is not None
            else check
            for check in result.checks
        )
        return relative_to(trimmed(replace(result, checks=checks, kind="bisect")), Path.cwd())

    def _look(self, commit: str) -> RunResult:
        """Runs and checks the commit that is checked out."""
        from ciwrap.bisect.document import Step
        from ciwrap.bisect.search import describe_commit
        from ciwrap.cli.run import run_and_check
        from ciwrap.model import Verdict
        from ciwrap.report.text import safe_name, seconds_text

        started = time.monotonic()
        number = len(self._steps) + 1
        try:
            result, _ = run_and_check(self._session, self._project)
        finally:
            self._folders.take(number, self._project.checks)
            self._folders.drop(number)
        seconds = time.monotonic() - started
        described = describe_commit(self._search.repository, commit)
        reason = _reason(result) if result.verdict is Verdict.NOT_COMPARABLE else None
        self._steps.append(Step(described, result.verdict, seconds, reason))
        self._results[commit] = result
        self._session.console.print(
            f"{number}  {commit[:10]}  {result.verdict.words:<14}  {seconds_text(seconds):>7}"
            f"  {safe_name(described.title, 60)}"
        )
        return result

    def _check_ends(self, found: str) -> None:
        """Looks at BAD, or at GOOD, where the answer rests on it and nobody has."""
        search = self._search
        if found not in self._results:
            self._require(found, "BAD", is_good=False)
        parents = search.repository.git("rev-parse", f"{found}^@").split()
        if search.good in parents and search.good not in self._results:
            self._require(search.good, "GOOD", is_good=True)

    def _check_sides(self) -> None:
        """Looks at GOOD and BAD unless some commit was good, and some other one bad: that a number
        moved between commits that cannot be compared rests on it.
        """
        from ciwrap.model import Verdict

        told = [one.verdict for one in self._steps if one.verdict is not Verdict.NOT_COMPARABLE]
        if all(one.is_good for one in told):
            self._require(self._search.bad, "BAD", is_good=False)
        if not any(one.is_good for one in told):
            self._require(self._search.good, "GOOD", is_good=True)

    def _require(self, commit: str, name: str, *, is_good: bool) -> None:
        from ciwrap.model import Verdict

        self._search.look_at(commit)
        result = self._look(commit)
        if result.verdict is Verdict.NOT_COMPARABLE:
            raise NotComparableError(
                f"{name} ({commit[:10]}) cannot be compared: {_reason(result)}"
            )
        if result.verdict.is_good is not is_good:
            raise UsageError(
                f"{name} ({commit[:10]}) {_THIRD_PERSON[result.verdict]} the goldens that commits"
                " are compared with, so there is nothing to find between GOOD and BAD"
            )


_THIRD_PERSON = {
    "match": "matches",
    "suspect": "may differ from",
    "differ": "differs from",
    "consistent": "is consistent with",
    "inconsistent": "is inconsistent with",
}


def _reason(result: RunResult) -> str:
    """Why a commit could not be compared: the first reason."""
    from ciwrap.model import MessageLevel, Verdict

    messages = [*result.messages, *(one for check in result.checks for one in check.messages)]
    reasons = [one.text for one in messages if one.level is MessageLevel.ERROR]
    reasons += [
        f"{variable.id.text}: {variable.reason}"
        for check in result.checks
        for variable in check.variables
        if variable.verdict is Verdict.NOT_COMPARABLE
    ]
    return reasons[0] if reasons else "nothing was compared"


def _tell(session: Session, document: BisectDocument) -> int:
    from ciwrap.bisect.wording import found_text, not_found_text
    from ciwrap.report.terminal import render
    from ciwrap.report.text import plural, safe_name, safe_text

    console = session.console
    runs = plural(len(document.steps), "run")
    if document.found is None or document.result is None:
        console.print(f"{not_found_text(document)} ({runs})")
        for one in document.candidates:
            console.print(f"  {one.name[:10]}  {safe_name(one.title, 80)}")
        reason = next((step.reason for step in document.steps if step.reason), None)
        if reason:
            console.print(f"  the first reason: {safe_text(reason)}")
        return document.exit_code
    found = document.found
    console.print()
    console.print(f"found: {found_text(document)} ({runs})")
    console.print(f"  {safe_name(found.title, 120)}")
    console.print(f"  {safe_name(found.author)}, {found.when}")
    console.print()
    render(document.result, console, verbose=session.verbose)
    return document.exit_code
