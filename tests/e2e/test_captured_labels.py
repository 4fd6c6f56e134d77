"""What a variable is called and measured in counts also where trees alone are compared."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest
from e2e.history_runs import ciwrap

if TYPE_CHECKING:
    from pathlib import Path


def write(run: Path, units: str, *, is_angle: bool = False) -> Path:
    """One checkpoint of a variable in these units; with a period it has no trees."""
    run.mkdir()
    with h5py.File(run / "iter_1.h5", "w") as file:
        file["angle" if is_angle else "x"] = np.arange(100.0)
        file["angle" if is_angle else "x"].attrs["units"] = units
    return run


@pytest.mark.parametrize("state", ["data", "A captured", "B captured", "both", "fingerprints"])
def test_units_of_another_kind_are_not_comparable(tmp_path: Path, state: str) -> None:
    for other, code in (("m", 0), ("km", 3)):
        folder = tmp_path / other
        folder.mkdir()
        sides = {"A": write(folder / "A", "m"), "B": write(folder / "B", other)}
        for name, run in sides.items():
            if name in state or state in ("both", "fingerprints"):
                assert ciwrap(folder, "capture", run, "--settle=0")[0] == 0
            if state == "fingerprints":
                shutil.move(run / "iter_1.h5", folder / f"{name}.kept")
        found, document = ciwrap(folder, "compare", *sides.values())
        assert found == code
        (one,) = document["checks"][0]["variables"]
        assert ("'m' in A, 'km' in B" in one.get("reason", "")) == (code == 3)


def test_units_of_what_has_no_tree(tmp_path: Path) -> None:
    """The index of a capture holds them for a variable with a period, too."""
    config = tmp_path / "ciwrap.yaml"
    config.write_text("checks: {c: {outputs: A, atol: 1, variables: {angle: {period: 360}}}}\n")
    check = ("--config", config, "--check", "c")
    sides = [write(tmp_path / name, name, is_angle=True) for name in "AB"]
    for run in sides:
        assert ciwrap(tmp_path, "capture", run, "--settle=0", *check)[0] == 0
    code, document = ciwrap(tmp_path, "compare", *sides, *check)
    (one,) = document["checks"][0]["variables"]
    assert (code, "'A' in A, 'B' in B" in one["reason"]) == (3, True)


@pytest.mark.parametrize("keeps_data", [True, False])
def test_a_capture_that_cannot_be_read_hides_nothing(tmp_path: Path, keeps_data: bool) -> None:
    """Whichever byte is damaged: with data these decide, without them perhaps nothing does."""
    sides = [write(tmp_path / name, "m") for name in "AB"]
    with h5py.File(sides[1] / "iter_1.h5", "a") as file:
        file["x"][50] += 1
    for run in sides:
        assert ciwrap(tmp_path, "capture", run, "--settle=0")[0] == 0
        if not keeps_data:
            (run / "iter_1.h5").unlink()
    path = sides[0] / ".ciwrap.tree"
    whole = path.read_bytes()
    for at in range(4096, len(whole), 97):
        damaged = bytearray(whole)
        damaged[at] ^= 0x20
        path.write_bytes(damaged)
        code, _ = ciwrap(tmp_path, "compare", *sides)
        assert code in ((1,) if keeps_data else (1, 3)), at
