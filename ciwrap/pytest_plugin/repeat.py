"""Run-to-run reproducibility: every run of a test's body against its first one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.compare.check import check_catalog
from ciwrap.errors import UsageError
from ciwrap.golden.evidence import capture
from ciwrap.golden.manifest import BinaryFile, Manifest, rows_of
from ciwrap.golden.store import StoredGolden
from ciwrap.model import CheckResult, EvidencePolicy, Message, MessageLevel, Verdict
from ciwrap.report.failure import failure_lines

if TYPE_CHECKING:
    from ciwrap.catalog.catalog import Catalog
    from ciwrap.config import Check

FIRST_RUN = "the first run"


@dataclass(slots=True)
class _Series:
    """One check over all runs. golden: what the first run gave; worst: of the others."""

    golden: StoredGolden
    worst: CheckResult | None = None


class Repeats:
    """The runs of one test. count: how many, at least 2. Raises UsageError for anything else."""

    def __init__(self, count: object) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 2:
            raise UsageError(f"repeat={count!r}: at least 2 runs are needed")
        self.count = count
        self._number = 0
        self._series: dict[str, _Series] = {}
        self._seen: set[str] = set()

    def begin(self, number: int) -> None:
        """The number-th run begins, from 0. Raises AssertionError if the last one made fewer checks
        than the first.
        """
        self._number = number
        self._seen = set()

    def missing(self) -> list[str]:
        """Checks that the first run made and this one did not."""
        return [name for name in self._series if name not in self._seen]

    def compare(
        self, check: Check, catalog: Catalog, test_id: str
    ) -> tuple[CheckResult, str | None]:
        """Takes the first run's values, compares later ones with them; the result (the worst one so
        far), and what is wrong with it, in words.
        """
        self._seen.add(check.name)
        if self._number == 0:
            self._series[check.name] = _Series(_taken(check, catalog))
        series = self._series.get(check.name)
        if series is None:
            result = _failed(check, f"run {self._number + 1} makes this check, run 1 did not")
        else:
            # The first run is compared with itself, so that what cannot be compared shows at once.
            result = check_catalog(check, series.golden, catalog)
        result = replace(
            result, golden_path=None, golden_root=None, golden_bytes=None, test_id=test_id
        )
        run = f"run {self._number + 1} of {self.count}"
        if result.verdict is not Verdict.MATCH:
            title = f"{run} is not like {FIRST_RUN}"
            lines = failure_lines(title, result, ())
            if not lines[0].startswith(title):
                lines[0] = f"{title}: {lines[0]}"
            note = Message(MessageLevel.NOTE, title)
            return replace(result, messages=(*result.messages, note)), "\n".join(lines)
        assert series is not None
        if series.worst is None or _share(result) >= _share(series.worst):
            series.worst = result
        note = Message(MessageLevel.NOTE, f"{run} compared with {FIRST_RUN}; the worst is shown")
        return replace(series.worst, messages=(*series.worst.messages, note)), None


def _share(result: CheckResult) -> float:
    return result.max_drift_share or 0.0


def _taken(check: Check, catalog: Catalog) -> StoredGolden:
    """A run's values as a golden in memory, with all of its data."""
    if catalog.errors:
        raise catalog.errors[0]
    variables = []
    labels = {}
    for identity, entry in catalog.entries.items():
        if check.is_ignored(identity):
            continue
        settings = replace(
            check.settings_for(identity, entry.info.dtype), evidence=EvidencePolicy.DATA
        )
        values = catalog.values(identity, settings.mask)
        variables.append(capture(values, settings, identity).variable)
        labels[identity] = values.labels
    here = Path(FIRST_RUN)
    return StoredGolden(
        check.name,
        here,
        here,
        Manifest(check.name, BinaryFile("", "", 0), rows_of(variables, labels), {}),
        tuple(variables),
        0,
    )


def _failed(check: Check, text: str) -> CheckResult:
    return CheckResult(
        check.name,
        Verdict.NOT_COMPARABLE,
        messages=(Message(MessageLevel.ERROR, text),),
    )
