"""`ciwrap compare`: two files or folders against each other, the data of both at hand."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.cli.capture import own_files
from ciwrap.cli.history import (
    compare_sides,
    history_options,
    pool_of,
    refuse_spread,
    refuse_without_folders,
)
from ciwrap.cli.options import (
    json_option,
    report_option,
    resource_options,
    verbose_option,
)
from ciwrap.cli.rules import RuleOptions, rule_options
from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ciwrap.cli.session import Session
    from ciwrap.compare.engines import Pool
    from ciwrap.model import Message
    from ciwrap.readers.layout import FoundOutputs


@click.command(name="compare", short_help="Compare two files or folders with each other.")
@click.argument("golden", metavar="A", type=click.Path())
@click.argument("new", metavar="B", type=click.Path())
@rule_options
@history_options
@json_option
@report_option
@verbose_option
@resource_options
@click.pass_obj
def command(
    session: Session,
    /,
    golden: str,
    new: str,
    chosen: RuleOptions,
    **history: Any,
) -> int:
    """Compare file or folder A with B, element by element where trees leave any doubt.

    Without bounds the numbers have to be equal, or within the bound that folder A was captured
    with. A value v of B differs from g of A unless |v - g| <= atol + rtol * |g|. In folders, files
    are paired by iteration, rank and name; captures (`ciwrap capture`) save most of the reading.

    Exit codes: 0 match, 1 differ, 2 usage, 3 could not compare.
    """
    refuse_spread(history)
    with pool_of(history) as (pool, has_served):
        return 0 if has_served else _compare(session, golden, new, chosen, history, pool)


def _compare(
    session: Session,
    golden: str,
    new: str,
    chosen: RuleOptions,
    history: Mapping[str, Any],
    pool: Pool | None,
) -> int:
    """The command itself, in the process that tells the result."""
    from ciwrap.cli.progress import progress_bar
    from ciwrap.model import RunResult
    from ciwrap.readers.registry import is_output_folder

    started = time.monotonic()
    ours, theirs = Path(golden), Path(new)
    is_folder = [
        path.is_dir() and not is_output_folder(path, chosen.format_name) for path in (ours, theirs)
    ]
    if ours.exists() and theirs.exists() and is_folder[0] != is_folder[1]:
        raise UsageError(
            f"{golden} is a {'folder' if is_folder[0] else 'file'}, {new} is not",
            remedy="give two files or two folders",
        )
    if not is_folder[0]:
        refuse_without_folders(history)
    own = (history["capture_a"], history["capture_b"], history["journal_path"])
    sides = [
        # Two single arrays are held against each other whatever their files are called.
        chosen.outputs_of(path, leave_out=own_files(path, *own), name=ours.stem)
        for path in (ours, theirs)
    ]
    with progress_bar() as progress:
        ending = compare_sides(
            (ours, theirs),
            (sides[0], sides[1]),
            chosen,
            history,
            pool=pool,
            has_documents=session.writes_documents,
            resources=session.resources,
            progress=progress,
        )
    result = ending.result
    code = session.emit(
        RunResult(
            verdict=result.verdict,
            checks=(result,),
            kind=session.kind,
            messages=_shared_files((golden, new), sides),
            seconds=time.monotonic() - started,
        ),
        Path.cwd(),
    )
    if ending.exit is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        ending.exit(code)
    return code


def _shared_files(names: tuple[str, str], sides: Sequence[FoundOutputs]) -> tuple[Message, ...]:
    """A warning of files that are on both sides, under whatever names: they match whatever they
    hold.
    """
    from ciwrap.catalog.files import inodes_of
    from ciwrap.model import Message, MessageLevel
    from ciwrap.report.text import plural, safe_name

    # The comparison has told of what is gone.
    shared = len(inodes_of(sides[0].files) & inodes_of(sides[1].files))
    if not shared:
        return ()
    one, other = (safe_name(name) for name in names)
    what = "was compared with itself" if shared == 1 else "were compared with themselves"
    text = (
        f"{plural(shared, 'file')} of {one} {what}: {other} has the same (a link, or one folder"
        " twice); give two runs"
    )
    return (Message(MessageLevel.WARNING, text),)
