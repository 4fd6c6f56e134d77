"""The variables that a run left, by identity, in an order in which two runs can be compared.

Few files are open at once. Rows that have an id are put in its order, also across ranks; variables
of several ranks become one; of an iteration that was written twice (as a restart does) one is used.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.arrays.values import MaskedValues, Values
from ciwrap.base.errors import (
    AlignmentError,
    CiwrapError,
    CorruptFileError,
    DuplicateVariableError,
    ExitCode,
    MaskError,
    UnreadFileError,
    UnsupportedDtypeError,
    VariableMissingError,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import Closing
from ciwrap.formats.find_outputs import MEMORY
from ciwrap.formats.reader import SourceValues
from ciwrap.model import StrictVariables, VariableId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Labels, Shaped, Signature
    from ciwrap.formats.find_outputs import FoundOutputs, OutputFile
    from ciwrap.formats.reader import Source, VariableInfo
    from ciwrap.model import VariableSettings

# Rows of a variable up to this size are sorted in memory, of larger ones in a temporary file.
_MEMORY_BYTES = 256 << 20
_STEP_ROWS_BYTES = 8 << 20
_FEW_IDS = 5
_KEPT_ORDERS = 4


class Arrangement(Struct, frozen=True):
    """What a check asks for. settings_for: of a variable, whatever its dtype.

    duplicates: "error", "first" or "last": which one counts of a variable that was written twice,
    and of a row whose id is there twice.
    """

    settings_for: Callable[[VariableId], VariableSettings]
    duplicates: str = "error"

    def align_by(self, identity: VariableId) -> str | None:
        return self.settings_for(identity).align_by

    def is_across_ranks(self, identity: VariableId) -> bool:
        return self.settings_for(identity).across_ranks


class RowOrder(Struct, frozen=True):
    """Rows of one checkpoint by id.

    ids: ascending. rows: where each of them is among the rows of all parts (ranks) in turn.
    counts: how many rows each part has. dropped: rows left out since their id comes again.
    """

    name: str
    ids: NDArray[Any]
    rows: NDArray[np.int64]
    counts: tuple[int, ...]
    dropped: int = 0

    def notes(self, duplicates: str) -> list[str]:
        """A warning if rows are left out. duplicates: which one of each id counts."""
        if not self.dropped:
            return []
        where = f"rows whose ids come more than once in {self.name!r}"
        return [f"{where} are left out, but for the {duplicates} one of each"]


class RowOrders:
    """The orders of the last few checkpoints."""

    def __init__(self, duplicates: str) -> None:
        self._duplicates = duplicates
        self._kept: OrderedDict[Any, RowOrder] = OrderedDict()

    def find(self, key: Any, name: str, parts: Callable[[], Sequence[Values]]) -> RowOrder:
        """The order by the id variable `name`, whose values `parts` gives, one for each rank.

        Raises AlignmentError for ids that are no plain list of whole numbers or texts, or not
        unique.
        """
        order = self._kept.pop(key, None)
        if order is None:
            while len(self._kept) >= _KEPT_ORDERS:
                self._kept.popitem(last=False)
            order = _order(name, parts(), self._duplicates)
        self._kept[key] = order
        return order


def _order(name: str, parts: Sequence[Values], duplicates: str) -> RowOrder:
    arrays = []
    for part in parts:
        array = _read_all(part)
        if array.dtype.kind not in "iuSU" or math.prod(part.shape[1:]) != 1 or not part.shape:
            raise AlignmentError(
                f"the id variable {name!r} has dtype {part.dtype} and shape {part.shape}; ids are"
                " one whole number or text for each row"
            )
        arrays.append(array)
    ids = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
    if ids.dtype.kind == "f":  # what signed and unsigned 64-bit numbers become together
        raise AlignmentError(f"the id variable {name!r} has several dtypes")
    ids = ids.astype(ids.dtype.newbyteorder("="))
    rows = np.argsort(ids, kind="stable").astype(np.int64)
    ordered = ids[rows]
    again = ordered[1:] == ordered[:-1]
    dropped = int(np.count_nonzero(again))
    if dropped and duplicates == "error":
        twice = ordered[1:][again][0]
        raise AlignmentError(
            f"the id {twice!s} comes more than once in {name!r}",
            remedy="say with 'duplicates: first' or 'last' which row counts",
        )
    if dropped:
        first = np.concatenate(([True], ~again))
        last = np.concatenate((~again, [True]))
        keep = first if duplicates == "first" else last
        rows, ordered = rows[keep], ordered[keep]
    counts = tuple(part.shape[0] for part in parts)
    return RowOrder(name, ordered, rows, counts, dropped)


class AlignedValues(Values):
    """Rows of one or more parts, in the order of their ids.

    They are gathered on first use: in memory, or in a temporary file as large as the variable.
    Raises AlignmentError for parts whose rows are not those of the ids.
    """

    def __init__(self, parts: Sequence[Values], order: RowOrder) -> None:
        first = parts[0]
        for part, count in zip(parts, order.counts, strict=True):
            if not part.shape or part.shape[0] != count:
                raise AlignmentError(
                    f"has shape {part.shape}, but {order.name!r} has {count} rows",
                    remedy="set 'align_by' under 'variables' only for those that have rows, or"
                    " 'align_by: none' for this one",
                )
            if part.dtype != first.dtype or part.shape[1:] != first.shape[1:]:
                raise AlignmentError(
                    f"is {first.dtype} with rows of shape {first.shape[1:]} on one rank,"
                    f" {part.dtype} with {part.shape[1:]} on another"
                )
            if part.labels != first.labels:
                raise AlignmentError(
                    f"has {_labels_text(first.labels)} on one rank,"
                    f" {_labels_text(part.labels)} on another"
                )
        self.order = order
        self.dtype = first.dtype
        self.labels = first.labels
        self.is_written = first.is_written
        self.shape = (order.rows.size, *first.shape[1:])
        self._parts = parts
        self._per_row = math.prod(first.shape[1:])
        self._gathered: NDArray[Any] | None = None
        self._file: IO[bytes] | None = None

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        if self._gathered is None:
            self._gathered = self._gather()
        return np.array(self._gathered[first_element : first_element + count])

    def _gather(self) -> NDArray[Any]:
        """All rows in order: every part is read once, from front to back."""
        target = np.full(sum(self.order.counts), -1, dtype=np.int64)
        target[self.order.rows] = np.arange(self.order.rows.size)
        dtype = self._parts[0].read(0, 0).dtype
        gathered = self._room(dtype)
        start = 0
        rows_at_once = max(1, _STEP_ROWS_BYTES // max(1, self._per_row * self.item_bytes))
        for part, count in zip(self._parts, self.order.counts, strict=True):
            for row in range(0, count, rows_at_once):
                rows = min(rows_at_once, count - row)
                values = part.read(row * self._per_row, rows * self._per_row)
                where = target[start + row : start + row + rows]
                kept = where >= 0
                gathered[where[kept]] = values.reshape(rows, self._per_row)[kept]
            start += count
        return gathered.reshape(-1)

    def _room(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        import tempfile

        shape = (self.order.rows.size, self._per_row)
        if self.byte_count <= _MEMORY_BYTES:
            return np.empty(shape, dtype=dtype)
        # Its own, unlinked file: nobody else can cut it off.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the values
        kept: NDArray[Any] = np.memmap(self._file, dtype=dtype, mode="w+", shape=shape)
        return kept


def _labels_text(labels: Labels) -> str:
    """What the file of a rank says of a variable besides its numbers."""
    return ", ".join(f"{key} {text!r}" for key, text in labels) or "no labels"


def refuse_other_ids(
    name: str, golden: NDArray[Any], new: NDArray[Any], sides: tuple[str, str]
) -> None:
    """Raises AlignmentError naming the first few ids (ascending) that only one side has.

    sides: where the one are, and the other.
    """
    if golden.size == new.size and bool(np.all(golden == new)):
        return
    lost, extra = np.setdiff1d(golden, new), np.setdiff1d(new, golden)
    parts = [
        f"{ids.size} only {where} ({_listed(ids)})"
        for ids, where in zip((lost, extra), sides, strict=True)
        if ids.size
    ]
    raise AlignmentError(f"the rows cannot be paired by {name!r}: of the ids, {', '.join(parts)}")


def _listed(ids: NDArray[Any]) -> str:
    shown = ", ".join(str(one) for one in ids[:_FEW_IDS].tolist())
    return shown + (", ..." if ids.size > _FEW_IDS else "")


def _read_all(values: Values) -> NDArray[Any]:
    return values.read(0, values.element_count)


_MOST_OPEN_FILES = 64


class Entry(Struct, frozen=True):
    """One variable: which file holds it, and its header."""

    identity: VariableId
    file: OutputFile
    info: VariableInfo


class Catalog(Closing):
    """All variables of some outputs. A context manager; not for use by several threads at once.

    entries: by identity, in the order of iteration, rank and name; identities: their keys. errors:
    files that could not be opened, variables that are there twice, files that no reader knows; as
    long as there is one, not everything has been compared. notes: what was chosen among copies,
    and what sources tell; `order_of` adds to them, so they are read in the end.
    attributes_left_out: of all files. found: as it was given. With an arrangement, variables
    aligned across ranks have no rank.
    """

    def __init__(self, found: FoundOutputs, arrangement: Arrangement | None = None) -> None:
        self.notes: list[str] = []
        self.found = found
        self._arrangement = arrangement
        self._parts: dict[VariableId, tuple[Entry, ...]] = {}
        self._open: OrderedDict[str, Source] = OrderedDict()
        self.attributes_left_out = 0
        self.errors: list[CiwrapError] = []
        self._twice: set[VariableId] = set()
        entries: dict[VariableId, Entry] = {}
        self.errors += found.unread
        for file in found.files:
            try:
                source = self._source(file)
            except CiwrapError as error:
                if error.exit_code is ExitCode.USAGE:
                    self.close()
                    raise
                self.errors.append(error)
                continue
            self.errors += source.faults
            if not (source.variables or source.faults or source.may_be_empty):
                self.errors.append(_empty(file.path))
            self.notes += source.notes
            self.attributes_left_out += source.attributes_left_out
            for info in source.variables:
                identity = file.variable_id(info)
                if identity in entries and self._take_one(entries, Entry(identity, file, info)):
                    continue
                if identity in entries:
                    self.errors.append(_duplicate(identity, file.path, entries[identity].file.path))
                    continue
                entries[identity] = Entry(identity, file, info)
        self._by_place = entries
        if arrangement is not None:
            entries = self._joined(entries, arrangement)
        in_order = sorted(entries, key=attrgetter("sort_key"))
        self.entries = {identity: entries[identity] for identity in in_order}
        self.identities = self.entries.keys()
        if self._twice:
            which = "" if arrangement is None else arrangement.duplicates
            self.notes.append(_note_of_copies(self._twice, which))

    def values(self, identity: VariableId, mask: str | None = None) -> Values:
        """The variable's values, zero where the boolean variable `mask` of the same checkpoint is
        true.

        They are valid until some other variables were asked for: use them at once. Raises
        MaskError, UnsupportedDtypeError, CorruptFileError if the file changed since it was listed,
        and the errors of opening it.
        """
        entry = self.entries[identity]
        if entry.info.fault is not None:
            raise _unreadable(entry, entry.info.fault)
        is_as_stored = self._arrangement is None
        values = self._plain_values(entry) if is_as_stored else self._arranged(identity)
        if mask is None:
            return values
        mask_id = VariableId(mask, identity.iteration, identity.rank)
        mask_entry = self.entries.get(mask_id)
        if mask_entry is None:
            raise MaskError(
                f"its mask {mask!r} is not among the outputs",
                variable=identity.text,
                remedy="fix 'mask' in the configuration, or have the program write it",
            )
        mask_values = self._arranged(mask_id, as_of=identity)
        try:
            return MaskedValues(values, mask_values, mask)
        except MaskError as error:
            error.blame(variable=identity.text)
            raise

    @property
    def is_in_memory(self) -> bool:
        """Whether these are values that a test gave."""
        return any(file.path == MEMORY for file in self.found.files)

    def signature(self, identity: VariableId) -> Signature:
        """What the variable is, by its header."""
        return self.entries[identity].info.signature

    def fault_of(self, identity: VariableId) -> CiwrapError | None:
        """Why nothing can be read of the variable; None if it can."""
        entry = self.entries[identity]
        return None if entry.info.fault is None else _unreadable(entry, entry.info.fault)

    def path_of(self, identity: VariableId) -> str:
        """The file that holds it."""
        return str(self.entries[identity].file.path)

    def is_series(self, identity: VariableId) -> bool:
        """Whether the variable's elements were found one by one in a text."""
        return self.entries[identity].info.in_text

    def is_aligned(self, identity: VariableId) -> bool:
        """Whether the variable's rows are put in order; those of an id in use always are."""
        return self._arrangement is not None and self._id_of(identity) is not None

    def order_of(self, identity: VariableId) -> RowOrder | None:
        """The order of the variable's rows; None if it is not aligned. Raises AlignmentError."""
        found = None if self._arrangement is None else self._alignment(identity)
        if found is None or self._arrangement is None:
            return None
        told = found[1].notes(self._arrangement.duplicates)
        self.notes += [note for note in told if note not in self.notes]
        return found[1]

    def _take_one(self, entries: dict[VariableId, Entry], entry: Entry) -> bool:
        """Whether the arrangement says which of two copies counts; that one then is in entries."""
        if self._arrangement is None or self._arrangement.duplicates == "error":
            return False
        self._twice.add(entry.identity)
        if self._arrangement.duplicates == "last":
            entries[entry.identity] = entry
        return True

    def _joined(
        self, entries: dict[VariableId, Entry], arrangement: Arrangement
    ) -> dict[VariableId, Entry]:
        """The entries, those of all ranks as one where they are aligned across ranks."""
        self._orders = RowOrders(arrangement.duplicates)
        self._id_names = self._ids_in_use(entries, arrangement)
        groups: dict[VariableId, list[Entry]] = {}
        for identity in sorted(entries, key=attrgetter("sort_key")):
            entry = entries[identity]
            where = self._id_of(identity)
            is_joined = where is not None and where[1] and entry.info.shape
            key = VariableId(identity.name, identity.iteration) if is_joined else identity
            groups.setdefault(key, []).append(entry)
        found: dict[VariableId, Entry] = {}
        for key, members in groups.items():
            self._parts[key] = tuple(members)
            rows = sum(one.info.shape[0] for one in members if one.info.shape)
            first = members[0]
            shape = (rows, *first.info.shape[1:]) if first.info.shape else ()
            info = (
                first.info if len(members) == 1 else replace(first.info, shape=shape, region=None)
            )
            found[key] = Entry(key, first.file, info)
        return found

    def _ids_in_use(
        self, entries: dict[VariableId, Entry], arrangement: Arrangement
    ) -> dict[str, bool]:
        """Id variables, and whether they order rows across ranks."""
        names: dict[str, bool] = {}
        for identity in entries:
            name = arrangement.align_by(identity)
            if name is not None:
                names[name] = names.get(name, False) or arrangement.is_across_ranks(identity)
        return names

    def _id_of(self, identity: VariableId) -> tuple[str, bool] | None:
        """(id variable, whether across ranks) by which a variable is aligned; ids by themselves."""
        assert self._arrangement is not None
        if identity.name in self._id_names:
            return identity.name, self._id_names[identity.name]
        name = self._arrangement.align_by(identity)
        return None if name is None else (name, self._arrangement.is_across_ranks(identity))

    def _alignment(self, identity: VariableId) -> tuple[tuple[Entry, ...], RowOrder] | None:
        """The entries that make up an aligned variable, and the order of their rows."""
        where = self._id_of(identity)
        parts = self._parts[identity]
        if where is None or not parts[0].info.shape:
            return None
        ids: list[Entry] = []
        for part in parts:
            id_place = VariableId(where[0], part.identity.iteration, part.identity.rank)
            if id_place not in self._by_place:
                raise AlignmentError(
                    f"its id variable {where[0]!r} is not among the outputs",
                    file=part.file.path,
                    variable=identity.text,
                    remedy="fix 'align_by', or have the program write it",
                )
            ids.append(self._by_place[id_place])
        key = tuple(one.identity for one in ids)
        order = self._orders.find(key, where[0], lambda: [self._plain_values(one) for one in ids])
        return parts, order

    def _arranged(self, identity: VariableId, as_of: VariableId | None = None) -> Values:
        """The variable's values, its rows in order; as_of: in the order of another variable's."""
        found = None if self._arrangement is None else self._alignment(as_of or identity)
        if found is None:
            return self._plain_values(self.entries[identity])
        parts, order = found
        if as_of is not None:
            places = [replace(part.identity, name=identity.name) for part in parts]
            lost = [place for place in places if place not in self._by_place]
            if lost:
                raise MaskError(
                    f"its mask {identity.name!r} is not among the outputs of rank {lost[0].rank}",
                    variable=as_of.text,
                    remedy="have the program write it on every rank",
                )
            parts = tuple(self._by_place[place] for place in places)
        return AlignedValues([self._plain_values(part) for part in parts], order)

    def _plain_values(self, entry: Entry) -> Values:
        source = self._source(entry.file)
        try:
            info = source.info(entry.info.name)
        except VariableMissingError:
            info = None
        if info != entry.info or info is None:
            raise CorruptFileError(
                "the file changed while it was being compared",
                file=entry.file.path,
                variable=entry.identity.text,
                remedy="let the program finish first",
            )
        return SourceValues(source, info, entry.file.name_in_check)

    def _source(self, file: OutputFile) -> Source:
        key = str(file.path)
        source = self._open.pop(key, None)
        if source is None:
            while len(self._open) >= _MOST_OPEN_FILES:
                _, oldest = self._open.popitem(last=False)
                oldest.close()
            source = file.open()
        self._open[key] = source
        return source

    def close(self) -> None:
        while self._open:
            _, source = self._open.popitem()
            source.close()


