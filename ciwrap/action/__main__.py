"""`python -I -m ciwrap.action STEP`: one step of the composite action."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from ciwrap.action.gate import gate
from ciwrap.action.inputs import MEASURES, read_inputs
from ciwrap.action.runner import Runner, command_line
from ciwrap.errors import CiwrapError, one_line

if TYPE_CHECKING:
    from ciwrap.action.inputs import Inputs


def main(arguments: list[str]) -> int:
    """Runs a step; whatever goes wrong is an annotation and a failed step, never a status."""
    step = arguments[0] if arguments else ""
    try:
        if step == "gate":
            return _gate()
        return _compare(step)
    except (CiwrapError, OSError) as error:
        print(command_line("error", one_line(error), title="ciwrap"), flush=True)
        _summarize(error)
        return 1


def _summarize(error: CiwrapError | OSError) -> None:
    """Says in the job summary, too, why a step came to nothing."""
    from ciwrap.report.markdown import escaped

    with contextlib.suppress(OSError):
        Runner.here().add_summary(f"**ciwrap: error.** {escaped(one_line(error), 1000)}\n\n")


def _gate() -> int:
    return gate(os.environ.get("CIWRAP_STATUS", ""), read_inputs().fail_on, os.environ)


def _compare(step: str) -> int:
    inputs, runner = read_inputs(), Runner.here()
    # The step that runs programs is called by the input, which may be empty.
    step = step.strip() or inputs.mode
    if step == "check":
        from ciwrap.action.check import run_check

        run_check(inputs, runner)
    elif step == "merge":
        from ciwrap.action.merge import run_merge

        run_merge(inputs, runner)
    elif step == "update":
        from ciwrap.action.update import run_update

        run_update(inputs, runner)
    elif step in MEASURES:
        from ciwrap.action.measure import run_measure

        run_measure(inputs, runner)
    else:
        return _with_token(step, inputs, runner)
    return 0


def _with_token(step: str, inputs: Inputs, runner: Runner) -> int:
    """The steps that write to the repository; they run no program."""
    from ciwrap.action.api import Api

    api = Api.of(os.environ)
    if step == "comment":
        from ciwrap.action.comment import comment_on_run

        runner.set_output("status", comment_on_run(inputs, runner, api))
    elif step == "accept":
        from ciwrap.action.order import carry_out

        runner.set_output("changed", "true" if carry_out(inputs, runner, api) else "false")
    elif step == "pull-request":
        from ciwrap.action.update import open_pull_request

        runner.set_output("pull-request-url", open_pull_request(inputs, runner, api))
    else:
        print(command_line("error", f"there is no step {one_line(step)!r}", title="ciwrap"))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
