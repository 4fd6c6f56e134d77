"""Which Python packages are installed, told by the names of their metadata folders.

Reading a folder's names takes a millisecond, where `importlib.metadata` opens a file for each
package and takes a third of a second; so nothing has to be remembered from run to run.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

_METADATA = re.compile(r"(?P<name>[A-Za-z0-9][\w.]*)-(?P<version>[\w.+!]+)\.(?:dist|egg)-info")
_FOLDER = re.compile(r"^(?P<folder>.*/(?:site|dist)-packages)/")
_ASK_SECONDS = 20.0


class Packages(Struct, frozen=True):
    """Versions by normalised name (PEP 503), sorted.

    local: those that came from a folder, a file or a repository (PEP 610), and from no index.
    """

    versions: dict[str, str]
    local: tuple[str, ...]


def packages_in(folders: Iterable[str | Path]) -> Packages:
    """The packages in these folders; the first folder that has one counts."""
    found: dict[str, str] = {}
    local = set()
    for folder in folders:
        try:
            names = os.listdir(folder)  # noqa: PTH208 - of many names, as texts
        except OSError:
            continue
        for name in sorted(names):
            parts = _METADATA.fullmatch(name)
            key = None if parts is None else normal_name(parts["name"])
            if parts is None or key is None or key in found:
                continue
            found[key] = parts["version"]
            if _is_local(Path(folder, name)):
                local.add(key)
    return Packages(dict(sorted(found.items())), tuple(sorted(local)))


def _is_local(metadata: Path) -> bool:
    """Whether a package's metadata name a place that is no index. Those of conda name the folder
    that it was built in, on a machine of conda's.
    """
    if not (metadata / "direct_url.json").exists():
        return False
    try:
        return (metadata / "INSTALLER").read_bytes().strip() != b"conda"
    except OSError:
        return True


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


def owning_packages(paths: Iterable[str]) -> dict[str, str]:
    """Versions of the distribution's packages that files belong to, by name (Debian's dpkg).

    Nothing on other distributions, and for files that belong to none.
    """
    asked = sorted(path for path in paths if path.startswith(("/usr/", "/lib", "/bin/")))
    # A library may have been installed under /lib, which is /usr/lib by now.
    asked += [path.removeprefix("/usr") for path in asked if path.startswith("/usr/lib")]
    owners = {
        package.strip().partition(":")[0]
        for line in _dpkg("-S", *asked)
        for package in line.partition(": ")[0].split(",")
        if ": /" in line and not line.startswith("diversion")
    }
    versions = _dpkg("-W", "-f", "${Package} ${Version}\\n", *sorted(owners)) if owners else []
    return dict(sorted(line.split(" ") for line in versions if line.count(" ") == 1))


def _dpkg(*arguments: str) -> list[str]:
    """Lines of an answer; it may be part of one, since a file that nobody owns is an error."""
    try:
        done = subprocess.run(
            ["dpkg-query", *arguments],
            capture_output=True,
            timeout=_ASK_SECONDS,
            check=False,
            text=True,
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines()
