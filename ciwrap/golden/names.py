"""What the files of a golden folder stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.documents import DocumentError
from ciwrap.errors import CiwrapError
from ciwrap.files import read_regular
from ciwrap.golden.manifest import MOST_MANIFEST_BYTES, load_manifest
from ciwrap.golden.paths import (
    BINARY_SUFFIX,
    MANIFEST_SUFFIX,
    escape_name,
    is_shortened,
    stored_stems,
    unescape_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


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


def golden_orphans(folder: Path, known: Iterable[str]) -> dict[str, Path]:
    """Goldens in a folder that belong to none of the `known` checks, by the name of theirs.

    What has no manifest is of no check: somebody's own golden, which a program wrote.
    """
    stems = set(stored_stems(folder, (MANIFEST_SUFFIX,))).difference(map(escape_name, known))
    return {name_of_stem(folder, stem): folder / f"{stem}{BINARY_SUFFIX}" for stem in sorted(stems)}
