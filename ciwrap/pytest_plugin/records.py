"""What one test's checks found, as plain values that can be sent to another process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ciwrap.compare.law import message_of
from ciwrap.errors import CiwrapError, NotComparableError
from ciwrap.model import CheckResult, Verdict
from ciwrap.pytest_plugin.telling import property_of
from ciwrap.report.document import plain
from ciwrap.structs import asdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from ciwrap.pytest_plugin.judge import Outcome


class Records:
    """Keeps a record for each check of a test. Safe for threads."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._lock = threading.Lock()
        self._records: list[dict[str, Any]] = []
        self._timings: list[str] = []

    def add_timing(self, name: str | None, lines: Sequence[str]) -> None:
        """What `time()` found, in words, the verdict first."""
        test = self._item.nodeid + (f"::{name}" if name else "")
        with self._lock:
            self._timings.append(f"{test}: {'; '.join(lines)}")
        self._item.user_properties.append((f"ciwrap time {test}", lines[0]))

    def take_timings(self) -> list[str]:
        """What was timed since the last call, a line for each."""
        with self._lock:
            taken, self._timings = self._timings, []
        return taken

    def add_outcome(self, outcome: Outcome, check: str) -> None:
        self._add(
            check,
            outcome.word,
            outcome.result,
            place=[outcome.place.folder, outcome.place.name],
            written=outcome.written,
            pending=outcome.pending,
        )
        self._note_property(check, outcome.word, outcome.result)

    def add_repeat(self, result: CheckResult) -> None:
        """Of all runs, one record is kept for each check: the last one, or one that failed."""
        word = "repeated" if result.verdict.exit_code == 0 else "not_repeated"
        with self._lock:
            known = [one for one in self._records if one["check"] == result.name]
            if any(one["outcome"] == "not_repeated" for one in known):
                return
            self._records = [one for one in self._records if one["check"] != result.name]
        self._add(result.name, word, result)

    def add_refused(self, name: object, error: BaseException) -> None:
        """A check that ended before it had compared anything."""
        if not isinstance(error, CiwrapError):
            error = NotComparableError(f"{type(error).__name__}: {error}")
        check = self._item.nodeid + (f"::{name}" if isinstance(name, str) else "")
        # A mistake ends its test, as it ends a command; the session's result says that nothing of
        # it was compared.
        messages = (message_of(error),)
        result = CheckResult(check, Verdict.NOT_COMPARABLE, messages=messages)
        self._add(check, "refused", result)
        self._note_property(check, "refused", result)

    def take(self, *, are_repeated: bool) -> list[dict[str, Any]]:
        """What was added since the last call."""
        with self._lock:
            taken, self._records = self._records, []
        if are_repeated:
            for record in taken:
                if record["outcome"] != "refused":
                    name = f"ciwrap {record['check']}"
                    self._item.user_properties.append((name, record["outcome"]))
        return taken

    def _add(
        self,
        check: str,
        word: str,
        result: CheckResult,
        *,
        place: list[str] | None = None,
        written: str | None = None,
        pending: bool = False,
    ) -> None:
        record = {
            "test": self._item.nodeid,
            "check": check,
            "module": str(self._item.path),
            "place": place,
            "outcome": word,
            "written": written,
            "pending": pending,
            "result": plain(result),
            "coverage": asdict(result.coverage),
        }
        with self._lock:
            self._records.append(record)

    def _note_property(self, check: str, word: str, result: CheckResult) -> None:
        self._item.user_properties.append(property_of(check, word, result))
