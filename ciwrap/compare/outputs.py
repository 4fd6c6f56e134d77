"""The variables that a run left, by identity, with as few files open at once as that needs."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ciwrap.errors import (
    CiwrapError,
    CorruptFileError,
    DuplicateVariableError,
    ExitCode,
    MaskError,
    UnsupportedDtypeError,
    UnsupportedFormatError,
    VariableMissingError,
)
from ciwrap.golden.values import MaskedValues, SourceValues, Values
from ciwrap.model import VariableId

if TYPE_CHECKING:
    from types import TracebackType

    from ciwrap.readers.base import Source, VariableInfo
    from ciwrap.readers.layout import FoundOutputs, OutputFile

_MOST_OPEN_FILES = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One variable: which file holds it, and its header."""

    identity: VariableId
    file: OutputFile
    info: VariableInfo


class Catalog:
    """All variables of some outputs. A context manager; not for use by several threads at once.

    entries: by identity, in the order of iteration, rank and name. errors: files that could not be
    opened, variables that are there twice, files that no reader knows; as long as there is one, not
    everything has been compared. paths: every file that was to be read.
    """

    def __init__(self, found: FoundOutputs) -> None:
        self._open: OrderedDict[str, Source] = OrderedDict()
        self.errors: list[CiwrapError] = []
        self.paths = [file.path for file in found.files]
        entries: dict[VariableId, Entry] = {}
        for path in found.unmatched:
            self.errors.append(
                UnsupportedFormatError(
                    "is not compared: no reader knows its suffix, or no layout fits its path",
                    file=path,
                    remedy="leave it out with 'exclude', or give 'format' or 'layout'",
                )
            )
        for file in found.files:
            try:
                source = self._source(file)
            except CiwrapError as error:
                if error.exit_code is ExitCode.USAGE:
                    self.close()
                    raise
                self.errors.append(error)
                continue
            for info in source.variables:
                identity = file.variable_id(info)
                if identity in entries:
                    self.errors.append(
                        DuplicateVariableError(
                            f"is also in {entries[identity].file.path}",
                            file=file.path,
                            variable=identity.text,
                            remedy="leave one of the files out with 'exclude', or tell them apart"
                            " with a layout",
                        )
                    )
                    continue
                entries[identity] = Entry(identity, file, info)
        self.entries = {identity: entries[identity] for identity in sorted(entries)}

    def values(self, identity: VariableId, mask: str | None = None) -> Values:
        """The variable's values, zero where the boolean variable `mask` of the same checkpoint is
        true.

        They are valid until some other variables were asked for: use them at once. Raises
        MaskError, UnsupportedDtypeError, CorruptFileError if the file changed since it was listed,
        and the errors of opening it.
        """
        entry = self.entries[identity]
        if entry.info.fault is not None:
            raise UnsupportedDtypeError(
                entry.info.fault,
                file=entry.file.path,
                variable=identity.text,
                remedy="name it under 'ignore' to go without it",
            )
        values = self._plain_values(entry)
        if mask is None:
            return values
        mask_id = VariableId(mask, identity.iteration, identity.rank)
        mask_entry = self.entries.get(mask_id)
        if mask_entry is None:
            raise MaskError(
                f"its mask {mask!r} is not among the outputs",
                variable=identity.text,
                remedy="mend 'mask' in the configuration, or let the program write it",
            )
        return MaskedValues(values, self._plain_values(mask_entry), mask)

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
        return SourceValues(source, info)

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

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
