"""--markdown and --junit of check, run and compare: what `ciwrap report` makes of the JSON."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from e2e.cli_project import BASE, Project

OUT = ("--markdown", "own.md", "--junit", "own.xml", "--json", "result.json")


@pytest.mark.parametrize(
    "words",
    [("check",), ("run", "--", "touch", "out/temperature.npy", "out/ids.npy"), ("compare",)],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("shift", [0, 1])
def test_as_report_writes_them(accepted: Project, words: tuple[str, ...], shift: int) -> None:
    accepted.save("temperature", BASE + shift)
    if words == ("compare",):
        a, b = accepted.folder / "a.npy", accepted.folder / "out/temperature.npy"
        a.write_bytes(accepted.save("other", BASE).read_bytes())
        words = ("compare", str(a), str(b))
    outcome = accepted.run(words[0], *OUT, *words[1:], json_too=False)
    assert outcome.code == shift, outcome
    made = accepted.run(
        *("report", "result.json", "--markdown", "made.md", "--junit", "made.xml"), json_too=False
    )
    assert made.code == 0, made
    for suffix in ("md", "xml"):
        own, of_report = (accepted.folder / f"{name}.{suffix}" for name in ("own", "made"))
        assert own.read_text() == of_report.read_text(), suffix
    suites = ElementTree.parse(accepted.folder / "own.xml").getroot()
    assert bool(suites.findall(".//failure")) == bool(shift)


def test_a_call_without_a_verdict_leaves_them_too(accepted: Project) -> None:
    outcome = accepted.run("check", "nothing", *OUT[:4])
    assert outcome.code == 2
    assert "nothing" in (accepted.folder / "own.md").read_text()
    assert ElementTree.parse(accepted.folder / "own.xml").getroot().findall(".//error")


def test_what_is_compared_is_not_written_over(accepted: Project) -> None:
    before = accepted.snapshot()
    for option in ("--markdown", "--junit"):
        outcome = accepted.run("compare", "out", "out", option, "out/ids.npy")
        assert (outcome.code, "which is compared" in outcome.err) == (2, True), outcome
    outcome = accepted.run("compare", "out", "out", "--markdown=x", "--junit=x")
    assert (outcome.code, "written to the same file" in outcome.err) == (2, True), outcome
    assert accepted.snapshot() == before
