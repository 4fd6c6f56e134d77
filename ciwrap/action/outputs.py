"""How a step's status is shown: outputs, job summary, annotations, files to upload.

A program that fails is an error, whatever its mode. What a pull request checks otherwise than its
base is shown even if every number matches: with a bound that is wide enough all numbers do.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from ciwrap.action.github import ERROR, PENDING, RESULT, Inputs, Runner
from ciwrap.base.documents import DocumentError, to_record
from ciwrap.base.errors import CommandFailedError, RepositoryError, UsageError
from ciwrap.base.repository import Repository, ask_git
from ciwrap.model import MessageLevel, RunResult, Verdict
from ciwrap.project.settings import Config
from ciwrap.report.document import from_document, load_document
from ciwrap.report.lead import Group, difference_sentence, groups_of
from ciwrap.report.lead import place as findings_place
from ciwrap.report.markdown import escaped, render_markdown, workflow_command
from ciwrap.report.outputs import write_picture, write_report
from ciwrap.report.text import plural, portable, safe_name
from ciwrap.report.view import where_words
from ciwrap.report.words import headline, sides_of
from ciwrap.studies.changes.find import line_of, markdown_table
from ciwrap.studies.changes.state import Change, ChangesDocument

# GitHub keeps this many of each kind from a step and drops the rest without a word.
MOST_ANNOTATIONS = 10
_LONGEST_ANNOTATION = 1000
_LONGEST_LINE = 300


@dataclass(frozen=True, slots=True)
class Place:
    """Where annotations point to: the configuration, relative to the repository, and the line of
    each check in it. None where there is none within the repository.
    """

    config: str | None = None
    lines: Mapping[str, int] = field(default_factory=dict)


def place_of(config: Config | None, workspace: Path) -> Place:
    if config is None or not config.path.is_relative_to(workspace):
        return Place()
    lines = {check.name: check.line for check in config.checks if check.line is not None}
    return Place(config.path.relative_to(workspace).as_posix(), lines)


def markdown(outcome: StepOutcome, inputs: Inputs) -> str:
    """For the job summary and comments."""
    head = f"_Platform: {escaped(inputs.platform_key)}_\n\n" if inputs.platform_key else ""
    if outcome.status == "error":
        head += f"**ciwrap: error.** {escaped(outcome.problem, 1000)}\n\n"
        head += _last_lines(outcome.last_lines)
    return head + (render_markdown(outcome.result) if outcome.result is not None else "")


def from_artifact(outcome: StepOutcome, inputs: Inputs, stage: Path) -> str:
    """How the numbers of this run become goldens; '' where none wait."""
    if outcome.result is None or not (stage / PENDING).is_dir() or not inputs.upload:
        return ""
    name = inputs.artifact_name
    options = f" --config {shlex.quote(inputs.config)}" if inputs.config else ""
    paths = [one.golden_path for one in outcome.result.checks if one.golden_path is not None]
    folder = ""
    if paths and (inputs.golden_dir or inputs.platform_key):
        # The goldens of this platform have a folder of their own.
        folder = f" --golden-dir {shlex.quote(PurePosixPath(paths[0]).parent.as_posix())}"
    words = f"ciwrap accept --from {name}.zip{options}{folder} --reason 'WHY'"
    fence = "`" * 8
    return (
        f"Of this very run, with the artifact `{name}` (its page is `report.html`) beside a clone:"
        f"\n\n{fence}sh\n{safe_name(words, _LONGEST_ANNOTATION)}\n{fence}\n"
    )


def _last_lines(text: str) -> str:
    """What a program printed last, as text in which nothing has a meaning."""
    lines = [safe_name(line, _LONGEST_LINE) for line in text.splitlines()]
    if not lines:
        return ""
    ticks = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, ticks + 1)
    return "\n".join(["It printed last:", "", f"{fence}text", *lines, fence, "", ""])


def annotation_lines(outcome: StepOutcome, place: Place) -> Iterator[str]:
    """Workflow commands for what went wrong, worst first, as many as GitHub shows of a kind."""
    errors, warnings = [], []
    result = None if outcome.result is None else portable(outcome.result)
    if outcome.problem:
        errors.append(_annotation("error", outcome.problem, "ciwrap", place))
    if result is not None:
        bad = _bad(result)
        errors += [_of_group(group, place) for group in bad if group.verdict.is_alarm]
        # What could not be read, before what is missing because of that.
        if not outcome.problem:
            errors += _of_messages(result, MessageLevel.ERROR, place)
        errors += [_of_group(group, place) for group in bad if not group.verdict.is_alarm]
        warnings = _of_messages(result, MessageLevel.WARNING, place)
    yield from limited("error", errors)
    yield from limited("warning", warnings)


def _bad(result: RunResult) -> list[Group]:
    return [group for group in groups_of(result) if group.verdict is not Verdict.MATCH]


def _of_group(group: Group, place: Place) -> str:
    first = group.first
    known = group.verdict.is_alarm
    sides = sides_of(group.check, first)
    what = difference_sentence(first, sides) if known else headline(first)
    more = where_words(group)
    text = f"{findings_place(first)}: {what}. {more[:1].upper()}{more[1:]}".strip()
    title = f"ciwrap: {group.name} {group.verdict.words}"
    return _annotation("error", text, title, place, group.check.name)


def _of_messages(result: RunResult, level: MessageLevel, place: Place) -> list[str]:
    kind = level.value
    found = [
        _annotation(kind, one.text, "ciwrap", place)
        for one in result.messages
        if one.level is level
    ]
    return found + [
        _annotation(kind, one.text, f"ciwrap: {check.name}", place, check.name)
        for check in result.checks
        for one in check.messages
        if one.level is level
    ]


def _annotation(kind: str, text: str, title: str, place: Place, check: str | None = None) -> str:
    return workflow_command(
        kind,
        safe_name(text, _LONGEST_ANNOTATION),
        title=safe_name(title),
        file=place.config,
        line=place.lines.get(check) if check is not None else None,
    )


def limited(kind: str, found: list[str]) -> Iterator[str]:
    yield from found[: MOST_ANNOTATIONS - (len(found) > MOST_ANNOTATIONS)]
    if len(found) > MOST_ANNOTATIONS:
        more = f"+{len(found) - MOST_ANNOTATIONS + 1} more: see the job summary"
        yield workflow_command(kind, more, title="ciwrap")


_MOST_LINES = 20
_LONGEST_COMMAND = 200


def crash_of(result: RunResult) -> tuple[str, str] | None:
    """The first command of a result that failed: how it ended, and the end of what it printed. None
    if none failed.
    """
    for command in (result.command, *(check.command for check in result.checks)):
        if command is not None and command.exit_code != 0:
            name = " ".join(command.command.split())[:_LONGEST_COMMAND]
            lines = command.output_tail.rstrip().splitlines()[-_MOST_LINES:]
            return f"the command {name!r} {command.ending}", "\n".join(lines)
    messages = [*result.messages, *(one for check in result.checks for one in check.messages)]
    failed = [one.text for one in messages if one.slug == CommandFailedError.slug]
    return (failed[0], "") if failed else None


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
class CheckChanges:
    """changes: None where it is not known what they are. problem: why. document: what was read, to
    be written where the program under test can no longer change it. wider: for the gate: a count,
    UNKNOWN, or '' where there is no base to compare anything with.
    """

    changes: Sequence[Change] | None = None
    problem: str = ""
    document: bytes = b""

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
    runner: Runner, options: Sequence[str], call: Callable[[list[str], Path], int]
) -> CheckChanges:
    """The changes of this pull request. call: runs ciwrap and writes its document to a path."""
    if not _is_change(runner):
        return CheckChanges()
    try:
        base = base_of(runner)
    except (RepositoryError, UsageError) as error:
        return CheckChanges(problem=str(error))
    if base is None:
        return CheckChanges(
            problem="the base of the pull request was not fetched: give actions/checkout the input"
            " `fetch-depth: 2`, or `fetch-depth: 0` where it has a `ref`"
        )
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, CHANGES)
        exit_code = call(["changes", "--base", base, *options], path)
        if exit_code != 0:
            return CheckChanges(
                problem=f"`ciwrap changes` ended with exit code {exit_code}: see the log"
            )
        return replace(read_changes(path), document=path.read_bytes())


def read_changes(path: Path) -> CheckChanges:
    """What a document tells, which may be a stranger's; nothing where there is none."""
    if not path.is_file():
        return CheckChanges()
    try:
        return CheckChanges(to_record(load_document(path), ChangesDocument).changes)
    except (OSError, DocumentError) as error:
        return CheckChanges(problem=f"{path.name} cannot be read: {error}"[:300])


