"""Where goldens lie: names of checks and tests to names of files, and back; and the writers' lock.

The golden of check `mesh` is the pair `mesh.golden` and `mesh.golden.yaml`. Characters other than
ASCII letters, digits, `_`, `-` and `.` are written as `%XX` for each byte of their UTF-8 form, so
no name leaves the folder and no two names share a file.

The check `velocity` of `tests/test_flow.py::TestFlow::test_push[2-a/b]` is called
`TestFlow.test_push[2-a/b]-velocity` in the folder `tests/test_flow`. Characters that separate the
parts of such a name are escaped within them, so every file names its check. Goldens of one kind of
machine lie in a folder `@VARIANT` beside the others. The lock is advisory, one for each folder.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.documents import DocumentError
from ciwrap.base.errors import CiwrapError, LockBusyError, UsageError, WriteFailedError
from ciwrap.base.files import read_regular
from ciwrap.base.late import hashlib
from ciwrap.golden.manifest import MOST_MANIFEST_BYTES, load_manifest

BINARY_SUFFIX = ".golden"
MANIFEST_SUFFIX = ".golden.yaml"
# Of the file that the small goldens of one folder share, which lies beside the folder.
SHARED_SUFFIX = ".goldens"
ENSEMBLE_SUFFIX = ".ensemble.json"
# Written first, renamed last (see store.py); never to be committed.
STAGED_SUFFIX = ".next"
LOCK_NAME = ".ciwrap.lock"

# Device names that some systems reserve whatever the suffix.
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul"] + [f"{stem}{n}" for stem in ("com", "lpt") for n in range(1, 10)]
)
_LONGEST_STEM = 180
_HASH_DIGITS = 20


@lru_cache(maxsize=256)
def escape_name(check: str) -> str:
    """The file name stem of a check. Raises ValueError for an empty name.

    Injective; for names of more than 180 escaped characters up to a collision of 80 bits of
    SHA-256.
    """
    if not check:
        raise ValueError("a check needs a name")
    # quote() leaves '~' as it is.
    stem = quote(check, safe="", errors="surrogatepass").replace("~", "%7E")
    if stem[0] == ".":
        stem = f"%2E{stem[1:]}"
    if stem.split(".", 1)[0].lower() in _RESERVED:
        stem = f"%{ord(stem[0]):02X}{stem[1:]}"
    if stem.endswith(SHARED_SUFFIX):
        # As a folder it would take the place of another folder's shared file.
        stem = f"{stem.removesuffix(SHARED_SUFFIX)}%2E{SHARED_SUFFIX[1:]}"
    if len(stem) > _LONGEST_STEM:
        digest = hashlib.sha256(check.encode("utf-8", "surrogatepass")).hexdigest()
        # '~' is never left unescaped above, so a shortened name cannot meet a whole one.
        stem = f"{stem[: _LONGEST_STEM - _HASH_DIGITS - 1]}~{digest[:_HASH_DIGITS]}"
    return stem


def is_shortened(stem: str) -> bool:
    """Whether a stem, or a path of stems, does not tell what it stands for."""
    return "~" in stem


def unescape_name(stem: str) -> str:
    """The check a stem stands for; shortened names stay as they are."""
    return stem if is_shortened(stem) else unquote(stem)


def ensemble_path(golden_dir: Path, check: str) -> Path:
    """Where the ensemble of a check is kept (`ciwrap.studies.ensemble`)."""
    return golden_dir / f"{escape_name(check)}{ENSEMBLE_SUFFIX}"


def shared_path(folder: Path) -> Path:
    """The file of a folder's small goldens: `tests/test_flow.goldens` for `tests/test_flow`."""
    return folder.with_name(folder.name + SHARED_SUFFIX)


def journal_path(shared: Path) -> Path:
    """Where goldens are put first that are to be in a shared file; never to be committed."""
    return staged(shared)


def staged(path: Path) -> Path:
    return path.with_name(path.name + STAGED_SUFFIX)


def stored_stems(
    golden_dir: Path, suffixes: Sequence[str] = (MANIFEST_SUFFIX, BINARY_SUFFIX)
) -> list[str]:
    """Stems of all goldens in a folder, sorted; a missing folder holds none."""
    stems = set()
    try:
        with os.scandir(golden_dir) as entries:
            for entry in entries:
                for suffix in suffixes:
                    if entry.name.endswith(suffix):
                        stems.add(entry.name.removesuffix(suffix))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(stems)


def has_stem(golden_dir: Path, stem: str) -> bool:
    """Whether there is anything of a golden, whole or not."""
    # As text: this is asked many times for each check of a test.
    start = f"{golden_dir}{os.sep}{stem}"
    return os.path.exists(start + MANIFEST_SUFFIX) or os.path.exists(start + BINARY_SUFFIX)  # noqa: PTH110


