"""Lock files: which exist, and what they hash to."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAMES = (
    *("requirements.lock", "requirements.txt", "uv.lock", "poetry.lock", "pdm.lock", "pylock.toml"),
    *("Pipfile.lock", "conda-lock.yml", "conda-linux-64.lock", "environment.yml", "pixi.lock"),
    *("spack.lock", "spack.yaml", "Cargo.lock", "Manifest.toml"),
)
_MOST_BYTES = 16 << 20


def lock_files_in(folder: Path) -> dict[str, str]:
    """SHA-256 by name, of the lock files in a folder. Those that cannot be read are left out."""
    found = {}
    for name in NAMES:
        data = _read(folder / name)
        if data is not None:
            found[name] = hashlib.sha256(data).hexdigest()
    return found


def _read(path: Path) -> bytes | None:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return path.read_bytes()
    except OSError:
        return None
