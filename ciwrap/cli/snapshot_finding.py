"""Which snapshot somebody means, where snapshots lie, and running a command to take one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.errors import UsageError
from ciwrap.structs import replace

if TYPE_CHECKING:
    from ciwrap.config import Config
    from ciwrap.model import CommandOutcome
    from ciwrap.snapshot.program import SeenProgram
    from ciwrap.snapshot.records import Snapshot
    from ciwrap.snapshot.store import SnapshotStore


def watched(
    words: tuple[str, ...] | str, config: Config | None
) -> tuple[CommandOutcome, SeenProgram]:
    """Runs a command with the variables of the configuration, and looks at it meanwhile. One of
    words was given here, so it runs here; a text is one that was kept, and runs where it did.
    """
    from ciwrap.config import CommandSettings
    from ciwrap.running.run_command import run_command
    from ciwrap.snapshot.program import ProgramWatcher

    usual = None if config is None else config.command
    settings = CommandSettings(words, Path.cwd()) if usual is None else replace(usual, words=words)
    if not isinstance(words, str):
        settings = replace(settings, working_dir=Path.cwd())
    watcher = ProgramWatcher(is_thorough=True)
    return run_command(settings, watcher=watcher), watcher.seen


def find_snapshot(name: str, folder: str | None) -> Snapshot:
    """The snapshot that somebody means. Raises UsageError if there is none, CorruptFileError."""
    from ciwrap.snapshot.store import SnapshotStore, load_snapshot

    path = Path(name)
    if not name:
        raise UsageError("'' names no snapshot", remedy="give the beginning of its hash, or a file")
    if "/" in name or path.exists():
        found = of_capture(path)
        return load_snapshot(path) if found is None else found
    root = project_root()
    store = store_in(folder, root)
    if name.startswith("golden:"):
        return _of_golden(name.removeprefix("golden:"), store)
    if name == "last":
        newest = store.newest()
        if newest is None:
            raise UsageError(
                "there is no snapshot yet", remedy="`ciwrap run` leaves one, and `snapshot save`"
            )
        return store.load(newest)
    if not store.contains(name):
        goldens = SnapshotStore.of_goldens(_golden_dir(root))
        if goldens.contains(name):
            return goldens.load(name)
    return store.load(name)


def of_capture(path: Path) -> Snapshot | None:
    """The snapshot of a capture, of the run that has one, or of a recorded run; None for a path
    that is not a capture. Raises UsageError for a capture without any, and the errors of
    reading it.
    """
    from ciwrap.captures.fingerprints import capture_of
    from ciwrap.captures.kept_snapshot import snapshot_text
    from ciwrap.captures.open_capture import open_capture
    from ciwrap.snapshot.store import decoded_as

    capture = capture_of(path)
    if capture is None:
        return None
    kept = snapshot_text(capture, open_capture)
    if kept is None:
        raise UsageError(
            "the capture has no snapshot", file=capture, remedy="capture the run again"
        )
    return decoded_as(kept.identity, kept.text, capture)


def _of_golden(check: str, store: SnapshotStore) -> Snapshot:
    from ciwrap.cli.load_project import load_project
    from ciwrap.snapshot.store import SnapshotStore

    project = load_project(None, None)
    manifest = project.store.read(check).manifest
    identity = manifest.environment.get("snapshot")
    if identity is None:
        raise UsageError(
            f"the golden of {check!r} has no snapshot",
            remedy="accept it anew, with 'objects' of 'snapshot' on",
        )
    goldens = SnapshotStore.of_goldens(project.golden_dir)
    return goldens.load(identity) if goldens.contains(identity) else store.load(identity)


def project_root() -> Path:
    """The folder of the configuration; where there is none, this one."""
    from ciwrap.cli.load_project import load_config_if_any

    config = load_config_if_any(None)
    return Path.cwd() if config is None else config.root


def _golden_dir(root: Path) -> Path:
    from ciwrap.cli.load_project import load_config_if_any

    config = load_config_if_any(None)
    return root / "golden" if config is None else config.golden_dir


def store_in(folder: str | None, root: Path) -> SnapshotStore:
    """The store in a folder that was given, else that of the project."""
    from ciwrap.snapshot.store import SnapshotStore

    return SnapshotStore.of_project(root) if folder is None else SnapshotStore(Path(folder))
