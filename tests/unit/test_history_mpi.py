"""Dealing work out, without an MPI: processes that fall silent, and an MPI of another make."""

from __future__ import annotations

import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from ciwrap.compare import mpi
from ciwrap.compare.outcome import Outcome
from ciwrap.errors import NotAvailableError

KEYS = [(number, 0) for number in range(6)]


class Request:
    """Never done: nobody took the message, as with a receiver that has died."""

    def test(self) -> tuple[bool, None]:
        return False, None


class Wire:
    """Mailboxes of some ranks. dead: take and give nothing from now on."""

    def __init__(self, size: int) -> None:
        self.boxes: list[list[Any]] = [[] for _ in range(size)]
        self.dead: set[int] = set()
        self.lock = threading.Lock()

    def rank(self, rank: int) -> Any:
        wire = self

        class Comm:
            def Get_rank(self) -> int:  # noqa: N802 - as in mpi4py
                return rank

            def Get_size(self) -> int:  # noqa: N802
                return len(wire.boxes)

            def iprobe(self, **_: Any) -> bool:
                return bool(wire.boxes[rank])

            def recv(self, **_: Any) -> Any:
                with wire.lock:
                    return wire.boxes[rank].pop(0)

            def isend(self, message: Any, dest: int, **_: Any) -> Any:
                if rank in wire.dead or dest in wire.dead:
                    return Request()
                with wire.lock:
                    wire.boxes[dest].append(message)
                return SimpleNamespace(test=lambda: (True, None))

        return Comm()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi, "_ALIVE_EVERY", 0.05)


def work(key: Any) -> Outcome:
    time.sleep(0.02)
    return Outcome(data_bytes_read=1)


def test_two_that_live_share_the_work() -> None:
    wire, served = Wire(2), []
    other = threading.Thread(target=lambda: served.append(mpi.serve(wire.rank(1), work, 5)))
    other.start()
    dealer = mpi.Dealer(wire.rank(0), KEYS, work, 5)
    outcome = dealer.run()
    other.join(10)
    assert served == [True]
    assert outcome.data_bytes_read == len(KEYS)
    assert not outcome.lost
    assert min(dealer.by_rank.values()) > 0


def test_a_worker_that_dies_with_messages_on_their_way() -> None:
    """It took a checkpoint; what it is sent from then on never arrives."""
    wire = Wire(2)
    wire.boxes[0].append((1, "ready", None, None))
    wire.dead.add(1)
    outcome = mpi.Dealer(wire.rank(0), KEYS, work, 0.3).run()
    assert outcome.data_bytes_read == len(KEYS) - 1
    assert [reason for _, reason in outcome.lost] == ["MPI rank 1 has not been heard of for 0.3 s"]


def test_the_others_end_when_rank_0_is_lost() -> None:
    wire = Wire(3)
    wire.boxes[1].append(KEYS[0])
    wire.dead.add(0)
    started = time.monotonic()
    assert not mpi.serve(wire.rank(1), work, 0.3)
    assert time.monotonic() - started < 5


def test_rank_0_at_long_work_is_not_lost() -> None:
    """It says that it lives while its own thread compares."""
    wire, served = Wire(2), []

    def slow(key: Any) -> Outcome:
        time.sleep(0.5)
        return Outcome()

    other = threading.Thread(target=lambda: served.append(mpi.serve(wire.rank(1), work, 0.3)))
    other.start()
    assert not mpi.Dealer(wire.rank(0), KEYS[:2], slow, 0.3).run().lost
    other.join(10)
    assert served == [True]


@pytest.mark.parametrize("name", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_an_mpiexec_of_another_mpi(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every process would be rank 0 of one, and compare everything."""
    module = SimpleNamespace(COMM_WORLD=Wire(1).rank(0))
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=module))
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", module)
    for other in mpi._WORLD_SIZES:
        monkeypatch.delenv(other, raising=False)
    assert mpi.world() is module.COMM_WORLD
    monkeypatch.setenv(name, "1")
    assert mpi.world() is module.COMM_WORLD
    monkeypatch.setenv(name, "4")
    with pytest.raises(
        NotAvailableError, match="has started 4 processes, of which mpi4py sees one"
    ):
        mpi.world()