MODULE_SUFFIX = ".py"
VARIANT_MARK = "@"

_NAME = re.compile(r"(?P<test>[^\[-]+)(?:\[(?P<param>[^\]]*)\])?(?:-(?P<name>.+))?", re.DOTALL)
_IN_TEST = re.compile(r"[%.\[\]:-]")
_IN_PARAM = re.compile(r"[%\]]")


class Place(Struct, frozen=True, order=True):
    """A golden's place: folder below the golden folder ('' for its top), and its name there."""

    folder: str
    name: str

    @property
    def variant(self) -> str | None:
        """The kind of machine it is for; None for every one."""
        last = PurePosixPath(self.folder).name
        return unescape_name(last[1:]) if last.startswith(VARIANT_MARK) else None

    def for_variant(self, variant: str | None) -> Place:
        """Returns the check's place for another kind of machine; None: for every one."""
        folder = PurePosixPath(self.folder)
        if self.variant is not None:
            folder = folder.parent
        if variant is not None:
            folder /= VARIANT_MARK + escape_name(variant)
        text = folder.as_posix()
        return replace(self, folder="" if text == "." else text)

    @property
    def check(self) -> str:
        """What the check is called by people: `tests/test_flow.py::test_push[2]::velocity`, or the
        name of a check of the configuration.
        """
        plain = self.for_variant(None)
        if not plain.folder:
            return self.name
        test = TestPlace.of(plain)
        return self.name if test is None else test.check


class TestPlace(Struct, frozen=True, order=True):
    """One check of one test.

    module: path of the test's file below the project, with '/'. test: its classes and its function,
    joined by '::'. param: pytest's id of its parameters, without brackets. name: of the check.
    """

    __test__ = False  # pytest takes classes called Test... for tests

    module: str
    test: str
    param: str | None = None
    name: str | None = None

    @property
    def test_id(self) -> str:
        """pytest's id of the test, as it reads from the project's folder."""
        param = "" if self.param is None else f"[{self.param}]"
        return f"{self.module}::{self.test}{param}"

    @property
    def check(self) -> str:
        return self.test_id if self.name is None else f"{self.test_id}::{self.name}"

    @property
    def place(self) -> Place:
        """Raises UsageError for a module outside the project, or one that is no .py file."""
        path = PurePosixPath(self.module)
        if path.is_absolute() or ".." in path.parts or path.suffix != MODULE_SUFFIX:
            raise UsageError(
                "goldens are kept for tests in .py files below the project's folder only",
                file=self.module,
            )
        folder = "/".join(escape_name(part) for part in path.with_suffix("").parts)
        name = ".".join(_IN_TEST.sub(_percent, part) for part in self.test.split("::"))
        if self.param is not None:
            name += f"[{_IN_PARAM.sub(_percent, self.param)}]"
        return Place(folder, name if self.name is None else f"{name}-{self.name}")

    @staticmethod
    def of(place: Place) -> TestPlace | None:
        """The test's check that a place is of; None if it is of none."""
        plain = place.for_variant(None)
        found = _NAME.fullmatch(plain.name)
        if found is None or not plain.folder:
            return None
        module = "/".join(unescape_name(part) for part in plain.folder.split("/"))
        return TestPlace(
            module + MODULE_SUFFIX,
            "::".join(unquote(part) for part in found["test"].split(".")),
            None if found["param"] is None else unquote(found["param"]),
            found["name"],
        )


def _percent(match: re.Match[str]) -> str:
    return f"%{ord(match[0]):02X}"


def checks_meant(pattern: str, checks: Iterable[str]) -> set[str]:
    """Those of the checks that a pattern from the command line means.

    It is a check's own name, or that of the test, class, file or folder it belongs to; or, where
    none is called so, it has the wild cards `*` and `?`. Ids of tests may have them, too: what is
    typed for `test_op[*]` is not meant for `test_op[+]`. Brackets are brackets, since pytest's ids
    are full of them.
    """
    known = set(checks)
    pattern = pattern.removesuffix("/")
    return {one for one in known if _is_named(pattern, one)} or _wild(pattern, known)


def _is_named(pattern: str, check: str) -> bool:
    ends = ("::", "/") if pattern.endswith("]") else ("::", "/", "[")
    return check == pattern or check.startswith(tuple(pattern + end for end in ends))


def _wild(pattern: str, checks: set[str]) -> set[str]:
    if not ("*" in pattern or "?" in pattern):
        return set()
    parts = re.split(r"([*?])", pattern)
    regex = "".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in parts)
    return {one for one in checks if re.fullmatch(regex, one, re.DOTALL)}


DEFAULT_WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.05
_MOST_SAID = 200


