"""Fitted maps in one file: JSON of a format of its own, versioned, with all that was measured."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import msgspec

from ciwrap.documents import DocumentError, to_versioned_record
from ciwrap.errors import CorruptFileError, OutputMissingError, UnreadableFileError
from ciwrap.model.formats import VARIABILITY_MAP_VERSION
from ciwrap.report.document import load_document, plain, write_text
from ciwrap.variability.gaussian_process import Kernel
from ciwrap.variability.predictors import PREDICTORS
from ciwrap.variability.space import Axis

if TYPE_CHECKING:
    from pathlib import Path


class StoredMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The map of one category.

    points: a row for each configuration, in the order of the axes. runs: its measured values.
    seconds: how long its runs took; empty where that is not known. residuals: |log predicted - log
    measured| of unseen configurations, sorted; they give the intervals. kernel: of the process over
    log sigma. mean_kernel: of that over the logarithms of the means.
    """

    category: dict[str, str]
    axes: tuple[Axis, ...]
    fixed: dict[str, float]
    points: tuple[tuple[float, ...], ...]
    runs: tuple[tuple[float, ...], ...]
    seconds: tuple[tuple[float, ...], ...]
    predictor: str
    error: float
    floor: float
    residuals: tuple[float, ...]
    kernel: Kernel
    mean_kernel: Kernel | None
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
    unknown = {one.predictor for one in maps.maps}.difference(PREDICTORS)
    if unknown:
        raise CorruptFileError(
            f"is a map of {', '.join(unknown)}, which nothing here predicts with",
            file=path,
            remedy="fit it again",
        )
    return maps


def _digest(document: dict[str, Any]) -> str:
    rest = {name: value for name, value in document.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, allow_nan=False).encode()).hexdigest()
