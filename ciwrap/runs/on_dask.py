"""A Dask client as an executor, whatever becomes of its workers and its scheduler."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, InvalidStateError
from contextlib import suppress
from typing import Any

_NO_SCHEDULER = "the Dask scheduler does not answer any more"


class OnDask(Executor):
    """A Dask client as an executor. Dask has one of its own, which waits for ever for some results
    that were lost with the worker that had just computed them; the scheduler itself may look for
    half a minute where that worker was. So what does not come is asked for once more. Nor does a
    client that has given its scheduler up tell those who wait: they hear of it here.
    """

    _PATIENCE_SECONDS = 15.0  # for what is computed, and a few kilobytes
    _MOST_ASKED = 4
    _LOOK_SECONDS = 0.2

    def __init__(self, client: Any) -> None:
        self._client = client
        self._open: set[Future[Any]] = set()
        client.loop.add_callback(self._look)

    def _look(self) -> None:
        """Looks again and again whether the scheduler was given up; then no answer will come."""
        if not self._is_given_up:
            self._client.loop.call_later(self._LOOK_SECONDS, self._look)
            return
        for answer in list(self._open):
            _fail(answer, BrokenExecutor(_NO_SCHEDULER))

    @property
    def _is_given_up(self) -> bool:
        return self._client.status in ("closing", "closed")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        self._open.add(answer)
        answer.add_done_callback(self._open.discard)

        def ask() -> Any:
            # The same question twice is asked twice: files change.
            return self._client.submit(fn, *args, pure=False, **kwargs)

        async def answered(asked: Any) -> None:
            if answer.done() or not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(await self._result(asked, ask))
            except BaseException as error:  # of whatever kind: the caller raises it
                _fail(answer, error)

        try:
            ask().add_done_callback(lambda one: self._client.loop.add_callback(answered, one))
        except Exception as error:  # whatever Dask raises of a client that is closed
            if self._is_given_up:
                raise BrokenExecutor(_NO_SCHEDULER) from error
            raise
        if self._is_given_up:  # and who looks may not have seen this one
            _fail(answer, BrokenExecutor(_NO_SCHEDULER))
        return answer

    async def _result(self, asked: Any, ask: Callable[[], Any]) -> Any:
        """What one of those that are asked says. No waiting is ever cancelled: Dask may have others
        wait for the same.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        waiting = {asyncio.ensure_future(_settled(asked))}
        for number in range(self._MOST_ASKED):
            done, waiting = await asyncio.wait(
                waiting, timeout=self._PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if done:
                result, error = done.pop().result()
                if error is not None:
                    raise error
                return result
            if number + 1 == self._MOST_ASKED:
                break
            # What Dask says of one whose result was lost is not to be trusted: it may be called
            # pending for ever. So one is asked anew, and waited for as long as it is computed.
            asked = ask()
            computed = loop.create_future()
            asked.add_done_callback(
                lambda _, one=computed: self._client.loop.add_callback(_end, one)
            )
            waiting.add(asyncio.ensure_future(_settled(asked)))
            await asyncio.wait({*waiting, computed}, return_when=asyncio.FIRST_COMPLETED)
        raise TimeoutError("its result did not come from the Dask workers")


def _fail(answer: Future[Any], error: BaseException) -> None:
    """Ends an answer with an error, unless it has ended."""
    with suppress(InvalidStateError):
        answer.set_exception(error)


async def _end(waiting: Any) -> None:
    if not waiting.done():
        waiting.set_result(None)


async def _settled(asked: Any) -> tuple[Any, BaseException | None]:
    """A Dask future's result, or the error that came of it."""
    try:
        return await asked, None
    except BaseException as error:  # of whatever kind: the caller raises it
        return None, error
