"""Which variables on one side only are errors, and what is said of those that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciwrap.cli.main import run

# (strict, what the new run has too, what it lost) -> exit code
VERDICTS = [
    ("true", ["new"], [], 3),
    ("true", [], ["old"], 3),
    ("allow-new", ["new"], [], 0),
    ("allow-new", [], ["old"], 3),
    ("allow-new", ["new"], ["old"], 3),
    ("false", ["new"], ["old"], 0),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def configure(strict: str, more: str = "") -> None:
    Path("ciwrap.yaml").write_text(
        f"checks:\n  c:\n    outputs: out\n    strict: {{variables: {strict}}}\n{more}"
    )


def save(folder: str, *names: str) -> None:
    for name in names:
        path = Path(folder) / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.arange(5))


def told(*arguments: str, code: int) -> dict[str, Any]:
    assert run([*arguments, "--json", "r.json"]) == code
    check: dict[str, Any] = json.loads(Path("r.json").read_text())["checks"][0]
    return check


def names(check: dict[str, Any], key: str) -> list[str]:
    return [one["name"] for one in check.get(key, [])]


def is_as_told(check: dict[str, Any], strict: str, new: list[str], lost: list[str]) -> None:
    assert names(check, "extra_variables") == new
    assert names(check, "missing_variables") == lost
    is_lax = strict == "false"
    assert names(check, "left_out_variables") == (lost if is_lax else [])
    judged = {one["name"] for one in check["variables"] if one["verdict"] == "not_comparable"}
    assert judged == {*([] if strict != "true" else new), *([] if is_lax else lost)}
    levels = {
        one["variable"].removeprefix("iter 1 / "): one["level"]
        for one in check["messages"]
        if one.get("variable")
    }
    assert levels == {
        **dict.fromkeys(new if strict != "true" else [], "note" if not is_lax else "warning"),
        **dict.fromkeys(lost if is_lax else [], "warning"),
    }


@pytest.mark.parametrize(("strict", "new", "lost", "code"), VERDICTS)
def test_a_run_against_its_golden(strict: str, new: list[str], lost: list[str], code: int) -> None:
    configure(strict)
    save("out", "x", *lost)
    assert run(["accept"]) == 0
    for name in lost:
        Path(f"out/{name}.npy").unlink()
    save("out", *new)
    is_as_told(told("check", code=code), strict, new, lost)


@pytest.mark.parametrize("is_captured", [False, True])
@pytest.mark.parametrize(("strict", "new", "lost", "code"), VERDICTS)
def test_a_run_against_a_run(
    strict: str, new: list[str], lost: list[str], code: int, is_captured: bool
) -> None:
    """The first one is the golden side."""
    configure(strict)
    save("a/iter_1", "x", *lost)
    save("b/iter_1", "x", *new)
    if is_captured:
        for folder in "ab":
            assert run(["capture", folder, "--check", "c", "--settle", "0"]) == 0
    check = told("compare", "a", "b", "--check", "c", code=code)
    is_as_told(check, strict, new, lost)


@pytest.mark.parametrize(("strict", "code"), [("true", 3), ("allow-new", 0), ("false", 0)])
def test_a_run_that_went_on(strict: str, code: int) -> None:
    """Whole checkpoints that only the second run has are new variables, too."""
    configure(strict)
    for folder in ("a/iter_1", "b/iter_1", "b/iter_2"):
        save(folder, "x")
    told("compare", "a", "b", "--check", "c", code=code)
    told("compare", "b", "a", "--check", "c", code=0 if strict == "false" else 3)


def test_rows_that_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    """Another way to the verdict, and the same rule."""
    configure("allow-new", "    align_by: id\n")
    save("a", "x", "old", "id")
    save("b", "x", "new", "id")
    check = told("compare", "a", "b", "--check", "c", code=3)
    is_as_told(check, "allow-new", ["new"], ["old"])
    assert "old" in capsys.readouterr().out


@pytest.mark.parametrize("way", ["compare", "captures", "aligned"])
def test_what_is_ignored_of_the_reference_is_left_out(way: str) -> None:
    """What the first run holds is told apart from what only the second one has."""
    more = "    align_by: id\n" if way == "aligned" else ""
    save("out", "x", "gone", "in_golden", "id")
    configure("true", more)
    Path("out").rename("a")
    Path("ciwrap.yaml").write_text(
        f"checks:\n  c:\n    outputs: out\n    ignore: ['*n_golden', gone, in_run]\n{more}"
    )
    save("out", "x", "in_golden", "in_run", "id")
    Path("out").rename("b")
    if way == "captures":
        for folder in "ab":
            assert run(["capture", folder, "--check", "c", "--settle", "0"]) == 0
    check = told("compare", "a", "b", "--check", "c", code=0)
    assert names(check, "ignored_variables") == ["gone", "in_golden", "in_run"]
    assert names(check, "left_out_variables") == ["gone", "in_golden"]
    assert check["coverage"]["left_out"] == 2
