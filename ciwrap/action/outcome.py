"""The status of a call, and how it is told: outputs, job summary, annotations, files to upload."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ciwrap.action.changes import Found, change_annotations
from ciwrap.action.crash import crash_of
from ciwrap.action.render import Place, annotation_lines, from_artifact, markdown
from ciwrap.action.status import ERROR
from ciwrap.documents import DocumentError
from ciwrap.errors import UsageError
from ciwrap.model import Verdict
from ciwrap.report.document import from_document, load_document
from ciwrap.report.outputs import write_picture, write_report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ciwrap.action.inputs import Inputs
    from ciwrap.action.runner import Runner
    from ciwrap.model import RunResult

_USAGE = 2
NO_CHANGES = Found()
SUMMARY = "summary.md"
REPORT = "report.html"
PICTURE = "difference.png"


@dataclass(frozen=True, slots=True)
class Outcome:
    """status: one of STATUSES. result: None where there is none to show. problem: why, and
    last_lines: the end of what the program printed that crashed.
    """

    status: str
    result: RunResult | None = None
    problem: str = ""
    last_lines: str = ""

    @staticmethod
    def failed(problem: str) -> Outcome:
        return Outcome(ERROR, problem=problem)

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


def read_result(path: Path, *, exit_code: int | None = None) -> Outcome:
    """The outcome a result document tells of, held against the exit code where that is known.

    The document may be somebody else's: anything malformed is an error, never a match.
    """
    try:
        document = load_document(path)
        result = from_document(document)
        stated = document.get("exit_code")
    except (OSError, DocumentError) as error:
        return Outcome.failed(f"{path.name} is not a result: {error}"[:300])
    if exit_code is not None and stated != exit_code:
        return Outcome(
            ERROR, result, f"ciwrap ended with exit code {exit_code}, its result says {stated!r}"
        )
    crash = crash_of(result)
    if crash is not None:
        return Outcome(ERROR, result, crash.problem, crash.last_lines)
    if stated == _USAGE:
        return Outcome(ERROR, result, "; ".join(one.text for one in result.messages))
    if stated != int(result.verdict.exit_code):
        return Outcome(ERROR, result, f"the result is at odds with its exit code {stated!r}")
    return Outcome(result.verdict.value.replace("_", "-"), result)


def summary(outcome: Outcome, inputs: Inputs, changes: Sequence[Found], *more: str) -> str:
    """For job summaries and comments. What checks less comes before what matches by it."""
    first = [one.markdown for one in changes if one.may_be_less]
    then = [one.markdown for one in changes if not one.may_be_less]
    return "\n".join(part for part in (*first, markdown(outcome, inputs), *then, *more) if part)


def publish(
    outcome: Outcome,
    inputs: Inputs,
    runner: Runner,
    stage: Path,
    place: Place | None = None,
    changes: Found = NO_CHANGES,
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
        "compared": counts[Verdict.MATCH] + counts[Verdict.SUSPECT] + counts[Verdict.DIFFER],
        "matching": counts[Verdict.MATCH],
        "suspect": counts[Verdict.SUSPECT],
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
    report, result, pending = stage / REPORT, stage / "result.json", stage / "pending"
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