def _empty(path: Path) -> UnreadFileError:
    """Nobody would see whether such a file is on both sides."""
    return UnreadFileError(
        "holds no variables", file=path, remedy="leave it out with 'exclude', if that is right"
    )


def _duplicate(identity: VariableId, path: Path, other: Path) -> DuplicateVariableError:
    if path == other:
        return DuplicateVariableError(
            "is in the file more than once",
            file=path,
            variable=identity.text,
            remedy="have the program write it once, or say in the check with 'duplicates: first' or"
            " 'last' which one counts",
        )
    return DuplicateVariableError(
        f"is also in {other}",
        file=path,
        variable=identity.text,
        remedy="leave one of the files out with 'exclude', or tell them apart with a layout",
    )


def _unreadable(entry: Entry, fault: str) -> UnsupportedDtypeError:
    return UnsupportedDtypeError(
        fault,
        file=entry.file.path,
        variable=entry.identity.text,
        remedy="name it under 'ignore' to go without it",
    )


def _note_of_copies(twice: set[VariableId], which: str) -> str:
    shown = ", ".join(identity.text for identity in sorted(twice)[:3])
    more = ", ..." if len(twice) > 3 else ""
    return (
        f"{len(twice)} variables were written more than once, and the {which} of each is taken:"
        f" {shown}{more}"
    )


class Rules(Struct, frozen=True):
    """How two runs are judged.

    settings_for: of a variable and what it is. strict_variables: which of the variables that only
    one side has are not comparable; the others are only reported. arrangement: how rows are aligned
    and which of two copies counts; None: as the files have it. bounds_are_given: whether settings
    hold bounds that somebody asked for; if not, those of a capture take their place. bounds_from:
    who asked for them (`given`, `check NAME`). general: the settings of every variable, where they
    are the same for all that there are and may be. by_place: whether they may be others at another
    iteration or rank.
    """

    settings_for: Callable[[VariableId, Shaped], VariableSettings]
    is_ignored: Callable[[VariableId], bool]
    strict_variables: StrictVariables = StrictVariables.BOTH
    arrangement: Arrangement | None = None
    bounds_are_given: bool = True
    bounds_from: str = "given"
    general: VariableSettings | None = None
    by_place: bool = False
