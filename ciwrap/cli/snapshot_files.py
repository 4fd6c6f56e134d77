"""Printing snapshots, and writing what restores them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ciwrap.errors import UsageError
from ciwrap.files import writing
from ciwrap.report.text import bytes_text, plural, safe_text
from ciwrap.snapshot.difference import verb_of, words_of_kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ciwrap.model import EnvironmentDifference
    from ciwrap.report.console import Console
    from ciwrap.snapshot.program import SeenProgram
    from ciwrap.snapshot.records import LoadedObject, Snapshot
    from ciwrap.snapshot.store import SnapshotStore

_SEEN = {
    "program": "objects seen in the processes of the command",
    "process": "objects of the process that took it",
    "nothing": "no objects: no program was looked at",
}


def snapshot_lines(found: Snapshot) -> list[str]:
    """A snapshot as text, the objects that are likeliest to change numbers first."""
    lines = [f"command: {found.command}"] if found.command else []
    for title, facts in (
        ("machine", found.machine),
        ("versions", found.versions),
        ("variables", found.variables),
        ("repository", found.repository),
        ("lock files", found.lock_files),
        ("system packages", found.system_packages),
        ("Python packages", found.packages),
    ):
        if facts:
            lines.append(title)
            lines += [f"  {name:<20} {value}" for name, value in facts.items()]
    if found.container:
        lines.append(f"container: {found.container}")
    if found.modules:
        lines.append(f"modules: {', '.join(found.modules)}")
    for one in found.blas:
        parts = (one.version, one.architecture, one.threads and plural(one.threads, "thread"))
        lines.append(f"{one.api}: {one.name} {' '.join(str(part) for part in parts if part)}")
    count = f" ({len(found.objects)})" if found.objects else ""
    lines.append(f"{_SEEN[found.seen]}{count}")
    lines += [f"  {one.kind:<8} {one.path}  {one.identity}" for one in _in_order(found.objects)]
    return [safe_text(line) for line in lines]


def _in_order(objects: Sequence[LoadedObject]) -> list[LoadedObject]:
    from ciwrap.snapshot.kinds import RANKS

    return sorted(objects, key=lambda one: (RANKS[one.kind], one.path))


def difference_lines(found: Sequence[EnvironmentDifference]) -> list[str]:
    """Each difference in a line, and the command that would prove that it matters below it."""
    lines = []
    for one in found:
        sides = f"{one.golden}  ->  {one.run}"
        lines.append(f"{one.name} {verb_of(one)}: {sides}  ({words_of_kind(one.kind)})")
        if one.prove is not None:
            lines.append(f"    to prove that it changes the numbers: {one.prove}")
    return [safe_text(line) for line in lines]


def keep_files(
    console: Console,
    store: SnapshotStore,
    identity: str,
    found: Snapshot,
    program: SeenProgram,
    root: Path,
) -> None:
    """Keeps the objects of a snapshot and the files of the project's folder beside it."""
    from ciwrap.snapshot.kept_files import SUFFIXES, object_files, run_files, write_archive
    from ciwrap.snapshot.private import Cleaner
    from ciwrap.snapshot.store import best_compression

    cleaner = Cleaner(root=root.resolve())
    paths = {cleaner.path(file.path): key[0] for file, key in program.files.items()}
    known = {one.path for one in found.objects}
    files = object_files({shown: path for shown, path in paths.items() if shown in known})
    files |= run_files(root)
    target = store.folder / f"{identity}{SUFFIXES[best_compression()]}"
    write_archive(files, target)
    size = bytes_text(target.stat().st_size)
    console.print(f"kept {plural(len(files), 'file')} in {safe_text(target.name)}, {size}")


def kept_lock_files(found: Snapshot, root: Path) -> dict[str, str]:
    """The texts of those lock files of the snapshot that still are as they were.

    A snapshot may come from anywhere: no other file is read because it says so.
    """
    from ciwrap.snapshot.lock_files import NAMES

    texts = {}
    for name, digest in found.lock_files.items():
        if name not in NAMES:
            continue
        try:
            data = (root / name).read_bytes()
        except OSError:
            continue
        if hashlib.sha256(data).hexdigest() == digest and name != "requirements.txt":
            texts[name] = data.decode("utf-8", "surrogateescape")
    return texts


def refuse_others(target: Path, texts: Mapping[str, str]) -> None:
    """Raises UsageError if a file is there that is not what would be written."""
    for name, text in texts.items():
        path = target / name
        if path.exists() and path.read_bytes() != text.encode("utf-8", "surrogateescape"):
            raise UsageError(
                "is there, with other content; nothing is overwritten",
                file=path,
                remedy="remove it, or give another folder with --path",
            )


def write_texts(target: Path, texts: Mapping[str, str]) -> None:
    """Writes the files of a restoration. Raises WriteFailedError."""
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (target / name).write_bytes(text.encode("utf-8", "surrogateescape"))


def unpack_kept(archive: Path, target: Path) -> list[str]:
    """Unpacks kept files below `files/`. Raises UsageError if something lies there."""
    from ciwrap.snapshot.kept_files import unpack_archive

    folder = target / "files"
    if folder.exists() and any(folder.iterdir()):
        raise UsageError("the folder is not empty; nothing is overwritten", file=folder)
    folder.mkdir(parents=True, exist_ok=True)
    return [f"files/{name}" for name in unpack_archive(archive, folder)]
