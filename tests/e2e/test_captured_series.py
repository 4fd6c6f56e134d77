"""Numbers of a text that have steps: captured or not, they are paired by these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.history_runs import ciwrap

if TYPE_CHECKING:
    from pathlib import Path

STEPS = {"A": range(6), "later": range(1, 7), "same": range(6)}
CHECKS = """checks:
  log:
    format: log
    outputs: out.txt
    atol: 1
    ignore: [e.step]
    values: {e: {match: "step {iteration:int} e = {e}"}}
  table:
    format: text
    outputs: out.dat
    options: {iteration: n}
    atol: 1
    ignore: [n, "*/n"]
"""


def write(folder: Path) -> None:
    """In `later` all numbers stand where A has them, each a step later."""
    (folder / "ciwrap.yaml").write_text(CHECKS)
    for run, steps in STEPS.items():
        (folder / run).mkdir()
        pairs = [(step, 100.0 * at) for at, step in enumerate(steps)]
        lines = [f"step {step} e = {e}\n" for step, e in pairs]
        (folder / run / "out.txt").write_text("".join(lines))
        (folder / run / "out.dat").write_text("# n e\n" + "".join(f"{n} {e}\n" for n, e in pairs))


@pytest.mark.parametrize("captured", [(), ("A",), ("later", "same"), ("A", "later", "same")])
@pytest.mark.parametrize("check", ["log", "table"])
def test_steps_pair_whatever_is_captured(
    tmp_path: Path, check: str, captured: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    words = (f"--check={check}", f"--config={tmp_path / 'ciwrap.yaml'}")
    for run in captured:
        for _ in range(2):
            code, document = ciwrap(tmp_path, "capture", tmp_path / run, "--settle=0", *words)
            assert code == 0
        assert (document["captured"], document["kept"]) == ([], [[None, None]])
    capsys.readouterr()
    for other, expected in (("same", 0), ("later", 3)):
        code, document = ciwrap(tmp_path, "compare", tmp_path / "A", tmp_path / other, *words)
        assert code == expected
    assert "only in A: step 0" in capsys.readouterr().out


def test_a_fingerprint_knows_no_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    words = ("--check=log", f"--config={tmp_path / 'ciwrap.yaml'}")
    target = tmp_path / "A.tree"
    assert ciwrap(tmp_path, "capture", tmp_path / "A", "-o", target, "--settle=0", *words)[0] == 0
    assert "e: its values are paired by the steps" in capsys.readouterr().out
    assert ciwrap(tmp_path, "compare", target, tmp_path / "later", *words)[0] == 3
