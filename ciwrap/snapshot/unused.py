"""Snapshots beside goldens that no golden names any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.documents import DocumentError
from ciwrap.documents.load_json import load_json
from ciwrap.errors import CorruptGoldenError, FileLimitError, UnreadableFileError
from ciwrap.files import read_regular
from ciwrap.golden.listing import linked_folders, stored_places
from ciwrap.golden.manifest import MOST_MANIFEST_BYTES, load_manifest
from ciwrap.golden.module_store import ModuleStore
from ciwrap.golden.paths import ENSEMBLE_SUFFIX
from ciwrap.golden.stores import GoldenStores
from ciwrap.repository import left_out

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from ciwrap.golden.places import Place
    from ciwrap.golden.store import GoldenStore

_MOST_ENSEMBLE_BYTES = 256 << 20


def used_snapshots(golden_dir: Path, without: Collection[Place] = ()) -> frozenset[str]:
    """The identities that goldens and ensembles in a folder name.

    without: goldens that do not count. Raises CorruptGoldenError for one that cannot be read, since
    nobody knows what it names, or is not looked at.
    """
    for path, why in _out_of_sight(golden_dir):
        raise _unknown(path, why)
    stores = GoldenStores(golden_dir)
    found = {
        _named_by_golden(stores.at(place), place.name)
        for place in stored_places(golden_dir)
        if place not in without
    }
    found |= {_named_by_ensemble(path) for path in sorted(golden_dir.glob(f"*{ENSEMBLE_SUFFIX}"))}
    return frozenset(one for one in found if isinstance(one, str))


def _out_of_sight(golden_dir: Path) -> Iterator[tuple[Path, str]]:
    """Where goldens may be that are not among those stored here, and why they are not."""
    for name in left_out(golden_dir):
        yield golden_dir / name, "the sparse checkout leaves it out"
    for path in linked_folders(golden_dir):
        yield path, "it is a link to a folder, which is not followed"


def _named_by_golden(store: GoldenStore, name: str) -> object:
    if isinstance(store, ModuleStore) and store.is_shared(name):
        return store.read(name).manifest.environment.get("snapshot")
    path = store.manifest_path(name)
    try:
        manifest = load_manifest(read_regular(path, MOST_MANIFEST_BYTES))
    except (DocumentError, FileNotFoundError, FileLimitError, UnreadableFileError) as error:
        raise _unknown(path, error) from None
    return manifest.environment.get("snapshot")


def _named_by_ensemble(path: Path) -> object:
    try:
        document: Any = load_json(read_regular(path, _MOST_ENSEMBLE_BYTES))
        return document["environment"].get("snapshot")
    except (DocumentError, FileLimitError, UnreadableFileError) as error:
        raise _unknown(path, error) from None
    except (KeyError, TypeError, AttributeError) as error:
        raise _unknown(path, f"it has no environment ({error})") from None


def _unknown(path: Path, why: object) -> CorruptGoldenError:
    return CorruptGoldenError(
        f"cannot be read, so nobody knows which snapshot it needs: {why}",
        file=path,
        remedy="fix it, or remove it",
    )
