"""What one result says over time, a few lines of it; and many of them, oldest first.

The same record is worked out of a result for `ciwrap trend`, and kept in a store.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap.base.documents import load_json, to_plain, to_record, to_versioned_record
from ciwrap.base.errors import InvalidResultError
from ciwrap.model import CheckResult, CommandOutcome, RunResult, Verdict
from ciwrap.model.variable_result import Number
from ciwrap.report.document import MOST_BYTES, from_document, load_document, reading_result
from ciwrap.report.words import used_share
from ciwrap.studies.timing import TimingDocument

_FORMAT = 1
_NO_CPU = "unknown"
_KINDS = "check, run, compare or time"
_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


class Moment(Struct, frozen=True):
    """Which result a number is from. when: UTC, ISO 8601. commit: with -dirty if files had been
    changed; null without git.
    """

    file: str
    when: str
    commit: str | None = None


class ObservedVariable(Struct, frozen=True):
    """One variable of a check: its worst verdict and the largest share of its bound, over all
    checkpoints. share: None if it is unknown, or if the bound is 0: where nothing but equality
    counts, nothing comes nearer to it. bound: in words.
    """

    name: str
    verdict: Verdict = Verdict.MATCH
    share: Number | None = None
    bound: str = ""


class ObservedCheck(Struct, frozen=True):
    """name: with the label of what it is of, if it has one. golden: the root of its golden."""

    name: str
    verdict: Verdict
    golden: str | None = None
    variables: tuple[ObservedVariable, ...] = ()


class ObservedCommand(Struct, frozen=True):
    """A command that succeeded. peak_bytes: the memory of its largest process, where it is known"""

    command: str
    seconds: float
    peak_bytes: int | None = None


class Observed(Struct, frozen=True):
    """What one result says. verdict: of all of it; None for one of `ciwrap time`. label: what the
    store was told that the result is of.
    """

    format: int
    moment: Moment
    environment: Mapping[str, str]
    verdict: Verdict | None = None
    checks: tuple[ObservedCheck, ...] = ()
    commands: tuple[ObservedCommand, ...] = ()
    label: str = ""

    @property
    def cpu(self) -> str:
        """The kind of processor; with the machine, where the result names it."""
        known = [self.environment.get("cpu", _NO_CPU), self.environment.get("host")]
        return ", ".join(one for one in known if one)

    def named(self, name: str) -> str:
        """A check's name, or a processor's, with the label."""
        return f"{name} ({self.label})" if self.label else name


def observed_text(one: Observed) -> str:
    """As it is kept: JSON, in one line."""
    return json.dumps(to_plain(one, {}), separators=(",", ":"), allow_nan=False) + "\n"


def read_observed(data: bytes, path: Path) -> Observed:
    """What `observed_text` wrote. path: for messages. Raises InvalidResultError."""
    with reading_result(path, "`ciwrap trend --store`"):
        return to_versioned_record(load_json(data), Observed, _FORMAT)


def read_results(paths: Sequence[Path]) -> tuple[list[Observed], int]:
    """Results of check, run, compare and time, and how many files say the same, byte for byte, as
    another one: what is listed twice has not happened twice.

    Raises UnreadableFileError, InvalidResultError.
    """
    distinct = list({_digest(path): path for path in reversed(paths)}.values())[::-1]
    return [_observe(path) for path in distinct], len(paths) - len(distinct)


def _digest(path: Path) -> bytes:
    with reading_result(path, _KINDS), path.open("rb") as stream:
        # Of one that is longer no more is read, here or later.
        return hashlib.sha256(stream.read(MOST_BYTES + 1)).digest()


def _observe(path: Path) -> Observed:
    result = _read_any(path)
    if not _UTC.match(result.started_at):
        raise InvalidResultError(
            "does not say when it began, so it has no place among the others", file=path
        )
    commit = result.environment.get("git_commit")
    moment = Moment(path.name, result.started_at, commit)
    if isinstance(result, TimingDocument):
        new = result.sides[-1]  # of a comparison, side B
        environment = {**result.environment, "snapshot": new.snapshot or ""}
        peaks = [one.peak_bytes for one in new.used if one.peak_bytes is not None]
        timed = ObservedCommand(new.command, new.spread.median, max(peaks, default=None))
        return Observed(_FORMAT, moment, environment, commands=(timed,))
    commands = (result.command, *(check.command for check in result.checks))
    return Observed(
        _FORMAT,
        moment,
        result.environment,
        result.verdict,
        tuple({one.name: one for one in map(_observe_check, result.checks)}.values()),
        tuple(_observe_command(one) for one in commands if _is_timed(one)),
    )


def _read_any(path: Path) -> RunResult | TimingDocument:
    with reading_result(path, _KINDS):
        document = load_document(path)
        is_timing = isinstance(document, dict) and document.get("kind") == "timing"
        # A call of `ciwrap time` that failed writes the document of a run without a verdict.
        if is_timing and "sides" in document:
            return to_record(document, TimingDocument)
        return from_document(document)


def _is_timed(outcome: CommandOutcome | None) -> bool:
    return outcome is not None and outcome.exit_code == 0 and outcome.seconds > 0


def _observe_command(outcome: CommandOutcome | None) -> ObservedCommand:
    assert outcome is not None
    peak = None if outcome.used is None else outcome.used.peak_bytes
    return ObservedCommand(outcome.command, outcome.seconds, peak)


def _observe_check(check: CheckResult) -> ObservedCheck:
    worst: dict[str, ObservedVariable] = {}
    for variable in check.variables:
        share = used_share(variable)
        bound = "" if share is None else str(variable.bound)
        one = ObservedVariable(variable.name, variable.verdict, share, bound)
        known = worst.get(one.name)
        worst[one.name] = one if known is None else _worse(known, one)
    name = f"{check.name} ({check.label})" if check.label else check.name
    return ObservedCheck(name, check.verdict, check.golden_root, tuple(worst.values()))


def _worse(one: ObservedVariable, other: ObservedVariable) -> ObservedVariable:
    """The one with the larger share, with the worse verdict of both."""
    is_larger = other.share is not None and (one.share is None or other.share > one.share)
    verdict = Verdict.worst((one.verdict, other.verdict))
    return replace(other if is_larger else one, verdict=verdict)


def updated(old: Observed, new: Observed) -> Observed:
    """Both results of one commit: what the new one says of the same checks and commands takes the
    place of what was said before. It keeps the old one's place in time: a commit that is tried
    again later is not a later commit.
    """
    checks = {one.name: one for one in (*old.checks, *new.checks)}
    commands = {one.command: one for one in (*old.commands, *new.commands)}
    verdicts = [one.verdict for one in checks.values()]
    verdicts += [] if new.verdict is None else [new.verdict]
    return replace(
        new,
        moment=replace(new.moment, when=old.moment.when),
        verdict=Verdict.worst(verdicts) if verdicts else old.verdict,
        checks=tuple(checks.values()),
        commands=tuple(commands.values()),
    )


# What shares of one series must have in common to be compared: the golden and the bound.
Basis = tuple[str | None, str]
_Value = TypeVar("_Value")
Series = dict[tuple[str, str], list[tuple[Moment, _Value]]]


class Collected(Struct):
    """Everything that results say over time, oldest first.

    verdicts: by check, each with how many variables do not match, and of results as a whole under
    '', with how many checks do not. shares: by check and variable,
    each with its basis. lost: of these, those of which the newest result of their check tells no
    share: not comparable, for instance. times, memory: by command and processor, in seconds and
    bytes, each with the facts of its environment. repeated: as of `read_results`.
    """

    moments: list[Moment] = field(default_factory=list)
    verdicts: dict[str, list[tuple[Moment, Verdict, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    shares: Series[tuple[Basis, float]] = field(default_factory=lambda: defaultdict(list))
    lost: set[tuple[str, str]] = field(default_factory=set)
    times: Series[tuple[float, Mapping[str, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    memory: Series[tuple[int, Mapping[str, str]]] = field(default_factory=lambda: defaultdict(list))
    repeated: int = 0


def collect(results: Iterable[Observed], repeated: int = 0) -> Collected:
    """The results in the order of time, whatever theirs is; two that began at the same time stay in
    the order given.
    """
    found = Collected(repeated=repeated)
    for one in sorted(results, key=lambda one: one.moment.when):
        found.moments.append(one.moment)
        if one.verdict is not None:
            bad = sum(not check.verdict.is_good for check in one.checks)
            found.verdicts[""].append((one.moment, one.verdict, bad))
        for check in one.checks:
            _add_check(found, one, check)
        for command in one.commands:
            key = (command.command, one.named(one.cpu))
            found.times[key].append((one.moment, (command.seconds, one.environment)))
            if command.peak_bytes is not None:
                found.memory[key].append((one.moment, (command.peak_bytes, one.environment)))
    for key, points in found.shares.items():
        newest = found.verdicts[key[0]][-1][0]
        if points[-1][0] is not newest:
            found.lost.add(key)
    return found


def _add_check(found: Collected, result: Observed, check: ObservedCheck) -> None:
    name = result.named(check.name)
    bad = sum(not one.verdict.is_good for one in check.variables)
    found.verdicts[name].append((result.moment, check.verdict, bad))
    for one in check.variables:
        if one.share is not None:
            told = ((check.golden, one.bound), one.share)
            found.shares[name, one.name].append((result.moment, told))
