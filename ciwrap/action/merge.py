"""Mode `merge`: the results of several jobs as one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ciwrap.action.artifact import read_meta, results_below
from ciwrap.action.outcome import ERROR, NOT_COMPARABLE, Outcome, publish, read_result
from ciwrap.errors import CiwrapError, UsageError
from ciwrap.model import Verdict
from ciwrap.report.text import plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ciwrap.action.inputs import Inputs
    from ciwrap.action.runner import Runner
    from ciwrap.model import RunResult

RESULT = "result.json"


def run_merge(inputs: Inputs, runner: Runner) -> None:
    """Reads what `actions/download-artifact` put into the input `source`."""
    from ciwrap.action.check import fresh_stage
    from ciwrap.report.document import to_document, write_document

    if not inputs.source:
        raise UsageError("mode merge needs the input source: the folder of the results")
    folder = runner.workspace / inputs.source
    if not folder.is_dir():
        raise UsageError("is no folder", file=folder, remedy="download the artifacts to it first")
    outcome = merge_folders(list(results_below(folder)), inputs)
    stage = fresh_stage(runner, inputs.artifact_name)
    if outcome.result is not None:
        write_document(to_document(outcome.result), str(stage / RESULT))
    publish(outcome, inputs, runner, stage)


def merge_folders(folders: Sequence[Path], inputs: Inputs) -> Outcome:
    """One outcome of those in the folders; the worst of them, and of their number."""
    outcomes = []
    for folder in folders:
        outcome = read_result(folder / RESULT)
        key = _key_of(folder)
        outcomes.append((key, outcome))
    problems = [f"{key or 'result'}: {one.problem}" for key, one in outcomes if one.problem]
    results = [(key, one.result) for key, one in outcomes if one.result is not None]
    wanted = inputs.expect
    if not outcomes or (wanted is not None and len(outcomes) != wanted):
        count = plural(len(outcomes), "result")
        problems.append(f"{count} found, {'some' if wanted is None else wanted} expected")
    status = _worst([one.status for _, one in outcomes] + [NOT_COMPARABLE] * bool(problems))
    merged = _merged(results) if results else None
    return Outcome(status, merged, "; ".join(problems))


def _merged(results: Sequence[tuple[str, RunResult]]) -> RunResult:
    checks = [
        replace(check, name=f"{key}/{check.name}") if key else check
        for key, result in results
        for check in result.checks
    ]
    first = results[0][1]
    return replace(
        first,
        verdict=Verdict.worst(result.verdict for _, result in results),
        checks=tuple(checks),
        messages=tuple(message for _, result in results for message in result.messages),
        seconds=sum(result.seconds for _, result in results),
    )


def _key_of(folder: Path) -> str:
    try:
        return read_meta(folder).platform_key
    except CiwrapError:
        return ""


def _worst(statuses: Sequence[str]) -> str:
    order = ("match", "differ", NOT_COMPARABLE, ERROR)
    return max(statuses, key=order.index, default=NOT_COMPARABLE)
