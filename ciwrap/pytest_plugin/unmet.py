"""Checks that failed, until a failure of their test has reported them; what is left fails it."""

from __future__ import annotations

import mmap
import struct
import sys
import threading
from collections.abc import Sequence

import pytest
from msgspec import Struct

from ciwrap.base.errors import GoldenMismatch, UsageError
from ciwrap.model import CheckResult
from ciwrap.report.text import plural, safe_name, safe_text

_MOST_IN_FULL = 5
_WENT_ON = "  the test went on after {}; let the exception fail the test"
_IS_MEANT = ", or say that the mismatch is meant: with ciwrap.expect_mismatch():"


class UnmetCheck(Struct, frozen=True):
    """A check that failed. title: its name. text: the message of its exception. where: file and
    line of the call. result: None if nothing was compared. is_kept: whether it raised nothing, so
    that the checks after it were made. raised: what its exception says, if that is not the text.
    """

    title: str
    text: str
    where: str | None = None
    result: CheckResult | None = None
    is_kept: bool = False
    raised: str | None = None

    def is_told_by(self, error: BaseException | None) -> bool:
        return str(error) in (self.text, self.raised)


class Unmet:
    """The failed checks of one test that no failure of it has reported. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._checks: list[UnmetCheck] = []
        self._running: list[str] = []
        self._has_ended = False
        self._beside: list[UnmetCheck] = []

    def begin(self, title: str) -> bool:
        """A check begins; False if the test has ended already."""
        with self._lock:
            if not self._has_ended:
                self._running.append(title)
            return not self._has_ended

    def end(self, title: str) -> None:
        with self._lock:
            if title in self._running:
                self._running.remove(title)

    def add(self, check: UnmetCheck) -> None:
        with self._lock:
            self._checks.append(check)

    def end_test(self) -> list[str]:
        """From here on the test can tell of no check any more; what it never reported."""
        with self._lock:
            self._has_ended = True
            left = [*self._running, *(one.title for one in self._checks)]
            self._checks = []
        return [f"{title}: the check went on, or failed, when the test had ended" for title in left]

    def tell(self, error: BaseException | None) -> None:
        """A failure has reported the check that raised this."""
        with self._lock:
            told = next((one for one in self._checks if one.is_told_by(error)), None)
            if told is not None:
                self._checks.remove(told)

    def tell_all(self, error: BaseException | None = None) -> None:
        """The test fails with this error, or in its setup: other failures are shown beside it."""
        with self._lock:
            self._beside += [one for one in self._checks if not one.is_told_by(error)]
            self._checks.clear()

    def take_beside(self) -> str | None:
        """The text of all checks that failed beside what their test failed with."""
        with self._lock:
            found, self._beside = self._beside, []
        return str(joined(found)) if found else None

    def raise_unreported(self, item: pytest.Item, error: BaseException | None, when: str) -> None:
        """Raises GoldenMismatch for the checks that nobody reported, unless the test fails anyway.

        error: what the test, or its teardown, ended with. when: "call" or "teardown".
        """
        __tracebackhide__ = True
        noted = getattr(item, "_excinfo", None) if when == "call" else None  # of a unittest
        if error is None and noted:
            error = noted[0].value
        if error is not None and _fails_the_test(item, error):
            self.tell_all(error)
            return
        with self._lock:
            found, self._checks = self._checks, []
            if when == "teardown":
                found += [UnmetCheck(title, _RUNNING.format(title)) for title in self._running]
                self._running = []
        if not found:
            return
        if noted:
            noted.clear()
        # What the test ended with is no failure; as the context of one it would look like it.
        raise joined(found, went_on=True) from None


_RUNNING = "{}: the check is still going on in a thread; join the thread before the test ends"


def joined(checks: Sequence[UnmetCheck], *, went_on: bool = False) -> GoldenMismatch:
    """One exception for several checks. went_on: whether their test did, after each of them."""
    lines = []
    if len(checks) > 1:
        lines.append(f"{plural(len(checks), 'check')} failed:")
    for one in checks[:_MOST_IN_FULL]:
        lines.append(one.text)
        if one.where is not None:
            lines.append(f"  checked at {safe_text(one.where)}")
    if len(checks) > _MOST_IN_FULL:
        names = ", ".join(safe_name(one.title) for one in checks[_MOST_IN_FULL:])
        lines.append(f"  ... and {len(checks) - _MOST_IN_FULL} more: {names}")
    if went_on and not all(one.is_kept for one in checks):
        hint = _WENT_ON.format("it" if len(checks) == 1 else "them")
        lines.append(hint + (_IS_MEANT if any(one.result for one in checks) else ""))
    return GoldenMismatch("\n".join(lines), checks[0].result)


class ForkedChecks:
    """Tells a process of checks that processes forked from it were to make: by memory that they
    share, since nothing else of theirs comes back.
    """

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)

    def note(self, test: int) -> None:
        """In a forked process: a check of the test of this number was to be made, from 1."""
        _NUMBER.pack_into(self._shared, 0, test)

    def take(self, test: int | None = None) -> bool:
        """Whether one was noted of the test since the last call; None: of any."""
        (noted,) = _NUMBER.unpack_from(self._shared)
        if noted == 0 or test not in (None, noted):
            return False
        _NUMBER.pack_into(self._shared, 0, 0)
        return True


_NUMBER = struct.Struct("<Q")


def _fails_the_test(item: pytest.Item, error: BaseException) -> bool:
    """Whether an exception that a test ends with also fails it, so that a mismatch is reported."""
    unittest = sys.modules.get("unittest")
    if isinstance(error, pytest.skip.Exception):
        return False
    if unittest is not None and isinstance(error, unittest.SkipTest):
        return False
    if isinstance(error, (GoldenMismatch, pytest.xfail.Exception, KeyboardInterrupt)):
        return True
    # Such a marker may expect this exception, and not the mismatch.
    return isinstance(error, pytest.exit.Exception) or item.get_closest_marker("xfail") is None


def in_forked(title: str) -> UsageError:
    return UsageError(
        f"{title}: a check was made in a process that its test had forked; nothing was compared",
        remedy="take the numbers back to the test, and check them there",
    )


def after_the_end(title: str) -> UsageError:
    return UsageError(
        f"{title}: the test had ended when this check was made; nothing was compared",
        remedy="join the test's threads, and ask for the fixture 'ciwrap' in every test",
    )
