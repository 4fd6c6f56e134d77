"""The journal of a comparison: what is cut off, damaged, or of something else."""

from __future__ import annotations

import contextlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.base.errors import LockBusyError, UsageError, WriteFailedError
from ciwrap.check.two_sides import Findings
from ciwrap.runs.journal import Journal, JournalRules
from ciwrap.runs.units import Part, Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

RULES = JournalRules("1", "2", "/here", "A", "B", "digest")
UNITS = [
    Unit(0, ((1, 0), (1, 1)), 10, None, ("s0", "s1")),
    Unit(1, ((2, None),), 20, Part(0, 2, 64), ("s2",)),
    Unit(2, ((2, None),), 20, Part(1, 2, 64), ("s2",)),
    Unit(3, ((3, None),), 5, None, ("s3",)),
]


def found(unit: Unit) -> Findings:
    return Findings(notes=[unit.name], data_bytes_read=unit.number)


def write(path: Path, units: Sequence[Unit], *, resume: bool = False) -> None:
    with Journal(path, RULES, resume=resume) as journal:
        journal.begin(UNITS)
        for unit in units:
            journal.add(unit, found(unit))


def known(path: Path) -> list[int]:
    """The units that a journal knows, and that they came to what they came to."""
    with Journal(path, RULES, resume=True) as journal:
        outcomes = [journal.known(unit) for unit in UNITS]
        assert all(
            one is None or one == found(unit) for one, unit in zip(outcomes, UNITS, strict=True)
        )
        return [unit.number for unit, one in zip(UNITS, outcomes, strict=True) if one is not None]


def test_units_are_known_by_checkpoints_parts_and_stamps(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, UNITS)
    assert known(path) == [0, 1, 2, 3]
    with Journal(path, RULES, resume=True) as journal:
        assert journal.former == [((1, 0), (1, 1)), ((2, None),), ((3, None),)]
        other = Unit(0, ((1, 0), (1, 1)), 10, None, ("s0", "else"))
        assert journal.known(other) is None
        gone = Unit(3, ((3, None),), 5, None, ("",))
        journal.add(gone, found(gone))
        assert journal.known(gone) is None


def test_any_cut_keeps_what_is_whole(tmp_path: Path) -> None:
    """Whatever byte a crash came at, all units before it are known, and the rest can be added."""
    path = tmp_path / "j"
    write(path, UNITS)
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    ends = [sum(map(len, lines[: number + 1])) for number in range(len(lines))]
    for cut in range(0, len(data) + 1, 7):
        path.write_bytes(data[:cut])
        whole = sum(end <= cut for end in ends)
        if whole == 0:
            with Journal(path, RULES, resume=True) as journal:
                assert journal.former == []
            continue
        assert known(path) == list(range(max(0, whole - 1)))
        assert path.read_bytes() == b"".join(lines[:whole]), "what is torn is cut off"
        write(path, UNITS[whole - 1 :], resume=True)
        assert path.read_bytes() == data


def test_a_damaged_line_costs_its_unit(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, UNITS)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"1"', b'"7"')
    path.write_bytes(b"".join(lines))
    assert known(path) == [0, 2, 3]


@given(st.binary(max_size=200), st.integers(0, 1500), st.booleans())
def test_bytes_of_any_kind(noise: bytes, place: int, inserts: bool) -> None:
    """Whatever the file holds, it is refused in one line or what is known is right."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "j"
        write(path, UNITS)
        data = path.read_bytes()
        path.write_bytes(data[:place] + noise + data[place + (0 if inserts else len(noise)) :])
        with contextlib.suppress(UsageError):
            known(path)
        path.write_bytes(noise)
        with contextlib.suppress(UsageError):
            assert known(path) == []


@pytest.mark.parametrize("name", JournalRules.__struct_fields__)
def test_a_journal_made_with_something_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / "j"
    write(path, UNITS)
    before = path.read_bytes()
    said = {one: getattr(RULES, one) for one in JournalRules.__struct_fields__}
    other = JournalRules(**{**said, name: "else"})
    with pytest.raises(UsageError, match="was made with"):
        Journal(path, other, resume=True)
    assert path.read_bytes() == before


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with (
        Journal(path, RULES, resume=False),
        pytest.raises(LockBusyError, match="another process is writing this journal"),
    ):
        Journal(path, RULES, resume=True)
    with pytest.raises(WriteFailedError, match="the journal cannot be written"):
        Journal(tmp_path / "no" / "j", RULES, resume=False)


def test_a_device_is_no_journal() -> None:
    """There may be no end of it."""
    with pytest.raises(UsageError, match="is not a regular file"):
        Journal(Path("/dev/zero"), RULES, resume=True)
