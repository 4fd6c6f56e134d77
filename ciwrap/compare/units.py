"""Units of work: what one worker compares at a time, cut the same whoever does the work.

A unit is a batch of checkpoints, or a part of one with a very large file. How runs are cut depends
on their files alone, never on the number of workers, so results that are put together in the order
of units are the same for any number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.captures.index import key_order
from ciwrap.captures.listing import sizes_of
from ciwrap.catalog.files import digest_of_sight, source_files
from ciwrap.errors import CiwrapError
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.side import Run

UNIT_BYTES = 256 << 20
# A checkpoint with a file beyond this is cut into parts of so many bytes of each variable.
LARGE_FILE_BYTES = 1 << 30
PART_BYTES = 256 << 20
# A unit of very small checkpoints still is a message that a worker can send.
_MOST_CHECKPOINTS = 10_000


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
        key: [size for side in sides for size in sizes_of(side.groups.get(key, ()))] for key in left
    }
    totals = {key: sum(some) for key, some in sizes.items()}
    kept = [tuple(key for key in batch if left.pop(key, left) is None) for batch in former]
    batches = _batches(left, totals)
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
    keys: Iterable[CheckpointKey], sizes: dict[CheckpointKey, int]
) -> list[tuple[CheckpointKey, ...]]:
    found: list[list[CheckpointKey]] = []
    room = 0
    for key in keys:
        if not found or sizes[key] > room or len(found[-1]) >= _MOST_CHECKPOINTS:
            found.append([])
            room = UNIT_BYTES
        found[-1].append(key)
        room -= sizes[key]
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
