"""`ciwrap snapshot`: take, show, compare and restore environments."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import click
from msgspec.structs import replace

from ciwrap.base.errors import ExitCode, UsageError
from ciwrap.base.files import writing
from ciwrap.base.secrets import HIDDEN, hide_secrets
from ciwrap.cli.commands import CommandGroup
from ciwrap.cli.json_documents import (
    SnapshotDiffDocument,
    SnapshotDocument,
    SnapshotRestoreDocument,
    SnapshotVerifyDocument,
)
from ciwrap.cli.main import Session
from ciwrap.cli.options import json_option
from ciwrap.model import CommandOutcome, EnvironmentDifference
from ciwrap.project.run_command import failure_of, run_command
from ciwrap.project.settings import CommandSettings, Config
from ciwrap.recording.recorded_run import snapshot_of_capture
from ciwrap.report.console import Console
from ciwrap.report.text import bytes_text, plural, safe_text
from ciwrap.review.project import load_config_if_any, load_project, near
from ciwrap.snapshot.difference import compare_snapshots, words_of_kind
from ciwrap.snapshot.records import OWN_LIBRARIES, RANKS, Cleaner, Snapshot
from ciwrap.snapshot.restore import NOT_RESTORED, check_objects, paths_of_programs, recipes
from ciwrap.snapshot.store import (
    SUFFIXES,
    SnapshotStore,
    archive_of,
    best_compression,
    identity_of,
    load_snapshot,
    object_files,
    run_files,
    unpack_archive,
    write_archive,
)
from ciwrap.snapshot.take import (
    NAMES,
    ProgramWatcher,
    SeenProgram,
    require_look,
    snapshot_of_machine,
    snapshot_of_program,
)

_path_option = click.option(
    "--path",
    "folder",
    metavar="FOLDER",
    type=click.Path(),
    help="Where snapshots are kept; default: .ciwrap/snapshots of the project.",
)


@click.group(cls=CommandGroup, name="snapshot", no_args_is_help=False)
def snapshot_command() -> None:
    """Keep what a program ran on and with, say what differs between two such snapshots, and write
    what is needed to restore one.

    `ciwrap run`, `repeat` and `time` keep a snapshot of their own. SNAPSHOT is the beginning of its
    hash, a file, `last` for the newest, or `golden:CHECK` for what a golden was made with. No host
    name, user, home folder or secret is in any; nothing is ever updated by itself.
    """


@snapshot_command.command(
    name="save",
    example="ciwrap snapshot save -- ./simulate",
    short_help="Take a snapshot, of a command if one is given.",
)
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

    With a COMMAND, it is run in this folder, with the variables and the time limit of `run`, and
    its processes are looked at for the objects that they load; those that live for less than 25 ms
    may be missed. Without one, nothing is known of objects.

    Exit codes: 0 done, 2 usage, 3 the command failed.
    """
    config = load_config_if_any(None)
    root = Path.cwd() if config is None else config.root
    keeps = keeps or (config is not None and config.snapshot.keep_files)
    if keeps and words:
        require_look()
    outcome, program = watched(words, config) if words else (None, None)
    if program is None:
        found = snapshot_of_machine(root)
    else:
        text = None if outcome is None else outcome.command
        found = snapshot_of_program(root, program, command=text, hashed=True)
    session.kind = "snapshot"
    if outcome is not None and outcome.exit_code != 0:
        raise failure_of(outcome, so="so there is no snapshot of it")
    if keeps and program is None:
        raise UsageError(
            "without a command no objects are known, so no files can be kept",
            remedy="ciwrap snapshot save --keep-files -- COMMAND",
        )
    store = store_in(folder, root)
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


@snapshot_command.command(
    name="show",
    example="ciwrap snapshot show last",
    short_help="Print a snapshot.",
)
@click.argument("name", metavar="[SNAPSHOT]", default="last")
@_path_option
@json_option
@click.pass_obj
def show(session: Session, name: str, folder: str | None) -> int:
    """Print a snapshot, by default the newest.

    Exit codes: 0 done, 2 there is none of that name, 3 it cannot be read.
    """
    session.kind = "snapshot"
    found = find_snapshot(name, folder)
    session.emit_record(_document(found))
    _print(session, snapshot_lines(found))
    return int(ExitCode.MATCH)


