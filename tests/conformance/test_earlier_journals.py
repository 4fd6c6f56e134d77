"""Journals of format 2 are read, compared, and compared with, as they were."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_runs import need_library

import ciwrap
from ciwrap import _core
from ciwrap.base.errors import UnsupportedFormatError
from ciwrap.cli.main import run
from ciwrap.recording.journal import FINE, JournalReader
from ciwrap.recording.native import library_path

JOURNALS = Path(__file__).parent / "earlier" / "journals"
NAME = Path("000/rank-000000.cwr")
NUMBERS = np.arange(1000) / 1000.0


def compared(folder: Path, one: Path, other: Path) -> dict[tuple[str, int], Any]:
    target = folder / "r.json"
    run(["compare", str(one), str(other), "--json", str(target), "--json-detail", "all"])
    found = json.loads(target.read_text())["checks"][0]["variables"]
    return {(one["name"], one["iteration"]): one for one in found}


def test_they_match_and_do_not_as_they_did(tmp_path: Path) -> None:
    near = compared(tmp_path, JOURNALS / "one", JOURNALS / "near")
    assert {one["verdict"] for one in near.values()} == {"match"}
    assert len(near) == 4
    far = compared(tmp_path, JOURNALS / "one", JOURNALS / "far")
    assert {place for place, one in far.items() if one["verdict"] != "match"} == {("x", 2)}
    assert (far["x", 2]["verdict"], far["x", 2]["suspect_chunks"]) == ("undecided", 2)
    assert "least_share" not in far["x", 2]


def states(journal: Path) -> dict[tuple[int, str], Any]:
    read = JournalReader(journal).checkpoints()
    return {(one.iteration, state.variable.name): state for one in read for state in one.states}


def test_what_they_say_of_the_reference() -> None:
    found = states(JOURNALS / "far" / NAME)[2, "x"].compared
    assert (found.chunks, found.suspect_chunks, found.proven_chunks) == (2, 2, 0)
    assert found.least_share is None


def test_a_program_is_compared_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As far as it goes: it has no summaries, which would prove that x differs."""
    need_library()
    monkeypatch.setenv("CIWRAP_RECORD_LIBRARY", str(library_path()))
    monkeypatch.setenv("CIWRAP_RECORD", str(tmp_path / "now"))
    monkeypatch.setenv("CIWRAP_RECORD_AGAINST", str(JOURNALS / "one"))
    with ciwrap.Recorder("walk") as recorder:
        for n in (1, 2):
            count = np.arange(10, dtype="i8") * n
            recorder.record(n, x=NUMBERS * (1.25 if n > 1 else 1), count=count)
    assert "x does not match the reference in iteration 2 (2 of 2 blocks)" in capfd.readouterr().err
    now = states(tmp_path / "now" / NAME)
    assert now[1, "x"].compared.suspect_chunks == now[2, "count"].compared.suspect_chunks == 0
    assert (now[2, "x"].compared.suspect_chunks, now[2, "x"].compared.proven_chunks) == (2, 0)
    assert FINE not in now[1, "x"].trees


def with_version(journal: Path, version: int) -> None:
    raw = journal.read_bytes()
    head = raw[:8] + struct.pack("<I", version) + raw[12:48]
    journal.write_bytes(head + _core.xxh3_128(head) + raw[64:])


def test_a_format_to_come_is_refused(tmp_path: Path) -> None:
    shutil.copytree(JOURNALS / "one", tmp_path / "one")
    with_version(tmp_path / "one" / NAME, 2)
    assert (tmp_path / "one" / NAME).read_bytes() == (JOURNALS / "one" / NAME).read_bytes()
    with_version(tmp_path / "one" / NAME, 4)
    with pytest.raises(UnsupportedFormatError, match="format 4, this release reads 2 to 3"):
        JournalReader(tmp_path / "one" / NAME).read_head()


def test_summaries_in_the_older_format_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Builds between the two formats wrote them there."""
    need_library()
    monkeypatch.setenv("CIWRAP_RECORD_LIBRARY", str(library_path()))
    bounds = tmp_path / "bounds.txt"
    bounds.write_text("ciwrap-bounds 3\n*\tx\t0.001 0 0\t-\t4096\t-\t15\n")
    monkeypatch.setenv("CIWRAP_RECORD_BOUNDS", str(bounds))
    for side in ("a", "b"):
        monkeypatch.setenv("CIWRAP_RECORD", str(tmp_path / side))
        with ciwrap.Recorder("walk") as recorder:
            recorder.record(1, x=NUMBERS * (1.25 if side == "b" else 1))
        with_version(tmp_path / side / NAME, 2)
    found = compared(tmp_path, tmp_path / "a", tmp_path / "b")["x", 1]
    assert found["verdict"] == "differ"
    assert found["least_share"] > 100
