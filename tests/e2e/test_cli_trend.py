"""`ciwrap trend`: results over time, as `--json` wrote them."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest
from e2e.cli_project import BASE, ROOT, Project
from msgspec import structs
from snapshots import OBJECTS, snapshot

from ciwrap.model import (
    CheckResult,
    CommandOutcome,
    ErrorBound,
    Evidence,
    RunResult,
    Used,
    VariableResult,
    Verdict,
)
from ciwrap.report.document import document_text, to_document
from ciwrap.snapshot.store import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BOUND = ErrorBound(atol=1e-6)
HOW_TO = ROOT / "docs/how-to/trends.md"


@pytest.fixture
def folder(tmp_path: Path) -> Project:
    project = Project(tmp_path / "p")
    (project.folder / "ciwrap.yaml").unlink()
    return project


def variable(name: str, share: float, bound: ErrorBound = BOUND, iteration: int = 1) -> Any:
    differs = share > 1
    return VariableResult(
        name=name,
        verdict=Verdict.DIFFER if differs else Verdict.MATCH,
        iteration=iteration,
        evidence=Evidence.DATA,
        element_count=10,
        differing_count=int(differs),
        bound=bound,
        max_bound_share=share,
    )


def result(
    number: int,
    variables: Sequence[Any] = (),
    *,
    seconds: float | None = None,
    peak: int | None = None,
    root: str = "0" * 32,
    cpu: str = "A processor",
    **environment: str,
) -> RunResult:
    verdict = Verdict.worst(one.verdict for one in variables)
    used = None if peak is None else Used(1.0, 0, 0, 0, 0, peak)
    command = None if seconds is None else CommandOutcome("./simulate", ".", 0, seconds, used=used)
    return RunResult(
        verdict if variables else Verdict.NOT_COMPARABLE,
        (CheckResult("mesh", verdict, tuple(variables), golden_root=root),) if variables else (),
        kind="run",
        command=command,
        environment={"cpu": cpu, "git_commit": f"{number:040x}", **environment},
        started_at=f"2026-01-{1 + number // 24:02}T{number % 24:02}:00:00+00:00",
    )


def written(folder: Project, results: Sequence[RunResult]) -> list[str]:
    """The results as files, in an order that is not that of time."""
    names = []
    for number, one in enumerate(results):
        name = f"result_{number:03}.json"
        (folder.folder / name).write_text(document_text(to_document(one)))
        names.append(name)
    return names[1::2] + names[::2]


def test_the_how_to_shows_what_is_printed(folder: Project) -> None:
    """One result a day; the second variable moves without a trend."""
    (command, *shown) = re.search(
        r"^\$ (ciwrap trend .*?)^```$", HOW_TO.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )[1].splitlines()
    (folder.folder / "results").mkdir()
    for day in range(25):
        steady = 0.319 if day == 3 else 0.312 + 0.001 * (day * 7 % 5 if day < 24 else 0)
        shares = [variable("density", 0.1 + 0.02 * day), variable("speed", steady)]
        one = structs.replace(
            result(day, shares), started_at=f"2026-01-{day + 1:02}T00:00:00+00:00"
        )
        path = folder.folder / f"results/{day}.json"
        path.write_text(document_text(to_document(one)))
    files = [f"results/{day}.json" for day in range(25)]
    assert command == "ciwrap trend results/*.json"
    assert folder.run("trend", *files).out.splitlines() == shown


def test_a_variable_that_creeps_towards_its_bound_is_told_in_time(folder: Project) -> None:
    generator = np.random.default_rng(1)
    results = [
        result(
            number,
            [
                variable("density", 0.1 + 0.02 * number + 0.005 * generator.random()),
                variable("density", 0.01, iteration=2),
                variable("speed", 0.3 + 0.02 * generator.random()),
            ],
        )
        for number in range(25)
    ]
    outcome = folder.run("trend", *written(folder, results))
    assert outcome.code == 0
    assert outcome.document["results"] == 25
    density, speed = outcome.document["shares"]
    assert density["variable"] == "density"
    assert [point["moment"]["file"] for point in density["points"]][:2] == [
        "result_000.json",
        "result_001.json",
    ]
    assert density["slope"]["per_step"] == pytest.approx(0.02, rel=0.1)
    assert 19 <= density["until_bound"] <= 23
    assert "slope" not in speed
    (warning,) = outcome.document["warnings"]
    assert warning.startswith("mesh: density uses 58")
    assert (
        f"at this rate it exceeds its bound in about {density['until_bound']} more results"
        in warning
    )
    assert f"warning: {warning}" in outcome.out
    assert "|1111122222" in outcome.out


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.85, "mesh: density uses 85 % of its bound"),
        (1.5, "mesh: density is beyond its bound: 1.50 x the bound"),
        (float("inf"), "mesh: density is beyond its bound: by no multiple of it that is known"),
        (0.5, None),
    ],
)
def test_the_newest_share_counts(folder: Project, share: float, words: str | None) -> None:
    results = [result(0, [variable("density", 0.9)]), result(1, [variable("density", share)])]
    outcome = folder.run("trend", *written(folder, results))
    assert outcome.code == 0
    assert outcome.document["warnings"] == ([] if words is None else [words])
    assert ("nothing to warn of" in outcome.out) == (words is None)


@pytest.mark.parametrize(("share", "mark"), [(0.99, "9"), (1.0, "9"), (1.001, "#")])
def test_a_bound_is_passed_beyond_it_and_not_at_it(
    folder: Project, share: float, mark: str
) -> None:
    results = [result(0, [variable("density", 0.2)]), result(1, [variable("density", share)])]
    outcome = folder.run("trend", *written(folder, results))
    assert f"|2{mark}|" in outcome.out


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.4, "it used 40 % of the bound before"),
        (1.5, "it was beyond its bound before: 1.50 x the bound"),
        (float("inf"), "it was beyond its bound before: by no multiple of it that is known"),
    ],
)
def test_what_was_known_before(folder: Project, share: float, words: str) -> None:
    """An infinite share is not always a number on one side alone: the bound may be 0."""
    lost = VariableResult("density", Verdict.NOT_COMPARABLE, reason="is in the golden only")
    results = [result(0, [variable("density", share)]), result(1, [lost, variable("speed", 0.1)])]
    (warning,) = folder.run("trend", *written(folder, results)).document["warnings"]
    assert warning.endswith(f"; {words}")


def test_what_the_newest_result_does_not_tell(folder: Project) -> None:
    """A variable that could not be compared any more has no share of today."""
    lost = VariableResult("density", Verdict.NOT_COMPARABLE, reason="is in the golden only")
    speed = variable("speed", 0.1)
    results = [result(0, [variable("density", 0.4), speed]), result(1, [lost, speed])]
    outcome = folder.run("trend", *written(folder, results), "--markdown", "summary.md")
    (warning,) = outcome.document["warnings"]
    assert warning.startswith("mesh: density is missing from the newest result of its check")
    assert "it used 40 % of the bound before" in warning
    assert "density  last 40 %" in outcome.out
    assert "speed    now 10 %" in outcome.out
    assert "| 40 % (last known) |" in (folder.folder / "summary.md").read_text()
    density, speed_series = outcome.document["shares"]
    assert density["is_lost"]
    assert "is_lost" not in speed_series
    # A result that does not have the check says nothing of it.
    other = result(2, [])
    results = [results[0], other]
    assert folder.run("trend", *written(folder, results)).document["warnings"] == []


def test_a_new_golden_and_a_new_bound_begin_anew(folder: Project) -> None:
    shares = [0.05 * number for number in range(12)]
    moved = [result(n, [variable("density", one)]) for n, one in enumerate(shares)]
    moved += [result(12 + n, [variable("density", 0.05 * n)], root="1" * 32) for n in range(6)]
    found = folder.run("trend", *written(folder, moved)).document["shares"][0]
    assert (found["since"], len(found["points"])) == (6, 18)
    wider = ErrorBound(atol=1e-3)
    moved[-2:] = [result(40 + n, [variable("density", 0.1, wider)]) for n in range(2)]
    found = folder.run("trend", *written(folder, moved)).document["shares"][0]
    assert found["since"] == 2


def test_a_step_is_no_rate(folder: Project) -> None:
    """One commit moves the share of a program that is the same from run to run."""
    results = [result(n, [variable("density", 0.3 if n < 8 else 0.7)]) for n in range(19)]
    outcome = folder.run("trend", *written(folder, results), "--markdown", "t.md")
    assert outcome.document["warnings"] == []
    (series,) = outcome.document["shares"]
    assert "slope" not in series
    assert [one["position"] for one in series["change_points"]] == [8]
    assert re.search(r"30 % became 70 % since \S+ \(2026-", outcome.out)
    assert "30 % became 70 % since" in (folder.folder / "t.md").read_text()


def test_a_run_time_that_creeps_has_a_rate_and_no_levels(folder: Project) -> None:
    noise = np.random.default_rng(4).normal(size=30)
    results = [result(n, seconds=2 + 0.05 * n + 0.02 * noise[n]) for n in range(30)]
    outcome = folder.run("trend", *written(folder, results))
    (series,) = outcome.document["times"]
    assert "change_points" not in series
    assert series["slope"]["per_step"] == pytest.approx(0.05, rel=0.1)
    (warning,) = outcome.document["warnings"]
    assert re.search(r" takes 1\.\d+ % more time with each result$", warning)


def test_memory_that_grows_is_told_beside_a_time_that_does_not(folder: Project) -> None:
    """2 % more with each result; and one that takes half as much again since the eleventh."""
    generator = np.random.default_rng(5)
    jitter = 0.05 * generator.normal(size=24)
    crept = [
        result(n, seconds=2.0 + jitter[n], peak=(100 + 2 * n + n % 3) << 20) for n in range(24)
    ]
    outcome = folder.run("trend", *written(folder, crept), "--report", "page.html")
    (series,) = outcome.document["memory"]
    assert series["slope"]["per_step"] == pytest.approx(2 << 20, rel=0.1)
    (warning,) = outcome.document["warnings"]
    assert re.fullmatch(r"./simulate takes 1\.\d+ % more memory with each result", warning)
    assert "\nmemory of ./simulate on A processor\n  24 runs, 12" in outcome.out
    assert "Memory of ./simulate, by result" in (folder.folder / "page.html").read_text("utf-8")

    stepped = [result(n, seconds=2.0, peak=(100 + n % 3 + 50 * (n > 10)) << 20) for n in range(24)]
    (warning,) = folder.run("trend", *written(folder, stepped)).document["warnings"]
    assert re.search(r"takes 4\d\.?\d* % more memory since 0{10} \(", warning)


def test_one_slope_among_many_variables_is_an_accident(folder: Project) -> None:
    """40 variables of noise in 8 results: seed 4."""
    generator = np.random.default_rng(4)
    results = [
        result(n, [variable(f"v{m}", 0.5 * generator.random()) for m in range(40)])
        for n in range(8)
    ]
    outcome = folder.run("trend", *written(folder, results))
    assert all("slope" not in one for one in outcome.document["shares"])
    assert "... and 28 more variables with no larger share" in outcome.out


def test_when_a_command_became_slower(folder: Project) -> None:
    generator = np.random.default_rng(2)
    results = [
        result(n, seconds=(2.0 if n < 14 else 2.4) * float(np.exp(0.02 * generator.normal())))
        for n in range(26)
    ]
    outcome = folder.run("trend", *written(folder, results))
    (series,) = outcome.document["times"]
    (point,) = series["change_points"]
    assert point["position"] == 14
    assert (point["before"], point["after"]) == pytest.approx((2.0, 2.4), rel=0.03)
    (warning,) = outcome.document["warnings"]
    assert warning.startswith("./simulate takes ")
    assert f" more time since {14:040x}"[:26] in warning
    # Another processor is another series, and a change for the better no warning.
    other = [
        result(30 + n, seconds=5.0 - 2.0 * (n > 9) + 0.01 * n, cpu="Another") for n in range(20)
    ]
    outcome = folder.run("trend", *written(folder, [*results, *other]))
    assert [one["cpu"] for one in outcome.document["times"]] == ["A processor", "Another"]
    assert len(outcome.document["times"][1]["change_points"]) == 1
    assert len(outcome.document["warnings"]) == 1
    wide = folder.run("trend", *written(folder, results), "--margin", "0.5")
    assert wide.document["warnings"] == []
    assert "no change of level" in wide.out


def test_a_result_that_is_given_twice_counts_once(folder: Project) -> None:
    results = [result(n, [variable("density", 0.1 + 0.1 * n)], seconds=1.0) for n in range(3)]
    files = written(folder, results)
    (folder.folder / "latest.json").write_bytes((folder.folder / files[0]).read_bytes())
    outcome = folder.run("trend", *files, "latest.json", "latest.json", f"./{files[1]}")
    assert outcome.document["results"] == 3
    (series,) = outcome.document["shares"]
    names = [point["moment"]["file"] for point in series["points"]]
    assert names == ["result_000.json", "result_001.json", "result_002.json"]
    words = "3 files say the same as another one, and the result counts once"
    assert outcome.document["warnings"] == [words]


def test_nothing_more_is_said_than_results_tell(folder: Project) -> None:
    """What creeps slowly, and what became slower and somewhat faster again, is in the tables."""
    shares = [[variable("density", 0.01 * n)] for n in range(1, 31)]
    seconds = [level + 0.01 * n for level in (1.0, 2.0, 1.5) for n in range(10)]
    results = [result(n, shares[n], seconds=seconds[n]) for n in range(30)]
    outcome = folder.run("trend", *written(folder, results))
    assert outcome.out.splitlines()[1] == "nothing to warn of"
    assert "+1 % with each result" in outcome.out
    few = folder.run("trend", *written(folder, results[:4]))
    assert "too few results to tell a trend" in few.out
    assert "too few runs to tell a change of level" in few.out
    # Five that rise are no accident rare enough to tell, and 14 times have no order that is.
    for count, is_told in ((5, False), (6, True)):
        (one,) = folder.run("trend", *written(folder, results[:count])).document["shares"]
        assert ("slope" in one) is one.get("is_enough", True) is is_told
    many = [
        result(n, [variable(f"v{m}", 0.1 + 0.01 * (n + m) * (m < 9)) for m in range(10)], seconds=1)
        for n in range(15)
    ]
    outcome = folder.run("trend", *written(folder, many[:6]))
    assert outcome.out.count("too few results to tell a trend") == 10
    assert "no change of level" not in folder.run("trend", *written(folder, many[:14])).out
    assert "no change of level found" in folder.run("trend", *written(folder, many)).out


def test_a_line_that_has_passed_the_bound(folder: Project) -> None:
    shares = (*(0.05 + 0.08 * n for n in range(15)), 0.7)
    results = [result(n, [variable("density", share)]) for n, share in enumerate(shares)]
    (warning,) = folder.run("trend", *written(folder, results)).document["warnings"]
    assert warning.endswith(
        " of the bound with each result; the line through these results has reached it"
    )


def test_a_job_summary(folder: Project) -> None:
    results = [
        result(n, [variable("density", 0.85), variable("a|b", 0.1)], seconds=1.0) for n in range(3)
    ]
    target = folder.folder / "summary.md"
    outcome = folder.run("trend", *written(folder, results), "--markdown", str(target))
    assert outcome.code == 0
    text = target.read_text()
    assert text.startswith("## ciwrap trend: 1 warning in 3 results\n\n- mesh: density uses 85 %")
    assert "| mesh: density | 85 % | 85 % | too few results to tell a trend | `888` |" in text
    assert "| mesh: a&#124;b | 10 % |" in text
    assert "- 3 runs, 1.00 s in the median" in text


@pytest.mark.parametrize("when", ["", "yesterday"])
def test_a_result_without_a_time_has_no_place_among_others(folder: Project, when: str) -> None:
    """It was taken for the oldest one, in a list that says "oldest first"."""
    undated = structs.replace(result(1, seconds=1.0), started_at=when)
    outcome = folder.run("trend", *written(folder, [undated, result(0, seconds=1.0)]))
    assert outcome.code == 3
    assert "does not say when it began" in outcome.err


def test_failed_runs_say_nothing_about_times(folder: Project) -> None:
    failed = RunResult(
        Verdict.NOT_COMPARABLE,
        command=CommandOutcome("./simulate", ".", 1, 99.0),
        started_at="2026-01-01T00:00:00+00:00",
    )
    outcome = folder.run("trend", *written(folder, [failed, result(5, seconds=1.0)]))
    assert [one["seconds"] for one in outcome.document["times"][0]["points"]] == [1.0]


def test_results_of_time_and_of_its_failures(folder: Project) -> None:
    for name, second in (("a", "true"), ("b", "true"), ("c", "false")):
        target = str(folder.folder / f"{name}.json")
        folder.run(
            *("time", "true", second, "--pairs", "1", "--warm-up", "0", "--json", target),
            json_too=False,
        )
    outcome = folder.run("trend", "a.json", "b.json", "c.json")
    assert outcome.code == 0, outcome
    (series,) = outcome.document["times"]
    assert (series["command"], len(series["points"])) == ("true", 2)


def test_goldens_that_walk_away_step_by_step(folder: Project) -> None:
    """By 0.8 bounds each time; an acceptance of what matches keeps the golden as it is."""
    folder.configure()
    folder.accept()
    for step in range(1, 5):
        folder.save("temperature", BASE + 0.8e-6 * step)
        folder.accept("--reason", "a new compiler")
    target = folder.folder / "now.json"
    folder.run("check", "--json", str(target), json_too=False)
    outcome = folder.run("trend", "now.json")
    (walk,) = outcome.document["goldens"]
    assert walk["acceptances"] == 2
    assert walk["moved"] == pytest.approx(3.2, rel=0.01)
    (warning,) = outcome.document["warnings"]
    assert "the golden of mesh was replaced 2 times since " in warning
    assert "may have moved by 3.2 bounds in all" in warning
    assert "moved by 3.20 bounds at most" in outcome.out


def test_goldens_of_which_nobody_knows_how_far_they_moved(folder: Project) -> None:
    """Residues where all of a chunk moved: the manifest has no share of the bound."""
    folder.configure("    evidence: residues\n")
    folder.accept()
    told = []
    for moved, evidence in ((1e-3, "residues"), (2e-3, "data"), (2.01e-3, "data")):
        folder.configure(f"    evidence: {evidence}\n")
        folder.save("temperature", BASE + moved)
        folder.accept("--reason", "a new compiler")
        folder.run("check", "--json", str(folder.folder / "now.json"), json_too=False)
        outcome = folder.run("trend", "now.json")
        told.append(re.search(r"  mesh: replaced .*", outcome.out)[0])
    day = r"\d{4}-\d\d-\d\d"
    moved = r"moved by 1\d\.\d\d bounds at most in 1 of these, how far in the other 2 is not known"
    expected = [
        rf"  mesh: replaced 1 time since {day}, how far it moved is not known",
        rf"  mesh: replaced 2 times since {day}, how far it moved is not known",
        rf"  mesh: replaced 3 times since {day}, {moved}",
    ]
    for line, pattern in zip(told, expected, strict=True):
        assert re.fullmatch(pattern, line), line
    (warning,) = outcome.document["warnings"]
    assert re.search(r"by 1\d\.\d bounds in all, and 2 times nobody knows how far$", warning)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "is not a result of check, run, compare or time"),
        ('{"schema_version": 1, "kind": "timing", "comparison": 3}', "is not a result"),
        (None, "No such file"),
    ],
)
def test_what_is_no_result(folder: Project, text: str | None, words: str) -> None:
    if text is not None:
        (folder.folder / "a.json").write_text(text)
    outcome = folder.run("trend", "a.json")
    assert outcome.code == 3
    assert words in outcome.err
    assert json.loads(json.dumps(outcome.document))["kind"] == "trend"
    assert folder.run("trend").code == 2


def charts_of(page: str) -> list[ElementTree.Element]:
    found = re.findall(r'<svg [^>]*class="chart".*?</svg>', page)
    return [ElementTree.fromstring(one) for one in found]


def test_the_page_shows_each_variable_and_command_over_time(folder: Project) -> None:
    """A golden replaced after result 8, a drift since then, a command that became slower."""
    results = [
        result(
            number,
            [
                variable("density", 0.7 if number < 8 else 0.3 + 0.02 * (number - 8)),
                variable("<b>evil</b>", 1.5 if number == 29 else 0.2),
            ],
            seconds=10.0 + 0.01 * (number % 3) + (2.0 if number >= 15 else 0.0),
            root=("0" if number < 8 else "1") * 32,
        )
        for number in range(30)
    ]
    outcome = folder.run("trend", *written(folder, results), "--report", "page.html")
    assert outcome.code == 0, outcome
    page = (folder.folder / "page.html").read_text().replace("\u00a0", " ")
    warnings = outcome.document["warnings"]
    # The title is the finding.
    title = page.partition("<h1>")[2].partition("</h1>")[0]
    assert html.escape(warnings[0]).replace(" x the", " \u00d7 the") in title
    assert '<body class="differ">' in page
    assert all(f"{one}." in page for one in warnings[1:])
    assert "<b>evil</b>" not in page
    evil, density, times = charts_of(page)
    for picture, lines in ((evil, 1), (density, 1), (times, 1)):
        marks = [one for one in picture.iter() if one.get("class") in ("mi", "mo")]
        assert len(marks) == 30
        assert sum(one.get("class") == "hz" for one in picture.iter()) == lines
    assert [one.get("class") for one in evil.iter() if one.get("class") == "mo"] == ["mo"]
    (slope,) = [one.get("d") for one in density.iter() if one.get("class") == "sg"]
    begin, end = (tuple(map(float, part.split())) for part in slope[1:].split("L"))
    dots = [(float(one.get("cx")), float(one.get("cy"))) for one in density.iter("circle")]
    assert begin == pytest.approx(dots[8], abs=0.5)
    assert end == pytest.approx(dots[29], abs=0.5)


def page_of(folder: Project, results: Sequence[RunResult]) -> str:
    """The page, in whose text `nice` has not marked what stays on one line."""
    outcome = folder.run("trend", *written(folder, results), "--report", "page.html")
    assert outcome.code == 0, outcome
    return (folder.folder / "page.html").read_text().replace("\u00a0", " ")


def test_the_title_names_a_check_as_it_is_called(folder: Project) -> None:
    """What follows the finding stands below it."""
    shares = [0.05 + 0.03 * n for n in range(20)]
    page = page_of(folder, [result(n, [variable("rho", one)]) for n, one in enumerate(shares)])
    assert "<span>mesh: rho uses 62 % of its bound and grows by 3 % of the bound" in page
    assert '<p class="lead">At this rate it exceeds its bound in about 13 more results.</p>' in page
    assert '<body class="vary">' in page
    assert "The dashed line is the rate" in page
    assert "Triangles" not in page


def test_what_is_beyond_its_bound_today_is_no_calm_page(folder: Project) -> None:
    shares = [0.2] * 8 + [2.6] * 8
    results = [
        result(n, [variable("rho", share)], git_commit=f"{n:012x}{0:028x}")
        for n, share in enumerate(shares)
    ]
    page = page_of(folder, results)
    assert '<body class="differ">' in page
    assert "20 % became twice the bound or more since 0000000000" in page
    assert "a share beyond twice the bound is drawn at twice the bound" in page
    assert "dashed line" not in page
    (command,) = re.findall(r'<code id="next-1">(.*?)</code>', page)
    command = re.sub("<.*?>", "", command)
    assert command == f"ciwrap bisect {7:012x} {8:012x} --check mesh -- COMMAND"


def test_a_check_that_does_not_match_is_a_warning(folder: Project) -> None:
    """A variable that is compared exactly has no share that could be warned of."""
    good = VariableResult("name", Verdict.MATCH, iteration=1, differing_count=0)
    bad = VariableResult("name", Verdict.DIFFER, iteration=1, differing_count=1)
    page = page_of(folder, [result(n, [good if n < 3 else bad]) for n in range(5)])
    assert "<span>mesh does not match since 0000000000 (2026-01-01)</span>" in page
    assert '<body class="differ">' in page
    assert page.count('class="mono"><bdi>') == 1  # there is one check, and no row of all
    assert '<body class="match">' in page_of(folder, [result(0, [good])])
    assert "<span>Nothing to warn of</span>" in page_of(folder, [result(0, [good])])


def test_the_page_says_what_it_leaves_out(folder: Project) -> None:
    many = [variable(f"x{number}", 0.9) for number in range(70)]
    names = written(folder, [result(number, many) for number in range(2)])
    assert folder.run("trend", *names, "--report", "page.html").code == 0
    page = (folder.folder / "page.html").read_text()
    assert len(charts_of(page)) == 60
    assert "... and 10 more variables with no larger share; the JSON result has them all." in page
    assert "... and 20 more warnings; the JSON result has them all." in page


def test_what_differs_since_a_command_became_slower(folder: Project) -> None:
    """By the summaries in the results, and object by object where snapshots are at hand."""
    results = [
        result(n, seconds=2.0 + 0.001 * n, OMP_NUM_THREADS="1", libm="libm.so.6 (build aa)")
        for n in range(8)
    ]
    results += [
        result(8 + n, seconds=3.0 + 0.001 * n, OMP_NUM_THREADS="2", libm="libm.so.6 (build bb)")
        for n in range(8)
    ]
    outcome = folder.run("trend", *written(folder, results), "--report", "t.html")
    (series,) = outcome.document["times"]
    (found,) = series["differences"]
    assert [one["name"] for one in found] == ["libm", "OMP_NUM_THREADS"]
    said = "OMP_NUM_THREADS differs: 1 before, 2 since (thread settings)"
    assert said in outcome.out
    assert said in (folder.folder / "t.html").read_text()
    assert "because" not in outcome.out
    store = SnapshotStore.of_project(folder.folder)
    newer = structs.replace(OBJECTS[0], build_id="b" * 40, sha256=None)
    before, since = store.save(snapshot()), store.save(snapshot(objects=(newer, *OBJECTS[2:])))
    results = [
        result(n, seconds=2.0 + n // 8, snapshot=since if n > 7 else before) for n in range(16)
    ]
    outcome = folder.run("trend", *written(folder, results))
    (found,) = outcome.document["times"][0]["differences"]
    # An object that was merely not seen is no difference.
    assert [(one["name"], one["run"]) for one in found] == [("libm.so.6", "build bbbbbbbbbbbb")]
    # Equal environments say nothing.
    results = [result(n, seconds=2.0 + n // 8, snapshot=before) for n in range(16)]
    outcome = folder.run("trend", *written(folder, results))
    assert outcome.document["times"][0]["differences"] == [[]]


def test_the_page_numbers_the_results_that_it_draws(folder: Project) -> None:
    """Of 303 results the newest 300 are drawn: the first of these is the fourth."""
    names = written(folder, [result(n, [variable("x", 0.2)], seconds=1.0) for n in range(303)])
    assert folder.run("trend", *names, "--report", "page.html").code == 0
    page = (folder.folder / "page.html").read_text()
    for chart in charts_of(page):
        below = [one.text for one in chart.iter("text") if one.get("y") == "181"]
        assert below[:2] == ["4", "54"]
    assert page.count("Drawn: the newest 300 of 303.") == len(charts_of(page)) == 2


def test_words_beside_a_late_line_stay_within_the_picture(folder: Project) -> None:
    """The golden was replaced for the newest of ten results."""
    bounds = [BOUND] * 9 + [ErrorBound(atol=1e-5)]
    results = [result(n, [variable("x", 0.2, bound)]) for n, bound in enumerate(bounds)]
    assert folder.run("trend", *written(folder, results), "--report", "page.html").code == 0
    (chart,) = charts_of((folder.folder / "page.html").read_text())
    (words,) = [one for one in chart.iter("text") if one.text == "today's golden and bound"]
    assert words.get("text-anchor") == "end"


def test_a_step_up_and_down_again_is_told_as_it_is(folder: Project) -> None:
    """Nothing to warn of is not nothing that moved; words of close steps lie below each other."""
    results = [
        result(n, [variable("density", 0.01 * n)], seconds=(1.5 if 10 <= n < 18 else 1) + n / 1000)
        for n in range(1, 31)
    ]
    page = folder.folder / "trend.html"
    outcome = folder.run("trend", *written(folder, results), "--report", str(page))
    assert outcome.out.splitlines()[1] == "nothing to warn of"
    html = page.read_text()
    assert "<title>Nothing to warn of" in html
    assert "became slower" not in html
    told = re.findall(r'<text[^>]* y="([0-9.]+)"[^>]*>[^<]* (?:more|less) time</text>', html)
    assert len(told) == len(set(told)) == 2
