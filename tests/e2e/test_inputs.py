"""Files as solvers leave them, through the command line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
from command_line import call
from fortran_files import fortran_bytes

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return call(*arguments, folder=folder, environment=os.environ)


def test_fortran_is_offered_and_compared_once_it_is_described(tmp_path: Path) -> None:
    """Offered where nothing describes it, and compared where something does."""
    for folder, last in (("a", 1.0), ("b", 1.5)):
        (tmp_path / folder).mkdir()
        records = [np.array([1, 3], "<i4").tobytes(), np.array([0.0, 0.5, last]).tobytes()]
        (tmp_path / folder / "state.unf").write_bytes(fortran_bytes(records))
    unread = run("compare", "a", "b", folder=tmp_path)
    assert unread.returncode == 3
    assert "looks like records of unformatted Fortran" in unread.stdout + unread.stderr
    lacks = run("compare", "a", "b", "--format", "*.unf=fortran", folder=tmp_path)
    assert lacks.returncode == 3
    assert "nothing says what its records hold" in lacks.stdout + lacks.stderr
    (tmp_path / "ciwrap.yaml").write_text(
        "version: 1\nchecks:\n  state:\n    outputs: state.unf\n    format: fortran\n"
        "    options:\n      records: [{names: [it, n], dtype: i4}, {u: f8}]\n    atol: 1e-6\n"
    )
    told = run("compare", "a", "b", "--check", "state", folder=tmp_path)
    assert told.returncode == 1
    assert "[2]" in told.stdout
    same = run("compare", "a", "a", "--check", "state", folder=tmp_path)
    assert same.returncode == 0, same.stdout + same.stderr
