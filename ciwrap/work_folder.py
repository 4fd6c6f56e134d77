"""The folder `.ciwrap` of a project: what ciwrap notes there is never committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.files import writing

if TYPE_CHECKING:
    from pathlib import Path

WORK_DIR = ".ciwrap"
PENDING_DIR = f"{WORK_DIR}/pending"
# Of what runs left: their snapshots, and which of them made which outputs.
RUNS_DIR = f"{WORK_DIR}/snapshots"
RUN_NOTES = f"{RUNS_DIR}/outputs.json"


def keep_out_of_git(work_dir: Path) -> None:
    """Makes the folder if it is missing, and tells git to ignore it. Raises WriteFailedError."""
    path = work_dir / ".gitignore"
    if path.exists():
        return
    with writing(path):
        work_dir.mkdir(parents=True, exist_ok=True)
        path.write_text("# Made by ciwrap; nothing in here is to be committed.\n*\n")
