"""Sources in a process of their own: what comes back, and what their death is told as."""

from __future__ import annotations

import gc
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap.base.errors import (
    ConfigError,
    CorruptFileError,
    UnsupportedDtypeError,
    VariableMissingError,
)
from ciwrap.formats import apart as child
from ciwrap.formats.apart import SourceApart, bytes_below
from ciwrap.formats.entries import EntrySource, Listing

if TYPE_CHECKING:
    from collections.abc import Callable

# What they open is known to copies of this process alone; e2e/test_without_linux.py has others.
pytestmark = pytest.mark.linux

PATH = Path("a file")


def opened(read: Callable[[int, int], Any] | None = None) -> EntrySource:
    """Two steps of x, a text, and something that is not compared; reading x[1] is up to `read`."""
    listing = Listing(PATH)
    x = np.arange(12.0).reshape(2, 6)
    listing.add(
        "x[0]",
        x.dtype,
        (2, 3),
        lambda n, c: x[0, n : n + c],
        called="x",
        iteration=4,
        rank=1,
        labels=(("dims", "x y"), ("units", "K")),
    )
    listing.add("x[1]", x.dtype, (6,), read or (lambda n, c: x[1, n : n + c]), iteration=5)
    listing.add_array("text", np.array(["a", "\udcff"]))
    listing.add_fault("list", "is a list")
    return EntrySource(PATH, listing.entries)


def test_it_is_what_was_opened() -> None:
    here = opened()
    with SourceApart(PATH, opened, 0) as source:
        assert source.variables == here.variables
        assert source.info("x[0]").labels == (("dims", "x y"), ("units", "K"))
        for info in here.variables[:3]:
            wanted = here.read(info.name, 0, info.element_count)
            found = source.read(info.name, 0, info.element_count)
            assert (found.dtype, found.tolist()) == (wanted.dtype, wanted.tolist())
        assert source.read("x[1]", 4, 2).tolist() == [10, 11]
        assert source.read("x[1]", 6, 0).size == 0
        with pytest.raises(UnsupportedDtypeError, match="is a list"):
            source.read("list", 0, 1)
        with pytest.raises(VariableMissingError):
            source.read("y", 0, 1)
        with pytest.raises(IndexError):
            source.read("x[1]", 5, 2)


def test_a_large_array_comes_through_whole() -> None:
    large = np.random.default_rng(1).normal(size=2_000_000)

    def open_it() -> EntrySource:
        listing = Listing(PATH)
        listing.add_array("x", large)
        return EntrySource(PATH, listing.entries)

    with SourceApart(PATH, open_it, large.nbytes) as source:
        assert np.array_equal(source.read("x", 0, large.size), large)


def test_errors_of_opening_come_back_as_they_are() -> None:
    def refuse() -> EntrySource:
        raise ConfigError("no such step", file=PATH, key="options.iterations", remedy="mend it")

    with pytest.raises(ConfigError) as caught:
        SourceApart(PATH, refuse, 0)
    assert str(caught.value) == "a file: options.iterations: no such step; mend it"


def test_a_fault_of_ours_is_no_damaged_file() -> None:
    def break_down() -> EntrySource:
        raise AssertionError("that should not be")

    with pytest.raises(RuntimeError, match="AssertionError: that should not be"):
        SourceApart(PATH, break_down, 0)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_crash_in_the_middle(number: int) -> None:
    with SourceApart(PATH, lambda: opened(lambda *_: os.kill(os.getpid(), number)), 0) as source:
        assert source.read("x[0]", 0, 6).tolist() == [0, 1, 2, 3, 4, 5]
        for _ in range(2):  # and it is not asked again
            with pytest.raises(CorruptFileError, match=rf"crashes \({signal.Signals(number).name}"):
                source.read("x[1]", 0, 1)


def test_a_library_that_ends_the_process() -> None:
    with pytest.raises(CorruptFileError, match=r"crashes \(exit code 3\)"):
        SourceApart(PATH, lambda: os._exit(3), 0)


@pytest.mark.parametrize("is_asleep", [False, True])
def test_a_library_that_comes_to_no_end(monkeypatch: pytest.MonkeyPatch, is_asleep: bool) -> None:
    monkeypatch.setattr(child, "PATIENCE_SECONDS", 0.3)

    def turn(*_: int) -> None:
        while True:
            time.sleep(60 * is_asleep)

    with SourceApart(PATH, lambda: opened(turn), 0) as source:
        started = time.monotonic()
        with pytest.raises(CorruptFileError, match="has made no progress"):
            source.read("x[1]", 0, 1)
    assert time.monotonic() - started < 20


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_nothing_is_left_behind() -> None:
    files, before = open_files(), children()
    several = [SourceApart(PATH, opened, 0) for _ in range(5)]
    assert len(children() - before) == 5
    # Each ends at once although the others were made, and copied its pipes, later.
    for source in several[:4]:
        started = time.monotonic()
        source.close()
        source.close()
        assert time.monotonic() - started < child.ENDING_SECONDS
    assert len(children() - before) == 1
    del several, source
    gc.collect()
    assert children() <= before
    assert open_files() == files


def test_bytes_below(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/x").write_bytes(bytes(30))
    (tmp_path / "y").write_bytes(bytes(4))
    assert bytes_below(tmp_path, tmp_path / "y", tmp_path / "none") == 38
