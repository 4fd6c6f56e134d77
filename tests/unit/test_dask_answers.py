"""Answers of Dask workers that do not come: asked for once more, and not for ever.

A client stands in for Dask's, whose scheduler loses what it is told to.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import BrokenExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ciwrap.runs.on_dask import OnDask

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator


class Asked:
    """What Dask calls a future. fate: "comes", "lost" (computed, but never here), "slow" (to be
    computed), "fails", "forgotten" (by a client that is closed). Of none of them its status is
    worth anything.
    """

    def __init__(self, fate: str, answer: Any) -> None:
        self.fate, self.answer, self.status = fate, answer, "pending"

    def add_done_callback(self, tell: Callable[[Asked], None]) -> None:
        if self.fate != "forgotten":
            threading.Timer(0.3 if self.fate == "slow" else 0, tell, (self,)).start()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._result().__await__()

    async def _result(self) -> Any:
        if self.fate == "lost":
            await asyncio.Event().wait()
        if self.fate == "slow":
            await asyncio.sleep(0.3)
        if self.fate == "fails":
            raise ValueError("the worker says no")
        return self.answer


class Client:
    """Deals out fates in turn, the last one to all others."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *fates: str) -> None:
        self.tasks: list[asyncio.Task[Any]] = []

        def call(function: Callable[..., Any], *words: Any) -> None:
            made = function(*words)
            if made is not None:
                self.tasks.append(loop.create_task(made))

        def add_callback(function: Callable[..., Any], *words: Any) -> None:
            loop.call_soon_threadsafe(call, function, *words)

        self.loop = SimpleNamespace(add_callback=add_callback, call_later=loop.call_later)
        self.fates, self.count, self.status = fates, 0, "running"

    def submit(self, function: Callable[..., Any], *words: Any, pure: bool) -> Asked:
        assert not pure
        fate = self.fates[min(self.count, len(self.fates) - 1)]
        self.count += 1
        return Asked(fate, function(*words))


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.AbstractEventLoop]:
    monkeypatch.setattr(OnDask, "_PATIENCE_SECONDS", 0.05)
    found = asyncio.new_event_loop()
    thread = threading.Thread(target=found.run_forever)
    thread.start()
    yield found
    for late in threading.enumerate():
        if isinstance(late, threading.Timer):  # an answer that nobody waits for
            late.join()
    for left in asyncio.all_tasks(found):
        found.call_soon_threadsafe(left.cancel)
    found.call_soon_threadsafe(found.stop)
    thread.join()
    found.run_until_complete(asyncio.sleep(0))
    found.close()


@pytest.mark.parametrize(
    ("fates", "count"),
    [
        (["comes"], 1),
        (["lost", "comes"], 2),
        (["lost", "lost", "lost", "comes"], 4),
        (["lost", "slow"], 2),  # nobody is asked again while one is at work
    ],
)
def test_what_was_lost_is_asked_for_again(
    loop: asyncio.AbstractEventLoop, fates: list[str], count: int
) -> None:
    client = Client(loop, *fates)
    answer = OnDask(client).submit(lambda one, other: one + other, 3, 4)
    assert answer.result(timeout=20) == 7
    assert client.count == count


def test_what_is_lost_each_time_is_an_error(loop: asyncio.AbstractEventLoop) -> None:
    client = Client(loop, "lost")
    answer = OnDask(client).submit(int)
    assert "did not come" in str(answer.exception(timeout=20))
    assert isinstance(answer.exception(), TimeoutError)
    assert client.count == 4


@pytest.mark.parametrize("fates", [["fails"], ["lost", "fails"]])
def test_an_error_is_the_answer(loop: asyncio.AbstractEventLoop, fates: list[str]) -> None:
    answer = OnDask(Client(loop, *fates)).submit(int)
    with pytest.raises(ValueError, match="the worker says no"):
        answer.result(timeout=20)


class ClosedClient(Client):
    """Takes one question, and nothing more."""

    def submit(self, function: Callable[..., Any], *words: Any, pure: bool) -> Asked:
        if self.count:
            raise RuntimeError("the client is closed")
        return super().submit(function, *words, pure=pure)


def test_a_client_that_takes_nothing_more_is_an_error(loop: asyncio.AbstractEventLoop) -> None:
    answer = OnDask(ClosedClient(loop, "lost")).submit(int)
    with pytest.raises(RuntimeError, match="closed"):
        answer.result(timeout=20)


def test_what_nobody_waits_for_any_more_is_not_fetched(loop: asyncio.AbstractEventLoop) -> None:
    client = Client(loop, "comes")
    begun = threading.Event()
    add = client.loop.add_callback

    def later(function: Callable[..., Any], *words: Any) -> None:
        assert begun.wait(20)
        add(function, *words)

    executor = OnDask(client)
    client.loop.add_callback = later
    answer = executor.submit(int)
    assert answer.cancel()
    begun.set()
    assert answer.cancelled()


def test_nobody_waits_for_a_scheduler_that_was_given_up(loop: asyncio.AbstractEventLoop) -> None:
    """Dask ends none of what it was asked for while it looked for a scheduler: a comparison waited
    for ever.
    """
    client = Client(loop, "forgotten")
    executor = OnDask(client)
    answer = executor.submit(int)
    client.status = "closing"
    with pytest.raises(BrokenExecutor, match="the Dask scheduler does not answer any more"):
        answer.result(timeout=20)
    # Nor for what it is asked for after that.
    with pytest.raises(BrokenExecutor, match="does not answer"):
        executor.submit(int).result(timeout=20)


def test_a_client_that_is_closed_is_a_broken_executor(loop: asyncio.AbstractEventLoop) -> None:
    client = ClosedClient(loop, "comes")
    executor = OnDask(client)
    assert executor.submit(int).result(timeout=20) == 0
    with pytest.raises(RuntimeError, match="the client is closed"):
        executor.submit(int)
    client.status = "closed"
    with pytest.raises(BrokenExecutor, match="does not answer"):
        executor.submit(int)
