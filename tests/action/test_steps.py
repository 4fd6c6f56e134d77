"""Inputs, outputs, summary, annotations and the gate, without a runner."""

from __future__ import annotations

import json
import re
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ciwrap import api
from ciwrap.action.__main__ import main
from ciwrap.action.github import (
    SUMMARY_BYTES,
    FailOn,
    Runner,
    cut_markdown,
    read_inputs,
    safe_key,
)
from ciwrap.action.orders import Call, finished, fresh_stage
from ciwrap.action.outputs import (
    MOST_ANNOTATIONS,
    Place,
    StepOutcome,
    annotation_lines,
    markdown,
    publish,
    read_result,
)
from ciwrap.action.steps import gate
from ciwrap.base.errors import UsageError
from ciwrap.model import CheckResult, RunResult, VariableResult, Verdict
from ciwrap.report.document import document_text, to_document
from ciwrap.report.markdown import workflow_command

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = [
    "::error file=x::y", "##[add-mask]x", "a\n::stop-commands::z", "%0A::error::x",
    "x\r\n::debug::y",
    "\x1b]8;;http://evil\x07", "</summary><script>alert(1)</script>", "![x](http://evil/)", "@all",
    "a|b`c`", "<!-- ciwrap -->", "\u202egpj", "${{ github.token }}", "$(id)", "`id`", "; id",
]  # fmt: skip


def result_of(count: int, verdict: Verdict = Verdict.DIFFER, name: str = "v") -> RunResult:
    variables = tuple(
        VariableResult(f"{name}{n}", verdict, differing_count=0 if verdict is Verdict.MATCH else 1)
        for n in range(count)
    )
    return RunResult(verdict, (CheckResult("mesh", verdict, variables),))


def without_code(text: str) -> str:
    """Markdown less its fenced blocks, in which nothing has a meaning."""
    return re.sub(r"^(`{3,})sh\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)


# --- inputs ---------------------------------------------------------------------------------------


def test_defaults() -> None:
    inputs = read_inputs({})
    assert (inputs.mode, inputs.fail_on, inputs.artifact_name) == ("check", FailOn.DIFFER, "ciwrap")
    assert read_inputs({"CIWRAP_INPUT_PLATFORM_KEY": "a-1"}).artifact_name == "ciwrap-a-1"


@pytest.mark.parametrize(
    "text", ["../x", "a/b", "", ".", "-x", "a b", "a\n", "x" * 101, "a..b", "x.lock", "ä", "$(id)"]
)
def test_keys_that_are_no_names(text: str) -> None:
    with pytest.raises(UsageError):
        safe_key(text, "platform-key")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MODE", "chekc"), ("FAIL_ON", "sometimes"), ("UPLOAD", "perhaps"), ("EXPECT", "-1"),
        ("EXPECT", "1e3"), ("PLATFORM_KEY", "../.."), ("ARTIFACT_NAME", "a/b"),
    ],
)  # fmt: skip
def test_inputs_without_meaning(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name.lower().replace("_", "-")):
        read_inputs({f"CIWRAP_INPUT_{name}": value})


def test_a_step_that_comes_to_nothing_says_so_in_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    monkeypatch.setenv("CIWRAP_INPUT_FAIL_ON", "some<b>")
    assert main(["check"]) == 1
    text = (tmp_path / "summary").read_text()
    assert text.startswith("**ciwrap: error.** the input fail-on cannot be 'some&#60;b&#62;'")
    assert capsys.readouterr().out.startswith("::error title=ciwrap::the input fail-on cannot be")


# --- outputs and commands -------------------------------------------------------------------------


def parse_outputs(text: str) -> dict[str, str]:
    """As the runner reads the file."""
    found, lines = {}, text.split("\n")
    while lines and lines[0]:
        name, mark = lines.pop(0).split("<<", 1)
        end = lines.index(mark)
        found[name] = "\n".join(lines[:end])
        del lines[: end + 1]
    return found


@given(st.dictionaries(st.sampled_from("abc"), st.text(st.characters(exclude_categories=["Cs"]))))
def test_outputs_hold_anything(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, str]
) -> None:
    path = tmp_path_factory.mktemp("outputs") / "file"
    path.touch()
    runner = Runner({"GITHUB_OUTPUT": str(path)})
    for name, value in values.items():
        runner.set_output(name, value)
    # Universal newlines are off: a carriage return is part of a value.
    assert parse_outputs(path.read_bytes().decode()) == values


@given(st.text(), st.text())
def test_a_command_is_one_line_and_reads_back(message: str, title: str) -> None:
    line = workflow_command("error", message, title=title, file=None, line=3)
    assert "\n" not in line
    assert "\r" not in line
    found = re.fullmatch(r"::error title=([^,:]*),line=3::(.*)", line, re.DOTALL)
    assert found is not None

    def unescape(text: str) -> str:
        for code, char in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
            text = text.replace(code, char)
        return text

    assert unescape(found[1]) == title
    assert unescape(found[2]) == message if "%" not in message else True


