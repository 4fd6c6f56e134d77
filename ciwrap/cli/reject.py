"""`ciwrap reject`: throw pending goldens away, and note that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import config_options, json_option
from ciwrap.errors import CorruptGoldenError, ExitCode, UsageError

if TYPE_CHECKING:
    from ciwrap.cli.session import Session
    from ciwrap.errors import CiwrapError


@click.command(name="reject", short_help="Throw pending goldens away.")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option("--all", "is_all", is_flag=True, help="All that wait.")
@click.option("-m", "--reason", metavar="TEXT", help="Why; noted in .ciwrap/rejected.jsonl.")
@config_options
@json_option
@click.pass_obj
def command(
    session: Session,
    patterns: tuple[str, ...],
    is_all: bool,
    reason: str | None,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Throw pending goldens away; the goldens stay as they are.

    PATTERN is the name of a check, test, file or folder, or has the wild cards * and ?.
    """
    from ciwrap.cli.json_documents import RejectDocument
    from ciwrap.cli.load_project import find_project
    from ciwrap.report.text import safe_name, safe_text
    from ciwrap.review.reject_pending import reject_all

    if bool(patterns) == is_all:
        raise UsageError("name what to reject, or say --all")
    project = find_project(config_path, golden_dir)
    faults: list[CiwrapError] = []
    goldens = project.pending.select(patterns, faults if is_all else None)
    with project.indexed():
        reject_all(project, goldens, reason)
        names = [golden.check for golden in goldens]
        for name in names:
            session.console.print(f"rejected  {safe_name(name)}")
        damaged = [one for one in faults if isinstance(one, CorruptGoldenError)]
        for fault in damaged:
            project.pending.remove_damaged(fault)
            session.console.print(f"deleted  {safe_text(fault.file)} (damaged)")
    # What a later release has written is no damage: whoever has that release can decide.
    of_later = [one for one in faults if one not in damaged]
    for one in of_later:
        session.console.print(f"left as it is  {one}")
    if not (names or faults):
        session.console.print("nothing waits for review")
    session.emit_record(RejectDocument(1, "reject", reason, tuple(names)))
    return int(ExitCode.NOT_COMPARABLE) if of_later else 0
