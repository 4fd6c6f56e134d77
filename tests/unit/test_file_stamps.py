"""Files that were written while they were read, as Python is told of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ciwrap import _core
from ciwrap.base.errors import CiwrapError, CorruptFileError, UnreadableFileError

if TYPE_CHECKING:
    from pathlib import Path

WORDS = "was written while it was read"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that nobody has changed for long, so that a change shows."""
    made = tmp_path / "x.bin"
    np.arange(1000.0).tofile(made)
    os.utime(made, (1e9, 1e9))
    return made


def overwrite(path: Path) -> None:
    """In place, with the size and the time of the last change as before."""
    with path.open("r+b") as file:
        file.write(b"12345678")
    os.utime(path, (1e9, 1e9))


def test_a_stamp_tells_a_file_that_was_written(path: Path) -> None:
    stamp = _core.FileStamp(path)
    assert (stamp.path, stamp.size, stamp.modified_ns) == (str(path), 8000, 10**18)
    assert stamp == _core.FileStamp(str(path))
    stamp.require_unchanged()
    overwrite(path)
    assert stamp != _core.FileStamp(path)
    with pytest.raises(CorruptFileError, match=WORDS):
        stamp.require_unchanged()


def test_a_stamp_tells_a_file_that_is_gone(path: Path) -> None:
    stamp = _core.FileStamp(path)
    path.unlink()
    with pytest.raises(CorruptFileError, match=WORDS):
        stamp.require_unchanged()
    with pytest.raises(UnreadableFileError, match="cannot be examined"):
        _core.FileStamp(path)


def test_a_tree_is_of_the_file_that_was_stamped(path: Path) -> None:
    def build(stamp: _core.FileStamp | None) -> bytes:
        builder = _core.TreeBuilder(_core.TreeParameters("<f8"), 1000)
        _core.update_builders([builder], str(path), 0, 8000, stamp=stamp)
        return builder.finish().root

    stamp = _core.FileStamp(path)
    assert build(stamp) == build(None)
    overwrite(path)
    build(None)
    with pytest.raises(CorruptFileError, match=WORDS):
        build(stamp)


@pytest.mark.parametrize("side", ["golden_stamp", "new_stamp"])
def test_a_stream_compares_the_files_that_were_stamped(path: Path, side: str) -> None:
    other = path.with_name("y.bin")
    other.write_bytes(path.read_bytes())
    stamped = path if side == "golden_stamp" else other
    stamps = {side: _core.FileStamp(stamped)}

    def compare() -> tuple[_core.Comparison | None, CiwrapError | None]:
        session = _core.StreamSession()
        session.add(_core.TreeParameters("<f8"), str(path), 0, str(other), 0, 8000, **stamps)
        ((_, comparison, error, _),) = session.take_done(wait=True)
        return comparison, error

    comparison, error = compare()
    assert error is None
    assert comparison is not None
    assert comparison.differing_count == 0
    overwrite(stamped)
    comparison, error = compare()
    assert comparison is None
    assert isinstance(error, CorruptFileError)
    assert WORDS in str(error)
