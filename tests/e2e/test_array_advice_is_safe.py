"""What a command proposes for arrays hides nothing beyond it: an edited number still differs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from advice import bound_with, edits, remedies
from e2e.cli_project import Project
from optional_libraries import needs
from vtk_xml import XmlFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]

ROWS = 200
FEWEST = 20  # edits of each case


def as_npy(folder: Path, arrays: Arrays) -> None:
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)


def as_npz(folder: Path, arrays: Arrays) -> None:
    np.savez(folder / "m.npz", **arrays)


def as_hdf5(folder: Path, arrays: Arrays) -> None:
    with needs("h5py").File(folder / "m.h5", "w") as file:
        for name, array in arrays.items():
            file[name] = array


def as_netcdf(folder: Path, arrays: Arrays) -> None:
    with needs("netCDF4").Dataset(folder / "m.nc", "w") as file:
        for name, array in arrays.items():
            axes = [f"{name}_{axis}" for axis in range(array.ndim)]
            for axis, extent in zip(axes, array.shape, strict=True):
                file.createDimension(axis, extent)
            file.createVariable(name, array.dtype, axes)[...] = array


def as_csv(folder: Path, arrays: Arrays) -> None:
    rows = zip(*(array.tolist() for array in arrays.values()), strict=True)
    lines = [",".join(arrays), *(",".join(map(str, row)) for row in rows)]
    (folder / "m.csv").write_text("\n".join(lines) + "\n")


def as_vtu(folder: Path, arrays: Arrays) -> None:
    file = XmlFile("vtu", "raw")
    file.mesh(arrays)
    file.write(folder / "m.vtu")


WRITERS = {
    "npy": as_npy,
    "npz": as_npz,
    "hdf5": as_hdf5,
    "netcdf": as_netcdf,
    "csv": as_csv,
}


def with_noise(size: float) -> tuple[Arrays, Arrays]:
    random = np.random.default_rng(5)
    golden = np.sin(np.linspace(0, 7, ROWS)) + 2
    return {"x": golden}, {"x": golden + size * random.normal(size=ROWS)}


def next_to_zero() -> tuple[Arrays, Arrays]:
    golden = np.where(np.arange(ROWS) % 7, 1e3 + np.arange(ROWS), 1e-13)
    return {"x": golden}, {"x": golden + 1e-12 * (golden < 1)}


def shortened() -> tuple[Arrays, Arrays]:
    random = np.random.default_rng(5)
    golden = random.normal(size=ROWS)
    return {"x": golden}, {"x": golden.astype("f4").astype("f8")}


def turned() -> tuple[Arrays, Arrays]:
    random = np.random.default_rng(5)
    golden = random.uniform(0, 360, size=ROWS)
    return {"x": golden}, {"x": golden + 360 * (np.arange(ROWS) % 5 == 0)}


def turned_a_little_off() -> tuple[Arrays, Arrays]:
    random = np.random.default_rng(5)
    golden, new = turned()
    off = 1e-10 * golden["x"] * random.uniform(-1, 1, size=ROWS)
    return golden, {"x": new["x"] + off}


def in_a_box() -> tuple[Arrays, Arrays]:
    random = np.random.default_rng(5)
    sides = np.array([10.0, 12.0, 15.0])
    golden = random.uniform(0, 1, size=(ROWS, 3)) * sides
    crossed = random.integers(-1, 2, size=golden.shape) * (random.random(golden.shape) < 0.2)
    return {"x": golden}, {"x": golden + crossed * sides}


def in_another_order() -> tuple[Arrays, Arrays]:
    random = np.random.default_rng(5)
    order = random.permutation(ROWS)
    golden = {"id": np.arange(ROWS), "v": random.normal(size=ROWS)}
    return golden, {name: array[order] for name, array in golden.items()}


def moved_points() -> tuple[Arrays, Arrays]:
    random = np.random.default_rng(5)
    order = random.permutation(ROWS)
    golden = {"points": random.normal(size=(ROWS, 3)), "v": random.normal(size=ROWS)}
    return golden, {name: array[order] for name, array in golden.items()}


def mesh() -> tuple[Arrays, Arrays]:
    """Triangles of a plate, whose points and cells are in another order."""
    random = np.random.default_rng(5)
    side = 12
    x, y = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 2, side))
    points = np.stack([x, y, 0.1 * x * y], axis=-1).reshape(-1, 3)
    first = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).reshape(-1)
    cells = np.concatenate(
        [first[:, None] + [0, 1, side + 1], first[:, None] + [0, side + 1, side]]
    )
    order, of_cells = random.permutation(len(points)), random.permutation(len(cells))
    golden = {
        "points": points,
        "cells/connectivity": cells,
        "point_data/u": np.sin(7 * points[:, 0]) + points[:, 1],
        "cell_data/q": np.cos(np.arange(len(cells), dtype=float)),
    }
    new = {
        "points": points[order],
        "cells/connectivity": np.argsort(order)[cells[of_cells]],
        "point_data/u": golden["point_data/u"][order],
        "cell_data/q": golden["cell_data/q"][of_cells],
    }
    return golden, new


def dealt_to_ranks() -> tuple[Arrays, Arrays]:
    random = np.random.default_rng(5)
    values = random.normal(size=ROWS)
    sides = []
    for seed in (1, 2):
        order = np.random.default_rng(seed).permutation(ROWS)
        sides.append(
            {
                f"rank_{rank}/{name}": array
                for rank, rows in enumerate(np.array_split(order, 4))
                for name, array in (("id", rows), ("v", values[rows]))
            }
        )
    return sides[0], sides[1]


def checkpoints() -> tuple[Arrays, Arrays]:
    golden: Arrays = {}
    new: Arrays = {}
    for at in range(3):
        ours, theirs = with_noise((at + 1) * 1e-8)
        golden[f"x_{at:04d}"], new[f"x_{at:04d}"] = ours["x"], theirs["x"]
    return golden, new


CASES = {
    "atol": (lambda: with_noise(1e-8), "atol: 1e-9", r"atol: \S+"),
    "atol beside rtol": (lambda: with_noise(1e-8), "rtol: 1e-9", r"\{atol: \S+, rtol: \S+\}"),
    "atol of all checkpoints": (checkpoints, "atol: 1e-9", r"atol: \S+"),
    "atol next to zero": (next_to_zero, "rtol: 1e-6", r"\{atol: \S+, rtol: \S+\}"),
    "rtol of a shorter type": (shortened, "atol: 0", r"rtol: \S+"),
    "period": (turned, "atol: 1e-6", r"period: 360"),
    "period and atol": (turned_a_little_off, "rtol: 1e-9", r"\{atol: \S+, period: 360\}"),
    "periods": (in_a_box, "atol: 1e-6", r"period: \[10, 12, 15\]"),
    "id": (in_another_order, "atol: 1e-6", r"align_by: (m/)?id"),
    "points": (moved_points, "atol: 1e-6", r"align_by: (m/)?points"),
}
# Tables have columns only.
OF_COLUMNS = ("atol", "atol beside rtol", "atol next to zero", "rtol of a shorter type", "id")


def write(folder: Path, writer: Callable[[Path, Arrays], None], arrays: Arrays) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    writer(folder, arrays)


def unsafe(
    tmp_path: Path,
    sides: tuple[Arrays, Arrays],
    writer: Callable[[Path, Arrays], None],
    bound: str,
    line: str,
) -> list[str]:
    """Edits that match although they are beyond what the check proposed, taken literally."""
    project = Project(tmp_path / "project")
    for path in (project.folder / "out").iterdir():
        path.unlink()
    golden, new = sides
    project.configure(bound=bound)
    write(project.folder / "out", writer, golden)
    project.accept()
    write(project.folder / "out", writer, new)
    advised = remedies(project.run("check").document)
    rules = {}
    for name, lines in advised.items():
        one = next((one for one in lines if re.fullmatch(line, one)), None)
        if one is not None:
            rules[name] = bound_with(bound, one)
    assert rules, advised
    text = yaml.safe_dump(rules, default_flow_style=True, width=10**6).strip()
    project.configure(f"    variables: {text}\n", bound=bound)
    assert project.run("check").code == 0, text
    return passed(project, new, writer, settings_of(new, rules, bound))


def settings_of(
    arrays: Arrays, rules: Mapping[str, Mapping[str, Any]], bound: str
) -> dict[str, Mapping[str, Any]]:
    """By the names that the arrays have within their file."""
    found: dict[str, Mapping[str, Any]] = {name: yaml.safe_load(f"{{{bound}}}") for name in arrays}
    for rule, settings in rules.items():
        for name in arrays:
            plain = re.sub(r"_\d{4}$", "", name)
            if rule in (name, plain, f"m/{name}"):
                found[name] = settings
    return found


def passed(
    project: Project,
    arrays: Arrays,
    writer: Callable[[Path, Arrays], None],
    settings: Mapping[str, Mapping[str, Any]],
    *command: str,
) -> list[str]:
    missed, count = [], 0
    for said, edited in edits(arrays, settings, seed=3):
        count += 1
        write(project.folder / "out", writer, edited)
        if project.run(*(command or ("check",))).code == 0:
            missed.append(said)
    assert count >= FEWEST
    return missed


@pytest.mark.slow(but=len(CASES))
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", WRITERS)
def test_no_edit_beyond_a_remedy_passes(tmp_path: Path, case: str, kind: str) -> None:
    if kind == "csv" and case not in OF_COLUMNS:
        pytest.skip("a table has columns only")
    if kind != "npy" and case == "atol of all checkpoints":
        pytest.skip("a file of one variable for each")
    make, bound, line = CASES[case]
    assert unsafe(tmp_path, make(), WRITERS[kind], bound, line) == []


def dealt_unevenly() -> tuple[Arrays, Arrays]:
    random = np.random.default_rng(5)
    values = random.normal(size=ROWS)
    sides: list[Arrays] = [{}, {}]
    for arrays, cuts in zip(sides, ([40, 90, 150], [50, 80, 160]), strict=True):
        for rank, rows in enumerate(np.split(random.permutation(ROWS), cuts)):
            arrays |= {f"rank_{rank}/id": rows, f"rank_{rank}/v": values[rows]}
    return sides[0], sides[1]


def of_shorter_type() -> tuple[Arrays, Arrays]:
    random = np.random.default_rng(5)
    golden = random.normal(size=ROWS)
    return {"x": golden.astype("f4")}, {"x": golden}


def unchanged(golden: Arrays) -> Callable[[], tuple[Arrays, Arrays]]:
    return lambda: (golden, golden)


def as_misnamed(folder: Path, arrays: Arrays) -> None:
    np.save(folder / "x.npy", arrays["x"])
    (folder / "x.npy").rename(folder / "x.h5")


def as_history(folder: Path, arrays: Arrays) -> None:
    with needs("netCDF4").Dataset(folder / "m.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("n", arrays["u"].shape[1])
        file.createVariable("time", "f8", ("time",))[:] = arrays["time"]
        file.createVariable("u", "f8", ("time", "n"))[:] = arrays["u"]


HISTORY = {"time": np.arange(20) * 0.5, "u": np.arange(100.0).reshape(20, 5)}
LONG = np.array([str(2**64 + 2**11 * at) for at in range(1, ROWS)])
HINTS: dict[str, Any] = {
    "id": (in_another_order, as_npy, {}, r"try (--align-by id)"),
    "points": (moved_points, as_npz, {}, r"try (--align-by m/points)"),
    "mesh": (mesh, as_vtu, {}, r"try (--align-by m/points)"),
    "ranks": (dealt_to_ranks, as_npy, {}, r'"(across_ranks: true)"'),
    "uneven ranks": (dealt_unevenly, as_npy, {}, r"try (--align-by id --across-ranks)"),
    "precision": (of_shorter_type, as_npz, {"mixed_precision": True}, r"try (--mixed-precision)"),
    "long numbers": (unchanged({"k": LONG}), as_csv, {}, r"'(types: \{column: \w+\})'"),
    "suffix": (unchanged({"x": HISTORY["u"]}), as_misnamed, {}, r"say (--format '\*\.h5=npy')"),
    "step": (unchanged(HISTORY), as_history, {}, r"give '(iteration_step)'"),
}


@pytest.mark.parametrize("case", HINTS)
def test_no_edit_passes_with_the_options_of_a_hint(tmp_path: Path, case: str) -> None:
    make, writer, settings, words = HINTS[case]
    golden, new = make()
    project = Project(tmp_path / "project")
    write(project.folder / "golden_run", writer, golden)
    shutil.rmtree(project.folder / "out")
    write(project.folder / "out", writer, new)
    command = ("compare", "golden_run", "out")
    if "time" in new:
        command += ("--option", "iteration_variable=time")
    found = project.run(*command)
    said = f"{found.out} {json.dumps(found.document)}"
    options = as_options(re.search(words, " ".join(said.split()))[1])
    assert project.run(*command, *options).code == 0
    arrays = dict.fromkeys(new, settings)
    assert passed(project, new, writer, arrays, *command, *options) == []


def as_options(advice: str) -> list[str]:
    """What is printed for ciwrap.yaml, with the names that it leaves to the reader."""
    if advice == "across_ranks: true":
        return ["--across-ranks", "--align-by", "id"]
    if advice.startswith("types: "):
        key, value = advice.replace("column", "k").split(": ", 1)
        return ["--option", f"{key}={value}"]
    if advice == "iteration_step":
        return ["--option", "iteration_step=0.5"]
    return shlex.split(advice)


PROGRAM = """
import sys, numpy as np
new = np.random.default_rng()
x = np.sin(np.arange(200.0)) + 2
y = np.outer(np.arange(20.0), np.arange(10.0))
np.savez("m.npz", x=x * (1 + 1e-13 * new.normal(size=200)), y=y, wall=new.uniform(size=3))
"""


def test_no_edit_passes_beyond_the_bounds_of_init(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    shutil.rmtree(project.folder / "out")
    (project.folder / "ciwrap.yaml").unlink()
    done = project.run("init", "--runs", "3", "--", sys.executable, "-c", PROGRAM, json_too=False)
    assert done.code == 0, done
    (written,) = yaml.safe_load((project.folder / "ciwrap.yaml").read_text())["checks"].values()
    assert written["ignore"] == ["wall"]
    project.accept()
    with np.load(project.folder / "m.npz") as file:
        arrays = {name: file[name] for name in ("x", "y")}
    settings = {name: written["variables"].get(name, {}) for name in arrays}
    assert float(settings["x"]["atol"]) < 1e-10

    def rewrite(folder: Path, edited: Arrays) -> None:
        as_npz(folder.parent, {**edited, "wall": np.zeros(3)})

    assert passed(project, arrays, rewrite, settings) == []


def test_no_bound_is_proposed_beside_a_period_that_it_is_much_of(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    shutil.rmtree(project.folder / "out")
    project.configure(bound="rtol: 0.3")
    golden = np.append(np.linspace(0.05, 0.15, ROWS), 10.0)
    crossed = np.where(np.arange(ROWS) % 10 == 0, 10.0, 0.0)
    crossed[1::30] = -10.0
    write(project.folder / "out", as_npy, {"x": golden})
    project.accept()
    write(project.folder / "out", as_npy, {"x": golden + np.append(crossed, 2.9)})
    found = project.run("check")
    assert "moved by whole periods of 10" in found.out
    assert remedies(found.document) == {}


# What no command proposes, and people take all the same.
def vectors() -> Arrays:
    random = np.random.default_rng(5)
    return {"x": random.normal(size=(40, 5)) + 0.01}


SIGNS = np.where(np.arange(40) % 3, 1.0, -1.0)
SETTINGS: dict[str, Any] = {
    "up_to_sign: whole": lambda x: -x,
    "up_to_sign: rows": lambda x: x * SIGNS[:, None],
    "up_to_sign: columns": lambda x: x * SIGNS[:5],
    "equal_nan: false": lambda x: x,
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_edit_passes_with_a_setting(tmp_path: Path, setting: str) -> None:
    golden = vectors()
    new = {"x": SETTINGS[setting](golden["x"])}
    bound = f"atol: 1e-6, {setting}"
    project = Project(tmp_path / "project")
    shutil.rmtree(project.folder / "out")
    project.configure(bound=bound)
    write(project.folder / "out", as_npy, golden)
    project.accept()
    write(project.folder / "out", as_npy, new)
    assert project.run("check").code == 0
    assert passed(project, new, as_npy, {"x": {"atol": 1e-6}}) == []
