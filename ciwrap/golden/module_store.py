"""The goldens of one test file: small ones in a file that they share, others in pairs of files.

A golden moves where its size belongs when it is written anew. Its new home has it before the old
one gives it up, and the journal says which of the two counts until then; so it is never lost, and
never read as it was before. Two homes without a word in a journal are a merge gone wrong: damage.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Literal

from msgspec import structs

from ciwrap import _core
from ciwrap.documents import DocumentError
from ciwrap.errors import (
    CiwrapError,
    CorruptFileError,
    CorruptGoldenError,
    GoldenMissingError,
    WriteFailedError,
)
from ciwrap.files import flush_folder, remove
from ciwrap.golden import paths, shared_text
from ciwrap.golden.lock import DEFAULT_WAIT_SECONDS
from ciwrap.golden.manifest import load_manifest
from ciwrap.golden.pair import StoredGolden
from ciwrap.golden.shared_goldens import SharedGoldens
from ciwrap.golden.store import (
    READ_ATTEMPTS,
    RETRY_SECONDS,
    GoldenStore,
    write_failed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ciwrap.golden.manifest import Acceptance, Manifest

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
        if not paths.has_stem(self.folder, paths.escape_name(check)):
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
        is_small = shared_text.small_data(variables) is not None
        return self._shared.path if is_small else self.pair_path(check)

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

    def _stored(self, found: shared_text.Shared) -> StoredGolden:
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

    def _clear_folder(self) -> None:
        with contextlib.suppress(OSError):  # not empty, or never made
            self.folder.rmdir()

    def write(
        self,
        check: str,
        variables: Sequence[_core.GoldenVariable],
        make_manifest: Callable[[str, int], Manifest],
        result: str | None = None,
    ) -> StoredGolden:
        """As of every store. What is damaged of a shared file goes first; what is whole stays."""
        self._has_written = True
        if shared_text.small_data(variables) is None and not self._is_here(check):
            return super().write(check, variables, make_manifest)
        encoded = _core.encode_golden(variables)
        root, byte_count = _core.golden_root(encoded).hex(), len(encoded)
        manifest = make_manifest(root, byte_count)
        binary = structs.replace(manifest.binary, file=self._shared.path.name)
        manifest = structs.replace(manifest, binary=binary)
        line = shared_text.encode(variables, manifest, result)
        try:
            self._shared.repair()
            if line is None or not self._shared.has_room(line.tables):
                if self._home(check) == "shared":
                    # What an interrupted move has left must not be taken for the new pair's.
                    self._shared.flush()
                    self._remove_pair(check)
                self._shared.drop(check, moved_to=root)
                self._shared.flush()
                return super().write(check, variables, make_manifest)
            self.settle(check)
            self._shared.put(line)
            if paths.has_stem(self.folder, paths.escape_name(check)):
                self._shared.flush()
                self._remove_pair(check)
        except OSError as error:
            if isinstance(error, CiwrapError):
                raise
            raise write_failed(self._shared.path, error) from error
        return self._stored(line.golden)

    def _is_here(self, check: str) -> bool:
        return check in self._shared.state.goldens

    def remove(self, check: str) -> None:
        self._has_written = True
        if paths.has_stem(self.folder, paths.escape_name(check)):
            super().remove(check)
        try:
            self._shared.drop(check)
        except OSError as error:
            raise write_failed(self._shared.path, error) from error

    def _remove_pair(self, check: str) -> None:
        if paths.has_stem(self.folder, paths.escape_name(check)):
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
            # What could not be put in place has been told of, and counts where it lies.
            self._has_written = False
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
