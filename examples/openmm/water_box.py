"""A box of salt water in OpenMM, run as many times as you like from one and the same start.

    python water_box.py prepare INPUT              build, relax and store the start (a few seconds)
    python water_box.py run INPUT OUT --threads 2  300 steps of 2 fs, a checkpoint every 15

A run writes OUT/iter_NNNN/rank_0/{positions,velocities,forces}.npy (nm, nm/ps, kJ/mol/nm; float64,
one row per atom) and OUT/energy.csv. With one thread and --deterministic two runs are equal to the
bit. With two threads they are not: forces are summed in changing order, and molecular dynamics
amplifies the difference from frame to frame.
"""

from __future__ import annotations

import argparse
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openmm
from openmm import app, unit

if TYPE_CHECKING:
    from collections.abc import Iterator

BOX_NM = 3.0
STEP_PS = 0.002


def prepare(folder: Path) -> None:
    """Writes system.xml and state.xml: water and 0.15 mol/l salt, relaxed, at 300 K."""
    random.seed(11)  # Modeller places the ions with Python's own generator
    force_field = app.ForceField("amber14/tip3pfb.xml")
    modeller = app.Modeller(app.Topology(), [] * unit.nanometer)
    modeller.addSolvent(
        force_field,
        model="tip3p",
        boxSize=openmm.Vec3(BOX_NM, BOX_NM, BOX_NM) * unit.nanometer,
        ionicStrength=0.15 * unit.molar,
    )
    system = force_field.createSystem(
        modeller.topology,
        nonbondedMethod=app.PME,
        nonbondedCutoff=0.9 * unit.nanometer,
        constraints=app.HBonds,
        rigidWater=True,
    )
    context = _context(system, threads=1, deterministic=True)
    context.setPositions(modeller.positions)
    openmm.LocalEnergyMinimizer.minimize(context, 50.0, 60)
    context.setVelocitiesToTemperature(300.0, 7)
    state = context.getState(getPositions=True, getVelocities=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "system.xml").write_text(openmm.XmlSerializer.serialize(system))
    (folder / "state.xml").write_text(openmm.XmlSerializer.serialize(state))


Arrays = dict[str, np.ndarray]


def run(
    start: Path, output: Path, *, threads: int, deterministic: bool, steps: int, every: int
) -> None:
    """Runs from the stored start; writes a checkpoint at step 0 and after every `every` steps."""
    output.mkdir(parents=True, exist_ok=True)
    with (output / "energy.csv").open("w") as energy:
        energy.write("step,potential,kinetic\n")
        for step, arrays, (potential, kinetic) in checkpoints(
            start, threads=threads, deterministic=deterministic, steps=steps, every=every
        ):
            folder = output / f"iter_{step:04d}" / "rank_0"
            folder.mkdir(parents=True)
            for name, array in arrays.items():
                np.save(folder / f"{name}.npy", array)
            energy.write(f"{step},{potential!r},{kinetic!r}\n")


def checkpoints(
    start: Path,
    *,
    threads: int,
    deterministic: bool,
    steps: int,
    every: int,
    other_step: tuple[int, float] | None = None,
) -> Iterator[tuple[int, Arrays, tuple[float, float]]]:
    """(step, arrays of shape (atom, 3), potential and kinetic energy in kJ/mol), from step 0 on.

    other_step: (S, D): from step S on, a multiple of `every`, steps take D ps.
    """
    system = openmm.XmlSerializer.deserialize((start / "system.xml").read_text())
    context = _context(system, threads=threads, deterministic=deterministic)
    context.setState(openmm.XmlSerializer.deserialize((start / "state.xml").read_text()))
    for step in range(0, steps + 1, every):
        if step:
            context.getIntegrator().step(every)
        if other_step is not None and step == other_step[0]:
            context.getIntegrator().setStepSize(other_step[1])
        state = context.getState(
            getPositions=True, getVelocities=True, getForces=True, getEnergy=True
        )
        arrays = {
            name: np.asarray(quantity._value, dtype=np.float64)
            for name, quantity in (
                ("positions", state.getPositions(asNumpy=True)),
                ("velocities", state.getVelocities(asNumpy=True)),
                ("forces", state.getForces(asNumpy=True)),
            )
        }
        energies = state.getPotentialEnergy()._value, state.getKineticEnergy()._value
        yield step, arrays, energies


def _context(system: openmm.System, *, threads: int, deterministic: bool) -> openmm.Context:
    return openmm.Context(
        system,
        openmm.VerletIntegrator(STEP_PS),
        openmm.Platform.getPlatformByName("CPU"),
        {"Threads": str(threads), "DeterministicForces": "true" if deterministic else "false"},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Salt water in OpenMM, for ciwrap.")
    commands = parser.add_subparsers(dest="command", required=True)
    prepare_parser = commands.add_parser("prepare", help="build and relax the start")
    prepare_parser.add_argument("input", type=Path)
    run_parser = commands.add_parser("run", help="run from the start")
    run_parser.add_argument("input", type=Path)
    run_parser.add_argument("output", type=Path)
    run_parser.add_argument("--threads", type=int, default=2)
    run_parser.add_argument("--deterministic", action="store_true")
    run_parser.add_argument("--steps", type=int, default=300)
    run_parser.add_argument("--every", type=int, default=15)
    run_parser.add_argument("--overwrite", action="store_true", help="replace an earlier run")
    options = parser.parse_args()
    if options.command == "run" and any(options.output.glob("iter_*")):
        if not options.overwrite:
            parser.error(f"{options.output} already holds a run; choose another, or --overwrite")
        for folder in options.output.glob("iter_[0-9][0-9][0-9][0-9]"):
            shutil.rmtree(folder)
    if options.command == "prepare":
        prepare(options.input)
    else:
        run(
            options.input,
            options.output,
            threads=options.threads,
            deterministic=options.deterministic,
            steps=options.steps,
            every=options.every,
        )


if __name__ == "__main__":
    main()
