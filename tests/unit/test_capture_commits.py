"""How often a capture is made to count while it grows."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from unit.rules_of_all import RULES

from ciwrap.formats.find_outputs import find_in
from ciwrap.runs import capture

if TYPE_CHECKING:
    from pathlib import Path

CHECKPOINT_SECONDS, ROW_SECONDS = 0.25, 0.02
BEGAN = 100.0


def rows_written(
    folder: Path,
    count: int,
    monkeypatch: pytest.MonkeyPatch,
    row_seconds: float = ROW_SECONDS,
    *,
    index_seconds: float = 0.0,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> list[int]:
    """Of a run of so many checkpoints: the rows of each index that its capture writes, where time
    goes into checkpoints, indexes and their rows alone.
    """
    for iteration in range(count):
        (folder / f"iter_{iteration}").mkdir(parents=True)
        np.save(folder / f"iter_{iteration}" / "x.npy", np.arange(4.0))
    clock, rows = [BEGAN], []

    def encode_checkpoint(*arguments: Any) -> bytes:
        clock[0] += checkpoint_seconds
        return captured(*arguments)

    def encode_index(index: Any) -> bytes:
        rows.append(len(index.checkpoints))
        clock[0] += index_seconds + row_seconds * rows[-1]
        return whole(index)

    captured, whole = capture.encode_checkpoint, capture.encode_index
    with monkeypatch.context() as patch:
        patch.setattr(capture, "encode_checkpoint", encode_checkpoint)
        patch.setattr(capture, "encode_index", encode_index)
        fake = SimpleNamespace(
            monotonic=lambda: clock[0], time_ns=time.time_ns, sleep=lambda _: None
        )
        patch.setattr(capture, "time", fake)
        options = capture.CaptureOptions(settle_seconds=0)
        report = capture.capture_run(folder, find_in(folder), folder / "tree", RULES, options)
    assert report.seconds == pytest.approx(clock[0] - BEGAN)
    return rows


def test_what_commits_write_grows_in_proportion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (rows_written(tmp_path / str(n), n, monkeypatch) for n in (100, 400))
    assert (few[-1], many[-1]) == (100, 400)
    assert few[0] == 9  # the first one after two seconds
    assert sum(many) < 6 * sum(few)
    assert sum(many) < 4 * 400


def test_a_quick_commit_comes_every_two_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rows_written(tmp_path, 40, monkeypatch, 0.0) == [9, 18, 27, 36, 40]


@pytest.mark.parametrize(
    ("each", "commit", "wanted"),
    [
        (0.5, 0.0, [5, 10, 10]),  # more than two seconds after the last one
        (3.0, 0.0, [*range(1, 11), 10]),
        (3.0, 0.55, [1, 5, 9, 10]),  # twenty times as long as a commit takes: 11 s
    ],
)
def test_commits_come_at_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, each: float, commit: float, wanted: list[int]
) -> None:
    """So that little is lost to a crash, and little of the time goes into commits."""
    times = {"index_seconds": commit, "checkpoint_seconds": each}
    assert rows_written(tmp_path, 10, monkeypatch, 0.0, **times) == wanted
