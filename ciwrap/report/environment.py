"""What the golden was made with beside what the run ran with: the most frequent cause of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ciwrap.report.findings import check_title
from ciwrap.report.text import plural, safe_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ciwrap.model import RunResult

_MOST_TABLES = 8
# They tell of the change itself, not of the machine it ran on.
_EXPECTED_TO_DIFFER = frozenset({"git_commit", "ciwrap"})
_NAMES = {
    "cpu": "CPU",
    "cpu_count": "CPUs that may be used",
    "os": "operating system",
    "kernel": "kernel",
    "machine": "architecture",
    "python": "Python",
    "numpy": "NumPy",
    "git_commit": "git commit",
}


@dataclass(frozen=True, slots=True)
class Fact:
    key: str
    golden: str
    run: str
    differs: bool
    is_expected: bool = False

    @property
    def is_marked(self) -> bool:
        return self.differs and not self.is_expected


@dataclass(frozen=True, slots=True)
class Environment:
    """One table. title: the checks it is of, where there are several tables."""

    title: str
    rows: tuple[Fact, ...]
    note: str = ""


def environments_of(run: RunResult) -> tuple[Environment, ...]:
    """A table for each pair of golden and run environments among the checks."""
    pairs: dict[tuple[tuple[tuple[str, str], ...], ...], list[str]] = {}
    for check in run.checks:
        ours = tuple(sorted(check.golden_environment.items()))
        theirs = tuple(sorted((check.environment or run.environment).items()))
        if ours or theirs:
            pairs.setdefault((ours, theirs), []).append(check_title(check))
    if not pairs and run.environment:
        pairs[((), tuple(sorted(run.environment.items())))] = []
    tables = []
    for (ours, theirs), names in list(pairs.items())[:_MOST_TABLES]:
        title = ""
        if len(pairs) > 1:
            title = safe_name(names[0], 80)
            if len(names) > 1:
                title += f" and {plural(len(names) - 1, 'other check')}"
        note = "" if ours else "It is not recorded what the golden side was made with."
        tables.append(Environment(title, _facts(dict(ours), dict(theirs)), note))
    return tuple(tables)


def _facts(golden: Mapping[str, str], run: Mapping[str, str]) -> tuple[Fact, ...]:
    keys = [*golden, *(key for key in run if key not in golden)]
    order = list(_NAMES)
    keys.sort(key=lambda key: (order.index(key) if key in order else len(order), key))
    facts = [
        Fact(
            key=safe_name(_NAMES.get(key, key), 80),
            golden=safe_name(golden.get(key, "not set" if golden else "not recorded"), 200),
            run=safe_name(run.get(key, "not set" if run else "not recorded"), 200),
            differs=bool(golden) and bool(run) and golden.get(key) != run.get(key),
            is_expected=key in _EXPECTED_TO_DIFFER,
        )
        for key in keys
    ]
    return tuple(sorted(facts, key=lambda fact: not fact.is_marked))


def differing_keys(environments: Sequence[Environment]) -> tuple[str, ...]:
    """What is not as it was, the commit apart."""
    found = {
        fact.key: None
        for environment in environments
        for fact in environment.rows
        if fact.is_marked
    }
    return tuple(found)
