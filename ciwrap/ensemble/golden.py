"""An ensemble as a golden: the features of its members, in one text file of some kilobytes."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import msgspec

from ciwrap.documents import DocumentError, to_versioned_record
from ciwrap.errors import CorruptGoldenError, GoldenMissingError, UnreadableFileError
from ciwrap.golden.golden_file import refuse_pointer
from ciwrap.report.document import MOST_BYTES, parse_document, plain, write_text

if TYPE_CHECKING:
    from pathlib import Path

FORMAT_VERSION = 1


class EnsembleGolden(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The features of an ensemble's members.

    features: their names. members: a row of features for each, as doubles that are read back to the
    bit. statistics, blocks, from_iteration: how features are taken. rate: of false alarms that the
    test may raise. made, who, why, commit: when (UTC, ISO 8601) and by whom it was made. digest: of
    all the rest, to tell damage. numbers: how many variables have in all, those of which all
    members have as many; others: the names of the variables of members that have no features, since
    they are no numbers, or empty. Both are None in an ensemble that was made before they were kept.
    """

    format: int
    check: str
    statistics: tuple[str, ...]
    blocks: int
    rate: float
    features: tuple[str, ...]
    members: tuple[tuple[float, ...], ...]
    made: str
    who: str
    why: str
    environment: dict[str, str]
    from_iteration: int | None = None
    commit: str | None = None
    digest: str = ""
    numbers: dict[str, int] | None = None
    others: tuple[str, ...] | None = None

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that have features: `density std, block 2 of 8` is of density."""
        whole = self.features
        if self.blocks > 1:
            whole = tuple(one.rpartition(", block ")[0] for one in whole)
        return frozenset(one.rpartition(" ")[0] for one in whole)


def write_ensemble(golden: EnsembleGolden, path: Path) -> None:
    """Writes an ensemble, whole or not at all. Raises WriteFailedError."""
    document = plain(golden)
    document["digest"] = _digest(document)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A line for each member, for review.
    rows = document.pop("members")
    head = json.dumps(document, indent=1, allow_nan=False).removesuffix("\n}")
    lines = ",\n  ".join(json.dumps(row, allow_nan=False) for row in rows)
    write_text(f'{head},\n "members": [\n  {lines}\n ]\n}}\n', str(path), "the ensemble")


def read_ensemble(path: Path) -> EnsembleGolden:
    """Reads an ensemble. Raises GoldenMissingError, UnreadableFileError, CorruptGoldenError."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise GoldenMissingError(
            "there is no ensemble", file=path, remedy="`ciwrap capture --ensemble` makes one"
        ) from error
    except OSError as error:
        raise UnreadableFileError(error.strerror or str(error), file=path) from error
    return parse_ensemble(data, path)


def parse_ensemble(data: bytes, path: Path) -> EnsembleGolden:
    """An ensemble from the bytes of its file. Raises CorruptGoldenError."""
    try:
        golden = to_versioned_record(parse_document(data), EnsembleGolden, FORMAT_VERSION)
    except DocumentError as error:
        refuse_pointer(data, path)
        raise CorruptGoldenError(f"is not an ensemble: {error}", file=path) from error
    if golden.digest != _digest(plain(golden)):
        raise CorruptGoldenError(
            "the ensemble is damaged, or somebody has edited it",
            file=path,
            remedy="restore it from version control, or capture it again",
        )
    if any(len(row) != len(golden.features) for row in golden.members):
        raise CorruptGoldenError("not every member has every feature", file=path)
    return golden


def _digest(document: dict[str, Any]) -> str:
    rest = {name: value for name, value in document.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
