"""Results of CalculiX, through the published suite and as its solver writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from told_by_readers import told

from ciwrap.base.errors import CiwrapError
from ciwrap.formats.find_outputs import reader_named
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

HEAD = """\
    1C
    1UDATE              29.november.2026
"""
# As ccx 2.20 wrote it, with fewer elements and components.
MESH = """\
    2C                             3                                     1
 -1         1 0.00000E+00 0.00000E+00 0.00000E+00
 -1         2 1.00000E+00 0.00000E+00 0.00000E+00
 -1        12-1.50000E+00-1.00000E+00 0.00000E+00
 -3
    3C                             1                                     1
 -1         7    7    0    1
 -2         1         2        12
 -3
"""
RESULT = """\
    1PSTEP                         6           1           2
    1PGK                1.103736E+13
  100CL  102 528752.8951           3                     2    2MODAL      1
 -4  DISP        4    1
 -5  D1          1    2    1    0
 -5  D2          1    2    2    0
 -5  D3          1    2    3    0
 -5  ALL         1    2    0    0    1ALL
 -1         1 0.00000E+00 0.00000E+00 0.00000E+00
 -1         2 2.84871E-22 5.71429E-06-1.90476E-05
 -1        12-1.40771E-21-4.65868E-21-1.90476E-05
 -3
"""
END = " 9999\n"


def rows(values: Any, width: int = 10) -> str:
    """Lines of a block, of at most six values each."""
    text = ""
    for number, row in enumerate(values.tolist(), 1):
        for at in range(0, len(row), 6):
            text += f" -2{'':{width}}" if at else f" -1{number:{width}d}"
            text += "".join(f"{value:12.5E}" for value in row[at : at + 6]) + "\n"
    return text + " -3\n"


class TestFrd(ReaderSuite):
    suffix = ".frd"
    dtypes = ("<f8",)
    shapes = ((1, 3), (7, 3), (300, 1), (5, 7), (2, 12))
    width, form = 10, 1

    def make_reader(self) -> Reader:
        return reader_named("frd")

    def written(self, variables: Arrays) -> Arrays:
        """As text of five digits holds them."""
        return {
            name: np.array([float(f"{one:.5E}") for one in array.reshape(-1)]).reshape(array.shape)
            for name, array in variables.items()
        }

    def write(self, path: Path, variables: Arrays) -> None:
        count = len(next(iter(variables.values())))
        text = HEAD + f"    2C{'':18}{count:12d}{'':37}{self.form}\n"
        text += rows(np.zeros((count, 3)), self.width)
        for name, array in variables.items():
            text += f"  100C{'':6}{0.5:12.5E}{count:12d}{'':20} 1{3:5d}{'':10} {self.form}\n"
            text += f" -4  {name:8}{array.shape[1]:5d}    1\n"
            for component in range(array.shape[1]):
                text += f" -5  C{component:<7d}    1    1    0    0\n"
            text += rows(array, self.width)
        path.write_text(text + END)

    def expected(self, variables: Arrays) -> Arrays:
        count = len(next(iter(variables.values())))
        found = {"nodes": np.zeros((count, 3)), "nodes/numbers": np.arange(1, count + 1)}
        for name, array in self.written(variables).items():
            found |= {f"{name}[3]": array, f"{name}/value[3]": np.array(0.5)}
        return found


class TestShortFrd(TestFrd):
    width, form = 5, 0


def test_results_as_calculix_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "t.frd"
    path.write_text(HEAD + MESH + RESULT + RESULT.replace("    2MODAL", "    3MODAL") + END)
    found = told(path)
    labels = (("analysis", "2 MODAL"), ("components", "D1 D2 D3"))
    displaced = [0, 0, 0, 2.84871e-22, 5.71429e-06, -1.90476e-05]
    displaced += [-1.40771e-21, -4.65868e-21, -1.90476e-05]
    assert found["DISP[2]"] == ("<f8", (3, 3), labels, displaced)
    assert found["DISP/value[2]"][3] == [528752.8951]
    assert found["DISP/GK[3]"][3] == [1.103736e13]
    assert found["nodes/numbers"][3] == [1, 2, 12]
    assert found["nodes"][3] == [0, 0, 0, 1, 0, 0, -1.5, -1, 0]
    assert found["elements/nodes"][3] == [1, 2, 12]
    assert found["elements/types"][3] == [7]
    with reader_named("frd").open(path) as source:
        steps = {(info.called, info.iteration) for info in source.variables}
    assert {("DISP", 2), ("DISP", 3), ("DISP/value", 3)} <= steps
    with reader_named("frd").open(path, options={"iterations": "none"}) as source:
        assert {info.iteration for info in source.variables} == {None}


def test_results_over_some_nodes_say_over_which(tmp_path: Path) -> None:
    path = tmp_path / "t.frd"
    path.write_text(HEAD + MESH + RESULT.replace(" -1         2", " -1         3") + END)
    assert told(path)["DISP/nodes[2]"][3] == [1, 3, 12]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" 9999\n", "", "is where the file ends"),
        ("-1.90476E-05\n -1        12", "-1.90476E-5\n -1        12", "not in columns of 12"),
        ("-1.90476E-05\n -1        12", "\n -1        12", "has 2 values where 3 are expected"),
        ("2.84871E-22", "2.84871E-2x", "which is not a number"),
        (" 7    7    0", " 7   99    0", "no element of a known type"),
        (" -2         1         2        12", " -2         1         2", "should hold the nodes"),
        (" -4  DISP        4    1", " -4  DISP        4    2", "should name results over nodes"),
        ("     2    2MODAL      1", "     2    2MODAL      2", "is a binary file of CalculiX"),
        ("    1UDATE", "    7XDATE", "is not known"),
        ("    3C     ", "    2C     ", "line 9"),
    ],
)
def test_what_does_not_follow_the_format(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "t.frd"
    text = HEAD + MESH + RESULT + END
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(CiwrapError, match=message):
        told(path)
