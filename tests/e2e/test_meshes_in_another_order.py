"""Meshes whose points and cells are written in another order, through the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from e2e.paired_runs import Case

SIDE = 6
BY_POINTS = "    align_by: points\n    variables: {'*points': {atol: 1e-9}}\n"


class Mesh:
    """Squares of a plate, every third of them cut into two triangles. points: shape (points, 3)."""

    def __init__(self) -> None:
        x, y = np.meshgrid(np.linspace(0, 1, SIDE), np.linspace(0, 2, SIDE))
        self.points = np.stack([x, y, 0.1 * x * y], axis=-1).reshape(-1, 3)
        self.u = np.sin(7 * self.points[:, 0]) + self.points[:, 1]
        self.cells: list[list[int]] = []
        for row in range(SIDE - 1):
            for column in range(SIDE - 1):
                at = row * SIDE + column
                square = [at, at + 1, at + SIDE + 1, at + SIDE]
                is_cut = len(self.cells) % 3 == 0
                self.cells += [square[:3], [*square[2:], at]] if is_cut else [square]
        self.q = np.cos(np.arange(len(self.cells), dtype=float))

    def shuffled(self, seed: int, noise: float = 0.0) -> Mesh:
        draw, other = np.random.default_rng(seed), Mesh()
        points, cells = draw.permutation(len(self.points)), draw.permutation(len(self.cells))
        number = np.argsort(points)
        moved = self.points + noise * draw.uniform(-1, 1, self.points.shape)
        other.points, other.u = moved[points], self.u[points]
        other.cells = [number[self.cells[at]].tolist() for at in cells]
        other.q = self.q[cells]
        return other

    def write(self, path: Path) -> None:
        lines = ["# vtk DataFile Version 3.0", "plate", "ASCII", "DATASET UNSTRUCTURED_GRID"]
        lines += [f"POINTS {len(self.points)} double", *map(_words, self.points)]
        size = sum(map(len, self.cells)) + len(self.cells)
        lines += [f"CELLS {len(self.cells)} {size}"]
        lines += [_words([len(one), *one]) for one in self.cells]
        lines += [f"CELL_TYPES {len(self.cells)}"]
        lines += ["9" if len(one) == 4 else "5" for one in self.cells]
        for section, name, values in (("POINT", "u", self.u), ("CELL", "q", self.q)):
            lines += [f"{section}_DATA {len(values)}", f"SCALARS {name} double 1"]
            lines += ["LOOKUP_TABLE default", *map(repr, values.tolist())]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")


def _words(numbers: Sequence[Any]) -> str:
    return " ".join(repr(float(one) if isinstance(one, float) else int(one)) for one in numbers)


def write(it: Plates, **runs: Mesh) -> None:
    for name, mesh in runs.items():
        mesh.write(it.folder / name / "m.vtk")


def not_matching(found: dict[str, Any]) -> set[str]:
    return {name for name, one in found.items() if one["verdict"] != "match"}


class Plates:
    """A case whose runs hold one file, without its name before those of the variables."""

    def __init__(self, it: Case) -> None:
        self._it, self.folder = it, it.folder

    def compare(self, code: int) -> dict[str, Any]:
        return _bare(self._it.compare(code))

    def check(self, code: int) -> dict[str, Any]:
        return _bare(self._it.check(code))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._it, name)


def _bare(found: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("m/"): one for name, one in found.items()}


@pytest.fixture
def plates(case: Any) -> Any:
    return lambda keys: Plates(case(keys))


def test_the_same_mesh_in_another_order(plates: Any) -> None:
    it, mesh = plates(BY_POINTS), Mesh()
    write(it, a=mesh, b=mesh.shuffled(1, noise=4e-10))
    found = it.compare(0)
    assert set(found) == {
        *("points", "point_data/u", "cell_data/q"),
        *("cells/connectivity", "cells/offsets", "cells/types"),
    }
    assert {found[name]["aligned_by"] for name in ("points", "point_data/u")} == {"m/points"}
    assert {found[name]["aligned_by"] for name in ("cell_data/q", "cells/types")} == {"m/cells"}


def test_what_is_proposed_can_be_followed(plates: Any, capsys: pytest.CaptureFixture[str]) -> None:
    it, mesh = plates(""), Mesh()
    write(it, a=mesh, b=mesh.shuffled(1))
    found = it.compare(1)
    for name in ("points", "point_data/u", "cell_data/q"):
        assert {one["remedy"] for one in found[name]["explanations"]} == {"align_by: m/points"}
    assert "try --align-by m/points" in capsys.readouterr().out
    assert run(["compare", "a", "b", "--align-by", "m/points"]) == 0
    assert run(["compare", "a/m.vtk", "b/m.vtk"]) == 1
    assert "--align-by points" in capsys.readouterr().out
    assert run(["compare", "a/m.vtk", "b/m.vtk", "--align-by", "points"]) == 0


def test_an_id_is_proposed_to_variables_of_as_many_rows(case: Any) -> None:
    it, draw = case(""), np.random.default_rng(1)
    for name, count in (("gid", 50), ("u", 50), ("q", 70)):
        values = np.arange(count) + (0.5 if name != "gid" else 0)
        it.save("a", f"{name}.npy", values)
        it.save("b", f"{name}.npy", draw.permutation(values))
    found = it.compare(1)
    remedies = {
        name: {told["remedy"] for told in one["explanations"]} for name, one in found.items()
    }
    assert remedies == {"gid": {"align_by: gid"}, "u": {"align_by: gid"}, "q": {"align_by: ID"}}


@pytest.mark.parametrize("where", ["u", "q", "points", "cells", "types"])
def test_a_defect_is_seen_at_its_place_in_the_golden(plates: Any, where: str) -> None:
    it, mesh = plates(BY_POINTS), Mesh()
    broken = Mesh()
    if where == "u":
        broken.u[17] += 0.5
    elif where == "q":
        broken.q[11] += 0.5
    elif where == "points":
        broken.points[8, 1] += 0.5e-8
    elif where == "cells":
        broken.cells[3] = [*broken.cells[3][1:], broken.cells[3][0]]
    else:
        broken.cells[2] = broken.cells[2][:3]
    write(it, a=mesh, b=broken.shuffled(2))
    found = it.compare({"points": 3, "types": 3}.get(where, 1))
    if where == "u":
        assert found["point_data/u"]["first_index"] == [17]
        assert not_matching(found) == {"point_data/u"}
    elif where == "q":
        assert found["cell_data/q"]["first_index"] == [11]
        assert not_matching(found) == {"cell_data/q"}
    elif where == "cells":
        assert not_matching(found) == {"cells/connectivity"}
        assert found["cells/connectivity"]["first_index"] == [sum(map(len, mesh.cells[:3]))]
    elif where == "points":
        assert found["points"]["verdict"] == "differ"
        assert (
            "5e-09 away, and the bound of 'm/points' is atol=1e-9" in found["cell_data/q"]["reason"]
        )
        assert "1 point is only in A" in found["point_data/u"]["reason"]
    else:
        assert (
            "cells of points that no cell of the other side joins" in found["cell_data/q"]["reason"]
        )
        assert found["point_data/u"]["verdict"] == "match"


def test_what_two_points_could_be_meant_by_is_not_compared(plates: Any) -> None:
    it, mesh = plates(BY_POINTS.replace("1e-9", "0.05")), Mesh()
    write(it, a=mesh, b=mesh.shuffled(1))
    found = it.compare(3)
    assert "points have to be 0.8 apart" in found["point_data/u"]["reason"]
    assert "give 'm/points' a smaller bound" in found["cell_data/q"]["reason"]


def test_cells_that_join_the_same_points(plates: Any) -> None:
    it, mesh = plates(BY_POINTS), Mesh()
    mesh.cells[4] = mesh.cells[5][::-1]
    write(it, a=mesh, b=mesh.shuffled(1))
    assert "joins the points of another cell" in it.compare(3)["cell_data/q"]["reason"]


def _golden(it: Plates) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (it.folder / "golden").glob("c.*")}


def test_a_golden_and_its_refresh(plates: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The golden keeps its order; outputs that match in another one change nothing."""
    it, mesh = plates(BY_POINTS), Mesh()
    write(it, a=mesh, b=mesh.shuffled(3))
    it.accept("a")
    assert not_matching(it.check(0)) == set()
    golden = _golden(it)
    it.use("b")
    assert not_matching(it.check(0)) == set()
    it.accept("b")
    assert _golden(it) == golden

    other = mesh.shuffled(4)
    other.u[np.argmin(np.abs(other.points - mesh.points[9]).sum(axis=1))] += 0.25
    write(it, b=other)
    found = it.check(1)
    assert not_matching(found) == {"point_data/u"}
    assert found["point_data/u"]["first_index"] == [9]
    capsys.readouterr()
    it.accept("b")
    shown = capsys.readouterr().out
    assert "point_data/u" in shown
    assert "cell_data/q" not in shown
    it.check(0)
    it.use("a")
    assert it.check(1)["point_data/u"]["first_index"] == [9]


