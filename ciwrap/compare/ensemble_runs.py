"""The runs of a check whose golden is an ensemble: several folders, and the outputs in each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ciwrap.errors import OutputMissingError
from ciwrap.structs import replace

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.config import Check


def each_run(check: Check) -> tuple[Check, ...]:
    """The check once for each of its runs, whose folder is then its root, run_2 before run_10.

    A check whose golden is not an ensemble has one run: what lies there.
    """
    import glob

    if not check.ensemble:
        return (check,)
    found = {
        name
        for pattern in check.ensemble
        for name in glob.glob(pattern, root_dir=check.root)  # noqa: PTH207 - may be absolute
        if (check.root / name).is_dir()
    }
    return tuple(replace(check, root=check.root / name) for name in sorted(found, key=natural))


def folders_of_runs(check: Check) -> list[Path]:
    """The folders that a check's `ensemble` names. Raises OutputMissingError if there are none."""
    folders = [run.root for run in each_run(check)]
    if not folders:
        raise OutputMissingError(
            f"there are no runs: no folder is called {' or '.join(check.ensemble)}",
            file=check.root,
            remedy="have the program make them, or fix 'ensemble'",
        )
    return folders


def natural(text: str | Path) -> list[tuple[int, str]]:
    """A key to sort by, for which numbers within a text count as numbers."""
    parts = re.findall(r"\d+|\D+", str(text))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
