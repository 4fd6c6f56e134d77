"""The numbers behind a picture, and what a difference comes to, compared with NumPy."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from tiers import examples

from ciwrap import api
from ciwrap.model import CheckResult, RunResult, VariableResult
from ciwrap.model.variable_result import MOST_VIEW_CELLS, SUSPECT, View, cells
from ciwrap.report.document import MOST_VIEWS, document_text, from_document, to_document, trimmed
from ciwrap.report.page import render_html


def decoded(view: View) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Golden, new (NaN: none) and (new - golden) / bound (NaN: none), as planes, rows, columns."""
    raw = np.stack([np.frombuffer(base64.b64decode(one), "<u2") for one in view.planes])
    raw = raw.reshape(len(view.planes), 3, view.rows, view.columns).astype(np.float64)
    sides = np.where(raw[:, :2] == 65535, np.nan, raw[:, :2])
    values = view.low + (view.high - view.low) * sides / 65534
    share = np.where(raw[:, 2] == 0, 0.0, 2.0 ** ((raw[:, 2] - 32768) / 256))
    share *= np.where(raw[:, 2] % 2, -1.0, 1.0)
    return values[:, 0], values[:, 1], np.where(raw[:, 2] == 65535, np.nan, share)


def taken(values: np.ndarray, view: View) -> np.ndarray:
    """The planes of an array that a view shows, element by element."""
    order = [one for one in (view.axis, view.row_axis, view.column_axis) if one is not None]
    rest = [axis for axis in range(values.ndim) if axis not in order]
    part = values.transpose([*rest, *order])
    part = part[tuple(view.index[axis] for axis in rest)]
    if view.row_axis is None:
        part = part[None]
    return part[None] if view.axis is None else part[list(view.positions)]


