"""Fitted maps in one file: JSON of a format of its own, versioned, with all that was measured."""

from __future__ import annotations

import hashlib
import json
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import msgspec

from ciwrap.documents import DocumentError, to_versioned_record
from ciwrap.errors import CorruptFileError, OutputMissingError, UnreadableFileError
from ciwrap.model.formats import VARIABILITY_MAP_VERSION
from ciwrap.report.document import load_document, plain, write_text
from ciwrap.variability.gaussian_process import LENGTHS, NUGGET, SIGNAL
from ciwrap.variability.measured import MOST_CONFIGURATIONS
from ciwrap.variability.predictors import PREDICTORS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class StoredAxis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A parameter that varies; see `ciwrap.variability.space.Axis`."""

    name: str
    low: float
    high: float
    is_log: bool


class StoredKernel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """See `ciwrap.variability.gaussian_process.Kernel`."""

    lengths: tuple[float, ...]
    signal: float
    nugget: float


class StoredMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The map of one category.

    points: a row for each configuration, in the order of the axes. runs: its measured values.
    seconds: how long its runs took; empty where that is not known. residuals: |log predicted - log
    measured| of unseen configurations, sorted; they give the intervals. kernel: of the process over
    log sigma. mean_kernel: of that over the logarithms of the means.
    """

    category: dict[str, str]
    axes: tuple[StoredAxis, ...]
    fixed: dict[str, float]
    points: tuple[tuple[float, ...], ...]
    runs: tuple[tuple[float, ...], ...]
    seconds: tuple[tuple[float, ...], ...]
    predictor: str
    error: float
    floor: float
    residuals: tuple[float, ...]
    kernel: StoredKernel
    mean_kernel: StoredKernel | None
    notes: tuple[str, ...]


class MapFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All maps of a table. value: the column that was measured. digest: of all the rest, to tell
    damage.
    """

    format: int
    kind: str
    value: str
    seed: int
    maps: tuple[StoredMap, ...]
    made: str
    ciwrap_version: str
    digest: str = ""


KIND = "variability-map"
# Squares of what lies between these are numbers.
_SMALLEST, _LARGEST = 1e-140, 1e140


def write_map(maps: MapFile, target: str) -> None:
    """Writes maps, whole or not at all. Raises WriteFailedError."""
    document = plain(maps)
    document["digest"] = _digest(document)
    write_text(json.dumps(document, allow_nan=False) + "\n", target, "the map")


def read_map(path: Path) -> MapFile:
    """Reads maps. Raises OutputMissingError, UnreadableFileError, CorruptFileError."""
    try:
        maps = to_versioned_record(load_document(path), MapFile, VARIABILITY_MAP_VERSION)
    except FileNotFoundError as error:
        raise OutputMissingError(
            "there is no map", file=path, remedy="`ciwrap variability fit` makes one"
        ) from error
    except OSError as error:
        raise UnreadableFileError(error.strerror or str(error), file=path) from error
    except DocumentError as error:
        raise CorruptFileError(
            f"is not a map of variability: {error}",
            file=path,
            remedy="`ciwrap variability fit` makes one",
        ) from error
    if maps.digest != _digest(plain(maps)):
        raise CorruptFileError(
            "the map is damaged, or somebody has edited it", file=path, remedy="fit it again"
        )
    for problem in _problems(maps):
        raise CorruptFileError(f"is not a map: {problem}", file=path, remedy="fit it again")
    return maps


def _digest(document: dict[str, Any]) -> str:
    rest = {name: value for name, value in document.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _problems(maps: MapFile) -> Iterator[str]:
    """What does not hold together in a file that somebody else may have written."""
    if maps.kind != KIND:
        yield f"its kind is {maps.kind!r}"
    if not maps.maps:
        yield "it holds none"
    for number, one in enumerate(maps.maps):
        for problem in _problems_of(one):
            yield f"map {number}: {problem}"


def _problems_of(one: StoredMap) -> Iterator[str]:
    if one.predictor not in PREDICTORS:
        yield f"there is no predictor {one.predictor!r}"
    if not one.axes or len({axis.name for axis in one.axes}) != len(one.axes):
        yield "its axes do not tell one from another"
    if any(axis.low >= axis.high or (axis.is_log and axis.low <= 0) for axis in one.axes):
        yield "an axis has no extent"
    if not 2 <= len(one.points) <= MOST_CONFIGURATIONS or len(one.points) != len(one.runs):
        yield "configurations and runs are not as many"
    if any(len(point) != len(one.axes) for point in one.points):
        yield "a configuration lacks a parameter"
    if any(
        not axis.low <= value <= axis.high
        for point in one.points
        for axis, value in zip(one.axes, point, strict=False)
    ):
        yield "a configuration lies beyond its axes"
    if any(not _varies(runs, has_mean=one.mean_kernel is not None) for runs in one.runs):
        yield "a configuration does not vary"
    if one.seconds and len(one.seconds) != len(one.points):
        yield "times and configurations are not as many"
    if any(not times or min(times) < 0 for times in one.seconds):
        yield "a run took no time"
    for kernel in (one.kernel, one.mean_kernel):
        if kernel is not None and not _is_usable(kernel, len(one.axes)):
            yield "a kernel has no meaning"
    if any(value < 0 for value in one.residuals) or list(one.residuals) != sorted(one.residuals):
        yield "its residuals are not sorted"


def _varies(runs: tuple[float, ...], *, has_mean: bool) -> bool:
    """Whether runs have a standard deviation above 0, and a mean above 0 where one is asked for."""
    if len(runs) < 2 or max(map(abs, runs)) > _LARGEST:
        return False
    return stdev(runs) > _SMALLEST and (not has_mean or fmean(runs) > _SMALLEST)


def _is_usable(kernel: StoredKernel, axes: int) -> bool:
    """Whether it is one that fitting can come to, so that matrices can be solved."""
    return (
        len(kernel.lengths) == axes
        and all(_within(one, LENGTHS) for one in kernel.lengths)
        and _within(kernel.signal, SIGNAL)
        and _within(kernel.nugget, NUGGET)
    )


def _within(value: float, limits: tuple[float, float]) -> bool:
    return 0.99 * limits[0] <= value <= 1.01 * limits[1]
