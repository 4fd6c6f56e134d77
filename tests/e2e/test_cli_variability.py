"""`ciwrap variability`: a map is fitted, asked, and planned with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from e2e.cli_project import Project, environment
from e2e.pages import follow

pytest.importorskip("scipy", reason="SciPy is not installed")

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how-to/variability.md"
LEVELS = ((1, 2, 4, 8), (4, 64, 1024, 8192))


@pytest.fixture
def folder(tmp_path: Path) -> Project:
    """A folder with a table of 16 configurations of 8 runs, and no configuration."""
    project = Project(tmp_path / "p")
    (project.folder / "ciwrap.yaml").unlink()
    write_table(project)
    return project


@pytest.fixture(scope="module")
def map_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The map of that table; made once, since it takes seconds."""
    project = Project(tmp_path_factory.mktemp("map") / "p")
    write_table(project)
    assert project.run("variability", "fit", "t.csv").code == 0
    return (project.folder / "variability-map.json").read_text()


@pytest.fixture
def mapped(folder: Project, map_text: str) -> Project:
    """The folder with its map."""
    (folder.folder / "variability-map.json").write_text(map_text)
    return folder


def write_table(
    project: Project, levels: Sequence[Sequence[float]] = LEVELS, *, runs: int = 8, disk: str = ""
) -> None:
    generator = np.random.default_rng(1)
    lines = [("disk," if disk else "") + "threads,size,seconds"]
    for name in disk.split() or [""]:
        for threads in levels[0]:
            for size in levels[1]:
                sigma = 1e-3 * threads * np.log2(size + 1)
                for value in 20 * sigma + sigma * generator.normal(size=runs):
                    prefix = f"{name}," if name else ""
                    lines.append(f"{prefix}{threads},{size},{value:.6g}")
    (project.folder / "t.csv").write_text("\n".join(lines) + "\n")


def test_fit_predict_and_plan(folder: Project) -> None:
    fitted = folder.run("variability", "fit", "t.csv", "-o", "m.json")
    assert fitted.code == 0, fitted
    assert fitted.err == ""
    first, *_ = fitted.out.splitlines()
    assert first.startswith("the variability of seconds depends most on threads; it is predicted")
    assert first.endswith("% in the mean, from 16 configurations and 128 runs")
    assert "probably optimistic with so few configurations" in fitted.out
    assert "noise floor" in fitted.out
    assert fitted.out.endswith("wrote m.json\n")
    (found,) = fitted.document["maps"]
    assert (fitted.document["kind"], fitted.document["did"]) == ("variability", "fit")
    assert {score["predictor"] for score in found["scores"]} == {
        *("Gaussian process", "log-quadratic", "Delaunay log", "Delaunay", "LSP"),
        *("MARS log", "MARS", "linear regression", "constant"),
    }
    assert found["few"]
    assert [one["is_log"] for one in found["parameters"]] == [True, True]
    assert found["influences"]["terms"][0]["parameters"] == ["threads"]

    asked = folder.run("variability", "predict", "m.json", "threads=4", "size=512")
    assert asked.code == 0
    (one,) = asked.document["predictions"]
    assert one["lower"] < one["sigma"] < one["upper"]
    assert one["sigma"] == pytest.approx(4e-3 * 9, rel=0.5)
    assert not one["extrapolated"]
    assert asked.out.startswith("sigma of threads=4 size=512 is probably 0.0")

    measured = folder.run("variability", "predict", "m.json", "threads=4", "size=64")
    assert measured.document["predictions"][0]["measured_runs"] == 8
    assert "it was measured: sigma 0." in measured.out
    beyond = folder.run("variability", "predict", "m.json", "threads=64", "size=64")
    assert beyond.document["predictions"][0]["extrapolated"]
    assert "extrapolated: it lies beyond what was measured" in beyond.out
    sure = folder.run(
        "variability", "predict", "m.json", "threads=4", "size=64", "--confidence=.99"
    )
    assert "too few configurations for an interval with 99 % confidence" in sure.out

    plan = folder.run("variability", "plan", "m.json", "threads=4", "size=512", "--error=0.05")
    (repeats,) = plan.document["repeats"]
    assert not repeats["is_measured"]
    assert repeats["seconds_per_run"] > 0
    assert repeats["for_sigma"] == repeats["more_for_sigma"] > 100
    z = 1.6448536269514722
    expected = (z / 0.05) ** 2 * (repeats["kurtosis"] - 1) / 4
    assert expected < repeats["for_sigma"] < expected + 8  # a few more: few runs tell less
    assert 10 < repeats["curve"]["at_75"] < repeats["curve"]["at_90"] <= 40
    known = folder.run("variability", "plan", "m.json", "threads=4", "size=64")
    (there,) = known.document["repeats"]
    assert there["more_for_sigma"] == there["for_sigma"] - 8
    assert there["is_measured"]

    both = folder.run("variability", "plan", "m.json", "threads=4", "size=64", "--next", "2")
    assert both.code == 2
    assert "--next cannot be used with a configuration" in both.err

    following = folder.run("variability", "plan", "m.json", "--next", "2")
    assert len(following.document["candidates"]) == 2
    for candidate in following.document["candidates"]:
        values = candidate["configuration"]
        assert (values["threads"], values["size"]) not in {
            (a, b) for a in LEVELS[0] for b in LEVELS[1]
        }
        assert candidate["uncertainty"] > 1