def test_programs_get_no_channel_of_the_step() -> None:
    runner = Runner({"GITHUB_OUTPUT": "a", "GITHUB_ENV": "b", "CIWRAP_INPUT_RUN": "c", "PATH": "d"})
    assert runner.program_environment == {"PATH": "d"}


# --- summary and annotations ----------------------------------------------------------------------


def test_a_summary_is_cut_before_github_drops_it(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    runner = Runner({"GITHUB_STEP_SUMMARY": str(path)})
    path.write_text("before\n")
    runner.add_summary("ä line of it\n" * 200_000)
    data = path.read_bytes()
    assert SUMMARY_BYTES - 100 < len(data) <= SUMMARY_BYTES
    assert data.decode().endswith("in the report of the artifact._\n")
    runner.add_summary("more\n" * 100)
    assert path.stat().st_size <= 1 << 20


@given(st.text(), st.integers(0, 300))
def test_cutting_never_exceeds(text: str, most: int) -> None:
    assert len(cut_markdown(text, most).encode("utf-8", "backslashreplace")) <= most


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 500])
def test_annotations_are_as_many_as_are_shown(count: int) -> None:
    result = result_of(count) if count else result_of(1, Verdict.MATCH)
    lines = list(annotation_lines(StepOutcome("differ", result), Place()))
    assert len(lines) == min(count, MOST_ANNOTATIONS)
    if count > MOST_ANNOTATIONS:
        assert f"+{count - MOST_ANNOTATIONS + 1} more" in lines[-1]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_give_no_orders(name: str) -> None:
    result = RunResult(
        Verdict.DIFFER,
        (CheckResult(name, Verdict.DIFFER, (VariableResult(name, Verdict.DIFFER),)),),
    )
    for line in annotation_lines(StepOutcome("differ", result), Place("ciwrap.yaml", {name: 3})):
        assert re.fullmatch(r"::error [^\x00-\x1f]*", line)
    text = without_code(markdown(StepOutcome("differ", result), read_inputs({})))
    for piece in ("<script", "](http://", "@all", "<!-- c", "\x1b", "\u202e", "\n::"):
        assert piece not in text


# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("exit_code", [None, 1])
def test_a_result_is_read(tmp_path: Path, exit_code: int | None) -> None:
    path = tmp_path / "result.json"
    path.write_text(document_text(to_document(result_of(2))))
    assert read_result(path, exit_code=exit_code).status == "differ"


@pytest.mark.parametrize("exit_code", [0, 2, 3, 70, -11])
def test_an_exit_code_at_odds_with_the_result_is_an_error(tmp_path: Path, exit_code: int) -> None:
    path = tmp_path / "result.json"
    path.write_text(document_text(to_document(result_of(2))))
    assert read_result(path, exit_code=exit_code).status == "error"


@pytest.mark.parametrize("exit_code", [0, 1, 70, 137, -9, -11])
def test_a_tool_that_leaves_no_result_is_an_error(tmp_path: Path, exit_code: int) -> None:
    call = Call(exit_code, tmp_path / "result.json")
    outcome = finished(call)
    assert outcome.status == "error"
    assert str(abs(exit_code)) in outcome.problem


def test_outputs_of_a_step(tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    outputs.touch()
    stage = tmp_path / "stage"
    stage.mkdir()
    (stage / "result.json").write_text(document_text(to_document(result_of(3))))
    runner = Runner({"GITHUB_OUTPUT": str(outputs), "GITHUB_WORKSPACE": str(tmp_path)})
    inputs = read_inputs({"CIWRAP_INPUT_REPORT": "reports/numbers.html"})
    publish(read_result(stage / "result.json"), inputs, runner, stage)
    told = parse_outputs(outputs.read_text())
    assert (told["status"], told["compared"], told["differing"]) == ("differ", "3", "3")
    assert (tmp_path / "reports/numbers.html").read_bytes() == (stage / "report.html").read_bytes()
    assert json.loads((stage / "result.json").read_text())["verdict"] == "differ"


@pytest.mark.parametrize(
    ("upload", "is_uploaded"), [("", True), ("true", True), ("TRUE ", True), ("false", False)]
)
def test_what_the_summary_calls_an_artifact_is_uploaded(
    tmp_path: Path, upload: str, is_uploaded: bool
) -> None:
    """action.yml uploads whatever has a path."""
    (tmp_path / "outputs").touch()
    (tmp_path / "stage/pending").mkdir(parents=True)
    stage = tmp_path / "stage"
    (stage / "result.json").write_text(document_text(to_document(result_of(1))))
    runner = Runner({"GITHUB_OUTPUT": str(tmp_path / "outputs"), "GITHUB_WORKSPACE": ""})
    inputs = read_inputs({"CIWRAP_INPUT_UPLOAD": upload})
    publish(read_result(stage / "result.json"), inputs, runner, stage)
    told = parse_outputs((tmp_path / "outputs").read_text())
    assert told["artifact-path"] == (str(stage) if is_uploaded else "")
    assert ("with the artifact" in (stage / "summary.md").read_text()) == is_uploaded


def test_an_empty_mode_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("RUNNER_TEMP", str(tmp_path / "temporary"))
    monkeypatch.setenv("CIWRAP_INPUT_MODE", "")
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "outputs"))
    assert main([""]) == 0
    assert "there is no ciwrap.yaml" in capsys.readouterr().out
    assert parse_outputs((tmp_path / "outputs").read_text())["status"] == "error"


