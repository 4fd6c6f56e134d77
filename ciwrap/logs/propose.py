"""Proposes values from two logs of one program: places whose numbers look like results.

A line is its words with the numbers taken out. A place is a number in such a line. It is proposed
if both logs have it equally often, it is printed with many digits, and hardly moves from one run
to the other.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from ciwrap.logs.numbers import NEXT_NUMBER, printed_digits
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST_DIGITS = 7
MOST_RELATIVE = 1e-2
# The bound is so many times what two runs differ by, and so many units of the last printed place.
TIMES_VARIATION = 10
PRINTED_UNITS = 1.5
MOST_PROPOSED = 200
_MOST_LINES = 100_000
# What depends on the machine, not on what is computed.
_MACHINE = re.compile(
    r"(?i)(?<![a-z])(cpu|wall|walltime|elapsed|seconds?|secs?|minutes?|hours?|timings?|time|date"
    r"|memory|mem|[kmg]i?b|ranks?|process(es|ors?)?|procs?|threads?|cores?|mpi|omp|openmp|pid|hosts?"
    r"|speed|performance|load|rss|flops?|steps/s|tau/day)(?![a-z])"
)
_MARK, _OTHER_MARK = b"\x01", b"\x02"
# Also times, dates and counters such as `step 3/10`, which are no results, and by which lines of
# one kind differ.
_COUNTED = re.compile(
    NEXT_NUMBER.pattern
    + rb"|(?P<other>(?<![A-Za-z0-9_.])[0-9]+(?:(?:[/:,;~'\-]|\.\.+)[0-9]+)+(?![A-Za-z0-9_]))"
)
_LEADING = ("energy", "total", "potential", "pressure", "force", "temperature", "charge")
_LETTERS = re.compile(r"[A-Za-z]+")


class _Place(Struct):
    """A number in lines of one kind, over a whole log."""

    values: list[float] = field(default_factory=list)
    digits: int = 0
    exponent: int = -400


class _Kind(Struct):
    """Lines that are the same but for their numbers. example: the first one."""

    example: bytes
    count: int = 0
    places: list[_Place] = field(default_factory=list)


class Proposal(Struct, frozen=True):
    """A value to look for. text: a template, or with a column one without fields. count: matches.
    atol: the bound that is proposed. digits: that are printed.
    """

    name: str
    text: str
    column: int | None
    atol: float
    count: int
    digits: int


def propose(first: Iterable[bytes], second: Iterable[bytes]) -> list[Proposal]:
    """Values from the lines of two logs, the likeliest ones first."""
    ours, theirs = _kinds(first), _kinds(second)
    found: list[tuple[tuple[int, ...], _Kind, int, _Place, float]] = []
    for position, (key, kind) in enumerate(ours.items()):
        other = theirs.get(key)
        words = key.replace(_MARK, b" ").replace(_OTHER_MARK, b" ").decode("utf-8", "replace")
        if other is None or other.count != kind.count or _MACHINE.search(words):
            continue
        for number, (mine, yours) in enumerate(zip(kind.places, other.places, strict=True)):
            largest = _variation(mine, yours)
            if largest is not None:
                rank = (*_rank(words), number, position)
                found.append((rank, kind, number, mine, largest))
    found.sort(key=lambda one: one[0])
    proposals: list[Proposal] = []
    names: set[str] = set()
    for _, kind, number, place, largest in found[:MOST_PROPOSED]:
        made = _proposal(kind, number, place, largest, names)
        if made is not None:
            proposals.append(made)
    return proposals


def _kinds(lines: Iterable[bytes]) -> dict[bytes, _Kind]:
    kinds: dict[bytes, _Kind] = {}
    for count, line in enumerate(lines):
        if count >= _MOST_LINES:
            break
        numbers = _numbers(line)
        if not numbers:
            continue
        key = b" ".join(_COUNTED.sub(_mark, line).split())
        kind = kinds.setdefault(key, _Kind(line, places=[_Place() for _ in numbers]))
        kind.count += 1
        for place, found in zip(kind.places, numbers, strict=True):
            text = found[0].decode("ascii")
            place.values.append(_value(text))
            digits, exponent = printed_digits(text)
            place.digits = max(place.digits, digits)
            place.exponent = max(place.exponent, exponent) if digits else place.exponent
    return kinds


def _numbers(line: bytes) -> list[re.Match[bytes]]:
    return [found for found in _COUNTED.finditer(line) if found.lastgroup is None]


def _mark(found: re.Match[bytes]) -> bytes:
    return _MARK if found.lastgroup is None else _OTHER_MARK


def _value(text: str) -> float:
    plain = re.sub("[dDqQ]", "e", text)
    try:
        return float(plain)
    except ValueError:  # an exponent without a letter
        return math.nan


def _variation(ours: _Place, theirs: _Place) -> float | None:
    """The largest difference of two runs; None for a place that is not a result."""
    if max(ours.digits, theirs.digits) < LEAST_DIGITS:
        return None
    largest = 0.0
    for one, other in zip(ours.values, theirs.values, strict=True):
        apart = abs(one - other)
        if not apart <= MOST_RELATIVE * max(abs(one), abs(other)):
            return None
        largest = max(largest, apart)
    return largest


def _rank(words: str) -> tuple[int, ...]:
    """How likely a line is to be a result: what people look at first."""
    lower = [one.lower() for one in _LETTERS.findall(words)]
    leading = [-sum(word == one for word in lower) for one in _LEADING]
    return (min(0, max(-3, sum(leading))), *leading[:2], len(lower))


def _proposal(
    kind: _Kind, number: int, place: _Place, largest: float, names: set[str]
) -> Proposal | None:
    start, end = _numbers(kind.example)[number].span()
    before = kind.example[:start].decode("utf-8", "replace")
    counted = _COUNTED.search(kind.example)
    assert counted is not None
    first = counted.start()
    lead = " ".join(kind.example[:first].decode("utf-8", "replace").split())
    letters = _LETTERS.findall(lead) or _LETTERS.findall(before)
    if len("".join(letters)) < 2:
        return None
    name = _free_name("_".join(one.lower() for one in letters[-4:]), names)
    atol = max(TIMES_VARIATION * largest, PRINTED_UNITS * 10.0 ** max(place.exponent, -300))
    atol = float(f"{atol:.2g}")
    escaped = lead.replace("{", "{{").replace("}", "}}")
    if start == first:
        return Proposal(name, f"^{escaped} {{{name}}}", None, atol, kind.count, place.digits)
    is_word = not before[-1:].strip() and not kind.example[end : end + 1].strip()
    if not is_word or not lead:
        return None
    column = len(before.split()) + 1
    return Proposal(name, f"^{escaped}", column, atol, kind.count, place.digits)


def _free_name(name: str, names: set[str]) -> str:
    number, free = 1, name
    while free in names:
        number += 1
        free = f"{name}_{number}"
    names.add(free)
    return free
