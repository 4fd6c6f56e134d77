"""What a file among the goldens that wait is: a pending golden, or what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.documents import DocumentError, NewerFormatError
from ciwrap.errors import (
    CorruptGoldenError,
    FileLimitError,
    GoldenMissingError,
    UnreadableFileError,
    UnsupportedFormatError,
)
from ciwrap.files import read_regular
from ciwrap.golden import paths
from ciwrap.golden.manifest import (
    MOST_MANIFEST_BYTES,
    Manifest,
    PendingOrigin,
    load_manifest,
    now_text,
)
from ciwrap.golden.places import Place
from ciwrap.golden.store import GoldenStore
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ciwrap.golden.module_store import ModuleStore


class PendingGolden(Struct, frozen=True):
    """One golden that waits, as its manifest tells of it. path: its binary."""

    place: Place
    path: Path
    manifest: Manifest
    origin: PendingOrigin

    @property
    def check(self) -> str:
        """What people call the check."""
        return self.place.check

    @property
    def root(self) -> str:
        return self.manifest.binary.root


def pending_origin(base_root: str | None, commit: str | None) -> PendingOrigin:
    """What a golden was made from that is made now.

    base_root: of the golden it would replace; "" for one that cannot be read, None for none.
    """
    return PendingOrigin(
        kind="new" if base_root is None else "changed",
        created=now_text(),
        commit=commit,
        base_root=base_root or None,
    )


# A pending golden; the error of a file that looks like one and is none, or of one that a later
# release has written; None for one that has just gone.
Looked = PendingGolden | CorruptGoldenError | UnsupportedFormatError | None


def look_at_pair(folder: str, path: Path) -> Looked:
    """What a manifest in the folder of pending goldens is; None if it has just gone."""
    try:
        data = read_regular(path, MOST_MANIFEST_BYTES)
        return _pending_golden(folder, path, load_manifest(data))
    except FileNotFoundError:
        return None
    except NewerFormatError as error:
        return UnsupportedFormatError(str(error), file=path)
    except (DocumentError, UnreadableFileError, FileLimitError) as error:
        return CorruptGoldenError(
            f"is not a pending golden: {error}",
            file=path,
            remedy="delete it, and run the tests again",
        )


def look_at_all_shared(folder: str, store: ModuleStore) -> Iterator[Looked]:
    try:
        names = store.shared_names()
    except CorruptGoldenError as error:
        yield CorruptGoldenError(
            error.message,
            file=error.file,
            remedy="throw it away with `ciwrap reject --all`, and run the tests again",
        )
        return
    except UnsupportedFormatError as error:
        yield error
        return
    for name in names:
        yield look_at_shared(Place(folder, name), store)


def look_at_shared(place: Place, store: ModuleStore) -> Looked:
    """What a golden of a shared file is, among those that wait; None if it has just gone."""
    try:
        found = store.read(place.name)
    except GoldenMissingError:
        return None
    except CorruptGoldenError as error:
        return error
    origin = found.manifest.pending
    if origin is None:
        return CorruptGoldenError(
            f"does not say what {place.name!r} was made from",
            file=found.path,
            remedy="delete it, and run the tests again",
        )
    return PendingGolden(place, found.path, found.manifest, origin)


def _pending_golden(folder: str, path: Path, manifest: Manifest) -> PendingGolden:
    binary = path.with_name(path.name.removesuffix(paths.MANIFEST_SUFFIX) + paths.BINARY_SUFFIX)
    if manifest.pending is None:
        raise DocumentError("does not say what it was made from")
    if not manifest.check or GoldenStore(path.parent).pair_path(manifest.check) != binary:
        raise DocumentError(f"belongs to check {manifest.check!r}, but lies in another's place")
    return PendingGolden(Place(folder, manifest.check), binary, manifest, manifest.pending)
