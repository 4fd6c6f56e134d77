"""What is reported of a variable, against plain NumPy: shares, histograms, counts, places, and
that JSON, terminal, page and Markdown say the same of them.
"""

from __future__ import annotations

import html
import io
import json
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace
from tiers import examples

from ciwrap import api
from ciwrap.model import CheckResult, RunResult, VariableResult, Verdict
from ciwrap.report.console import make_console
from ciwrap.report.document import document_text, from_document, to_document
from ciwrap.report.markdown import render_markdown
from ciwrap.report.page import render_html
from ciwrap.report.terminal import render

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVELS = 15
HALF = 7


def shares(golden: NDArray[np.float64], new: NDArray[np.float64], atol: float, rtol: float):  # type: ignore[no-untyped-def]
    return np.abs(new - golden) / (atol + rtol * np.abs(golden))


def checked(
    golden: NDArray[np.float64], new: NDArray[np.float64], atol: float, rtol: float
) -> VariableResult:
    """The new values against residues of the golden ones alone."""
    made = api.make_golden({"x": golden}, atol=atol, rtol=rtol, evidence="residues")
    return api.check_array(new, made.variables[0])


@pytest.mark.parametrize("seed", range(examples(200)))
def test_what_residues_say_of_drift_is_an_interval_that_holds(seed: int) -> None:
    random = np.random.default_rng(seed)
    atol, rtol = [(1.0, 0.0), (1e-6, 0.0), (1e-6, 0.1), (1e-3, 1e-6), (1e-9, 0.9)][seed % 5]
    golden = random.normal(size=400) * 10.0 ** random.uniform(-3, 3, 400)
    reach = random.uniform(0, 0.85)
    # The last share of the bound that is sure to match is smaller for a wide rtol.
    reach *= 1.0 if rtol < 0.1 else 0.55
    new = golden + random.uniform(-reach, reach, 400) * (atol + rtol * np.abs(golden))
    found = checked(golden, new, atol, rtol)
    assert found.verdict is Verdict.MATCH
    assert found.used_interval is not None
    low, high = found.used_interval
    used = shares(golden, new, atol, rtol)
    assert low <= used.max() <= high
    assert (found.drift_share_from, found.drift_share_to) == (low, high)
    assert found.drift_histogram is not None
    # A bar of k steps holds what moved by k - 1 to k + 1 of them.
    guaranteed = found.guaranteed_share
    assert guaranteed is not None
    for step in range(HALF + 1):
        at_most = int(np.count_nonzero(used <= guaranteed * max(step - 1, 0) / HALF))
        assert sum(found.drift_histogram[step:]) <= used.size - at_most
        surely = int(np.count_nonzero(used < step / (HALF + 1) * guaranteed))
        assert sum(found.drift_histogram[: step + 2]) >= surely
    page = html.unescape(render_html(run_of(found)))
    said = re.findall(r"at most ([0-9.]+) % of the bound used", page.replace("\u00a0", " "))
    assert said
    assert all(high <= float(one) / 100 * (1 + 1e-9) <= high * 1.01 for one in said)


def run_of(variable: VariableResult) -> RunResult:
    return RunResult(variable.verdict, (CheckResult("c", variable.verdict, (variable,)),))


def texts_of(run: RunResult) -> dict[str, str]:
    """Every output as plain text on one line."""
    stream = io.StringIO()
    render(run, make_console(stream, color=False))
    page = re.sub("</?code>", "`", render_html(run))
    page = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.S)
    summary = re.sub("</?code>", "`", render_markdown(run))
    found = {"terminal": stream.getvalue(), "page": page, "markdown": summary}
    return {
        name: re.sub(r"\s+", " ", html.unescape(text)).replace("\u00d7", "x")
        for name, text in found.items()
    }


