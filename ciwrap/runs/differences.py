"""Every differing value as a row of a CSV or Parquet file; and a second look at these values."""

from __future__ import annotations

import os
import threading
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import as_bytes, element_texts, is_bfloat16, widen_bfloat16
from ciwrap.base.errors import CiwrapError, NotAvailableError, UsageError, WriteFailedError, escape
from ciwrap.base.late import csv
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import Closing
from ciwrap.base.progress import NO_PROGRESS
from ciwrap.check.findings import DetailKeeper
from ciwrap.check.judge import compare_values
from ciwrap.check.two_sides import Work, suspect_pieces
from ciwrap.explain.across import (
    explainer,
    explainer_without_pictures,
    first_difference,
    is_part,
    with_other_iteration,
)
from ciwrap.explain.swapped import say_swapped
from ciwrap.formats.reader import as_elements
from ciwrap.model import Verdict, severity
from ciwrap.runs.sides import Variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.check.other_bounds import Circle
    from ciwrap.check.two_sides import Findings
    from ciwrap.formats.catalog import Rules
    from ciwrap.formats.source_files import CheckpointKey
    from ciwrap.golden.trees import Resources
    from ciwrap.model import VariableId, VariableResult
    from ciwrap.runs.sides import Run

COLUMNS = ("iteration", "rank", "variable", "index", "golden", "new", "difference", "id")
SUFFIXES = (".csv", ".parquet")
_ROWS_AT_ONCE = 1 << 16


class DifferenceList:
    """A list of differences under way; whole and in its place once closed without an error.

    The suffix says the kind of file. Columns: iteration and rank (empty where there is none),
    variable, index in the variable's own dimensions ("3 7"), both values as texts that read back
    exactly, new - golden (empty where that has no meaning), and the id of the row where rows are
    aligned (the index then counts rows in the order of ids). Raises UsageError for another
    suffix, NotAvailableError without pyarrow, WriteFailedError.
    """

    def __init__(self, path: Path) -> None:
        import tempfile

        if path.suffix.lower() not in SUFFIXES:
            raise UsageError(
                f"{path.name}: a list of differences is written as .csv or .parquet",
                remedy="give such a name",
            )
        self.path = path
        self.count = 0
        self._lock = threading.Lock()
        try:
            descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
            self._temporary = Path(name)
            os.close(descriptor)
            is_csv = path.suffix.lower() == ".csv"
            self._sheet: _Csv | _Parquet = (_Csv if is_csv else _Parquet)(self._temporary)
        except OSError as error:
            raise _failed(path, error) from error
        except BaseException:
            self._temporary.unlink(missing_ok=True)
            raise

    def add(
        self,
        identity: VariableId,
        shape: tuple[int, ...],
        dtype: str,
        indices: NDArray[np.int64],
        golden: NDArray[np.uint8],
        new: NDArray[np.uint8],
        ids: NDArray[Any] | None = None,
    ) -> None:
        """Elements by flat index; both sides' bytes back to back. Raises WriteFailedError.

        ids: of the rows, where these are aligned. May be called from several threads.
        """
        ours = as_elements(golden.tobytes(), dtype)
        theirs = as_elements(new.tobytes(), dtype)
        for first in range(0, indices.size, _ROWS_AT_ONCE):
            some = slice(first, first + _ROWS_AT_ONCE)
            columns = _columns(shape, dtype, indices[some], ours[some], theirs[some])
            rows = [None] * len(columns[0]) if ids is None else ids[columns[0][:, 0]].tolist()
            try:
                with self._lock:
                    self._sheet.add(identity, *columns, rows)
                    self.count += len(columns[0])
            except OSError as error:
                raise _failed(self.path, error) from error

    def add_values(
        self,
        identity: VariableId,
        parameters: _core.TreeParameters,
        golden: Values,
        new: Values,
        circle: Circle | None = None,
        ids: NDArray[Any] | None = None,
        leaves: NDArray[np.int64] | None = None,
    ) -> None:
        """Lists what differs between two variables that no stream went through.

        leaves: the chunks to look at, ascending; None: all. A variable that is compared in parts is
        listed by each of them, which must not list what is another's. circle: for a variable with
        a period, whose own values are listed all the same. ids: of the rows, where these are
        aligned.
        """
        for first, count in suspect_pieces(parameters, golden, leaves):
            ours = np.ascontiguousarray(golden.read(first, count)).reshape(-1)
            theirs = np.ascontiguousarray(new.read(first, count)).reshape(-1)
            compared = (ours, theirs) if circle is None else circle.differences(ours, theirs, first)
            try:
                found = _core.compare_arrays(
                    parameters, *map(as_bytes, compared), max_indices=count
                )
            except CiwrapError as error:
                error.blame(variable=identity.text)
                raise
            if found.indices.size:
                self.add(
                    identity,
                    golden.shape,
                    golden.dtype,
                    found.indices + first,
                    as_bytes(ours[found.indices]),
                    as_bytes(theirs[found.indices]),
                    ids,
                )

    def __enter__(self) -> DifferenceList:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._sheet.close()
            if kind is None:
                mask = os.umask(0)
                os.umask(mask)
                self._temporary.chmod(0o666 & ~mask)
                self._temporary.replace(self.path)
        except OSError as failure:
            raise _failed(self.path, failure) from failure
        finally:
            self._temporary.unlink(missing_ok=True)


