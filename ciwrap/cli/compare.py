"""`ciwrap compare`: two files or folders against each other, the data of both at hand."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.cli.compare_options import (
    history_options,
    own_files,
    refuse_contradictions,
    refuse_list_among_outputs,
    refuse_same_files,
    refuse_with_fingerprints,
    refuse_without_folders,
    refuse_writing_over,
)
from ciwrap.cli.history import compare_sides, with_layout_of
from ciwrap.cli.options import (
    json_detail_option,
    json_option,
    report_option,
    resource_options,
    verbose_option,
)
from ciwrap.cli.rules import RuleOptions, rule_options
from ciwrap.errors import CiwrapError, InterruptedCallError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ciwrap.cli.session import Session
    from ciwrap.compare.ending import Ending
    from ciwrap.compare.engines import Pool
    from ciwrap.model import CheckResult, Message
    from ciwrap.readers.layout import FoundOutputs


@click.command(name="compare", short_help="Compare two files or folders with each other.")
@click.argument("golden", metavar="A", type=click.Path())
@click.argument("new", metavar="B", type=click.Path())
@rule_options
@history_options
@json_option
@json_detail_option
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

    A and B can be captures, too (RUN.tree, or a folder that holds nothing but .ciwrap.tree): then
    what trees alone settle is compared. Without bounds the numbers have to be equal, or within the
    bound that A was captured with. A value v of B differs from g of A unless
    |v - g| <= atol + rtol * |g|. In folders, files are paired by iteration, rank and name; captures
    (`ciwrap capture`) save most of the reading.

    Exit codes: 0 match, 1 differ, 2 usage, 3 could not compare.
    """
    refuse_contradictions(history)
    refuse_same_files(session, history)
    if history["executor"] is None:
        return _coordinate(session, golden, new, chosen, history, None)
    from ciwrap.compare.engines import open_pool

    with open_pool(history["executor"], history["scheduler"], _warn) as pool:
        # None: this process has served as a worker, and is done.
        return 0 if pool is None else _coordinate(session, golden, new, chosen, history, pool)


def _warn(words: str) -> None:
    print(f"warning: {words}", file=sys.stderr, flush=True)


def _coordinate(
    session: Session,
    golden: str,
    new: str,
    chosen: RuleOptions,
    history: Mapping[str, Any],
    pool: Pool | None,
) -> int:
    """The command in the process that tells the result, which may be told to end."""
    from ciwrap.cli.main import INTERRUPTED
    from ciwrap.compare.ending import Ending
    from ciwrap.interrupts import endings_call

    told_to_end = Ending()
    try:
        with endings_call(told_to_end.tell):
            return _compare(session, golden, new, chosen, history, pool, told_to_end)
    except (KeyboardInterrupt, InterruptedCallError):
        if pool is not None:
            # Else workers at work would be waited for.
            print("interrupted", file=sys.stderr, flush=True)
            pool.end(INTERRUPTED)
        raise


def _compare(
    session: Session,
    golden: str,
    new: str,
    chosen: RuleOptions,
    history: Mapping[str, Any],
    pool: Pool | None,
    told_to_end: Ending,
) -> int:
    from ciwrap.captures.fingerprints import fingerprint_of
    from ciwrap.cli.progress import progress_bar
    from ciwrap.compare.ending import EndableProgress
    from ciwrap.model import Message, MessageLevel, RunResult

    started = time.monotonic()
    ours, theirs = Path(golden), Path(new)
    prints = [fingerprint_of(path) for path in (ours, theirs)]
    chosen, note = _chosen_for((ours, theirs), prints, chosen, history)
    sides = _outputs_of((ours, theirs), prints, chosen, history)
    if session.writes_documents:
        refuse_writing_over(session, sides, _captures((ours, theirs), history))
    offset = history["offset"]
    if offset:
        sides = [
            one if isinstance(one, Path) else one.later(max(step, 0))
            for one, step in zip(sides, (offset, -offset), strict=True)
        ]
    with progress_bar() as bar:
        ending = compare_sides(
            (ours, theirs),
            (sides[0], sides[1]),
            chosen,
            history,
            pool=pool,
            has_documents=session.writes_documents,
            is_verbose=session.verbose,
            is_brief=session.json_detail != "all",
            resources=session.resources,
            progress=EndableProgress(bar, told_to_end),
        )
    result = ending.result
    code = session.emit(
        RunResult(
            verdict=result.verdict,
            checks=(result,),
            kind=session.kind,
            messages=(
                *([] if note is None else [Message(MessageLevel.NOTE, note)]),
                *_shared_files((golden, new), sides),
                *_other_processes(history),
                *([_offset_note(offset, result)] if offset else ()),
                *(() if result.verdict.is_good else _environment_note((ours, theirs), history)),
            ),
            seconds=time.monotonic() - started,
        ),
        Path.cwd(),
    )
    if ending.tidy is not None:
        ending.tidy()
    if ending.exit is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        ending.exit(code)
    return code


