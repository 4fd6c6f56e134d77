"""The goldens of one test file: small ones in the file that they share, others in pairs of files.

Writing a golden adds a line to the journal (`test_flow.goldens.next`) beside the shared file, so a
killed process loses none. `fold` writes one new file of both in the place of the old one, then
removes the journal. Readers read the journal first and let it count, so they see each golden as it
was written last. Only the journal's last line may be unfinished; other damage concerns all goldens.

A golden that is written anew moves where its size belongs: its new home has it before the old one
gives it up, and the journal says which counts until then. Two homes without such a word are damage.
All writing happens under the folder's lock.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import structs

from ciwrap import _core
from ciwrap.base.documents import DocumentError
from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    CorruptGoldenError,
    GoldenMissingError,
    GoldenToMendError,
    UnreadableFileError,
    WriteFailedError,
)
from ciwrap.base.files import (
    flush,
    flush_folder,
    read_at_most,
    read_regular,
    remove,
    write_atomically,
)
from ciwrap.golden.manifest import Acceptance, Manifest, load_manifest
from ciwrap.golden.places import (
    DEFAULT_WAIT_SECONDS,
    STAGED_SUFFIX,
    escape_name,
    has_stem,
    journal_path,
    shared_path,
)
from ciwrap.golden.shared_file import (
    MOST_FILE_BYTES,
    Drop,
    Line,
    Shared,
    State,
    drop_line,
    encode,
    is_small,
    journal_head,
    line_of,
    mark_of,
)
from ciwrap.golden.store import (
    READ_ATTEMPTS,
    RETRY_SECONDS,
    GoldenStore,
    StoredGolden,
    write_failed,
)

# A file that is as large as this takes no more goldens; further ones have files of their own.
_FULL_BYTES = 64 << 20
_Stamp = tuple[int, ...] | None


class SharedGoldens:
    """The small goldens of a folder, in the file beside it."""

    def __init__(self, folder: Path) -> None:
        self.path = shared_path(folder)
        self.journal = journal_path(self.path)
        self._state = State(self.path)
        self._stamps: tuple[_Stamp, _Stamp] = (None, None)
        self._mark = b""  # of the journal that was read, and how far
        self._journal_end = 0

    @property
    def state(self) -> State:
        """What lies there now; read again only as far as it has changed."""
        stamps = (_stamp(self.path), _stamp(self.journal))
        if stamps != self._stamps:
            self._read(stamps)
        return self._state

    def forget(self) -> None:
        """Lets all be read again, whatever the files' stamps say."""
        self._stamps = (None, None)
        self._state = State(self.path)
        self._mark = b""
        self._journal_end = 0

    def has_changed(self) -> bool:
        """Whether another look would find something else than the last one."""
        return (_stamp(self.path), _stamp(self.journal)) != self._stamps

    def is_whole(self) -> bool:
        """Whether nothing is left in a journal."""
        return not self.journal.exists()

    def names(self) -> list[str]:
        """Names of all goldens here, sorted. Raises CorruptGoldenError."""
        return sorted(self._usable().goldens)

    def get(self, name: str) -> Shared | None:
        """A golden; None if it is not here. Raises CorruptGoldenError, also if another line is
        damaged; UnsupportedFormatError, UnreadableFileError.
        """
        body = self._usable().goldens.get(name)
        return None if body is None else self._state.golden_of(body)

    def salvage(self, name: str) -> Shared | None:
        """A golden whose own line is whole, whatever the others are."""
        body = self.state.goldens.get(name)
        try:
            return None if body is None else self._state.golden_of(body)
        except CorruptGoldenError:
            return None

    def _usable(self) -> State:
        fault = self.state.fault
        if fault is not None:
            # Each check has an error of its own, to which it adds where it met it.
            raise type(fault)(fault.message, file=fault.file, remedy=fault.remedy)
        return self._state

    # --- reading

    def _read(self, stamps: tuple[_Stamp, _Stamp]) -> None:
        journaled = None
        try:
            # The journal first: what a fold takes out of it is in the file by then.
            if stamps[0] == self._stamps[0]:
                journaled = _rest_of(self.journal, self._mark, self._journal_end)
            if journaled is None:
                self._state = State(self.path)
                self._journal_end = 0
                journaled = _bytes_of(self.journal)
                self._mark = mark_of(journaled)
                self._state.take_file(_bytes_of(self.path))
            self._journal_end += self._state.take_journal(journaled)
        except CiwrapError as error:
            # What was not read to its end is not to be written anew without the rest.
            self._state.fault = error
            self._mark = b""
        self._state.byte_count = sum(stamp[1] for stamp in stamps if stamp is not None)
        self._stamps = stamps

    # --- writing

    def has_room(self, tables: Mapping[str, bytes]) -> bool:
        """Whether a golden can be put here that needs these common lines."""
        state = self.state
        return state.byte_count < _FULL_BYTES and all(
            state.tables.get(name, body) == body for name, body in tables.items()
        )

    def put(self, line: Line) -> None:
        """Adds a golden, or puts it in the place of an older one. Raises OSError."""
        known = self.state.tables
        missing = [one for name, one in line.tables.items() if name not in known]
        self._append([*missing, line.body])
        self.state.keep_decoded(line.body, line.golden)

    def drop(self, name: str, moved_to: str | None = None) -> None:
        """Takes a golden out. moved_to: the root of the pair of files that is about to be written
        for it; the golden here counts until that is there. Raises OSError.
        """
        if name in self.state.goldens:
            self._append([drop_line(Drop(name, moved_to))])

    def _append(self, bodies: list[bytes]) -> None:
        """All of these lines, or none."""
        state = self.state
        is_begun = self._journal_end > 0
        data = b"".join(map(line_of, bodies if is_begun else [journal_head(), *bodies]))
        descriptor = os.open(self.journal, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if os.fstat(descriptor).st_size > self._journal_end:
                os.ftruncate(descriptor, self._journal_end)  # a line that has no end
            left, at = data, self._journal_end
            try:
                while left:
                    count = os.pwrite(descriptor, left, at)
                    left, at = left[count:], at + count
            except BaseException:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, self._journal_end)
                raise
        finally:
            os.close(descriptor)
        if state.fault is None:
            self._mark = self._mark if is_begun else mark_of(data)
            self._journal_end += state.take_journal(data)
            state.byte_count += len(data)
            self._stamps = (self._stamps[0], _stamp(self.journal))

    def flush(self) -> None:
        """Waits until the disk has the journal: before a golden is taken from where it lay. Raises
        OSError.
        """
        if self.journal.exists():
            flush(self.journal)
            flush_folder(self.journal.parent)

    def fold(self) -> None:
        """Makes one file of file and journal. The caller has seen to what has moved. Raises
        OSError, and the errors of reading.
        """
        self._usable()
        self._replace()

    def repair(self) -> None:
        """Drops what is damaged; goldens that are whole stay. Raises UnsupportedFormatError, or
        GoldenToMendError where somebody has to mend the file; OSError.
        """
        fault = self.state.fault
        if fault is None:
            return
        if isinstance(fault, GoldenToMendError) or not isinstance(fault, CorruptGoldenError):
            raise fault
        self._state.goldens = {
            name: body
            for name, body in self._state.goldens.items()
            if self.salvage(name) is not None
        }
        self._replace()

    def _replace(self) -> None:
        """Writes what the state says; then the journal has nothing more to say."""
        if self._state.goldens:
            text = self._state.whole_text()
            staged = self.path.with_name(f"{self.path.name}.whole{STAGED_SUFFIX}")
            write_atomically(self.path, text, staged=staged)
        else:
            remove(self.path)
            flush_folder(self.path.parent)
        remove(self.journal)
        self.forget()