def is_list(path: Path) -> bool:
    """Whether a file is a list of differences of ours, by its columns. Raises OSError."""
    if not path.is_file():
        return False
    if path.suffix.lower() == ".csv":
        header = (",".join(COLUMNS) + "\n").encode()
        with path.open("rb") as stream:
            return stream.read(len(header)) == header
    pa: Any = import_module("pyarrow")
    pq: Any = import_module("pyarrow.parquet")
    try:
        return tuple(pq.read_schema(path).names) == COLUMNS
    except pa.ArrowInvalid:
        return False


def _failed(path: Path, error: OSError) -> WriteFailedError:
    return WriteFailedError(
        f"the list of differences cannot be written: {error.strerror or error}", file=path
    )


def _columns(
    shape: tuple[int, ...],
    dtype: str,
    indices: NDArray[np.int64],
    golden: NDArray[Any],
    new: NDArray[Any],
) -> tuple[NDArray[np.int64], list[str], list[str], list[float | None]]:
    """Indices as (count, dimensions), both values as texts, and their differences."""
    positions = (
        np.stack(np.unravel_index(indices, shape), axis=1)
        if shape
        else np.empty((indices.size, 0), dtype=np.int64)
    )
    if is_bfloat16(dtype):
        golden, new = widen_bfloat16(golden), widen_bfloat16(new)
    differences: list[float | None] = [None] * int(indices.size)
    if golden.dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            wide = np.longdouble if golden.dtype.kind in "iu" else np.float64
            moved = (new.astype(wide) - golden.astype(wide)).astype(np.float64)
        differences = [float(one) if np.isfinite(one) else None for one in moved]
    return positions, element_texts(golden), element_texts(new), differences


class _Csv:
    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._stream, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def add(
        self,
        identity: VariableId,
        positions: NDArray[np.int64],
        golden: list[str],
        new: list[str],
        differences: list[float | None],
        ids: list[int | None],
    ) -> None:
        name = escape(identity.name)
        self._writer.writerows(
            [identity.iteration, identity.rank, name, " ".join(map(str, index)), *rest]
            for index, *rest in zip(positions.tolist(), golden, new, differences, ids, strict=True)
        )

    def close(self) -> None:
        self._stream.close()


