"""Which Python packages are installed, told by the names of their metadata folders.

Reading a folder's names takes a millisecond, where `importlib.metadata` opens a file for each
package and takes a third of a second; so nothing has to be remembered from run to run.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_METADATA = re.compile(r"(?P<name>[A-Za-z0-9][\w.]*)-(?P<version>[\w.+!]+)\.(?:dist|egg)-info")
_FOLDER = re.compile(r"^(?P<folder>.*/(?:site|dist)-packages)/")
_PYTHON = re.compile(r"/lib/(?:python|pypy)(?P<version>\d+\.\d+)/")


def packages_in(folders: Iterable[str | Path]) -> dict[str, str]:
    """Versions by normalised name (PEP 503), of the first folder that has a package; sorted."""
    found: dict[str, str] = {}
    for folder in folders:
        try:
            names = os.listdir(folder)  # noqa: PTH208 - of many names, as texts
        except OSError:
            continue
        for name in sorted(names):
            parts = _METADATA.fullmatch(name)
            if parts is not None:
                found.setdefault(normal_name(parts["name"]), parts["version"])
    return dict(sorted(found.items()))


def normal_name(name: str) -> str:
    """A package's name as indices compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def package_folders(mapped: Iterable[str]) -> list[str]:
    """The folders of packages that mapped files lie in, the most used first."""
    counts: dict[str, int] = {}
    for path in mapped:
        inside = _FOLDER.match(path)
        if inside:
            counts[inside["folder"]] = counts.get(inside["folder"], 0) + 1
    return sorted(counts, key=lambda folder: (-counts[folder], folder))


def python_version(folders: Iterable[str]) -> str | None:
    """Major and minor version of the Python that folders of packages are of."""
    for folder in folders:
        inside = _PYTHON.search(f"{folder}/")
        if inside:
            return inside["version"]
    return None
