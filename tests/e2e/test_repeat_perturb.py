"""`ciwrap repeat --perturb`: runs on inputs a hair apart, which themselves stay as they are."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.repeated import files_in

from ciwrap.project.settings import PerturbSettings
from ciwrap.studies.repeat.run import write_inputs

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.cli_project import Project

PROGRAM = """\
import os, sys
import numpy as np
os.makedirs("out", exist_ok=True)
path = sys.argv[1]
if path.endswith(".npy"):
    x = np.load(path)
else:
    import h5py
    with h5py.File(path) as file:
        x = file["group/x"][...]
np.save("out/x.npy", x)
"""
START = np.concatenate([[0.0], np.linspace(1, 2, 399)]).reshape(20, 20)


def configure(project: Project, file: str, perturb: str, command: str = "{inputs}/") -> None:
    for path in (project.folder / "out").iterdir():
        path.unlink()
    (project.folder / "program.py").write_text(PROGRAM)
    (project.folder / "init").mkdir(exist_ok=True)
    words = json.dumps([sys.executable, "program.py", f"{command}{file}"])
    (project.folder / "ciwrap.yaml").write_text(
        f"run: {words}\nrepeat: {{perturb: {perturb}}}\nchecks: {{mesh: {{outputs: out}}}}\n"
    )


def write(path: Path, values: np.ndarray) -> None:
    if path.suffix == ".npy":
        np.save(path, values)
        return
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(path, "w") as file:
        file["group/x"] = values
        file["group/count"] = np.arange(5)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", ["state.npy", "state.h5", "state.nc"])
@pytest.mark.parametrize(("dtype", "size"), [("f8", 1e-14), ("f4", 1e-6)])
def test_runs_begin_a_hair_apart(project: Project, name: str, dtype: str, size: float) -> None:
    configure(project, f"init/{name}", "{files: 'init/*'}")
    path = project.folder / "init" / name
    write(path, START.astype(dtype))
    before = path.read_bytes()
    outcome = project.run("repeat", "-n", "4", "--perturb", "--keep")
    assert outcome.code == 0, outcome
    assert path.read_bytes() == before
    runs = [
        np.load(project.folder / f".ciwrap/repeat/run_{n}/out/x.npy").astype(float)
        for n in (1, 2, 3, 4)
    ]
    first = START.astype(dtype).astype(float)
    assert np.array_equal(runs[0], first)  # the first run is as it is
    for one in runs[1:]:
        assert one[0, 0] == 0
        moved = np.abs(one[first > 0] / first[first > 0] - 1)
        assert 0.3 * size < moved.max() <= 1.2 * size
    assert len({one.tobytes() for one in runs}) == 4
    assert not list((project.folder / ".ciwrap/repeat").glob("inputs_*"))
    again = project.run("repeat", "-n", "3")
    assert again.document["variables"][0]["kind"] == "equal"


def test_a_column_major_array_keeps_its_order(project: Project) -> None:
    configure(project, "init/state.npy", "{files: init/*.npy, relative: 1e-3}")
    np.save(project.folder / "init/state.npy", np.asfortranarray(START))
    assert project.run("repeat", "-n", "2", "--perturb", "--keep").code == 0
    found = np.load(project.folder / ".ciwrap/repeat/run_2/out/x.npy")
    assert np.allclose(found, START, rtol=1e-3, atol=0)
    assert np.sum(found != START) > 390


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    ("perturb", "command", "code", "words"),
    [
        ("{files: init/*.npy}", "", 2, "no command has {inputs}"),
        ("{files: none/*.npy}", "{inputs}/", 3, "there is no file 'none/*.npy' to perturb"),
        ("{files: init/*}", "{inputs}/", 2, "notes.txt: cannot be perturbed"),
        ("{files: init/n.npy}", "{inputs}/", 2, "no number in it is changed by"),
        ("{files: init/*.npy, relative: 1e-30}", "{inputs}/", 2, "no number in it is changed"),
        ("{files: init/bad.npy}", "{inputs}/", 3, "is not a .npy file"),
        ("{files: ../p/init/*.npy}", "{inputs}/", 2, "lies outside the configuration's folder"),
        ("{files: /nowhere/*.npy}", "{inputs}/", 2, "lies outside the configuration's folder"),
    ],
)
def test_what_cannot_be_perturbed(
    project: Project, perturb: str, command: str, code: int, words: str
) -> None:
    name = next((one for one in ("n.npy", "bad.npy") if one in perturb), "state.npy")
    configure(project, f"init/{name}", perturb, command)
    folder = project.folder / "init"
    np.save(folder / "state.npy", START)
    if "n.npy" in perturb:
        np.save(folder / "n.npy", np.arange(4))
    elif "bad" in perturb:
        (folder / "bad.npy").write_bytes(b"nothing")
        program = "import numpy as np; np.save('out/x.npy', np.ones(3))"
        (project.folder / "program.py").write_text(program)
    (folder / "notes.txt").write_text("1.0\n")
    before = {name: (folder / name).read_bytes() for name in files_in(folder)}
    outcome = project.run("repeat", "-n", "3", "--perturb")
    assert outcome.code == code, outcome
    assert words in outcome.err
    assert {name: (folder / name).read_bytes() for name in files_in(folder)} == before
    assert not list((project.folder / ".ciwrap").glob("repeat/inputs_*"))


def test_without_a_configuration_of_it_nothing_is_perturbed(project: Project) -> None:
    assert project.run("repeat", "--perturb").code == 2
    assert (
        "--perturb cannot be used with --runs"
        in project.run("repeat", "--runs", "*", "--perturb").err
    )


def test_large_numbers_and_fill_values_stay_what_they_are(tmp_path: Path) -> None:
    """A number next to the largest one became infinite, and a fill value a number."""
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    largest = np.finfo("f4").max
    values = np.array([largest, -largest, 1.0, np.inf, np.nan, 9.96921e36], dtype="f4")
    np.save(tmp_path / "x.npy", values)
    with h5py.File(tmp_path / "x.nc", "w") as file:
        file["x"] = values
        file["x"].attrs["_FillValue"] = np.array([9.96921e36], dtype="f4")
    for seed in range(5):
        target = tmp_path / f"copy_{seed}"
        write_inputs(tmp_path, PerturbSettings(("x.*",), relative=1e-3), target, seed)
        plain = np.load(target / "x.npy")
        with h5py.File(target / "x.nc") as file:
            filled = file["x"][...]
        assert filled[5] == values[5] != plain[5]
        for found in (plain, filled):
            assert np.all(np.isfinite(found[:3]))
            assert found[2] != 1
            assert np.array_equal(found[3:5], values[3:5], equal_nan=True)