class _Parquet:
    def __init__(self, path: Path) -> None:
        try:
            pa: Any = import_module("pyarrow")
            pq: Any = import_module("pyarrow.parquet")
        except ImportError as error:
            raise NotAvailableError(
                "Parquet needs pyarrow", remedy="pip install pyarrow, or write .csv"
            ) from error
        self._pa = pa
        types = (pa.int64(), pa.int64(), pa.string(), pa.list_(pa.int64()), pa.string())
        self._schema = pa.schema(
            list(zip(COLUMNS, (*types, pa.string(), pa.float64(), pa.int64()), strict=True))
        )
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")

    def add(
        self,
        identity: VariableId,
        positions: NDArray[np.int64],
        golden: list[str],
        new: list[str],
        differences: list[float | None],
        ids: list[int | None],
    ) -> None:
        count = len(golden)
        columns = [
            [identity.iteration] * count,
            [identity.rank] * count,
            [identity.name] * count,
            positions.tolist(),
            golden,
            new,
            differences,
            ids,
        ]
        arrays = [
            self._pa.array(column, type=item.type)
            for column, item in zip(columns, self._schema, strict=True)
        ]
        self._writer.write_table(self._pa.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def add_details(
    work: Work,
    outcome: Findings,
    sides: tuple[Run, Run],
    keys_of: Mapping[VariableId, CheckpointKey],
    rules: Rules,
    most_bytes: int,
    *,
    only: set[VariableId] | None = None,
) -> None:
    """Gives the first differing results what a report draws of them; reads at most so many bytes.

    keys_of: the checkpoint of each variable. only: to these alone.
    """
    keeper = DetailKeeper([])  # of thousands that differ, few are drawn
    with Checkpoints(sides) as opened:
        for result in sorted(outcome.results, key=lambda one: one.id.sort_key):
            size = 2 * (result.byte_count or 0)
            is_wanted = result.verdict is Verdict.DIFFER and result.details is None
            is_wanted &= result.text is None and (only is None or result.id in only)
            if is_wanted and size <= most_bytes and result.id in keys_of:
                most_bytes -= size
                found = opened.at(keys_of[result.id])
                again = looked_at_again(work, result, result.id, found, rules)
                keeper.add(_detailed(result, again))
                work.data_bytes_read += size
            else:
                keeper.add(result)
    outcome.results = keeper.results


class Checkpoints(Closing):
    """A checkpoint of each side, open until another is asked for: to open all its files for each of
    its variables would take time that grows with the square of their number.
    """

    def __init__(self, sides: tuple[Run, Run]) -> None:
        self._sides = sides
        self._open: list[tuple[CheckpointKey, Variables] | None] = [None, None]

    def at(self, key: CheckpointKey) -> tuple[Variables, Variables]:
        """Both sides of one checkpoint."""
        return self.of(key, 0), self.of(key, 1)

    def of(self, key: CheckpointKey, number: int) -> Variables:
        """One side of a checkpoint; 0: the golden one, 1: the new one."""
        known = self._open[number]
        if known is not None and known[0] == key:
            return known[1]
        if known is not None:
            known[1].close()
            self._open[number] = None
        found = Variables(self._sides[number], key)
        self._open[number] = (key, found)
        return found

    def close(self) -> None:
        for one in self._open:
            if one is not None:
                one[1].close()
        self._open = [None, None]


def looked_at_again(
    work: Work,
    result: VariableResult,
    reference: VariableId,
    found: tuple[Variables, Variables],
    rules: Rules,
) -> VariableResult:
    """What a second look at a variable's new numbers tells beside those of a reference variable,
    perhaps of another checkpoint; the result as it is if they cannot be had.
    """
    golden, new = found
    try:
        settings = rules.settings_for(result.id, golden.signature(reference))
        if result.bound is not None:
            settings = settings.with_bound(result.bound)
        return compare_values(
            golden.values(reference, settings.mask),
            new.values(result.id, settings.mask),
            settings,
            result.id,
            work=replace(work, progress=NO_PROGRESS),
        )
    except CiwrapError:
        return result


def _detailed(result: VariableResult, again: VariableResult) -> VariableResult:
    return replace(
        result,
        details=again.details,
        differing_box=again.differing_box,
        explanations=again.explanations,
    )


def explain_first(
    outcome: Findings,
    resources: Resources,
    sides: tuple[Run, Run],
    rules: Rules,
    *,
    is_drawn: bool,
) -> None:
    """Says of two runs what the first difference has in common, after a second look at it alone,
    and what a report draws of it. is_drawn: whether there is such a report.
    """
    at = first_difference(outcome.results)
    if at is None or any(side.is_fingerprint for side in sides):
        return
    first = outcome.results[at]
    work = Work(resources, explain=explainer if is_drawn else explainer_without_pictures)
    with Checkpoints(sides) as opened:

        def compared_again(
            one: VariableResult, reference: VariableId, work: Work
        ) -> VariableResult:
            golden = _holder(opened, sides, reference, 0)
            new = _holder(opened, sides, one.id, 1)
            if golden is None or new is None:
                return one
            outcome.data_bytes_read += 2 * (one.byte_count or 0)
            return looked_at_again(work, one, reference, (golden, new), rules)

        known = {one.id for one in outcome.results}
        lacks_picture = is_drawn and first.details is None and first.text is None
        if not first.explanations or lacks_picture:
            first = _detailed(first, compared_again(first, first.id, work))
        # Of other iterations and variables the verdict is all that is asked for.
        judge = partial(compared_again, work=replace(work, explain=None))
        outcome.results[at] = with_other_iteration(first, known, partial(judge, first))
        say_swapped(outcome.results, judge)


def draw_worst(
    outcome: Findings,
    resources: Resources,
    sides: tuple[Run, Run],
    rules: Rules,
    most_bytes: int,
) -> None:
    """Gives each variable that differs what a report draws of its worst checkpoint, the worst
    variable first, as long as no more than so many bytes are read for it in all.
    """
    if any(side.is_fingerprint for side in sides):
        return
    places: dict[str, int] = {}
    for at, one in enumerate(outcome.results):
        if one.verdict is Verdict.DIFFER and one.text is None:
            worst = places.get(one.name)
            if worst is None or severity(one) > severity(outcome.results[worst]):
                places[one.name] = at
    ordered = sorted(places.values(), key=lambda at: severity(outcome.results[at]), reverse=True)
    work = Work(resources, explain=explainer)
    with Checkpoints(sides) as opened:
        for at in ordered:
            result = outcome.results[at]
            size = 2 * (result.byte_count or 0)
            if result.details is not None or size > most_bytes:
                continue
            found = [_holder(opened, sides, result.id, number) for number in (0, 1)]
            golden, new = found
            if golden is not None and new is not None:
                most_bytes -= size
                outcome.data_bytes_read += size
                again = looked_at_again(work, result, result.id, (golden, new), rules)
                outcome.results[at] = _detailed(result, again)


def _holder(
    opened: Checkpoints, sides: tuple[Run, Run], identity: VariableId, number: int
) -> Variables | None:
    """The checkpoint of a side that has a variable; None if it is gone. Of what the variable tells
    of itself, paths may tell a part or nothing, even beside others that tell all.
    """
    for iteration in dict.fromkeys((identity.iteration, None)):
        for rank in dict.fromkeys((identity.rank, None)):
            if (iteration, rank) in sides[number].groups:
                found = opened.of((iteration, rank), number)
                if identity in found.identities:
                    return found
    return None


def parts_of_side(side: Run, first: VariableResult) -> Iterator[tuple[VariableId, Values]]:
    """The variable of a result on every rank of a run, in the iteration of the result."""
    if side.is_fingerprint:
        return
    for key in side.groups:
        if key[0] not in (None, first.iteration):
            continue
        found = Variables(side, key)
        try:
            for identity in found.identities:
                if is_part(identity, first):
                    yield identity, found.values(identity)
        finally:
            found.close()
