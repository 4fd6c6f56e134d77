"""Reports of real comparisons, through the real command line."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import report_scenarios as scenarios
from command_line import call
from e2e.cli_project import environment
from report_scenarios import DEFECT_FROM, DEFECT_RANK, ciwrap
from result_schema import validator

from ciwrap.model import RunResult, Verdict
from ciwrap.model.variable_result import Cause
from ciwrap.report.lead import lead
from ciwrap.report.page import render_html

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunResult]:
    folder = tmp_path_factory.mktemp("planted") / "project"
    return folder, scenarios.planted(folder)


def test_the_sentence_at_the_top_names_the_planted_defect(planted: Any) -> None:
    """Iteration, rank, variable, plane and the sign: all that a reviewer needs."""
    _, run = planted
    last = scenarios.Wave().extent - 1
    (sentence,) = lead(run)
    assert sentence == (
        f"First difference: iteration {DEFECT_FROM}, rank {DEFECT_RANK}, `u`: 576 of 13,824 values"
        " differ by more than the bound (atol=1e-6),"
        f" all in the last plane of axis 2, [:, :, {last}]; in all 576 values that differ, the sign"
        " is flipped: new = -golden; up to 785,000 x the bound."
    )


def test_the_pictures_show_the_planted_defect(planted: Any) -> None:
    folder, run = planted
    first = run.checks[0].first_divergence.variable
    assert first.explanations[0].cause is Cause.SIGN_FLIPPED
    picture = first.details.picture
    assert (picture.row_axis, picture.column_axis, picture.index) == (0, 1, (0, 0, 23))
    page = (folder / "report.html").read_text(encoding="utf-8")
    words = re.sub(r"<[^>]*>", "", page)
    assert "From iteration 7 on rank 2, from 9 on ranks 1 to 3" in words
    for title in ("Where in the run", "How it grows", "Golden", "New", "How far values moved"):
        assert title in words
    # Outside of the rank with the defect nothing differs yet.
    bad = {
        (v.iteration, v.rank)
        for v in run.checks[0].variables
        if v.verdict is Verdict.DIFFER and v.name == "u"
    }
    assert min(bad) == (DEFECT_FROM, DEFECT_RANK)
    assert {rank for iteration, rank in bad if iteration == DEFECT_FROM} == {DEFECT_RANK}


def test_the_report_has_no_path_of_this_machine(planted: Any) -> None:
    folder, _ = planted
    for name in ("report.html", "result.json"):
        assert str(folder) not in (folder / name).read_text(encoding="utf-8")


def test_the_result_fits_the_schema(planted: Any) -> None:
    folder, _ = planted
    document = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    validator().validate(document)


def test_report_makes_what_the_option_made(planted: Any) -> None:
    folder, run = planted
    ciwrap(
        folder,
        *("report", "result.json", "-o", "again.html", "--markdown", "s.md"),
        *("--junit", "j.xml", "--sarif", "s.sarif"),
    )
    again = (folder / "again.html").read_text(encoding="utf-8")
    assert again == (folder / "report.html").read_text(encoding="utf-8") == render_html(run)
    assert "First difference: iteration 7" in (folder / "s.md").read_text(encoding="utf-8")
    assert (folder / "j.xml").read_text(encoding="utf-8").startswith("<?xml")
    assert json.loads((folder / "s.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"
    out = ciwrap(folder, "report", "result.json", "--annotations")
    assert out.startswith("::error file=golden/wave.golden.yaml,title=ciwrap%3A u differ::")
    assert not (folder / "report.html.tmp").exists()


def test_several_results_become_one(planted: Any, tmp_path: Path) -> None:
    folder, _ = planted
    text = (folder / "result.json").read_text(encoding="utf-8")
    for leg in ("gcc", "clang"):
        (tmp_path / f"{leg}.json").write_text(text, encoding="utf-8")
    out = ciwrap(tmp_path, "report", "gcc.json", "clang.json")
    assert out == "differ: wrote report.html\n"
    words = re.sub(r"<[^>]*>", "", (tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "wave (gcc)" in words
    assert "wave (clang)" in words
    ciwrap(tmp_path, "report", "gcc.json", "--label", "a", "--label", "b", codes=(2,))


def test_residues_alone_name_iteration_and_rank(tmp_path: Path) -> None:
    run = scenarios.planted_residues(tmp_path / "project")
    (first,) = lead(run)
    assert first.startswith("First difference: iteration 7, rank 2, `u`: ")
    assert "blocks differ" in first
    page = (tmp_path / "project" / "report.html").read_text(encoding="utf-8")
    assert "the golden&#39;s residues (k = 15)" in page


def test_a_match_tells_how_much_of_the_bound_is_left(tmp_path: Path) -> None:
    run = scenarios.match(tmp_path / "project")
    (sentence,) = lead(run)
    assert re.fullmatch(
        r"96 arrays of 2 variables in 1 check match; at most [\d.]+ % of the bound used,"
        r" by iteration \d+, rank \d, `(u|energy)`\.",
        sentence,
    )


def test_what_could_not_be_compared_comes_with_its_reason(tmp_path: Path) -> None:
    run = scenarios.not_comparable(tmp_path / "project")
    page = (tmp_path / "project" / "report.html").read_text(encoding="utf-8")
    words = re.sub(r"<[^>]*>", "", page)
    assert run.verdict is Verdict.NOT_COMPARABLE
    for reason in (
        "Numbers differ, and not everything could be compared",
        "out/cut.npy: is truncated",
        "Shape 30x19, but the golden has 30x20",
        "Only in the golden, not in the outputs",
        "values that differ, new is NaN",
    ):
        assert reason in words


def test_one_field_of_three_is_off(tmp_path: Path) -> None:
    run = scenarios.field(tmp_path / "project")
    (sentence,) = lead(run)
    assert re.match(r"Difference: `temperature`: [\d,]+ of 61,440 values differ", sentence)
    assert "all within [3:16, 3:25, 22:57]" in sentence


def test_a_call_that_fails_early_leaves_a_report(tmp_path: Path) -> None:
    (tmp_path / "ciwrap.yaml").write_text("version: 1\nnonsense: 1\n", encoding="utf-8")
    ciwrap(tmp_path, "check", "--report", "r.html", codes=(2,))
    words = re.sub(r"<[^>]*>", "", (tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "Nothing could be compared" in words
    assert "nonsense" in words
    assert str(tmp_path) not in words


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not JSON"),
        (b"[1]", "is not a result of check, run or compare"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"schema_version": 99}', "has schema version 99"),
        (b'{"schema_version": 1, "kind": "doctor"}', "is not a result"),
        (
            b'{"schema_version": 1, "kind": "repeat"}',
            "`verdict` is missing; give a file that one of these commands wrote with --json",
        ),
        (b"\xff\xfe", "is not UTF-8 text"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "r.json").write_bytes(content)
    _, complaint = run_failing(tmp_path, "report", "r.json")
    assert complaint.startswith("error: r.json: ")
    assert said in complaint
    assert len(complaint.splitlines()) == 1
    assert not (tmp_path / "report.html").exists()


def test_a_missing_result_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert run_failing(tmp_path, "report", "nowhere.json")[0] == 3
    assert run_failing(tmp_path, "report", ".")[0] == 3


def run_failing(folder: Path, *arguments: str) -> tuple[int, str]:
    done = call(*arguments, folder=folder, environment=environment())
    assert done.returncode == 3, done
    return done.returncode, done.stderr
