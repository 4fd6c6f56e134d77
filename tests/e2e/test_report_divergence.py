"""The first divergence is one thing, whoever tells of it: terminal, JSON, page, summary."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciwrap.cli.main import run
from ciwrap.report.document import from_document
from ciwrap.report.exports import render_junit, render_sarif
from ciwrap.report.failure import failure_lines
from ciwrap.report.markdown import render_annotations, render_markdown
from ciwrap.report.page import render_html

LAYOUT = "iter_{iteration:d}/{name}.npy"


def save(folder: Path, iteration: int, **arrays: Any) -> None:
    place = folder / f"iter_{iteration}"
    place.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(place / f"{name}.npy", array)


class Told:
    """What each output of one comparison says."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *options: str) -> None:
        arguments = ["compare", "A", "B", "--json", "r.json", "--report", "r.html", *options]
        self.code = run(arguments)
        self.terminal = capsys.readouterr().out
        document = json.loads(Path("r.json").read_text(encoding="utf-8"))
        (self.check,) = document["checks"]
        page = Path("r.html").read_text(encoding="utf-8")
        lead = page.partition('<div id="lead">')[2].partition('<p class="coverage">')[0]
        self.lead = unescape(re.sub("<[^>]*>", " ", _names(lead))).replace("\xa0", " ")
        self.page = unescape(re.sub("<[^>]*>", " ", page))
        self.summary = _names(render_markdown(from_document(document)))


