"""Reads many results and sorts what they say by variable and by command."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ciwrap.documents import DocumentError, to_record
from ciwrap.errors import InvalidResultError, UnreadableFileError
from ciwrap.model import RunResult
from ciwrap.report.document import from_document, load_document
from ciwrap.report.wording import used_share
from ciwrap.timing.document import TimingDocument
from ciwrap.trend.document import Moment, SharePoint, TimePoint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ciwrap.details import Number
    from ciwrap.model import CheckResult, CommandOutcome

_NO_CPU = "unknown"

# What shares of one series must have in common to be compared: the golden and the bound.
Basis = tuple[str | None, str]


@dataclass(slots=True)
class Collected:
    """Everything that results say over time, oldest first.

    shares: by check and variable, each with its basis. times: by command and processor.
    """

    moments: list[Moment] = field(default_factory=list)
    shares: dict[tuple[str, str], list[tuple[Basis, SharePoint]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    times: dict[tuple[str, str], list[TimePoint]] = field(default_factory=lambda: defaultdict(list))


def collect(paths: Sequence[Path]) -> Collected:
    """Reads results of check, run, compare and time, whatever their order; two that began at the
    same time stay in the order given.

    Raises UnreadableFileError, InvalidResultError.
    """
    found = Collected()
    results = sorted(((path, read_any(path)) for path in paths), key=lambda one: one[1].started_at)
    for path, result in results:
        moment = Moment(path.name, result.started_at, result.environment.get("git_commit"))
        found.moments.append(moment)
        if isinstance(result, RunResult):
            _add_run(found, moment, result)
        else:
            _add_timing(found, moment, result)
    return found


def read_any(path: Path) -> RunResult | TimingDocument:
    """A result of check, run, compare or time. Raises UnreadableFileError, InvalidResultError."""
    try:
        document = load_document(path)
        if isinstance(document, dict) and document.get("kind") == "timing" and _has_times(document):
            return to_record(document, TimingDocument)
        return from_document(document)
    except OSError as error:
        raise UnreadableFileError(error.strerror or str(error), file=path) from error
    except DocumentError as error:
        raise InvalidResultError(
            f"is no result of check, run, compare or time: {error}",
            file=path,
            remedy="give a file that --json wrote",
        ) from error


def _has_times(document: dict[str, Any]) -> bool:
    """A call of `ciwrap time` that failed writes the document of a run without a verdict."""
    return "comparison" in document


def _add_run(found: Collected, moment: Moment, result: RunResult) -> None:
    cpu = result.environment.get("cpu", _NO_CPU)
    commands = [result.command, *(check.command for check in result.checks)]
    for outcome in commands:
        _add_time(found, moment, outcome, cpu)
    for check in result.checks:
        name = f"{check.name} ({check.label})" if check.label else check.name
        for variable, (basis, share) in _worst_shares(check).items():
            found.shares[name, variable].append((basis, SharePoint(moment, share)))


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


def _add_time(found: Collected, moment: Moment, outcome: CommandOutcome | None, cpu: str) -> None:
    if outcome is not None and outcome.exit_code == 0 and outcome.seconds > 0:
        found.times[outcome.command, cpu].append(TimePoint(moment, outcome.seconds))


def _add_timing(found: Collected, moment: Moment, document: TimingDocument) -> None:
    """What was new then: a comparison's side B."""
    cpu = document.environment.get("cpu", _NO_CPU)
    new = document.sides[1]
    found.times[new.command, cpu].append(TimePoint(moment, new.spread.median))
