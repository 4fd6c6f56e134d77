"""Files of SU2: meshes and restarts as its tutorials have them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from told_by_readers import told

from ciwrap.base.errors import CiwrapError, CorruptFileError, UnsupportedFormatError
from ciwrap.formats.find_outputs import find_in, reader_named
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

MESH = """\
% a comment
NDIME= 2
NELEM= 2
9 0 1 4 3 0
5\t1\t2\t4\t1
NPOIN= 5
0 0 0
1.5 0 1
2 0.5 2
0 1 3
1 1e-3 4
NMARK= 2
MARKER_TAG= inlet
MARKER_ELEMS= 1
3 0 3
MARKER_TAG= wall
MARKER_ELEMS= 2
3 0 1
3 1 2
NPERIODIC= 1
PERIODIC_INDEX= 0
0.0 0.0 0.0
FFD_NBOX= 1
FFD_TAG= BOX
FFD_BLENDING= BEZIER
FFD_SURFACE_POINTS= 1
wall 2 0.5 0.25 0.125
"""


def restart(fields: dict[str, Any], wholes: list[int], doubles: list[float]) -> bytes:
    table = np.array([np.ravel(one) for one in fields.values()], "<f8").T
    head = struct.pack("<5i", 535532, len(fields), len(table), len(wholes), len(doubles))
    names = b"".join(name.encode().ljust(33, b"\0") for name in fields)
    behind = struct.pack(f"<{len(wholes)}i{len(doubles)}d", *wholes, *doubles)
    return head + names + table.tobytes() + behind


class TestRestart(ReaderSuite):
    suffix = ".su2"
    dtypes = ("<f8",)
    shapes = ((1,), (7,), (3000,))

    def make_reader(self) -> Reader:
        return reader_named("su2")

    def write(self, path: Path, variables: Arrays) -> None:
        path.write_bytes(restart(variables, [], []))


def test_a_restart_file_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "restart.dat"
    path.write_bytes(restart({"Density": [1.5, 2], "Mach": [0, 1]}, [7], [0.5, -1]))
    (file,) = find_in(path).files
    with file.open() as source:
        found = {one.name: source.read(one.name, 0, one.element_count) for one in source.variables}
    assert {name: one.tolist() for name, one in found.items()} == {
        "Density": [1.5, 2],
        "Mach": [0, 1],
        "metadata/whole": [7],
        "metadata": [0.5, -1],
    }
    whole = path.read_bytes()
    for data in (whole[:-1], whole + b"\0", whole[:12], whole[:4] + b"\xff" * 16 + whole[20:]):
        path.write_bytes(data)
        with pytest.raises(CorruptFileError, match="bytes where"):
            reader_named("su2").open(path)


def test_a_mesh(tmp_path: Path) -> None:
    path = tmp_path / "m.su2"
    path.write_text(MESH)
    found = {name: (one[1], one[3]) for name, one in told(path).items()}
    assert found["NELEM/types"] == ((2,), [9, 5])
    assert found["NELEM/nodes"] == ((7,), [0, 1, 4, 3, 1, 2, 4])
    assert found["NELEM/numbers"] == ((2,), [0, 1])
    assert found["NPOIN/rows"] == ((5, 2), [0, 0, 1.5, 0, 2, 0.5, 0, 1, 1, 1e-3])
    assert found["NPOIN/numbers"] == ((5, 1), [0, 1, 2, 3, 4])
    assert found["wall/MARKER_ELEMS/nodes"] == ((4,), [0, 1, 1, 2])
    assert found["PERIODIC_INDEX/rows"] == ((1, 3), [0, 0, 0])
    assert found["BOX/FFD_BLENDING"] == ((), ["BEZIER"])
    assert found["BOX/FFD_SURFACE_POINTS/names"][1] == ["wall"]
    assert found["BOX/FFD_SURFACE_POINTS/numbers"][1] == [2]
    assert found["BOX/FFD_SURFACE_POINTS/rows"][1] == [0.5, 0.25, 0.125]
    assert len(found) == 27


def test_points_without_a_fraction_are_decimals(tmp_path: Path) -> None:
    path = tmp_path / "m.su2"
    path.write_text(MESH.replace("1.5 0 1", "1 0 1").replace("0.5 2", "1 2").replace("1e-3", "1"))
    assert told(path)["NPOIN/rows"][0] == "<f8"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("NELEM= 2", "NELEM= 3", "NELEM says 3 rows, but has 2"),
        ("3 1 2\n", "", "wall/MARKER_ELEMS says 2 rows, but has 1"),
        ("NMARK= 2", "NMARK= 3", "as many markers as it says"),
        ("NMARK= 2\n", "", "does not have NMARK="),
        ("9 0 1 4 3 0", "9 0 1 4", "is no element"),
        ("9 0 1 4 3 0", "77 0 1 4", "is no element"),
        ("1.5 0 1", "1.5 0", "rows of several lengths"),
        ("1.5 0 1", "1,5 0 1", "1,5"),
        ("% a comment", "words", "line 1 comes before any key"),
    ],
)
def test_what_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "m.su2"
    path.write_text(MESH.replace(old, new, 1))
    with pytest.raises(CorruptFileError) as caught:
        reader_named("su2").open(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_every_cut_is_refused_or_shorter(tmp_path: Path) -> None:
    """What follows the markers may be there or not."""
    path = tmp_path / "m.su2"
    lines = MESH.splitlines(keepends=True)
    for count in range(lines.index("3 1 2\n")):
        path.write_text("".join(lines[: count + 1]) if count else "")
        with pytest.raises(CiwrapError):
            reader_named("su2").open(path)


def test_zones(tmp_path: Path) -> None:
    path = tmp_path / "m.su2"
    path.write_text("NZONE= 2\nIZONE= 1\n" + MESH)
    with pytest.raises(UnsupportedFormatError, match="several zones"):
        reader_named("su2").open(path)
