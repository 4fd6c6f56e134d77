"""Reads many results and sorts what they say by variable and by command."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from ciwrap.documents import to_record
from ciwrap.errors import InvalidResultError
from ciwrap.report.document import MOST_BYTES, from_document, load_document, reading_result
from ciwrap.report.wording import used_share
from ciwrap.structs import Struct, field
from ciwrap.timing.document import TimingDocument
from ciwrap.trend.document import Moment, SharePoint, TimePoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ciwrap.details import Number
    from ciwrap.model import CheckResult, RunResult

_NO_CPU = "unknown"
_KINDS = "check, run, compare or time"
_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")

# What shares of one series must have in common to be compared: the golden and the bound.
Basis = tuple[str | None, str]


class Collected(Struct):
    """Everything that results say over time, oldest first.

    shares: by check and variable, each with its basis. lost: of these, those of which the newest
    result of their check tells no share: not comparable, for instance. times: by command and
    processor, each with the facts of its environment. repeated: how many files say the same, byte
    for byte, as another one: what is told twice has not happened twice.
    """

    moments: list[Moment] = field(default_factory=list)
    shares: dict[tuple[str, str], list[tuple[Basis, SharePoint]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    lost: set[tuple[str, str]] = field(default_factory=set)
    times: dict[tuple[str, str], list[tuple[TimePoint, Mapping[str, str]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    repeated: int = 0


class _Observed(Struct):
    """What one result says; the result itself may be large, and is let go."""

    moment: Moment
    environment: Mapping[str, str]
    checks: set[str] = field(default_factory=set)
    shares: dict[tuple[str, str], tuple[Basis, Number]] = field(default_factory=dict)
    times: list[tuple[tuple[str, str], float]] = field(default_factory=list)


def collect(paths: Sequence[Path]) -> Collected:
    """Reads results of check, run, compare and time, whatever their order; two that began at the
    same time stay in the order given.

    Raises UnreadableFileError, InvalidResultError.
    """
    distinct = list({_digest(path): path for path in reversed(paths)}.values())[::-1]
    found = Collected(repeated=len(paths) - len(distinct))
    for one in sorted(map(_observe, distinct), key=lambda one: one.moment.when):
        found.moments.append(one.moment)
        for key, (basis, share) in one.shares.items():
            found.shares[key].append((basis, SharePoint(one.moment, share)))
        found.lost |= {key for key in found.shares if key[0] in one.checks}
        found.lost -= one.shares.keys()
        for which, seconds in one.times:
            found.times[which].append((TimePoint(one.moment, seconds), one.environment))
    return found


def _digest(path: Path) -> bytes:
    with reading_result(path, _KINDS), path.open("rb") as stream:
        # Of one that is longer no more is read, here or later.
        return hashlib.sha256(stream.read(MOST_BYTES + 1)).digest()


def _observe(path: Path) -> _Observed:
    result = read_any(path)
    if not _UTC.match(result.started_at):
        raise InvalidResultError(
            "does not say when it began, so it has no place among the others", file=path
        )
    commit = result.environment.get("git_commit")
    observed = _Observed(Moment(path.name, result.started_at, commit), result.environment)
    cpu = result.environment.get("cpu", _NO_CPU)
    if isinstance(result, TimingDocument):
        new = result.sides[1]  # a comparison's side B
        observed.environment = {**result.environment, "snapshot": new.snapshot or ""}
        observed.times.append(((new.command, cpu), new.spread.median))
        return observed
    for outcome in (result.command, *(check.command for check in result.checks)):
        if outcome is not None and outcome.exit_code == 0 and outcome.seconds > 0:
            observed.times.append(((outcome.command, cpu), outcome.seconds))
    for check in result.checks:
        name = f"{check.name} ({check.label})" if check.label else check.name
        observed.checks.add(name)
        for variable, worst in _worst_shares(check).items():
            observed.shares[name, variable] = worst
    return observed


def read_any(path: Path) -> RunResult | TimingDocument:
    """A result of check, run, compare or time. Raises UnreadableFileError, InvalidResultError."""
    with reading_result(path, _KINDS):
        document = load_document(path)
        if isinstance(document, dict) and document.get("kind") == "timing" and _has_times(document):
            return to_record(document, TimingDocument)
        return from_document(document)


def _has_times(document: dict[str, Any]) -> bool:
    """A call of `ciwrap time` that failed writes the document of a run without a verdict."""
    return "comparison" in document


def _worst_shares(check: CheckResult) -> dict[str, tuple[Basis, Number]]:
    """Of each name: the largest share over its checkpoints. Without those of which none is known,
    and those with a bound of 0: where nothing but equality counts, nothing comes nearer to it.
    """
    worst: dict[str, tuple[Basis, Number]] = {}
    for variable in check.variables:
        share = used_share(variable)
        if share is None:
            continue
        basis = (check.golden_root, str(variable.bound))
        if variable.name not in worst or share > worst[variable.name][1]:
            worst[variable.name] = (basis, share)
    return worst
