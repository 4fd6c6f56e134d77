"""What the golden was made with beside what the run ran with: a difference often, a cause at times.

Differences come in the order of how often they change numbers, each with the command that would
prove that it does; what is equal follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ciwrap.model import CheckResult, EnvironmentDifference, RunResult
from ciwrap.report.lead import check_title
from ciwrap.report.text import plural, safe_name
from ciwrap.snapshot.difference import compare_summaries, ranked, words_of_kind

_MOST_TABLES = 8
MOST_DIFFERENCES = 40
_NAMES = {
    "cpu": "CPU",
    "cpu_count": "CPUs that may be used",
    "cpu_flags": "CPU flags",
    "os": "operating system",
    "kernel": "kernel",
    "machine": "architecture",
    "python": "Python",
    "numpy": "NumPy",
    "git_commit": "git commit",
    "blas": "BLAS and LAPACK",
    "blas_architecture": "BLAS kernels for",
    "libm": "libm",
    "compiler_runtime": "compiler runtime",
    "mpi": "MPI",
    "cuda": "CUDA",
}


class Fact(Struct, frozen=True):
    """One fact of both sides. kind: what it is, for those that differ. prove: the command that
    would show whether it changes the numbers.
    """

    key: str
    golden: str
    run: str
    kind: str = ""
    prove: str = ""


class Environment(Struct, frozen=True):
    """One table. title: the checks it is of, where there are several tables. differences: ranked.
    more: how many of them are not shown. rows: what the summaries say, beside one another.
    """

    title: str
    differences: tuple[Fact, ...]
    more: int
    rows: tuple[Fact, ...]
    note: str = ""

    @property
    def unequal(self) -> tuple[str, ...]:
        """The facts that are others on both sides, also those that matter to no number (another
        commit).
        """
        return tuple(one.key for one in self.rows if one.golden != one.run)


def environments_of(run: RunResult) -> tuple[Environment, ...]:
    """A table for each pair of golden and run environments among the checks."""
    pairs: dict[tuple[tuple[tuple[str, str], ...], ...], list[CheckResult]] = {}
    for check in run.checks:
        ours = tuple(sorted(check.golden_environment.items()))
        theirs = tuple(sorted((check.environment or run.environment).items()))
        if ours or theirs:
            pairs.setdefault((ours, theirs), []).append(check)
    tables = [
        _table(dict(ours), dict(theirs), checks, is_only=len(pairs) == 1)
        for (ours, theirs), checks in list(pairs.items())[:_MOST_TABLES]
    ]
    if not pairs and run.environment:
        tables.append(_table({}, run.environment, [], is_only=True))
    return tuple(tables)


def worst_differences(run: RunResult) -> tuple[EnvironmentDifference, ...]:
    """The differences of all checks that do not match, each once, in their order."""
    found = {
        (one.kind, one.name): one
        for check in run.checks
        if check.verdict.severity
        # Of a document that has no differences, what its facts say.
        for one in check.environment_differences
        or compare_summaries(check.golden_environment, check.environment or run.environment)
    }
    return ranked(found.values())


def difference_line(one: EnvironmentDifference) -> str:
    """`OMP_NUM_THREADS differs: golden 1, this run 8 (thread settings)`."""
    name = safe_name(_NAMES.get(one.name, one.name), 80)
    sides = f"golden {safe_name(one.golden, 90)}, this run {safe_name(one.run, 90)}"
    return f"{name} differs: {sides} ({words_of_kind(one.kind)})"


def differing_keys(environments: Sequence[Environment]) -> tuple[str, ...]:
    """What is not as it was, the commit apart; the likeliest to change numbers first."""
    return tuple(dict.fromkeys(fact.key for table in environments for fact in table.differences))


def _table(
    golden: Mapping[str, str],
    run: Mapping[str, str],
    checks: Sequence[CheckResult],
    *,
    is_only: bool,
) -> Environment:
    title = ""
    if not is_only and checks:
        title = safe_name(check_title(checks[0]), 80)
        if len(checks) > 1:
            title += f" and {plural(len(checks) - 1, 'other check')}"
    told = checks[0].environment_differences if checks else ()
    found = tuple(
        _fact(one.name, one.golden, one.run, words_of_kind(one.kind), one.prove or "")
        for one in told or compare_summaries(golden, run)
    )
    note = "" if golden else "The environment of the golden is not known."
    more = max(0, len(found) - MOST_DIFFERENCES)
    return Environment(title, found[:MOST_DIFFERENCES], more, _rows(golden, run), note)


def _fact(key: str, golden: str, run: str, kind: str = "", prove: str = "") -> Fact:
    golden, run, prove = (safe_name(one, 200) for one in (golden, run, prove))
    return Fact(safe_name(_NAMES.get(key, key), 80), golden, run, kind, prove)


def _rows(golden: Mapping[str, str], run: Mapping[str, str]) -> tuple[Fact, ...]:
    """All that the summaries say, in the order of `_NAMES`, then by name."""
    keys = [*golden, *(key for key in run if key not in golden)]
    order = list(_NAMES)
    keys.sort(key=lambda key: (order.index(key) if key in order else len(order), key))
    ours, theirs = ("not set" if side else "not recorded" for side in (golden, run))
    return tuple(_fact(key, golden.get(key, ours), run.get(key, theirs)) for key in keys)
