"""Lock files: which exist, what they hash to, and which packages one pins."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from ciwrap.documents import DocumentError
from ciwrap.documents.load_json import load_json
from ciwrap.snapshot.packages import normal_name

if TYPE_CHECKING:
    from pathlib import Path

NAMES = (
    *("requirements.lock", "requirements.txt", "uv.lock", "poetry.lock", "pdm.lock", "pylock.toml"),
    *("Pipfile.lock", "conda-lock.yml", "conda-linux-64.lock", "environment.yml", "pixi.lock"),
    *("spack.lock", "spack.yaml", "Cargo.lock", "Manifest.toml"),
)
_MOST_BYTES = 16 << 20
_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*==\s*(?P<version>[\w.+!]+)\s*(?:[;\\#\s].*)?"
)
_TABLE = re.compile(r"\[\[(?:package|packages)\]\]")
_FIELD = re.compile(r'(?P<key>name|version)\s*=\s*"(?P<value>[^"]{1,200})"')


def lock_files_in(folder: Path) -> dict[str, str]:
    """SHA-256 by name, of the lock files in a folder. Those that cannot be read are left out."""
    found = {}
    for name in NAMES:
        data = _read(folder / name)
        if data is not None:
            found[name] = hashlib.sha256(data).hexdigest()
    return found


def pins_of(name: str, data: bytes) -> dict[str, str]:
    """Versions by package that a lock file of Python pins; none for what it does not say plainly.

    name: of the file, which tells its format. data: trusted in nothing.
    """
    if name.endswith(".txt") or name == "requirements.lock":
        return _requirements(data)
    if name == "Pipfile.lock":
        return _pipfile(data)
    if name in ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml"):
        return _toml_packages(data)
    return {}


def _requirements(data: bytes) -> dict[str, str]:
    pins = {}
    for line in data.decode("utf-8", "replace").splitlines():
        pin = _PIN.fullmatch(line.strip())
        if pin is not None:
            pins[normal_name(pin["name"])] = pin["version"]
    return pins


def _pipfile(data: bytes) -> dict[str, str]:
    try:
        document = load_json(data)
    except DocumentError:
        return {}
    section = document.get("default") if isinstance(document, dict) else None
    if not isinstance(section, dict):
        return {}
    return {
        normal_name(str(name)): str(entry["version"]).removeprefix("==")
        for name, entry in section.items()
        if isinstance(entry, dict) and str(entry.get("version", "")).startswith("==")
    }


def _toml_packages(data: bytes) -> dict[str, str]:
    """Name and version of each `[[package]]`; all that is asked of such a file."""
    pins: dict[str, str] = {}
    entry: dict[str, str] | None = None
    for line in data.decode("utf-8", "replace").splitlines():
        text = line.strip()
        if _TABLE.fullmatch(text):
            entry = {}
        elif text.startswith("["):
            entry = None
        elif entry is not None:
            part = _FIELD.fullmatch(text)
            if part is not None:
                entry.setdefault(part["key"], part["value"])
                if len(entry) == 2:
                    pins[normal_name(entry["name"])] = entry["version"]
    return pins


def _read(path: Path) -> bytes | None:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return path.read_bytes()
    except OSError:
        return None
