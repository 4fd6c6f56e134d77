"""The stream of stage two as Python sees it: answers, differing elements, progress, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap import _core
from ciwrap.errors import UnreadableFileError
from ciwrap.golden.capture import Resources
from ciwrap.history.question import Question
from ciwrap.history.stage_two import Stream
from ciwrap.model import VariableId
from ciwrap.readers.base import FileRegion

if TYPE_CHECKING:
    from pathlib import Path

CHUNK_BYTES = 4096
PARAMETERS = _core.TreeParameters("<f4", atol=0.5, chunk_bytes=CHUNK_BYTES)


class Heard:
    """A Progress that remembers."""

    def __init__(self) -> None:
        self.bytes = 0

    def begin(self, label: str, total_bytes: int | None) -> None:
        raise AssertionError

    def expect(self, total_bytes: int) -> None:
        raise AssertionError

    def end(self) -> None:
        raise AssertionError

    def advance(self, byte_count: int) -> None:
        assert byte_count >= 0
        self.bytes += byte_count


def question(name: str, count: int, leaves: list[int] | None = None) -> Question:
    chosen = None if leaves is None else np.array(leaves, dtype=np.int64)
    return Question(VariableId(name), PARAMETERS, (count,), chosen, None, 0, {}, {})


def regions(folder: Path, name: str, golden: Any, new: Any) -> tuple[FileRegion, FileRegion]:
    made = []
    for side, values in (("a", golden), ("b", new)):
        path = folder / f"{name}.{side}"
        path.write_bytes(b"#" * 7 + values.tobytes())
        made.append(FileRegion(str(path), 7, values.nbytes))
    return made[0], made[1]


@pytest.fixture
def arrays() -> tuple[np.ndarray, np.ndarray]:
    golden = np.arange(100_000, dtype=np.float32)
    new = golden.copy()
    new[[5, 70_000, 99_999]] += 1
    return golden, new


def test_answers_and_progress(tmp_path: Path, arrays: tuple[np.ndarray, np.ndarray]) -> None:
    golden, new = arrays
    heard = Heard()
    with Stream(Resources(), 1 << 20, progress=heard) as stream:
        assert list(stream.answers(wait=True)) == []
        assert stream.facts().engine is None  # nothing was asked, so nothing was started
        stream.ask(question("x", golden.size), *regions(tmp_path, "x", golden, new))
        stream.ask(question("y", golden.size, [1, 97]), *regions(tmp_path, "y", golden, new))
        stream.ask(question("z", golden.size), *regions(tmp_path, "z", golden, golden))
        found = {asked.identity.name: answer for asked, answer in stream.answers(wait=True)}
        facts = stream.facts()
    differing = {name: answer.comparison.differing_count for name, answer in found.items()}
    assert differing == {"x": 3, "y": 1, "z": 0}
    assert found["x"].first_values[1] == new[[5, 70_000, 99_999]].tobytes()
    # The last chunk is short.
    suspect_bytes = 2 * (CHUNK_BYTES + golden.nbytes - 97 * CHUNK_BYTES)
    assert heard.bytes == stream.asked_bytes == 4 * golden.nbytes + suspect_bytes
    assert facts.engine in ("io_uring", "pread")
    assert facts.bytes_read >= stream.asked_bytes


def test_one_bad_file_stops_no_other(tmp_path: Path, arrays: tuple[np.ndarray, np.ndarray]) -> None:
    golden, new = arrays
    with Stream(Resources(), 1 << 20) as stream:
        one, two = regions(tmp_path, "x", golden, new)
        gone = FileRegion(str(tmp_path / "gone"), 0, golden.nbytes)
        stream.ask(question("gone", golden.size), one, gone)
        stream.ask(question("x", golden.size), one, two)
        found = {asked.identity.name: answer for asked, answer in stream.answers(wait=True)}
    assert isinstance(found["gone"].error, UnreadableFileError)
    assert "gone" in str(found["gone"].error)
    assert found["x"].error is None


def test_what_the_sink_gets_and_raises(
    tmp_path: Path, arrays: tuple[np.ndarray, np.ndarray]
) -> None:
    golden, new = arrays
    heard: list[tuple[str, list[int], bytes]] = []

    def listen(asked: Question, indices: Any, ours: Any, theirs: Any) -> None:
        assert ours.tobytes() == golden[indices].tobytes()
        heard.append((asked.identity.name, indices.tolist(), theirs.tobytes()))
        if len(heard) == 4:
            raise OSError("disk full")

    with Stream(Resources(), 1 << 20, sink=listen) as stream:
        stream.ask(question("x", golden.size), *regions(tmp_path, "x", golden, new))
        assert len(list(stream.answers(wait=True))) == 1
        assert sorted(i for _, some, _ in heard for i in some) == [5, 70_000, 99_999]
        stream.ask(question("y", golden.size), *regions(tmp_path, "y", golden, new))
        with pytest.raises(OSError, match="disk full"):
            list(stream.answers(wait=True))


def test_it_can_be_left_at_any_moment(
    tmp_path: Path, arrays: tuple[np.ndarray, np.ndarray]
) -> None:
    golden, new = arrays
    places = regions(tmp_path, "x", golden, new)

    def begin_and_leave() -> None:
        with Stream(Resources(), 1 << 20) as stream:
            for _ in range(200):
                stream.ask(question("x", golden.size), *places)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin_and_leave()
