"""tests/mutation.toml names files and tests that are there, and each module once."""

from __future__ import annotations

import runpy
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "mutate"))
GROUPS = TOOL["tomllib"].loads(TOOL["TABLE"].read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_names_what_is_there(name: str) -> None:
    group = GROUPS[name]
    assert set(group) == {"modules", "tests", "left_out"}
    for path in (*group["modules"], *group["tests"]):
        assert (ROOT / path).is_file(), path
    for test in group["left_out"]:
        path, _, function = test.partition("::")
        assert path in group["tests"]
        assert f"def {function.partition('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8")


def test_no_module_is_in_two_groups() -> None:
    modules = list(chain.from_iterable(group["modules"] for group in GROUPS.values()))
    assert len(set(modules)) == len(modules)
