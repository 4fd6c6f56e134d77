"""Planets without weight around a sun, some on each MPI process.

ciwrap record -o before -- mpiexec -n 2 python orbits.py
ciwrap record -o after -- mpiexec -n 2 python orbits.py 7      (a defect in step 7)
ciwrap compare before after
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

import ciwrap

STEPS, DT, PLANETS = 12, 0.01, 500


def main() -> None:
    wrong_step = int(sys.argv[1]) if sys.argv[1:] else -1
    comm = MPI.COMM_WORLD
    radius = 1 + (np.arange(PLANETS) + comm.rank * PLANETS) / 100
    place = np.stack([radius, np.zeros(PLANETS)], axis=1)
    speed = np.stack([np.zeros(PLANETS), 1 / np.sqrt(radius)], axis=1)
    with ciwrap.Recorder("orbits", comm=comm) as recorder:
        for n in range(STEPS):
            distance = np.sqrt((place**2).sum(axis=1, keepdims=True))
            speed -= DT * place / distance**3
            place += DT * speed
            if n == wrong_step and comm.rank == comm.size - 1:
                place[PLANETS // 2, 1] += 1e-3
            recorder.record(n, place=place, speed=speed)
            if recorder.should_stop():
                break


if __name__ == "__main__":
    main()
