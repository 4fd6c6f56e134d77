"""`ciwrap snapshot restore`: writing recipes, and comparing an environment built from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ciwrap.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from ciwrap.cli.session import Session
    from ciwrap.snapshot.records import Snapshot


def write_recipes(
    session: Session, name: str, found: Snapshot, folder: str | None, *, is_dry: bool
) -> int:
    """Writes the recipes of a snapshot, or shows them. name: as it was given. folder: where they
    are written; None for a folder of the project's.
    """
    from ciwrap.cli.load_project import near
    from ciwrap.cli.snapshot_documents import SnapshotRestoreDocument
    from ciwrap.cli.snapshot_files import (
        kept_lock_files,
        refuse_others,
        unpack_kept,
        write_texts,
    )
    from ciwrap.cli.snapshot_finding import project_root, store_in
    from ciwrap.hidden import hide_secrets
    from ciwrap.report.text import safe_text
    from ciwrap.snapshot.kept_files import archive_of
    from ciwrap.snapshot.restore import NOT_RESTORED, recipes
    from ciwrap.snapshot.store import identity_of

    identity = identity_of(found)
    root = project_root()
    target = root / ".ciwrap" / "restored" / identity if folder is None else Path(folder)
    locks = kept_lock_files(found, root)
    texts = recipes(found)
    lacking = texts[NOT_RESTORED].splitlines()
    texts |= locks
    archive = (
        None if name.startswith("golden:") else archive_of(store_in(None, root).folder, identity)
    )
    refuse_others(target, texts)
    written = sorted(texts)
    for file in written if is_dry else ():
        session.console.print(f"--- {file}")
        for line in texts[file].splitlines():
            session.console.print(safe_text(hide_secrets(line)))
    if not is_dry:
        write_texts(target, texts)
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
    session.emit_record(
        SnapshotRestoreDocument(
            1, "snapshot-restore", identity, () if is_dry else tuple(written), tuple(lacking)
        )
    )
    return int(ExitCode.MATCH)


def verify_objects(session: Session, first: Snapshot, words: tuple[str, ...]) -> int:
    """Runs a command, the snapshot's own without any, and compares what it loads. Raises UsageError
    if there is nothing to compare or to run, CommandFailedError, NotAvailableError.
    """
    from ciwrap.cli.load_project import load_config_if_any
    from ciwrap.cli.snapshot_documents import SnapshotVerifyDocument
    from ciwrap.cli.snapshot_finding import project_root, watched
    from ciwrap.hidden import HIDDEN
    from ciwrap.report.text import plural, safe_text
    from ciwrap.running.run_command import failure_of
    from ciwrap.snapshot.program import require_look
    from ciwrap.snapshot.restore import check_objects
    from ciwrap.snapshot.store import identity_of
    from ciwrap.snapshot.take import snapshot_of_program

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
    outcome, program = watched(words or recorded, config)
    if outcome.exit_code != 0:
        raise failure_of(outcome, so="so its objects were not compared")
    second = snapshot_of_program(project_root(), program, command=outcome.command, hashed=True)
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
