"""The picture of the first difference as a file: both sides and the difference, as a PNG."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ciwrap import api
from ciwrap.explain.difference import worst_cells
from ciwrap.model import CheckResult, RunResult, VariableResult
from ciwrap.report.page import picture_file

if TYPE_CHECKING:
    from numpy.typing import NDArray


def run_of(variable: VariableResult) -> RunResult:
    return RunResult(variable.verdict, (CheckResult("c", variable.verdict, (variable,)),))


def pixels(png: bytes) -> NDArray[np.uint8]:
    """Rows, columns, red green blue: what a decoder of PNG that knows no filter reads."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert (depth, kind) == (8, 2)
    at, data = 8, b""
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        name, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0] == zlib.crc32(
            name + body
        )
        data += body if name == b"IDAT" else b""
        at += 12 + size
    lines = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + 3 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


@pytest.mark.parametrize("shape", [(20, 30), (7, 20, 30), (5, 400)], ids=str)
def test_the_picture_has_both_sides_and_the_difference(shape: tuple[int, ...]) -> None:
    golden = np.random.default_rng(0).random(shape)
    new = golden.copy()
    new[..., :5, : shape[-1] // 2] += 0.5
    found = picture_file(run_of(api.compare_arrays(golden, new, atol=1e-6)))
    assert found is not None
    assert found.words.endswith("golden | new | new - golden")
    image = pixels(found.png)
    third = (image.shape[1] - 24) // 3
    one, other, moved = (image[:, at * (third + 12) :][:, :third] for at in range(3))
    assert (image[:, third : third + 12] == 255).all()
    # What moved up is orange, what did not is grey; elsewhere both sides are one picture.
    is_moved = moved[..., 0].astype(int) - moved[..., 2] > 60
    assert is_moved[:, : third // 2 - 2].any()
    assert not is_moved[:, third // 2 + 3 :].any()
    assert (one[:, third // 2 + 3 :] == other[:, third // 2 + 3 :]).all()


def test_the_picture_of_a_line_is_three_strips() -> None:
    golden = np.linspace(0, 1, 640)
    new = golden.copy()
    new[100] += 1
    found = picture_file(run_of(api.compare_arrays(golden, new, atol=1e-6)))
    assert found is not None
    image = pixels(found.png)
    assert image.shape == (3 * 48 + 2 * 12, 640, 3)
    same = (image[0] == image[60]).all(axis=1)
    assert not same[100]


def test_there_is_no_picture_of_what_matches_or_has_no_data() -> None:
    golden = np.random.default_rng(0).random((9, 9))
    assert picture_file(run_of(api.compare_arrays(golden, golden))) is None
    made = api.make_golden({"x": golden}, atol=1e-6, evidence="residues")
    assert picture_file(run_of(api.check_array(golden + 1, made.variables[0]))) is None


@pytest.mark.parametrize("seed", range(20))
def test_a_cell_shows_the_first_of_its_largest_shares(seed: int) -> None:
    """NaN is larger than all; of equal ones, the first column has it, and there the first row."""
    draw = np.random.default_rng(seed)
    shape, most = draw.integers(1, 40, 2), draw.integers(1, 30, 2)
    shares = draw.integers(0, 4, shape).astype(float)
    shares[draw.random(shape) < 0.05] = np.nan
    shares[draw.random(shape) < 0.05] = np.inf
    cells = worst_cells(shares, (int(most[0]), int(most[1])))
    assert cells.shape == tuple(np.minimum(shape, most))
    assert (cells.tops[0], cells.tops[-1], cells.lefts[0], cells.lefts[-1]) == (
        0,
        shape[0],
        0,
        shape[1],
    )
    for i, j in np.ndindex(cells.shape):
        cell = shares[cells.tops[i] : cells.tops[i + 1], cells.lefts[j] : cells.lefts[j + 1]]
        by_column = [(column, row) for column in range(cell.shape[1]) for row in range(len(cell))]
        worst = max(by_column, key=lambda at: (np.isnan(cell[at[1], at[0]]), cell[at[1], at[0]]))
        told = cells.at[1][i, j] - cells.lefts[j], cells.at[0][i, j] - cells.tops[i]
        assert told == worst
