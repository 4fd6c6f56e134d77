"""Sources for files that hold many arrays; hyperslabs, CF packing, iterations inside one file.

CF conventions: scale_factor and add_offset. NetCDF conventions: _Unsigned, in formats that have
signed integers alone.
"""

from __future__ import annotations

import contextlib
import math
import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.arrays.values import Field, FileRegion, dtype_text, extract, fields_of, storage_dtype
from ciwrap.base.errors import (
    CiwrapError,
    ConfigError,
    CorruptFileError,
    DuplicateVariableError,
    FileLimitError,
    PickledArrayError,
    UnsupportedDtypeError,
    one_line,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.reader import (
    IS_WHOLE,
    AttributeRule,
    CheckedReader,
    InputFile,
    Source,
    VariableInfo,
    guarded,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Labels

    ReadFlat = Callable[[int, int], NDArray[Any]]

MAX_VARIABLES = 1_000_000
MAX_ELEMENTS = 1 << 60
_MOST_DIMENSIONS = 32
# Texts of variable length are read whole, to learn how wide they are.
MAX_TEXTS = 1 << 20
# What is not stored is filled in by most formats; lengths that lie then make a small file endless.
_LARGE_BYTES = 1 << 30
_MAX_RATIO = 10_000
_TEXT_STEP = 16
# Why a text is not compared: NumPy would take it for the text without its last character.
LOST_ZERO = "holds a text that ends with a zero character, which would be lost"


class Entry(Struct, frozen=True):
    """A variable, and how its elements are read: read(first element, count)."""

    info: VariableInfo
    read: ReadFlat


class EntrySource(Source):
    """A source made of entries. `finish` closes what the format's library opened."""

    def __init__(
        self,
        path: Path,
        entries: Sequence[Entry],
        finish: Callable[[], None] | None = None,
        *,
        attributes_left_out: int = 0,
    ) -> None:
        self.path = path
        self.attributes_left_out = attributes_left_out
        self.variables = tuple(entry.info for entry in entries)
        self._read = {entry.info.name: entry.read for entry in entries}
        self._finish = finish

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        info = self.checked_range(name, first_element, count)
        dtype = storage_dtype(info.dtype)
        if count == 0:
            return np.empty(0, dtype=dtype)
        with guarded(self.path, name):
            found = self._read[name](first_element, count)
            if found.size != count or found.dtype != dtype:
                raise CorruptFileError(
                    f"holds {found.size} values of {found.dtype} where {count} of {dtype} are"
                    " expected",
                    variable=name,
                )
        return found

    def close(self) -> None:
        finish, self._finish = self._finish, None
        if finish is not None:
            with guarded(self.path):
                finish()


def opened(path: Path, list_entries: Callable[[InputFile], Sequence[Entry]]) -> EntrySource:
    """A file whose entries read it in place; it stays open as long as the source."""
    file = InputFile(path)
    with closed_on_error(file.close):
        return EntrySource(path, list_entries(file), file.close)


def stored_entry(
    file: InputFile, name: str, dtype: str, shape: tuple[int, ...], offset: int, **facts: Any
) -> Entry:
    """A variable whose elements lie back to back in a file from `offset` on. facts: as VariableInfo
    takes them.
    """
    byte_count = math.prod(shape) * storage_dtype(dtype).itemsize
    region = FileRegion(str(file.path), offset, byte_count)
    return Entry(VariableInfo(name, dtype, shape, region, **facts), file.elements(offset, dtype))


def fault_text(error: CiwrapError) -> str:
    """Why a variable is not compared, with what to do about it besides leaving it out."""
    return one_line(f"{error.message}; {error.remedy}" if error.remedy else error.message)


def lengths_of(given: Any, key: str) -> tuple[int, ...]:
    """A shape as options give it: one length, or several, of which one may be -1. Raises
    ConfigError.
    """
    lengths = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    are_whole = all(type(one) is int and -1 <= one < 1 << 62 for one in lengths)
    if not are_whole or lengths.count(-1) > 1 or len(lengths) > _MOST_DIMENSIONS:
        raise ConfigError(
            f"must hold whole numbers from 0, {_MOST_DIMENSIONS} at most, of which one may be -1",
            key=key,
        )
    return lengths


def filled_in(lengths: Sequence[int], byte_count: int, item_bytes: int) -> tuple[int, ...] | None:
    """The shape of what has so many bytes, -1 being as many as there is room for; None if it is
    another one.
    """
    known = math.prod(one for one in lengths if one != -1) * item_bytes
    if -1 not in lengths:
        return tuple(lengths) if known == byte_count else None
    if not known or byte_count < 0 or byte_count % known:
        return None
    return tuple(byte_count // known if one == -1 else one for one in lengths)


class Listing:
    """Collects the entries of a file. `path` is for messages. on_progress: is called with each
    entry, in a process that has to tell that it is at work.

    has_steps: whether the steps that a file counts itself are iterations, as the option of readers
    for which there is nothing else to choose says it. Raises ConfigError.
    """

    on_progress: ClassVar[Callable[[], None]] = staticmethod(lambda: None)

    def __init__(self, path: Path, options: Mapping[str, Any] | None = None) -> None:
        self.path = path
        iterations = (options or {}).get("iterations", "auto")
        if iterations not in ("auto", "none"):
            raise ConfigError("must be auto or none", key="options.iterations")
        self.has_steps = iterations == "auto"
        self.entries: list[Entry] = []
        self.left_out = 0  # attributes, which nobody has asked for
        self._names: set[str] = set()

    @contextlib.contextmanager
    def one(self, name: str, **facts: Any) -> Iterator[None]:
        """Whatever goes wrong in the block makes this variable one that is not compared, and no
        other. facts: its place, as `add` takes it.
        """
        try:
            with guarded(self.path, name):
                yield
        except (CorruptFileError, UnsupportedDtypeError) as error:
            # What a library complains of need not be damage, which is what the remedy is for.
            is_ours = error.__cause__ is None and error.remedy != IS_WHOLE
            self.add_fault(name, fault_text(error) if is_ours else error.message, **facts)

    def add(
        self,
        name: str,
        dtype: np.dtype[Any],
        shape: Sequence[int],
        read: ReadFlat,
        *,
        region: FileRegion | None = None,
        stored_bytes: int | None = None,
        called: str | None = None,
        iteration: int | None = None,
        rank: int | None = None,
        steps: Sequence[int] | None = None,
        labels: Labels = (),
    ) -> None:
        """An array of that dtype and shape; a record array gives one variable per field.

        region: where its bytes lie as they are. stored_bytes: how many the file really holds.
        steps: the iterations that its first axis goes through; it then gives one variable for each.
        labels: as in VariableInfo. What has no defined comparison is listed with its fault.
        """
        lengths = tuple(int(length) for length in shape)
        facts = {"called": called, "iteration": iteration, "rank": rank, "labels": labels}
        if math.prod(lengths) > MAX_ELEMENTS or any(length < 0 for length in lengths):
            self.add_fault(name, f"claims the shape {lengths}", **facts)
            return
        claimed = math.prod(lengths) * dtype.itemsize
        if stored_bytes is not None and claimed > max(_LARGE_BYTES, _MAX_RATIO * stored_bytes):
            self.add_fault(
                name, f"claims {claimed} bytes, of which the file stores {stored_bytes}", **facts
            )
            return
        try:
            fields = fields_of(name, dtype, file=self.path)
        except (UnsupportedDtypeError, PickledArrayError) as error:
            self.add_fault(name, error.message, **facts)
            return
        for field in fields:
            info = VariableInfo(
                field.name,
                field.dtype,
                (*lengths, *field.inner_shape),
                region if dtype.names is None else None,
                _called(called, name, field.name),
                iteration,
                rank,
                labels=labels,
            )
            self._add(info, field_reader(read, dtype, field), steps)

    def add_array(self, name: str, array: Any, **facts: Any) -> None:
        """A small array that is in memory; texts of any length become fixed-width unicode."""
        found = np.asarray(array)
        if found.dtype.hasobject:
            found = _fixed_width(found)
        if found.dtype.kind in "SU" and found.dtype.itemsize == 0:
            found = found.astype(f"{found.dtype.kind}1")
        flat = np.ascontiguousarray(found).reshape(-1)
        self.add(
            name,
            found.dtype,
            found.shape,
            lambda first, count: flat[first : first + count],
            **facts,
        )

    def at_step(self, name: str, step: int) -> tuple[str, dict[str, Any]]:
        """What a variable is called in the file at one of its steps, and its place in a history."""
        return f"{name}[{step}]", {"called": name, "iteration": step} if self.has_steps else {}

    def add_at_step(self, name: str, step: int, array: Any, **facts: Any) -> None:
        """As `add_array`, of a step that the file counts."""
        key, place = self.at_step(name, step)
        self.add_array(key, array, **place, **facts)

    def add_fault(self, name: str, fault: str, **facts: Any) -> None:
        """Something that is in the file and cannot be compared."""

        info = VariableInfo(name, "|V1", (1,), fault=one_line(fault), **facts)
        self.put(Entry(info, _nothing))

    def _add(self, info: VariableInfo, read: ReadFlat, steps: Sequence[int] | None) -> None:
        if not steps:  # a history that has not begun is seen by the variable as it is
            self.put(Entry(info, read))
            return
        if not info.shape or len(steps) != info.shape[0]:
            raise CorruptFileError(
                f"has {info.shape[:1]} rows where there are {len(steps)} iterations",
                variable=info.name,
            )
        shape = info.shape[1:]
        per_step = math.prod(shape)
        step_bytes = per_step * info.item_bytes
        for number, step in enumerate(steps):
            region = info.region
            if region is not None:
                offset = region.offset + number * step_bytes
                region = FileRegion(region.path, offset, step_bytes)
            one = replace(
                info,
                name=f"{info.name}[{number}]",
                shape=shape,
                region=region,
                called=info.called or info.name,
                iteration=step,
            )
            self.put(Entry(one, shifted(read, number * per_step)))

    def put(self, entry: Entry) -> None:
        """Adds an entry as it is. Raises DuplicateVariableError, FileLimitError."""
        name = entry.info.name
        if name in self._names:
            raise DuplicateVariableError("is in the file twice", variable=name)
        if len(self.entries) >= MAX_VARIABLES:
            raise FileLimitError(f"holds more than {MAX_VARIABLES} variables")
        self._names.add(name)
        self.entries.append(entry)
        Listing.on_progress()


def _nothing(*_: int) -> NDArray[Any]:
    """Reads what has no elements, or is refused before any is read."""
    return np.empty(0, dtype="V1")


def _called(called: str | None, name: str, field_name: str) -> str | None:
    """What a field is called: the same addition as to the array's own name."""
    return None if called is None else called + field_name[len(name) :]


def shifted(read: ReadFlat, offset: int) -> ReadFlat:
    return lambda first, count: read(offset + first, count)


def field_reader(read: ReadFlat, dtype: np.dtype[Any], field: Field) -> ReadFlat:
    """The elements of a field, of records that `read` gives."""
    if dtype.names is None:
        return read
    per_record = math.prod(field.inner_shape)

    def read_field(first: int, count: int) -> NDArray[Any]:
        if per_record == 0:
            return np.empty(0, dtype=field.dtype)
        record, within = divmod(first, per_record)
        records = (within + count + per_record - 1) // per_record
        plain = read(record, records)
        values: NDArray[Any] = extract(plain.view(f"V{dtype.itemsize}"), dtype, field)
        return values[within : within + count]

    return read_field


def _fixed_width(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Texts (str or bytes) of any length as fixed-width unicode. Raises as `array_of_texts`."""
    texts = []
    for value in array.reshape(-1).tolist():
        if isinstance(value, bytes):
            texts.append(value.decode("utf-8", "surrogateescape"))
        elif isinstance(value, str):
            texts.append(value)
        else:
            raise UnsupportedDtypeError(f"holds values of type {type(value).__name__}")
    found: np.ndarray[Any, Any] = array_of_texts(texts).reshape(array.shape)
    return found


def array_of_texts(texts: Sequence[str]) -> NDArray[np.str_]:
    """Texts of any length as fixed-width unicode.

    Raises UnsupportedDtypeError for one that ends with a zero, which would be lost.
    """
    if any(text.endswith("\0") for text in texts):
        raise UnsupportedDtypeError(LOST_ZERO)
    return np.array(texts, dtype=dtype_of_texts(max(map(len, texts), default=1)))


def dtype_of_texts(longest: int) -> str:
    """Unicode whose width grows in steps, so that one longer word does not make it another dtype.
    longest: the characters of the longest text.
    """
    return f"<U{-(-max(1, longest) // _TEXT_STEP) * _TEXT_STEP}"


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype can be compared as it is stored, without fields or conversions."""
    if dtype.names is not None or dtype.subdtype is not None:
        return False
    try:
        dtype_text(dtype)
    except UnsupportedDtypeError:
        return False
    return True


Lengths = tuple[int, ...]
# A row of chunks is unpacked once and kept if it is no larger than this; each of its chunks would
# otherwise be unpacked once for every piece that touches it.
MOST_KEPT_BYTES = 64 << 20

# The first index along each axis, and the one behind the last.
Edges = Sequence[tuple[int, int]]
_MOST_PARTS = 1 << 26


def are_filled(whole: Edges, boxes: Sequence[Edges]) -> bool:
    """Whether boxes, which may overlap, leave out nothing of a whole.

    Raises CorruptFileError if there are too many of too many different edges to tell.
    """
    # Between the edges of any two neighbouring boxes all is in the same boxes.
    edges = [
        np.unique([edge for box in (*boxes, whole) for edge in box[axis]])
        for axis in range(len(whole))
    ]
    lengths = [len(one) - 1 for one in edges]
    if math.prod(lengths) > _MOST_PARTS:
        raise CorruptFileError("has too many pieces of too many different extents")
    is_held = np.zeros(lengths, dtype=bool)
    for box in boxes:
        is_held[_between(edges, box)] = True
    return bool(is_held[_between(edges, whole)].all())


def _between(edges: Sequence[NDArray[Any]], box: Edges) -> tuple[slice, ...]:
    return tuple(
        slice(*np.searchsorted(along, ends).tolist())
        for along, ends in zip(edges, box, strict=True)
    )


def boxes_of(shape: Lengths, first: int, count: int) -> Iterator[tuple[Lengths, Lengths]]:
    """Boxes (start, lengths) that hold elements first .. first + count - 1, in C order.

    At most two for each dimension and one.
    """
    while count > 0:
        for axis in range(len(shape)):
            inner = math.prod(shape[axis + 1 :])
            if first % inner == 0 and count >= inner:
                break
        else:  # a single number
            yield (), ()
            return
        index = tuple(int(n) for n in np.unravel_index(first, shape))
        rows = min(count // inner, shape[axis] - index[axis])
        yield index, (*(1,) * axis, rows, *shape[axis + 1 :])
        first += rows * inner
        count -= rows * inner


def box_reader(array: Any) -> Callable[[Lengths, Lengths], NDArray[Any]]:
    """Boxes of an array that takes slices, such as a dataset of h5py; a single number as it is."""

    def read(start: Lengths, lengths: Lengths) -> NDArray[Any]:
        box = tuple(slice(at, at + length) for at, length in zip(start, lengths, strict=True))
        return np.asarray(array[box] if box else array[...])

    return read


def joined(parts: Iterator[NDArray[Any]], count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Pieces one after another, in a byte order that np.concatenate would not keep."""
    first = next(parts)
    if first.size == count:
        return first
    found = np.empty(count, dtype=dtype)
    done = first.size
    found[:done] = first
    for part in parts:
        found[done : done + part.size] = part
        done += part.size
    if done != count:
        raise ValueError(f"{done} values where {count} were asked for")
    return found


class FlatReader:
    """Elements of an array in C order.

    read_box(start, lengths) gives a box of it, of any shape with so many elements.
    chunk_rows: how many rows of the first axis are stored in one chunk; 0 if it is not chunked.
    Memory is bounded by what is asked for and MOST_KEPT_BYTES.
    """

    def __init__(
        self,
        shape: Lengths,
        dtype: np.dtype[Any],
        read_box: Callable[[Lengths, Lengths], Any],
        chunk_rows: int = 0,
    ) -> None:
        self._shape = shape
        self._dtype = dtype
        self._read_box = read_box
        self._row = math.prod(shape[1:])
        row_bytes = max(1, self._row * dtype.itemsize)
        fits = chunk_rows > 0 and chunk_rows * row_bytes <= MOST_KEPT_BYTES
        self._kept_rows = min(chunk_rows, shape[0]) if fits and shape else 0
        self._kept: NDArray[Any] | None = None
        self._kept_first = 0

    def read(self, first: int, count: int) -> NDArray[Any]:
        """Elements first .. first + count - 1 as a contiguous one-dimensional array."""
        if count == 0:
            return np.empty(0, dtype=self._dtype)
        return joined(self._parts(first, count), count, self._dtype)

    def _parts(self, first: int, count: int) -> Iterator[NDArray[Any]]:
        if not self._kept_rows:
            for start, lengths in boxes_of(self._shape, first, count):
                yield self._box(start, lengths)
            return
        end = first + count
        while first < end:
            row = first // self._row
            block = row - row % self._kept_rows
            whole = self._whole_rows(first, end)
            if whole:  # at once, and not kept: nobody asks for them again
                yield self._box((row, *(0,) * (len(self._shape) - 1)), (whole, *self._shape[1:]))
                first += whole * self._row
                continue
            if self._kept is None or self._kept_first != block * self._row:
                rows = min(self._kept_rows, self._shape[0] - block)
                start = (block, *(0,) * (len(self._shape) - 1))
                self._kept = None
                self._kept = self._box(start, (rows, *self._shape[1:]))
                self._kept_first = block * self._row
            within = first - self._kept_first
            piece = self._kept[within : within + end - first]
            yield piece.copy()
            first += piece.size

    def _whole_rows(self, first: int, end: int) -> int:
        """How many rows of whole chunks begin at `first` and end by `end`, if several chunks do."""
        row = first // self._row
        if row * self._row != first or row % self._kept_rows:
            return 0
        last = end // self._row
        rows = (
            last - row
            if last == self._shape[0]
            else (last - row) // self._kept_rows * self._kept_rows
        )
        return rows if rows > self._kept_rows else 0

    def _box(self, start: Lengths, lengths: Lengths) -> NDArray[Any]:
        found = np.asarray(self._read_box(start, lengths))
        flat: NDArray[Any] = np.ascontiguousarray(found, dtype=self._dtype).reshape(-1)
        if flat.size != math.prod(lengths):
            raise ValueError(f"{flat.size} values where {math.prod(lengths)} were asked for")
        return flat


class Packing(Struct, frozen=True):
    """value = raw * scale + offset; raw numbers in `missing` become NaN.

    dtype: of the values, that of the attributes; float64 where that would make one number of two.
    as_unsigned: what the stored bytes are instead, if they are not what they are stored as.
    is_scaled: if not, the values are the raw numbers, and none becomes NaN.
    """

    scale: float
    offset: float
    missing: tuple[Any, ...]
    dtype: np.dtype[Any]
    as_unsigned: np.dtype[Any] | None = None
    is_scaled: bool = True

    @staticmethod
    def of(attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> Packing | None:
        """The packing that a variable's attributes tell of; None if it is not packed.

        Two files may hold the same raw numbers and other values, so raw numbers must not be
        compared where there is one. Raises ValueError for attributes that are no single numbers.
        """
        given = {
            key: attributes[key] for key in ("scale_factor", "add_offset") if key in attributes
        }
        unsigned = _unsigned(attributes, dtype)
        if not given and unsigned is not None:
            return Packing(1.0, 0.0, (), unsigned, unsigned, is_scaled=False)
        if not given or dtype.kind not in "iuf":
            return None
        scale = _number(given.get("scale_factor", 1.0), "scale_factor")
        offset = _number(given.get("add_offset", 0.0), "add_offset")
        kinds = [np.asarray(value).dtype for value in given.values()]
        wide = np.result_type(np.float32, *kinds)
        missing = tuple(
            one
            for key in ("_FillValue", "missing_value")
            if key in attributes
            for one in np.asarray(attributes[key]).reshape(-1).tolist()
        )
        # What the stored type cannot hold, such as 1e20 beside short integers, no element is.
        held = tuple(one for one in missing if _is_held(one, dtype))
        is_short = wide == np.float32 and dtype.itemsize <= 2
        if is_short and dtype.kind in "iu":
            most = abs(scale) * (1 << 8 * dtype.itemsize) + abs(offset)
            is_short = _keeps_apart(scale, most, np.dtype(np.float32))
        target = np.dtype(np.float32 if is_short else np.float64)
        return Packing(scale, offset, held, target, unsigned)

    def reader(
        self, read: Callable[[int, int], NDArray[Any]]
    ) -> Callable[[int, int], NDArray[Any]]:
        def unpack(first: int, count: int) -> NDArray[Any]:
            stored = read(first, count)
            raw = stored if self.as_unsigned is None else stored.view(self.as_unsigned)
            if not self.is_scaled:
                return raw
            with np.errstate(all="ignore"):
                values = raw.astype(np.float64) * self.scale + self.offset
                found = values.astype(self.dtype)
            if self.missing:
                is_missing = np.isin(stored, np.array(self.missing, dtype=stored.dtype))
                found[is_missing] = np.nan
                raw = raw[~is_missing]
            self._check_kept_apart(raw)
            return found

        return unpack

    def _check_kept_apart(self, raw: NDArray[Any]) -> None:
        """Raises UnsupportedDtypeError if two of the raw numbers may have become one value."""
        if raw.dtype.kind not in "iu" or raw.size == 0:
            return
        most = max(abs(int(raw.min())), abs(int(raw.max()))) * abs(self.scale) + abs(self.offset)
        if not _keeps_apart(self.scale, most, self.dtype):
            raise UnsupportedDtypeError(
                f"holds integers that unpacking (scale {self.scale:g}, offset {self.offset:g})"
                f" would not keep apart in {self.dtype}"
            )


def _unsigned(attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """The type that the attribute _Unsigned (NetCDF Users Guide) gives to signed integers."""
    if dtype.kind != "i" or str(attributes.get("_Unsigned", "")).lower() != "true":
        return None
    return np.dtype(f"{dtype.str[0]}u{dtype.itemsize}")


def _keeps_apart(scale: float, most: float, dtype: np.dtype[Any]) -> bool:
    """Whether values a scale apart stay different numbers of that dtype, rounded at each step.

    most: what none of them nor of the sums before them exceeds.
    """
    with np.errstate(all="ignore"):
        return bool(abs(scale) > 2 * np.spacing(dtype.type(most)))


def _is_held(value: Any, dtype: np.dtype[Any]) -> bool:
    if not isinstance(value, (int, float)):
        raise ValueError("its attribute _FillValue or missing_value is not a number")
    with np.errstate(all="ignore"):
        cast = np.asarray(value).astype(dtype)
    return bool(cast == value) or dtype.kind == "f"


def _number(value: Any, name: str) -> float:
    found = np.asarray(value).reshape(-1)
    if found.size != 1 or found.dtype.kind not in "iuf" or not math.isfinite(found[0]):
        raise ValueError(f"its attribute {name} is not a single number that is finite")
    if name == "scale_factor" and found[0] == 0:
        raise ValueError("its attribute scale_factor is 0, which makes all of its numbers equal")
    return float(found[0])


OPTION_NAMES = ("iterations", "iteration_variable", "iteration_step")
_ITERATION = re.compile(
    r"(?:iterations?|iter|time_?steps?|steps?|time|frames?|cycles?|checkpoints?)"
    r"[ _#.\-]*(\d{1,18})",
    re.IGNORECASE,
)
_RANK = re.compile(r"(?:ranks?|procs?|processors?|pe)[ _#.\-]*(\d{1,9})", re.IGNORECASE)
_TIME_NAME = re.compile(
    r"t|(?:.*_)?(?:n|date)?times?(?:_?steps?)?(?:_counter)?|n?steps?|records?|frames?|iterations?|iter",
    re.I,
)
# How far a time may be from a whole number of steps: by rounding, of the number or of a step.
_NEAR = 1e-6
_MOST_ASIDE = 0.1


class IterationRule(Struct, frozen=True):
    """How a file's iterations are found.

    axis: "auto", "none", or the name of the dimension. variable: whose values number them; None:
    they are counted from 0, or as the file's groups say. step: what one iteration adds to that
    variable.
    """

    axis: str = "auto"
    variable: str | None = None
    step: float = 1.0

    @property
    def is_on(self) -> bool:
        return self.axis != "none"

    @staticmethod
    def of(options: Mapping[str, Any]) -> IterationRule:
        """The rule that `options` give. Raises ConfigError."""
        axis = options.get("iterations", "auto")
        variable = options.get("iteration_variable")
        step = options.get("iteration_step", 1.0)
        for key, value in (("iterations", axis), ("iteration_variable", variable)):
            if not (isinstance(value, str) and value) and not (
                value is None and key != "iterations"
            ):
                raise ConfigError("must be text", key=f"options.{key}")
        is_number = isinstance(step, (int, float)) and not isinstance(step, bool)
        if not is_number or not 0 < step < math.inf:
            raise ConfigError("must be a number above 0", key="options.iteration_step")
        if axis == "none" and variable is not None:
            raise ConfigError(
                "cannot be used with 'iterations: none'", key="options.iteration_variable"
            )
        return IterationRule(axis, variable, float(step))

    def numbers(self, values: Any, variable: str) -> list[int]:
        """Iterations from the values of a variable. Raises CorruptFileError if they are none."""
        found = np.asarray(values).reshape(-1)
        if found.dtype.kind not in "iuf":
            raise CorruptFileError(
                f"is of type {found.dtype} and cannot number iterations", variable=variable
            )
        numbers: list[int] = []
        for value in found.tolist():
            steps = value / self.step if self.step != 1.0 or isinstance(value, float) else value
            most = min(_NEAR * max(1.0, abs(steps)), _MOST_ASIDE)
            if not math.isfinite(steps) or abs(steps - round(steps)) > most:
                raise CorruptFileError(
                    f"{value!r} is not a whole number of iterations",
                    variable=variable,
                    remedy="give 'iteration_step' (what one iteration adds), or leave"
                    " 'iteration_variable' out to count from 0",
                )
            numbers.append(round(steps))
        if any(number < 0 for number in numbers):
            raise CorruptFileError("an iteration is negative", variable=variable)
        return numbers

    def along(
        self,
        axis: str | None,
        length: int,
        values_of: Callable[[str], Any],
        *,
        kind: str = "variable",
    ) -> list[int]:
        """The iterations along an axis of that length.

        values_of: the values of the variable of that name, None if there is none. kind: what the
        format calls a variable. Raises ConfigError if there is not one value for each step, and as
        `numbers` does.
        """
        name = self.variable
        if name is None:
            return list(range(length))
        values = values_of(name)
        if values is None or np.asarray(values).size != length:
            raise ConfigError(
                f"there is no {kind} {name!r} with one value for each of the {length} steps along"
                f" {axis!r}",
                key="options.iteration_variable",
            )
        return self.numbers(values, name)


class Place(Struct, frozen=True):
    """Where in a history something stands, and what it is called there."""

    called: str
    iteration: int | None = None
    rank: int | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """As `Listing.add` takes it."""
        return {"called": self.called, "iteration": self.iteration, "rank": self.rank}


class HistoryReader(CheckedReader):
    """A reader of files that name their variables and may hold a history of them.

    How iterations are found, and which attributes are compared, is asked for in the same way
    whatever the format is.
    """

    option_names: ClassVar[tuple[str, ...]] = (*OPTION_NAMES, "attributes")

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        rule = IterationRule.of(options)
        return self.open_history(path, rule, AttributeRule.of(options))

    @abstractmethod
    def open_history(self, path: Path, rule: IterationRule, attributes: AttributeRule) -> Source:
        """As `open`, once the options are known to be right."""


def place_of(groups: Sequence[str], name: str, *, digits_after: Sequence[str] = ()) -> Place:
    """The place of `name` within nested groups such as iter_0010/rank_2.

    digits_after: the groups below which a name of digits alone is an iteration (openPMD's `data`).
    """
    iteration: int | None = None
    rank: int | None = None
    rest: list[str] = []
    for number, group in enumerate(groups):
        found = _ITERATION.fullmatch(group)
        if found is None and digits_after and tuple(groups[:number]) == tuple(digits_after):
            found = re.fullmatch(r"(\d{1,18})", group)
        other = _RANK.fullmatch(group)
        if found is not None and iteration is None:
            iteration = int(found[1])
        elif other is not None and rank is None:
            rank = int(other[1])
        else:
            rest.append(group)
    return Place("/".join([*rest, name]), iteration, rank)


def time_axis(rule: IterationRule, names: Iterable[str], unlimited: Sequence[str]) -> str | None:
    """The dimension that goes through time; None if there is none.

    names: of all dimensions. unlimited: those that can grow. Only what is named `time`, else like
    it, of several the unlimited one, is taken, and only if that leaves no choice: whether another
    dimension can grow is how it is stored.
    """
    if not rule.is_on:
        return None
    known = list(names)
    if rule.axis != "auto":
        return rule.axis if rule.axis in known else None
    called = [name for name in known if _TIME_NAME.fullmatch(name)]
    plain = [name for name in called if name.lower() == "time"]
    for choice in (plain, called, [name for name in unlimited if name in called]):
        if len(choice) == 1:
            return choice[0]
    return None
