"""What a worker in another process is told, and what it does with it.

Nothing here loads a library of an engine: a worker is any process that imports this module.
"""

from __future__ import annotations

import os
import socket
import threading
from importlib.metadata import version
from typing import TYPE_CHECKING, Protocol

from ciwrap.captures.container import CaptureFile
from ciwrap.captures.side import open_fingerprint, open_run
from ciwrap.catalog.files import digest_of_sight, source_files
from ciwrap.compare.bounds_used import rules_between
from ciwrap.compare.explaining import explainer
from ciwrap.compare.outcome import Outcome
from ciwrap.compare.outcome_record import Answer, to_text
from ciwrap.compare.unit_comparer import UnitComparer
from ciwrap.compare.work import Work
from ciwrap.errors import CiwrapError, NotAvailableError
from ciwrap.late import numpy as np
from ciwrap.readers.layout import FoundOutputs
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ciwrap.captures.bounds import CaptureHeader
    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.side import Run
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.outcome import HistoryOptions
    from ciwrap.compare.units import Unit
    from ciwrap.readers.layout import OutputFile
    from ciwrap.trees.build import Resources


class MakesRules(Protocol):
    """What becomes rules in another process, too: rules hold functions, which do not travel."""

    def make_rules(self) -> Rules: ...


class Seen(Struct, frozen=True):
    """A file of a run as the coordinator sees it, for workers to find out whether they do."""

    path: str
    byte_count: int
    mtime_ns: int


class RunOrder(Struct, frozen=True):
    """One of the two runs, for a worker. capture: where the one in use lies. header: of the one
    that says which bounds hold, used or not. is_fingerprint, is_whole: as of a Run. open_capture:
    the class of a fingerprint's capture.
    """

    path: Path
    capture: Path | None
    verify_checksums: bool
    header: CaptureHeader | None = None
    is_fingerprint: bool = False
    is_whole: bool = False
    open_capture: Callable[[Path], CaptureFile] = CaptureFile


class Order(Struct, frozen=True):
    """What is the same for all units of a comparison. number: like no other comparison's.

    folder: where the command was started; paths are relative to it. versions: of ciwrap and NumPy.
    """

    number: str
    folder: str
    sides: tuple[RunOrder, RunOrder]
    rules: MakesRules
    options: HistoryOptions
    resources: Resources
    seen: tuple[Seen, ...]
    versions: tuple[str, str]
    list_path: Path | None = None


# The files of a unit's checkpoints, of one run.
Groups = dict["CheckpointKey", "list[OutputFile]"]


def versions() -> tuple[str, str]:
    return version("ciwrap"), np.__version__


def what_is_seen(sides: tuple[Run, Run]) -> tuple[Seen, ...]:
    """The first file of each run, or the fingerprint in its place, as it is now."""
    found = []
    for side in sides:
        paths = [files[0].path for files in side.groups.values() if files]
        for path in [side.capture.path] if side.is_fingerprint and side.capture else paths:
            try:
                status = path.stat()
            except OSError:
                continue  # the comparison tells of what is gone
            found.append(Seen(str(path), status.st_size, status.st_mtime_ns))
            break
    return tuple(found)


def sights_of(
    sides: tuple[Path, Path], unit: Unit, groups: tuple[Groups, Groups]
) -> tuple[str, ...]:
    """A digest for each checkpoint of a unit: which files this process sees, of which size and
    time. Inodes and times of change are not the same on every node that mounts a file system.
    """
    return tuple(
        digest_of_sight([_sight(*one, key) for one in zip(sides, groups, strict=True)])
        for key in unit.keys
    )


def _sight(run: Path, groups: Groups, key: CheckpointKey) -> list[tuple[str, int, int]] | None:
    try:
        files = source_files(run, groups.get(key, ()))
    except CiwrapError:
        return None
    return [(one.path, one.byte_count, one.mtime_ns) for one in files]


def asked(order: Order, unit: Unit) -> str:
    """The question that an answer has to repeat."""
    return f"unit {unit.name} of {order.number}"


