"""Jobs that run at once: whoever interrupts ends all of them, also while they are being started."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from ciwrap.project.run_command import together

if TYPE_CHECKING:
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_breaks_into_nothing(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Where it was an exception in the middle of a pool's or a future's work, that one's locks were
    left as they were, and the command waited for ever, or ended with an error of its own.
    """
    main = threading.main_thread().ident
    assert main is not None
    began: list[object] = []
    submit = ThreadPoolExecutor.submit

    def interrupted(pool: ThreadPoolExecutor, *words: Any) -> Any:
        future = submit(pool, *words)
        signal.raise_signal(number)
        began.append(future)
        return future

    def impatient(stop: threading.Event | None) -> str:
        assert stop is not None
        assert stop.wait(30)
        signal.pthread_kill(main, number)
        return "stopped"

    told: list[str] = []
    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        together([partial(noted, told, job) for job in (impatient, until_stopped)])
    assert len(began) == 2
    assert told == ["stopped"] * 2


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
