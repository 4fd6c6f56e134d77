"""What mpiexec tells the processes that it starts."""

from __future__ import annotations

import os

# Of Open MPI, and of MPICH and those made from it.
WORLD_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def process_count() -> int:
    """How many processes mpiexec has started with this one; 1 without mpiexec.

    An MPI library of another make sees one of them, whatever this says.
    """
    told = (os.environ.get(name, "") for name in WORLD_SIZES)
    return max((int(text) for text in told if text.isdecimal()), default=1)
