"""Fields of OpenFOAM, through the published suite and as its solvers write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from told_by_readers import told

from ciwrap.base.errors import CiwrapError, CorruptFileError
from ciwrap.formats.find_outputs import formats_of, reader_named
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

KINDS = {1: "vector2D", 3: "vector", 6: "symmTensor", 9: "tensor"}
HEAD = """\
/*--------------------------------*- C++ -*----------------------------------*\\
| =========                 |                                                 |
\\*---------------------------------------------------------------------------*/
FoamFile
{
    version     2.0;
    format      ascii;
    class       volVectorField;
    location    "0.01";
    object      U;
}
// * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * //
"""
# As icoFoam 1912 wrote it, of fewer cells.
FIELD = """
dimensions      [0 1 -1 0 0 0 0];


internalField   nonuniform List<vector> 2((-0.00993179 0.00982701 0) (-0.0201868 4e-05 0));

boundaryField
{
    movingWall
    {
        type            fixedValue;
        value           uniform (1 0 0);
    }
    "(left|right)Wall"
    {
        type            calculated;
        gradient        nonuniform List<scalar>
3
(
-6.26327e-06
6.26327e-06
nan
)
;
    }
    frontAndBack
    {
        type            empty;
        value           nonuniform 0();
    }
    inlet
    {
        type            uniformFixedValue;
        uniformValue    table ((0 (1 0 0)) (10 (2 0 0)));
        phi             div(phi,U);
        Cmu             0.09;
        refValue        nonuniform List<vector> 2{(1 0 0)};
    }
}


