"""What the reference pages say is true: their examples run, their tables are complete."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import ciwrap
from ciwrap import api
from ciwrap.base.errors import UnsupportedDtypeError
from ciwrap.cli.commands import COMMANDS
from ciwrap.model import variable_result as details
from ciwrap.model.variable_result import Cause

DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page(name), re.DOTALL)


def test_the_api_example_runs(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("reference/api.md", "python")
    exec(compile(code, "api.md", "exec"), {})
    assert capsys.readouterr().out == "10% of the bound used\n"
    assert (tmp_path / "density.golden").exists()


def test_the_api_page_names_every_function() -> None:
    text = page("reference/api.md")
    for name in api.__all__:
        assert f"`{name}" in text, name
    for name in set(ciwrap.__all__) - {"__version__", "ErrorBound", "Evidence"}:
        assert name in text, name


def test_the_api_page_says_what_is_refused() -> None:
    """Dates and units by goldens alone; what is no one array of numbers by all."""
    dates = np.array(["2020-01-01"], "M8[D]")
    assert api.compare_arrays(dates, dates).verdict is ciwrap.Verdict.MATCH
    assert api.compare_arrays(dates, dates + 1).verdict is ciwrap.Verdict.DIFFER
    masked = np.ma.array([1.0, 2.0], mask=[0, 1])
    refused = [np.array([1, None]), np.zeros(2, [("a", "f8")]), masked]
    for call in (api.build_tree, lambda x: api.make_golden({"x": x})):
        for value in (dates, *refused):
            with pytest.raises(UnsupportedDtypeError):
                call(value)
    for value in refused:
        with pytest.raises(UnsupportedDtypeError):
            api.compare_arrays(value, value)


def test_the_api_page_names_every_keyword() -> None:
    listed = dict(re.findall(r"`([\w.]+)\(([^)`]*\*, [^)`]*)\)`", page("reference/api.md")))
    assert len(listed) == 5
    for name, arguments in listed.items():
        function = reduce(getattr, name.split("."), api)
        names = [one for one in inspect.signature(function).parameters if one != "self"]
        shown = [one.strip() for one in arguments.split(",") if one.strip() != "*"]
        assert [one.replace("golden_variable", "golden") for one in shown] == names


def test_the_document_example_fits_the_schema() -> None:
    (example,) = blocks("reference/result-schema.md", "json")
    schema = json.loads(page("reference/result.schema.json"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(example))


# What a document says besides the fields, worked out of them.
DERIVED = {
    "result": {"schema_version", "exit_code", "verdict_counts", "coverage"},
    "check": {"coverage", "first_divergence", "first_numeric_divergence"},
    "coverage": {"text"},
}


def test_the_schema_is_what_its_tool_writes() -> None:
    tool = DOCS.parent / "tools/generate-result-schema"
    assert subprocess.run([sys.executable, str(tool), "--check"]).returncode == 0
    text = page("reference/result.schema.json")
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


def test_the_schema_tells_what_the_fields_are() -> None:
    definitions = json.loads(page("reference/result.schema.json"))["$defs"]
    fields = definitions["VariableResult"]["properties"]
    assert fields["nan_mismatch_count"]["description"] == "NaN without a match"
    assert fields["evidence"]["description"].endswith("null if there was no golden variable")
    known = [name for name, field in fields.items() if "description" in field or "$ref" in field]
    assert set(fields) - set(known) <= {"name", "verdict", "differing_count_at_least"}


def test_the_command_page_has_every_command_and_exit_code() -> None:
    text = page("reference/cli.md")
    for name in COMMANDS:
        assert f"`ciwrap {name}" in text, name
    for code in (0, 1, 2, 3, 70, 130):
        assert f"\n| {code} | " in text, code


def test_the_share_that_never_raises_an_alarm_is_what_the_page_says() -> None:
    text = page("how-to/choose-bounds.md")
    golden = np.linspace(-1, 1, 1000)
    for bound, percent in (({"atol": 1e-6}, 87.5), ({"rtol": 0.1}, 80)):
        made = api.make_golden({"x": golden}, evidence="residues", **bound).variables[0]
        share = api.check_array(golden + 1.0, made).guaranteed_share
        assert share == pytest.approx(percent / 100, abs=5e-4)
        assert f"{percent:g} %" in text


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_told_of_one_or_two_elements_is_what_the_page_says(count: int) -> None:
    text = page("how-to/read-the-report.md")
    said = "Of one or two values the page reports a round number that was added or a flipped bit"
    assert said in text.replace("\n", " ")
    golden = np.linspace(1, 2, 50)
    new = golden.copy()
    new[:count] *= 1.0005
    told = {one.cause for one in api.compare_arrays(golden, new).explanations}
    assert told == {Cause.WIDER_BOUND}


def test_a_shift_is_told_of_what_has_a_source_in_the_array() -> None:
    golden = np.random.default_rng(0).normal(size=12)
    (told, *_) = api.compare_arrays(golden, np.roll(golden, 3)).explanations
    assert (told.cause, told.held_count, told.differing_count) == (Cause.SHIFTED, 9, 12)


def test_pictures_are_there_and_small() -> None:
    for source in DOCS.rglob("*.md"):
        for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", source.read_text(encoding="utf-8")):
            if not name.startswith("https://"):
                assert (source.parent / name).stat().st_size < 200_000, name


def test_the_front_page_is_light() -> None:
    sizes = [picture.stat().st_size for picture in (DOCS / "images").iterdir()]
    assert max(sizes) < 100_000
    assert sum(sizes) < 500_000
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 120
    assert text.index("![") < text.index("```") < text.index("\n- ")


def test_the_limits_the_pages_name_are_those_of_the_code() -> None:
    from ciwrap.report import document as trim
    from ciwrap.report import markdown
    from ciwrap.report import markdown as annotations
    from ciwrap.report import page as html

    text = page("reference/result-schema.md")
    assert f"at most {details.MOST_RUNS} runs" in text
    assert f"up to {details.MOST_WORST}, with both values" in text
    assert f"for {trim.MOST_DETAILED} of them" in text
    assert f"{html.MOST_CARDS} worst variables" in page("how-to/read-the-report.md")
    assert f"of at most {markdown.MOST_BYTES // 1024} KiB" in page("reference/cli.md")
    assert f"at most {annotations.MOST_PER_TYPE} of each kind" in page("reference/cli.md")