@pytest.mark.parametrize("seed", range(examples(60)))
def test_a_view_has_the_numbers_of_both_sides(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = [(40,), (900,), (20, 30), (9, 11, 13), (3, 5, 4, 6), (70, 90), (30, 1)][seed % 7]
    golden = random.normal(size=shape) * 10.0 ** random.integers(-6, 6)
    size = float(np.abs(golden).max())
    where = random.random(shape) < 0.3
    new = golden + np.where(where, random.normal(size=shape) * size, 0)
    new.reshape(-1)[-1] += size
    if seed % 3 == 0:
        new.reshape(-1)[0] = np.nan
    atol = size * 1e-3
    result = api.compare_arrays(golden, new, atol=atol)
    assert result.details is not None
    view = result.details.view
    assert view is not None
    assert view.cell_elements == 1
    assert not view.is_cut
    ours, theirs, share = decoded(view)
    wanted = taken(golden, view), taken(new, view)
    step = (view.high - view.low) / 65534
    for shown, true in zip((ours, theirs), wanted, strict=True):
        np.testing.assert_array_equal(np.isnan(shown), np.isnan(true))
        np.testing.assert_allclose(shown, true, atol=0.51 * step)
    np.testing.assert_allclose(share, (wanted[1] - wanted[0]) / atol, rtol=2.8e-3)
    share = np.abs(share)
    # The plane of the worst element is the one that is shown first.
    assert seed % 3 == 0 or share[view.shown].max() == share.max()
    document = json.loads(document_text(to_document(run_of(result))))
    assert from_document(document).checks[0].variables[0] == result


def run_of(*variables: VariableResult) -> RunResult:
    verdict = variables[0].verdict
    return RunResult(verdict, (CheckResult("c", verdict, variables),))


@pytest.mark.parametrize("shape", [(100_000,), (700, 800), (60, 70, 80), (2000, 3)], ids=str)
def test_a_large_view_shows_the_worst_of_each_cell_and_stays_small(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    golden = random.normal(size=shape)
    new = golden.copy()
    at = tuple(extent // 3 for extent in shape)
    new[at] += 1
    result = api.compare_arrays(golden, new, atol=1e-6)
    assert result.details is not None
    view = result.details.view
    assert view is not None
    assert view.rows * view.columns * len(view.planes) <= MOST_VIEW_CELLS
    _, _, share = decoded(view)
    assert np.count_nonzero(share > 1) == 1
    assert share.max() == pytest.approx(1e6, rel=1.5e-3)
    assert view.axis is None or at[view.axis] == view.positions[view.shown]


@pytest.mark.parametrize("seed", range(examples(60)))
def test_what_a_difference_comes_to_is_what_numpy_says(seed: int) -> None:
    random = np.random.default_rng(seed)
    golden = random.normal(size=(30, 40)).astype([np.float64, np.float32][seed % 2])
    new = golden + random.normal(size=golden.shape).astype(golden.dtype)
    new[3, 5] = np.nan
    bound = {"atol": 1e-6, "fill_values": [-9999.0]} if seed % 3 == 0 else {"atol": 1e-6}
    if seed % 3 == 0:
        golden[0] = new[0] = -9999.0
    result = api.compare_arrays(golden, new, **bound)  # type: ignore[arg-type]
    assert result.details is not None
    effect = result.details.effect
    assert effect is not None
    kept = np.isfinite(new) & (golden != -9999.0)
    one, other = golden[kept].astype(np.float64), new[kept].astype(np.float64)
    assert effect.element_count == one.size
    assert effect.rms == pytest.approx(np.sqrt(np.mean((other - one) ** 2)))
    assert effect.bias == pytest.approx(np.mean(other - one))
    assert (effect.least, effect.greatest) == (one.min(), one.max())
    assert effect.golden_sum == pytest.approx(one.sum())
    assert effect.new_sum == pytest.approx(other.sum())
    assert effect.size_sum == pytest.approx(np.abs(one).sum())


def test_a_sum_that_is_kept_is_told_so() -> None:
    golden = np.random.default_rng(0).random(1000)
    new = np.roll(golden, 1)
    page = render_html(run_of(api.compare_arrays(golden, new, atol=1e-6)))
    assert "conserved to within rounding" in page
    page = render_html(run_of(api.compare_arrays(golden, new + 0.01, atol=1e-6)))
    assert "conserved" not in page
    assert "a change by" in page


@pytest.mark.parametrize("shape", [(60_000,), (256, 256), (20, 40, 50)], ids=str)
def test_residues_show_the_new_field_and_the_suspect_chunks(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    golden = random.random(shape)
    made = api.make_golden({"x": golden}, atol=1e-6, evidence="residues")
    new = golden.copy()
    new.reshape(-1)[golden.size // 2 :][:900] += 1
    result = api.check_array(new, made.variables[0])
    assert result.details is not None
    picture = result.details.picture
    assert picture is not None
    assert picture.golden == ""
    shown = np.frombuffer(cells(picture.new, picture.rows, picture.columns), np.uint8)
    assert shown.max() > shown.min()
    marked = np.frombuffer(cells(picture.classes, picture.rows, picture.columns), np.uint8)
    assert set(np.unique(marked)) == {0, SUSPECT}
    # As large a part of the plane is marked as lies in suspect chunks, to a cell at each end.
    first, last = result.suspect_ranges[0].first_element, result.suspect_ranges[-1].last_element
    flats = np.arange(golden.size).reshape(shape)
    plane = flats[
        tuple(
            slice(None) if axis in (picture.row_axis, picture.column_axis) else position
            for axis, position in enumerate(picture.index)
        )
    ]
    inside = np.mean((plane >= first) & (plane <= last))
    slack = 2 * (picture.columns if picture.row_axis is not None else 1) / marked.size
    assert abs(np.mean(marked == SUSPECT) - inside) <= slack
    page = render_html(run_of(result))
    assert ("outlined: blocks that may differ" in page) == (len(shape) > 1)
    assert ("shaded: blocks that may differ" in page) == (len(shape) == 1)


def test_a_document_keeps_few_views() -> None:
    golden = np.random.default_rng(0).random((20, 20))
    results = []
    for number in range(3 * MOST_VIEWS):
        made = api.compare_arrays(golden, golden + 1, atol=1e-6, name=f"x{number:02d}")
        results.append(made)
    kept = trimmed(run_of(*results)).checks[0].variables
    assert sum(one.details is not None for one in kept) == len(results)
    assert (
        sum(one.details is not None and one.details.view is not None for one in kept) == MOST_VIEWS
    )
