"""The options of `ciwrap compare` for two runs, and which of them contradict each other."""

from __future__ import annotations

import os
import re
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ciwrap.cli.options import common_option
from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ciwrap.cli.session import Session
    from ciwrap.readers.layout import FoundOutputs

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
            help="End, and tell what is known, if nothing was done for this long; default: wait.",
        ),
        click.option(
            "--resume", is_flag=True, help="Go on with the journal, if it already exists."
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


def _option(name: str) -> str:
    """What an option is called on the command line."""
    return "--" + name.removesuffix("_path").replace("_", "-")


def refuse_without_folders(history: Mapping[str, Any]) -> None:
    """Raises UsageError for options that single files have no use for."""
    for name in ("capture_a", "capture_b", "no_captures", "verify_checksums", "list_path"):
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


def refuse_writing_over(
    session: Session, inputs: Sequence[FoundOutputs | Path], captures: Sequence[Path]
) -> None:
    """Raises UsageError where a document would be written over what is compared; then it is not
    written at all. inputs, captures: what is compared, and the captures that may be.
    """
    from ciwrap.catalog.files import inode_of, inodes_of

    known = set().union(*(inodes_of(one.files) for one in inputs if not isinstance(one, Path)))
    alone = [one for one in inputs if isinstance(one, Path)]
    known |= {inode_of(path) for path in (*alone, *captures) if path.exists()}
    said = {"--json": session.json_target, "--report": session.report_target}
    refused = {
        name: target
        for name, target in said.items()
        if target not in (None, "-") and Path(target).exists() and inode_of(Path(target)) in known
    }
    for name in refused:
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
