"""The stream of stage two as Python sees it: answers, differing elements, progress, and its end."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap import _core
from ciwrap.arrays.values import FileRegion
from ciwrap.base.errors import CorruptFileError, InterruptedCallError, UnreadableFileError
from ciwrap.check.two_sides import uncompared
from ciwrap.golden.trees import Resources
from ciwrap.model import VariableId
from ciwrap.runs.questions import PendingComparison, Stream, fits_stream

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


def question(name: str, count: int, leaves: list[int] | None = None) -> PendingComparison:
    chosen = None if leaves is None else np.array(leaves, dtype=np.int64)
    return PendingComparison(uncompared(VariableId(name), None, None), PARAMETERS, (count,), chosen)


def compare_stored(
    parameters: _core.TreeParameters,
    golden: FileRegion,
    new: FileRegion,
    leaves: Any,
    resources: Resources,
) -> _core.Comparison:
    """Two stored arrays through a stream of their own."""
    asked = PendingComparison(uncompared(VariableId("x"), None, None), parameters, (), leaves)
    with Stream[PendingComparison](resources, 8 << 20) as stream:
        stream.submit(asked, golden, new)
        ((_, found),) = stream.answers(wait=True)
    if found.error is not None:
        raise found.error
    assert found.comparison is not None
    return found.comparison


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
        stream.submit(question("x", golden.size), *regions(tmp_path, "x", golden, new))
        stream.submit(question("y", golden.size, [1, 97]), *regions(tmp_path, "y", golden, new))
        stream.submit(question("z", golden.size), *regions(tmp_path, "z", golden, golden))
        found = {asked.result.id.name: answer for asked, answer in stream.answers(wait=True)}
        facts = stream.facts()
    differing = {name: answer.comparison.differing_count for name, answer in found.items()}
    assert differing == {"x": 3, "y": 1, "z": 0}
    assert found["x"].first_values[1] == new[[5, 70_000, 99_999]].tobytes()
    # The last chunk is short.
    suspect_bytes = 2 * (CHUNK_BYTES + golden.nbytes - 97 * CHUNK_BYTES)
    assert heard.bytes == stream.submitted_bytes == 4 * golden.nbytes + suspect_bytes
    assert facts.engine in ("io_uring", "pread")
    assert facts.bytes_read >= stream.submitted_bytes


def test_one_bad_file_stops_no_other(tmp_path: Path, arrays: tuple[np.ndarray, np.ndarray]) -> None:
    golden, new = arrays
    with Stream(Resources(), 1 << 20) as stream:
        one, two = regions(tmp_path, "x", golden, new)
        gone = FileRegion(str(tmp_path / "gone"), 0, golden.nbytes)
        stream.submit(question("gone", golden.size), one, gone)
        stream.submit(question("x", golden.size), one, two)
        found = {asked.result.id.name: answer for asked, answer in stream.answers(wait=True)}
    assert isinstance(found["gone"].error, UnreadableFileError)
    assert "gone" in str(found["gone"].error)
    assert found["x"].error is None


def test_what_the_sink_gets_and_raises(
    tmp_path: Path, arrays: tuple[np.ndarray, np.ndarray]
) -> None:
    golden, new = arrays
    heard: list[tuple[str, list[int], bytes]] = []

    def listen(asked: PendingComparison, indices: Any, ours: Any, theirs: Any) -> None:
        assert ours.tobytes() == golden[indices].tobytes()
        heard.append((asked.result.id.name, indices.tolist(), theirs.tobytes()))
        if len(heard) == 4:
            raise OSError("disk full")

    with Stream(Resources(), 1 << 20, sink=listen) as stream:
        stream.submit(question("x", golden.size), *regions(tmp_path, "x", golden, new))
        assert len(list(stream.answers(wait=True))) == 1
        assert sorted(i for _, some, _ in heard for i in some) == [5, 70_000, 99_999]
        stream.submit(question("y", golden.size), *regions(tmp_path, "y", golden, new))
        with pytest.raises(OSError, match="disk full"):
            list(stream.answers(wait=True))


def test_what_the_sink_raises_ends_whatever_is_asked_afterwards(
    tmp_path: Path, arrays: tuple[np.ndarray, np.ndarray]
) -> None:
    """A list on a full disk: told once, and whoever asks on is told that nothing goes on."""
    places = regions(tmp_path, "x", *arrays)
    size = arrays[0].size
    heard = 0

    def listen(*_: Any) -> None:
        nonlocal heard
        heard += 1
        raise OSError("disk full")

    with Stream(Resources(), 1 << 20, sink=listen) as stream:
        stream.submit(question("x", size), *places)
        with pytest.raises(OSError, match="disk full"):
            list(stream.answers(wait=True))
        for _ in range(2):
            with pytest.raises(InterruptedCallError, match="has ended with an error"):
                list(stream.answers(wait=True))
        with pytest.raises(InterruptedCallError, match="has ended with an error"):
            stream.submit(question("y", size), *places)
        with pytest.raises(InterruptedCallError, match="has ended with an error"):
            stream.facts()
    assert heard == 1, "nobody is handed anything after a failure"


def test_it_can_be_left_at_any_moment(
    tmp_path: Path, arrays: tuple[np.ndarray, np.ndarray]
) -> None:
    golden, new = arrays
    places = regions(tmp_path, "x", golden, new)

    def begin_and_leave() -> None:
        with Stream(Resources(), 1 << 20) as stream:
            for _ in range(200):
                stream.submit(question("x", golden.size), *places)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin_and_leave()


# --- two arrays alone -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f8", "<c16", "<i2"])
@pytest.mark.parametrize("leaves", [None, [0, 1, 2, 100, 150]])
def test_two_arrays_alone_are_as_in_memory(
    tmp_path: Path, dtype: str, leaves: list[int] | None
) -> None:
    """To the last bit of the means: sums run over the same blocks, however much is read at once."""
    rng = np.random.default_rng(3)
    golden = (rng.normal(size=400_000) * 100).astype(dtype)
    new = (golden * rng.choice([1, 1 + 1e-3], golden.size)).astype(dtype)
    parameters = _core.TreeParameters(dtype, atol=0.05 if golden.dtype.kind in "fc" else 1)
    chosen = None if leaves is None else np.array(leaves, dtype=np.int64)
    comparer = _core.ElementComparer(parameters, max_indices=100)
    per_chunk = parameters.chunk_scalars // parameters.scalars_per_element
    spans = (
        [(0, golden.size)]
        if leaves is None
        else [(0, 3 * per_chunk), *((n * per_chunk, (n + 1) * per_chunk) for n in leaves[3:])]
    )
    for first, last in spans:
        comparer.update(golden[first:last], new[first:last], first_element=first)
    want = comparer.finish()
    for engine in ("auto", "pread"):
        got = compare_stored(
            parameters, *regions(tmp_path, "x", golden, new), chosen, Resources(engine=engine)
        )
        assert got.indices.tolist() == want.indices.tolist()
        assert got.histogram.tolist() == want.histogram.tolist()
        for name in (
            *("element_count", "differing_count", "max_abs_index", "max_abs_difference"),
            *("max_rel_difference", "mean_abs_difference", "mean_rel_difference"),
        ):
            assert getattr(got, name) == getattr(want, name), name


@pytest.mark.parametrize("dtype", ["|S999", "<U1021", "|S65536"])
def test_elements_of_any_width(tmp_path: Path, dtype: str) -> None:
    """Few of them fit where reads past the cache may begin, and none in whole blocks."""
    golden = np.full((3 << 20) // np.dtype(dtype).itemsize, "abc", dtype=dtype)
    new = golden.copy()
    new[[3, golden.size - 1]] = "abd"
    parameters = _core.TreeParameters(dtype)
    assert fits_stream(parameters)
    places = regions(tmp_path, "x", golden, new)
    for memory_bytes in (1 << 20, 64 << 20):
        with Stream(Resources(), memory_bytes, direct="always") as stream:
            asked = PendingComparison(
                uncompared(VariableId("x"), None, None), parameters, golden.shape
            )
            stream.submit(asked, *places)
            ((_, found),) = stream.answers(wait=True)
        assert found.error is None
        assert found.comparison is not None
        assert found.comparison.indices.tolist() == [3, golden.size - 1]
        assert found.first_values[1] == new[[3, -1]].tobytes()


def test_what_cannot_be_read_alone(tmp_path: Path) -> None:
    golden = np.zeros(1000, dtype=np.float32)
    one, two = regions(tmp_path, "x", golden, golden)
    gone = FileRegion(str(tmp_path / "gone"), 0, golden.nbytes)
    with pytest.raises(UnreadableFileError, match="gone"):
        compare_stored(PARAMETERS, one, gone, None, Resources())
    short = FileRegion(two.path, 8, golden.nbytes)
    with pytest.raises(CorruptFileError):
        compare_stored(PARAMETERS, one, short, None, Resources())


def test_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    places = []
    for side in "ab":
        path = tmp_path / side
        with path.open("wb") as file:
            file.truncate(64 << 30)  # sparse
        places.append(FileRegion(str(path), 0, 64 << 30))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            compare_stored(PARAMETERS, *places, None, Resources())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < 5