def _stamp(path: Path) -> _Stamp:
    try:
        found = os.stat(path)  # noqa: PTH116 - Path.stat takes twice as long
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnreadableFileError(error.strerror or "cannot be read", file=path) from error
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _bytes_of(path: Path) -> bytes:
    """What a file holds; b"" without the file."""
    try:
        return read_regular(path, MOST_FILE_BYTES)
    except FileNotFoundError:
        return b""


def _rest_of(journal: Path, mark: bytes, start: int) -> bytes | None:
    """What a journal holds from a byte on; None if it is not the one of this mark, or has none."""
    if not mark:
        return None
    try:
        with journal.open("rb") as stream:
            if stream.read(len(mark)) != mark or stream.seek(0, os.SEEK_END) < start:
                return None
            stream.seek(start)
            return read_at_most(stream, MOST_FILE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableFileError(error.strerror or "cannot be read", file=journal) from error


_Home = Literal["shared", "pair", "both", "none"]


class ModuleStore(GoldenStore):
    """The goldens of the checks of one test file; safe to share.

    A kept store leaves what it has written in the journal until `close`.
    """

    def __init__(self, folder: Path | str, *, is_kept: bool = False, options: str = "") -> None:
        super().__init__(folder, is_kept=is_kept, options=options)
        self._shared = SharedGoldens(self.folder)
        self._has_written = False

    # --- where goldens are

    def _home(self, check: str) -> _Home:
        state = self._shared.state
        is_here = check in state.goldens
        if not has_stem(self.folder, escape_name(check)):
            # Of a damaged file nobody knows what it held.
            return "shared" if is_here or state.fault is not None else "none"
        if not is_here:
            return "pair"
        if check in state.put:
            return "shared"
        if check in state.moved:
            return "pair" if state.moved[check] == self._pair_root(check) else "shared"
        return "both"

    def _pair_root(self, check: str) -> str | None:
        """The root that the manifest of a pair names; None without one that can be read."""
        try:
            return load_manifest(self.manifest_bytes(check)).binary.root
        except (DocumentError, CorruptFileError, GoldenMissingError):
            return None

    def is_shared(self, check: str) -> bool:
        """Whether the golden of a check lies in the shared file."""
        return self._home(check) in ("shared", "both")

    def shared_names(self) -> list[str]:
        """Names of all goldens in the shared file, sorted. Raises CorruptGoldenError."""
        return [name for name in self._shared.names() if self.is_shared(name)]

    def path(self, check: str) -> Path:
        return self.pair_path(check) if self._home(check) == "pair" else self._shared.path

    def path_for(self, check: str, variables: Sequence[_core.GoldenVariable]) -> Path:
        return self._shared.path if is_small(variables) else self.pair_path(check)

    def shown(self, check: str) -> str:
        path = self.path(check)
        return f"{path} ({check})" if path == self._shared.path else str(path)

    def contains(self, check: str) -> bool:
        return self._home(check) != "none"

    def checks(self) -> list[str]:
        """Names of all checks with a golden, sorted. Raises CorruptGoldenError for a shared file
        that is damaged.
        """
        return sorted({*super().checks(), *self._shared.names()})

    @property
    def leftover(self) -> Path | None:
        """The journal that a killed run has left; None without one. Its goldens count."""
        return None if self._shared.is_whole() else self._shared.journal

    # --- reading

    def read(self, check: str) -> StoredGolden:
        for attempt in range(READ_ATTEMPTS):
            try:
                return self._read_once(check)
            except (CorruptGoldenError, GoldenMissingError):  # noqa: PERF203 - few are met
                # It may have moved between two looks.
                if attempt + 1 == READ_ATTEMPTS or not self._shared.has_changed():
                    raise
                time.sleep(RETRY_SECONDS)
        raise AssertionError("unreachable")

    def _read_once(self, check: str) -> StoredGolden:
        home = self._home(check)
        if home == "pair":
            return super().read(check)
        if home == "both":
            raise CorruptGoldenError(
                f"holds a golden of {check!r}, and {self.pair_path(check).name} is another one",
                file=self._shared.path,
                remedy="take all files from one commit, or make the golden anew",
            )
        found = self._shared.get(check)
        if found is None:
            raise self.without_manifest(check)
        return self._stored(found)

    def _stored(self, found: Shared) -> StoredGolden:
        path = self._shared.path
        return StoredGolden(
            found.manifest.check,
            path,
            path,
            found.manifest,
            found.variables,
            found.byte_count,
            is_shared=True,
            result=found.result,
        )

    def history(self, check: str) -> tuple[Acceptance, ...]:
        if self._home(check) == "pair":
            return super().history(check)
        found = self._shared.salvage(check)
        return super().history(check) if found is None else found.manifest.accepted

    def root_of(self, check: str) -> str | None:
        if self._home(check) == "pair":
            return super().root_of(check)
        found = self._shared.salvage(check)
        return None if found is None else found.manifest.binary.root

    # --- writing

    @contextlib.contextmanager
    def locked(self, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> Iterator[None]:
        with super().locked(wait_seconds):
            yield
            if not self.is_kept:
                self._fold()
        if not self.is_kept:
            self._clear_folder()

    def write(
        self,
        check: str,
        variables: Sequence[_core.GoldenVariable],
        make_manifest: Callable[[str, int], Manifest],
        result: str | None = None,
    ) -> StoredGolden:
        """As of every store. What is damaged of a shared file goes first; what is whole stays."""
        self._has_written = True
        if not is_small(variables) and check not in self._shared.state.goldens:
            return super().write(check, variables, make_manifest)
        encoded = _core.encode_golden(variables)
        root, byte_count = _core.golden_root(encoded).hex(), len(encoded)
        manifest = make_manifest(root, byte_count)
        binary = structs.replace(manifest.binary, file=self._shared.path.name)
        manifest = structs.replace(manifest, binary=binary)
        line = encode(variables, manifest, result)
        try:
            self._shared.repair()
            if line is None or not self._shared.has_room(line.tables):
                home = self._home(check)
                if home == "shared":
                    # What an interrupted move has left must not be taken for the new pair's.
                    self._shared.flush()
                    self._remove_pair(check)
                # Where a pair counts already, no older line may count until the new one is there.
                self._shared.drop(check, moved_to=None if home == "pair" else root)
                self._shared.flush()
                return super().write(check, variables, make_manifest)
            self.settle(check)
            self._shared.put(line)
            if has_stem(self.folder, escape_name(check)):
                self._shared.flush()
                self._remove_pair(check)
        except OSError as error:
            if isinstance(error, CiwrapError):
                raise
            raise write_failed(self._shared.path, error) from error
        return self._stored(line.golden)

    def remove(self, check: str) -> None:
        self._has_written = True
        try:
            if self._home(check) == "pair":
                # No older line may count once the pair is gone.
                self._shared.drop(check)
                self._shared.flush()
            if has_stem(self.folder, escape_name(check)):
                super().remove(check)
            self._shared.drop(check)
        except OSError as error:
            if isinstance(error, CiwrapError):
                raise
            raise write_failed(self._shared.path, error) from error

    def _remove_pair(self, check: str) -> None:
        if has_stem(self.folder, escape_name(check)):
            remove(self.pair_path(check))
            remove(self.manifest_path(check))
            # Before the journal goes that says that they do not count.
            flush_folder(self.folder)

    def close(self) -> None:
        """Ends this store's writing: what lies in the journal goes into the shared file.

        Raises WriteFailedError, LockBusyError, and the errors of reading.
        """
        try:
            if self._has_written and self.leftover is not None:
                with super().locked():
                    self._fold()
        finally:
            # What could not be put in place has been reported, and counts where it lies.
            self._has_written = False
            super().close()
            self._clear_folder()

    def put_in_place(self) -> None:
        """Completes what a killed run has left. Raises as `close`."""
        if self.leftover is not None:
            self._has_written = True
            with super().locked():
                self._fold()

    def _fold(self) -> None:
        """The caller holds the lock."""
        if not self._has_written or self.leftover is None:
            return
        self._shared.forget()
        state = self._shared.state
        try:
            self._shared.flush()
            for check in state.put:
                self._remove_pair(check)
            for check, root in state.moved.items():
                if self._pair_root(check) == root:
                    state.goldens.pop(check, None)
            self._shared.fold()
        except OSError as error:
            if isinstance(error, CiwrapError):
                raise
            raise _left_in_journal(self._shared, error) from error
        self._has_written = False


def _left_in_journal(shared: SharedGoldens, error: OSError) -> WriteFailedError:
    return WriteFailedError(
        f"could not be written: {error.strerror or error}; what was written last lies in"
        f" {shared.journal.name} beside it, and counts",
        file=shared.path,
        remedy="free some space or make the folder writable; `ciwrap accept --pending` then puts it"
        " in place",
    )


_MOST_NAMES = 10


@contextlib.contextmanager
def telling_what_is_done(word: str) -> Iterator[list[str]]:
    """Gives a list for the names of what is done; an error that ends the block tells them.

    word: what was done to them: `accepted`.
    """
    done: list[str] = []
    try:
        yield done
    except CiwrapError as error:
        if done:
            more = len(done) - _MOST_NAMES
            names = ", ".join(done[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
            error.message += f"; {word} before that: {names}"
        raise
