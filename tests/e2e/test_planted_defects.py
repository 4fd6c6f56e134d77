"""Ten planted defects: page and terminal say what, where, how much, why, and what looks further."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

import planted_defects as planted
import pytest

if TYPE_CHECKING:
    from pathlib import Path

# Of each defect the cause, with {golden} and {new} for the sides, and where; without the golden's
# values what is known instead, None for nothing.
CASES = {
    "growing": (
        (
            "the difference doubles every 10 iterations, from iteration 20 on; it exceeds the"
            " bound from iteration 70 on"
        ),
        "from iteration 70 on, on all 3 ranks",
        "the difference grows: at most ",
    ),
    "swapped": (
        "are swapped: {new} `gauges/",
        "",
        "are swapped: new `gauges/",
    ),
    "rank_missing": (
        "rank 2 wrote nothing from iteration 50 on (18 arrays)",
        "from iteration 50 on, on rank 2 only",
        "rank 2 wrote nothing from iteration 50 on (18 arrays)",
    ),
    "boundary": (
        "all in the last column, at the boundary of axis 1",
        "from iteration 40 on, on rank 2 only",
        None,
    ),
    "sign": (
        "the sign is flipped: {new} = -{golden}",
        "from iteration 50 on, on rank 1 only",
        "the sign is flipped: new = -golden",
    ),
    "unit": ("new = golden x 0.239006 (calorie and joule?)", "", None),
    "shift": (
        "{new} is {golden} shifted by 1 along axis 1",
        "from iteration 40 on, on all 3 ranks",
        "new is golden shifted by 1 along axis 1",
    ),
    "transposed": (
        "{new} is {golden} transposed: {new}[i, j] = {golden}[j, i]",
        "from iteration 30 on, on rank 2 only",
        "new is golden transposed: new[i, j] = golden[j, i]",
    ),
    "not_a_number": ("{new} is NaN", "from iteration 70 on, on rank 0 only", "values became NaN"),
    "precision": (
        "{new} is {golden} rounded to float32",
        "in all 10 iterations, on all 3 ranks",
        None,
    ),
}
READERS = ["What", "Where", "How much", "Likely cause", "Next"]


def facts_of(page: str) -> dict[str, str]:
    """What stands at the top of the page, by name."""
    top = page[page.index('<div id="lead">') : page.index("<main")]
    top = re.sub("<code>([^<]*)</code>", r"`\1`", top)  # a name; a command has an id
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", top, flags=re.S)
    # Without the buttons that copy a command.
    words = ((name, re.sub(r"<button.*?</button>|<[^>]+>", " ", text)) for name, text in found)
    return {name: spaced(html.unescape(text)) for name, text in words}


def spaced(text: str) -> str:
    text = text.replace("\u00d7", "x").replace("\u2212", "-")
    return re.sub(r"\s+", " ", text).strip()


def assert_said(folder: Path, printed: str, cause: str | None, where: str) -> None:
    facts = facts_of((folder / "report.html").read_text(encoding="utf-8"))
    wanted = [name for name in READERS if where or name != "Where"]
    assert [name for name in facts if name in wanted] == wanted
    assert facts["Next"]
    if where:
        assert where in facts["Where"].lower()
    printed = spaced(printed)
    if cause is not None:
        assert cause.lower() in facts["Likely cause"].lower()
        if "NaN" not in cause:
            # The cause stands before the first numbers.
            numbers = re.search(r"(golden|A) -?[0-9]", printed)
            assert printed.index(cause) < (len(printed) if numbers is None else numbers.start())
    assert facts["Next"].rpartition(": ")[2].strip(".").lower() in printed.lower()


def causes_of(folder: Path) -> list[tuple[int, int]]:
    document = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return [
        (told["held_count"], told["differing_count"])
        for check in document["checks"]
        for variable in check["variables"]
        for told in variable.get("explanations", ())
    ]


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("defect", CASES)
def test_a_check_says_what_happened(tmp_path: Path, defect: str) -> None:
    cause, where, _ = CASES[defect]
    printed = planted.checked(tmp_path / "case", defect)
    words = cause.format(golden="golden", new="new")
    assert_said(tmp_path / "case", printed, words, where)
    counts = causes_of(tmp_path / "case")
    assert counts
    assert all(0 < held <= differing for held, differing in counts)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("defect", [name for name in CASES if name != "unit"])
def test_a_comparison_says_what_happened(tmp_path: Path, defect: str) -> None:
    cause, where, _ = CASES[defect]
    printed = planted.compared(tmp_path / "case", defect)
    if defect == "rank_missing":
        cause, where = f"in B {cause}", where
    assert_said(tmp_path / "case", printed, cause.format(golden="A", new="B"), where)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("defect", CASES)
def test_a_check_without_data_says_what_is_known(tmp_path: Path, defect: str) -> None:
    _, where, cause = CASES[defect]
    printed = planted.checked(tmp_path / "case", defect, "residues")
    if defect == "precision":  # some of it is within the last step before the bound
        where = ""
    elif defect == "growing":
        where = "on all 3 ranks"
    assert_said(tmp_path / "case", printed, cause, where)


def test_of_the_same_program_nothing_is_said(tmp_path: Path) -> None:
    printed = planted.checked(tmp_path / "case", "nothing")
    assert "match" in printed.splitlines()[0]
    assert causes_of(tmp_path / "case") == []
    assert "Next" not in facts_of((tmp_path / "case/report.html").read_text(encoding="utf-8"))


def test_a_new_commit_is_bisected(tmp_path: Path) -> None:
    """Between the commit of the golden and that of the run lies the one that moved a number."""
    from ciwrap.model import CheckResult, RunResult, VariableResult, Verdict
    from ciwrap.report.top import next_steps

    def steps(golden: str, new: str, kind: str = "run") -> list[str]:
        variable = VariableResult("u", Verdict.DIFFER, element_count=3, differing_count=1)
        environment = {"git_commit": golden} if golden else {}
        check = CheckResult(
            "my check",
            Verdict.DIFFER,
            (variable,),
            golden_path="golden/my check.golden",
            golden_environment=environment,
        )
        run = RunResult(Verdict.DIFFER, (check,), kind=kind, environment={"git_commit": new})
        return [command for _, command in next_steps(run) if command]

    old, new = "1" * 40, "2" * 40
    assert steps(old, new) == [f"ciwrap bisect {'1' * 12} {'2' * 12} --check 'my check'"]
    assert steps(f"{old}-dirty", new) == steps(old, new)
    assert steps(old, new, "check")[0].endswith("--check 'my check' -- COMMAND")
    assert steps(old, old) == steps("", new) == steps("; rm -rf", new) == []
