"""Journals that are cut or damaged anywhere never pass for another run."""

from __future__ import annotations

import functools
import struct
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_runs import captured, need_library, python, recording
from tiers import examples

from ciwrap.base.errors import NotComparableError
from ciwrap.project.outputs import journal_paths
from ciwrap.recording.journal import JournalFollower, JournalReader

if TYPE_CHECKING:
    import pytest

TEXT = """
import numpy as np, ciwrap
with ciwrap.Recorder("fuzz") as r:
    r.bound("x", atol=0.5)
    for n in range(4):
        r.record(n, x=np.arange(40.0) + n, y=np.arange(3) * n)
        r.record(n, "p", y=np.arange(3) * n)
"""


@functools.cache
def whole() -> tuple[bytes, dict[str, bytes]]:
    """A journal, and the digests of what it holds."""
    need_library()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        assert python(TEXT, recording(run)).returncode == 0
        found = {name: one.digests[0] or b"" for name, one in captured(run).items()}
        return journal_paths(run)[0].read_bytes(), found


def read(data: bytes) -> dict[str, bytes] | None:
    """What a run with that one journal holds; None where it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "000" / "rank-000000.cwr"
        path.parent.mkdir()
        path.write_bytes(data)
        try:
            found = captured(Path(folder))
        except NotComparableError:
            return None
        return {name: one.digests[0] or b"" for name, one in found.items()}


def test_whole_journal() -> None:
    data, known = whole()
    assert read(data) == known
    assert len(known) == 4 * 3


@given(st.data())
@settings(max_examples=examples(120), deadline=None)
def test_cut(data: st.DataObject) -> None:
    journal, known = whole()
    found = read(journal[: data.draw(st.integers(0, len(journal)))])
    assert found is None or found.items() <= known.items()


@given(st.data())
@settings(max_examples=examples(250), deadline=None)
def test_flipped(data: st.DataObject) -> None:
    journal, known = whole()
    changed = bytearray(journal)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(journal) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = read(bytes(changed))
    assert found is None or found.items() <= known.items()


@given(st.integers(0, 10**9), st.integers(0, 7))
@settings(max_examples=examples(250), deadline=None)
def test_one_flipped_bit_hides_no_checkpoint(place: int, bit: int) -> None:
    """That of a length led behind all that follows, which passed for not written yet."""
    journal, known = whole()
    changed = bytearray(journal)
    changed[place % len(journal)] ^= 1 << bit
    assert read(bytes(changed)) in (None, known)


def test_a_length_that_leads_behind_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every record but the last one, however the rest is read in pieces."""
    journal, known = whole()
    begin = struct.pack("<I", 0x52575243)
    places = [at for at in range(64, len(journal), 8) if journal[at : at + 4] == begin]
    assert len(places) > 4 * 3
    for piece in (1 << 20, 49, 64):
        monkeypatch.setattr("ciwrap.recording.journal._PIECE_BYTES", piece)
        for at in places:
            changed = bytearray(journal)
            changed[at + 13] = 1
            assert read(bytes(changed)) == (known if at == places[-1] else None)


def test_a_journal_that_grows_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written after its length was asked for is left to the next look."""
    journal, known = whole()
    for size in range(64, len(journal), 24):
        told = SimpleNamespace(st_size=size)
        system = SimpleNamespace(fstat=lambda _, told=told: told)
        monkeypatch.setattr("ciwrap.recording.journal.os", system)
        found = read(journal)
        assert found is not None
        assert found.items() <= known.items()


@given(st.data())
@settings(max_examples=examples(120), deadline=None)
def test_spliced(data: st.DataObject) -> None:
    """Parts left out, doubled or put elsewhere, at the places where records begin, too."""
    journal, known = whole()
    starts = [at for at in range(64, len(journal), 8) if journal[at : at + 4] == b"CRWR"]
    places = st.one_of(st.sampled_from(starts), st.integers(0, len(journal)))
    one, two, three = (data.draw(places) for _ in range(3))
    begin, end = sorted((one, two))
    found = read(journal[:three] + journal[begin:end] + journal[three:])
    assert found is None or found.items() <= known.items()
    found = read(journal[:begin] + journal[end:])
    assert found is None or found.items() <= known.items()


@given(st.binary(max_size=400))
@settings(max_examples=examples(100), deadline=None)
def test_anything(data: bytes) -> None:
    assert not read(data)
    assert not read(whole()[0][:64] + data)


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_read_on_as_it_grows(data: st.DataObject) -> None:
    """However much is there at each look, every checkpoint is told once, and in order."""
    journal, _ = whole()
    lengths = sorted(data.draw(st.lists(st.integers(64, len(journal)), max_size=12)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank-000000.cwr"
        follower = JournalFollower(JournalReader(path))
        found = []
        for length in (*lengths, len(journal)):
            path.write_bytes(journal[:length])
            found += [*follower.new_checkpoints()]
        assert found == [*JournalReader(path).checkpoints()]
        assert len(found) == 8
        assert follower.journal.is_closed


def test_records_end_where_files_do(tmp_path: Path) -> None:
    """Byte by byte, as a file grows: checkpoints only ever join."""
    journal, _ = whole()
    last = 0
    path = tmp_path / "rank-000000.cwr"
    for length in range(64, len(journal) + 1, 8):
        path.write_bytes(journal[:length])
        count = sum(1 for _ in JournalReader(path).checkpoints())
        assert count in (last, last + 1)
        last = count
    assert last == 8