def compare_unit(
    order: Order, unit: Unit, groups: tuple[Groups, Groups], sights: tuple[str, ...]
) -> bytes:
    """Compares a unit in this process; an `Answer` as JSON. sights: what the coordinator sees."""
    question = asked(order, unit)
    try:
        comparer = _comparer_of(order, groups)
        unit, unseen = _seen_part(order, unit, groups, sights)
        outcome = comparer.compare(unit) if unit.keys else Outcome()
    except CiwrapError as error:
        return to_text(Answer(question, error=error))
    outcome.lost += unseen
    return to_text(Answer(question, outcome))


def _seen_part(
    order: Order, unit: Unit, groups: tuple[Groups, Groups], sights: tuple[str, ...]
) -> tuple[Unit, list[tuple[CheckpointKey, str]]]:
    """What of a unit this process sees as the coordinator does; and the others, with the reason.

    `_prove` looks at one file of each run; the others may be of another day all the same.
    """
    ours = sights_of((order.sides[0].path, order.sides[1].path), unit, groups)
    seen = [key for key, one, other in zip(unit.keys, ours, sights, strict=True) if one == other]
    if len(seen) == len(unit.keys):
        return unit, []
    why = (
        f"{_where()} sees other files there (size or time) than the coordinator; mount the same"
        " folders on all nodes, and let programs end first"
    )
    return replace(unit, keys=tuple(seen)), [(key, why) for key in unit.keys if key not in seen]


def _where() -> str:
    return f"a worker on {socket.gethostname()} (process {os.getpid()})"


# Comparisons this thread has worked for: the order's number, and both sides with their captures.
_kept = threading.local()


def _comparer_of(order: Order, groups: tuple[Groups, Groups]) -> UnitComparer:
    """Raises NotAvailableError if this process is not fit for the order."""
    if getattr(_kept, "number", None) != order.number:
        _prove(order)
        for side in getattr(_kept, "sides", ()):
            side.close()
        _kept.number, _kept.sides = None, ()
        _kept.sides = tuple(_opened(one) for one in order.sides)
        _kept.rules = rules_between(order.rules.make_rules(), *_kept.sides)
        _kept.number = order.number
    rules = _kept.rules
    golden, new = (
        replace(side, groups=some, arrangement=rules.arrangement)
        for side, some in zip(_kept.sides, groups, strict=True)
    )
    work = Work(order.resources, explain=explainer)
    return UnitComparer(work, golden, new, rules, order.options, list_path=order.list_path)


def _opened(order: RunOrder) -> Run:
    if order.is_fingerprint:
        assert order.capture is not None
        return replace(
            open_fingerprint(order.path, order.capture, order.open_capture), is_whole=order.is_whole
        )
    side = open_run(
        order.path,
        FoundOutputs(()),
        order.capture,
        use_capture=order.capture is not None,
        verify_checksums=order.verify_checksums,
    )
    side.header = order.header
    return side


def _prove(order: Order) -> None:
    """Raises NotAvailableError unless this process sees what the coordinator sees."""
    where = _where()
    here = versions()
    for name, ours, theirs in zip(("ciwrap", "NumPy"), order.versions, here, strict=True):
        if ours != theirs:
            raise NotAvailableError(
                f"{where} has {name} {theirs}, the coordinator {ours}",
                remedy="start all workers in the coordinator's environment",
            )
    try:
        if os.getcwd() != order.folder:  # noqa: PTH109
            os.chdir(order.folder)
        for one in order.seen:
            status = os.stat(one.path)  # noqa: PTH116
            if (status.st_size, status.st_mtime_ns) != (one.byte_count, one.mtime_ns):
                raise NotAvailableError(
                    f"{where} sees another file (size or time) than the coordinator",
                    file=one.path,
                    remedy="mount the same folders on all nodes, and write to none meanwhile",
                )
    except FileNotFoundError as error:
        raise NotAvailableError(
            f"{where} does not see it",
            file=error.filename,
            remedy="mount the same folders on all nodes",
        ) from error