@contextlib.contextmanager
def writer_lock(
    folder: Path,
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
    *,
    doing: str = "writing goldens",
    is_needed: bool = True,
    stays: bool = False,
) -> Iterator[None]:
    """Holds the folder's lock for the block.

    doing: what those who have this lock do, for those who cannot get it. is_needed: whether nothing
    is to be done on a file system that knows no locks. stays: its file is left for the next time,
    since making and removing one takes half a millisecond; the caller ends with `remove_lock_file`.

    The kernel gives the lock up when its holder ends, however it ends; a lock file left behind by a
    killed process is therefore harmless. Raises LockBusyError after `wait_seconds`,
    WriteFailedError if the folder cannot be written, or a lock that is needed cannot be had.
    """
    path = folder / LOCK_NAME
    descriptor = None
    try:
        descriptor = _acquire(path, wait_seconds, doing, is_needed=is_needed)
        _note_holder(descriptor, f"process {os.getpid()}".encode())
        yield
    finally:
        if descriptor is None:
            remove_lock_file(folder)
        else:
            if not stays:
                # Unlinked while still held: whoever waits on this inode sees in `_acquire` that it
                # is no longer the current one, and starts over.
                with contextlib.suppress(OSError):
                    path.unlink()
            os.close(descriptor)


def _note_holder(descriptor: int, holder: bytes) -> None:
    """Writes down who holds the lock, for those who wait; a full disk keeps nobody from it."""
    with contextlib.suppress(OSError):
        if os.pread(descriptor, len(holder) + 1, 0) != holder:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, holder, 0)


def _acquire(path: Path, wait_seconds: float, doing: str, *, is_needed: bool) -> int:
    """The descriptor that holds the lock; raises as `writer_lock` does."""
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            descriptor = _open(path)
        except FileNotFoundError as error:
            # Another process has just cleared the folder away, as it does with empty ones.
            if time.monotonic() >= deadline:
                raise _no_lock(path, error) from error
            _make_folder(path.parent)
            continue
        except OSError as error:
            raise _no_lock(path, error) from error
        try:
            if _try_lock(descriptor, is_needed=is_needed) and _is_current(descriptor, path):
                return descriptor
            said = os.pread(descriptor, _MOST_SAID, 0).decode("utf-8", "replace")
            holder = " ".join(said.split()[:2])
        except OSError as error:
            os.close(descriptor)
            raise _no_lock(path, error) from error
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() >= deadline:
            raise LockBusyError(
                f"{holder or 'another process'} is {doing} in this folder"
                f" (waited {wait_seconds:g} s)",
                file=path.parent,
                remedy="let it finish, then try again",
            )
        time.sleep(_POLL_SECONDS)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def remove_lock_file(folder: Path) -> None:
    """Removes a lock file that nobody holds: one that an interrupted attempt left."""
    path = folder / LOCK_NAME
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if _try_lock(descriptor) and _is_current(descriptor, path):
                path.unlink()
        finally:
            os.close(descriptor)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _no_lock(folder, error) from error


def _no_lock(path: Path, error: OSError) -> WriteFailedError:
    return WriteFailedError(
        f"cannot lock the folder: {error.strerror}",
        file=path,
        remedy="make the folder writable",
    )


def _try_lock(descriptor: int, *, is_needed: bool = True) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if is_needed:
            raise
    return True


def _is_current(descriptor: int, path: Path) -> bool:
    held = os.fstat(descriptor)
    try:
        now = path.stat()
    except FileNotFoundError:
        return False
    return (held.st_dev, held.st_ino) == (now.st_dev, now.st_ino)


def name_of_stem(folder: Path, stem: str) -> str:
    """The check a stem stands for; that of a shortened one is in the manifest only, and without it
    the stem has to do.
    """
    if not is_shortened(stem):
        return unescape_name(stem)
    try:
        data = read_regular(folder / f"{stem}{MANIFEST_SUFFIX}", MOST_MANIFEST_BYTES)
        name = load_manifest(data).check
    except (CiwrapError, FileNotFoundError, DocumentError):
        return unescape_name(stem)
    return name if escape_name(name) == stem else unescape_name(stem)


def orphans(folder: Path, known: Iterable[str], suffix: str = BINARY_SUFFIX) -> dict[str, Path]:
    """Goldens in a folder that belong to none of the `known` checks, by the name of theirs; with
    ENSEMBLE_SUFFIX, ensembles.

    What has no manifest is of no check: somebody's own golden, which a program wrote.
    """
    told_by = MANIFEST_SUFFIX if suffix == BINARY_SUFFIX else suffix
    stems = set(stored_stems(folder, (told_by,))).difference(map(escape_name, known))
    return {name_of_stem(folder, stem): folder / f"{stem}{suffix}" for stem in sorted(stems)}