def changes_of_results(runner: Runner, folders: Sequence[Path]) -> CheckChanges:
    """What several results of this pull request check otherwise, all of it once."""
    if not _is_change(runner) or not folders:
        return CheckChanges()
    return changes_told(folders)


def changes_told(folders: Sequence[Path]) -> CheckChanges:
    """What the results in these folders tell; not known if one of them does not."""
    found = [read_changes(folder / CHANGES) for folder in folders]
    problems = [one.problem for one in found if one.problem]
    silent = sum(one.changes is None and not one.problem for one in found)
    if silent:
        does = "does" if silent == 1 else "do"
        problems.append(f"{silent} of {plural(len(found), 'result')} {does} not tell")
    if problems:
        return CheckChanges(problem="; ".join(problems))
    return CheckChanges(
        tuple(dict.fromkeys(change for one in found for change in one.changes or ()))
    )


def base_of(runner: Runner) -> str | None:
    """The commit that the pull request is compared with; None if it is not in the clone.

    GitHub tests a merge of its own: its first parent is the base as it is now. A workflow may check
    out the head instead, which may be a merge, too: there the author chose the first parent.
    """
    repository = Repository.around(runner.workspace)
    head, *parents = repository.git("rev-list", "--parents", "-n", "1", "HEAD").split()
    if len(parents) == _MERGED_PARENTS:
        first, merged = parents
        # GitHub's own merge is of the head of the pull request, or of the merge queue.
        is_of_github = _named(runner, "head") == (merged if _is_pull_request(runner) else head)
        if is_of_github and _is_there(runner, first):
            return first
    named = _named(runner, "base")
    return named if named and _is_there(runner, named) else None


