"""Tests with the marker `ciwrap`: they must check something, and may run several times."""

from __future__ import annotations

import pytest

from ciwrap.pytest_plugin.results import RECORDER


def after_first_run(item: pytest.Item) -> None:
    """Runs the body again as often as `repeat` says; fails a test that checked nothing."""
    __tracebackhide__ = True
    if getattr(item, "_excinfo", None):
        return  # A unittest that failed; pytest tells of it later.
    recorder = item.stash.get(RECORDER, None)
    if recorder is None:
        _fail(item, "does not ask for the fixture 'ciwrap'")
    from ciwrap.pytest_plugin.fixture import CiwrapFixture

    assert isinstance(recorder, CiwrapFixture)
    if recorder.check_count == 0:
        _fail(item, "made no ciwrap.check()")
    if recorder.repeats is None:
        return
    for number in range(1, recorder.repeats.count):
        recorder.begin_run(number)
        item.runtest()
        if getattr(item, "_excinfo", None):
            return
        missing = recorder.repeats.missing()
        if missing:
            pytest.fail(
                f"run {number + 1} of {recorder.repeats.count} did not make the check {missing[0]},"
                " which the first run made",
                pytrace=False,
            )


def _fail(item: pytest.Item, what: str) -> None:
    __tracebackhide__ = True
    pytest.fail(
        f"{item.name} has the marker 'ciwrap', but {what}: nothing was compared", pytrace=False
    )
