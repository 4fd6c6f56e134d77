"""Meshes of Gmsh, through the published suite and as Gmsh writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from told_by_readers import told

from ciwrap.base.errors import CiwrapError
from ciwrap.formats.find_outputs import find_in, reader_named
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

FORMAT = "$MeshFormat\n{} 0 8\n$EndMeshFormat\n"
NAMES = '$PhysicalNames\n1\n2 6 "body"\n$EndPhysicalNames\n'
# As Gmsh 4.8 wrote them, with fewer elements.
NEW = (
    FORMAT.format("4.1")
    + NAMES
    + """\
$Entities
1 0 0 0
1 0 0 0 0
$EndEntities
$Nodes
2 3 1 9
0 1 0 1
1
0 0 0
2 1 1 2
2
9
1 0 0 0.25 0.5
0 1.5 0 0.75 1
$EndNodes
$Elements
2 2 1 2
1 4 1 1
1 1 2
2 1 2 1
2 1 2 9
$EndElements
"""
)
OLD = (
    FORMAT.format("2.2")
    + NAMES
    + """\
$Nodes
3
1 0 0 0
2 1 0 0
9 0 1.5 0
$EndNodes
$Elements
2
1 1 2 5 4 1 2
2 2 3 6 1 0 1 2 9
$EndElements
"""
)
DATA = """\
$NodeData
1
"New view"
1
0.5
3
{step}
1
2
1 2.5
9 -1
$EndNodeData
$ElementNodeData
2
"A"
"scheme"
1
0.5
4
{step}
1
1
3
2 3 1 2 3.5
$EndElementNodeData
"""


class TestGmsh(ReaderSuite):
    suffix = ".msh"
    dtypes = ("<f8",)
    shapes = ((1, 1), (7, 3), (300, 9))

    def make_reader(self) -> Reader:
        return reader_named("gmsh")

    def write(self, path: Path, variables: Arrays) -> None:
        text = FORMAT.format("4.1")
        for name, array in variables.items():
            text += f'$NodeData\n1\n"{name}"\n0\n3\n4\n{array.shape[1]}\n{len(array)}\n'
            for number, row in enumerate(array.tolist(), 1):
                text += f"{number} {' '.join(map(repr, row))}\n"
            text += "$EndNodeData\n"
        path.write_text(text.removesuffix("\n"))

    def expected(self, variables: Arrays) -> Arrays:
        found: Arrays = {}
        for name, array in variables.items():
            found[f"NodeData/{name}[4]"] = array
            found[f"NodeData/{name}/numbers[4]"] = np.arange(1, len(array) + 1)
        return found


@pytest.mark.parametrize("text", [OLD, NEW])
def test_meshes_as_gmsh_writes_them(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.msh"
    path.write_text(text)
    found = {name: one[1:2] + one[3:] for name, one in told(path).items()}
    common = {
        "nodes": ((3, 3), [0, 0, 0, 1, 0, 0, 0, 1.5, 0]),
        "nodes/numbers": ((3,), [1, 2, 9]),
        "elements/nodes": ((5,), [1, 2, 1, 2, 9]),
        "elements/numbers": ((2,), [1, 2]),
        "PhysicalNames": ((2,), ["1", '2 6 "body"']),
    }
    old = {
        "elements/types": ((2,), [1, 2]),
        "elements/tags": ((5,), [5, 4, 6, 1, 0]),
        "elements/tag_counts": ((2,), [2, 3]),
    }
    new = {
        "Entities": ((2,), ["1 0 0 0", "1 0 0 0 0"]),
        "nodes/blocks": ((2, 4), [0, 1, 0, 1, 2, 1, 1, 2]),
        "nodes/parameters": ((4,), [0.25, 0.5, 0.75, 1]),
        "elements/blocks": ((2, 4), [1, 4, 1, 1, 2, 1, 2, 1]),
    }
    assert found == common | (old if text == OLD else new)


def test_nodes_with_parameters_of_old(tmp_path: Path) -> None:
    path = tmp_path / "t.msh"
    text = OLD.replace("Nodes", "ParametricNodes").replace("9 0 1.5 0", "9 0 1.5 0 1 1 0.5")
    path.write_text(text.replace("1 0 0 0", "1 0 0 0 0 1", 1))
    found = told(path)
    assert found["nodes"][3] == [0, 0, 0, 1, 0, 0, 0, 1.5, 0]
    assert found["nodes/parameters"][3] == [0, 1, 1, 1, 0.5]


def test_data_over_nodes_and_elements(tmp_path: Path) -> None:
    path = tmp_path / "t.msh"
    path.write_text(OLD + DATA.format(step=0) + DATA.format(step=10))
    found = told(path)
    assert found["NodeData/New view[10]"] == ("<f8", (2, 1), (), [2.5, -1])
    assert found["NodeData/New view/numbers[10]"][3] == [1, 9]
    assert found["NodeData/New view/time[10]"][3] == [0.5]
    labels = (("interpolation", "scheme"),)
    assert found["ElementNodeData/A[0][3]"] == ("<f8", (3, 1), labels, [1, 2, 3.5])
    assert found["ElementNodeData/A/counts[0][3]"][3] == [3]
    with reader_named("gmsh").open(path) as source:
        places = {(info.called, info.iteration, info.rank) for info in source.variables}
    assert {("NodeData/New view", 10, None), ("ElementNodeData/A", 0, 3)} <= places


def test_meshes_of_others_are_no_meshes_of_gmsh(tmp_path: Path) -> None:
    path = tmp_path / "fluent.msh"
    path.write_text('(0 "GAMBIT to Fluent File")\n(2 3)\n')
    assert find_in(path).files[0].reader.name == "tokens"


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (OLD, "$EndElements", "", r"line 17 is where '\$EndElements' is expected"),
        (OLD, "2.2 0 8", "4.0 0 8", "of the format '4.0 0 8'; read are 2.2 and 4.1"),
        (OLD, "2.2 0 8", "2.2 1 8", "2.2 1 8'; read are 2.2 and 4.1 as text"),
        (OLD, "9 0 1.5 0", "9 0 1.5", r"\$Nodes: has rows that do not hold 3 numbers"),
        (OLD, "9 0 1.5 0", "9 0 1.5 0 7", "rows that do not hold 3 numbers"),
        (OLD, "0 1.5 0", "0 1.5x 0", "which is not a number"),
        (OLD, "$Nodes\n3", "$Nodes\n2", r"line 12 is where '\$EndNodes' is expected"),
        (OLD, "2 2 3 6 1 0 1 2 9", "2 1 3 6 1 0 1 2 9", "another number of nodes"),
        (OLD, "$Nodes\n3", "$Nodes\n4", "rows that do not hold 3 numbers"),
        (OLD, "$Nodes\n3", "$Nodes\n-3", "says that it has -3 rows"),
        (OLD, "$EndPhysicalNames", "", r"line 18 is where '\$EndPhysicalNames' is expected"),
        (OLD, OLD, "", "holds no line"),
        (OLD, "2 2 3 6 1 0 1 2 9", "2 2 3 6 1 0", "another number of nodes"),
        (NEW, "2 3 1 9", "2 4 1 9", "more or fewer items"),
        (NEW, "$Entities", "$Things\n$EndThings\n$Entities", "begins no section that is known"),
        (NEW, "$Entities", "stray\n$Entities", "stray: begins no section that is known"),
        (OLD + DATA.format(step=0), "3 1 2 3.5", "4 1 2 3.5", "rows of another length"),
        (OLD + DATA.format(step=0), "1 2.5", "1 2.5 3", "rows that do not hold 1 numbers"),
    ],
)
def test_what_does_not_follow_the_format(
    tmp_path: Path, text: str, old: str, new: str, message: str
) -> None:
    path = tmp_path / "t.msh"
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(CiwrapError, match=message):
        told(path)
