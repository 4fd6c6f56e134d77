"""A capture as text: what it is, and what it holds of each variable, the data of none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ciwrap.captures.index_codec import read_checkpoint, read_index
from ciwrap.catalog.files import Whole
from ciwrap.trees.bounds import describe_bound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from ciwrap.captures.container import CaptureFile
    from ciwrap.captures.index import CapturedVariable, CheckpointKey

    # Name, dtype, shape, bound and evidence.
    _Row = tuple[str, str, tuple[int, ...], str | None, str]

_MOST_LEFT_OUT = 10


class ShownTrees(msgspec.Struct, frozen=True):
    """All variables of one name, dtype, shape, bound and evidence.

    bound: in words; None without a tree. evidence: which trees there are (`plain`, `residues`,
    `relative` to another run's residues), or why there is none. checkpoints: how many hold it.
    data_bytes: of the values that the trees were made of. tree_bytes: of the trees, before the
    file's own index.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    bound: str | None
    evidence: str
    checkpoints: Whole
    data_bytes: Whole
    tree_bytes: Whole


class ShownCapture(msgspec.Struct, frozen=True):
    """What a capture says of itself, and a table of its variables.

    bounds_from: who asked for the bounds. iterations, ranks: of all variables that have one.
    snapshot: the identity of that of its environment. left_out: what it does not hold of its run,
    and why.
    """

    identity: str
    made_at: str
    made_by: str
    bounds_from: str
    layout: str | None
    chunk_bytes: Whole
    has_checksums: bool
    capture_bytes: Whole
    checkpoints: Whole
    iterations: tuple[int, ...]
    ranks: tuple[int, ...]
    variables: tuple[ShownTrees, ...]
    snapshot: str | None = None
    left_out: tuple[str, ...] = ()


def shown_capture(path: Path, open_capture: Callable[[Path], CaptureFile]) -> ShownCapture:
    """What an opener finds there, such as `CaptureFile`, whose errors are raised."""
    with open_capture(path) as capture:
        index = read_index(capture)
        rows: dict[_Row, list[int]] = {}
        places = set(index.checkpoints)
        for directory in index.checkpoints.values():
            for one in read_checkpoint(capture, directory).variables:
                made_with = None if one.plain is None else describe_bound(one.plain.parameters)
                key = (one.identity.name, one.dtype, one.shape, made_with, _evidence(one))
                places.add((one.identity.iteration, one.identity.rank))
                sums = rows.setdefault(key, [0, 0, 0])
                for place, count in enumerate((1, one.signature.byte_count, _tree_bytes(one))):
                    sums[place] += count
        header = index.header
        return ShownCapture(
            index.identity.hex(),
            header.made_at,
            header.made_by,
            header.origin,
            header.layout,
            header.chunk_bytes,
            header.has_checksums,
            capture.committed_bytes,
            len(index.checkpoints),
            _known(places, 0),
            _known(places, 1),
            tuple(ShownTrees(*key, *sums) for key, sums in sorted(rows.items(), key=_in_order)),
            None if header.snapshot is None else header.snapshot.identity,
            tuple(f"{one.path or 'the run'}: {one.reason}" for one in header.left_out),
        )


def _in_order(item: tuple[_Row, list[int]]) -> str:
    return str(item[0])


def _known(keys: Iterable[CheckpointKey], part: int) -> tuple[int, ...]:
    return tuple(sorted({number for key in keys if (number := key[part]) is not None}))


def _evidence(one: CapturedVariable) -> str:
    if one.plain is None:
        return f"none: {one.reason}"
    kinds = ["plain"]
    if one.fine is not None:
        kinds.append(f"residues (k = {one.fine.made_with.residue_levels})")
    if one.relative is not None:
        kinds.append("relative")
    return ", ".join(kinds)


def _tree_bytes(one: CapturedVariable) -> int:
    trees = (one.plain, one.fine, one.relative)
    sections = [
        section
        for tree in trees
        if tree is not None
        for section in (tree.digests, tree.residues)
        if section is not None
    ]
    return sum(section.byte_count for section in sections)


def capture_lines(shown: ShownCapture) -> Iterator[str]:
    """The text, line by line."""
    yield (
        f"capture of {_counted(shown.checkpoints, 'checkpoint')}, {shown.capture_bytes:,} bytes,"
        f" identity {shown.identity}"
    )
    yield f"  made {shown.made_at} by ciwrap {shown.made_by}"
    yield f"  chunks of {shown.chunk_bytes:,} bytes; bounds: {_one_line(shown.bounds_from)}"
    yield f"  checksums of files: {'all' if shown.has_checksums else 'not of all'}"
    if shown.snapshot is not None:
        yield f"  environment: snapshot {shown.snapshot} (`ciwrap snapshot show CAPTURE`)"
    if shown.layout is not None:
        yield f"  layout {_one_line(shown.layout)}"
    for text in shown.left_out[:_MOST_LEFT_OUT]:
        yield f"  not captured: {_one_line(text)}"
    if len(shown.left_out) > _MOST_LEFT_OUT:
        yield f"  not captured: {len(shown.left_out) - _MOST_LEFT_OUT:,} more"
    yield f"  iterations: {_ranges(shown.iterations)}; ranks: {_ranges(shown.ranks)}"
    for one in shown.variables:
        shape = "x".join(map(str, one.shape)) if one.shape else "()"
        yield f"variable {_one_line(one.name)}"
        yield f"  {one.dtype} {shape}, {one.bound or 'no tree'}"
        yield f"  evidence {_one_line(one.evidence)}"
        yield (
            f"  in {_counted(one.checkpoints, 'checkpoint')}: {one.data_bytes:,} bytes of data,"
            f" {one.tree_bytes:,} bytes of trees"
        )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _ranges(numbers: Sequence[int]) -> str:
    if not numbers:
        return "not told"
    if len(numbers) == 1:
        return str(numbers[0])
    return f"{numbers[0]} to {numbers[-1]} ({len(numbers):,})"


def _one_line(text: str) -> str:
    """A text of a file that may come from anywhere, without control characters."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
