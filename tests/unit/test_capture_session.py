"""How a capture goes on from file to file: what it waits for, refuses and keeps."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from unit.rules_of_all import NOT_GIVEN, RULES

from ciwrap.base.errors import UnreadableFileError, UnsupportedFormatError, UsageError
from ciwrap.base.progress import NoProgress
from ciwrap.formats.find_outputs import find_in
from ciwrap.runs import capture
from ciwrap.runs.capture import CaptureOptions, CaptureReport, capture_run
from ciwrap.runs.capture_file import CaptureFile, CaptureWriter
from ciwrap.runs.capture_index import GivenSnapshot, encode_checkpoint, read_index, snapshot_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ciwrap.formats.catalog import Rules

SECOND = 10**9


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


def made(run: Path, *iterations: int, age: float = 100) -> None:
    """age: of the files, in seconds."""
    for iteration in iterations:
        path = run / f"iter_{iteration:04d}" / "x.npy"
        path.parent.mkdir(parents=True)
        np.save(path, np.full(4, float(iteration)))
        then = time.time_ns() - int(age * SECOND)
        os.utime(path, ns=(then, then))


def captured(
    run: Path, rules: Rules = RULES, *, rebuild: bool = False, **options: Any
) -> CaptureReport:
    more = {key: options.pop(key) for key in ("progress",) if key in options}
    found = find_in(run)
    target = run.parent / "run.tree"
    return capture_run(
        run, found, target, rules, CaptureOptions(**options), rebuild=rebuild, **more
    )


def iterations(keys: Sequence[tuple[int | None, int | None]]) -> list[int | None]:
    return [iteration for iteration, _ in keys]


# --- files that are still being written -----------------------------------------------------------


@contextmanager
def disturbed(monkeypatch: pytest.MonkeyPatch, change: Any) -> Iterator[None]:
    """change: is called while the second checkpoint is hashed."""
    make, seen = capture.TreeMaker.make, []

    def disturbing(self: Any, *arguments: Any) -> Any:
        tree = make(self, *arguments)
        seen.append(tree)
        if len(seen) == 2:
            change()
        return tree

    with monkeypatch.context() as patch:
        patch.setattr(capture.TreeMaker, "make", disturbing)
        yield


@pytest.mark.parametrize("checksums", [False, True])
def test_what_changes_while_it_is_captured_is_left_alone(
    run: Path, monkeypatch: pytest.MonkeyPatch, checksums: bool
) -> None:
    made(run, 1, 2, 3)
    path = run / "iter_0002" / "x.npy"
    with disturbed(monkeypatch, lambda: np.save(path, np.full(4, 7.0))):
        report = captured(run, checksums=checksums)
    assert iterations(report.captured) == [1, 3]
    (error,) = report.left_alone
    assert "still being written: iter_0002/x.npy was written since" in str(error)
    again = captured(run, checksums=checksums, settle_seconds=0)
    assert iterations(again.captured) == [2]
    assert again.left_alone == []


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.time_ns()
        self.slept: list[float] = []
        monkeypatch.setattr(capture.time, "time_ns", lambda: self.now)
        monkeypatch.setattr(capture.time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += int(seconds * SECOND)

    def set_age(self, path: Path, seconds: float) -> None:
        then = self.now - int(seconds * SECOND)
        os.utime(path, ns=(then, then))


def test_the_youngest_are_looked_at_last_and_waited_for(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(run, 1, 2, 3, 4)
    clock = Clock(monkeypatch)
    for iteration, age in ((1, 0.5), (2, 50.0), (3, 0.75), (4, 3.0)):
        clock.set_age(run / f"iter_{iteration:04d}" / "x.npy", age)
    report = captured(run, settle_seconds=3.0)
    assert iterations(report.captured) == [2, 4, 3, 1]
    assert clock.slept == [2.25, 0.25]


def test_a_file_from_the_future_is_waited_for_once(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock of another machine may be ahead."""
    made(run, 1)
    clock = Clock(monkeypatch)
    clock.set_age(run / "iter_0001" / "x.npy", -60.0)
    assert iterations(captured(run, settle_seconds=3.0).captured) == [1]
    assert clock.slept == [3.0]