@snapshot_command.command(
    name="diff",
    example="ciwrap snapshot diff golden:field last",
    short_help="Say what differs between two snapshots.",
)
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
    session.kind = "snapshot"
    a, b = find_snapshot(first, folder), find_snapshot(second, folder)
    found = compare_snapshots(a, b)
    lacks = any(not one.objects for one in (a, b))
    code: Literal[0, 1, 3] = 1 if found else 3 if lacks else 0
    names = identity_of(a), identity_of(b)
    session.emit_record(SnapshotDiffDocument(1, "snapshot-diff", code, *names, not lacks, found))
    _print(session, difference_lines(found))
    if lacks:
        session.console.print("libraries were not compared: one side does not list them")
    elif not found:
        session.console.print(
            f"nothing differs: all {len(a.objects)} programs and libraries are the same builds"
        )
    return code


@snapshot_command.command(
    name="restore",
    example="ciwrap snapshot restore last",
    short_help="Write what is needed to have an environment back.",
)
@click.argument("name", metavar="[SNAPSHOT]", default="last")
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]")
@click.option(
    "--path",
    "folder",
    metavar="FOLDER",
    type=click.Path(),
    help="Where the files are written; default: .ciwrap/restored/HASH of the project.",
)
@click.option("--verify", is_flag=True, help="Run the command here; compare its objects.")
@click.option("--dry-run", is_flag=True, help="Show the files; write nothing, run nothing.")
@json_option
@click.pass_obj
def restore(
    session: Session,
    name: str,
    words: tuple[str, ...],
    folder: str | None,
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
    found = find_snapshot(name, None)
    if verify:
        if dry_run or folder is not None:
            raise UsageError("--verify writes no files: leave the other options out")
        return verify_objects(session, found, words)
    if words:
        raise UsageError("a command runs only with --verify")
    return write_recipes(session, name, found, folder, is_dry=dry_run)


def _document(found: Snapshot) -> SnapshotDocument:
    return SnapshotDocument(1, "snapshot", identity_of(found), found)


def _tell_saved(session: Session, found: Snapshot, store: SnapshotStore, identity: str) -> None:
    path = store.path_of(identity)
    assert path is not None
    size = bytes_text(path.stat().st_size)
    session.console.print(f"saved {identity} ({safe_text(str(near(path)))}, {size})")
    if found.seen == "nothing":
        why = (
            "this system does not say what processes have loaded"
            if found.command is not None
            else "give a command, `ciwrap snapshot save -- COMMAND`"
        )
        session.console.print(f"  no objects are known: {why}")
    else:
        session.console.print(f"  {plural(len(found.objects), 'object')} seen")


def _print(session: Session, lines: Iterable[str]) -> None:
    for line in lines:
        session.console.print(line)


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
        ("versions", {k: v for k, v in found.versions.items() if k not in OWN_LIBRARIES}),
        ("ciwrap's own libraries", {k: v for k, v in found.versions.items() if k in OWN_LIBRARIES}),
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
    ordered = sorted(found.objects, key=lambda one: (RANKS[one.kind], one.path))
    lines += [f"  {one.kind:<8} {one.path}  {one.identity}" for one in ordered]
    return [safe_text(line) for line in lines]


def difference_lines(found: Sequence[EnvironmentDifference]) -> list[str]:
    """Each difference in a line, and the command that would prove that it matters below it."""
    lines = []
    for one in found:
        sides = f"{one.golden}  ->  {one.run}"
        lines.append(f"{one.name} differs: {sides}  ({words_of_kind(one.kind)})")
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


def unpack_kept(archive: Path, target: Path) -> list[str]:
    """Unpacks kept files below `files/`. Raises UsageError if something lies there."""
    folder = target / "files"
    if folder.exists() and any(folder.iterdir()):
        raise UsageError("the folder is not empty; nothing is overwritten", file=folder)
    folder.mkdir(parents=True, exist_ok=True)
    return [f"files/{name}" for name in unpack_archive(archive, folder)]


def write_recipes(
    session: Session, name: str, found: Snapshot, folder: str | None, *, is_dry: bool
) -> int:
    """Writes the recipes of a snapshot, or shows them. name: as it was given. folder: where they
    are written; None for a folder of the project's.
    """
    identity = identity_of(found)
    root = project_root()
    target = root / ".ciwrap" / "restored" / identity if folder is None else Path(folder)
    texts = recipes(found)
    lacking = texts[NOT_RESTORED].splitlines()
    texts |= kept_lock_files(found, root)
    kept = None if name.startswith("golden:") else store_in(None, root).folder
    archive = None if kept is None else archive_of(kept, identity)
    refuse_others(target, texts)
    written = sorted(texts)
    for file in written if is_dry else ():
        session.console.print(f"--- {file}")
        for line in texts[file].splitlines():
            session.console.print(safe_text(hide_secrets(line)))
    if not is_dry:
        with writing(target):
            target.mkdir(parents=True, exist_ok=True)
            for file, text in texts.items():
                (target / file).write_bytes(text.encode("utf-8", "surrogateescape"))
        if archive is not None:
            written += unpack_kept(archive, target)
        session.console.print(
            f"written to {safe_text(str(near(target)))}: {', '.join(sorted(texts))}"
        )
        if archive is not None:
            session.console.print(f"  and {len(written) - len(texts)} kept files")
    session.console.print("not to be restored by any of them:")
    for line in lacking:
        session.console.print(f"  {safe_text(line)}")
    if is_dry:
        session.console.print("dry run: nothing was written")
    files = () if is_dry else tuple(written)
    document = SnapshotRestoreDocument(1, "snapshot-restore", identity, files, tuple(lacking))
    session.emit_record(document)
    return int(ExitCode.MATCH)


def verify_objects(session: Session, first: Snapshot, words: tuple[str, ...]) -> int:
    """Runs a command, the snapshot's own without any, and compares what it loads. Raises UsageError
    if there is nothing to compare or to run, CommandFailedError, NotAvailableError.
    """
    require_look()
    if not first.objects:
        raise UsageError(
            "the snapshot knows no objects, so there is nothing to compare",
            remedy="take one with `ciwrap run`, or `ciwrap snapshot save -- COMMAND`",
        )
    recorded = first.command or ""
    if not words and (not recorded or HIDDEN in recorded):
        raise UsageError("the snapshot has no whole command", remedy="give one after --")
    config = load_config_if_any(None)
    if not words:
        refuse_other_programs(recorded, _settings(recorded, config).working_dir)
    outcome, program = watched(words or recorded, config)
    if outcome.exit_code != 0:
        raise failure_of(outcome, so="so its objects were not compared")
    second = snapshot_of_program(project_root(), program, command=outcome.command, hashed=True)
    found = check_objects(first, second)
    code: Literal[0, 1, 3] = 0 if found.is_same else 1 if second.objects else 3
    print_line = session.console.print
    print_line(f"{len(found.equal)} of {plural(len(first.objects), 'object')} are the same builds")
    for before, after in found.other:
        texts = before.identity_beside(after), after.identity_beside(before)
        print_line(safe_text(f"  differs: {before.path}: {texts[0]}, now {texts[1]}"))
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


def watched(
    words: tuple[str, ...] | str, config: Config | None
) -> tuple[CommandOutcome, SeenProgram]:
    """Runs a command with the variables of the configuration, and looks at it meanwhile. One of
    words was given here, so it runs here; a text is one that was kept, and runs where it did.
    """
    watcher = ProgramWatcher(is_thorough=True)
    return run_command(_settings(words, config), watcher=watcher), watcher.seen


def _settings(words: tuple[str, ...] | str, config: Config | None) -> CommandSettings:
    usual = None if config is None else config.command
    if usual is None:
        return CommandSettings(words, Path.cwd())
    if isinstance(words, str):
        return replace(usual, words=words)
    return replace(usual, words=words, working_dir=Path.cwd())


def refuse_other_programs(command: str, folder: Path) -> None:
    """Raises UsageError for a command that names, by a path, another program than the environment
    has under that name: it would be compared with itself. folder: where the command runs.
    """
    for path in paths_of_programs(command):
        named = folder / Path(path).expanduser()
        active = shutil.which(named.name)
        if active is None or not named.is_file() or not os.access(named, os.X_OK):
            continue
        if named.parent.resolve() != Path(active).parent.resolve():
            raise UsageError(
                f"the snapshot's command runs {path}, whatever environment is active, and not"
                f" {active}",
                remedy=f"give the command after --, with {Path(path).name} alone",
            )


def find_snapshot(name: str, folder: str | None) -> Snapshot:
    """The snapshot that somebody means. Raises UsageError if there is none, CorruptFileError."""
    path = Path(name)
    if not name:
        raise UsageError("'' names no snapshot", remedy="give the beginning of its hash, or a file")
    if "/" in name or path.exists():
        found = snapshot_of_capture(path)
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
        config = load_config_if_any(None)
        goldens = SnapshotStore.of_goldens(root / "golden" if config is None else config.golden_dir)
        if goldens.contains(name):
            return goldens.load(name)
    return store.load(name)


def _of_golden(check: str, store: SnapshotStore) -> Snapshot:
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
    config = load_config_if_any(None)
    return Path.cwd() if config is None else config.root


def store_in(folder: str | None, root: Path) -> SnapshotStore:
    """The store in a folder that was given, else that of the project."""
    return SnapshotStore.of_project(root) if folder is None else SnapshotStore(Path(folder))
