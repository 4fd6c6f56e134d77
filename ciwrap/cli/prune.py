"""`ciwrap prune`: delete goldens that nothing uses any more."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import config_options, json_option
from ciwrap.errors import CorruptGoldenError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.cli.session import Session
    from ciwrap.errors import CiwrapError
    from ciwrap.golden.places import Place
    from ciwrap.review.project import Project


@click.command(name="prune", short_help="Delete goldens that nothing uses any more.")
@click.option("-y", "--yes", is_flag=True, help="Delete without asking.")
@click.option("--dry-run", is_flag=True, help="Say what would be deleted.")
@config_options
@json_option
@click.pass_obj
def command(
    session: Session,
    yes: bool,
    dry_run: bool,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Delete goldens and ensembles of checks that the configuration no longer has, and goldens of
    tests that are gone; and snapshots beside goldens that none of those that stay was made with.

    Which goldens no test uses is found out by running all tests; this takes what the last runs
    noted. A golden that has changed since is kept.
    """
    from ciwrap.cli.json_documents import PruneDocument
    from ciwrap.cli.load_project import find_project
    from ciwrap.golden.listing import delete_ensemble, delete_goldens
    from ciwrap.report.text import safe_text
    from ciwrap.snapshot.store import SnapshotStore
    from ciwrap.snapshot.unused import used_snapshots

    project = find_project(config_path, golden_dir)
    faults: list[CiwrapError] = []
    unused = _unused(project, faults)
    ensembles = _unused_ensembles(project)
    binaries = [*(_binary(project, one) for one in unused), *map(str, ensembles)]
    console = session.console
    for fault in faults:
        console.print(f"left as it is  {safe_text(fault)}")
    snapshots = SnapshotStore.of_goldens(project.golden_dir)
    try:
        used = used_snapshots(project.golden_dir, unused)
        left = [str(path) for path in snapshots.others(used)]
    except CorruptGoldenError as error:
        used, left = frozenset(), []
        console.print(f"snapshots stay: {safe_text(error)}")
    for one in (*binaries, *left):
        console.print(f"unused  {safe_text(one)}")
    if not binaries:
        console.print("no golden is known to be unused (run all tests, to find out)")
    count = len(binaries) + len(left)
    is_sure = yes or dry_run or not count
    if not is_sure:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("nobody is there to be asked; nothing was deleted", remedy="add --yes")
        is_sure = click.confirm(f"delete {count} of {count}?")
    deleted: list[str] = []
    if is_sure and not dry_run:
        deleted = delete_goldens(project.golden_dir, unused)
        deleted += [str(delete_ensemble(one)) for one in ensembles]
        if left:
            # A golden that has come since names one, too.
            others = snapshots.remove_others(used | used_snapshots(project.golden_dir))
            deleted += [str(one) for one in others]
    session.emit_record(
        PruneDocument(1, "prune", dry_run, tuple(binaries), tuple(deleted), tuple(left))
    )
    for path in deleted:
        console.print(f"deleted  {safe_text(path)}")
    return 0


def _binary(project: Project, one: Place) -> str:
    return project.goldens.at(one).shown(one.name)


def _unused_ensembles(project: Project) -> list[Path]:
    """Ensembles of checks that the configuration does not know. One of a check that names no runs
    yet may have been made a moment ago.
    """
    from ciwrap.golden.paths import ensemble_orphans

    if project.config is None:
        return []
    known = [check.name for check in project.config.checks]
    return list(ensemble_orphans(project.golden_dir, known).values())


def _unused(project: Project, faults: list[CiwrapError]) -> list[Place]:
    """What the configuration does not know, and what test runs found to be unused.

    faults: takes the errors of files of which nobody knows what goldens they hold.
    """
    from ciwrap.golden.listing import stored_places
    from ciwrap.golden.places import Place
    from ciwrap.golden.unused import read_unused

    found = []
    if project.config is not None:
        known = (check.name for check in project.config.checks)
        found += [Place("", name) for name in project.store.orphans(known)]
    stored = set(stored_places(project.golden_dir, faults))
    found += [
        one.place
        for one in read_unused(project.root)
        if one.place in stored and project.goldens.at(one.place).root_of(one.name) == one.root
    ]
    return found