def _chosen_for(
    paths: tuple[Path, Path],
    prints: Sequence[Path | None],
    chosen: RuleOptions,
    history: Mapping[str, Any],
) -> tuple[RuleOptions, str | None]:
    """The options as they hold for these two, and what is to be told of that.

    Raises UsageError for a file beside a folder, and for options that are for folders alone.
    """
    is_folder = [
        one is not None or (path.is_dir() and not chosen.is_store(path))
        for path, one in zip(paths, prints, strict=True)
    ]
    if is_folder[0] != is_folder[1] and all(path.exists() for path in paths):
        raise UsageError(
            f"{paths[0]} is a {'folder' if is_folder[0] else 'file'}, {paths[1]} is not",
            remedy="give two files or two folders",
        )
    if is_folder[0]:
        if history["list_path"] is not None:
            refuse_list_among_outputs(paths, history["list_path"])
        return chosen, None
    refuse_without_folders(history)
    return chosen.for_pair(paths)


def _outputs_of(
    paths: tuple[Path, Path],
    prints: Sequence[Path | None],
    chosen: RuleOptions,
    history: Mapping[str, Any],
) -> list[FoundOutputs | Path]:
    """What is to be compared; of a run of which there is a capture alone, that."""
    if any(prints):
        refuse_with_fingerprints(history, prints)
        chosen = with_layout_of(chosen, prints)
    names = ("capture_a", "capture_b", "journal_path")
    own = [history[name] for name in names if history[name] is not None]
    return [
        # Two single arrays are held against each other whatever their files are called.
        one
        or chosen.outputs_of(
            path,
            beside=(other,),
            leave_out=own_files(path, *own) if own else (),
            name=paths[0].stem,
        )
        for path, other, one in zip(paths, paths[::-1], prints, strict=True)
    ]


def _captures(paths: tuple[Path, Path], history: Mapping[str, Any]) -> list[Path]:
    """Where captures of either run may lie."""
    from ciwrap.captures.listing import capture_paths

    given = [Path(history[name]) for name in ("capture_a", "capture_b") if history[name]]
    return [*given, *(one for path in paths for one in capture_paths(path))]


def _offset_note(offset: int, result: CheckResult) -> Message:
    """How iterations were paired, and which run's numbers they are called by."""
    from ciwrap.model import Message, MessageLevel

    compared = (one.id for one in result.variables)
    alone = (*result.missing_variables, *result.extra_variables, *result.ignored_variables)
    if all(one.iteration is None for one in (*compared, *alone)):
        text = "no iteration is known, which --offset needs"
        return Message(MessageLevel.WARNING, text)
    sign, named = ("+", "B's") if offset > 0 else ("-", "A's")
    text = (
        f"iteration i of A was compared with i {sign} {abs(offset)} of B; iterations are called"
        f" by {named} numbers"
    )
    return Message(MessageLevel.NOTE, text)


def _environment_note(paths: tuple[Path, Path], history: Mapping[str, Any]) -> Iterator[Message]:
    """What differs first between the environments that the captures of both runs know of."""
    from ciwrap.captures.fingerprints import capture_of
    from ciwrap.cli.snapshot_finding import of_capture
    from ciwrap.model import Message, MessageLevel
    from ciwrap.report.text import safe_text
    from ciwrap.snapshot.difference import compare_snapshots, words_of_kind

    given = (history["capture_a"], history["capture_b"])
    captures = [
        capture_of(path) if one is None else Path(one)
        for path, one in zip(paths, given, strict=True)
    ]
    if history["no_captures"] or None in captures:
        return
    try:
        a, b = (of_capture(one) for one in captures if one is not None)
    except CiwrapError:
        return  # the comparison has told what is wrong with a capture
    if a is None or b is None or "nothing" in (a.seen, b.seen):
        return
    found = compare_snapshots(a, b)
    if found:
        first, more = found[0], len(found) - 1
        text = (
            f"their captures tell of different environments: {first.name} is {first.golden} in A,"
            f" {first.run} in B ({words_of_kind(first.kind)})"
            + (f", and {more} more" if more else "")
            + f"; `ciwrap snapshot diff {captures[0]} {captures[1]}` shows it"
        )
        yield Message(MessageLevel.NOTE, safe_text(text))


def _other_processes(history: Mapping[str, Any]) -> Iterator[Message]:
    """A warning where mpiexec started several of us, and each compares everything."""
    from ciwrap.compare.mpi_job import process_count
    from ciwrap.model import Message, MessageLevel

    count = process_count()
    if count > 1 and history["executor"] != "mpi":
        text = (
            f"this is one of {count} processes that mpiexec started, and each of them compares"
            " everything; add --executor mpi to share the work"
        )
        yield Message(MessageLevel.WARNING, text)


def _shared_files(
    names: tuple[str, str], sides: Sequence[FoundOutputs | Path]
) -> tuple[Message, ...]:
    """A warning of files that are on both sides, under whatever names: they match whatever they
    hold.
    """
    from ciwrap.catalog.files import inode_of, inodes_of
    from ciwrap.model import Message, MessageLevel
    from ciwrap.report.text import plural, safe_name

    # The comparison has told of what is gone.
    ours, theirs = (
        {inode_of(one)} if isinstance(one, Path) else inodes_of(one.files) for one in sides
    )
    shared = len(ours & theirs)
    if not shared:
        return ()
    one, other = (safe_name(name) for name in names)
    what = "was compared with itself" if shared == 1 else "were compared with themselves"
    text = (
        f"{plural(shared, 'file')} of {one} {what}: {other} has the same (a link, or one folder"
        " twice); give two runs"
    )
    return (Message(MessageLevel.WARNING, text),)
