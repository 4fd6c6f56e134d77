"""Opens files first in another process, for libraries that crash on few files; and `ciwrap init`'s
search for files that could be outputs.

What opens there without a crash is then opened here, where its data need no pipe, as soon as there
is something to read that does not lie in the file as it is. One process looks at many files and
ends after an idle second. A file is at fault only if a fresh process dies of it, so no file suffers
from an earlier one.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import struct
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct

from ciwrap.base.errors import CiwrapError, CorruptFileError, UnreadFileError
from ciwrap.base.processes import use_threads
from ciwrap.formats.apart import (
    LISTING,
    Child,
    Teller,
    check_answer,
    limit_memory,
    listed,
    listing_of,
)
from ciwrap.formats.entries import Listing
from ciwrap.formats.find_outputs import Choice, ChosenBy, formats_of
from ciwrap.formats.known_logs import preset_of
from ciwrap.formats.reader import InputFile, Reader, Source, VariableInfo

if TYPE_CHECKING:
    from numpy.typing import NDArray

_IDLE_SECONDS = 1.0
_LENGTH = struct.Struct("<Q")

_seen: set[tuple[str, int, int, int, int]] = set()


def look_first(
    path: Path, open_source: Callable[[], Source], has_open_files: Callable[[], bool]
) -> Source:
    """Opens a file and reads an element of each variable, in a process of its own. Returns what it
    says of the file.

    A file that has not changed is not looked at twice: it is opened here. open_source and
    has_open_files, which says whether the library holds any file open in this process, are
    functions of a module, or a `functools.partial` of one. Raises what `open_source` raises, and
    CorruptFileError where that process dies or makes no progress.
    """
    try:
        status = path.stat()
        # Those that a path without a folder is meant to be in may change.
        folder = "" if path.is_absolute() else os.getcwd()  # noqa: PTH109
    except OSError:
        return open_source()  # which says why
    times = status.st_mtime_ns, status.st_ctime_ns
    key = (str(path.resolve()), status.st_ino, status.st_size, *times)
    if key in _seen:
        return open_source()
    question = pickle.dumps((folder, path, open_source, has_open_files))
    listing = _look(path, status.st_size, question)
    _seen.add(key)
    return _Seen(path, open_source, *listed(listing))


class _Seen(Source):
    """A file that another process has listed. It is opened when it has to be read by its library:
    what lies in it as it is, is not.
    """

    def __init__(
        self,
        path: Path,
        open_source: Callable[[], Source],
        variables: tuple[VariableInfo, ...],
        attributes_left_out: int,
    ) -> None:
        self.path = path
        self.variables = variables
        self.attributes_left_out = attributes_left_out
        self._open_source = open_source
        self._opened: Source | None = None

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        self.checked_range(name, first_element, count)
        if self._opened is None:
            found = self._open_source()
            if found.variables != self.variables:
                found.close()
                raise CorruptFileError(
                    "changed while it was being read",
                    file=self.path,
                    remedy="let the program finish first",
                )
            self._opened = found
        return self._opened.read(name, first_element, count)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def _look(path: Path, byte_count: int, question: bytes) -> bytearray:
    looker = _take_looker()
    # Not given back if it is interrupted: its answer would be taken for that to the next question.
    try:
        kind, data = looker.look(path, byte_count, question)
    except CorruptFileError:
        looker.child.close()
        if looker.looks == 1:
            raise
        # It had nothing to do and has ended, or an earlier file has done it harm.
        looker = _Looker()
        kind, data = looker.look(path, byte_count, question)
    _idle.append(looker)
    check_answer(path, kind, data, LISTING)
    return data


class _Looker:
    """A process that looks at files, and for whom it does."""

    def __init__(self) -> None:
        self.child = Child(_serve)
        self.owner = os.getpid()  # a copy of this process needs another one
        self.looks = 0

    def look(self, path: Path, byte_count: int, question: bytes) -> tuple[bytes, bytearray]:
        self.looks += 1
        self.child.ask(_LENGTH.pack(len(question)) + question)
        return self.child.answer(path, byte_count, 0)


_idle: list[_Looker] = []


def _take_looker() -> _Looker:
    while _idle:
        looker = _idle.pop()
        if looker.owner == os.getpid():
            return looker
        looker.child.close()
    return _Looker()


# --- the child ------------------------------------------------------------------------------------


def _serve(questions: IO[bytes], teller: Teller) -> None:
    """Looks at files until there is nothing to do, or the library holds one open: it would take
    what it knows of that for what another of the same name holds.
    """
    while len(head := questions.read(_LENGTH.size)) == _LENGTH.size:
        question = questions.read(_LENGTH.unpack(head)[0])
        has_open_files = True
        with teller.telling_errors():
            folder, path, open_source, library_has_open_files = pickle.loads(question)
            try:
                if folder:
                    os.chdir(folder)
                listing = _look_at(path, open_source, teller)
            finally:
                has_open_files = library_has_open_files()
            teller.tell(LISTING, listing)
        if has_open_files or not select.select([questions], [], [], _IDLE_SECONDS)[0]:
            return


def _look_at(path: Path, open_source: Callable[[], Source], teller: Teller) -> bytes:
    limit_memory(path)
    use_threads(1)
    Listing.on_progress = teller.still_at_work
    with open_source() as source:
        for info in source.variables:
            teller.still_at_work()
            if info.fault is None and info.element_count and info.region is None:
                # What cannot be read is reported when it is compared.
                with contextlib.suppress(CiwrapError):
                    source.read(info.name, 0, 1)
                    source.read(info.name, info.element_count - 1, 1)
        return listing_of(source)


MAX_FILES = 2000
MAX_TEXT_BYTES = 64 << 20
_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages", "venv", "env", "dist", "golden"}


class Candidate(Struct, frozen=True):
    """A file that a reader can open. path: relative to the folder looked through. preset: of a
    log, the shipped rules for it. format: the reader, where the suffix says another one.
    """

    path: Path
    variables: tuple[VariableInfo, ...] = ()
    preset: str | None = None
    format: str | None = None


class Survey(Struct, frozen=True):
    """What was found. skipped: files of a known format that could not be opened, or hold no number,
    and why. texts, unknown: files that no reader knows, by their content. unopened: those after the
    first MAX_FILES. inputs: those passed over since they are no
    outputs.
    """

    candidates: tuple[Candidate, ...] = ()
    skipped: tuple[tuple[Path, str], ...] = ()
    texts: tuple[Path, ...] = ()
    unknown: tuple[Path, ...] = ()
    unopened: tuple[Path, ...] = ()
    inputs: tuple[Path, ...] = ()


def survey(folder: Path, *, inputs: Collection[str] = ()) -> Survey:
    """Opens the files below the folder. Hidden ones, virtual environments and goldens are passed
    over, and so are the paths in `inputs` and what is read with another file.
    """
    found: list[Candidate] = []
    skipped: list[tuple[Path, str]] = []
    texts: list[Path] = []
    unknown: list[Path] = []
    choice = Choice()
    paths = list(paths_below(folder, choice))
    kept = [path for path in paths if path.relative_to(folder).as_posix() not in inputs]
    outputs = set(kept)
    chosen_of = {path: choice.of(path, path.name) for path in kept[:MAX_FILES]}
    beside = {one for path, file in chosen_of.items() for one in file.reader.companions(path)}
    for path, chosen in chosen_of.items():
        if path in beside:
            continue  # read with the file that names it
        relative = path.relative_to(folder)
        try:
            if "{" in relative.as_posix():
                skipped.append((relative, "a path with a brace in it cannot be an output"))
            elif chosen.chosen_by is not ChosenBy.CONTENT or formats_of(path):
                format_name = None if chosen.why is None else chosen.reader.name
                variables = _variables(path, chosen.reader)
                found.append(Candidate(relative, variables, format=format_name))
            elif (preset := preset_of(path)) is not None:
                found.append(Candidate(relative, (), preset))
            else:
                is_text = chosen.reader.name == "tokens"
                (texts if is_text else unknown).append(relative)
        except CiwrapError as error:
            why = f"{error.message}; {error.remedy}" if error.remedy else error.message
            skipped.append((relative, why))
    return Survey(
        tuple(found),
        tuple(skipped),
        tuple(texts),
        tuple(unknown),
        tuple(path.relative_to(folder) for path in kept[MAX_FILES:]),
        tuple(path.relative_to(folder) for path in paths if path not in outputs),
    )


def paths_below(folder: Path, choice: Choice) -> Iterator[Path]:
    """All files below the folder that may be outputs, and folders that are one."""
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED_FOLDERS
            and not _is_there(Path(here, name, "pyvenv.cfg"))
        )
        stores = [name for name in folders if choice.is_store(Path(here, name), name)]
        folders[:] = [name for name in folders if name not in stores]
        yield from (
            Path(here, name)
            for name in sorted([*files, *stores])
            if not name.startswith(".") and name != "ciwrap.yaml"
        )


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return False  # of a folder that nobody lets us look into


def _variables(path: Path, reader: Reader) -> tuple[VariableInfo, ...]:
    """The file's variables. Raises UnreadFileError for a table that is large, or of words alone."""
    if reader.name == "text" and InputFile(path).byte_count > MAX_TEXT_BYTES:
        raise UnreadFileError(f"is a table of more than {MAX_TEXT_BYTES >> 20} MiB; name it")
    with reader.open(path) as source:
        if reader.name == "text" and not any(
            info.dtype[1] in "if" and info.shape[0] for info in source.variables
        ):
            raise UnreadFileError("holds no column of numbers")
        return source.variables