def revision_of(name: str, runner: Runner) -> str:
    """The revision that the input `base` names: a clone of CI has no branches but its own. Raises
    UsageError for one that it lacks.
    """
    pull_request = runner.event.get("pull_request")
    named = (pull_request.get("base") or {}).get("ref") if isinstance(pull_request, dict) else None
    known = base_of(runner) if named == name and _is_pull_request(runner) else None
    found = known or Repository.around(runner.workspace).base_name(name)
    if found.startswith("-") or not _is_there(runner, found):
        raise UsageError(
            f"the base {name!r} was not fetched",
            remedy="give actions/checkout the input `fetch-depth: 0`; 2 will do on pull requests"
            " against that branch",
        )
    return found


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


def change_annotations(found: CheckChanges) -> Iterator[str]:
    """A warning at the line of ciwrap.yaml for each change that checks less, and for what is not
    known; for goldens replaced, too.
    """
    if found.problem:
        text = safe_name(f"what this pull request checks is not known: {found.problem}", _LONGEST)
        yield workflow_command("warning", text, title="ciwrap")
    told = [one for one in found.changes or () if one.wider is not False or one.what == "values"]
    lines = [
        workflow_command(
            "warning",
            safe_name(line_of(one), _LONGEST),
            title=_TITLES[one.wider],
            file=one.file,
            line=one.line,
        )
        for one in told
    ]
    yield from limited("warning", lines)


_USAGE = 2
NO_CHANGES = CheckChanges()
SUMMARY = "summary.md"
REPORT = "report.html"
PICTURE = "difference.png"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """status: one of STATUSES. result: None where there is none to show. problem: why, and
    last_lines: the end of what the program printed that crashed.
    """

    status: str
    result: RunResult | None = None
    problem: str = ""
    last_lines: str = ""

    @staticmethod
    def failed(problem: str) -> StepOutcome:
        return StepOutcome(ERROR, problem=problem)

    @property
    def root(self) -> str:
        """A digest over the roots of all variables of the new run: equal for runs that round to the
        same values; '' if one is not known.
        """
        checks = self.result.checks if self.result is not None else ()
        roots = [(c.name, v.id.text, v.root) for c in checks for v in c.variables]
        if not roots or any(root is None for _, _, root in roots):
            return ""
        return hashlib.sha256(repr(sorted(roots)).encode()).hexdigest()[:32]


