"""What `ciwrap compare` does with two folders: captures, memory, lists of differences."""

from __future__ import annotations

import contextlib
import os
import re
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ciwrap.cli.options import common_option
from ciwrap.errors import UsageError
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ciwrap.captures.side import Side
    from ciwrap.cli.rules import RuleOptions
    from ciwrap.cli.session import Session
    from ciwrap.compare.engines import Pool
    from ciwrap.compare.spread import Spread
    from ciwrap.model import CheckResult
    from ciwrap.progress import Progress
    from ciwrap.readers.layout import FoundOutputs
    from ciwrap.trees.build import Resources

_F = TypeVar("_F", bound="Callable[..., Any]")
_SMALLEST_MEMORY_BYTES = 1 << 20
# Options that change what is found, beside the rules.
_DECIDING = ("no_captures", "verify_checksums", "common", "offset")
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


def history_options(function: _F) -> _F:
    for decorate in (
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
            "--list",
            "list_path",
            metavar="FILE",
            type=click.Path(dir_okay=False),
            help="Write every differing element to FILE.csv or FILE.parquet (folders).",
        ),
        click.option(
            "--verify-checksums",
            is_flag=True,
            help="Trust no file times: look whether the files still are what was captured.",
        ),
        click.option(
            "--no-captures", is_flag=True, help="Read all data, whatever captures there are."
        ),
        click.option(
            "--silence",
            "silence_seconds",
            type=click.FloatRange(0.1),
            metavar="SECONDS",
            help="End, and tell what is known, if nothing was done for so long; default: wait.",
        ),
        click.option(
            "--resume", is_flag=True, help="Go on with the journal, if it is there already."
        ),
        click.option(
            "--journal",
            "journal_path",
            metavar="FILE",
            type=click.Path(dir_okay=False),
            help="Keep what is done in FILE, to go on there after a crash.",
        ),
        click.option(
            "--scheduler",
            metavar="FILE",
            help="What `dask scheduler --scheduler-file FILE` wrote, for --executor dask.",
        ),
        click.option(
            "--executor",
            metavar="NAME",
            help="Who compares: process, mpi, dask, or package.module:function, which returns a"
            " concurrent.futures.Executor; default: this process.",
        ),
        common_option,
        click.option(
            "--offset",
            type=int,
            default=0,
            metavar="N",
            help="Compare iteration i of A with i + N of B.",
        ),
        click.option("--capture-b", type=click.Path(), help="The capture of folder B."),
        click.option(
            "--capture-a",
            type=click.Path(),
            help="The capture of folder A; default: .ciwrap.tree inside, or A.tree beside.",
        ),
    ):
        function = decorate(function)
    return function


def refuse_without_folders(history: Mapping[str, Any]) -> None:
    """Raises UsageError for options that single files have no use for."""
    for name in ("capture_a", "capture_b", "no_captures", "verify_checksums", "list_path"):
        if history[name]:
            option = "--" + name.removesuffix("_path").replace("_", "-")
            raise UsageError(f"{option} is for folders", remedy="give two folders")


def refuse_list_among_outputs(folders: Sequence[Path], history: Mapping[str, Any]) -> None:
    """Raises UsageError for a list that the next comparison would take for an output."""
    for folder in folders:
        if own_files(folder, history["list_path"]):
            raise UsageError(
                f"--list would put {history['list_path']} among the outputs of {folder}",
                remedy="write it beside the two runs",
            )


