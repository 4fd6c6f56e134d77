"""Whole runs whose rows moved: particles that migrate, in the layouts that programs really write.

What has to be found is computed with NumPy from the tables that the layouts were made of.
"""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BOX = np.array([10.0, 10.0, 25.0])
ATOL = 1e-3
STEPS = (0, 10, 20, 30, 40, 50)
COUNT = 300
FILL = -1e18

Rows = dict[str, np.ndarray[Any, Any]]
Run = dict[int, Rows]


def particles(seed: int = 1) -> Run:
    """One table of particles for each step, in the order of their ids."""
    draw = np.random.default_rng(seed)
    x = draw.uniform(0, BOX, (COUNT, 3))
    v = draw.normal(size=(COUNT, 3))
    history = {}
    for step in STEPS:
        x = (x + 0.3 * v) % BOX
        x[step % 7] = [1e-5, 9.99999, 24.99999]  # on the border
        charge = draw.normal(size=COUNT).astype("<f4")
        charge[draw.random(COUNT) < 0.1] = FILL  # particles that have left
        history[step] = {"id": np.arange(COUNT) * 3 + 7, "x": x, "v": v, "charge": charge}
    return history


def noisy(history: Run, seed: int = 2) -> Run:
    """The same particles in another order, moved by a tenth of the bound; some of them wrap."""
    draw = np.random.default_rng(seed)
    found = {}
    for step, rows in history.items():
        noise = draw.uniform(-ATOL / 10, ATOL / 10, (COUNT, 3))
        moved = {
            "id": rows["id"],
            "x": (rows["x"] + noise) % BOX,
            "v": rows["v"] + noise,
            "charge": rows["charge"].copy(),
        }
        moved["x"][step % 7] = [9.99999, 1e-5, 1e-5]
        order = draw.permutation(COUNT)
        found[step] = {name: array[order] for name, array in moved.items()}
    return found


def sorted_rows(rows: Rows) -> Rows:
    order = np.argsort(rows["id"])
    return {name: array[order] for name, array in rows.items()}


def away(golden: Run, new: Run, name: str, step: int) -> Any:
    """|difference| by the nearest image, rows in the order of ids; fills differ from all else."""
    one, two = sorted_rows(golden[step])[name], sorted_rows(new[step])[name]
    raw = np.abs(two.astype("f8") - one.astype("f8"))
    if name == "x":
        raw = np.minimum(raw, BOX - raw)
    is_fill = [side == np.asarray(FILL, side.dtype) for side in (one, two)]
    return np.where(is_fill[0] & is_fill[1], 0, np.where(is_fill[0] ^ is_fill[1], np.inf, raw))


def by_rank(rows: Rows, ranks: int) -> list[Rows]:
    """Domain decomposition along x, as it deals particles out to ranks."""
    owner = (rows["x"][:, 0] / BOX[0] * ranks).astype(int).clip(0, ranks - 1)
    return [{n: array[owner == rank] for n, array in rows.items()} for rank in range(ranks)]


# --- layouts: a file for each variable, or one for each rank --------------------------------------


def write_npy(folder: Path, step: int, rank: int, rows: Rows) -> None:
    place = folder / f"iter_{step:04d}/rank_{rank}"
    place.mkdir(parents=True)
    for name, array in rows.items():
        np.save(place / f"{name}.npy", array)


def write_hdf5(folder: Path, step: int, rank: int, rows: Rows) -> None:
    h5py = pytest.importorskip("h5py")
    folder.mkdir(exist_ok=True)
    with h5py.File(folder / f"snapshot_{step:03d}.{rank}.h5", "w") as file:
        for name, array in rows.items():
            file.create_dataset(name, data=array, compression="gzip")


