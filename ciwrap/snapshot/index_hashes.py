"""Asks a package index, through pip, for the hashes of the distributions of given packages."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.documents import DocumentError
from ciwrap.documents.load_json import load_json
from ciwrap.errors import NotAvailableError, one_line
from ciwrap.hidden import hide_secrets, secrets_of
from ciwrap.snapshot.packages import normal_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS = 600.0


def index_hashes(packages: Mapping[str, str]) -> dict[str, list[str]]:
    """SHA-256 of the distribution that pip would install here, by package.

    packages: versions by name. These are the hashes that the index tells now; that it is what was
    installed then is known only once `restore --verify` has compared the objects. Raises
    NotAvailableError if pip or the index has no answer.
    """
    with tempfile.TemporaryDirectory() as folder:
        pins, report = Path(folder, "pins.txt"), Path(folder, "report.json")
        pins.write_text("".join(f"{name}=={version}\n" for name, version in packages.items()))
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps"),
                *("--ignore-installed", "--no-input", "--report", str(report), "-r", str(pins)),
            ],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode != 0 or not report.exists():
            said = hide_secrets(done.stderr, secrets_of(os.environ))
            why = one_line(said)[-300:] or f"exit code {done.returncode}"
            raise NotAvailableError(
                f"pip has no hashes: {why}",
                remedy="leave --hashes out, or remove what is not a package",
            )
        try:
            return hashes_of(report.read_bytes())
        except DocumentError as error:
            raise NotAvailableError(f"pip's report cannot be read: {error}") from None


def hashes_of(report: bytes) -> dict[str, list[str]]:
    """The hashes in an installation report of pip (its JSON). Raises DocumentError."""
    document = load_json(report)
    found: dict[str, list[str]] = {}
    items = document.get("install") if isinstance(document, dict) else None
    for item in items if isinstance(items, list) else ():
        try:
            name = item["metadata"]["name"]
            digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        except (KeyError, TypeError):
            continue
        if isinstance(name, str) and isinstance(digest, str):
            found[normal_name(name)] = [digest]
    return found
