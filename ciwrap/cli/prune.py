"""`ciwrap prune`: delete goldens that nothing uses any more."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import config_options, json_option
from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from ciwrap.cli.session import Session
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
    """Delete goldens of checks that the configuration no longer has, and of tests that are gone.

    Which goldens no test uses is found out by running all tests; this takes what the last runs
    noted. A golden that has changed since is kept.
    """
    from ciwrap.cli.json_documents import PruneDocument
    from ciwrap.cli.load_project import find_project
    from ciwrap.golden.listing import delete_goldens
    from ciwrap.report.text import safe_text

    project = find_project(config_path, golden_dir)
    unused = _unused(project)
    binaries = [_binary(project, one) for one in unused]
    console = session.console
    for binary in binaries:
        console.print(f"unused  {safe_text(binary)}")
    if not binaries:
        console.print("no golden is known to be unused (run all tests, to find out)")
    is_sure = yes or dry_run or not unused
    if not is_sure:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("nobody is there to be asked; nothing was deleted", remedy="add --yes")
        is_sure = click.confirm(f"delete {len(unused)} of {len(unused)}?")
    deleted = delete_goldens(project.golden_dir, unused) if is_sure and not dry_run else []
    session.emit_record(PruneDocument(1, "prune", dry_run, tuple(binaries), tuple(deleted)))
    for path in deleted:
        console.print(f"deleted  {safe_text(path)}")
    return 0


def _binary(project: Project, one: Place) -> str:
    return project.goldens.at(one).shown(one.name)


def _unused(project: Project) -> list[Place]:
    """What the configuration does not know, and what test runs found to be unused."""
    from ciwrap.golden.listing import stored_places
    from ciwrap.golden.places import Place
    from ciwrap.golden.unused import read_unused

    found = []
    if project.config is not None:
        known = (check.name for check in project.config.checks)
        found += [Place("", name) for name in project.store.orphans(known)]
    stored = set(stored_places(project.golden_dir))
    found += [
        one.place
        for one in read_unused(project.root)
        if one.place in stored and project.goldens.at(one.place).root_of(one.name) == one.root
    ]
    return found