def write_netcdf(folder: Path, step: int, rank: int, rows: Rows) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    folder.mkdir(exist_ok=True)
    with netcdf4.Dataset(folder / f"dump.{step}.{rank}.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("particle", len(rows["id"]))
        file.createDimension("xyz", 3)
        for name, array in rows.items():
            dtype = "i4" if name == "id" else array.dtype  # NetCDF 3 has no larger integers
            axes = ("particle", "xyz")[: array.ndim]
            file.createVariable(name, dtype, axes)[:] = array


def write_parquet(folder: Path, step: int, rank: int, rows: Rows) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    place = folder / f"step={step}"
    place.mkdir(parents=True, exist_ok=True)
    columns = {
        name: arrow.FixedSizeListArray.from_arrays(arrow.array(array.reshape(-1)), 3)
        if array.ndim == 2
        else arrow.array(array)
        for name, array in rows.items()
    }
    parquet.write_table(arrow.table(columns), place / f"part-{rank}.parquet")


LAYOUTS: dict[str, tuple[Callable[[Path, int, int, Rows], None], str]] = {
    "npy": (write_npy, "iter_{iteration:d}/rank_{rank:d}/{name}.npy"),
    "hdf5": (write_hdf5, "snapshot_{iteration:d}.{rank:d}.h5"),
    "netcdf": (write_netcdf, "dump.{iteration:d}.{rank:d}.nc"),
    "parquet": (write_parquet, "step={iteration:d}/part-{rank:d}.parquet"),
}


class Case:
    """Runs `a` and `b` below a folder, and what the command line says of them."""

    def __init__(self, folder: Path, layout: str, *keys: str) -> None:
        self.folder = folder
        self.write, pattern = LAYOUTS[layout]
        text = "\n".join(f"    {key}" for key in keys)
        (folder / "ciwrap.yaml").write_text(
            f"checks:\n  c:\n    outputs: a\n    layout: '{pattern}'\n    atol: {ATOL}\n"
            f"    fill_values: [{FILL}]\n{text}\n"
        )

    def save(self, name: str, history: Run, ranks: int) -> None:
        for step, rows in history.items():
            for rank, part in enumerate(by_rank(rows, ranks)):
                self.write(self.folder / name, step, rank, part)

    def compare(self, *more: str) -> tuple[int, dict[str, Any]]:
        target = self.folder / "result.json"
        code = run(["compare", "a", "b", "--check", "c", "--json", str(target), *more])
        return code, json.loads(target.read_text())["checks"][0]


ACROSS = ("align_by: id", "across_ranks: true", "variables: {x: {period: [10, 10, 25]}}")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_particles_that_migrate(
    layout: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two ranks against three, shuffled, wrapped, with fill values; then differences are planted:
    in one frame only, and from one frame on.
    """
    it = Case(tmp_path, layout, *ACROSS)
    a = particles()
    b = noisy(a)
    moved = sum(
        not np.array_equal(one["id"], two["id"])
        for step in STEPS
        for one, two in zip(by_rank(a[step], 2), by_rank(b[step], 2), strict=True)
    )
    assert moved == 2 * len(STEPS)
    it.save("a", a, 2)
    it.save("b", b, 3)
    code, check = it.compare()
    assert code == 0, check["messages"]
    assert len(check["variables"]) == 4 * len(STEPS)
    assert {one["rank"] for one in check["variables"]} == {None}
    assert "first_divergence" not in check

    b[20]["x"][b[20]["id"] == 7 + 3 * 31] += [0, 0.25, 0]
    for number, step in enumerate(STEPS[4:]):
        b[step]["v"][b[step]["id"] < 40, 2] += 0.01 * 10**number
    b[50]["charge"][b[50]["charge"] == FILL] = 0.5
    shutil.rmtree(tmp_path / "b")
    it.save("b", b, 3)
    capsys.readouterr()
    code, check = it.compare()
    assert code == 1
    beyond = {
        (step, name): away(a, b, name, step) > ATOL
        for step in STEPS
        for name in ("x", "v", "charge")
    }
    found = {(one["iteration"], one["name"]): one for one in check["variables"]}
    for key, truth in beyond.items():
        one = found[key]
        assert one["differing_count"] == truth.sum(), key
        assert one.get("first_index") == (np.argwhere(truth)[0].tolist() if truth.any() else None)
        assert one["aligned_by"] == "id"
    assert {key for key, truth in beyond.items() if truth.any()} == {
        *((20, "x"), (40, "v"), (50, "v"), (50, "charge"))
    }
    first = check["first_divergence"]
    assert (first["iteration"], first["name"]) == (20, "x")
    assert first["element"]["index"] == [31, 1]
    values = [sorted_rows(side[20])["x"][31, 1] for side in (a, b)]
    assert [first["element"][side] for side in ("golden", "new")] == [str(one) for one in values]
    lines = {one["name"]: one for one in check["history"]["timelines"]}
    states = {name: [point["state"] for point in one["points"]] for name, one in lines.items()}
    assert states["x"] == ["within", "within", "beyond", "within", "within", "within"]
    assert lines["x"]["trend"] == "comes_and_goes"
    assert states["v"][3:] == ["within", "beyond", "beyond"]
    assert lines["v"]["trend"] == "grows"
    assert set(states["id"]) == {"match"}
    shown = capsys.readouterr().out
    assert "first difference: iter 20 / x\n" in shown
    assert "      [31, 1]: A " in shown
    assert re.search(r"x +~~#~~~  comes and goes", shown)


def test_within_a_rank_a_particle_that_left_is_named(tmp_path: Path) -> None:
    """Without across_ranks rows are paired on their own rank, or not at all."""
    it = Case(tmp_path, "hdf5", "align_by: id", "variables: {x: {period: [10, 10, 25]}}")
    a = particles()
    b = {step: {name: array[::-1] for name, array in rows.items()} for step, rows in a.items()}
    it.save("a", a, 2)
    it.save("b", b, 2)
    code, check = it.compare()
    assert code == 0
    assert len(check["variables"]) == 4 * 2 * len(STEPS)

    owner = by_rank(a[30], 2)[0]["id"]
    lost = int(owner[5])
    b[30]["x"][b[30]["id"] == lost, 0] = 9.5  # now on the other rank
    shutil.rmtree(tmp_path / "b")
    it.save("b", b, 2)
    code, check = it.compare()
    assert code == 3
    broken = {
        (one["iteration"], one["rank"], one["name"]): one["reason"]
        for one in check["variables"]
        if one["verdict"] == "not_comparable"
    }
    assert set(broken) >= {(30, rank, name) for rank in (0, 1) for name in ("x", "v", "charge")}
    assert {key[0] for key in broken} == {30}
    assert f"1 only in A ({lost})" in broken[30, 0, "x"]
    assert f"1 only in B ({lost})" in broken[30, 1, "x"]
    states = {
        (point["iteration"], point["rank"]): point["state"]
        for one in check["history"]["timelines"]
        if one["name"] == "v"
        for point in one["points"]
    }
    assert {key for key, state in states.items() if state == "not_compared"} == {(30, 0), (30, 1)}


def test_what_aligned_rows_have_no_use_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Captures are of the files as they are. One that lies there changes nothing; one that is named
    is refused.
    """
    it = Case(tmp_path, "npy", *ACROSS)
    a = particles()
    it.save("a", a, 2)
    it.save("b", noisy(a), 3)
    assert it.compare()[0] == 0
    for name in "ab":
        assert run(["capture", name, "--atol", "1", "--settle", "0"]) == 0
    code, check = it.compare()
    assert code == 0
    assert {one["evidence"] for one in check["variables"]} == {"data"}
    capsys.readouterr()
    assert run(["compare", "a", "b", "--check", "c", "--capture-a", "a/.ciwrap.tree"]) == 2
    told = capsys.readouterr().err
    assert "rows are aligned" in told
    assert "--capture-a" in told


def test_across_ranks_by_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside a check that aligns rows within ranks, and where nothing aligns them."""
    it = Case(tmp_path, "npy", "align_by: id", "variables: {x: {period: [10, 10, 25]}}")
    a = particles()
    it.save("a", a, 2)
    it.save("b", noisy(a), 3)
    assert it.compare()[0] == 3
    code, check = it.compare("--across-ranks")
    assert code == 0
    assert {one["rank"] for one in check["variables"]} == {None}
    capsys.readouterr()
    assert run(["compare", "a", "b", "--across-ranks"]) == 2
    assert "name the id variable with --align-by" in capsys.readouterr().err


def test_rows_that_are_left_out_are_told_of(tmp_path: Path) -> None:
    """Of rows with one id the first ones count; the others are different, and nobody looks."""
    for name, other in (("a", 1.0), ("b", 2.0)):
        ids = np.array([3, 1, 2, 3])
        rows = {"id": ids, "x": np.array([0.5, 0.25, 0.125, other])}
        write_npy(tmp_path / name, 0, 0, rows)
        write_npy(tmp_path / name, 1, 0, {**rows, "id": np.array([3, 1, 2, 4])})
    it = Case(tmp_path, "npy", "align_by: id", "duplicates: first")
    code, check = it.compare()
    assert code == 1
    differing = {
        (one["iteration"], one["name"]): one["differing_count"] for one in check["variables"]
    }
    assert differing == {(0, "id"): 0, (0, "x"): 0, (1, "id"): 0, (1, "x"): 1}
    told = [one["text"] for one in check["messages"] if "left out" in one["text"]]
    assert len(told) == len(set(told)) > 0
    assert all("'id' are left out, but for the first one of each" in one for one in told)


# --- restarts -------------------------------------------------------------------------------------


def write_part(path: Path, frames: dict[int, float], order: Any = None) -> None:
    h5py = pytest.importorskip("h5py")
    path.parent.mkdir(parents=True)
    with h5py.File(path, "w") as file:
        for step, value in frames.items():
            ids = np.arange(20) if order is None else order
            file[f"step_{step}/id"] = ids
            file[f"step_{step}/x"] = value + ids / 100


@pytest.mark.parametrize(("duplicates", "code"), [("error", 3), ("first", 1), ("last", 0)])
def test_a_restart_whose_files_share_a_step(tmp_path: Path, duplicates: str, code: int) -> None:
    """One file for each part of a run that was restarted: step 20 ends the first part and begins
    the second, and its two copies differ. The rows are shuffled as well.
    """
    order = np.random.default_rng(3).permutation(20)
    write_part(tmp_path / "a/part1/run.h5", {0: 0.0, 10: 1.0, 20: 2.0, 30: 3.0})
    write_part(tmp_path / "b/part1/run.h5", {0: 0.0, 10: 1.0, 20: 2.5}, order)
    write_part(tmp_path / "b/part2/run.h5", {20: 2.0, 30: 3.0}, order)
    (tmp_path / "ciwrap.yaml").write_text(
        f"checks:\n  c:\n    outputs: a\n    layout: run.h5\n    atol: {ATOL}\n"
        f"    align_by: id\n    duplicates: {duplicates}\n"
    )
    target = tmp_path / "result.json"
    assert run(["compare", "a", "b", "--check", "c", "--json", str(target)]) == code
    check = json.loads(target.read_text())["checks"][0]
    told = " ".join(message["text"] for message in check["messages"])
    assert ("is also in" if duplicates == "error" else "written more than once") in told
    if code == 1:
        first = check["first_divergence"]
        assert (first["iteration"], first["name"]) == (20, "x")
        assert first["element"]["index"] == [0]
        (line,) = (one for one in check["history"]["timelines"] if one["name"] == "x")
        states = [point["state"] for point in line["points"]]
        assert states == ["match", "match", "beyond", "match"]


# --- histories in one file ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["hdf5", "netcdf", "zarr"])
def test_one_frame_of_a_single_file(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Frame 3 alone is off, and all is well again afterwards: a look at the end tells nothing."""
    draw = np.random.default_rng(4)
    golden = draw.normal(size=(6, 8, 9))
    new = golden + 1e-5
    new[3, 2, 5:7] += 0.5
    for name, array in (("a", golden), ("b", new)):
        if kind == "hdf5":
            h5py = pytest.importorskip("h5py")
            with h5py.File(tmp_path / f"{name}.h5", "w") as file:
                for number in range(6):
                    file[f"step_{number}/p"] = array[number]
        elif kind == "netcdf":
            netcdf4 = pytest.importorskip("netCDF4")
            with netcdf4.Dataset(tmp_path / f"{name}.nc", "w") as file:
                for axis, length in (("time", None), ("y", 8), ("x", 9)):
                    file.createDimension(axis, length)
                file.createVariable("p", "f8", ("time", "y", "x"))[:] = array
        else:
            zarr = pytest.importorskip("zarr")
            group = zarr.create_group(str(tmp_path / f"{name}.zarr"))
            group.create_array("p", data=array, dimension_names=["time", "y", "x"])
    suffix = {"hdf5": "h5", "netcdf": "nc", "zarr": "zarr"}[kind]
    target = tmp_path / "result.json"
    arguments = ["compare", f"a.{suffix}", f"b.{suffix}", "--atol", "1e-3", "--json", str(target)]
    assert run(arguments) == 1
    (check,) = json.loads(target.read_text())["checks"]
    first = check["first_divergence"]
    assert (first["iteration"], first["name"]) == (3, "p")
    element = first["element"]
    assert element["index"] == [2, 5]
    assert [element["golden"], element["new"]] == [str(golden[3, 2, 5]), str(new[3, 2, 5])]
    (line,) = check["history"]["timelines"]
    assert [point["differing_count"] for point in line["points"]] == [0, 0, 0, 2, 0, 0]
    assert line["trend"] == "comes_and_goes"
    shown = capsys.readouterr().out
    assert "first difference: iter 3 / p\n" in shown
    assert "      [2, 5]: A " in shown
    assert "~~~#~~  comes and goes" in shown
