"""`python -I -m ciwrap.action STEP`: one step of the composite action."""

from __future__ import annotations

import os
import sys

from ciwrap.action.gate import gate
from ciwrap.action.inputs import read_inputs
from ciwrap.action.runner import Runner, command_line
from ciwrap.errors import CiwrapError, one_line


def main(arguments: list[str]) -> int:
    """Runs a step; whatever goes wrong is an annotation and a failed step, never a status."""
    step = arguments[0] if arguments else ""
    try:
        if step == "gate":
            return _gate()
        return _compare(step)
    except (CiwrapError, OSError) as error:
        print(command_line("error", one_line(error), title="ciwrap"), flush=True)
        return 1


def _gate() -> int:
    return gate(os.environ.get("CIWRAP_STATUS", ""), read_inputs().fail_on, os.environ)


def _compare(step: str) -> int:
    from ciwrap.action.check import run_check

    inputs, runner = read_inputs(), Runner.here()
    if step == "check":
        run_check(inputs, runner)
        return 0
    print(command_line("error", f"there is no step {one_line(step)!r}", title="ciwrap"))
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
