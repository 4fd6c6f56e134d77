"""`ciwrap snapshot`: what a program ran on and with; what differs; and how to have it back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ciwrap.cli.options import json_option
from ciwrap.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ciwrap.cli.session import Session
    from ciwrap.cli.snapshot_documents import SnapshotDocument
    from ciwrap.config import Config
    from ciwrap.model import CommandOutcome
    from ciwrap.snapshot.program import SeenProgram
    from ciwrap.snapshot.records import Snapshot
    from ciwrap.snapshot.store import SnapshotStore

_path_option = click.option(
    "--path",
    "folder",
    metavar="FOLDER",
    type=click.Path(),
    help="Where snapshots are kept; default: .ciwrap/snapshots of the project.",
)


@click.group(name="snapshot", short_help="Keep, compare and restore environments.")
def command() -> None:
    """Keep what a program ran on and with, say what differs between two such snapshots, and write
    what is needed to have one back.

    `ciwrap run`, `repeat` and `time` keep a snapshot of their own. SNAPSHOT is the beginning of its
    hash, a file, `last` for the newest, or `golden:CHECK` for what a golden was made with. No host
    name, user, home folder or secret is in any; nothing is ever updated by itself.
    """


@command.command(name="save", short_help="Take a snapshot, of a command if one is given.")
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]")
@click.option(
    "--keep-files", "keeps", is_flag=True, help="Keep the objects and the folder's files, too."
)
@click.option("--dry-run", is_flag=True, help="Show the snapshot; write nothing.")
@_path_option
@json_option
@click.pass_obj
def save(
    session: Session, words: tuple[str, ...], keeps: bool, dry_run: bool, folder: str | None
) -> int:
    """Take a snapshot with SHA-256 of every object and the system packages that own them.

    With a COMMAND, it is run, and its processes are looked at for the objects that they load; those
    that live for less than 25 ms may be missed. Without one, nothing is known of objects.

    Exit codes: 0 done, 2 usage, 3 the command failed.
    """
    from ciwrap.cli.load_project import load_config_if_any
    from ciwrap.cli.snapshot_files import keep_files, snapshot_lines
    from ciwrap.snapshot.take import snapshot_of_machine, snapshot_of_program

    config = load_config_if_any(None)
    root = Path.cwd() if config is None else config.root
    keeps = keeps or (config is not None and config.snapshot.keep_files)
    outcome, program = _watched(words, config) if words else (None, None)
    if program is None:
        found = snapshot_of_machine(root)
    else:
        text = None if outcome is None else outcome.command
        found = snapshot_of_program(root, program, command=text, hashed=True)
    session.kind = "snapshot"
    if outcome is not None and outcome.exit_code != 0:
        from ciwrap.running.run_command import failure_of

        raise failure_of(outcome)
    if keeps and program is None:
        raise UsageError(
            "without a command no objects are known, so no files can be kept",
            remedy="ciwrap snapshot save --keep-files -- COMMAND",
        )
    store = _store(folder, root)
    if dry_run:
        _print(session, snapshot_lines(found))
        session.console.print("dry run: nothing was written")
        session.emit_record(_document(found))
        return int(ExitCode.MATCH)
    identity = store.save(found)
    store.touch(identity)
    _tell_saved(session, found, store, identity)
    if keeps and program is not None:
        keep_files(session.console, store, identity, found, program, root)
    session.emit_record(_document(found))
    return int(ExitCode.MATCH)


@command.command(name="show", short_help="Print a snapshot.")
@click.argument("name", metavar="[SNAPSHOT]", default="last")
@_path_option
@json_option
@click.pass_obj
def show(session: Session, name: str, folder: str | None) -> int:
    """Print a snapshot, by default the newest.

    Exit codes: 0 done, 2 there is none of that name, 3 it cannot be read.
    """
    from ciwrap.cli.snapshot_files import snapshot_lines

    session.kind = "snapshot"
    found = _find(name, folder)
    session.emit_record(_document(found))
    _print(session, snapshot_lines(found))
    return int(ExitCode.MATCH)


@command.command(name="diff", short_help="Say what differs between two snapshots.")
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", default="last")
@_path_option
@json_option
@click.pass_obj
def diff(session: Session, first: str, second: str, folder: str | None) -> int:
    """Say what differs between two snapshots, B being the newest by default, in the order of how
    often it changes numbers. That something differs does not say that it changed any: the command
    beside it would show that.

    Exit codes: 0 nothing differs, 1 something does, 2 usage, 3 objects of a side are not known, and
    nothing else differs.
    """
    from ciwrap.cli.snapshot_documents import SnapshotDiffDocument
    from ciwrap.cli.snapshot_files import difference_lines
    from ciwrap.snapshot.difference import compare_snapshots
    from ciwrap.snapshot.store import identity_of

    session.kind = "snapshot"
    a, b = _find(first, folder), _find(second, folder)
    found = compare_snapshots(a, b)
    lacks = any(not one.objects for one in (a, b))
    code: Literal[0, 1, 3] = 1 if found else 3 if lacks else 0
    session.emit_record(
        SnapshotDiffDocument(
            1, "snapshot-diff", code, identity_of(a), identity_of(b), not lacks, found
        )
    )
    _print(session, difference_lines(found))
    if lacks:
        session.console.print("objects were not compared: those of a side are not known")
    elif not found:
        session.console.print(f"nothing differs: all {len(a.objects)} objects are the same builds")
    return code


@command.command(name="restore", short_help="Write what is needed to have an environment back.")
@click.argument("name", metavar="[SNAPSHOT]", default="last")
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]")
@click.option(
    "--path",
    "folder",
    metavar="FOLDER",
    type=click.Path(),
    help="Where the files are written; default: .ciwrap/restored/HASH of the project.",
)
@click.option("--hashes", is_flag=True, help="Ask the index for hashes, through pip.")
@click.option("--verify", is_flag=True, help="Run the command here; compare its objects.")
@click.option("--dry-run", is_flag=True, help="Show the files; write nothing, run nothing.")
@json_option
@click.pass_obj
def restore(
    session: Session,
    name: str,
    words: tuple[str, ...],
    folder: str | None,
    hashes: bool,
    verify: bool,
    dry_run: bool,
) -> int:
    """Write requirements.txt, a Containerfile, restore.sh and what else a snapshot allows; with
    --verify, run its command (or COMMAND) in the environment that is active, and compare the
    objects that it loads, one by one, with those of the snapshot.

    Nothing is installed. What no file can bring back (kernel, microcode, CPU) is listed.

    Exit codes: 0 done, or all objects are equal; 1 an object is not; 2 usage; 3 the command failed,
    or no objects were seen.
    """
    session.kind = "snapshot"
    found = _find(name, None)
    if verify:
        if dry_run or hashes or folder is not None:
            raise UsageError("--verify writes no files: leave the other options out")
        return _verify(session, found, words)
    if words:
        raise UsageError("a command is run with --verify alone")
    return _write_recipes(session, name, found, folder, hashes=hashes, is_dry=dry_run)


def _write_recipes(
    session: Session, name: str, found: Snapshot, folder: str | None, *, hashes: bool, is_dry: bool
) -> int:
    from ciwrap.cli.load_project import near
    from ciwrap.cli.snapshot_documents import SnapshotRestoreDocument
    from ciwrap.cli.snapshot_files import (
        kept_lock_files,
        refuse_others,
        unpack_kept,
        write_texts,
    )
    from ciwrap.report.text import safe_text
    from ciwrap.snapshot.index_hashes import index_hashes
    from ciwrap.snapshot.kept_files import archive_of
    from ciwrap.snapshot.restore import not_restorable, recipes
    from ciwrap.snapshot.store import identity_of

    identity = identity_of(found)
    root = _root()
    target = root / ".ciwrap" / "restored" / identity if folder is None else Path(folder)
    texts = recipes(found, hashes=index_hashes(found.packages) if hashes else None)
    texts |= kept_lock_files(found, root)
    archive = (
        None if name.startswith("golden:") else archive_of(_store(None, root).folder, identity)
    )
    refuse_others(target, texts)
    written = sorted(texts)
    for file in written if is_dry else ():
        session.console.print(f"--- {file}")
        for line in texts[file].splitlines():
            session.console.print(safe_text(line))
    if not is_dry:
        write_texts(target, texts)
        if archive is not None:
            written += unpack_kept(archive, target)
        session.console.print(
            f"written to {safe_text(str(near(target)))}: {', '.join(sorted(texts))}"
        )
        if archive is not None:
            session.console.print(f"  and {len(written) - len(texts)} kept files")
    lacking = not_restorable(found)
    session.console.print("not to be restored by any of them:")
    for line in lacking:
        session.console.print(f"  {safe_text(line)}")
    if is_dry:
        session.console.print("dry run: nothing was written")
    session.emit_record(
        SnapshotRestoreDocument(
            1, "snapshot-restore", identity, () if is_dry else tuple(written), tuple(lacking)
        )
    )
    return int(ExitCode.MATCH)


def _verify(session: Session, first: Snapshot, words: tuple[str, ...]) -> int:
    from ciwrap.cli.load_project import load_config_if_any
    from ciwrap.cli.snapshot_documents import SnapshotVerifyDocument
    from ciwrap.report.text import plural, safe_text
    from ciwrap.running.run_command import failure_of
    from ciwrap.snapshot.private import HIDDEN
    from ciwrap.snapshot.restore import check_objects
    from ciwrap.snapshot.store import identity_of
    from ciwrap.snapshot.take import snapshot_of_program

    if not first.objects:
        raise UsageError(
            "the snapshot knows no objects, so there is nothing to compare",
            remedy="take one with `ciwrap run`, or `ciwrap snapshot save -- COMMAND`",
        )
    recorded = first.command or ""
    if not words and (not recorded or HIDDEN in recorded):
        raise UsageError("the snapshot has no whole command", remedy="give one after --")
    config = load_config_if_any(None)
    outcome, program = _watched(words or recorded, config)
    if outcome.exit_code != 0:
        raise failure_of(outcome)
    second = snapshot_of_program(_root(), program, command=outcome.command, hashed=True)
    found = check_objects(first, second)
    code: Literal[0, 1, 3] = 0 if found.is_same else 1 if second.objects else 3
    print_line = session.console.print
    print_line(f"{len(found.equal)} of {plural(len(first.objects), 'object')} are the same builds")
    for before, after in found.other:
        print_line(safe_text(f"  differs: {before.path}: {before.identity}, now {after.identity}"))
    for what, objects in (("not seen", found.missing), ("new", found.extra)):
        for one in objects:
            print_line(safe_text(f"  {what}: {one.path} ({one.identity})"))
    session.emit_record(
        SnapshotVerifyDocument(
            schema_version=1,
            kind="snapshot-verify",
            exit_code=code,
            identity=identity_of(first),
            equal=len(found.equal),
            differing=tuple(before.path for before, _ in found.other),
            missing=tuple(one.path for one in found.missing),
            extra=tuple(one.path for one in found.extra),
        )
    )
    return code


def _watched(
    words: tuple[str, ...] | str, config: Config | None
) -> tuple[CommandOutcome, SeenProgram]:
    """Runs a command with the variables of the configuration, and looks at it meanwhile."""
    from ciwrap.config import CommandSettings
    from ciwrap.running.run_command import run_command
    from ciwrap.snapshot.program import ProgramWatcher
    from ciwrap.structs import replace

    usual = None if config is None else config.command
    settings = CommandSettings(words, Path.cwd()) if usual is None else replace(usual, words=words)
    watcher = ProgramWatcher(is_thorough=True)
    return run_command(settings, watcher=watcher), watcher.seen


def _find(name: str, folder: str | None) -> Snapshot:
    """The snapshot that somebody means. Raises UsageError if there is none, CorruptFileError."""
    from ciwrap.snapshot.store import SnapshotStore, load_snapshot

    if "/" in name or Path(name).is_file():
        return load_snapshot(Path(name))
    root = _root()
    store = _store(folder, root)
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


def _of_golden(check: str, store: SnapshotStore) -> Snapshot:
    from ciwrap.cli.load_project import load_project
    from ciwrap.snapshot.store import SnapshotStore

    project = load_project(None, None)
    manifest = project.store.read(check).manifest
    identity = manifest.environment.get("snapshot")
    if identity is None:
        raise UsageError(
            f"the golden of {check!r} has no snapshot",
            remedy="it was accepted from outputs that no `ciwrap run` made",
        )
    goldens = SnapshotStore.of_goldens(project.golden_dir)
    return goldens.load(identity) if goldens.contains(identity) else store.load(identity)


def _root() -> Path:
    from ciwrap.cli.load_project import load_config_if_any

    config = load_config_if_any(None)
    return Path.cwd() if config is None else config.root


def _golden_dir(root: Path) -> Path:
    from ciwrap.cli.load_project import load_config_if_any

    config = load_config_if_any(None)
    return root / "golden" if config is None else config.golden_dir


def _store(folder: str | None, root: Path) -> SnapshotStore:
    from ciwrap.snapshot.store import SnapshotStore

    return SnapshotStore.of_project(root) if folder is None else SnapshotStore(Path(folder))


def _document(found: Snapshot) -> SnapshotDocument:
    from ciwrap.cli.snapshot_documents import SnapshotDocument
    from ciwrap.snapshot.store import identity_of

    return SnapshotDocument(1, "snapshot", identity_of(found), found)


def _tell_saved(session: Session, found: Snapshot, store: SnapshotStore, identity: str) -> None:
    from ciwrap.cli.load_project import near
    from ciwrap.report.text import bytes_text, plural, safe_text

    path = store.path_of(identity)
    assert path is not None
    size = bytes_text(path.stat().st_size)
    session.console.print(f"saved {identity} ({safe_text(str(near(path)))}, {size})")
    if found.seen == "nothing":
        session.console.print(
            "  no objects are known: give a command, `ciwrap snapshot save -- COMMAND`"
        )
    else:
        session.console.print(f"  {plural(len(found.objects), 'object')} seen")


def _print(session: Session, lines: Iterable[str]) -> None:
    for line in lines:
        session.console.print(line)
