"""The compiled part of the demonstration, and a memory-read kernel for the benchmarks."""

from typing import Any

from numpy.typing import NDArray

class ParticleMesh:
    """Two-dimensional electrostatic particle-mesh simulation on 64 x 64 nodes, two ranks in one process.

    Raises ValueError for zero particles or threads, or an unknown rank.
    """

    def __init__(self, *, seed: int, particles_per_rank: int, threads: int) -> None: ...
    def step(self) -> None:
        """One time step of 0.1; releases the GIL."""
    def plant_boundary_sign_error(self, rank: int) -> None: ...
    def state(self, rank: int) -> dict[str, NDArray[Any]]:
        """Copies: id (n,) int32; x, y (n,) float64; vx, vy (n,) float32; density (32, 64) float32 and
        potential (32, 64) float64, the rank's rows of the mesh. Raises IndexError for an unknown rank."""

def read_pass(data: Any, threads: int) -> int:
    """Reads a contiguous buffer once with `threads` threads; the sum of its 64-bit words modulo 2^64."""
