"""`ciwrap changes` on whatever lets a run pass that failed before, though no golden tells of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from e2e.test_cli_changes import changes
from git_repository import GitRepository

from ciwrap.cli.main import run

LOG = "checks: {c: {outputs: 'out/*.txt', format: log, values: {t: {match: 'T = {t}'%s}}%s}}"
BOTH = LOG.replace("}}%s", "}, u: 'U = {u}'}%s")
FILES = "checks: {c: {outputs: out%s}}"


@dataclass(frozen=True)
class Case:
    """Outputs by name, a text or arrays: of the golden, of a run that fails before and passes after
    the change. is_accepted: whether the golden's outputs are accepted anew.
    """

    before: str
    after: str
    golden: dict[str, object]
    new: dict[str, object]
    variable: str | None
    is_accepted: bool = False


def log(text: str) -> dict[str, object]:
    return {"log.txt": text}


ONE, OTHER = log("T = 1\nU = 2\n"), log("T = 5\nU = 2\n")
CASES = {
    "a wider bound of a text's numbers": Case(
        "checks: {c: {outputs: out/log.txt, format: tokens, atol: 1e-6}}",
        "checks: {c: {outputs: out/log.txt, format: tokens, atol: 10}}",
        log("at 1.0 s\n"), log("at 2.0 s\n"), "log",
    ),
    "a range in place of a golden": Case(
        BOTH % (", atol: 1e-6", ""), BOTH % (", range: [-9, 9]", ""), ONE, OTHER, "t",
    ),
    "a number in place of a golden": Case(
        BOTH % (", atol: 1e-6", ""), BOTH % (", expect: 5", ""), ONE, OTHER, "t",
    ),
    "what is stated is ignored": Case(
        BOTH % (", expect: 1", ""), BOTH % (", expect: 1", ", ignore: ['*t']"), ONE, OTHER, "t",
    ),
    "a bound by the name of a file": Case(
        LOG % (", expect: 1", ""),
        LOG % (", expect: 1", ", variables: {'log/*': {atol: 9}}"),
        ONE, OTHER, "log/*",
    ),
    "a narrower bound by the name of a file is gone": Case(
        LOG % (", expect: 1", ", variables: {'*': {atol: 9}, 'log/*': {atol: 1e-6}}"),
        LOG % (", expect: 1", ", variables: {'*': {atol: 9}}"),
        ONE, OTHER, "log/*",
    ),
    "a bound by the name of a file that a golden holds, too": Case(
        BOTH % (", expect: 1", ", variables: {'log/u': {atol: 1}}"),
        BOTH % (", expect: 1", ", variables: {'log/*': {atol: 9}, 'log/u': {atol: 1}}"),
        ONE, OTHER, "log/*",
    ),
    "fewer numbers are stated": Case(
        LOG % (", expect: [1, 2]", ""), LOG % (", expect: [1]", ""),
        log("T = 1\nT = 2\n"), log("T = 1\n"), "t",
    ),
    "a number with a wide bound in place of a range": Case(
        LOG % (", range: [0, 2]", ""), LOG % (", expect: 1, atol: 9", ""), ONE, OTHER, "t",
    ),
    "rows in any order": Case(
        FILES % "", FILES % ", align_by: ids",
        {"x": [1.0, 2.0, 3.0], "ids": [1, 2, 3]}, {"x": [2.0, 1.0, 3.0], "ids": [2, 1, 3]},
        "x", is_accepted=True,
    ),
    "rows that lost their ids": Case(
        FILES % ", align_by: ids",
        FILES % ", align_by: ids, variables: {x: {align_by: none}}",
        {"x": [1.0, 2.0, 3.0], "ids": [1, 2, 3]}, {"x": [1.0, 2.0, 3.0], "ids": [2, 1, 3]},
        "x", is_accepted=True,
    ),
    "no fill value any more": Case(
        FILES % ", atol: 1e-3, fill_values: [7]", FILES % ", atol: 1e-3",
        {"x": [7.0, 2.0]}, {"x": [7.0001, 2.0]}, "x", is_accepted=True,
    ),
}  # fmt: skip


def write(outputs: dict[str, object]) -> None:
    for name, one in outputs.items():
        if isinstance(one, str):
            Path("out", name).write_text(one)
        else:
            np.save(f"out/{name}.npy", np.array(one))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    return GitRepository.make(tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_a_failing_run_that_passes_now_is_told_as_wider(
    repository: GitRepository, name: str
) -> None:
    case = CASES[name]
    config = Path("ciwrap.yaml")
    config.write_text(case.before)
    write(case.golden)
    run(["accept"])
    repository.commit("base", {})
    write(case.new)
    assert run(["check"]) in (1, 3)
    config.write_text(case.after)
    if case.is_accepted:
        write(case.golden)
        assert run(["accept", "--reason", "cleanup"]) == 0
        write(case.new)
    assert run(["check"]) == 0
    assert case.variable in {one["variable"] for one in changes() if one["wider"]}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("atol: 1e-3", "atol: 9", [("x", "bound", True)]),
        ("atol: 9", "atol: 1e-3", [("x", "bound", False)]),
        ("atol: 9", "atol: 9, ignore: [y]", [("y", "ignore", None)]),
    ],
)
def test_a_first_golden_hides_no_other_bound(
    repository: GitRepository, before: str, after: str, told: list[tuple[str, str, bool | None]]
) -> None:
    Path("ciwrap.yaml").write_text(FILES % f", {before}")
    repository.commit("base", {})
    Path("ciwrap.yaml").write_text(FILES % f", {after}")
    write({"x": [1.0]})
    assert run(["accept"]) == 0
    found = [(one["variable"], one["what"], one["wider"]) for one in changes()]
    assert [one for one in found if one[1] != "values"] == told


def test_a_bound_that_a_golden_had_not_yet(repository: GitRepository) -> None:
    """The bound was widened before, but no run could match the golden by it."""
    config = Path("ciwrap.yaml")
    config.write_text(FILES % ", atol: 1e-6")
    write({"x": [1.0]})
    assert run(["accept"]) == 0
    config.write_text(FILES % ", atol: 9")
    repository.commit("base", {})
    config.write_text(FILES % ", atol: 3")
    assert run(["accept", "--reason", "cleanup"]) == 0
    (bound,) = (one for one in changes() if one["what"] == "bound")
    assert (bound["text"], bound["wider"]) == ("atol=1e-6 rtol=0 -> atol=3 rtol=0", True)


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (", variables: {'log/*': {atol: 1e-6}, 'log/t': {atol: 1}}", {("log/t", "bound", True)}),
        (", variables: {'log/*': {atol: 1e-9}}", {("log/*", "bound", False)}),
        (", variables: {'*': {atol: 1e-6}, 'log/*': {atol: 1e-6}}", {("t", "bound", True)}),
        (", ignore: [log/*]", {("log/*", "ignore", None), ("log/*", "bound", False)}),
    ],
)
def test_names_that_no_golden_holds(
    repository: GitRepository, after: str, told: set[tuple[str, str, bool | None]]
) -> None:
    Path("ciwrap.yaml").write_text(LOG % (", expect: 1", ", variables: {'log/*': {atol: 1e-6}}"))
    repository.commit("base", {})
    Path("ciwrap.yaml").write_text(LOG % (", expect: 1", after))
    assert {(one["variable"], one["what"], one["wider"]) for one in changes()} == told


def test_the_order_of_patterns_that_no_golden_tells_of(repository: GitRepository) -> None:
    rules = ["'log/*': {atol: 1e-6}", "'*/t': {atol: 9}"]
    for order in (rules, rules[::-1]):
        text = LOG % (", expect: 1", f", variables: {{{', '.join(order)}}}")
        Path("ciwrap.yaml").write_text(text)
        if order is rules:
            repository.commit("base", {})
    (one,) = changes()
    assert (one["text"], one["wider"]) == ("order of 'variables': log/*, */t -> */t, log/*", None)
