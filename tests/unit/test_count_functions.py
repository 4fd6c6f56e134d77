"""tools/count-functions: its counts are there, and the same every time."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "count-functions"))


def test_a_check_enters_the_same_functions_every_time(tmp_path: Path) -> None:
    TOOL["make_project"](tmp_path)
    first, again = (TOOL["enter"](tmp_path, ("check",), 0) for _ in range(2))
    functions, comprehensions = first
    assert ("cli/main.py", "run") in [(file, name) for file, _, name in functions]
    assert comprehensions
    assert len(set(functions)) == len(functions)
    assert again == first


def test_lengths_are_those_of_the_definitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text(
        "import os\n\n@cached\ndef outer():\n    def inner():\n        return 1\n    return inner\n"
    )
    assert sorted(TOOL["function_lengths"](tmp_path)) == [(2, "a.py:5 inner"), (4, "a.py:4 outer")]
    TOOL["print_lengths"]()
    assert " functions in all; lines: mean " in capsys.readouterr().out
