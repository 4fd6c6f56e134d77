"""The variables that a run left, by identity, in an order in which two runs can be compared.

Few files are open at once. Rows that have an id are put in its order, also across ranks; variables
of several ranks become one; of an iteration that was written twice (as a restart does) one is used.
"""

from __future__ import annotations

from collections import OrderedDict
from operator import attrgetter
from typing import TYPE_CHECKING

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
from ciwrap.formats.rows import LastFew, RowOrder, order_by_ids
from ciwrap.model import StrictVariables, VariableId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Shaped, Signature
    from ciwrap.formats.find_outputs import FoundOutputs, OutputFile
    from ciwrap.formats.matched_rows import MatchedRows
    from ciwrap.formats.reader import Source, VariableInfo
    from ciwrap.model import VariableSettings

    # The values of some variables of one checkpoint, by their names, in their shapes.
    Read = Callable[[Sequence[str]], Sequence[NDArray[Any]]]


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


_MOST_OPEN_FILES = 64


class Entry(Struct, frozen=True):
    """One variable: which file holds it, and its header."""

    identity: VariableId
    file: OutputFile
    info: VariableInfo


class OtherSide(Struct, frozen=True):
    """The side whose rows keep their order.

    read: the values of some variables, in their shapes. Raises AlignmentError for what it does not
    have. sides: where these are, and where the rows are that are put into their order.
    may_be_other: whether the rows stay where they are if they are not those of that side.
    """

    read: Callable[[Sequence[VariableId]], Sequence[NDArray[Any]]]
    sides: tuple[str, str]
    may_be_other: bool = False

    def at(self, place: VariableId) -> tuple[Read, tuple[str, str]]:
        """How it is read at the iteration and rank of a variable."""
        return lambda names: self.read([replace(place, name=one) for one in names]), self.sides


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
        self._other_side: OtherSide | None = None
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

    def held(self, identity: VariableId) -> memoryview | None:
        """The variable's bytes, back to back in C order, if they are in memory already."""
        entry = self.entries[identity]
        source = self._open.get(entry.file.path_text) if self._arrangement is None else None
        return None if source is None else source.held(entry.info)

    def fault_of(self, identity: VariableId) -> CiwrapError | None:
        """Why nothing can be read of the variable; None if it can."""
        entry = self.entries[identity]
        return None if entry.info.fault is None else _unreadable(entry, entry.info.fault)

    def path_of(self, identity: VariableId) -> str:
        """The file that holds it."""
        return self.entries[identity].file.path_text

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

    def keep_order_of(self, other: OtherSide) -> None:
        """From now on rows that are paired by coordinates stand in the order of another side's."""
        self._other_side = other
        if self._arrangement is not None:
            self._orders.clear()

    def pairs_others(self, identity: VariableId) -> bool:
        """Whether rows are paired by this variable's values. Raises AlignmentError."""
        where = None if self._arrangement is None else self._id_of(identity)
        if where is None or not self.entries[identity].info.shape:
            return False
        matched = self._matched(self._ids_beside(self._parts[identity], where[0]), *where)
        return matched is not None and identity.name in matched.read_names

    def arrays(self, wanted: Sequence[VariableId]) -> list[NDArray[Any]]:
        """Some variables, by which another side's rows are paired. Raises AlignmentError."""
        for one in wanted:
            if one not in self.entries:
                raise AlignmentError(
                    f"rows are paired by {one.name!r}, which one side does not have"
                )
        return [self.values(one).array() for one in wanted]

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
        self._orders = LastFew()
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
        self._names = {identity.name for identity in entries}
        for identity in entries:
            name = self._nearest(arrangement.align_by(identity), identity)
            if name is not None:
                names[name] = names.get(name, False) or arrangement.is_across_ranks(identity)
        return names

    def _id_of(self, identity: VariableId) -> tuple[str, bool] | None:
        """(id variable, whether across ranks) by which a variable is aligned; ids by themselves."""
        assert self._arrangement is not None
        if identity.name in self._id_names:
            return identity.name, self._id_names[identity.name]
        name = self._nearest(self._arrangement.align_by(identity), identity)
        return None if name is None else (name, self._arrangement.is_across_ranks(identity))

    def _nearest(self, name: str | None, identity: VariableId) -> str | None:
        """The variable that is called so, or is in the same file, block or folder."""
        if name is None or name in self._names:
            return name
        parts = identity.name.split("/")
        near = ("/".join([*parts[:count], name]) for count in range(len(parts) - 1, 0, -1))
        return next((one for one in near if one in self._names), name)

    def _alignment(self, identity: VariableId) -> tuple[tuple[Entry, ...], RowOrder] | None:
        """The entries that make up an aligned variable, and the order of their rows."""
        where = self._id_of(identity)
        parts = self._parts[identity]
        if where is None or not parts[0].info.shape:
            return None
        ids = self._ids_beside(parts, where[0])
        matched = self._matched(ids, *where)
        if matched is None:
            key = tuple(one.identity for one in ids)
            return parts, self._orders.find(key, lambda: self._by_ids(ids))
        try:
            order = matched.order_of(identity.name)
        except AlignmentError:
            if identity.name != where[0] or len(parts) > 1:
                raise
            order = None  # coordinates that cannot be paired are compared as they stand
        if order is None and len(parts) > 1:
            raise AlignmentError(f"its rows across ranks are not those of {where[0]!r}")
        return None if order is None else (parts, order)

    def _ids_beside(self, parts: Sequence[Entry], name: str) -> list[Entry]:
        """The id variable of that name beside each of these."""
        ids = []
        for part in parts:
            id_place = replace(part.identity, name=name)
            if id_place not in self._by_place:
                raise AlignmentError(
                    f"its id variable {name!r} is not among the outputs",
                    file=part.file.path,
                    variable=part.identity.text,
                    remedy="fix 'align_by', or have the program write it",
                )
            ids.append(self._by_place[id_place])
        return ids

    def _by_ids(self, ids: Sequence[Entry]) -> RowOrder:
        assert self._arrangement is not None
        parts = [self._plain_values(one) for one in ids]
        return order_by_ids(ids[0].identity.name, parts, self._arrangement.duplicates)

    def _matched(self, ids: Sequence[Entry], name: str, is_across: bool) -> MatchedRows | None:
        """How rows are paired by coordinates; None for other ids. ids: these, of each rank."""
        if ids[0].info.dtype[1:2] != "f":
            return None
        key = tuple(one.identity for one in ids)
        return self._orders.find(key, lambda: self._match(ids, name, is_across=is_across))

    def _match(self, ids: Sequence[Entry], name: str, *, is_across: bool) -> MatchedRows:
        from ciwrap.formats.matched_rows import MatchedRows

        assert self._arrangement is not None
        first, other = ids[0].identity, self._other_side
        settings = self._arrangement.settings_for(first)
        if settings.scale is not None:
            raise AlignmentError(
                f"rows are paired within the bound of {name!r}, which is {settings.scale.text}",
                remedy=f"give {name!r} an atol that is a number, under 'variables'",
            )
        place = replace(first, rank=None) if is_across else first
        return MatchedRows(
            name,
            tuple(one.info.shape[0] if one.info.shape else 0 for one in ids),
            lambda wanted: replace(first, name=wanted) in self._by_place,
            lambda names: [self._read_rows(ids, wanted) for wanted in names],
            None if other is None else other.at(place),
            settings.bound,
            may_be_other=other is not None and other.may_be_other,
        )

    def _read_rows(self, beside: Sequence[Entry], name: str) -> NDArray[Any]:
        """A variable beside others, of all their ranks together."""
        places = [replace(one.identity, name=name) for one in beside]
        return np.concatenate([self._plain_values(self._by_place[one]).array() for one in places])

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
        return order.put_in_order([self._plain_values(part) for part in parts])

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
        key = file.path_text
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
