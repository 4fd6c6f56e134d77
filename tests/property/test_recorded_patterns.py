"""The recording library's patterns mean what those of ciwrap.yaml mean."""

from __future__ import annotations

import json
import random
import sys
from typing import TYPE_CHECKING

import pytest
from recorded_runs import captured, need_library, recording, start

from ciwrap.model import SettingsLayer, VariableId
from ciwrap.project.config import load_text
from ciwrap.recording.native import bounds_table

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.runs.capture_index import CapturedVariable

PROGRAM = """
import sys, numpy as np, ciwrap
r = ciwrap.Recorder("names")
x = np.zeros(1)
names = open("names.txt", encoding="utf-8").read().split("\\n")
assert r.record(0, **{name: x for name in names}) is None
r.close()
"""
PIECES = ["a", "b", "c", "-", "[", "]", "!", "^", "*", "?", "é", "€", "🜁", "\\\\", "/", "@", " "]
# Where shells, fnmatch(3) and Python's fnmatch part ways.
HARD = ["[^a]", "[!a]", "[]a]", "[!]a]", "[^]a]", "[^]", "[!]", "[]", "[", "[a", "a]", "[a-c]"]
HARD += ["[c-a]", "[a-]", "[-a]", "[!-a]", "[--a]", "[a-c-é]", "[[:alpha:]]", "x[]y[^a]", "\\\\*"]
HARD += ["?", "??", "*é?", "[€-🜁]*", "**", "*?*", "a**b", "[!é]", "[^^]", "[!!]", "[!^]", "[a^]"]


def words(draw: random.Random, count: int, most: int) -> list[str]:
    return ["".join(draw.choices(PIECES, k=draw.randint(1, most))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(12))
def test_patterns_mean_the_same(seed: int, tmp_path: Path) -> None:
    """Each pattern gives another bound, and the last that matches counts."""
    need_library()
    draw = random.Random(seed)
    names = sorted({*words(draw, 300, 4), *HARD, "a", "é", "b", "🜁"})
    patterns = [*words(draw, 12, 3), *draw.sample(HARD, 12)]
    draw.shuffle(patterns)
    bounds = {one: {"atol": n + 1} for n, one in enumerate(patterns) if " / " not in one}
    said = {"checks": {"c": {"outputs": "out", "atol": 0, "variables": bounds}}}
    text = json.dumps(said, ensure_ascii=False)
    check = load_text(text, tmp_path / "ciwrap.yaml").checks[0]
    table = bounds_table(check, SettingsLayer())
    assert table is not None
    (tmp_path / "table.txt").write_text(table, encoding="utf-8")
    (tmp_path / "names.txt").write_text("\n".join(names), encoding="utf-8")
    env = recording(tmp_path / "run", CIWRAP_RECORD_BOUNDS=str(tmp_path / "table.txt"))
    done = start([sys.executable, "-c", PROGRAM], env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {one.identity.name: bound_of(one) for one in captured(tmp_path / "run").values()}
    assert found == {n: check.settings_for(VariableId(n)).bound.atol for n in names}


def bound_of(one: CapturedVariable) -> float:
    assert one.plain is not None
    return one.plain.parameters.atol
