"""Files as solvers leave them, through the command line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command_line import call
from fortran_files import fortran_bytes

HOW_TO = Path(__file__).resolve().parents[2] / "docs/how-to/compare-whole-runs.md"
HEAT = """
program heat
  implicit none
  integer :: it, i
  real(8) :: u(100), v(100)
  u = 0; u(50) = 1
  open(10, file="u.unf", form="unformatted")
  do it = 1, 3
    v = u
    do i = 2, 99
      u(i) = v(i) + 0.25d0 * (v(i-1) - 2 * v(i) + v(i+1))
    end do
    write(10) it, 100
    write(10) u
    write(*, '(a,i0,a,es23.15)') "step ", it, " energy = ", sum(u**2)
  end do
end program
"""


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


def test_one_object_in_an_archive_leaves_its_arrays_compared(tmp_path: Path) -> None:
    for folder, last in (("a", 1.0), ("b", 1.5)):
        (tmp_path / folder).mkdir()
        facts = np.array([{"made by": folder}])
        np.savez(tmp_path / folder / "state.npz", u=np.array([0.0, last]), facts=facts)
    told = run("compare", "a", "b", folder=tmp_path)
    assert told.returncode == 3
    assert "holds Python objects" in told.stdout
    assert "[1]: A 1.0, B 1.5" in told.stdout
    left_out = run("compare", "a", "b", "--ignore", "state/facts", folder=tmp_path)
    assert left_out.returncode == 1
    assert "not compared: 1 variable (ignore)" in left_out.stdout


def test_rows_of_a_table_are_paired_by_the_column_of_steps(tmp_path: Path) -> None:
    (tmp_path / "ciwrap.yaml").write_text(
        "version: 1\nchecks:\n  energy:\n    outputs: md.ener\n    format: text\n"
        "    options: {iteration: Step Nr.}\n    ignore: ['UsedTime[s]']\n    atol: 1e-6\n"
    )
    names = "#     Step Nr.          Pot.[a.u.]        UsedTime[s]\n"
    path = tmp_path / "md.ener"
    path.write_text(names + "  0  -1.5  0.0\n  5  -1.25  0.1\n")
    accepted = run("accept", folder=tmp_path)
    assert accepted.returncode == 0, accepted.stderr
    path.write_text(names + "  0  -1.5  0.2\n  5  -1.25  0.3\n")
    assert run("check", folder=tmp_path).returncode == 0
    path.write_text(names + "  0  -1.5  0.2\n  5  -1.24  0.3\n")
    differs = run("check", folder=tmp_path)
    assert differs.returncode == 1
    assert "Pot.[a.u.]" in differs.stdout
    assert "step 5" in differs.stdout
    path.write_text(names + "  0  -1.5  0.2\n  6  -1.25  0.3\n")
    other = run("check", folder=tmp_path)
    assert other.returncode == 3
    assert "step 6" in other.stdout + other.stderr


def test_free_text_in_a_folder_is_no_table(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "stdout.txt").write_text(" step 1 of 2\n step 2 of 2\n")
        (tmp_path / folder / "u.dat").write_text("0.0 1.0\n0.5 2.0\n")
    told = run("compare", "a", "b", folder=tmp_path)
    assert told.returncode == 0
    assert "may be a text and no table" in told.stdout
    assert "match  stdout.txt" in run("compare", "a", "b", "-v", folder=tmp_path).stdout
    said = run("compare", "a", "b", "--format", "*.txt=tokens", folder=tmp_path)
    assert said.returncode == 0, said.stdout + said.stderr


def test_atoms_of_a_dump_in_another_order(tmp_path: Path) -> None:
    head = "ITEM: TIMESTEP\n50\nITEM: NUMBER OF ATOMS\n2\nITEM: BOX BOUNDS pp pp pp\n"
    head += "0 2\n" * 3 + "ITEM: ATOMS id x\n"
    for folder, rows in (
        ("a", "1 0.5\n2 1.5\n"),
        ("b", "2 1.5\n1 0.5\n"),
        ("c", "2 1.25\n1 0.5\n"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "dump.lammpstrj").write_text(head + rows)
    assert run("compare", "a", "b", folder=tmp_path).returncode != 0
    assert run("compare", "a", "b", "--align-by", "dump/id", folder=tmp_path).returncode == 0
    differs = run("compare", "a", "c", "--align-by", "dump/id", folder=tmp_path)
    assert differs.returncode == 1
    assert "50" in differs.stdout


def test_a_fortran_solver_in_ci_as_the_how_to_has_it(tmp_path: Path) -> None:
    """Its log and its records, each with a golden; a changed coefficient is told in both."""
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is not installed")
    examples = re.findall(r"```yaml\n(.*?)```", HOW_TO.read_text(), re.DOTALL)
    (config,) = [one for one in examples if "format: fortran" in one]
    (tmp_path / "ciwrap.yaml").write_text(config)
    for source, code in ((HEAT, 0), (HEAT.replace("0.25d0", "0.2500001d0"), 1)):
        (tmp_path / "heat.f90").write_text(source)
        subprocess.run(["gfortran", "heat.f90", "-o", "heat"], cwd=tmp_path, check=True)
        if not code:
            run("run", folder=tmp_path)
            assert run("accept", folder=tmp_path).returncode == 0
        told = run("run", folder=tmp_path)
        assert told.returncode == code, told.stdout + told.stderr
    assert "step 1, line 1" in told.stdout
    assert "differ  field" in told.stdout.lower()
