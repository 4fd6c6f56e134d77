"""The MPIs to test with: those on PATH, and in the folders that CIWRAP_MPI_BIN names."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from recorded_runs import build

if TYPE_CHECKING:
    from collections.abc import Iterator

MPIS = ("MPICH", "Open MPI")

# Open MPI wants to be told that root is meant, and that processes may share cores.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


class Mpi(NamedTuple):
    """A folder with mpicc and mpiexec of one MPI."""

    folder: Path

    def start(self, ranks: int) -> list[str]:
        """The words before a program."""
        return [str(self.folder / "mpiexec"), "-n", str(ranks)]

    def build(self, arguments: list[str | Path], target: Path) -> Path:
        return build(str(self.folder / "mpicc"), arguments, target)


def need_mpi(name: str) -> Mpi:
    """The MPI of one of `MPIS`, or the test is skipped."""
    found = _found().get(name)
    if found is None:
        pytest.skip(f"there is no {name} to compile with here")
    return Mpi(found)


@cache
def _found() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in _folders():
        name = _name(folder)
        if name is not None and _can_compile(folder):
            found.setdefault(name, folder)
    return found


def _folders() -> Iterator[Path]:
    for variable in ("CIWRAP_MPI_BIN", "PATH"):
        for folder in map(Path, os.environ.get(variable, "").split(os.pathsep)):
            if all((folder / one).is_file() for one in ("mpicc", "mpiexec")):
                yield folder


def _name(folder: Path) -> str | None:
    done = _run(folder / "mpiexec", "--version")
    if "Open MPI" in done.stdout or "OpenRTE" in done.stdout:
        return "Open MPI"
    return "MPICH" if "HYDRA" in done.stdout else None


def _can_compile(folder: Path) -> bool:
    """A distribution's launcher may come without headers."""
    done = _run(folder / "mpicc", "-E", "-x", "c", "-", text="#include <mpi.h>\n")
    return done.returncode == 0


def _run(*words: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, words)], input=text, capture_output=True, text=True, check=False, timeout=60
    )
