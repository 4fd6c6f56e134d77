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
    from ciwrap.snapshot.records import Snapshot
    from ciwrap.snapshot.store import SnapshotStore

_path_option = click.option(
    "--path",
    "folder",
    metavar="FOLDER",
    type=click.Path(),
    help="Where snapshots are kept; default: .ciwrap/snapshots of the project.",
)


@click.group(
    name="snapshot", no_args_is_help=False, short_help="Keep, compare and restore environments."
)
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

    With a COMMAND, it is run in this folder, with the variables and the time limit of `run`, and
    its processes are looked at for the objects that they load; those that live for less than 25 ms
    may be missed. Without one, nothing is known of objects.

    Exit codes: 0 done, 2 usage, 3 the command failed.
    """
    from ciwrap.cli.load_project import load_config_if_any
    from ciwrap.cli.snapshot_files import keep_files, snapshot_lines
    from ciwrap.cli.snapshot_finding import store_in, watched
    from ciwrap.snapshot.program import require_look
    from ciwrap.snapshot.take import snapshot_of_machine, snapshot_of_program

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
        from ciwrap.running.run_command import failure_of

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
    from ciwrap.cli.snapshot_finding import find_snapshot

    session.kind = "snapshot"
    found = find_snapshot(name, folder)
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
    from ciwrap.cli.snapshot_finding import find_snapshot
    from ciwrap.snapshot.difference import compare_snapshots
    from ciwrap.snapshot.store import identity_of

    session.kind = "snapshot"
    a, b = find_snapshot(first, folder), find_snapshot(second, folder)
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
    from ciwrap.cli.snapshot_finding import find_snapshot
    from ciwrap.cli.snapshot_restore import verify_objects, write_recipes

    session.kind = "snapshot"
    found = find_snapshot(name, None)
    if verify:
        if dry_run or folder is not None:
            raise UsageError("--verify writes no files: leave the other options out")
        return verify_objects(session, found, words)
    if words:
        raise UsageError("a command is run with --verify alone")
    return write_recipes(session, name, found, folder, is_dry=dry_run)


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
