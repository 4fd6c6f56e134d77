"""What the lines of a shared file and of its journal say together, and what is wrong with them.

Damage of any line makes all goldens of the file unusable. Lines that are whole can be saved from it
by a new golden, unless somebody has to choose first, or the whole file is to be had elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.documents import DocumentError
from ciwrap.errors import CorruptGoldenError, GoldenToMendError, UnsupportedFormatError
from ciwrap.golden import paths, shared_lines, shared_text
from ciwrap.golden.golden_file import refuse_pointer
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.errors import CiwrapError
    from ciwrap.golden.shared_text import Shared

MOST_FILE_BYTES = 256 << 20
_ALL = ", so none of the goldens in it can be used"
# Of each test's golden several questions are asked, one after the other.
_MOST_DECODED = 1024
_REMEDY = (
    "take the file from a commit where it is whole; or run the tests and accept what then waits:"
    " goldens whose own lines are whole stay as they are"
)
# Of lines that say what somebody has to do before any golden is written.
_REMEDIES = {
    shared_lines.OF_MERGE: (
        "delete the marks of the merge, and of two lines of one golden the wrong one"
    ),
    shared_lines.OF_WINDOWS: (
        f"add the line `*{paths.SHARED_SUFFIX} text eol=lf` to .gitattributes, delete the file, and"
        " take it from git again"
    ),
}
_REMEDY_NONE = "take the file from a commit where it is whole, or delete it"


class State(Struct):
    """What a shared file and its journal say together.

    path: of the shared file. goldens: the lines of goldens by their names. tables: what they have
    in common, by check sums. put: names that the journal has put here. moved: those that may lie in
    a pair of files by now, with the root that pair has if they do. fault: the damage that makes all
    unusable: the first, or the first that somebody has to mend. byte_count: of file and journal.
    decoded: goldens that were looked at last, by their lines.
    """

    path: Path
    goldens: dict[str, bytes] = field(default_factory=dict)
    tables: dict[str, bytes] = field(default_factory=dict)
    put: set[str] = field(default_factory=set)
    moved: dict[str, str] = field(default_factory=dict)
    fault: CiwrapError | None = None
    byte_count: int = 0
    decoded: dict[bytes, Shared] = field(default_factory=dict)

    # --- goldens

    def golden_of(self, body: bytes) -> Shared:
        """The golden of a line. Raises CorruptGoldenError; from then on all are unusable."""
        known = self.decoded.get(body)
        if known is not None:
            return known
        try:
            found = shared_text.decode(body, self.tables, self.path.name)
        except DocumentError as error:
            what = f"the line of {shared_lines.golden_name(body)!r} {error.message}"
            self._note(what, self.path)
            raise damaged(self.path, what) from None
        self.keep_decoded(body, found)
        return found

    def keep_decoded(self, body: bytes, golden: Shared) -> None:
        if len(self.decoded) >= _MOST_DECODED:
            self.decoded.pop(next(iter(self.decoded)))
        self.decoded[body] = golden

    # --- faults

    def _note(self, what: str, path: Path, remedy: str | None = None) -> None:
        """Notes damage. remedy: of what somebody has to mend, which counts before all else."""
        if remedy is not None and not isinstance(self.fault, GoldenToMendError):
            self.fault = GoldenToMendError(f"{what}{_ALL}", file=path, remedy=remedy)
        elif self.fault is None:
            self.fault = damaged(path, what)

    # --- lines

    def take_file(self, data: bytes) -> None:
        """Takes the whole file. Raises GoldenToMendError, UnsupportedFormatError."""
        if not data:
            return
        refuse_pointer(data, self.path)
        lines = data.split(b"\n")
        if not lines[0].startswith(shared_lines.HEAD_START):
            self._note("line 1 is not the head of a file of goldens", self.path)
        for number, line in enumerate(lines[:-1], 1):
            self._take_line(line, number, self.path)
        is_whole = lines[-1] == b"" and len(lines) > 2 and lines[-2].startswith(shared_lines.END)
        if not is_whole:
            self._note("it is cut off", self.path)
        if not self.tables and (self.goldens or self.fault is not None):
            # No line of it could be saved.
            self._note("it is not a file of goldens, or a part of one", self.path, _REMEDY_NONE)

    def take_journal(self, data: bytes) -> int:
        """Takes what is new of the journal, up to the last line that has an end; returns how many
        bytes these are. Raises UnsupportedFormatError.
        """
        whole = data.rpartition(b"\n")[0]
        for number, line in enumerate(whole.split(b"\n") if whole else [], 1):
            self._take_line(line, number, paths.journal_path(self.path))
        return len(whole) + 1 if whole else 0

    def _take_line(self, line: bytes, number: int, path: Path) -> None:
        try:
            body, name = shared_lines.body_of(line)
            self._take(body, name, is_journal=path != self.path)
        except DocumentError as error:
            self._note(f"line {number} {error.message}", path, _REMEDIES.get(error.message))

    def _take(self, body: bytes, name: str, *, is_journal: bool) -> None:
        version = shared_lines.version_of(body)
        if version is not None and version > shared_lines.FORMAT:
            raise UnsupportedFormatError(
                f"has format {version}, this ciwrap reads up to {shared_lines.FORMAT}",
                file=self.path,
                remedy="update ciwrap",
            )
        golden = shared_lines.golden_name(body)
        if golden is not None:
            known = self.goldens.get(golden)
            if known not in (None, body) and not is_journal:
                raise DocumentError(f"is a second golden of {golden!r}")
            self.goldens[golden] = body
            if is_journal:
                self.put.add(golden)
                self.moved.pop(golden, None)
        elif shared_lines.table_kind(body) is not None:
            if self.tables.setdefault(name, body) != body:
                raise DocumentError("has the check sum of another line")
        elif (drop := shared_lines.drop_of(body)) is not None:
            self._drop(drop)
        elif version is None and body != shared_lines.END:
            raise DocumentError("is of no kind that this release knows")

    def _drop(self, drop: shared_lines.Drop) -> None:
        self.put.discard(drop.drop)
        if drop.moved_to is not None:
            self.moved[drop.drop] = drop.moved_to
        else:
            self.goldens.pop(drop.drop, None)
            self.moved.pop(drop.drop, None)

    # --- what a new file needs

    def whole_text(self) -> bytes:
        """The file of these goldens, with the common lines that they need. Raises
        CorruptGoldenError.
        """
        used = self._used_tables()
        ordered = [
            self.tables[name]
            for kind in shared_lines.TABLES
            for name in sorted(used)
            if shared_lines.table_kind(self.tables[name]) == kind
        ]
        ordered += [self.goldens[name] for name in sorted(self.goldens)]
        return shared_lines.text_of(ordered)

    def _used_tables(self) -> set[str]:
        used: set[str] = set()
        for name, body in self.goldens.items():
            try:
                needed = shared_text.tables_of(body, self.tables)
                if not needed <= self.tables.keys():
                    raise DocumentError("names a line that is not there")
            except DocumentError as error:
                raise damaged(self.path, f"the line of {name!r} {error.message}") from None
            used |= needed
        return used


class SharedFile(Struct, frozen=True):
    """The goldens of a file and its journal, by the order of names. put, moved: as in State."""

    goldens: list[Shared]
    put: set[str]
    moved: dict[str, str]


def read_shared(data: bytes, path: Path) -> list[Shared]:
    """All goldens of a file's bytes, in the order of their names; path: for messages. Raises
    CorruptGoldenError, UnsupportedFormatError.
    """
    return read_with_journal(data, b"", path).goldens


def read_with_journal(data: bytes, journal: bytes, path: Path) -> SharedFile:
    """As `read_shared`, with what a journal beside the file says."""
    state = State(path)
    state.take_file(data)
    state.take_journal(journal)
    if state.fault is not None:
        raise state.fault
    goldens = [state.golden_of(state.goldens[name]) for name in sorted(state.goldens)]
    return SharedFile(goldens, state.put, state.moved)


def damaged(path: Path, what: str) -> CorruptGoldenError:
    return CorruptGoldenError(f"{what}{_ALL}", file=path, remedy=_REMEDY)
