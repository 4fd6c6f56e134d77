"""What a check's outputs are: which files or runs, how rows are ordered, what lay there before."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ciwrap.base.errors import (
    CiwrapError,
    NotComparableError,
    OutputMissingError,
    StillWrittenError,
    WriteFailedError,
    escape,
)
from ciwrap.base.patterns import PathPattern
from ciwrap.formats.catalog import Arrangement, Catalog
from ciwrap.formats.find_outputs import Choice, find_outputs
from ciwrap.formats.source_files import NOWHERE, change_since, source_files
from ciwrap.model import Message, MessageLevel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ciwrap.formats.find_outputs import FoundOutputs
    from ciwrap.formats.source_files import SourceFile
    from ciwrap.project.settings import Check

# The variable in which `ciwrap run` tells the command of one check what it will compare its outputs
# with.
RUN_GOLDEN = "CIWRAP_RUN_GOLDEN"
RUN_FILE = "run.json"
BOUNDS_FILE = "bounds.txt"
SNAPSHOT_FILE = "snapshot.json"
OWN_FILES = (RUN_FILE, SNAPSHOT_FILE, BOUNDS_FILE)  # beside the journals
_JOURNALS = "[0-9][0-9][0-9]*/rank-*.cwr"
_UNRECORDED = "unrecorded-*.txt"
_MOST_BYTES = 1000


def journal_paths(run: Path) -> list[Path]:
    """The journals of a recorded run, by rank."""
    return sorted(run.glob(_JOURNALS))


def unrecorded_paths(run: Path) -> list[Path]:
    """The files that processes left which could not record: each says why."""
    return sorted(run.glob(_UNRECORDED))


def unrecorded(run: Path) -> Iterator[NotComparableError]:
    """An error for each process that could not record."""
    for path in unrecorded_paths(run):
        try:
            with path.open("rb") as stream:
                why = stream.read(_MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            why = error.strerror or str(error)
        yield NotComparableError(
            f"a process could not record: {escape(why.strip())}",
            file=path,
            remedy="fix that, and record the run anew (--replace)",
        )


def own_files(run: Path) -> list[Path]:
    """All files that a recorded run may consist of."""
    others = [run / name for name in OWN_FILES]
    return [*journal_paths(run), *unrecorded_paths(run), *others]


def is_recording(path: Path) -> bool:
    """Whether a folder is a recorded run."""
    return path.is_dir() and next(path.glob(_JOURNALS), None) is not None


def remove_run(run: Path) -> None:
    """Deletes a recorded run, and nothing else that lies in its folder; also one of which there is
    nothing but why it could not be recorded. Raises WriteFailedError.
    """
    journals = journal_paths(run)
    if not journals and not unrecorded_paths(run):
        return
    try:
        for path in own_files(run):
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in journals}:
            with contextlib.suppress(OSError):  # something else lies in it
                folder.rmdir()
    except OSError as error:
        raise WriteFailedError(error.strerror or str(error), file=run) from error


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
    """A check's files as far as they are there, of all of its runs; what is missing is reported
    when it is checked. Nothing is looked for before the first is asked for.
    """
    recorded = recorded_run_of(check)
    if recorded is not None:
        yield from journal_paths(recorded)
        return

    for run in each_run(check):
        with contextlib.suppress(NotComparableError):
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
        try:
            self._seen: tuple[SourceFile, ...] | None = source_files(NOWHERE, found.files)
        except CiwrapError:
            self._seen = None  # it cannot be looked at, or has no file
        super().__init__(found, arrangement_of(check))

    def refuse_changes(self) -> None:
        """Raises StillWrittenError if a file has changed since it was found."""
        change = change_since(self._seen, self.found.files)
        if change is not None:
            raise StillWrittenError(
                f"an output was written while it was being read: {change}",
                remedy="let the program finish first, then check again",
            )


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


# File times come from a clock that ticks every few milliseconds; some file systems count 2 s.
_TICK_SECONDS = 0.02
_MOST_STALE = 5

_Stamp = tuple[int, int, int, int]


class Stamps:
    """What every output looked like before the command ran.

    A file counts as written again if its times, size or inode changed. Nothing is compared with
    this machine's clock, so a file server with another one does no harm.
    """

    def __init__(self, checks: Iterable[Check]) -> None:
        checks = tuple(checks)
        self._before: dict[Path, _Stamp] = {}
        self._beside = _beside(checks)
        youngest = 0.0
        for check in checks:
            for path in files_of(check):
                status = path.stat()
                self._before[path] = _stamp(status)
                youngest = max(youngest, status.st_mtime, status.st_ctime)
        # A file written again within the same tick would look untouched.
        if abs(time.time() - youngest) < _TICK_SECONDS:
            time.sleep(_TICK_SECONDS)

    def stale_files(self, check: Check) -> list[Path]:
        """The outputs of a check that were there before and have not been written since."""
        return [path for path in files_of(check) if self._before.get(path) == _stamp(path.stat())]

    def written_beside(self, checks: Iterable[Check], known: Iterable[Check]) -> list[Path]:
        """The files that were written since beside the outputs of checks, and that no known check
        means, or excludes.
        """
        found = _beside(checks)
        written = {path for path, stamp in found.items() if self._beside.get(path) != stamp}
        for check in known if written else ():
            written -= _meant(check)
        return sorted(written)

    def stale_messages(self, check: Check) -> tuple[Message, ...]:
        """An error for each output of a check that was there before and has not been written
        since.
        """
        stale = self.stale_files(check)
        messages = [
            Message(
                MessageLevel.ERROR,
                f"{path}: was not written by this run, but left from an earlier one;"
                " have the command write it, remove it, or leave it out with 'exclude'",
                slug="not-comparable",
                file=str(path),
            )
            for path in stale[:_MOST_STALE]
        ]
        if len(stale) > _MOST_STALE:
            messages.append(
                Message(MessageLevel.ERROR, f"... and {len(stale) - _MOST_STALE} more files")
            )
        return tuple(messages)


def _beside(checks: Iterable[Check]) -> dict[Path, _Stamp]:
    """What each file looks like in the folders that outputs of checks lie in."""
    folders = {folder for check in checks for folder in _folders_of(check)}
    found: dict[Path, _Stamp] = {}
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file() and not entry.name.startswith("."):
                    found[folder / entry.name] = _stamp(entry.stat())
    return found


def _folders_of(check: Check) -> Iterator[Path]:
    """Of outputs that are files, as far as the configuration says where they lie."""
    if check.ensemble or recorded_run_of(check) is not None:
        return
    for text in check.outputs:
        pattern = PathPattern(text)
        is_folder = pattern.is_literal and os.path.isdir(check.root / text)  # noqa: PTH112
        folder = text if is_folder else pattern.fixed_folder
        # A folder that is one output holds what its reader reads.
        if not (is_folder and Choice().is_store(check.root / text, text)):
            yield _full(check.root / folder)


def _meant(check: Check) -> set[Path]:
    """The files that a check compares or leaves out, and those that are read with them."""
    found: set[Path] = set()
    for run in each_run(check):
        found.update(journal_paths(run.root) if recorded_run_of(run) else ())
        with contextlib.suppress(CiwrapError):  # of which the check tells
            outputs = outputs_of(run)
            found.update(run.root / name for name in outputs.excluded)
            found.update(outputs.unmatched)
            for file in outputs.files:
                found |= {file.path, *file.companions}
    return {_full(path) for path in found}


def _full(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.resolve would follow links


def _stamp(status: os.stat_result) -> _Stamp:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