def test_a_configuration_that_was_left_out_is_what_to_measure_next(folder: Project) -> None:
    path = folder.folder / "t.csv"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("4,64,")]
    path.write_text("\n".join(lines) + "\n")
    folder.run("variability", "fit", "t.csv")
    plan = folder.run("variability", "plan", "variability-map.json")
    (only,) = plan.document["candidates"]
    assert only["configuration"] == {"threads": 4, "size": 64}


def test_what_to_measure_next_is_possible(folder: Project) -> None:
    """A record is no larger than its file in the table, and so it is in the plan."""
    sizes = (1, 4, 16, 64, 256)
    generator = np.random.default_rng(2)
    lines = ["file,record,seconds"]
    for file in sizes:
        for record in (one for one in sizes if one <= file):
            runs = 1 + 0.01 * file * generator.normal(size=8)
            lines += [f"{file},{record},{abs(value):.6g}" for value in runs]
    (folder.folder / "t.csv").write_text("\n".join(lines) + "\n")
    folder.run("variability", "fit", "t.csv")
    plan = folder.run("variability", "plan", "variability-map.json", "--next", "5")
    for one in plan.document["candidates"]:
        values = one["configuration"]
        assert values["record"] <= values["file"], values
        words = [f"{name}={value:g}" for name, value in values.items()]
        asked = folder.run("variability", "predict", "variability-map.json", *words)
        assert not asked.document["predictions"][0]["extrapolated"]


def test_the_same_table_makes_the_same_map(folder: Project) -> None:
    maps = []
    for name in ("a.json", "b.json"):
        folder.run("variability", "fit", "t.csv", "-o", name, "--seed", "3")
        document = json.loads((folder.folder / name).read_text())
        maps.append(
            {key: value for key, value in document.items() if key not in ("made", "digest")}
        )
    assert maps[0] == maps[1]


def test_categories_make_separate_maps(folder: Project) -> None:
    write_table(folder, disk="ssd hdd")
    fitted = folder.run("variability", "fit", "t.csv", "--report", "page.html")
    assert [one["category"] for one in fitted.document["maps"]] == [
        {"disk": "ssd"},
        {"disk": "hdd"},
    ]
    assert "2 maps predict the variability of seconds to within " in fitted.out
    page = (folder.folder / "page.html").read_text()
    assert page.count('<h2 id="h-map') == 2
    ask = ("variability", "predict", "variability-map.json", "threads=2", "size=64")
    assert folder.run(*ask, "disk=ssd").document["predictions"][0]["category"] == {"disk": "ssd"}
    for words in ((), ("disk=tape",)):
        outcome = folder.run(*ask, *words)
        assert outcome.code == 2
        assert "give one of: disk=ssd; disk=hdd" in outcome.error_lines[-1]


def test_a_predictor_can_be_named(folder: Project) -> None:
    fitted = folder.run("variability", "fit", "t.csv", "--predictor", "delaunay LOG")
    assert fitted.document["maps"][0]["predictor"] == "Delaunay log"
    asked = folder.run("variability", "predict", "variability-map.json", "threads=3", "size=99")
    assert asked.document["predictions"][0]["predictor"] == "Delaunay log"
    wrong = folder.run("variability", "fit", "t.csv", "--predictor", "forest")
    assert wrong.code == 2
    assert "there is no predictor 'forest'; there are Gaussian process" in wrong.error_lines[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["threads=4"], "the configuration lacks size; give size=NUMBER"),
        (["threads=4", "size=big"], "size=big: 'big' is not a number"),
        (["threads=4", "size=nan"], "size=nan: 'nan' is not a number"),
        (["threads=4", "size"], "'size' is not NAME=VALUE"),
        (["threads=4", "threads=5"], "threads is given twice"),
        (["thread=4", "size=8"], "the map has no parameter 'thread'; did you mean threads?"),
        (["threads=0", "size=8"], "threads counts by its logarithm and must be above 0"),
        (["threads=4", "size=8", "--confidence=1"], "--confidence must be between 0 and 1"),
    ],
)
def test_questions_without_a_meaning(mapped: Project, words: list[str], said: str) -> None:
    outcome = mapped.run("variability", "predict", "variability-map.json", *words)
    assert outcome.code == 2
    assert outcome.error_lines == [f"error: {said}"]
    assert outcome.document["kind"] == "variability"


