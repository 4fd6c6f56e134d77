"""Modes `repeat`, `time` and `trend`: what a command measured, told in the job summary.

As in mode `check`, the command line runs as a child, and the job fails in the gate alone, after
everything has been uploaded.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ciwrap.action.changes import CHANGES
from ciwrap.action.check import (
    META,
    RESULT,
    call_cli,
    common_options,
    finished,
    fresh_stage,
    load_config,
    write_meta,
)
from ciwrap.action.crash import crash_of
from ciwrap.action.outcome import REPORT, SUMMARY, copy_report, publish, tell_files
from ciwrap.action.render import MOST_ANNOTATIONS
from ciwrap.action.runner import command_line
from ciwrap.action.status import DONE, ERROR, NOT_COMPARABLE
from ciwrap.documents import DocumentError
from ciwrap.errors import UsageError
from ciwrap.report.document import load_document
from ciwrap.report.text import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ciwrap.action.check import Call
    from ciwrap.action.inputs import Inputs
    from ciwrap.action.runner import Runner

# What a command says by exit code 1: bounds that do not hold, or that B takes longer.
_ONES = {"repeat": "differ", "time": "slower"}
_LONGEST = 1000
_NOT_COMPARED = 3


def run_measure(inputs: Inputs, runner: Runner) -> None:
    """Calls the command that the mode is named after. Raises UsageError for inputs that have no
    meaning in it.
    """
    arguments = [inputs.mode, *_arguments(inputs, runner)]
    stage = fresh_stage(runner, inputs.artifact_name)
    outputs = ["--markdown", str(stage / SUMMARY), "--report", str(stage / REPORT)]
    call = call_cli([*arguments, *outputs], runner, stage / RESULT)
    write_meta(inputs, runner, stage)
    if call.exit_code in (0, 1, 3) and (stage / SUMMARY).is_file():
        _tell(inputs, runner, stage, call)
    else:  # it came to nothing, and its document says why
        found = finished(call)
        has_crashed = found.result is not None and crash_of(found.result) is not None
        is_told = call.exit_code == _NOT_COMPARED and not has_crashed
        status = NOT_COMPARABLE if is_told else ERROR
        publish(replace(found, status=status), inputs, runner, stage)


def _arguments(inputs: Inputs, runner: Runner) -> list[str]:
    try:
        own = shlex.split(inputs.arguments)
    except ValueError as error:
        raise UsageError(f"the input arguments cannot be read: {error}") from None
    config = load_config(inputs, runner)
    if inputs.mode == "time":
        return [*(["--config", inputs.config] if inputs.config else []), *own]
    options = common_options(inputs, runner, config)
    if inputs.mode == "repeat":
        return [*options, *own, *inputs.checks]
    return [*options, *own, *_results(inputs, runner)]


def _results(inputs: Inputs, runner: Runner) -> list[str]:
    """The JSON results in the folder that `source` names."""
    if not inputs.source:
        raise UsageError("mode trend needs the input source: the folder of the results")
    folder = runner.workspace / inputs.source
    found = sorted(
        path for path in folder.rglob("*.json") if path.is_file() and not _is_beside(path)
    )
    if not found:
        raise UsageError("holds no results (*.json)", file=folder)
    here = runner.workspace
    return [str(path.relative_to(here) if path.is_relative_to(here) else path) for path in found]


def _is_beside(path: Path) -> bool:
    """Whether it is what one of our artifacts has beside its result."""
    return path.name in (META, CHANGES) and path.with_name(RESULT).is_file()


def _tell(inputs: Inputs, runner: Runner, stage: Path, call: Call) -> None:
    """Summary, annotations and outputs of a command that came to an end."""
    codes = {0: DONE, 1: _ONES.get(inputs.mode, ERROR), _NOT_COMPARED: NOT_COMPARABLE}
    runner.set_output("status", codes[call.exit_code])
    tell_files(inputs, runner, stage)
    runner.add_summary((stage / SUMMARY).read_text(encoding="utf-8"))
    lines = [*_annotations(inputs.mode, stage / RESULT)]
    for line in lines[:MOST_ANNOTATIONS]:
        print(line, flush=True)
    copy_report(stage / REPORT, inputs, runner)


def _annotations(mode: str, result: Path) -> Iterator[str]:
    """Warnings of a trend, and what went wrong in repeated runs."""
    try:
        document: Any = load_document(result)
    except (OSError, DocumentError):
        return
    for text in document.get("warnings", ()) if mode == "trend" else ():
        yield command_line("warning", safe_name(text, _LONGEST), title="ciwrap trend")
    for one in document.get("messages", ()) if mode == "repeat" else ():
        if one["level"] in ("error", "warning"):
            text = safe_name(one["text"], _LONGEST)
            yield command_line(one["level"], text, title="ciwrap repeat")
