"""Data of Tecplot as text, through the published suite and as programs write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from told_by_readers import told

from ciwrap.base.errors import CiwrapError
from ciwrap.formats.find_outputs import find_in, reader_named
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays


class TestBlocks(ReaderSuite):
    suffix = ".dat"
    dtypes = ("<f8",)
    shapes = ((1,), (7,), (3, 5), (2, 1, 4))
    fixed_size = False  # a grid that says no I may end anywhere, and a last number may be shorter
    packing = "BLOCK"

    def make_reader(self) -> Reader:
        return reader_named("tecplot")

    def write(self, path: Path, variables: Arrays) -> None:
        names = ", ".join(f'"{name}"' for name in variables)
        shape = next(iter(variables.values())).shape
        extents = ", ".join(f"{k}={n}" for k, n in zip("IJK", shape[::-1], strict=False))
        text = f'TITLE = "t"\nVARIABLES = {names}\nZONE T="z", {extents}, F={self.packing}\n'
        flat = [array.reshape(-1).tolist() for array in variables.values()]
        if self.packing == "POINT":
            flat = list(zip(*flat, strict=True))
        path.write_text(text + "\n".join(" ".join(map(repr, row)) for row in flat))


class TestPoints(TestBlocks):
    packing = "POINT"


# As meshio 5.3 writes it.
CELLS = """\
TITLE = "Written by meshio v5.3.5"
VARIABLES = "X", "Y", "p", "q"
ZONE NODES = 4, ELEMENTS = 2,
DATAPACKING = BLOCK, ZONETYPE = FETRIANGLE,
VARLOCATION = ([4] = CELLCENTERED)
0.0 1.0 0.0 1.0
0.0 0.0 1.0 1.0
1.0 2.0 3.0 4.0
5.0 6.0
1 2 3
2 4 3
"""
# Zones of one strand that share their mesh, as programs write them that append at each time.
TIMES = """\
# made by a test
variables=X Rho "T, K"
ZONE I=2 T= "STEP=0" DATAPACKING=POINT STRANDID=1 SOLUTIONTIME= 0.0
AUXDATA Common.Case = "a, b=2"
0 1.5 300
1 2.5 310
ZONE I=2, T="STEP=1", F=POINT, STRANDID=1, SOLUTIONTIME=0.5, VARSHARELIST=([1,3-3]=1)
1.25
nan
"""
OLD = """\
VARIABLES = "x" "y"
zone t="a"i=2,f=point
0 1
1 2
ZONE T="a"
5 6