def test_another_mesh_is_accepted_in_its_own_order(plates: Any) -> None:
    it, mesh, other = plates(BY_POINTS), Mesh(), Mesh()
    other.points = other.points * 2
    write(it, a=mesh, b=other)
    it.accept("a")
    it.accept("b")
    assert not_matching(it.check(0)) == set()
    write(it, b=other.shuffled(2))
    assert not_matching(it.check(0)) == set()


def test_a_golden_without_the_coordinates(plates: Any) -> None:
    it, mesh = plates(BY_POINTS + "    evidence: tree\n"), Mesh()
    write(it, a=mesh, b=mesh.shuffled(1))
    it.accept("a", code=3)
    keep = "{'*points': {atol: 1e-9, evidence: data}, '*/cells/*': {evidence: data}}"
    it = plates(f"    align_by: points\n    evidence: tree\n    variables: {keep}\n")
    it.accept("a")
    it.use("b")
    found = it.check(0)
    assert found["point_data/u"]["evidence"] == "tree"
    broken = mesh.shuffled(2)
    broken.u[5] += 3
    write(it, b=broken)
    assert not_matching(it.check(1)) == {"point_data/u"}


def test_a_golden_of_an_earlier_configuration(plates: Any) -> None:
    it, mesh = plates("    evidence: tree\n"), Mesh()
    write(it, a=mesh, b=mesh.shuffled(1))
    it.accept("a")
    plates(BY_POINTS)
    it.use("b")
    reason = it.check(3)["point_data/u"]["reason"]
    assert "the golden keeps the tree alone of it; set 'evidence: data' for 'm/points'" in reason


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_coordinates_of_any_file(case: Any, axes: int) -> None:
    it = case("    align_by: x\n    variables: {x: {atol: 1e-9}, total: {align_by: none}}\n")
    draw = np.random.default_rng(3)
    x, order = draw.uniform(size=(50, axes)), draw.permutation(50)
    x = x[:, 0] if axes == 1 else x
    for name, array in (("x", x), ("u", np.arange(150.0).reshape(50, 3)), ("hit", np.arange(50))):
        it.save("a", f"{name}.npy", array)
        it.save("b", f"{name}.npy", array[order])
    for side in "ab":
        it.save(side, "total.npy", np.zeros(3))
    assert not_matching(it.compare(0)) == set()
    it.accept("a")
    it.use("b")
    assert not_matching(it.check(0)) == set()
    it.save("b", "hit.npy", np.arange(50))
    assert not_matching(it.check(1)) == {"hit"}