@pytest.mark.parametrize("seed", range(examples(200)))
def test_counts_and_places_are_those_of_numpy_in_every_output(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = [(50,), (20, 30), (6, 7, 8)][seed % 3]
    golden = random.normal(size=shape)
    new = golden.copy()
    where = random.random(shape) < random.uniform(0.02, 0.6)
    where[(0,) * len(shape)] = True
    new[where] += random.normal(size=int(where.sum())) * 10.0 ** random.uniform(-5, 1)
    new[random.random(shape) < 0.03] = np.nan
    new[(-1,) * len(shape)] += 1
    atol = 1e-4
    wanted = ~(np.abs(new - golden) <= atol)
    run = run_of(api.compare_arrays(golden, new, atol=atol))
    read = from_document(json.loads(document_text(to_document(run))))
    assert read == run
    (variable,) = read.checks[0].variables
    count, first = int(wanted.sum()), tuple(int(i) for i in np.argwhere(wanted)[0])
    assert (variable.differing_count, variable.first_index) == (count, first)
    assert variable.nan_mismatch_count == int(np.isnan(new).sum())
    finite = np.isfinite(new)
    share = np.abs(new - golden)[finite].max() / atol
    assert variable.max_abs_difference == pytest.approx(share * atol)
    counted = variable.bound_share_histogram
    assert counted is not None
    edges = 2.0 ** (np.arange(2, 34) - 18)
    exact = np.histogram(np.abs(new - golden)[finite] / atol, [*edges])[0]
    assert list(counted[2:33]) == exact.tolist()
    assert counted[33] >= variable.nan_mismatch_count
    for name, text in texts_of(run).items():
        plain, grouped = f"{count} of {golden.size}", f"{count:,} of {golden.size:,}"
        cell = f"| {count:,} |"
        assert plain in text or grouped in text or cell in text, name


def test_nan_is_never_a_distance() -> None:
    golden = np.random.default_rng(0).random((40, 40))
    new = golden.copy()
    new[10:20, 5:30] = np.nan
    run = run_of(api.compare_arrays(golden, new, atol=1e-6))
    text = texts_of(run)["page"]
    assert "33,000 x the bound" not in text
    assert "not a number on one side: 250" in text


def test_what_has_no_bound_is_not_said_to_have_no_number() -> None:
    run = run_of(api.compare_arrays(np.zeros(30), np.ones(30), rtol=1e-6))
    text = texts_of(run)
    assert "a bound of 0" in text["page"]
    assert all("not a number" not in words for words in text.values())


def test_nothing_without_a_size_is_called_the_largest_difference() -> None:
    golden = np.ones(40)
    lost = np.where(np.arange(40) == 3, np.nan, golden)
    pairs = {"a": (golden, lost), "b": (golden, golden + 1e-3)}
    found = tuple(
        replace(api.compare_arrays(*sides, atol=1e-6), name=name) for name, sides in pairs.items()
    )
    run = RunResult(Verdict.DIFFER, (CheckResult("c", Verdict.DIFFER, found),))
    for words in texts_of(run).values():
        assert "Largest difference: `a`" not in words


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_of_what_is_compared_exactly_is_told_first(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = {f"v{number}": float(10.0 ** random.uniform(-9, 9)) for number in range(5)}
    found = tuple(
        replace(api.compare_arrays(np.zeros(9), np.full(9, size)), name=name)
        for name, size in sizes.items()
    )
    run = RunResult(Verdict.DIFFER, (CheckResult("c", Verdict.DIFFER, found),))
    largest = max(sizes, key=lambda name: sizes[name])
    assert f"Largest difference: `{largest}`" in texts_of(run)["page"]


@pytest.mark.parametrize("kind", ["<f8", "<c16"])
def test_what_residues_say_of_lost_numbers_is_true_in_every_output(kind: str) -> None:
    random = np.random.default_rng(1)
    golden = (1 + random.random((64, 64))).astype(kind)
    new = golden.copy()
    new[20:30, 5:15] = complex(np.nan, np.nan) if kind == "<c16" else np.nan
    made = api.make_golden({"x": golden}, atol=1e-6, evidence="residues")
    found = api.check_array(new, made.variables[0])
    differing = 100
    at_least, at_most = found.differing_count_at_least, found.differing_count_at_most
    assert at_least is not None
    assert at_most is not None
    assert 0 < at_least <= differing <= at_most
    texts = texts_of(run_of(found))
    for name, text in texts.items():
        # Whatever is said to be told has to be there.
        assert "told below" not in text, name
        assert "nan" in text, name
    for one in found.moved_elements:
        assert str(list(one.index)) in texts["page"]


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8"])
def test_the_worst_elements_under_ulps_are_those_that_moved_most(dtype: str) -> None:
    """As doubles, the whole numbers that floats are ordered by fall together."""
    random = np.random.default_rng(3)
    golden = (random.normal(size=500) * 10.0 ** random.integers(-2, 3, 500)).astype(dtype)
    steps = random.integers(0, 9, 500)
    new = golden.copy()
    for step in range(8):
        new = np.where(steps > step, np.nextafter(new, np.asarray(np.inf, dtype)), new)
    found = api.compare_arrays(golden, new, ulps=3)
    assert found.differing_count == np.count_nonzero(steps > 3)
    assert found.details is not None
    worst = [steps[one.index[0]] for one in found.details.worst_elements]
    assert set(worst) == {steps.max()}
    assert found.max_bound_share == pytest.approx(steps.max() / 3)
