"""Where the golden of a check lies: check names to file names, injectively.

The golden of check `mesh` is the pair `mesh.golden` (binary) and `mesh.golden.yaml` (manifest).
Characters other than ASCII letters, digits, `_`, `-` and `.` are written as `%XX` for each byte of
their UTF-8 form, so no name can leave the folder and no two names share a file.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

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
        import hashlib

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
    """Where the ensemble of a check is kept (`ciwrap.ensemble.golden`)."""
    return golden_dir / f"{escape_name(check)}{ENSEMBLE_SUFFIX}"


def shared_path(folder: Path) -> Path:
    """The file of a folder's small goldens: `tests/test_flow.goldens` for `tests/test_flow`."""
    return folder.with_name(folder.name + SHARED_SUFFIX)


def journal_path(shared: Path) -> Path:
    """Where goldens are put first that are to be in a shared file; never to be committed."""
    return staged(shared)


def staged(path: Path) -> Path:
    return path.with_name(path.name + STAGED_SUFFIX)


def ensemble_orphans(golden_dir: Path, known: Iterable[str]) -> dict[str, Path]:
    """Ensembles in a folder that belong to none of the `known` checks, by the name of theirs."""
    stems = set(stored_stems(golden_dir, (ENSEMBLE_SUFFIX,))).difference(map(escape_name, known))
    return {unescape_name(stem): golden_dir / f"{stem}{ENSEMBLE_SUFFIX}" for stem in sorted(stems)}


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