def test_plans_without_a_meaning(mapped: Project) -> None:
    for option in ("--error=0", "--error=-1", "--confidence=2"):
        outcome = mapped.run("variability", "plan", "variability-map.json", option)
        assert (outcome.code, len(outcome.error_lines)) == (2, 1), option


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a,v\n1,2\n1,3\n",
            "t.csv: has one configuration, and a map takes 10; measure others, too",
        ),
        (
            "a,v\n1,2\n1,3\n2,2\n",
            "t.csv: line 4: the configuration a 2 has one run, which has no standard deviation",
        ),
        ("a,v\n1,2\n1,3\n2,2\n2,5\n", "t.csv: has 2 configurations that vary, and a map takes 10"),
        ("a,v\n1,2\n1,\n", "t.csv: v: line 3: the cell is empty; fill it in, or leave out the row"),
        ("a,v\n1,2\n1,2\n2,3\n2,3\n", "t.csv: all runs of every configuration are equal"),
    ],
)
def test_tables_that_say_too_little(folder: Project, text: str, said: str) -> None:
    (folder.folder / "t.csv").write_text(text)
    outcome = folder.run("variability", "fit", "t.csv")
    assert outcome.code == 3
    (line,) = outcome.error_lines
    assert line.startswith(f"error: {said}")
    assert not (folder.folder / "variability-map.json").exists()


def test_constant_columns_and_few_runs_are_said(folder: Project) -> None:
    path = folder.folder / "t.csv"
    rows = path.read_text().splitlines()
    kept = [row for number, row in enumerate(rows[1:]) if number % 8 < 3]
    lines = [f"nodes,{rows[0]}", *(f"7,{row}" for row in kept)]
    path.write_text("\n".join(lines) + "\n")
    fitted = folder.run("variability", "fit", "t.csv")
    assert fitted.code == 0
    assert "note: nodes is 7 in every row, so the map says nothing of other values" in fitted.out
    assert "note: some configurations have 3 runs only, which hardly tell their sigma" in fitted.out
    ask = ("variability", "predict", "variability-map.json", "threads=2", "size=64")
    assert folder.run(*ask, "nodes=7").code == 0
    assert folder.run(*ask).code == 0
    outcome = folder.run(*ask, "nodes=8")
    assert outcome.code == 2
    assert "nodes was 7 in every run, so the map says nothing of 8" in outcome.error_lines[-1]


def test_results_of_time_make_a_map(folder: Project) -> None:
    """Six results of two commands each; their parameters stand in the commands."""
    for number in range(6):
        outcome = folder.run(
            *("time", f"true --n {2 * number + 1}", f"true --n {2 * number + 2}"),
            *("--pairs", "3", "--warm-up", "0", "--json", f"r{number}.json"),
            json_too=False,
        )
        assert outcome.code == 0
    fitted = folder.run("variability", "fit", *(f"r{number}.json" for number in range(6)))
    assert fitted.code == 0, fitted
    (found,) = fitted.document["maps"]
    assert (found["configurations"], found["runs"]) == (12, 36)
    assert found["parameters"][0]["name"] == "n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[: len(text) // 2], "is not a map of variability: it is not JSON"),
        (
            lambda text: text.replace('"error": 0', '"error": 1', 1),
            "damaged, or somebody has edited",
        ),
        (
            lambda text: text.replace('"format": 1', '"format": 9', 1),
            "has format 9, this ciwrap reads",
        ),
        (lambda text: "{}", "is not a map of variability: `format` is missing"),
    ],
)
def test_damaged_maps_are_refused(mapped: Project, change: Any, said: str) -> None:
    path = mapped.folder / "variability-map.json"
    path.write_text(change(path.read_text()))
    for words in (("predict", path.name, "threads=2", "size=8"), ("plan", path.name)):
        outcome = mapped.run("variability", *words)
        assert outcome.code == 3
        (line,) = outcome.error_lines
        assert said in line
        assert line.startswith("error: variability-map.json: ")


def test_there_is_no_map(folder: Project) -> None:
    outcome = folder.run("variability", "plan", "gone.json")
    assert outcome.code == 3
    assert outcome.error_lines == [
        "error: gone.json: there is no map; `ciwrap variability fit` makes one"
    ]


def test_without_scipy_it_says_what_is_missing(folder: Project) -> None:
    (folder.folder / "scipy.py").write_text("raise ModuleNotFoundError('No module named scipy')\n")
    outcome = folder.run("variability", "fit", "t.csv", apart=True, PYTHONPATH=str(folder.folder))
    assert outcome.code == 3
    (line,) = outcome.error_lines
    assert line.startswith("error: `ciwrap variability` needs SciPy, which is not installed; pip ")


def test_names_of_columns_move_nothing(folder: Project) -> None:
    evil = "<img src=x>\x1b[31m"
    path = folder.folder / "t.csv"
    path.write_text(path.read_text().replace("threads", evil))
    outcome = folder.run("variability", "fit", "t.csv", "--report", "page.html")
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    page = (folder.folder / "page.html").read_text()
    assert "<img" not in page
    assert page.count("<script>") == 1


def test_the_how_to_does_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "io-times.csv").write_bytes((ROOT / "docs/benchmarks/io-times.csv").read_bytes())
    assert follow(PAGE, tmp_path, environment()) >= 5
    assert re.search(r"<svg ", (tmp_path / "map.html").read_text())