def read_result(path: Path, *, exit_code: int | None = None) -> StepOutcome:
    """The outcome a result document tells of, compared with the exit code where that is known.

    The document may be somebody else's: anything malformed is an error, never a match.
    """
    try:
        document = load_document(path)
        result = from_document(document)
        stated = document.get("exit_code")
    except (OSError, DocumentError) as error:
        return StepOutcome.failed(f"{path.name} is not a result: {error}"[:300])
    if exit_code is not None and stated != exit_code:
        return StepOutcome(
            ERROR, result, f"ciwrap ended with exit code {exit_code}, its result says {stated!r}"
        )
    crash = crash_of(result)
    if crash is not None:
        return StepOutcome(ERROR, result, *crash)
    if stated == _USAGE:
        return StepOutcome(ERROR, result, "; ".join(one.text for one in result.messages))
    if stated != int(result.verdict.exit_code):
        return StepOutcome(ERROR, result, f"the result is at odds with its exit code {stated!r}")
    return StepOutcome(result.verdict.value.replace("_", "-"), result)


def summary(
    outcome: StepOutcome, inputs: Inputs, changes: Sequence[CheckChanges], *more: str
) -> str:
    """For job summaries and comments. What checks less comes before what matches by it."""
    first = [one.markdown for one in changes if one.may_be_less]
    then = [one.markdown for one in changes if not one.may_be_less]
    return "\n".join(part for part in (*first, markdown(outcome, inputs), *then, *more) if part)


def publish(
    outcome: StepOutcome,
    inputs: Inputs,
    runner: Runner,
    stage: Path,
    place: Place | None = None,
    changes: CheckChanges = NO_CHANGES,
) -> None:
    """Tells of the outcome in every way there is; the result document lies in `stage` already."""
    counts = dict.fromkeys(Verdict.worst_first(), 0)
    if outcome.result is not None:
        counts = outcome.result.verdict_counts
    text = summary(outcome, inputs, (changes,), from_artifact(outcome, inputs, stage))
    (stage / SUMMARY).write_text(text, encoding="utf-8", errors="backslashreplace")
    report = stage / REPORT
    if outcome.result is not None:
        write_report(report, outcome.result)
        if not write_picture(stage / PICTURE, outcome.result):
            (stage / PICTURE).unlink(missing_ok=True)  # of an earlier call, on a runner that stays
    for name, value in {
        "status": outcome.status,
        "root": outcome.root,
        "compared": counts[Verdict.MATCH] + counts[Verdict.UNDECIDED] + counts[Verdict.DIFFER],
        "matching": counts[Verdict.MATCH],
        "undecided": counts[Verdict.UNDECIDED],
        "differing": counts[Verdict.DIFFER],
        "not-comparable": counts[Verdict.NOT_COMPARABLE],
        "wider": changes.wider,
    }.items():
        runner.set_output(name, value)
    tell_files(inputs, runner, stage)
    runner.add_summary(text)
    for line in (*annotation_lines(outcome, place or Place()), *change_annotations(changes)):
        print(line, flush=True)
    copy_report(report, inputs, runner)


def tell_files(inputs: Inputs, runner: Runner, stage: Path) -> None:
    """The outputs that say where the files of a call are."""
    report, result, pending = stage / REPORT, stage / RESULT, stage / PENDING
    for name, value in {
        "artifact-name": inputs.artifact_name,
        "artifact-path": stage if inputs.upload else "",
        "report-path": report if report.is_file() else "",
        "result-path": result if result.is_file() else "",
        "summary-path": stage / SUMMARY,
        "pending-path": pending if pending.is_dir() else "",
    }.items():
        runner.set_output(name, value)


def copy_report(report: Path, inputs: Inputs, runner: Runner) -> None:
    """Puts the page, if there is one, where the input `report` says. It comes last: a place that
    cannot be written keeps nothing else from being told. Raises UsageError for one.
    """
    if not inputs.report or not report.is_file():
        return
    copy = runner.workspace / inputs.report
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(report.read_bytes())
    except OSError as error:
        raise UsageError(
            f"the input report cannot be followed: {error.strerror or error}",
            file=copy,
            remedy="name a file that can be written",
        ) from None
