"""What a check says its outputs are: which files or runs, and how their rows are arranged."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ciwrap.captures.journals import is_recording, journal_paths
from ciwrap.catalog.catalog import Catalog
from ciwrap.catalog.files import change_since, looked_at
from ciwrap.catalog.rows import Arrangement
from ciwrap.errors import NotComparableError, StillWrittenError
from ciwrap.readers.layout import find_outputs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ciwrap.config import Check
    from ciwrap.readers.layout import FoundOutputs


def recorded_run_of(check: Check) -> Path | None:
    """The folder of the recorded run that is the check's output; None if it has files."""
    if len(check.outputs) != 1:
        return None
    path = check.root / check.outputs[0]
    # Not Path.is_dir, which raises where a folder above is closed: whoever reads it says so.
    return path if os.path.isdir(path) and is_recording(path) else None  # noqa: PTH112


def outputs_of(check: Check) -> FoundOutputs:
    """The files of a check. Raises as `find_outputs` does, and NotComparableError for a recorded
    run, which has no data.
    """
    run = recorded_run_of(check)
    if run is not None:
        raise NotComparableError(
            "is a recorded run, which has no data",
            file=run,
            remedy="ciwrap check and ciwrap accept take it as it is",
        )
    return find_outputs(
        check.root,
        check.outputs,
        layout=check.layout,
        format_name=check.format,
        options=check.options,
        exclude=check.exclude,
        formats=check.formats,
    )


def files_of(check: Check) -> Iterator[Path]:
    """A check's files as far as they are there, of all of its runs; what is missing is told of
    when it is checked. Nothing is looked for before the first is asked for.
    """
    recorded = recorded_run_of(check)
    if recorded is not None:
        yield from journal_paths(recorded)
        return
    from ciwrap.compare.ensemble_runs import each_run

    for run in each_run(check):
        with suppress(NotComparableError):
            yield from [file.path for file in outputs_of(run).files if file.path.exists()]


def arrangement_of(check: Check) -> Arrangement | None:
    """How the rows of the check's variables are aligned; None if they are taken as they are.

    What concerns one variable alone (`period`, `mixed_precision`, `mask`) does not count: it is in
    that variable's settings.
    """
    if not check.aligns and check.duplicates == "error":
        return None
    return Arrangement(check.settings_for, check.duplicates)


class Outputs(Catalog):
    """The files of a check, opened. Raises as `outputs_of` and `Catalog` do."""

    def __init__(self, check: Check) -> None:
        found = outputs_of(check)
        self._seen = looked_at(found.files)
        super().__init__(found, arrangement_of(check))

    def refuse_changes(self) -> None:
        """Raises StillWrittenError if a file has changed since it was found."""
        change = change_since(self._seen, self.found.files)
        if change is not None:
            raise StillWrittenError(
                f"an output was written while it was being read: {change}",
                remedy="let the program finish first, then check again",
            )
