"""What `ciwrap compare` does with two folders: captures, memory, lists of differences."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ciwrap.cli.capture import own_files
from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ciwrap.compare.runs import Rules
    from ciwrap.golden.capture import Resources
    from ciwrap.golden.progress import Progress
    from ciwrap.model import CheckResult
    from ciwrap.readers.layout import FoundOutputs

_F = TypeVar("_F", bound="Callable[..., Any]")
_SMALLEST_MEMORY_BYTES = 1 << 20
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
        click.option("--capture-b", type=click.Path(), help="The capture of folder B."),
        click.option(
            "--capture-a",
            type=click.Path(),
            help="The capture of folder A; default: .ciwrap.tree inside, or A.tree beside.",
        ),
    ):
        function = decorate(function)
    return function


def captures_in(folder: Path, history: Mapping[str, Any]) -> tuple[str, ...]:
    """Captures that lie in the folder, as patterns to leave out."""
    paths = (history["capture_a"], history["capture_b"])
    return own_files(folder, *(None if path is None else Path(path) for path in paths))


def refuse_without_folders(history: Mapping[str, Any]) -> None:
    """Raises UsageError for options that single files have no use for."""
    for name in ("capture_a", "capture_b", "no_captures", "verify_checksums", "list_path"):
        if history[name]:
            option = "--" + name.removesuffix("_path").replace("_", "-")
            raise UsageError(f"{option} is for folders", remedy="give two folders")


def compare_folders(
    paths: tuple[Path, Path],
    found: tuple[FoundOutputs, FoundOutputs],
    rules: Rules,
    history: Mapping[str, Any],
    *,
    bounds_from_captures: bool,
    resources: Resources,
    progress: Progress,
) -> CheckResult:
    from ciwrap.history.differences import DifferenceList
    from ciwrap.history.outcome import HistoryOptions
    from ciwrap.history.runs import compare_histories
    from ciwrap.history.side import open_side

    with contextlib.ExitStack() as stack:
        sides = []
        for path, one, option in zip(paths, found, ("capture_a", "capture_b"), strict=True):
            capture = history[option]
            side = open_side(
                path,
                one,
                None if capture is None else Path(capture),
                use_capture=not history["no_captures"],
                verify_checksums=history["verify_checksums"],
            )
            stack.callback(side.close)
            sides.append(side)
        differences = None
        if history["list_path"] is not None:
            differences = stack.enter_context(DifferenceList(Path(history["list_path"])))
        return compare_histories(
            f"{paths[0]} : {paths[1]}",
            sides[0],
            sides[1],
            rules,
            HistoryOptions(history["memory_bytes"], bounds_from_captures),
            golden_path=str(paths[0]),
            source_path=str(paths[1]),
            resources=resources,
            progress=progress,
            differences=differences,
        )
