"""What a pull request checks otherwise than its base: found before its program runs.

The table is told also when every number matches: with a bound that is wide enough all of them do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ciwrap.action.render import limited
from ciwrap.action.runner import command_line
from ciwrap.changes.document import Change, ChangesDocument
from ciwrap.changes.wording import line_of, markdown_table
from ciwrap.documents import DocumentError, to_record
from ciwrap.errors import RepositoryError, UsageError
from ciwrap.report.document import load_document
from ciwrap.report.markdown import escaped
from ciwrap.report.text import plural, safe_name
from ciwrap.repository import Repository, ask_git

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ciwrap.action.runner import Runner

CHANGES = "changes.json"
UNKNOWN = "unknown"
_PULL_REQUESTS = frozenset({"pull_request", "pull_request_target"})
_MERGE_GROUP = "merge_group"
_LONGEST = 1000
_MERGED_PARENTS = 2
_TITLES = {
    True: "ciwrap: less is checked",
    None: "ciwrap: less may be checked",
    False: "ciwrap: golden replaced",
}


@dataclass(frozen=True, slots=True)
class Found:
    """changes: None where it is not known what they are. problem: why. wider: for the gate: a
    count, UNKNOWN, or '' where there is no base to hold anything against.
    """

    changes: Sequence[Change] | None = None
    problem: str = ""

    @property
    def wider(self) -> str:
        if self.changes is None:
            return UNKNOWN if self.problem else ""
        less = sum(change.wider is True for change in self.changes)
        is_known = all(change.wider is not None for change in self.changes)
        return str(less) if less or is_known else UNKNOWN

    @property
    def may_be_less(self) -> bool:
        """Whether less is checked than before, or may be."""
        return self.wider not in ("", "0")

    @property
    def markdown(self) -> str:
        """For summary and comment; '' where nothing is to be told."""
        if self.problem:
            return f"### What is checked\n\n**Not known: {escaped(self.problem, 500)}.**\n"
        return markdown_table(self.changes or ())


def find_changes(
    runner: Runner, stage: Path, options: Sequence[str], call: Callable[[list[str], Path], int]
) -> Found:
    """The changes of this pull request. call: runs ciwrap and writes its document to a path."""
    if not _is_change(runner):
        return Found()
    try:
        base = base_of(runner)
    except (RepositoryError, UsageError) as error:
        return Found(problem=str(error))
    if base is None:
        return Found(
            problem="the base of the pull request was not fetched: give actions/checkout the input"
            " `fetch-depth: 2`, or `fetch-depth: 0` where it has a `ref`"
        )
    path = stage / CHANGES
    exit_code = call(["changes", "--base", base, *options], path)
    if exit_code != 0:
        path.unlink(missing_ok=True)
        return Found(problem=f"`ciwrap changes` ended with exit code {exit_code}: see the log")
    return read_changes(path)


def read_changes(path: Path) -> Found:
    """What a document tells, which may be a stranger's; nothing where there is none."""
    if not path.is_file():
        return Found()
    try:
        return Found(to_record(load_document(path), ChangesDocument).changes)
    except (OSError, DocumentError) as error:
        return Found(problem=f"{path.name} cannot be read: {error}"[:300])


def changes_of_results(runner: Runner, folders: Sequence[Path]) -> Found:
    """What several results of this pull request check otherwise, all of it once."""
    if not _is_change(runner) or not folders:
        return Found()
    found = [read_changes(folder / CHANGES) for folder in folders]
    problems = [one.problem for one in found if one.problem]
    silent = sum(one.changes is None and not one.problem for one in found)
    if silent:
        does = "does" if silent == 1 else "do"
        problems.append(f"{silent} of {plural(len(found), 'result')} {does} not tell")
    if problems:
        return Found(problem="; ".join(problems))
    return Found(tuple(dict.fromkeys(change for one in found for change in one.changes or ())))


def base_of(runner: Runner) -> str | None:
    """The commit that the pull request is held against; None if it is not in the clone.

    GitHub tests a merge of its own: its first parent is the base as it is now. A workflow may check
    out the head instead, which may be a merge, too: there the author chose the first parent.
    """
    repository = Repository.around(runner.workspace)
    head, *parents = repository.git("rev-list", "--parents", "-n", "1", "HEAD").split()
    if len(parents) == _MERGED_PARENTS and _is_of_github(runner, head, parents[1]):
        first = parents[0]
        if _is_there(runner, first):
            return first
    named = _named(runner, "base")
    return named if named and _is_there(runner, named) else None


def _is_of_github(runner: Runner, merge: str, merged: str) -> bool:
    """Whether a merge is GitHub's own: of the head of the pull request, or of the merge queue."""
    return _named(runner, "head") == (merged if _is_pull_request(runner) else merge)


def _is_there(runner: Runner, commit: str) -> bool:
    return ask_git(runner.workspace, "cat-file", "-e", f"{commit}^{{commit}}") is not None


def _is_change(runner: Runner) -> bool:
    return _is_pull_request(runner) or runner.environment.get("GITHUB_EVENT_NAME") == _MERGE_GROUP


def _is_pull_request(runner: Runner) -> bool:
    return runner.environment.get("GITHUB_EVENT_NAME", "") in _PULL_REQUESTS


def _named(runner: Runner, side: str) -> str:
    """The commit that the event names as `base` or `head`; '' for none."""
    event = runner.event
    group, pull = event.get("merge_group"), event.get("pull_request")
    if isinstance(group, dict):
        return str(group.get(f"{side}_sha", ""))
    one = pull.get(side) if isinstance(pull, dict) else None
    return str(one.get("sha", "")) if isinstance(one, dict) else ""


def change_annotations(found: Found) -> Iterator[str]:
    """A warning at the line of ciwrap.yaml for each change that checks less, and for what is not
    known; for goldens replaced, too.
    """
    if found.problem:
        text = safe_name(f"what this pull request checks is not known: {found.problem}", _LONGEST)
        yield command_line("warning", text, title="ciwrap")
    told = [one for one in found.changes or () if one.wider is not False or one.what == "values"]
    yield from limited("warning", [_annotation_of(one) for one in told])


def _annotation_of(change: Change) -> str:
    text = safe_name(line_of(change), _LONGEST)
    title = _TITLES[change.wider]
    return command_line("warning", text, title=title, file=change.file, line=change.line)
