"""`ciwrap prune`: delete goldens that nothing uses any more."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import config_options, json_option
from ciwrap.errors import UsageError
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.cli.session import Session
    from ciwrap.errors import CiwrapError
    from ciwrap.golden.unused import UnusedGolden
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

    Goldens of checks that another configuration of the repository has stay, if its golden folder is
    the same one.

    Which goldens no test uses is found out by running all tests; this takes what the last runs
    noted, as long as the project's files are those that ran. A golden that has changed since is
    kept.
    """
    from ciwrap.cli.json_documents import PruneDocument
    from ciwrap.cli.load_project import find_project
    from ciwrap.report.text import safe_text

    project = find_project(config_path, golden_dir)
    found = _look(project)
    console = session.console
    for line in found.said:
        console.print(safe_text(line))
    binaries = [project.goldens.at(one.place).shown(one.name) for one in found.goldens]
    binaries += map(str, found.ensembles)
    for path in (*binaries, *found.snapshots):
        console.print(f"unused  {safe_text(path)}")
    if not (binaries or found.is_other):
        console.print("no golden is known to be unused (run all tests to find out)")
    count = len(binaries) + len(found.snapshots)
    deleted: list[str] = []
    is_done = not dry_run and count > 0 and (yes or _is_wanted(count))
    if is_done:
        # While somebody was asked, another branch may have been checked out.
        now = found if yes else _look(find_project(config_path, golden_dir))
        deleted = _delete(project, found.also_in(now))
    for path in deleted:
        console.print(f"deleted  {safe_text(path)}")
    for path in sorted({*binaries, *found.snapshots}.difference(deleted)) if is_done else ():
        console.print(f"kept  {safe_text(path)}: it is no longer known to be unused")
    session.emit_record(
        PruneDocument(1, "prune", dry_run, tuple(binaries), tuple(deleted), found.snapshots)
    )
    return 0


class _Found(Struct, frozen=True, kw_only=True):
    """What nothing uses. said: lines about what is left as it is. is_other: whether a list of
    unused goldens is of other tests than there are now.
    """

    goldens: tuple[UnusedGolden, ...]
    ensembles: tuple[Path, ...]
    snapshots: tuple[str, ...]
    said: tuple[str, ...]
    is_other: bool

    def also_in(self, other: _Found) -> _Found:
        return replace(
            self,
            goldens=tuple(one for one in self.goldens if one in other.goldens),
            ensembles=tuple(one for one in self.ensembles if one in other.ensembles),
            snapshots=tuple(one for one in self.snapshots if one in other.snapshots),
        )


def _look(project: Project) -> _Found:
    from ciwrap.errors import CorruptGoldenError
    from ciwrap.snapshot.store import SnapshotStore
    from ciwrap.snapshot.unused import used_snapshots

    said: list[str] = []
    of_tests, other = _unused_of_tests(project, said)
    known = _known_checks(project, said)
    of_checks = [] if known is None else _unused_of_checks(project, known, said)
    goldens = (*of_checks, *of_tests)
    if other is not None:
        said.append(other)
    snapshots: list[Path] = []
    try:
        used = used_snapshots(project.golden_dir, [one.place for one in goldens])
        snapshots = SnapshotStore.of_goldens(project.golden_dir).others(used)
    except CorruptGoldenError as error:
        said.append(f"snapshots stay: {error}")
    return _Found(
        goldens=goldens,
        ensembles=() if known is None else tuple(_unused_ensembles(project, known)),
        snapshots=tuple(map(str, snapshots)),
        said=tuple(said),
        is_other=other is not None,
    )


def _is_wanted(count: int) -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("there is nobody to ask; nothing was deleted", remedy="add --yes")
    return click.confirm(f"delete {count} of {count}?")


def _delete(project: Project, found: _Found) -> list[str]:
    """Returns what was deleted, in words."""
    from ciwrap.golden.listing import delete_ensemble, delete_goldens
    from ciwrap.golden.part_done import telling_what_is_done
    from ciwrap.snapshot.store import SnapshotStore
    from ciwrap.snapshot.unused import used_snapshots

    with telling_what_is_done("deleted") as deleted:
        delete_goldens(project.golden_dir, found.goldens, deleted)
        for one in found.ensembles:
            deleted.append(str(delete_ensemble(one)))
        if found.snapshots:
            # Goldens that have come since, and those that stayed after all, name some, too.
            used = used_snapshots(project.golden_dir)
            others = SnapshotStore.of_goldens(project.golden_dir).remove_others(used)
            deleted += map(str, others)
    return deleted


def _known_checks(project: Project, said: list[str]) -> set[str] | None:
    """Names of all checks that configurations with this golden folder have; None where nobody can
    tell: without a configuration, or where one of them cannot be read, of which `said` takes a
    line.
    """
    from ciwrap.errors import ConfigError
    from ciwrap.review.other_configs import checks_of_others

    if project.config is None:
        return None
    try:
        return {check.name for check in project.config.checks} | checks_of_others(project)
    except ConfigError as error:
        said.append(
            f"goldens of checks stay: {error}; nobody can tell which of them another configuration"
            " uses"
        )
        return None


def _unused_ensembles(project: Project, known: set[str]) -> list[Path]:
    """Ensembles of checks that no configuration knows. One of a check that names no runs yet may
    have been made a moment ago.
    """
    from ciwrap.golden.paths import ensemble_orphans

    return list(ensemble_orphans(project.golden_dir, known).values())


def _unused_of_checks(project: Project, known: set[str], said: list[str]) -> list[UnusedGolden]:
    """Goldens of checks that no configuration knows. said: takes a line on each of which
    nobody knows the name, so that it cannot be asked for.
    """
    from ciwrap.golden.names import golden_orphans
    from ciwrap.golden.unused import UnusedGolden

    found = []
    for name, path in golden_orphans(project.golden_dir, known).items():
        if project.store.path(name) == path:
            found.append(UnusedGolden("", name, project.store.root_of(name)))
        else:
            said.append(
                f"left as it is  {path}: its manifest cannot be read, so nobody knows of which"
                " check it is; fix it, or remove it"
            )
    return found


def _unused_of_tests(project: Project, said: list[str]) -> tuple[list[UnusedGolden], str | None]:
    """What test runs found to be unused; and, if they ran other tests, a line that says so.

    said: takes lines on files of which nobody knows what goldens they hold.
    """
    from ciwrap.golden.listing import stored_places
    from ciwrap.golden.unused import read_unused
    from ciwrap.report.text import plural
    from ciwrap.review.project_state import other_state_words, state_of

    faults: list[CiwrapError] = []
    stored = set(stored_places(project.golden_dir, faults))
    said += [f"left as it is  {fault}" for fault in faults]
    noted = read_unused(project.root)
    there = [] if noted is None else [one for one in noted.unused if one.place in stored]
    if noted is None or not there:
        return [], None
    why = other_state_words(noted.state, state_of(project))
    if why is not None:
        what = f"{plural(len(there), 'golden')} that no test used"
        return [], f"kept  {what}: {why}; run all tests, then prune"
    found = []
    for one in there:
        store = project.goldens.at(one.place)
        if one.root is None:
            said.append(
                f"left as it is  {store.shown(one.name)}: no test used it, but it is damaged, so"
                " nobody knows whether it has changed since; fix it, or remove it"
            )
        elif store.root_of(one.name) == one.root:
            found.append(one)
    return found, None
