"""The configurations of docs/how-to/logs.md load, and find what the programs print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ciwrap.formats.log import LogReader
from ciwrap.project.config import load_text

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/how-to/logs.md").read_text(encoding="utf-8")
# Of named numbers; a log that is compared token by token has a format of its own.
BLOCKS = [
    block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "format: log" in block
]
HEAT = """\
iteration 1
residual norm: 1.0D-02
iteration 2
residual norm: 2.5D-04
Total energy =   1.234567890 J
finished
"""


@pytest.mark.parametrize("text", BLOCKS)
def test_every_configuration_loads(text: str) -> None:
    for check in load_text(text, ROOT / "ciwrap.yaml").checks:
        assert check.format == "log"


@pytest.mark.parametrize(
    ("name", "data"), [("h2o", "cp2k.out"), ("melt", "log.lammps"), ("water", "pyscf.log")]
)
def test_the_codes_print_what_the_page_looks_for(name: str, data: str) -> None:
    checks = [one for text in BLOCKS for one in load_text(text, ROOT / "ciwrap.yaml").checks]
    (check,) = (one for one in checks if one.name == name)
    with LogReader().open(ROOT / "tests/data/logs" / data, options=check.options) as source:
        assert source.variables
        assert all(one.fault is None for one in source.variables)
        assert not source.faults


def test_the_first_example_finds_its_numbers(tmp_path: Path) -> None:
    (tmp_path / "stdout.txt").write_text(HEAT, encoding="utf-8")
    (check,) = load_text(BLOCKS[0], tmp_path / "ciwrap.yaml").checks
    with LogReader().open(tmp_path / "stdout.txt", options=check.options) as source:
        found = {one.name: one.shape for one in source.variables}
        assert found == {"total": (1,), "residual": (2,), "residual.step": (2,), "warnings": ()}
        assert source.read("residual", 0, 2).tolist() == [1e-2, 2.5e-4]
        assert source.info("total").labels == (("unit", "J"),)