def _names(text: str) -> str:
    """The text with names as the terminal has them."""
    return re.sub("</?code>", "`", text)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_name_never_comes_with_the_numbers_of_another(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pressure has another shape in iteration 1; energy differs in iteration 3."""
    for side in "AB":
        for step in (1, 2, 3):
            pressure = np.full(4 if (side, step) == ("B", 1) else 5, 300.0)
            energy = np.full(5, 7.5 if (side, step) == ("B", 3) else 1.0)
            save(here / side, step, pressure=pressure, energy=energy)
    told = Told(capsys, "--layout", LAYOUT)
    assert told.code == 3
    assert "first difference: iter 1 / pressure: not comparable\n" in told.terminal
    numeric = told.terminal.partition("first difference of numbers: iter 3 / energy\n")[2]
    assert "      [0]: A 1.0, B 7.5, compared exactly\n" in numeric
    assert "inf" not in told.terminal
    first = told.check["first_divergence"]
    assert (first["kind"], first["name"], first["iteration"]) == ("not_comparable", "pressure", 1)
    assert "element" not in first
    assert "shape" in first["reason"]
    numeric = told.check["first_numeric_divergence"]
    assert (numeric["kind"], numeric["name"], numeric["iteration"]) == ("differ", "energy", 3)
    assert (numeric["element"]["golden"], numeric["element"]["new"]) == ("1.0", "7.5")
    for text in (told.lead, told.summary):
        assert "First difference (not comparable): iteration 1, `pressure`: shape" in text
        assert "First difference of numbers: iteration 3, `energy`: all 5 values differ" in text
        assert "inf x" not in text
    assert told.page.index("pressure") < told.page.index("energy")


@pytest.mark.parametrize(("without", "kind"), [("B", "missing"), ("A", "extra")])
def test_one_side_alone_is_a_divergence(
    here: Path, capsys: pytest.CaptureFixture[str], without: str, kind: str
) -> None:
    for side in "AB":
        for step in (1, 2):
            save(here / side, step, x=np.zeros(3))
    (here / without / "iter_1" / "x.npy").unlink()
    told = Told(capsys, "--layout", LAYOUT)
    assert told.code == 3
    assert f"first difference: iter 1 / x: {kind}\n" in told.terminal
    assert "first numeric" not in told.terminal
    assert told.check["first_divergence"]["kind"] == kind
    assert "first_numeric_divergence" not in told.check
    assert "Not compared: iteration 1, `x`: only in " in told.lead


def test_a_match_has_no_divergence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side in "AB":
        for step in (1, 2):
            save(here / side, step, x=np.zeros(3))
    told = Told(capsys, "--layout", LAYOUT)
    assert told.code == 0
    assert "divergence" not in told.terminal + told.lead + told.summary
    assert not [key for key in told.check if "divergence" in key]


def test_what_has_no_iteration_is_in_no_timeline(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in "AB":
        for step in (1, 2):
            save(here / side, step, x=np.zeros(3))
        np.savetxt(here / side / "timing.csv", [float(side == "B")], header="t", comments="")
    told = Told(capsys)
    assert told.code == 1
    assert "over iterations" not in told.terminal
    assert "-1" not in told.terminal
    assert {line["name"] for line in told.check["history"]["timelines"]} == {"x"}


@pytest.mark.parametrize(
    ("bound", "golden", "words"),
    [
        ("--atol=0.5", 1.0, "13 x the bound"),
        ("--rtol=0.5", 0.0, "beyond a bound of 0"),
        ("--atol=0", 1.0, "compared exactly"),
    ],
)
def test_the_size_is_told_by_the_bound_that_there_is(
    here: Path, capsys: pytest.CaptureFixture[str], bound: str, golden: float, words: str
) -> None:
    for step in (1, 2):
        save(here / "A", step, x=np.full(3, golden))
        save(here / "B", step, x=np.full(3, golden + 6.5 * (step == 2)))
    told = Told(capsys, "--layout", LAYOUT, bound)
    first = told.terminal.partition("first difference: iter 2 / x\n")[2]
    assert f"      [0]: A {golden}, B {golden + 6.5}, {words}\n" in first


def test_what_differs_beside_what_was_not_compared_is_told_everywhere(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """x is gone in iteration 2 and differs in iteration 3; z is there in iteration 2 alone."""
    for side in "AB":
        for step in (1, 2, 3):
            x = np.zeros(4)
            x[2] = (side, step) == ("B", 3)
            save(here / side, step, x=x, y=np.zeros(2))
    (here / "B" / "iter_2" / "x.npy").unlink()
    save(here / "B", 2, z=np.zeros(2))
    told = Told(capsys, "--layout", LAYOUT, "--atol=1e-3")
    assert told.code == 3
    lines = told.terminal.splitlines()
    assert "      x  .A#  jumps between 1 and 3" in lines
    assert "      z   B" in lines
    assert "x: in iteration 3 only; 1 of 4 values differs there; up to" in told.terminal
    assert re.search(r"Where\s+In iteration 3 only; at \[2\], in the interior\.", told.lead)
    run_ = from_document(json.loads(Path("r.json").read_text(encoding="utf-8")))
    words = "numbers differ, too, first at iteration 3, `x`"
    for text in (render_sarif(run_), render_annotations(run_), told.summary):
        assert words in text.lower()
    failure = "\n".join(failure_lines("c", run_.checks[0], []))
    assert failure.startswith("c: up to 1,000 x the bound: 2 of 7 arrays of 3 variables not comp")
    assert "4 other arrays match" in failure


def test_what_a_document_does_not_list_is_told_by_what_is_made_of_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in "AB":
        for step in (1, 2):
            x = np.full(3, (side, step) == ("B", 2))
            save(here / side, step, va=x, vb=x, same=np.zeros(2))
    (here / "B" / "iter_1" / "va.npy").unlink()
    (here / "B" / "iter_1" / "vb.npy").unlink()
    whole = Told(capsys, "--layout", LAYOUT, "--json-detail=all")
    assert "2 arrays of 2 variables were not compared." in whole.summary
    assert "listed" not in whole.summary
    told = Told(capsys, "--layout", LAYOUT, "--json-detail=summary")
    run_ = from_document(json.loads(Path("r.json").read_text(encoding="utf-8")))
    words = "4 arrays are counted and not listed: 1 not comparable, 1 differ, 2 match"
    for text in (told.summary, render_sarif(run_), render_junit(run_), render_html(run_)):
        assert words in text
    assert "variables listed: 1 not comparable." in told.summary
