"""What `ciwrap compare` does with two folders: captures, memory, lists of differences."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.cli.compare_options import refuse_captures
from ciwrap.errors import UsageError
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ciwrap.captures.side import Run
    from ciwrap.cli.rules import RuleOptions
    from ciwrap.compare.engines import Pool
    from ciwrap.compare.spread import Spread
    from ciwrap.model import CheckResult
    from ciwrap.progress import Progress
    from ciwrap.readers.layout import FoundOutputs
    from ciwrap.trees.build import Resources

# Options that change what is found, beside the rules.
_DECIDING = ("no_captures", "verify_checksums", "common", "offset")


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


class Ending(Struct, frozen=True):
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
) -> Ending:
    """Compares two folders, or two files: each is a run of one checkpoint, without a capture.

    found: what each of them holds, or the capture that is all that there is of it. has_documents:
    whether a document or a report will be made of the result; the terminal shows no samples and
    maps. is_verbose: whether it shows every detail else. is_brief: as in `HistoryOptions`.
    """
    from ciwrap.captures.fingerprints import files_beside_journals
    from ciwrap.compare.histories import compare_histories
    from ciwrap.compare.outcome import HistoryOptions

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

    tidy = None if list_path is None else partial(_remove_former_lists, list_path, spread)
    return Ending(result, tidy, pool.end if pool is not None and spread.has_ended_early else None)


def _spread(
    chosen: RuleOptions,
    history: Mapping[str, Any],
    pool: Pool | None,
    list_path: Path | None,
    *,
    is_brief: bool,
) -> Spread:
    """Who compares, and what is kept meanwhile."""
    from ciwrap.compare.spread import Spread

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
    from ciwrap.captures.journals import is_recording

    option = "--include" if chosen.include else "--exclude"
    if (chosen.include or chosen.exclude) and not any(map(is_recording, fingerprints)):
        raise UsageError(
            f"{option} chooses files, of which two fingerprints have none",
            remedy="leave variables out with --ignore",
        )


def _remove_former_lists(path: Path, spread: Spread) -> None:
    """Removes lists of an earlier comparison under that name. Raises WriteFailedError."""
    from ciwrap.compare.unit_lists import list_named, remove_former_lists

    names = spread.compared_names if spread.is_by_units else None
    remove_former_lists(path, {path} if names is None else {list_named(path, one) for one in names})


def _opened(
    path: Path, found: FoundOutputs | Path, capture: str | None, history: Mapping[str, Any]
) -> Run:
    from ciwrap.captures.open_capture import open_capture
    from ciwrap.captures.side import open_fingerprint, open_run

    if isinstance(found, Path):
        return open_fingerprint(path, found, open_capture)
    return open_run(
        path,
        found,
        None if capture is None else Path(capture),
        use_capture=path.is_dir() and not (history["no_captures"] or history["offset"]),
        verify_checksums=history["verify_checksums"],
    )
