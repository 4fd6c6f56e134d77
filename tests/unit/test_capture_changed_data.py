"""A capture that is to stand for a run, whose data are there as well and are not those any more."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace
from unit.rules_of_all import RULES

from ciwrap.base.errors import CorruptCaptureError, NotComparableError
from ciwrap.formats.find_outputs import find_in
from ciwrap.recording.recorded_run import refuse_other_data
from ciwrap.runs.capture import CaptureOptions, capture_run
from ciwrap.runs.capture_file import CaptureFile, CaptureWriter
from ciwrap.runs.capture_index import encode_index, read_index

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 10**9
SHORTLY = SECOND // 1000


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two checkpoints, and their capture beside the run."""
    run = tmp_path / "run"
    for iteration in (1, 2):
        path = run / f"iter_{iteration}" / "x.npy"
        path.parent.mkdir(parents=True)
        np.save(path, np.full(4, float(iteration)))
    (run / "notes.md").write_text("left out")
    target = capture_of(run)
    found = find_in(run, exclude=["notes.md"])
    capture_run(run, found, target, RULES, CaptureOptions(settle_seconds=0))
    return run


def capture_of(run: Path) -> Path:
    return run.with_name("run.tree")


def made_at(run: Path) -> int:
    """When the capture was made, ns."""
    with CaptureFile(capture_of(run)) as capture:
        told = read_index(capture).header.made_at
    return int(datetime.fromisoformat(told).timestamp()) * SECOND


def set_time(path: Path, moment: int) -> None:
    os.utime(path, ns=(moment, moment))


def refused(run: Path) -> str | None:
    try:
        refuse_other_data(run, capture_of(run))
    except NotComparableError as error:
        return error.message.partition("has changed since its capture was made: ")[2]
    return None


def test_a_run_as_it_was(run: Path) -> None:
    set_time(run / "notes.md", made_at(run) - SHORTLY)
    assert refused(run) is None


def test_what_was_captured_changes_beside_nothing_else(run: Path) -> None:
    (run / "notes.md").unlink()
    assert refused(run) is None
    np.save(run / "iter_2" / "x.npy", np.full(5, 2.0))
    assert refused(run) == "iter_2/x.npy had 160 bytes, now 168"


def test_what_was_captured_changes_or_goes(run: Path) -> None:
    set_time(run / "notes.md", made_at(run) - SHORTLY)
    np.save(run / "iter_2" / "x.npy", np.full(5, 2.0))
    assert refused(run) == "iter_2/x.npy had 160 bytes, now 168"
    (run / "iter_2" / "x.npy").unlink()
    assert "iter_2" in str(refused(run))


def test_a_file_has_come_since(run: Path) -> None:
    """In the second of the capture it may have come after it; one of before has been left out."""
    made = made_at(run)
    set_time(run / "notes.md", made - SHORTLY)
    other = run / "iter_3" / "x.npy"
    other.parent.mkdir()
    np.save(other, np.ones(4))
    for moment, wanted in (
        (made - SHORTLY, None),
        (made, "iter_3/x.npy was written since"),
        (made + SECOND, "iter_3/x.npy was written since"),
    ):
        set_time(other, moment)
        assert refused(run) == wanted


def test_hidden_files_tell_nothing(run: Path) -> None:
    set_time(run / "notes.md", made_at(run) - SHORTLY)
    (run / ".cache").mkdir()
    for path in (run / ".lock", run / ".cache" / "x.npy"):
        path.write_bytes(b"")
        set_time(path, made_at(run) + SECOND)
    assert refused(run) is None


def test_a_link_that_leads_nowhere_is_a_file(run: Path) -> None:
    set_time(run / "notes.md", made_at(run) - SHORTLY)
    link = run / "iter_3.npy"
    link.symlink_to("gone")
    os.utime(link, ns=(0, made_at(run) + SECOND), follow_symlinks=False)
    assert refused(run) == "iter_3.npy was written since"
    os.utime(link, ns=(0, made_at(run) - SHORTLY), follow_symlinks=False)
    assert refused(run) is None


def test_a_run_without_its_data_is_what_its_capture_tells(run: Path) -> None:
    for path in sorted(run.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert refused(run) is None
    run.rmdir()
    assert refused(run) is None
    refuse_other_data(capture_of(run), capture_of(run))


def test_a_recorded_run_is_its_own_capture(run: Path) -> None:
    refuse_other_data(run, run)


def test_captured_data_that_are_gone_while_others_are_there(run: Path) -> None:
    set_time(run / "notes.md", made_at(run) - SHORTLY)
    for iteration in (1, 2):
        (run / f"iter_{iteration}" / "x.npy").unlink()
    assert refused(run) is not None


def test_a_capture_that_does_not_say_when_it_was_made(run: Path) -> None:
    with CaptureFile(capture_of(run)) as capture:
        index = read_index(capture)
    index.header = replace(index.header, made_at="yesterday")
    with CaptureWriter(capture_of(run)) as writer:
        writer.commit(encode_index(index))
    with pytest.raises(CorruptCaptureError, match="when it was made"):
        refuse_other_data(run, capture_of(run))
