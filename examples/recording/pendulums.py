"""A chain of coupled pendulums.

ciwrap record -o before -- python pendulums.py
ciwrap record -o after -- python pendulums.py 7      (a defect in step 7)
ciwrap compare before after
"""

from __future__ import annotations

import sys

import numpy as np

import ciwrap

STEPS, DT = 12, 0.01


def main() -> None:
    wrong_step = int(sys.argv[1]) if sys.argv[1:] else -1
    angle = np.sin(np.linspace(0, 3, 2000))
    speed = np.zeros_like(angle)
    with ciwrap.Recorder("pendulums") as recorder:
        for n in range(STEPS):
            pull = np.roll(angle, 1) - 2 * angle + np.roll(angle, -1)
            speed += DT * (pull - np.sin(angle))
            recorder.record(n, "pulled", speed=speed)
            angle += DT * speed
            if n == wrong_step:
                angle[1000] += 1e-3
            recorder.record(n, angle=angle, speed=speed)


if __name__ == "__main__":
    main()