def test_a_report_that_cannot_be_written_hides_no_verdict(tmp_path: Path) -> None:
    for name in ("outputs", "summary"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    stage = tmp_path / "stage"
    stage.mkdir()
    (stage / "result.json").write_text(document_text(to_document(result_of(3))))
    files = {"GITHUB_OUTPUT": "outputs", "GITHUB_STEP_SUMMARY": "summary", "GITHUB_WORKSPACE": ""}
    runner = Runner({name: str(tmp_path / file) for name, file in files.items()})
    inputs = read_inputs({"CIWRAP_INPUT_REPORT": "folder"})
    with pytest.raises(UsageError, match="folder: the input report cannot be followed: Is a dir"):
        publish(read_result(stage / "result.json"), inputs, runner, stage)
    told = parse_outputs((tmp_path / "outputs").read_text())
    assert (told["status"], told["artifact-path"]) == ("differ", str(stage))
    assert "Numbers differ" in (tmp_path / "summary").read_text()


def test_an_earlier_step_of_the_job_keeps_its_results(tmp_path: Path) -> None:
    runner = Runner({"RUNNER_TEMP": str(tmp_path)})
    stages = [fresh_stage(runner, "ciwrap") for _ in range(3)]
    (stages[0] / "result.json").touch()
    assert fresh_stage(runner, "ciwrap") not in stages
    assert len(set(stages)) == 3
    assert (stages[0] / "result.json").is_file()


def test_the_picture_of_the_first_difference_lies_in_the_artifact(tmp_path: Path) -> None:
    """And goes with a result that has none, as does one of a golden without data."""
    runner = Runner({"GITHUB_WORKSPACE": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "out")})
    (tmp_path / "out").touch()
    golden = np.zeros((20, 30))
    new = golden.copy()
    new[:10, 15:] = 1.0
    picture = tmp_path / "difference.png"
    for values, is_there in ((new, True), (golden, False), (new, True)):
        one = api.compare_arrays(golden, values, atol=1e-6)
        run = RunResult(one.verdict, (CheckResult("mesh", one.verdict, (one,)),))
        (tmp_path / "result.json").write_text(document_text(to_document(run)))
        publish(read_result(tmp_path / "result.json"), read_inputs({}), runner, tmp_path)
        assert picture.is_file() == is_there
    png = picture.read_bytes()
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    at = png.index(b"IDAT")
    body = zlib.decompress(png[at + 4 : at + 4 + int.from_bytes(png[at - 4 : at], "big")])
    image = np.frombuffer(body, np.uint8).reshape(height, 1 + 3 * width)[:, 1:]
    third = image.reshape(height, width, 3)[:, -(width // 3) :].astype(int)
    orange = third[..., 0] - third[..., 2] > 60
    rows, columns = np.nonzero(orange)
    # The upper right quarter of the last of the three.
    assert (rows.max() + 1) / height == pytest.approx(0.5, abs=0.03)
    assert (third.shape[1] - columns.min()) / third.shape[1] == pytest.approx(0.5, abs=0.08)
    result = read_result(tmp_path / "result.json").result
    assert result is not None
    bare = replace(result.checks[0].variables[0], details=None)
    run = RunResult(result.verdict, (replace(result.checks[0], variables=(bare,)),))
    (tmp_path / "result.json").write_text(document_text(to_document(run)))
    publish(read_result(tmp_path / "result.json"), read_inputs({}), runner, tmp_path)
    assert not picture.exists()


# --- gate -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fail_on", "failing"),
    [
        (FailOn.DIFFER, {"differ", "not-comparable", "error", "", "made up"}),
        (FailOn.NOT_COMPARABLE, {"not-comparable", "error", "", "made up"}),
        (FailOn.ERROR, {"error", "", "made up"}),
        (FailOn.NEVER, set()),
    ],
)
def test_gate(fail_on: FailOn, failing: set[str]) -> None:
    for status in ("match", "differ", "not-comparable", "error", "", "made up"):
        assert gate(status, fail_on, {"CIWRAP_COMPARED": "3"}) == int(status in failing), status


@pytest.mark.parametrize("compared", ["", "0", "-1", "x"])
def test_a_match_of_nothing_is_none(compared: str) -> None:
    assert gate("match", FailOn.DIFFER, {"CIWRAP_COMPARED": compared}) == 1
    assert gate("match", FailOn.DIFFER, {"CIWRAP_COMPARED": "1"}) == 0
