"""Signals that come while something has to be finished, or put back."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from ciwrap.base.processes import endings_call, ends_are_interrupts, later_interrupts

ENDINGS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in ENDINGS]


@pytest.mark.parametrize("number", ENDINGS)
def test_ends_become_interrupts(number: signal.Signals) -> None:
    before = handlers()
    with pytest.raises(KeyboardInterrupt), ends_are_interrupts():  # noqa: PT012
        os.kill(os.getpid(), number)
        raise AssertionError("the signal came too late")
    assert handlers() == before


@pytest.mark.parametrize("number", ENDINGS)
def test_an_interrupt_waits_for_what_must_be_finished(number: signal.Signals) -> None:
    before = handlers()
    done = []
    with pytest.raises(KeyboardInterrupt), ends_are_interrupts():  # noqa: PT012
        with later_interrupts():
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)
            done.append("finished")
        done.append("too late")
    assert done == ["finished"]
    assert handlers() == before


def test_one_block_that_finishes_within_another_does_not_break_it() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), ends_are_interrupts():  # noqa: PT012
        with later_interrupts():
            with later_interrupts():
                os.kill(os.getpid(), signal.SIGTERM)
                done.append("inner")
            done.append("outer")
        done.append("too late")
    assert done == ["inner", "outer"]


def test_where_signals_only_tell_they_tell_at_the_end_of_the_block() -> None:
    told: list[int] = []
    with endings_call(told.append):
        with later_interrupts():
            os.kill(os.getpid(), signal.SIGHUP)
            assert told == []
        assert told == [signal.SIGHUP]


def test_an_error_within_is_what_is_told() -> None:
    with pytest.raises(ValueError, match="within"), later_interrupts():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        raise ValueError("within")


def test_what_is_ignored_stays_ignored() -> None:
    """As for a program that nohup started."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ends_are_interrupts(), later_interrupts():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_leave_signals_alone() -> None:
    before = handlers()
    seen = []

    def work() -> None:
        with ends_are_interrupts(), later_interrupts():
            seen.append(handlers())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
