"""What git has to know of goldens: that their lines keep their ends, and that the files of an
acceptance that was killed are not to be committed.
"""

from __future__ import annotations

from pathlib import Path

from ciwrap.base.files import writing
from ciwrap.base.repository import ask_git
from ciwrap.golden.places import SHARED_SUFFIX

GIT_FILES = {
    ".gitattributes": ("*.golden binary diff=ciwrap", "*.goldens text eol=lf diff=ciwrap"),
    ".gitignore": (".ciwrap.lock", "*.golden.next", "*.golden.yaml.next", "*.goldens*.next"),
}


def add_git_files(golden_dir: Path) -> list[Path]:
    """Tells git in the folder of goldens what it has to know of them, unless it knows, or the
    folder is in no repository; returns the files written. Raises WriteFailedError.
    """
    if not golden_dir.is_dir():
        return []
    said = ask_git(golden_dir, "check-attr", "eol", "--", f"x{SHARED_SUFFIX}")
    if said is None or said.endswith(": lf"):
        return []
    written = []
    for name, lines in GIT_FILES.items():
        path = golden_dir / name
        added = [add_line(path, line) for line in lines]
        written += [path] if any(added) else []
    return written


def add_line(path: Path, line: str) -> bool:
    """Adds a line to a text file unless it is there; whether it was added. Raises
    WriteFailedError.
    """
    with writing(path):
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if line in text.splitlines():
            return False
        end = "" if not text or text.endswith("\n") else "\n"
        path.write_text(f"{text}{end}{line}\n", encoding="utf-8")
    return True
