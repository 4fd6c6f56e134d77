"""`ciwrap reject`: throw pending goldens away, and note that."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import config_options, json_option
from ciwrap.errors import UsageError, WriteFailedError

if TYPE_CHECKING:
    from ciwrap.cli.proposals import Workplace
    from ciwrap.cli.session import Session
    from ciwrap.golden.pending import PendingGolden

_LOG_NAME = "rejected.jsonl"


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
    from ciwrap.cli.proposals import find_workplace
    from ciwrap.report.text import safe_name

    if bool(patterns) == is_all:
        raise UsageError("name what to reject, or say --all")
    place = find_workplace(config_path, golden_dir)
    goldens = place.select(patterns)
    for golden in goldens:
        reject_one(place, golden, reason)
    place.pending.write_index(place.golden_dir_text)
    names = [golden.check for golden in goldens]
    session.emit_record(RejectDocument(1, "reject", reason, tuple(names)))
    for name in names:
        session.console.print(f"rejected  {safe_name(name)}")
    if not names:
        session.console.print("nothing waits for review")
    return 0


def reject_one(place: Workplace, golden: PendingGolden, reason: str | None) -> None:
    """Raises WriteFailedError, LockBusyError."""
    from ciwrap.environment import git_user

    entry = {
        "when": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "who": git_user(place.root),
        "why": reason,
        "check": golden.check,
        "root": golden.root,
        "base_root": golden.proposal.base_root,
        "commit": golden.proposal.commit,
    }
    path = place.pending.folder.parent / _LOG_NAME
    try:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")
    except OSError as error:
        raise WriteFailedError(error.strerror or str(error), file=path) from error
    place.pending.discard(golden.place)