def test_what_is_gone_comes_after_all_others(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(run, 1, 2)
    made(run, 3, age=0.5)
    look, asked = capture.source_files, []

    def source_files(folder: Path, files: Sequence[Any]) -> Any:
        asked.append(files[0].iteration)
        if files[0].iteration == 1:
            raise UnreadableFileError("is gone", file=files[0].path)
        return look(folder, files)

    monkeypatch.setattr(capture, "source_files", source_files)
    report = captured(run, settle_seconds=1.0)
    assert iterations(report.captured) == [2, 3]
    # After the look at their ages: the settled one, the one that is gone, the youngest.
    assert [one for number, one in enumerate(asked[3:]) if one not in asked[3 : 3 + number]] == [
        2,
        1,
        3,
    ]


# --- what is there already ------------------------------------------------------------------------


def test_a_capture_that_is_begun_anew_stays_until_the_new_one_is_whole(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(run, 1, 2, 3)
    captured(run)
    target = run.parent / "run.tree"
    before = target.read_bytes()

    def stop() -> None:
        raise KeyboardInterrupt

    with disturbed(monkeypatch, stop), pytest.raises(KeyboardInterrupt):
        captured(run, rebuild=True)
    assert target.read_bytes() == before
    report = captured(run, rebuild=True)
    assert iterations(report.captured) == [1, 2, 3]
    assert report.capture_bytes < len(before) + 100  # nothing of the old one is kept


def test_what_was_never_completed_has_no_bound_to_lose(run: Path) -> None:
    made(run, 1)
    target = run.parent / "run.tree"
    CaptureWriter(target).close()  # killed before its first commit
    assert iterations(captured(run, NOT_GIVEN).captured) == [1]
    whole = target.read_bytes()
    target.write_bytes(whole[:-1])
    with pytest.raises(UsageError, match="so the bound that it was made with is not known"):
        captured(run, NOT_GIVEN)
    assert iterations(captured(run, RULES).captured) == [1]


# --- what a capture says of itself ----------------------------------------------------------------


def test_the_header_says_when_and_by_what(run: Path) -> None:
    made(run, 1)
    report = captured(run)
    assert report.header is not None
    made_at = datetime.fromisoformat(report.header.made_at)
    assert made_at.utcoffset() == timedelta(0)
    assert abs(datetime.now(timezone.utc) - made_at) < timedelta(minutes=5)
    assert report.header.made_by == version("ciwrap")


def test_a_snapshot_stays_until_another_one_comes(run: Path) -> None:
    first, other = (GivenSnapshot(letter * 32, letter.encode() * 9) for letter in "ab")
    target = run.parent / "run.tree"
    made(run, 1)
    for number, (given, wanted) in enumerate(
        [(None, None), (first, first), (None, first), (first, first), (other, other)], start=2
    ):
        made(run, number)
        report = captured(run, snapshot=given)
        with CaptureFile(target) as file:
            header = read_index(file).header
        assert header == report.header
        assert (None if header.snapshot is None else header.snapshot.identity) == (
            None if wanted is None else wanted.identity
        )
        assert snapshot_text(target) == wanted
    assert captured(run, snapshot=first).header == read_header(target)
    assert snapshot_text(target) == other  # nothing was captured anew
    captured(run, rebuild=True)
    assert snapshot_text(target) is None


def read_header(target: Path) -> Any:
    with CaptureFile(target) as file:
        return read_index(file).header


def test_progress_knows_what_there_is_to_read(run: Path) -> None:
    made(run, 1, 2, 3)
    captured(run)
    made(run, 4, 5)
    np.save(run / "iter_0005" / "y.npy", np.ones(4))
    told: list[tuple[str, int | None]] = []

    class Progress(NoProgress):
        def begin(self, label: str, total_bytes: int | None) -> None:
            told.append((label, total_bytes))

    captured(run, progress=Progress())
    size = (run / "iter_0004" / "x.npy").stat().st_size
    assert told[0] == (str(run), 3 * size)


def test_what_no_reader_knows_is_captured(run: Path) -> None:
    made(run, 1)
    before = captured(run)
    (run / "iter_0001" / "notes.xyzzy").write_bytes(b"what?")
    (run / "iter_0001" / "state").write_bytes(b"\0")
    after = captured(run)
    assert (before.left_alone, after.left_alone) == ([], [])
    assert after.identity != before.identity


def test_a_path_that_is_no_text_is_refused(run: Path) -> None:
    made(run, 1)
    files = capture.source_files(run, find_in(run).files)
    odd = capture.replace(files[0], path="iter_1/\udcff.npy")
    checkpoint = capture.CapturedCheckpoint((1, None), (odd,), ())
    with pytest.raises(UnsupportedFormatError, match=r"its path is not UTF-8"):
        encode_checkpoint(checkpoint, run)