// ************************************************************************* //
"""


class FoamSuite(ReaderSuite):
    suffix = ""
    dtypes = ("<f8",)
    shapes = ((0,), (1,), (7,), (1000,), (4, 3), (2, 6), (5, 9))
    form = "ascii"

    def make_reader(self) -> Reader:
        return reader_named("openfoam")

    def write(self, path: Path, variables: Arrays) -> None:
        data = (
            f'FoamFile {{ format {self.form}; arch "LSB;label=64;scalar=64";'
            " class volScalarField; }\n"
            "internalField uniform 0;\nboundaryField {\n"
        ).encode()
        for name, array in variables.items():
            single = "label" if array.dtype.kind == "i" else "scalar"
            kind = KINDS[array.shape[1]] if array.ndim == 2 else single
            data += f"{name} nonuniform List<{kind}> {len(array)}\n(".encode()
            data += self.elements(array) + b");\n"
        path.write_bytes(data + b"}")

    def elements(self, array: Any) -> bytes:
        return array.tobytes()

    def expected(self, variables: Arrays) -> Arrays:
        fields = {f"boundaryField/{name}": array for name, array in variables.items()}
        return {
            "class": np.array("volScalarField", "<U16"),
            "internalField": np.array(0.0),
            **fields,
        }


class TestText(FoamSuite):
    dtypes = ("<f8", "<i8")

    def variables(self, dtype: str, shape: tuple[int, ...]) -> Arrays:
        arrays = super().variables(dtype, shape)
        return arrays if len(shape) == 1 else {"data": arrays["data"].astype("<f8")}

    def elements(self, array: Any) -> bytes:
        texts = [
            repr(row) if array.ndim == 1 else f"({' '.join(map(repr, row))})"
            for row in array.tolist()
        ]
        return "\n".join(texts).encode()

    test_several_variables = None  # type: ignore[assignment]


class TestBinary(FoamSuite):
    form = "binary"


def test_a_field_as_a_solver_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "U"
    path.write_text(HEAD + FIELD)
    assert formats_of(path) == ("openfoam",)
    found = {name: one[3] for name, one in told(path, "openfoam").items()}
    wall = "boundaryField/(left|right)Wall"
    gradient = found.pop(f"{wall}/gradient")
    assert str(gradient) == "[-6.26327e-06, 6.26327e-06, nan]"
    inlet = "boundaryField/inlet"
    assert found == {
        "class": ["volVectorField"],
        "dimensions": ["[ 0 1 -1 0 0 0 0 ]"],
        "internalField": [-0.00993179, 0.00982701, 0, -0.0201868, 4e-05, 0],
        "boundaryField/movingWall/type": ["fixedValue"],
        "boundaryField/movingWall/value": [1, 0, 0],
        f"{wall}/type": ["calculated"],
        "boundaryField/frontAndBack/type": ["empty"],
        "boundaryField/frontAndBack/value": [],
        f"{inlet}/type": ["uniformFixedValue"],
        f"{inlet}/uniformValue": ["table ( ( 0 ( 1 0 0 ) ) ( 10 ( 2 0 0 ) ) )"],
        f"{inlet}/phi": ["div(phi,U)"],
        f"{inlet}/Cmu": [0.09],
        f"{inlet}/refValue": [1, 0, 0, 1, 0, 0],
    }
    shapes = {name: one[1] for name, one in told(path, "openfoam").items()}
    assert shapes["internalField"] == (2, 3)
    assert shapes[f"{inlet}/Cmu"] == ()


def test_a_binary_field_in_single_precision(tmp_path: Path) -> None:
    head = HEAD.replace("ascii;", 'binary; arch "MSB;label=32;scalar=32";')
    values = np.array([[1.5, -2.0, 0.25], [np.inf, 0, 1]], ">f4")
    path = tmp_path / "U"
    path.write_bytes(
        head.encode()
        + b"internalField nonuniform List<vector> \n2\n(" + values.tobytes() + b")\n;\n"
        + b"boundaryField { a { value nonuniform List<vector> 0; } }\n"
    )  # fmt: skip
    found = told(path, "openfoam")
    assert found["internalField"] == (">f4", (2, 3), (), values.reshape(-1).tolist())
    assert found["boundaryField/a/value"][1] == (0, 3)


def test_a_list_of_a_mesh(tmp_path: Path) -> None:
    path = tmp_path / "points"
    head = HEAD.replace("volVectorField", "vectorField")
    path.write_text(f"{head}\n2\n(\n(0 0 0)\n(0.1 0 0)\n)\n\n// *** //\n")
    assert formats_of(path) == ("openfoam",)
    assert told(path, "openfoam")["values"] == ("<f8", (2, 3), (), [0, 0, 0, 0.1, 0, 0])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2((", "3((", "line 17: holds 6 of the 9 numbers"),
        ("0.00982701 0)", "0.00982701)", "holds 5 of the 6 numbers"),
        ("4e-05", "4e-05x", "holds '4e-05x', which is not a number"),
        ("6.26327e-06\nnan", "nan", "holds 2 of the 3 numbers"),
        ("List<vector> 2((", "List<word> 2((", "has a list of 'word', which is not read"),
        ("boundaryField", "boundary", "has no boundaryField"),
        ("boundaryField", '#include "walls"\nboundaryField', "has a directive, #include"),
        ("format      ascii;", "", "says neither 'format ascii' nor"),
        ("    inlet\n", "    frontAndBack\n", "is in the file twice"),
        ("volVectorField", "faceList", "has no boundaryField"),
    ],
)
def test_what_does_not_follow_the_format(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "U"
    text = HEAD + FIELD
    assert old in text
    path.write_text(text.replace(old, new))
    if new == "faceList":
        path.write_text(HEAD.replace(old, new) + "1(4(0 1 2 3))")
        message = "holds a faceList, which is not read"
    with pytest.raises(CiwrapError, match="^[^\n]*" + message.replace("(", r"\(")):
        told(path, "openfoam")


def test_what_is_cut_off_after_the_cells(tmp_path: Path) -> None:
    path = tmp_path / "U"
    path.write_text(HEAD + FIELD[: FIELD.index("boundaryField")])
    with pytest.raises(CorruptFileError, match="has no boundaryField"):
        told(path, "openfoam")


def test_settings_are_not_taken_for_fields(tmp_path: Path) -> None:
    path = tmp_path / "controlDict"
    path.write_text(HEAD.replace("volVectorField", "dictionary") + "deltaT 0.1;\n")
    assert formats_of(path) == ()
    assert told(path, "openfoam")["deltaT"] == ("<f8", (), (), [0.1])
