"""The program `ciwrap demo` checks: a particle-mesh simulation with real floating-point noise.

    python -m ciwrap.studies.simulation OUT [--threads 2] [--seed 1] [--defect boundary-sign]

writes OUT/iter_NNNN/rank_R/{id,x,y,vx,vy,density,potential}.npy. Its threads add charge
to a float32 mesh in changing order, so with two threads and more no two runs are equal to the bit;
with one thread all are.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from ciwrap._demo import ParticleMesh
from ciwrap.base.late import numpy as np

RANK_COUNT = 2
DEFECTS = ("boundary-sign",)


class Settings(Struct, frozen=True):
    """What a run is made of.

    iterations: time steps of 0.1 / (plasma frequency); every: steps between two checkpoints.
    particles_per_rank: float64 positions and float32 velocities are written for each.
    defect: None or one of DEFECTS, from time step `defect_from` on, on `defect_rank` alone.
    """

    iterations: int = 40
    every: int = 10
    particles_per_rank: int = 10_000
    threads: int = 2
    seed: int = 1
    defect: str | None = None
    defect_from: int = 30
    defect_rank: int = 1

    def __post_init__(self) -> None:
        if self.iterations < 1 or self.every < 1:
            raise ValueError("iterations and every must be at least 1")
        if self.defect is not None and self.defect not in DEFECTS:
            raise ValueError(f"no defect {self.defect!r}; known: {', '.join(DEFECTS)}")


def run_simulation(output: Path, settings: Settings | None = None) -> list[Path]:
    """Runs the simulation and returns the files written under `output`, in order.

    Raises FileExistsError if `output` holds iterations already: a mixture of two runs is no run.
    """
    settings = settings or Settings()
    if any(output.glob("iter_*")):
        raise FileExistsError(f"{output} already holds a run; remove it or choose another folder")
    mesh = ParticleMesh(
        seed=settings.seed,
        particles_per_rank=settings.particles_per_rank,
        threads=settings.threads,
    )
    written: list[Path] = []
    for iteration in range(1, settings.iterations + 1):
        if settings.defect == "boundary-sign" and iteration == settings.defect_from:
            mesh.plant_boundary_sign_error(rank=settings.defect_rank)
        mesh.step()
        if iteration % settings.every == 0:
            written += _write_checkpoint(mesh, output / f"iter_{iteration:04d}")
    return written


def _write_checkpoint(mesh: ParticleMesh, folder: Path) -> list[Path]:
    written = []
    for rank in range(RANK_COUNT):
        rank_folder = folder / f"rank_{rank}"
        rank_folder.mkdir(parents=True)
        for name, values in mesh.state(rank).items():
            path = rank_folder / f"{name}.npy"
            np.save(path, values, allow_pickle=False)
            written.append(path)
    return written


def main(arguments: Sequence[str] | None = None) -> None:
    defaults = Settings()
    parser = argparse.ArgumentParser(
        prog="python -m ciwrap.studies.simulation",
        description="A small particle-mesh simulation with real floating-point noise.",
    )
    parser.add_argument("output", type=Path, help="folder for the run")
    for name, text in (
        ("iterations", "time steps"),
        ("every", "steps from one checkpoint to the next"),
        ("particles_per_rank", "particles of each of the two ranks"),
        ("threads", "threads that deposit charge; 1 is deterministic"),
        ("seed", "seed of the initial particles"),
        ("defect_from", "first step with the defect"),
        ("defect_rank", "rank that has the defect"),
    ):
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=int,
            default=getattr(defaults, name),
            metavar="N",
            help=f"{text} (default: %(default)s)",
        )
    parser.add_argument("--defect", choices=DEFECTS, help="plant this defect")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier run")
    options = vars(parser.parse_args(arguments))
    output = options.pop("output")
    if options.pop("overwrite"):
        for folder in output.glob("iter_[0-9][0-9][0-9][0-9]"):
            shutil.rmtree(folder)
    try:
        run_simulation(output, Settings(**options))
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
