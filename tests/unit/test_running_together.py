"""Jobs that run at once: whoever interrupts ends all of them, also while they are being started."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from ciwrap.running.together import together

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable


def until_stopped(stop: threading.Event | None) -> str:
    assert stop is not None
    return "stopped" if stop.wait(30) else "nobody stopped it"


def test_an_interrupt_while_jobs_are_started_ends_those_that_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    submit = ThreadPoolExecutor.submit

    def interrupted(pool: ThreadPoolExecutor, *words: Any) -> Any:
        submit(pool, *words)
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        together([lambda stop: told.append(until_stopped(stop))] * 2)
    assert told == ["stopped"]


def test_one_that_fails_ends_the_others() -> None:
    def fails(_: threading.Event | None) -> str:
        raise ValueError("no")

    for jobs in ([fails, until_stopped], [until_stopped, fails]):
        told: list[str] = []
        with pytest.raises(ValueError, match="no"):
            together([partial(noted, told, job) for job in jobs])
        assert told == ["stopped"]


def noted(
    told: list[str], job: Callable[[threading.Event | None], str], stop: threading.Event | None
) -> None:
    told.append(job(stop))