def refuse_same_files(session: Session, history: Mapping[str, Any]) -> None:
    """Raises UsageError where two things would be written to one file, the second over the first;
    then no document is written to that file either.
    """
    from ciwrap.compare.unit_lists import has_name_of_list

    said = {
        "--journal": history["journal_path"],
        "--list": history["list_path"],
        "--json": session.json_target,
        "--report": session.report_target,
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
            for name in {one, other} & {"--json", "--report"}:
                session.give_up(name)
            raise UsageError(
                f"{one} {said[one]} and {other} {said[other]} would be written to the same file",
                remedy="give each a name of its own",
            )


def refuse_with_fingerprints(history: Mapping[str, Any], prints: Sequence[Path | None]) -> None:
    """Raises UsageError for options that captures without data have no use for."""
    refused = ["no_captures", "list_path", "offset"]
    refused += ["capture_a"] if prints[0] else []
    refused += ["capture_b"] if prints[1] else []
    refused += ["verify_checksums"] if all(prints) else []
    for name in refused:
        if history[name]:
            option = "--" + name.removesuffix("_path").replace("_", "-")
            one = next(path for path in prints if path is not None)
            raise UsageError(
                f"{option}, but {one} is a capture without the run's data",
                remedy=f"compare without {option}, or where the data are",
            )


def with_layout_of(chosen: RuleOptions, prints: Sequence[Path | None]) -> RuleOptions:
    """The options with the layout that a fingerprint was captured with, unless one is given: a run
    with data is read in the same way. Raises the errors of `CaptureFile`.
    """
    if chosen.layout is not None or chosen.check is not None:
        return chosen
    from ciwrap.captures.index_codec import read_index
    from ciwrap.captures.open_capture import open_capture

    for path in prints:
        if path is not None:
            with open_capture(path) as capture:
                chosen = replace(chosen, layout=read_index(capture).header.layout)
    return chosen


def refuse_captures(history: Mapping[str, Any], why: str) -> None:
    """Raises UsageError if a capture is to be used where it cannot be, for its trees are of the
    files as they are.
    """
    for name in _OF_CAPTURES:
        if history[name]:
            option = "--" + name.replace("_", "-")
            raise UsageError(
                f"{why}, which captures know nothing of",
                remedy=f"compare without {option}",
            )


def refuse_contradictions(history: Mapping[str, Any]) -> None:
    """Raises UsageError for options that say nothing without others, or beside them."""
    for name, needed in (("resume", "journal_path"), ("scheduler", "executor")):
        if history[name] and history[needed] is None:
            other = "--" + needed.removesuffix("_path")
            raise UsageError(f"--{name} says nothing without {other}", remedy=f"give {other}")
    for name in _OF_CAPTURES:
        if history[name] and history["no_captures"]:
            option = "--" + name.replace("_", "-")
            raise UsageError(
                f"{option}, but --no-captures has all data read", remedy="leave out one of them"
            )


class Ending(Struct, frozen=True):
    """What is left to do once the result is out. tidy: removes lists of earlier comparisons; raises
    WriteFailedError. exit: ends the process where it could not end by itself, since a worker hangs.
    """

    result: CheckResult
    tidy: Callable[[], None]
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
) -> Ending:
    """Compares two folders, or two files: each is a run of one checkpoint, without a capture.

    found: what each of them holds, or the capture that is all that there is of it. has_documents:
    whether a document or a report will be made of the result; the terminal shows no samples and
    maps. is_verbose: whether it shows every detail else. is_brief: as in `HistoryOptions`.
    """
    from ciwrap.captures.fingerprints import files_beside_journals
    from ciwrap.compare.histories import compare_histories
    from ciwrap.compare.outcome import HistoryOptions
    from ciwrap.compare.spread import Spread

    rules = chosen.make_rules()
    journal_path = None if history["journal_path"] is None else Path(history["journal_path"])
    list_path = None if history["list_path"] is None else Path(history["list_path"])
    is_spread = pool is not None or journal_path is not None
    options = HistoryOptions(
        history["memory_bytes"],
        is_common=history["common"],
        is_explained=True,
        has_timelines=has_documents or is_verbose,
        is_brief=is_brief,
    )
    # What a journal keeps may be shown in another way when it goes on. Of a single checkpoint
    # all that differs is explained, of a whole run the first difference.
    has_iterations = any(
        file.iteration is not None
        for one in found
        if not isinstance(one, Path)
        for file in one.files
    )
    if not has_documents and not is_spread and has_iterations:
        options = replace(options, detail_bytes=0)
    if rules.arrangement is not None:
        refuse_captures(history, "rows are aligned, or copies chosen")
    if history["offset"]:
        refuse_captures(history, "iterations are counted otherwise")
    captures = [history[name] for name in ("capture_a", "capture_b")]
    spread = Spread(silence_seconds=history["silence_seconds"])
    if is_spread:
        decides = (*captures, *(history[name] for name in _DECIDING), list_path, is_brief)
        spread = replace(
            spread,
            pool=pool,
            make_rules=chosen,
            rules_text=repr((chosen.text, *decides)),
            journal_path=journal_path,
            resume=history["resume"],
            list_path=list_path,
        )
    with contextlib.ExitStack() as stack:
        sides = []
        for path, one, capture in zip(paths, found, captures, strict=True):
            side = _opened(path, one, capture, history)
            side.faults += files_beside_journals(path, chosen.exclude_of(paths))
            stack.callback(side.close)
            sides.append(side)
        if history["verify_checksums"] and not any(side.capture for side in sides):
            raise UsageError(
                "--verify-checksums, but neither run has a capture",
                remedy="leave it out: all data are read anyway",
            )
        differences = None
        if list_path is not None and not is_spread:
            from ciwrap.compare.differences import DifferenceList

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

    tidy = partial(_remove_former_lists, list_path, spread if is_spread else None)
    return Ending(result, tidy, pool.end if pool is not None and spread.has_ended_early else None)


def _remove_former_lists(path: Path | None, spread: Spread | None) -> None:
    """Removes lists of an earlier comparison under that name. spread: whose units have lists of
    their own; None for one list. Raises WriteFailedError.
    """
    if path is None:
        return
    from ciwrap.compare.unit_lists import list_named, remove_former_lists

    kept = {path} if spread is None else {list_named(path, one) for one in spread.compared_names}
    remove_former_lists(path, kept)


def _opened(
    path: Path, found: FoundOutputs | Path, capture: str | None, history: Mapping[str, Any]
) -> Side:
    from ciwrap.captures.fingerprints import open_fingerprint
    from ciwrap.captures.side import open_side

    if isinstance(found, Path):
        return open_fingerprint(path, found)
    return open_side(
        path,
        found,
        None if capture is None else Path(capture),
        use_capture=path.is_dir() and not (history["no_captures"] or history["offset"]),
        verify_checksums=history["verify_checksums"],
    )


def own_files(folder: Path, *captures: Path | str | None) -> tuple[str, ...]:
    """Captures that lie inside the run, as patterns to leave out."""
    inside = []
    for capture in captures:
        if capture is not None:
            try:
                known = Path(os.path.realpath(capture))
                inside.append(known.relative_to(os.path.realpath(folder)).as_posix())
            except ValueError:
                continue
    return tuple(inside)
