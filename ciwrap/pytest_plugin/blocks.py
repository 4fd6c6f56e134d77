"""Blocks of checks: all of them before the test fails, or one that is to fail."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ciwrap.errors import GoldenMismatch, UsageError
from ciwrap.pytest_plugin.judge import EXPECTED, MATCHED
from ciwrap.pytest_plugin.unmet import UnmetCheck, joined
from ciwrap.structs import replace

if TYPE_CHECKING:
    from ciwrap.model import CheckResult
    from ciwrap.pytest_plugin.judge import Outcome
    from ciwrap.pytest_plugin.unmet import Unmet


class Blocks:
    """Which block of a test is open: one at most, since a check has to know what it is for."""

    def __init__(self, unmet: Unmet) -> None:
        self.unmet = unmet
        self.all: AllChecks | None = None
        self.expected: ExpectedMismatch | None = None

    @property
    def expected_here(self) -> ExpectedMismatch | None:
        """The block that this thread has opened: another thread's mismatch is not the one meant."""
        block = self.expected
        return block if block is not None and block.is_of_this_thread else None

    @property
    def is_free(self) -> bool:
        return self.all is None and self.expected is None

    def refuse_another(self) -> None:
        if not self.is_free:
            raise self.refused("ciwrap.all() and ciwrap.expect_mismatch() cannot be nested")

    def refused(self, text: str) -> UsageError:
        """The error for a block that cannot begin: its checks will not be made."""
        self.unmet.add(UnmetCheck("a block of checks", text))
        return UsageError(text)


class AllChecks:
    """What `with ciwrap.all():` is."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._failed: list[UnmetCheck] = []

    def __enter__(self) -> None:
        self._blocks.refuse_another()
        self._blocks.all = self

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        __tracebackhide__ = True
        self._blocks.all = None
        if not self._failed:
            return
        failure = joined(self._failed)
        self._blocks.unmet.add(UnmetCheck("all", str(failure), result=failure.result))
        if error is None:
            raise failure

    def add(self, check: UnmetCheck) -> None:
        self._failed.append(check)


class ExpectedMismatch:
    """What `with ciwrap.expect_mismatch() as caught:` gives.

    result: of the check that did not match its golden; None before there is one.
    """

    def __init__(self, blocks: Blocks, title: str) -> None:
        self.result: CheckResult | None = None
        self._blocks = blocks
        self._title = title
        self._matched_count = 0
        self._thread = threading.get_ident()

    @property
    def is_of_this_thread(self) -> bool:
        return self._thread == threading.get_ident()

    def __enter__(self) -> ExpectedMismatch:
        self._blocks.refuse_another()
        self._blocks.expected = self
        return self

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> bool:
        __tracebackhide__ = True
        self._blocks.expected = None
        if isinstance(error, GoldenMismatch) and self.is_for(error.result):
            return True
        if error is None and self.result is None:
            found = "all of them match" if self._matched_count else "none was made"
            text = f"{self._title}: a check was expected to differ from its golden, but {found}"
            self._blocks.unmet.add(UnmetCheck(self._title, text))
            raise GoldenMismatch(text)
        return False

    def judge(self, outcome: Outcome) -> Outcome:
        """The outcome of a check in the block, as expected if it has compared and does not match.

        A golden that is missing or damaged was not compared with anything: that is not expected.
        """
        if outcome.word == MATCHED:
            self._matched_count += 1
            return outcome
        if not outcome.result.variables:
            return outcome
        self.result = outcome.result
        return replace(outcome, word=EXPECTED)

    def is_for(self, result: CheckResult | None) -> bool:
        """Whether this is the result of the expected mismatch."""
        return result is not None and result is self.result
