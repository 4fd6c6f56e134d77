"""Units of work: what one worker compares at a time, cut the same whoever does the work.

A unit is a batch of checkpoints, or a part of one with a very large file. How runs are cut depends
on their files alone, never on the number of workers, so results that are put together in the order
of units are the same for any number. Ctrl-C, SIGTERM and SIGHUP end it with what was found so far.
"""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.errors import CiwrapError, NotComparableError, WriteFailedError
from ciwrap.base.progress import Progress
from ciwrap.check.two_sides import MOST_ELEMENTS, PartSums, not_comparable
from ciwrap.formats.source_files import CheckpointKey, digest_of_sight, source_files, statuses_of
from ciwrap.model import VariableId, VariableResult, Verdict
from ciwrap.runs.capture_index import key_order
from ciwrap.runs.differences import is_list
from ciwrap.runs.sides import Run

UNIT_BYTES = 256 << 20
# A checkpoint with a file beyond this is cut into parts of so many bytes of each variable.
LARGE_FILE_BYTES = 1 << 30
PART_BYTES = 256 << 20
# While a unit is compared, some 500 bytes of each of its files are kept. A unit of very small files
# stays a message that a worker can send.
_MOST_FILES = 4_000


class Part(Struct, frozen=True):
    """Of every large variable of a checkpoint, the chunks that begin within a range of bytes.

    The first part has all small variables, the last one the rest of the large ones.
    """

    number: int
    count: int
    byte_count: int

    @property
    def is_first(self) -> bool:
        return self.number == 0

    def leaves(self, chunk_bytes: int, leaf_count: int) -> range:
        """The chunks of a variable that are this part's."""
        first = -(-self.number * self.byte_count // chunk_bytes)
        end = -(-(self.number + 1) * self.byte_count // chunk_bytes)
        return range(first, leaf_count if self.number + 1 == self.count else min(end, leaf_count))


class Unit(Struct, frozen=True):
    """Checkpoints that are compared together, or a part of one.

    number: its place among all units. keys: in order. byte_count: what the files of both sides
    hold. part: None for whole checkpoints. stamps: one for each checkpoint, which changes with its
    files; () where nobody asked for them. single: the place of its one checkpoint in the unit that
    it was taken from, if that was taken apart.
    """

    number: int
    keys: tuple[CheckpointKey, ...]
    byte_count: int
    part: Part | None = None
    stamps: tuple[str, ...] = ()
    single: int | None = None

    @property
    def name(self) -> str:
        """`7`, or `7-2` for a checkpoint of a unit that was taken apart."""
        return name_of(self.order)

    @property
    def progress_bytes(self) -> int:
        """What it counts for in progress. A single checkpoint of a unit that was taken apart, whose
        size is the unit's still, counts for nothing.
        """
        return self.byte_count if self.single is None else 0

    @property
    def order(self) -> tuple[int, int]:
        """Where its results belong."""
        return self.number, -1 if self.single is None else self.single

    def apart(self) -> list[Unit]:
        """Each of its checkpoints as a unit of its own."""
        return [
            replace(self, keys=(key,), stamps=self.stamps[place : place + 1], single=place)
            for place, key in enumerate(self.keys)
        ]


def name_of(order: tuple[int, int]) -> str:
    """The name of the unit that has this place."""
    number, single = order
    return str(number) if single < 0 else f"{number}-{single}"


def plan_units(
    golden: Run,
    new: Run,
    *,
    former: Sequence[Sequence[CheckpointKey]] = (),
    has_stamps: bool = False,
) -> list[Unit]:
    """All checkpoints of either run as units.

    former: batches of an earlier plan, which stay together as far as they are still there.
    """
    sides = golden, new
    left = dict.fromkeys(sorted({*golden.groups, *new.groups}, key=key_order))
    sizes = {
        key: [one.st_size for side in sides for one in statuses_of(side.groups.get(key, ()))]
        for key in left
    }
    totals = {key: sum(some) for key, some in sizes.items()}
    kept = [tuple(key for key in batch if left.pop(key, left) is None) for batch in former]
    batches = _batches(left, sizes)
    if former:
        batches += [batch for batch in kept if batch]
        batches.sort(key=lambda batch: key_order(batch[0]))
    units: list[Unit] = []
    for keys in batches:
        parts = [] if len(keys) > 1 else _parts(keys[0], sides, sizes[keys[0]])
        is_stamped = has_stamps or parts
        stamps = tuple(stamp_of(key, *sides) for key in keys) if is_stamped else ()
        total = sum(totals[key] for key in keys)
        if parts:
            share = total // len(parts)
            units += [Unit(len(units) + one.number, keys, share, one, stamps) for one in parts]
        else:
            units.append(Unit(len(units), keys, total, None, stamps))
    return units


def _batches(
    keys: Iterable[CheckpointKey], sizes: dict[CheckpointKey, list[int]]
) -> list[tuple[CheckpointKey, ...]]:
    """sizes: of each checkpoint's files, on both sides; a fingerprint has none."""
    found: list[list[CheckpointKey]] = []
    byte_room = file_room = 0
    for key in keys:
        byte_count, file_count = sum(sizes[key]), max(1, len(sizes[key]))
        if not found or byte_count > byte_room or file_count > file_room:
            found.append([])
            byte_room, file_room = UNIT_BYTES, _MOST_FILES
        found[-1].append(key)
        byte_room -= byte_count
        file_room -= file_count
    return [tuple(batch) for batch in found]


def _parts(key: CheckpointKey, sides: tuple[Run, Run], sizes: Sequence[int]) -> list[Part]:
    """The parts of a checkpoint with a very large file; [] for one that stays whole.

    What both captures hold is not cut: the trees say which chunks have to be read at all. Nor is
    what one run alone has, of which no data are read.
    """
    largest = max(sizes, default=0)
    are_captured = all(side.index and key in side.index.checkpoints for side in sides)
    is_whole = sides[0].arrangement is not None or any(
        side.is_fingerprint or key not in side.groups for side in sides
    )
    if largest <= LARGE_FILE_BYTES or are_captured or is_whole:
        return []
    count = -(-largest // PART_BYTES)
    return [Part(number, count, PART_BYTES) for number in range(count)]


def biggest_first(units: Iterable[Unit]) -> list[Unit]:
    """In the order in which they are given out: a big one at the end would keep all waiting."""
    return sorted(units, key=lambda unit: (-unit.byte_count, unit.order))


def stamp_of(key: CheckpointKey, golden: Run, new: Run) -> str:
    """Sizes, times and inodes of a checkpoint's files, or of the fingerprint that stands for them,
    as a digest; '' if one cannot be looked at, which is like no other.
    """
    try:
        seen: list[object] = [
            side.capture.stamps
            if side.is_fingerprint and side.capture is not None
            else source_files(side.path, side.groups.get(key, ()))
            for side in (golden, new)
        ]
    except CiwrapError:
        return ""
    return digest_of_sight(seen)


def list_of_unit(path: Path, unit: Unit) -> Path:
    """`differences.7.csv`."""
    return list_named(path, unit.name)


def list_named(path: Path, unit_name: str) -> Path:
    """The list of the unit of that name."""
    return path.with_name(f"{path.stem}.{unit_name}{path.suffix}")


def stamp_of_list(path: Path, unit: Unit) -> tuple[int, ...] | None:
    """Size, time and inode of a unit's list, to know it again; None if it is not there."""
    try:
        status = list_of_unit(path, unit).stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def has_name_of_list(path: Path, other: Path) -> bool:
    """Whether the other one, of the same folder, is called as the list, or that of a unit, is."""
    name = f"{re.escape(path.stem)}(\\.[0-9]+(-[0-9]+)?)?{re.escape(path.suffix)}"
    return re.fullmatch(name, other.name, re.ASCII) is not None


def remove_former_lists(path: Path, kept: Container[Path]) -> None:
    """Removes the lists that an earlier comparison wrote under this name: beside those that are
    kept they would look like this one's. What is not a list of ours stays. Raises WriteFailedError.
    """
    try:
        for one in sorted(path.parent.iterdir()):
            if one not in kept and has_name_of_list(path, one) and is_list(one):
                one.unlink()
    except OSError as error:
        raise WriteFailedError(
            f"a list of an earlier comparison cannot be removed: {error.strerror or error}",
            file=error.filename or path,
        ) from error


class EndedEarlyError(Exception):
    """The comparison was told to end. No CiwrapError: it is the fault of no variable."""


def ended_words(signal_name: str) -> str:
    """Why something was not compared, if a signal ended the comparison."""
    return f"{signal_name} ended the comparison first"


class Ending:
    """Whether a signal has come. signal_name: of the first one, None while none has come.

    Given to `endings_call`, signals end the work at its next step (see EndableProgress), and then
    nothing more: a result is made of what was found.
    """

    def __init__(self) -> None:
        self.signal_name: str | None = None

    def tell(self, number: int) -> None:
        """Takes a signal; raises KeyboardInterrupt for a second one."""
        if self.signal_name is not None:
            raise KeyboardInterrupt
        self.signal_name = signal.Signals(number).name


class EndableProgress:
    """Passes progress on, and raises EndedEarlyError at the first step after a signal has come.

    It does so once only, for what has been found is put in order then.
    Steps are where nothing is left half done.
    """

    def __init__(self, progress: Progress, ending: Ending) -> None:
        self.begin, self.expect, self.end = progress.begin, progress.expect, progress.end
        self._progress = progress
        self._has_raised = False
        self._ending = ending

    def advance(self, byte_count: int) -> None:
        if self._ending.signal_name is not None and not self._has_raised:
            self._has_raised = True
            raise EndedEarlyError(self._ending.signal_name)
        self._progress.advance(byte_count)


# The variable has the sum of these counts.
_COUNTS = (
    "differing_count",
    "nan_mismatch_count",
    "inf_mismatch_count",
    "missing_mismatch_count",
    "not_finite_count",
)
# Largest values, and where they are.
_LARGEST = (
    ("max_abs_difference", "max_abs_index"),
    ("max_rel_difference", "max_rel_index"),
    ("max_bound_share", None),
    ("max_drift_share", None),
    ("drift_share_from", None),
    ("drift_share_to", None),
)


def join_parts(results: Iterable[VariableResult], sums: Iterable[PartSums]) -> list[VariableResult]:
    """The results, those of one variable as one. Parts, and what their means are made of, come in
    the order of their elements.
    """
    found: dict[VariableId, list[VariableResult]] = {}
    for result in results:
        found.setdefault(result.id, []).append(result)
    terms: dict[VariableId, list[PartSums]] = {}
    for one in sums:
        terms.setdefault(one.variable, []).append(one)
    return [_joined(parts, terms.get(identity, [])) for identity, parts in found.items()]


def _joined(parts: Sequence[VariableResult], terms: Sequence[PartSums]) -> VariableResult:
    failed = [part for part in parts if part.verdict is Verdict.NOT_COMPARABLE]
    if failed:
        return failed[0]
    if terms and sum(one.element_count for one in terms) != math.prod(parts[0].shape or ()):
        # Who had a part may not have found the variable at all, and then says nothing of it.
        return not_comparable(parts[0], NotComparableError("a part of it was not compared"))
    if len(parts) == 1:
        return parts[0]
    differing = [part for part in parts if part.verdict is not Verdict.MATCH]
    first = (differing or parts)[0]
    said: dict[str, Any] = {name: _sum(getattr(part, name) for part in parts) for name in _COUNTS}
    for name, place in _LARGEST:
        said |= _largest(parts, name, place)
    histograms = [
        part.bound_share_histogram for part in parts if part.bound_share_histogram is not None
    ]
    return replace(
        first,
        **said,
        bound_share_histogram=None
        if len(histograms) < len(parts)
        else tuple(map(sum, zip(*histograms, strict=True))),
        first_differences=tuple(one for part in parts for one in part.first_differences)[
            :MOST_ELEMENTS
        ],
        **_means(parts, terms),
    )


def _means(parts: Sequence[VariableResult], terms: Sequence[PartSums]) -> dict[str, Any]:
    """Of all finite pairs; None where a part has none to tell of."""
    if len(terms) != len(parts) or any(part.mean_abs_difference is None for part in parts):
        return {"mean_abs_difference": None, "mean_rel_difference": None}
    count, nonzero = (sum(counts) for counts in zip(*map(_counts, terms), strict=True))
    return {
        "mean_abs_difference": sum(one.sum_abs for one in terms) / count if count else 0.0,
        "mean_rel_difference": sum(one.sum_rel for one in terms) / nonzero if nonzero else 0.0,
    }


def _counts(one: PartSums) -> tuple[int, int]:
    return one.finite_count, one.nonzero_count


def _sum(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count or 0 for count in known)


def _largest(parts: Sequence[VariableResult], name: str, place: str | None) -> dict[str, Any]:
    """The largest of all parts, of equal ones the first, as a single comparison has it."""
    best = None
    for part in parts:
        value = getattr(part, name)
        has_place = place is None or getattr(part, place) is not None
        if value is not None and has_place and (best is None or value > getattr(best, name)):
            best = part
    if best is None:
        best = parts[0]
    value = getattr(best, name)
    assert value is None or not math.isnan(value)
    return {name: value} | ({} if place is None else {place: getattr(best, place)})
