"""A first look at a file: what ends the process that looks, and what looks leave to others."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ciwrap.arrays.values import FileRegion
from ciwrap.base.errors import ConfigError, CorruptFileError, FileLimitError
from ciwrap.formats import apart as child
from ciwrap.formats import look
from ciwrap.formats.entries import EntrySource, Listing
from ciwrap.formats.look import look_first
from ciwrap.formats.reader import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ciwrap.formats.reader import Source

# What they open is known to copies of this process alone; e2e/test_without_linux.py has others.
pytestmark = pytest.mark.linux

# What a damaged file may have done to the process that looked at it.
_harm: list[Path] = []


@pytest.fixture(autouse=True)
def no_looker() -> Iterator[None]:
    """No process that was copied before a test has said what it may do."""
    forget_lookers()
    yield
    forget_lookers()


def forget_lookers() -> None:
    while look._idle:
        look._idle.pop().child.close()


def nothing_open() -> bool:
    return False


def something_open() -> bool:
    return True


def opened(path: Path, read: Callable[[int, int], object] | None = None) -> EntrySource:
    listing = Listing(path)
    listing.add("x", np.dtype("f8"), (6,), read or (lambda first, count: np.zeros(count)))
    return EntrySource(path, listing.entries)


def noted(path: Path) -> Source:
    """Notes which process has looked at the file."""
    with Path(f"{path}.looks").open("a") as file:
        file.write(f"{os.getpid()}\n")
    return opened(path)


def looks_at(path: Path) -> list[int]:
    return [int(line) for line in Path(f"{path}.looks").read_text().split()]


def dies_of(number: int, path: Path) -> Source:
    """Dies when the variable is read."""
    return opened(path, lambda *_: os.kill(os.getpid(), number))


def harms(path: Path) -> Source:
    _harm.append(path)
    return opened(path)


def dies_if_harmed(path: Path) -> Source:
    if _harm:
        os.kill(os.getpid(), signal.SIGSEGV)
    return noted(path)


def refuses_to_read(path: Path) -> Source:
    def refuse(*_: int) -> None:
        raise CorruptFileError("is damaged", file=path)

    noted(path)
    return opened(path, refuse)


def refuses(path: Path) -> Source:
    raise ConfigError("no such step", file=path, key="options.iterations", remedy="mend it")


def breaks_down(path: Path) -> Source:
    raise AssertionError("that should not be")


def sleeps(path: Path) -> Source:
    time.sleep(60)
    return opened(path)


def turns_in_circles(path: Path) -> Source:
    while True:
        pass


def claims_too_much(path: Path) -> Source:
    with guarded(path):
        np.zeros(3 << 30, dtype="|u1")
    return opened(path)


def wants_it_to_read(path: Path) -> Source:
    return opened(path, lambda *_: np.zeros(3 << 30, dtype="|u1"))


def take(open_source: Callable[[Path], Source], path: Path) -> None:
    look_first(path, partial(open_source, path), nothing_open)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"file{number}" for number in range(4)]
    for path in paths:
        path.write_bytes(b"x")
    return paths


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
@pytest.mark.parametrize("before", [0, 2])
def test_what_ends_the_process_is_damaged(number: int, before: int, files: list[Path]) -> None:
    for path in files[:before]:
        take(opened, path)
    for _ in range(2):  # a file that failed is looked at again
        with pytest.raises(CorruptFileError, match=rf"file3: is damaged.*{number.name}"):
            take(partial(dies_of, number), files[3])


def test_a_small_file_that_claims_gigabytes(files: list[Path]) -> None:
    for _ in range(2):
        with pytest.raises(FileLimitError, match="file3: asks for more memory than there is"):
            take(claims_too_much, files[3])
    take(noted, files[0])


def test_large_files_and_large_chunks_are_opened(files: list[Path]) -> None:
    take(wants_it_to_read, files[0])  # one chunk of a file that belongs to it, say
    with files[1].open("wb") as file:
        file.truncate(1 << 20)
    take(claims_too_much, files[1])


def test_one_process_looks_at_many_files(files: list[Path]) -> None:
    for path in files:
        take(noted, path)
    processes = [looks_at(path) for path in files]
    assert processes == [processes[0]] * 4
    assert len(processes[0]) == 1
    assert processes[0] != [os.getpid()]


def test_a_look_is_taken_once_and_leaves_errors_to_the_comparison(files: list[Path]) -> None:
    path = files[0]

    def looks_elsewhere() -> int:
        return sum(process != os.getpid() for process in looks_at(path))

    for _ in range(2):
        take(refuses_to_read, path)
    assert looks_elsewhere() == 1
    path.write_bytes(b"longer")
    take(refuses_to_read, path)
    assert looks_elsewhere() == 2
    path.unlink()
    take(refuses_to_read, path)
    assert looks_elsewhere() == 2


def lies_in_place(path: Path) -> Source:
    """What lies in the file as it is, and what its library has to read."""
    noted(path)
    listing = Listing(path)
    where = FileRegion(str(path), 0, 8)
    listing.add("x", np.dtype("f8"), (1,), lambda *_: np.ones(1), region=where, labels=LABELS)
    listing.add("y", np.dtype("f8"), (path.stat().st_size,), lambda _, count: np.full(count, 2.0))
    return EntrySource(path, listing.entries, attributes_left_out=3)


LABELS = (("dims", "x"),)


def test_a_file_is_listed_once_unless_its_library_has_to_read(files: list[Path]) -> None:
    files[0].write_bytes(b"12345678")
    with look_first(files[0], partial(lies_in_place, files[0]), nothing_open) as source:
        assert looks_at(files[0]) != [os.getpid()]
        assert source.variables[0].region == FileRegion(str(files[0]), 0, 8)
        assert source.variables[0].labels == LABELS
        assert source.attributes_left_out == 3
        assert len(looks_at(files[0])) == 1
        assert source.read("y", 2, 3).tolist() == [2.0] * 3
        assert source.read("x", 0, 1).tolist() == [1.0]
        assert looks_at(files[0])[1:] == [os.getpid()]


def test_a_file_that_lists_otherwise_when_it_is_read(files: list[Path]) -> None:
    files[0].write_bytes(b"12345678")
    with look_first(files[0], partial(lies_in_place, files[0]), nothing_open) as source:
        files[0].write_bytes(b"123456789")
        with pytest.raises(CorruptFileError, match="changed while it was being read"):
            source.read("y", 0, 1)


def test_what_one_file_has_done_counts_for_no_other(files: list[Path]) -> None:
    take(harms, files[0])
    take(dies_if_harmed, files[1])
    take(dies_if_harmed, files[2])
    assert looks_at(files[1]) == looks_at(files[2])
    with pytest.raises(CorruptFileError, match="file3: is damaged"):
        take(partial(dies_of, signal.SIGSEGV), files[3])


def test_errors_come_back_as_they_are(files: list[Path]) -> None:
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            take(refuses, files[0])
        assert str(caught.value) == f"{files[0]}: options.iterations: no such step; mend it"
    with pytest.raises(RuntimeError, match="AssertionError: that should not be"):
        take(breaks_down, files[1])
    take(noted, files[2])


@pytest.mark.parametrize("before", [0, 1])
def test_a_look_that_comes_to_no_end(
    before: int, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "PATIENCE_SECONDS", 1.0)
    for path in files[:before]:
        take(noted, path)
    with pytest.raises(CorruptFileError, match="has made no progress"):
        take(sleeps, files[2])
    with pytest.raises(CorruptFileError, match="has made no progress"):
        take(turns_in_circles, files[3])


def test_a_process_with_nothing_to_do_ends_and_another_takes_its_place(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "_IDLE_SECONDS", 0.05)
    take(noted, files[0])
    (process,) = looks_at(files[0])
    ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    assert ended.si_status == 0
    take(noted, files[1])
    assert looks_at(files[1]) != [process]


def test_what_the_library_holds_open_is_not_carried_to_another_file(files: list[Path]) -> None:
    for path in files[:3]:
        look_first(path, partial(noted, path), something_open)
    assert len({looks_at(path)[0] for path in files[:3]}) == 3


def test_an_interrupted_look_answers_for_no_other(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    take(noted, files[0])

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            take(sleeps, files[1])
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(ConfigError):
        take(refuses, files[2])


def test_a_path_is_meant_from_the_folder_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("A", "B"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_bytes(b"x")
        monkeypatch.chdir(tmp_path / name)
        take(noted, Path("x"))
    assert looks_at(tmp_path / "A/x") == looks_at(tmp_path / "B/x")


def test_hdf5_files_that_are_open_here_may_be_written_anew(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    from ciwrap.formats.hdf5 import Hdf5Reader, has_open_files

    path = tmp_path / "x.h5"
    for length in (3, 5):
        path.unlink(missing_ok=True)
        with h5py.File(path, "w") as file:
            file["x"] = np.arange(length)
            file.flush()
            assert has_open_files()
            # The process that looks at this one is a copy that holds x.h5 open.
            with h5py.File(tmp_path / f"other{length}.h5", "w") as other:
                other["y"] = np.arange(2.0)
            with Hdf5Reader().open(tmp_path / f"other{length}.h5") as source:
                assert source.read("y", 0, 2).tolist() == [0, 1]
        with Hdf5Reader().open(path) as source:
            assert source.read("x", 0, length).tolist() == list(range(length))
    assert not has_open_files()


def opens_slowly(path: Path) -> EntrySource:
    listing = Listing(path)
    for number in range(6):
        time.sleep(0.1)
        listing.add(f"x{number}", np.dtype("f8"), (1,), lambda _first, count: np.zeros(count))
    return EntrySource(path, listing.entries)


def test_slow_is_not_stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "PATIENCE_SECONDS", 0.4)
    monkeypatch.setattr(child, "_BETWEEN_SIGNS", 0.0)
    path = tmp_path / "x"
    path.write_bytes(b"slow")
    look_first(path, partial(opens_slowly, path), nothing_open)
