"""What is reported of a variable, held against plain NumPy: shares, histograms, counts, places, and
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

from ciwrap import api
from ciwrap.model import CheckResult, RunResult, VariableResult, Verdict
from ciwrap.report.document import document_text, from_document, to_document
from ciwrap.report.html import render_html
from ciwrap.report.markdown import render_markdown
from ciwrap.report.terminal import make_console, render

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


@pytest.mark.parametrize("seed", range(200))
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
    assert f"at most {100 * high:.3g} % of the bound used" in page.replace("\u00a0", " ")


def run_of(variable: VariableResult) -> RunResult:
    return RunResult(variable.verdict, (CheckResult("c", variable.verdict, (variable,)),))


def texts_of(run: RunResult) -> dict[str, str]:
    """Every output as plain text on one line."""
    stream = io.StringIO()
    render(run, make_console(stream, color=False))
    page = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", render_html(run), flags=re.S)
    found = {"terminal": stream.getvalue(), "page": page, "markdown": render_markdown(run)}
    return {
        name: re.sub(r"\s+", " ", html.unescape(text)).replace("\u00d7", "x")
        for name, text in found.items()
    }


@pytest.mark.parametrize("seed", range(200))
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
    assert "no number on one side: 250" in text
