"""The step that compares: runs the command line, and turns its result into outputs and summary.

It never fails the job by itself; the gate does, after the results have been uploaded.
"""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ciwrap.action.artifact import Meta
from ciwrap.action.changes import find_changes
from ciwrap.action.inputs import NO_COMMAND
from ciwrap.action.leftovers import run_to_the_end
from ciwrap.action.outcome import Outcome, publish, read_result
from ciwrap.action.render import place_of
from ciwrap.action.runner import plain_log
from ciwrap.errors import CiwrapError

if TYPE_CHECKING:
    from ciwrap.action.inputs import Inputs
    from ciwrap.action.runner import Runner
    from ciwrap.config import Config

RESULT = "result.json"
PENDING = "pending"
META = "meta.json"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the command line and what it left: its exit code and its JSON result."""

    exit_code: int
    result_path: Path


def run_check(inputs: Inputs, runner: Runner) -> None:
    """Mode `check`: the program if there is one to run, then the comparison."""
    stage = fresh_stage(runner, inputs.artifact_name)
    config = load_config(inputs, runner)
    options = common_options(inputs, runner, config)
    # Before the program runs: afterwards the files may be what it made of them.
    changes = find_changes(
        runner, stage, _given(inputs), lambda words, path: call_cli(words, runner, path).exit_code
    )
    arguments = [*verb(inputs, config), *options, *inputs.checks]
    call = call_cli([*arguments, "--pending", str(stage / PENDING)], runner, stage / RESULT)
    write_meta(inputs, runner, stage)
    place = place_of(config, runner.workspace)
    publish(finished(call), inputs, runner, stage, place, changes)


def fresh_stage(runner: Runner, name: str) -> Path:
    """The folder of this call's results, empty. That of an earlier step of the job, whose outputs
    name it, stays.
    """
    count = itertools.count(2)
    stage = runner.stage / name
    while stage.exists():
        stage = runner.stage / f"{name}~{next(count)}"
    stage.mkdir(parents=True)
    return stage


def load_config(inputs: Inputs, runner: Runner) -> Config | None:
    """The configuration; None if it cannot be used, which the command line tells better."""
    from ciwrap.config.loading import find_config, load_config

    try:
        here = runner.workspace
        return load_config(here / inputs.config if inputs.config else find_config(here))
    except CiwrapError:
        return None


def verb(inputs: Inputs, config: Config | None) -> list[str]:
    """`check`, or `run` where there is a command: the input's, else the configuration's."""
    if inputs.run == NO_COMMAND:
        return ["check"]
    if inputs.run:
        # As a step's own script: its first failing line ends it.
        several = "set -e\n" if "\n" in inputs.run else ""
        return ["run", "--command", several + inputs.run]
    if config is None:
        return ["check"]
    wanted = inputs.checks or [check.name for check in config.checks]
    own = any(check.command for check in config.checks if check.name in wanted)
    return ["run"] if config.command is not None or own else ["check"]


def _given(inputs: Inputs) -> list[str]:
    """What the workflow itself says of configuration and goldens: those of a platform lay where the
    configuration of the base says, below which all of them are looked at.
    """
    options = ["--config", inputs.config] if inputs.config else []
    return [*options, "--golden-dir", inputs.golden_dir] if inputs.golden_dir else options


def common_options(inputs: Inputs, runner: Runner, config: Config | None) -> list[str]:
    options = ["--config", inputs.config] if inputs.config else []
    folder = golden_folder(inputs, runner, config)
    if folder is not None:
        options += ["--golden-dir", str(folder)]
    return options


def golden_folder(inputs: Inputs, runner: Runner, config: Config | None) -> Path | None:
    """The folder of the goldens where it is not the configuration's own: one below it for each
    platform key."""
    base = Path(inputs.golden_dir) if inputs.golden_dir else None
    if not inputs.platform_key:
        return base
    if base is None:
        if config is None:
            return None
        base = config.golden_dir
        if base.is_relative_to(runner.workspace):
            base = base.relative_to(runner.workspace)
    return base / inputs.platform_key


def call_cli(arguments: list[str], runner: Runner, result_path: Path) -> Call:
    """Runs ciwrap as a child: if it crashes, there still is somebody to say so."""
    command = [sys.executable, "-I", "-m", "ciwrap", *arguments, "--json", str(result_path)]
    with plain_log(f"ciwrap {arguments[0]}"):
        done = run_to_the_end(
            command,
            cwd=runner.workspace,
            env=runner.program_environment,
        )
    return Call(done, result_path)


def finished(call: Call) -> Outcome:
    """What came of a call; a result that is at odds with the exit code is an error."""
    if not call.result_path.is_file():
        how = f"signal {-call.exit_code}" if call.exit_code < 0 else f"exit code {call.exit_code}"
        return Outcome.failed(f"ciwrap ended with {how} and left no result: see the log")
    return read_result(call.result_path, exit_code=call.exit_code)


def write_meta(inputs: Inputs, runner: Runner, stage: Path) -> None:
    """What whoever takes up the artifact later has to know: where its goldens belong."""
    meta = Meta(
        platform_key=inputs.platform_key,
        config=inputs.config,
        golden_dir=inputs.golden_dir,
        artifact_name=inputs.artifact_name,
        repository=runner.repository,
        sha=head_sha(runner),
        commit=runner.sha,
    )
    text = json.dumps(msgspec.to_builtins(meta), indent=1)
    (stage / META).write_text(text + "\n", encoding="utf-8")


def head_sha(runner: Runner) -> str:
    """The commit that was pushed; of a pull request its head, not the merge that is tested."""
    head = runner.event.get("pull_request")
    if isinstance(head, dict) and isinstance(head.get("head"), dict):
        return str(head["head"].get("sha", ""))
    return runner.sha