@pytest.mark.parametrize("executor", [(), ("--executor", "process")])
def test_histories_here_and_by_workers(
    plates: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], executor: tuple[str, ...]
) -> None:
    plates("")
    mesh = Mesh()
    for iteration in range(3):
        mesh.u = mesh.u * 1.5
        mesh.write(tmp_path / "a" / f"s_{iteration}.vtk")
        other = mesh.shuffled(iteration)
        other.u[4] += 0.25 * (iteration == 1)
        other.write(tmp_path / "b" / f"s_{iteration}.vtk")
    words = ("--align-by", "points", "--layout", "s_{iteration:d}.vtk", *executor)
    assert run(["compare", "a", "b", *words]) == 1
    shown = capsys.readouterr().out
    assert "first difference: iter 1 / point_data/u" in shown
    assert "DIFFER  1 of 6 variables, at 1 of 3 iterations" in shown
    if executor:
        return  # its lists are several
    assert run(["compare", "a", "b", *words, "--list", "l.csv"]) == 1
    listed = (tmp_path / "l.csv").read_text().splitlines()
    at = int(np.argmin(np.abs(mesh.points - mesh.shuffled(1).points[4]).sum(axis=1)))
    assert [line.split(",")[:4] for line in listed[1:]] == [["1", "", "point_data/u", str(at)]]


def test_damage_that_is_planted_is_seen(plates: Any) -> None:
    it = plates(BY_POINTS)
    write(it, out=Mesh())
    assert run(["selftest"]) == 0


def test_an_ensemble_has_no_order_to_keep(
    plates: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plates(BY_POINTS)
    for number in range(3):
        Mesh().shuffled(number).write(tmp_path / f"run_{number}" / "out" / "m.vtk")
    runs = [f"run_{number}" for number in range(3)]
    assert run(["capture", "--ensemble", "c", *runs, "--reason", "x"]) == 2
    assert "and an ensemble has many" in capsys.readouterr().err


def test_points_on_other_ranks(case: Any) -> None:
    it = case(BY_POINTS + "    across_ranks: true\n")
    mesh = Mesh()
    order = np.random.default_rng(1).permutation(len(mesh.points))
    for run_name, rows in (("a", slice(None)), ("b", order)):
        for rank, part in enumerate(np.array_split(np.arange(len(order)), 2 + (run_name == "b"))):
            it.save(run_name, f"rank_{rank}/points.npy", mesh.points[rows][part])
            it.save(run_name, f"rank_{rank}/u.npy", mesh.u[rows][part])
    assert not_matching(it.compare(0)) == set()
    it.accept("a")
    it.use("b")
    assert not_matching(it.check(0)) == set()
    it.save("b", "rank_0/u.npy", mesh.u[order][: len(order) // 3] + 1)
    assert it.check(1)["u"]["differing_count"] == len(order) // 3
