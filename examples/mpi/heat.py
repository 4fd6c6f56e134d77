"""Heat in a rod over several MPI processes, whose sums depend on who is first.

    mpiexec -n 3 python heat.py out

Every fifth step the processes send their share of the heat to process 0, which adds up what comes
in the order in which it comes, as many programs do. So no two runs are equal to the bit. Process R
writes out/iter_NNNN/rank_R/{temperature,heat}.npy every 10 steps.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

CELLS = 2000  # of each process
STEPS, SUM_EVERY, WRITE_EVERY = 30, 5, 10


def total_in_order_of_arrival(comm: MPI.Comm, share: float) -> float:
    """The sum of all processes' shares; every process gets it."""
    # Stands for work that takes longer here than there, so that any process may be first.
    time.sleep(random.uniform(0, 1e-3))
    total = share
    if comm.rank == 0:
        for _ in range(comm.size - 1):
            total += comm.recv(source=MPI.ANY_SOURCE)
    else:
        comm.send(share, dest=0)
    return float(comm.bcast(total))


def with_neighbours(comm: MPI.Comm, field: np.ndarray) -> np.ndarray:
    """The field with the cell beyond either end: the rod is closed to a ring."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    before = comm.sendrecv(field[-1], dest=right, source=left)
    after = comm.sendrecv(field[0], dest=left, source=right)
    return np.concatenate([[before], field, [after]])


def main() -> None:
    comm, output = MPI.COMM_WORLD, Path(sys.argv[1])
    places = (np.arange(CELLS) + comm.rank * CELLS) / (CELLS * comm.size)
    field = 300 + 20 * np.sin(2 * np.pi * 7 * places) + 5 * np.cos(2 * np.pi * 31 * places)
    heat = wanted = total_in_order_of_arrival(comm, float(field.sum()))
    for step in range(STEPS + 1):
        if step % SUM_EVERY == 0:
            heat = total_in_order_of_arrival(comm, float(field.sum()))
            field = field * (wanted / heat)  # rounding shall not heat or cool the rod
        if step % WRITE_EVERY == 0:
            folder = output / f"iter_{step:04d}" / f"rank_{comm.rank}"
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / "temperature.npy", field)
            np.save(folder / "heat.npy", heat)
        around = with_neighbours(comm, field)
        field = field + 0.2 * (around[:-2] - 2 * field + around[2:])


if __name__ == "__main__":
    main()