ZONE T="b"
7, 8
8, 9
9, 1
"""


def values(path: Path) -> dict[str, Any]:
    return {name: (one[1], one[3]) for name, one in told(path, "tecplot").items()}


def test_elements_with_values_over_points_and_cells(tmp_path: Path) -> None:
    path = tmp_path / "t.dat"
    path.write_text(CELLS)
    assert values(path) == {
        "X": ((4,), [0, 1, 0, 1]),
        "Y": ((4,), [0, 0, 1, 1]),
        "p": ((4,), [1, 2, 3, 4]),
        "q": ((2,), [5, 6]),
        "elements": ((2, 3), [1, 2, 3, 2, 4, 3]),
    }


def test_times_are_iterations(tmp_path: Path) -> None:
    path = tmp_path / "t.dat"
    path.write_text(TIMES)
    found = values(path)
    assert found.pop("Rho[1]")[1][0] == 1.25
    assert found == {
        "X[0]": ((2,), [0, 1]),
        "Rho[0]": ((2,), [1.5, 2.5]),
        "T, K[0]": ((2,), [300, 310]),
        "solution_time[0]": ((), [0]),
        "solution_time[1]": ((), [0.5]),
    }
    with reader_named("tecplot").open(path) as source:
        assert {(one.called, one.iteration) for one in source.variables} >= {("Rho", 0), ("Rho", 1)}
    with reader_named("tecplot").open(path, options={"iterations": "none"}) as source:
        assert "STEP=1/Rho" in {one.name for one in source.variables}


def test_several_zones_are_told_apart_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "t.dat"
    path.write_text(OLD)
    assert values(path) == {
        "a/x": ((2,), [0, 1]),
        "a/y": ((2,), [1, 2]),
        "a[2]/x": ((1,), [5]),
        "a[2]/y": ((1,), [6]),
        "b/x": ((3,), [7, 8, 9]),
        "b/y": ((3,), [8, 9, 1]),
    }


@pytest.mark.parametrize(
    "head",
    [
        'TITLE = "a ZONE T=1" VARIABLES = "x", "y"\nZONE T="a"\n',
        'title="VARIABLES = u" variables = x, y zone T="VARIABLES = z"\n',
        'VARIABLES = "x"\n"y" ZONE T="a"\n# VARIABLES = "x" TITLE = "no"\n',
    ],
)
def test_several_records_on_one_line(tmp_path: Path, head: str) -> None:
    path = tmp_path / "t.dat"
    path.write_text(f"{head}0 1\n1 2\n")
    assert values(path) == {"x": ((2,), [0, 1]), "y": ((2,), [1, 2])}


def test_a_grid_with_values_over_cells(tmp_path: Path) -> None:
    path = tmp_path / "t.dat"
    head = "VARIABLES = x, p\nZONE I=3, J=2, DATAPACKING=BLOCK, VARLOCATION=([2]=CELLCENTERED)\n"
    path.write_text(f"{head}0 1 2 0 1 2\n8 9\n")
    assert values(path)["p"] == ((1, 2), [8, 9])


@pytest.mark.parametrize(
    ("name", "text", "reader"),
    [
        ("t.dat", CELLS, "tecplot"),
        ("t.plt", TIMES, "tecplot"),
        ("t.dat", "x y\n1 2\n", "text"),
        ("t.plt", "plot sin(x)\n", "tokens"),
        ("t.cfg", 'title = "a"\n[tool]\nvariables = 3\n', "tokens"),
        ("t.plt", "#!TDV112\x01\x00", "tecplot"),
    ],
)
def test_it_is_known_by_its_content(tmp_path: Path, name: str, text: str, reader: str) -> None:
    (tmp_path / name).write_text(text)
    assert find_in(tmp_path / name).files[0].reader.name == reader


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (CELLS, "2 4 3\n", "", "line 10 comes after 3 numbers where 6 are expected"),
        (CELLS, "5.0 6.0", "5.0 6.0 7.0", "comes after 15 numbers where 14 are expected"),
        (CELLS, "2 4 3", "2 4 3.5", "'3.5', which is not a whole number"),
        (CELLS, "5.0", "5.0x", "'5.0x', which is not a number"),
        (CELLS, "FETRIANGLE", "FEPOLYGON", "a zone of 'POLYGON', which is not read"),
        (CELLS, "NODES = 4,", "", "NODES|is empty"),
        (CELLS, "BLOCK", "POINT", "values of cells in no BLOCK"),
        (CELLS, "([4] = CELLCENTERED)", "(CELLCENTERED)", "without numbers in brackets"),
        (CELLS, "NODES = 4,", "NODES = 4, D=3,", "says 'D', which is not known"),
        (CELLS, "2 4 3\n", "2 4 3\nGEOMETRY X=1\n", "holds GEOMETRY, which is not read"),
        (CELLS, "2 4 3\n", "2 4 3\nstray\n", "line 12 is not part of a record: 'stray'"),
        (CELLS, "2 4 3\n", "2 4 3\n1\n", "line 12 is not part of a record"),
        (CELLS, '"p", "q"', '"p", "p"', "is in the file twice"),
        (CELLS, '"q"', '"elements"', "is in the file twice"),
        (OLD, "7, 8\n", "7, 8, 9\n", "cannot be read"),
        (OLD, 'VARIABLES = "x" "y"\n', "", "without VARIABLES"),
        (OLD, OLD, "#!TDV112\x01\x00", "is a binary file of Tecplot"),
        (OLD, OLD, "VARIABLES = x\n", "holds no zone"),
    ],
)
def test_what_does_not_follow_the_format(
    tmp_path: Path, text: str, old: str, new: str, message: str
) -> None:
    path = tmp_path / "t.dat"
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(CiwrapError, match=message):
        told(path, "tecplot")
