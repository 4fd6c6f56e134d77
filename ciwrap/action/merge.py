"""Mode `merge`: the results of several jobs as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.action.artifact import read_meta, results_below, source_folder
from ciwrap.action.changes import changes_of_results
from ciwrap.action.outcome import Outcome, publish, read_result
from ciwrap.action.status import ERROR, NOT_COMPARABLE, STATUSES
from ciwrap.errors import CiwrapError, UsageError
from ciwrap.model import Message, MessageLevel, RunResult, Verdict
from ciwrap.report.merge import merge_results
from ciwrap.report.text import plural
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ciwrap.action.inputs import Inputs
    from ciwrap.action.runner import Runner

RESULT = "result.json"


def run_merge(inputs: Inputs, runner: Runner) -> None:
    """Reads what `actions/download-artifact` put into the input `source`."""
    from ciwrap.action.check import fresh_stage
    from ciwrap.report.document import to_document, write_document

    if not inputs.source:
        raise UsageError("mode merge needs the input source: the folder of the results")
    folders = list(results_below(source_folder(inputs, runner)))
    outcome = merge_folders(folders, inputs)
    stage = fresh_stage(runner, inputs.artifact_name)
    if outcome.result is not None:
        write_document(to_document(outcome.result), str(stage / RESULT))
    publish(outcome, inputs, runner, stage, changes=changes_of_results(runner, folders))


def merge_folders(folders: Sequence[Path], inputs: Inputs) -> Outcome:
    """One outcome of those in the folders; the worst of them, and of their number."""
    outcomes = [(_key_of(folder), read_result(folder / RESULT)) for folder in folders]
    problems = [f"{key or 'result'}: {one.problem}" for key, one in outcomes if one.problem]
    results = [(key, one.result) for key, one in outcomes if one.result is not None]
    wanted = inputs.expect
    if not outcomes or (wanted is not None and len(outcomes) != wanted):
        count = plural(len(outcomes), "result")
        problems.append(f"{count} found, {'some' if wanted is None else wanted} expected")
    status = _worst([one.status for _, one in outcomes] + [NOT_COMPARABLE] * bool(problems))
    if not results:
        empty = RunResult(Verdict.NOT_COMPARABLE)
        results = [("", empty)]
    problem = "; ".join(problems) if status == ERROR else ""
    return Outcome(status, _merged(results, problems), problem)


def _merged(results: Sequence[tuple[str, RunResult]], problems: Sequence[str]) -> RunResult:
    """Nothing that is missing may look like a match, whoever renders this."""
    labels = [key or f"result {number}" for number, (key, _) in enumerate(results, 1)]
    merged = merge_results([result for _, result in results], labels)
    if not problems:
        return merged
    messages = tuple(Message(MessageLevel.ERROR, problem) for problem in problems)
    return replace(merged, verdict=Verdict.NOT_COMPARABLE, messages=(*messages, *merged.messages))


def _key_of(folder: Path) -> str:
    try:
        return read_meta(folder).platform_key
    except CiwrapError:
        return ""


def _worst(statuses: Sequence[str]) -> str:
    return max(statuses, key=STATUSES.index, default=NOT_COMPARABLE)
