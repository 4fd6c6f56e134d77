"""`python -I -m ciwrap.action STEP`: one step of the composite action."""

from __future__ import annotations

import contextlib
import os
import sys

from ciwrap.action.github import DONE, MEASURES, Api, Inputs, Runner, read_inputs
from ciwrap.action.orders import carry_out, comment_on_run, comment_on_this, run_check, run_merge
from ciwrap.action.steps import gate, keep_results, open_pull_request, run_measure, run_update
from ciwrap.base.errors import CiwrapError, one_line
from ciwrap.report.markdown import escaped, workflow_command


def main(arguments: list[str]) -> int:
    """Runs a step; whatever goes wrong is an annotation and a failed step, never a status."""
    step = arguments[0] if arguments else ""
    try:
        if step == "gate":
            return gate(os.environ.get("CIWRAP_STATUS", ""), read_inputs().fail_on, os.environ)
        return _compare(step)
    except (CiwrapError, OSError) as error:
        print(workflow_command("error", one_line(error), title="ciwrap"), flush=True)
        with contextlib.suppress(OSError):
            Runner.here().add_summary(f"**ciwrap: error.** {escaped(one_line(error), 1000)}\n\n")
        return 1


def _compare(step: str) -> int:
    inputs, runner = read_inputs(), Runner.here()
    # The step that runs programs is called by the input, which may be empty.
    step = step.strip() or inputs.mode
    if step == "check":
        run_check(inputs, runner)
    elif step == "merge":
        run_merge(inputs, runner)
    elif step == "update":
        run_update(inputs, runner)
    elif step in MEASURES:
        run_measure(inputs, runner)
    else:
        return _with_token(step, inputs, runner)
    return 0


def _with_token(step: str, inputs: Inputs, runner: Runner) -> int:
    """The steps that write to the repository; they run no program."""
    api = Api.of(os.environ)
    if step == "comment":
        runner.set_output("status", comment_on_run(inputs, runner, api))
    elif step == "comment-here":
        comment_on_this(inputs, runner, api)
    elif step == "accept":
        runner.set_output("changed", "true" if carry_out(inputs, runner, api) else "false")
    elif step == "pull-request":
        runner.set_output("pull-request-url", open_pull_request(inputs, runner, api))
    elif step == "store":
        keep_results(inputs, runner, api)
        runner.set_output("status", DONE)
    else:
        print(workflow_command("error", f"there is no step {one_line(step)!r}", title="ciwrap"))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
