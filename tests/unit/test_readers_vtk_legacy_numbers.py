"""Numbers in legacy files of VTK that their type cannot hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ciwrap.base.errors import CorruptFileError
from ciwrap.formats.vtk import VtkReader

if TYPE_CHECKING:
    from pathlib import Path

SCALARS = "SCALARS a {} 1\nLOOKUP_TABLE default\n{}\n"
FIELD = "FIELD f 2\na 1 2 {}\n{}\n300 1 2 float\n400 500\n"


def check(path: Path, text: str) -> None:
    grid = "DATASET STRUCTURED_POINTS\nDIMENSIONS 2 1 1\n"
    path.write_text(f"# vtk DataFile Version 3.0\nt\nASCII\n{grid}POINT_DATA 2\n{text}")
    VtkReader().open(path)


@pytest.mark.parametrize("within", [SCALARS, FIELD])
@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("unsigned_char", "0 255", "0 259"),
        ("unsigned_char", "0 255", "-1 0"),
        ("char", "-128 127", "0 128"),
        ("signed_char", "-128 127", "-129 0"),
        ("bit", "0 1", "0 2"),
        ("unsigned_short", "0 65535", "0 -1"),
        ("vtktypeuint64", "0 18446744073709551615", "-1 0"),
    ],
)
def test_numbers_that_their_type_cannot_hold(
    tmp_path: Path, within: str, kind: str, right: str, wrong: str
) -> None:
    path = tmp_path / "x.vtk"
    check(path, within.format(kind, right))
    check(path, within.format("int", wrong))
    with pytest.raises(CorruptFileError, match=r"has values that are not of type u?int"):
        check(path, within.format(kind, wrong))


def test_arrays_that_are_called_as_types_are(tmp_path: Path) -> None:
    check(tmp_path / "x.vtk", "SCALARS char float 1\nLOOKUP_TABLE default\n300.5 400\n")
