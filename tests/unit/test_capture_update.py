"""What a capture that is added to takes up, keeps and leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from unit.rules_of_all import RULES

from ciwrap.base.errors import UnreadableFileError
from ciwrap.formats.find_outputs import find_in
from ciwrap.runs import capture

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

    from ciwrap.formats.find_outputs import OutputFile


def made(run: Path, iterations: Sequence[int]) -> None:
    for iteration in iterations:
        folder = run / f"iter_{iteration:04d}"
        folder.mkdir(parents=True)
        for name in ("x", "y"):
            np.save(folder / f"{name}.npy", np.full(4, float(iteration)))


def updated(run: Path) -> capture.CaptureReport:
    options = capture.CaptureOptions(settle_seconds=0)
    return capture.capture_run(run, find_in(run), run.parent / "run.tree", RULES, options)


def test_a_checkpoint_that_cannot_be_read_keeps_no_other_out(tmp_path: Path) -> None:
    run = tmp_path / "run"
    made(run, (1, 2, 3))
    (run / "iter_0001" / "x.npy").write_bytes(b"no array")
    report = updated(run)
    assert [key[0] for key in report.captured] == [2, 3]
    assert report.variable_count == 4
    assert len(report.left_alone) == 1


def test_what_was_captured_and_what_is_new_both_count(tmp_path: Path) -> None:
    run = tmp_path / "run"
    made(run, (1, 2))
    updated(run)
    made(run, (3, 4))
    report = updated(run)
    assert [key[0] for key in report.kept] == [1, 2]
    assert sorted(key[0] for key in report.captured) == [3, 4]
    assert report.variable_count == 8


def test_a_checkpoint_whose_files_cannot_be_looked_at_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have gone between the listing of the folder and now."""
    run = tmp_path / "run"
    made(run, (1, 2))
    updated(run)
    look = capture.source_files

    def source_files(folder: Path, files: Sequence[OutputFile]) -> object:
        if any(file.iteration == 1 for file in files):
            raise UnreadableFileError("is gone", file=files[0].path)
        return look(folder, files)

    monkeypatch.setattr(capture, "source_files", source_files)
    report = updated(run)
    assert [key[0] for key in report.kept] == [2]
    assert report.captured == []
    assert [str(error).partition(": ")[2] for error in report.left_alone] == [
        "is gone, so nothing of its checkpoint is captured"
    ]
