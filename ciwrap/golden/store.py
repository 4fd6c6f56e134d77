"""Reads and replaces the golden of a check: a binary and its manifest, always as a pair.

How a pair is replaced, all under the folder's lock:

1. `X.golden.next` and `X.golden.yaml.next` are written and flushed to the disk;
2. `X.golden.yaml.next` is renamed to `X.golden.yaml`. This is the moment of change: the manifest
   names the root of its binary;
3. `X.golden.next` is renamed to `X.golden`.

Each step is on the disk before the next begins. A reader takes the manifest first and then, of
`X.golden` and `X.golden.next`, the one whose root the manifest names. Killed before step 2 the old
manifest finds the old binary; killed after it the new manifest finds the new binary under either
name. The next write completes or clears away what a killed one left.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, structs

from ciwrap import _core
from ciwrap.arrays.values import ArrayValues, Labels, Signature, Values, storage_dtype
from ciwrap.base.documents import DocumentError, NewerFormatError
from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    CorruptGoldenError,
    FileLimitError,
    GoldenMissingError,
    GoldenToMendError,
    UnreadableFileError,
    UnsupportedFormatError,
    UsageError,
    WriteFailedError,
)
from ciwrap.base.files import LFS_POINTER, flush, flush_folder, read_regular, remove, write_text
from ciwrap.base.late import numpy as np
from ciwrap.golden.manifest import (
    MOST_MANIFEST_BYTES,
    Acceptance,
    Manifest,
    load_manifest,
    readable_text,
    rows_of,
)
from ciwrap.golden.places import (
    BINARY_SUFFIX,
    DEFAULT_WAIT_SECONDS,
    MANIFEST_SUFFIX,
    STAGED_SUFFIX,
    Place,
    ensemble_path,
    escape_name,
    has_stem,
    name_of_stem,
    remove_lock_file,
    staged,
    stored_stems,
    writer_lock,
)
from ciwrap.model import VariableId
from ciwrap.model.results import command_words


def read_golden_file(path: Path) -> tuple[list[_core.GoldenVariable], str]:
    """The variables and the root of any golden file, without its manifest.

    Raises as `GoldenStore.read` does.
    """
    try:
        data = read_regular(path, largest_decoded())
    except FileNotFoundError:
        raise GoldenMissingError("there is no such file", file=path) from None
    return decode(data, path), _core.golden_root(data).hex()


def decode(data: bytes, source: Path, remedy: str | None = None) -> list[_core.GoldenVariable]:
    """Decodes a golden file's bytes. Raises as `GoldenStore.read`.

    source, remedy: for the message, the remedy for that of damage.
    """
    limit = largest_decoded()
    # The core takes no name that is no UTF-8.
    shown = str(source).encode("utf-8", "backslashreplace").decode()
    try:
        return _core.decode_golden(data, source=shown, max_decoded_bytes=limit)
    except FileLimitError as error:
        raise FileLimitError(
            f"would unpack to more than the {limit} bytes that this machine may take",
            file=source,
            remedy="keep less in it (evidence: residues or tree), or use a larger machine",
        ) from error
    except CorruptFileError as error:
        refuse_pointer(data, source)
        message = error.message.removeprefix(f"{shown}: ")
        raise CorruptGoldenError(message, file=source, remedy=remedy) from error
    except CiwrapError as error:
        error.blame(file=source)
        raise


def refuse_pointer(data: bytes, source: Path) -> None:
    """Raises GoldenToMendError for what stands for a file that Git LFS has not fetched."""
    if data.startswith(LFS_POINTER):
        raise GoldenToMendError(
            "is a pointer of Git LFS, not the golden itself",
            file=source,
            remedy="run `git lfs pull` (with actions/checkout: `lfs: true`)",
        )


def root_of(path: Path) -> str | None:
    """The root that a golden file states, unverified; None if it is missing or no golden."""
    try:
        return _core.golden_root(read_regular(path, largest_decoded())).hex()
    except (FileNotFoundError, CiwrapError):
        return None


def largest_decoded() -> int:
    """Bytes a golden may unpack to: half of the memory, at most 16 GiB."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        memory = 8 << 30
    return min(max(memory // 2, 1 << 28), 1 << 34)


REMEDY_PAIR = "take both files from the same commit, or make the golden anew with `ciwrap accept`"


class StoredGolden(Struct, frozen=True):
    """A golden as read: verified against its own checksums and its manifest.

    path: the binary's usual place, or the file that it shares (is_shared). was_interrupted: an
    accept was killed at its very end; the golden is whole and new, its file still lies under a
    `.next` name until the next accept. result: kept beside one that waits in a shared file.
    """

    check: str
    path: Path
    manifest_path: Path
    manifest: Manifest
    variables: tuple[_core.GoldenVariable, ...]
    byte_count: int
    was_interrupted: bool = False
    is_shared: bool = False
    result: str | None = None

    @property
    def root(self) -> str:
        return self.manifest.binary.root


def read_pair(check: str, path: Path, manifest_path: Path, data: bytes) -> StoredGolden:
    """The golden whose manifest's bytes were read, with the one of its two files that these name.

    Raises as `GoldenStore.read` does.
    """
    try:
        manifest = load_manifest(data)
    except NewerFormatError as error:
        # Whatever it is, it must not be taken for damage that a new golden may replace.
        raise UnsupportedFormatError(str(error), file=manifest_path) from None
    except DocumentError as error:
        refuse_pointer(data, manifest_path)
        _refuse_merge(data, manifest_path, str(error))
        raise CorruptGoldenError(str(error), file=manifest_path, remedy=REMEDY_PAIR) from None
    if manifest.check != check or manifest.binary.file != path.name:
        raise CorruptGoldenError(
            f"it is the manifest of {manifest.binary.file!r}, check {manifest.check!r}",
            file=manifest_path,
            remedy="give the files their own names back, or accept the check anew",
        )
    source, binary = _binary_of(path, manifest)
    variables = decode(binary, source, REMEDY_PAIR)
    # The binary holds no labels, so it cannot witness them.
    if rows_of(variables, manifest.labels or {}) != manifest.variables:
        raise CorruptGoldenError(
            "it describes other variables than the golden file holds",
            file=manifest_path,
            remedy=REMEDY_PAIR,
        )
    return StoredGolden(
        check,
        path,
        manifest_path,
        manifest,
        tuple(variables),
        len(binary),
        was_interrupted=source != path,
    )


def _refuse_merge(data: bytes, manifest_path: Path, why: str) -> None:
    """Raises GoldenToMendError for a manifest with the marks of a merge: both sides' history is in
    it.
    """
    from ciwrap.golden.shared_file import is_of_merge

    if any(map(is_of_merge, data.splitlines())):
        raise GoldenToMendError(
            why,
            file=manifest_path,
            remedy="take both files of one side of the merge, then accept anew if need be",
        )


def _binary_of(path: Path, manifest: Manifest) -> tuple[Path, bytes]:
    found: bytes | None = None
    for suffix in ("", STAGED_SUFFIX):
        candidate = path.with_name(path.name + suffix)
        try:
            data = read_regular(candidate, largest_decoded())
        except FileNotFoundError:
            continue
        if _matches(data, manifest):
            return candidate, data
        if not suffix:
            found = data
    if found is not None:
        # A damaged file says better what is wrong with it than its root could.
        decode(found, path, REMEDY_PAIR)
        raise CorruptGoldenError(
            "the manifest belongs to another file (it names another root)",
            file=path,
            remedy=REMEDY_PAIR,
        )
    raise GoldenMissingError(
        "the golden file is missing, although its manifest is there",
        file=path,
        remedy=REMEDY_PAIR,
    )


def _matches(data: bytes, manifest: Manifest) -> bool:
    if len(data) != manifest.binary.bytes:
        return False
    try:
        return _core.golden_root(data).hex() == manifest.binary.root
    except CiwrapError:
        return False


READ_ATTEMPTS = 5
RETRY_SECONDS = 0.05


class GoldenStore:
    """The goldens in one folder; safe to share.

    is_kept: this store writes many times, and `close` ends that. options: of the command that makes
    a golden here, for messages, as `str` writes them.
    """

    def __init__(self, folder: Path | str, *, is_kept: bool = False, options: object = "") -> None:
        self.folder = Path(folder)
        self._options = options
        self.is_kept = is_kept
        self._has_made_folder = False

    def path(self, check: str) -> Path:
        """Where the golden of a check lies, or would."""
        return self.pair_path(check)

    def pair_path(self, check: str) -> Path:
        """The binary of a golden that has files of its own."""
        return self.folder / f"{escape_name(check)}{BINARY_SUFFIX}"

    def manifest_path(self, check: str) -> Path:
        return self.folder / f"{escape_name(check)}{MANIFEST_SUFFIX}"

    def checks(self) -> list[str]:
        """Names of all checks with a golden or half of one, sorted."""
        return sorted(name_of_stem(self.folder, one) for one in stored_stems(self.folder))

    def contains(self, check: str) -> bool:
        """Whether there is anything of a golden, whole or not."""
        return has_stem(self.folder, escape_name(check))

    def read(self, check: str) -> StoredGolden:
        """Reads and verifies a golden; never writes, so it works on read-only folders.

        Raises GoldenMissingError, UnreadableFileError, UnsupportedFormatError (a newer version),
        FileLimitError, or CorruptGoldenError for anything damaged or at odds with its manifest.
        """
        for attempt in range(READ_ATTEMPTS):
            data = self.manifest_bytes(check)
            try:
                return read_pair(check, self.pair_path(check), self.manifest_path(check), data)
            except (CorruptGoldenError, GoldenMissingError):
                # An accept that ended between our two reads looks like a torn pair: look again.
                if attempt + 1 == READ_ATTEMPTS or self.manifest_bytes(check) == data:
                    raise
                time.sleep(RETRY_SECONDS)
        raise AssertionError("unreachable")

    def history(self, check: str) -> tuple[Acceptance, ...]:
        """Who accepted what so far, even if the golden is damaged; () if that is lost, too."""
        try:
            return load_manifest(self.manifest_bytes(check)).accepted
        except (GoldenMissingError, UnreadableFileError, CorruptFileError, DocumentError):
            return ()

    @contextlib.contextmanager
    def locked(self, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> Iterator[None]:
        """Keeps other writers out; makes the folder if it is missing, for as long as it is needed.

        Raises LockBusyError, WriteFailedError.
        """
        self._has_made_folder |= not self.folder.exists()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_failed(self.folder, error) from error
        try:
            with writer_lock(self.folder, wait_seconds, stays=self.is_kept):
                yield
        finally:
            if not self.is_kept:
                self._clear_new_folder()

    def close(self) -> None:
        """Ends the writing of a kept store. Raises WriteFailedError, LockBusyError."""
        remove_lock_file(self.folder)
        self._clear_new_folder()

    def _clear_new_folder(self) -> None:
        if self._has_made_folder:
            self._has_made_folder = False
            self._clear_folder()

    def _clear_folder(self) -> None:
        with contextlib.suppress(OSError):  # not empty, since goldens were written, or never made
            self.folder.rmdir()

    def write(
        self,
        check: str,
        variables: Sequence[_core.GoldenVariable],
        make_manifest: Callable[[str, int], Manifest],
        result: str | None = None,  # noqa: ARG002 - of stores that share a file
    ) -> StoredGolden:
        """Creates or replaces a golden; the caller holds `locked()`.

        make_manifest: called with the new binary's root (hexadecimal) and size in bytes. result:
        of the comparison that it comes from; only a shared file has room for it. Raises
        UsageError for a manifest that could not be read back, and WriteFailedError: the old golden
        counts then, or, once the manifest was renamed, the new one.
        """
        path, manifest_path = self.pair_path(check), self.manifest_path(check)
        next_path, next_manifest_path = staged(path), staged(manifest_path)
        try:
            self.settle(check)
            try:
                root = _core.write_golden(str(next_path), variables).hex()
                flush(next_path)
                byte_count = next_path.stat().st_size
                manifest = make_manifest(root, byte_count)
                binary = structs.replace(manifest.binary, file=path.name)
                manifest = structs.replace(manifest, binary=binary)
                write_text(next_manifest_path, _text_of(manifest, path))
                flush_folder(self.folder)
            except BaseException:
                remove(next_path)
                remove(next_manifest_path)
                raise
            next_manifest_path.replace(manifest_path)
            flush_folder(self.folder)
            next_path.replace(path)
            flush_folder(self.folder)
        except UnreadableFileError as error:
            raise WriteFailedError(
                f"the golden could not be written: {error}",
                file=path,
                remedy="free some space or fix the folder, then accept again",
            ) from error
        except OSError as error:
            raise write_failed(path, error) from error
        return StoredGolden(check, path, manifest_path, manifest, tuple(variables), byte_count)

    def path_for(self, check: str, variables: Sequence[_core.GoldenVariable]) -> Path:
        """Where `write` would put these variables."""
        del variables
        return self.path(check)

    def remove(self, check: str) -> None:
        """Removes a golden; the caller holds `locked()`. Raises WriteFailedError."""
        path = self.pair_path(check)
        try:
            # The manifest last: without its binary it says that a golden is missing, while a binary
            # alone would be taken for a damaged one.
            remove(path)
            remove(self.manifest_path(check))
            flush_folder(self.folder)
        except OSError as error:
            raise write_failed(path, error) from error

    def root_of(self, check: str) -> str | None:
        """The root of a golden, unverified; None if it is missing or damaged.

        Without its binary, as a removal leaves it that is killed, it is the root that its manifest
        names, so that somebody who knows the golden can remove the rest.
        """
        path = self.pair_path(check)
        if path.exists():
            return root_of(path)
        try:
            return load_manifest(self.manifest_bytes(check)).binary.root
        except (CiwrapError, DocumentError):
            return None

    def shown(self, check: str) -> str:
        """Where the golden lies, in words: its file, and its name in a file that it shares."""
        return str(self.path(check))

    def settle(self, check: str) -> None:
        """Completes an accept that was killed after its moment of change, or clears one away.

        The caller holds `locked()`.
        """
        path, manifest_path = self.pair_path(check), self.manifest_path(check)
        next_path = staged(path)
        remove(staged(manifest_path))
        if not next_path.exists():
            return
        try:
            named = load_manifest(self.manifest_bytes(check)).binary.root
        except (GoldenMissingError, DocumentError, CorruptFileError):
            named = None
        if named is not None and root_of(next_path) == named and root_of(path) != named:
            next_path.replace(path)
        else:
            remove(next_path)
        flush_folder(self.folder)

    def manifest_bytes(self, check: str) -> bytes:
        path = self.manifest_path(check)
        try:
            return read_regular(path, MOST_MANIFEST_BYTES)
        except FileNotFoundError:
            raise self.without_manifest(check) from None

    def without_manifest(self, check: str) -> CiwrapError:
        binary = self.pair_path(check)
        if binary.exists():
            name = self.manifest_path(check).name
            return CorruptGoldenError(
                f"its manifest {name} is missing", file=binary, remedy=REMEDY_PAIR
            )
        has_ensemble = ensemble_path(self.folder, check).exists()
        return GoldenMissingError(
            f"there is no golden for check {check!r}",
            file=self.path(check),
            remedy=(
                "there is an ensemble: name the folders of new runs under 'ensemble' in ciwrap.yaml"
                if has_ensemble
                else "look at the outputs, then make it with"
                f" `{command_words('ciwrap accept', [check], str(self._options))}`"
            ),
        )


def _text_of(manifest: Manifest, path: Path) -> str:
    try:
        return readable_text(manifest)
    except DocumentError as error:
        raise UsageError(
            f"the golden has no manifest that can be read back: {error}",
            file=path,
            remedy="fix the names in it, or split the check into several",
        ) from None


def write_failed(path: Path, error: OSError) -> WriteFailedError:
    return WriteFailedError(
        f"the golden could not be written: {error.strerror or error}",
        file=path,
        remedy="free some space or make the folder writable, then accept again",
    )


class GoldenStores:
    """The stores of all folders below one, by the places of goldens. is_kept, options: as of a
    store.
    """

    def __init__(self, root: Path, *, is_kept: bool = False, options: object = "") -> None:
        self.root = root
        self._options = options
        self._is_kept = is_kept
        self._stores: dict[str, GoldenStore] = {}

    def at(self, place: Place) -> GoldenStore:
        """The store that holds the golden of a place, under the place's name.

        Goldens of tests lie below the top, and small ones of one test file share a file.
        """
        if place.folder not in self._stores:
            kind: type[GoldenStore] = GoldenStore
            if place.folder:
                from ciwrap.golden.goldens_of_tests import ModuleStore

                kind = ModuleStore
            self._stores[place.folder] = kind(
                self.root / place.folder, is_kept=self._is_kept, options=self._options
            )
        return self._stores[place.folder]

    def close(self) -> None:
        """Ends the writing of all of them, also if one of them fails. Raises as
        `GoldenStore.close`.
        """
        with contextlib.ExitStack() as ends:
            for store in self._stores.values():
                ends.callback(store.close)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Makes many writes within the block cheap, and ends them with it."""
        was_kept, self._is_kept = self._is_kept, True
        for store in self._stores.values():
            store.is_kept = True
        try:
            yield
        finally:
            self._is_kept = was_kept
            try:
                self.close()
            finally:
                for store in self._stores.values():
                    store.is_kept = was_kept


def golden_id(golden: _core.GoldenVariable) -> VariableId:
    """Which variable of which checkpoint a golden's variable is."""
    return VariableId(golden.name, golden.iteration, golden.rank)


def golden_signature(golden: _core.GoldenVariable, labels: Labels = ()) -> Signature:
    """What a golden's variable is."""
    return Signature(golden.tree.parameters.dtype, tuple(golden.shape), labels)


def kept_values(golden: _core.GoldenVariable) -> Values:
    """The values of a golden that keeps its data."""
    assert golden.data is not None
    dtype = golden.tree.parameters.dtype
    data = np.frombuffer(golden.data, dtype=storage_dtype(dtype))
    return ArrayValues(data.reshape(tuple(golden.shape)), dtype)
