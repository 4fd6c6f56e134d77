"""What the library finds while a program runs is what an oracle finds in the same data."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_runs import LIBRARY, need_library
from tiers import examples

import ciwrap
from ciwrap.project.outputs import journal_paths
from ciwrap.recording.journal import JournalReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

RESIDUES = "ciwrap-bounds 3\n*\t*\t-\t-\t{}\t-\t15\n"


@contextmanager
def recorder(folder: Path, reference: Path | None, chunk_bytes: int) -> Iterator[ciwrap.Recorder]:
    """Records in this process. chunk_bytes: of the run that has no reference."""
    table = folder / "bounds.txt"
    folder.mkdir(exist_ok=True)
    table.write_text(RESIDUES.format(chunk_bytes if reference is None else "-"))
    told = {
        "CIWRAP_RECORD": str(folder / "run"),
        "CIWRAP_RECORD_LIBRARY": str(LIBRARY),
        "CIWRAP_RECORD_BOUNDS": str(table) if reference is None else "",
        "CIWRAP_RECORD_AGAINST": "" if reference is None else str(reference),
        "CIWRAP_RECORD_ON_DIVERGENCE": "stop",
        "CIWRAP_RECORD_PATIENCE": "0",
        "CIWRAP_RECORD_WAIT": "0",
    }
    with mock.patch.dict(os.environ, told), ciwrap.Recorder() as found:
        yield found


def suspects(run: Path) -> list[tuple[int, int, float | None]]:
    """Suspect chunks, all chunks and the share that was used, of each checkpoint."""
    (path,) = journal_paths(run)
    found = []
    for checkpoint in JournalReader(path).checkpoints():
        for state in checkpoint.states:
            assert state.compared is not None
            assert state.compared.reason is None
            one = state.compared
            found.append((one.suspect_chunks, one.chunks, one.max_share))
    return found


def strided(values: NDArray[Any], way: str) -> NDArray[Any]:
    """The same values in the same order of indices, otherwise in memory."""
    if way == "gaps":
        wide = np.full((*values.shape[:-1], 2 * values.shape[-1]), np.nan, values.dtype)
        wide[..., ::2] = values
        return wide[..., ::2]
    return np.asfortranarray(values) if way == "columns" else values


@given(
    seed=st.integers(0, 1 << 32),
    shape=st.sampled_from([(700,), (23, 31), (5, 12, 14)]),
    dtype=st.sampled_from(["f8", "f4"]),
    bound=st.sampled_from([(1e-3, 0.0), (1e-3, 1e-4), (0.0, 1e-3)]),
    share=st.sampled_from([0.0, 0.3, 0.8, 0.95, 1.02, 1.5, 20.0]),
    way=st.sampled_from(["", "gaps", "columns"]),
    chunk_bytes=st.sampled_from([256, 4096]),
)
@settings(max_examples=examples(60), deadline=None)
def test_no_miss_and_no_false_alarm(
    seed: int,
    shape: tuple[int, ...],
    dtype: str,
    bound: tuple[float, float],
    share: float,
    way: str,
    chunk_bytes: int,
) -> None:
    need_library()
    random = np.random.default_rng(seed)
    golden = random.normal(size=shape).astype(dtype)
    atol, rtol = bound
    limits = atol + rtol * np.abs(golden.astype("f8"))
    moved = golden.astype("f8") + 0.3 * limits * random.uniform(-1, 1, size=shape)
    place = tuple(int(random.integers(extent)) for extent in shape)
    moved[place] = golden[place] + share * limits[place] * random.choice([-1, 1])
    new = moved.astype(dtype)
    used = np.abs(new.astype("f8") - golden.astype("f8")) / limits
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with recorder(folder / "a", None, chunk_bytes) as one:
            one.bound("x", atol=atol, rtol=rtol)
            one.record(0, x=golden)
            one.record(1, x=golden)
        with recorder(folder / "b", folder / "a" / "run", chunk_bytes) as other:
            other.record(0, x=strided(golden, way))
            assert not other.should_stop()
            other.record(1, x=strided(new, way))
            has_stopped = other.should_stop()
            assert other.errors == 0
        same, found = suspects(folder / "b" / "run")
        assert same[:1] == (0,)
        assert same[2] == 0.0
        assert has_stopped == (found[0] > 0)
        if used.max() > 1:
            assert has_stopped
        if used.max() < 0.85:
            assert not has_stopped
            assert found[2] is not None
            # To within one fine step, an eighth of the bound.
            assert abs(found[2] - used.max()) <= 0.13


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_a_damaged_reference_is_never_matched(data: st.DataObject) -> None:
    """Bits turned, parts cut off or left out: what is compared then is what stood there before."""
    need_library()
    values = np.random.default_rng(1).normal(size=900)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with recorder(folder / "a", None, 256) as one:
            one.bound("x", atol=1e-3)
            for n in range(3):
                one.record(n, x=values + n)
        (path,) = journal_paths(folder / "a" / "run")
        whole = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            kind = data.draw(st.sampled_from(["bit", "cut", "out"]))
            at = data.draw(st.integers(64, max(64, len(whole) - 1)))
            if kind == "bit" and at < len(whole):
                whole[at] ^= 1 << data.draw(st.integers(0, 7))
            elif kind == "cut":
                del whole[at:]
            else:
                del whole[at : at + data.draw(st.integers(1, 300))]
        path.write_bytes(whole)
        with recorder(folder / "b", folder / "a" / "run", 256) as other:
            other.bound("x", atol=1e-3)
            for n in range(3):
                other.record(n, x=values + n + (0.002 if n == 2 else 0.0))
        (path,) = journal_paths(folder / "b" / "run")
        for checkpoint in JournalReader(path).checkpoints():
            for state in checkpoint.states:
                one_compared = state.compared
                assert one_compared is not None
                if one_compared.reason is None:
                    assert (one_compared.suspect_chunks > 0) == (checkpoint.iteration == 2)
