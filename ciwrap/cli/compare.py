"""`ciwrap compare`: two files, or two folders as runs, against each other.

The bounds come from a configured check or from the options, as those of `ciwrap capture` do.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.errors import CiwrapError, InterruptedCallError, UsageError
from ciwrap.base.processes import endings_call
from ciwrap.check.findings import unless_nothing
from ciwrap.check.two_sides import HistoryOptions
from ciwrap.cli.commands import command, section, verbosity_options
from ciwrap.cli.main import INTERRUPTED
from ciwrap.cli.options import (
    common_option,
    json_detail_option,
    json_option,
    junit_option,
    markdown_option,
    report_option,
    resource_options,
)
from ciwrap.cli.rule_options import RuleOptions, rule_options
from ciwrap.cli.terminal import progress_bar
from ciwrap.formats.source_files import inode_of, inodes_of
from ciwrap.model import (
    Message,
    MessageLevel,
    RunResult,
)
from ciwrap.project.outputs import is_recording
from ciwrap.recording.recorded_run import (
    capture_of,
    files_beside_journals,
    fingerprint_of,
    open_capture,
    snapshot_of_capture,
)
from ciwrap.report.text import plural, safe_name, safe_text
from ciwrap.runs.capture_index import read_index
from ciwrap.runs.compare_runs import compare_histories
from ciwrap.runs.differences import DifferenceList
from ciwrap.runs.sides import capture_paths, open_fingerprint, open_run
from ciwrap.runs.spread import Spread, open_pool, process_count
from ciwrap.runs.units import (
    EndableProgress,
    Ending,
    has_name_of_list,
    list_named,
    remove_former_lists,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from ciwrap.base.progress import Progress
    from ciwrap.cli.main import Session
    from ciwrap.formats.find_outputs import FoundOutputs
    from ciwrap.golden.trees import Resources
    from ciwrap.model import CheckResult
    from ciwrap.runs.sides import Run
    from ciwrap.runs.spread import Pool

_F = TypeVar("_F", bound="Callable[..., Any]")
_SMALLEST_MEMORY_BYTES = 1 << 20
# Options that say how captures are used.
_OF_CAPTURES = ("capture_a", "capture_b", "verify_checksums")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _memory(ctx: click.Context, param: click.Parameter, value: str) -> int:
    match = re.fullmatch(r"(\d{1,12})\s*([kmg]?)(?:i?b)?", value.strip().lower())
    if match is None:
        raise click.BadParameter("write it as 256M or 1G", ctx, param)
    count = int(match[1]) * _UNITS[match[2]]
    if count < _SMALLEST_MEMORY_BYTES:
        raise click.BadParameter("at least 1M is needed", ctx, param)
    return count


_pairing_options = section(
    "Iterations and lists",
    click.option(
        "--offset",
        type=int,
        default=0,
        metavar="N",
        help="Compare iteration i of A with i + N of B.",
    ),
    common_option,
    click.option(
        "--list",
        "list_path",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Write every differing value to FILE.csv or FILE.parquet.",
    ),
)
_capture_options = section(
    "Captures",
    click.option(
        "--capture-a",
        type=click.Path(),
        help="The capture of folder A; default: .ciwrap.tree inside, or A.tree beside.",
    ),
    click.option("--capture-b", type=click.Path(), help="The capture of folder B."),
    click.option("--no-captures", is_flag=True, help="Read all data, whatever captures there are."),
    click.option(
        "--verify-checksums",
        is_flag=True,
        help="Do not trust file times: check that the files are still those captured.",
    ),
)
_work_options = section(
    "Workers and memory",
    click.option(
        "--executor",
        metavar="NAME",
        help="Who compares: process, mpi, dask, or package.module:function, which returns a"
        " concurrent.futures.Executor; default: this process.",
    ),
    click.option(
        "--scheduler",
        metavar="FILE",
        help="What `dask scheduler --scheduler-file FILE` wrote, for --executor dask.",
    ),
    click.option(
        "--memory",
        "memory_bytes",
        default="256M",
        show_default=True,
        callback=_memory,
        metavar="SIZE",
        help="For the buffers that data are read into (folders).",
    ),
    click.option(
        "--silence",
        "silence_seconds",
        type=click.FloatRange(0.1),
        metavar="SECONDS",
        help="Stop, and report what is known, if nothing happens for this long; default: wait.",
    ),
    click.option(
        "--journal",
        "journal_path",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Keep the progress in FILE, to go on from there after a crash.",
    ),
    click.option("--resume", is_flag=True, help="Go on with the journal, if it already exists."),
)


def history_options(function: _F) -> _F:
    """What `compare` takes beside the rules: which runs, by what, and by whom."""
    return _pairing_options(_capture_options(_work_options(function)))


def _option(name: str) -> str:
    """What an option is called on the command line."""
    return "--" + name.removesuffix("_path").replace("_", "-")


def refuse_without_folders(history: Mapping[str, Any]) -> None:
    """Raises UsageError for options that single files have no use for."""
    for name in ("capture_a", "capture_b", "no_captures", "verify_checksums"):
        if history[name]:
            raise UsageError(f"{_option(name)} is for folders", remedy="give two folders")


def refuse_list_among_outputs(folders: Sequence[Path], list_path: str) -> None:
    """Raises UsageError for a list that the next comparison would take for an output."""
    for folder in folders:
        if own_files(folder, list_path):
            raise UsageError(
                f"--list would put {list_path} among the outputs of {folder}",
                remedy="write it beside the two runs",
            )


def refuse_same_files(session: Session, history: Mapping[str, Any]) -> None:
    """Raises UsageError where two things would be written to one file, the second over the first;
    then no document is written to that file either.
    """
    said = {
        "--journal": history["journal_path"],
        "--list": history["list_path"],
        **session.targets,
    }
    paths = {
        name: Path(os.path.realpath(value))
        for name, value in said.items()
        if value not in (None, "-")
    }
    for (one, path), (other, second) in combinations(paths.items(), 2):
        is_list = "--list" in (one, other) and path.parent == second.parent
        listed, beside = (path, second) if one == "--list" else (second, path)
        if path == second or (is_list and has_name_of_list(listed, beside)):
            for name in {one, other} & session.targets.keys():
                session.give_up(name)
            raise UsageError(
                f"{one} {said[one]} and {other} {said[other]} would be written to the same file",
                remedy="give each a name of its own",
            )


def refuse_writing_over(
    session: Session,
    inputs: Sequence[FoundOutputs | Path],
    captures: Sequence[Path],
    listed: str | None,
) -> None:
    """Raises UsageError where a document would be written over what is compared; then it is not
    written at all. inputs, captures: what is compared, and the captures that may be. listed: where
    differing elements go.
    """
    known = set().union(*(inodes_of(one.files) for one in inputs if not isinstance(one, Path)))
    alone = [one for one in inputs if isinstance(one, Path)]
    known |= {inode_of(path) for path in (*alone, *captures) if path.exists()}
    said = {**session.targets, "--list": listed}
    refused = {
        name: target
        for name, target in said.items()
        if target not in (None, "-") and Path(target).exists() and inode_of(Path(target)) in known
    }
    for name in refused:
        if name != "--list":
            session.give_up(name)
    for name, target in refused.items():
        raise UsageError(
            f"{name} would be written over {target}, which is compared", remedy="give another name"
        )


def refuse_with_fingerprints(history: Mapping[str, Any], prints: Sequence[Path | None]) -> None:
    """Raises UsageError for options that captures without data have no use for."""
    refused = ["no_captures", "list_path", "offset"]
    refused += ["capture_a"] if prints[0] else []
    refused += ["capture_b"] if prints[1] else []
    refused += ["verify_checksums"] if all(prints) else []
    for name in refused:
        if history[name]:
            option = _option(name)
            one = next(path for path in prints if path is not None)
            raise UsageError(
                f"{option}, but {one} is a capture without the run's data",
                remedy=f"compare without {option}, or where the data are",
            )


def refuse_captures(history: Mapping[str, Any], why: str) -> None:
    """Raises UsageError if a capture is to be used where it cannot be, for its trees are of the
    files as they are.
    """
    for name in _OF_CAPTURES:
        if history[name]:
            raise UsageError(
                f"{why}, which captures know nothing of",
                remedy=f"compare without {_option(name)}",
            )


def refuse_contradictions(history: Mapping[str, Any]) -> None:
    """Raises UsageError for options that say nothing without others, or beside them."""
    for name, needed in (("resume", "journal_path"), ("scheduler", "executor")):
        if history[name] and history[needed] is None:
            other = _option(needed)
            raise UsageError(f"--{name} needs {other}", remedy=f"give {other}")
    for name in _OF_CAPTURES:
        if history[name] and history["no_captures"]:
            raise UsageError(
                f"{_option(name)}, but --no-captures has all data read",
                remedy="leave out one of them",
            )


def own_files(folder: Path, *paths: Path | str) -> tuple[str, ...]:
    """Files of ours that lie inside the run, as patterns to leave out."""
    whole = Path(os.path.realpath(folder))
    files = [Path(os.path.realpath(path)) for path in paths]
    return tuple(file.relative_to(whole).as_posix() for file in files if file.is_relative_to(whole))


# Options that change what is found, beside the rules.
_DECIDING = ("no_captures", "verify_checksums", "common", "offset")


def with_layout_of(chosen: RuleOptions, prints: Sequence[Path | None]) -> RuleOptions:
    """The options with the layout that a fingerprint was captured with, unless one is given: a run
    with data is read in the same way. Raises the errors of `CaptureFile`.
    """
    if chosen.layout is not None or chosen.check is not None:
        return chosen

    for path in prints:
        if path is not None:
            with open_capture(path) as capture:
                chosen = replace(chosen, layout=read_index(capture).header.layout)
    return chosen


class HistoryEnding(Struct, frozen=True):
    """What is left to do once the result is out. tidy: removes lists of earlier comparisons, where
    one is written; raises WriteFailedError. exit: ends the process where it could not end by
    itself, since a worker hangs.
    """

    result: CheckResult
    tidy: Callable[[], None] | None
    exit: Callable[[int], None] | None = None


def compare_sides(
    paths: tuple[Path, Path],
    found: tuple[FoundOutputs | Path, FoundOutputs | Path],
    chosen: RuleOptions,
    history: Mapping[str, Any],
    *,
    pool: Pool | None,
    has_documents: bool,
    is_verbose: bool,
    is_brief: bool,
    resources: Resources,
    progress: Progress,
) -> HistoryEnding:
    """Compares two folders, or two files: each is a run of one checkpoint, without a capture.

    found: what each of them holds, or the capture that is all that there is of it. has_documents:
    whether a document or a report will be made of the result; the terminal shows no samples and
    maps. is_verbose: whether it shows every detail else. is_brief: as in `HistoryOptions`.
    """
    rules = chosen.make_rules()
    list_path = None if history["list_path"] is None else Path(history["list_path"])
    if rules.arrangement is not None:
        refuse_captures(history, "rows are aligned, or copies chosen")
    if history["offset"]:
        refuse_captures(history, "iterations are counted otherwise")
    spread = _spread(chosen, history, pool, list_path, is_brief=is_brief)
    options = HistoryOptions(
        history["memory_bytes"],
        is_common=history["common"],
        is_explained=True,
        has_timelines=has_documents or is_verbose,
        is_brief=is_brief,
    )
    with contextlib.ExitStack() as stack:
        if all(isinstance(one, Path) for one in found):
            _refuse_choice_of_files(chosen, paths)
        sides = []
        for path, held, capture in zip(paths, found, ("capture_a", "capture_b"), strict=True):
            side = _opened(path, held, history[capture], history)
            stack.callback(side.close)
            if side.is_recorded:
                side.faults += files_beside_journals(path, chosen.exclude_of(paths))
            sides.append(side)
        if history["verify_checksums"] and not any(side.capture for side in sides):
            raise UsageError(
                "--verify-checksums, but neither run has a capture",
                remedy="leave it out: all data are read anyway",
            )
        files = (file for side in sides for file in side.found.files)
        has_iterations = any(file.iteration is not None for file in files)
        # What a journal keeps may be shown in another way when it goes on. Of a single checkpoint
        # all that differs is explained, of a whole run the first difference.
        if has_iterations and not has_documents and not spread.is_by_units:
            options = replace(options, detail_bytes=0)
        differences = None
        if list_path is not None and not spread.is_by_units:
            differences = stack.enter_context(DifferenceList(list_path))
        result = compare_histories(
            f"{paths[0]} : {paths[1]}",
            sides[0],
            sides[1],
            rules,
            options,
            golden_path=str(paths[0]),
            source_path=str(paths[1]),
            resources=resources,
            progress=progress,
            differences=differences,
            spread=spread,
        )

    tidy = None if list_path is None else partial(_remove_former_lists, list_path, spread)
    return HistoryEnding(
        unless_nothing(result),
        tidy,
        pool.end if pool is not None and spread.has_ended_early else None,
    )


def _spread(
    chosen: RuleOptions,
    history: Mapping[str, Any],
    pool: Pool | None,
    list_path: Path | None,
    *,
    is_brief: bool,
) -> Spread:
    """Who compares, and what is kept meanwhile."""
    journal_path = history["journal_path"]
    spread = Spread(
        pool=pool,
        journal_path=None if journal_path is None else Path(journal_path),
        silence_seconds=history["silence_seconds"],
    )
    if not spread.is_by_units:
        return spread
    captures = (history["capture_a"], history["capture_b"])
    decides = (*captures, *(history[name] for name in _DECIDING), list_path, is_brief)
    return replace(
        spread,
        make_rules=chosen,
        rules_text=repr((chosen.text, *decides)),
        resume=history["resume"],
        list_path=list_path,
    )


def _refuse_choice_of_files(chosen: RuleOptions, fingerprints: tuple[Path, Path]) -> None:
    """Raises UsageError for options that choose files, of which there are none on either side, but
    beside the journals of recorded runs.
    """
    option = "--include" if chosen.include else "--exclude"
    if (chosen.include or chosen.exclude) and not any(map(is_recording, fingerprints)):
        raise UsageError(
            f"{option} chooses files, of which two fingerprints have none",
            remedy="leave variables out with --ignore",
        )


def _remove_former_lists(path: Path, spread: Spread) -> None:
    """Removes lists of an earlier comparison under that name. Raises WriteFailedError."""
    names = spread.compared_names if spread.is_by_units else None
    remove_former_lists(path, {path} if names is None else {list_named(path, one) for one in names})


def _opened(
    path: Path, found: FoundOutputs | Path, capture: str | None, history: Mapping[str, Any]
) -> Run:
    if isinstance(found, Path):
        return open_fingerprint(path, found, open_capture)
    return open_run(
        path,
        found,
        None if capture is None else Path(capture),
        use_capture=path.is_dir() and not (history["no_captures"] or history["offset"]),
        verify_checksums=history["verify_checksums"],
    )


@command("compare", example="ciwrap compare old new --rtol 1e-6")
@click.argument("golden", metavar="A", type=click.Path())
@click.argument("new", metavar="B", type=click.Path())
@rule_options
@history_options
@json_option
@json_detail_option
@report_option
@markdown_option
@junit_option
@verbosity_options
@resource_options
@click.pass_obj
def compare_command(
    session: Session,
    /,
    golden: str,
    new: str,
    chosen: RuleOptions,
    **history: Any,
) -> int:
    """Compare file or folder A with B, value by value where trees leave any doubt.

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
    started = time.monotonic()
    ours, theirs = Path(golden), Path(new)
    prints = [fingerprint_of(path) for path in (ours, theirs)]
    _refuse_mixed((ours, theirs), prints, chosen, history)
    sides = _outputs_of((ours, theirs), prints, chosen, history)
    chosen.refuse_unused_options(sides)
    if session.writes_documents or history["list_path"]:
        captures = _captures((ours, theirs), history)
        refuse_writing_over(session, sides, captures, history["list_path"])
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
    if chosen.check_name is None and (result.messages or not result.verdict.is_good):
        from ciwrap.cli.remedies import with_options

        options = {one.name or "": one.opts[0] for one in compare_command.params}
        result = with_options(result, options)
    code = session.emit(
        RunResult(
            verdict=result.verdict,
            checks=(result,),
            kind=session.kind,
            messages=(
                *_shared_files((golden, new), sides),
                *_unused_patterns(chosen, result),
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


def _refuse_mixed(
    paths: tuple[Path, Path],
    prints: Sequence[Path | None],
    chosen: RuleOptions,
    history: Mapping[str, Any],
) -> None:
    """Raises UsageError for a file beside a folder, and for options that are for folders alone."""
    is_folder = [
        one is not None or (path.is_dir() and not chosen.is_store(path))
        for path, one in zip(paths, prints, strict=True)
    ]
    if is_folder[0] != is_folder[1] and all(path.exists() for path in paths):
        raise UsageError(
            f"{paths[0]} is a {'folder' if is_folder[0] else 'file'}, {paths[1]} is not",
            remedy="give two files or two folders",
        )
    if not is_folder[0]:
        refuse_without_folders(history)
    elif history["list_path"] is not None:
        refuse_list_among_outputs(paths, history["list_path"])


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
        # Two single arrays are compared with each other whatever their files are called.
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
    given = [Path(history[name]) for name in ("capture_a", "capture_b") if history[name]]
    return [*given, *(one for path in paths for one in capture_paths(path))]


def _offset_note(offset: int, result: CheckResult) -> Message:
    """How iterations were paired, and which run's numbers they are called by."""
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
    from ciwrap.snapshot.difference import compare_snapshots, words_of_kind

    given = (history["capture_a"], history["capture_b"])
    captures = [
        capture_of(path) if one is None else Path(one)
        for path, one in zip(paths, given, strict=True)
    ]
    if history["no_captures"] or None in captures:
        return
    try:
        a, b = (snapshot_of_capture(one) for one in captures if one is not None)
    except CiwrapError:
        return  # the comparison has reported what is wrong with a capture
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


def _unused_patterns(chosen: RuleOptions, result: CheckResult) -> Iterator[Message]:
    """A warning of each pattern for names of variables that no variable of either side has."""
    from ciwrap.project.settings import unused_words

    lists = result.missing_variables, result.extra_variables, result.ignored_variables
    known = {*(one.id for one in result.variables), *(one for some in lists for one in some)}
    patterns = () if chosen.check is None else chosen.check.variable_patterns
    told = [*unused_words(chosen.ignore, known, "of --ignore")]
    told += unused_words([rule.pattern for rule in chosen.rules], known, "of --bound")
    told += unused_words(patterns, known, "under 'variables' or 'ignore'")
    yield from (Message(MessageLevel.WARNING, safe_text(text)) for text in told if known)


def _other_processes(history: Mapping[str, Any]) -> Iterator[Message]:
    """A warning where mpiexec started several of us, and each compares everything."""
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
    # The comparison has reported what is gone.
    ours, theirs = (
        {inode_of(one)} if isinstance(one, Path) else inodes_of(one.files) for one in sides
    )
    shared = len(set(ours).intersection(theirs))
    if not shared:
        return ()
    one, other = (safe_name(name) for name in names)
    what = "was compared with itself" if shared == 1 else "were compared with themselves"
    text = (
        f"{plural(shared, 'file')} of {one} {what}: {other} has the same (a link, or one folder"
        " twice); give two runs"
    )
    return (Message(MessageLevel.WARNING, text),)
