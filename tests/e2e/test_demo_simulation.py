"""The simulation of the demonstration: sound physics, real noise, a defect where it was put."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ciwrap._demo import ParticleMesh, read_pass
from ciwrap.studies import simulation
from ciwrap.studies.simulation import Settings, run_simulation

if TYPE_CHECKING:
    from pathlib import Path

SMALL = 2000


def load(folder: Path, path: str) -> np.ndarray:
    return np.load(folder / path, allow_pickle=False)


def names(files: list[Path], folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in files]


def test_layout_dtypes_and_shapes(tmp_path: Path) -> None:
    settings = Settings(iterations=4, every=2, particles_per_rank=SMALL, threads=1)
    written = names(run_simulation(tmp_path, settings), tmp_path)
    assert len(written) == 2 * 2 * 7
    assert written[0] == "iter_0002/rank_0/id.npy"
    expected = {"id": "i4", "x": "f8", "y": "f8", "vx": "f4", "vy": "f4"}
    for name, dtype in expected.items():
        array = load(tmp_path, f"iter_0004/rank_1/{name}.npy")
        assert (array.dtype, array.shape) == (np.dtype(dtype), (SMALL,))
    for name, dtype in {"density": "f4", "potential": "f8"}.items():
        array = load(tmp_path, f"iter_0004/rank_1/{name}.npy")
        assert (array.dtype, array.shape) == (np.dtype(dtype), (32, 64))
    ids = [load(tmp_path, f"iter_0002/rank_{rank}/id.npy") for rank in (0, 1)]
    assert np.array_equal(np.concatenate(ids), np.arange(2 * SMALL))


def test_charge_is_conserved_and_particles_stay_inside() -> None:
    mesh = ParticleMesh(seed=3, particles_per_rank=SMALL, threads=2)
    for _ in range(20):
        mesh.step()
    states = [mesh.state(rank) for rank in (0, 1)]
    total = sum(state["density"].sum(dtype=np.float64) for state in states)
    assert total == pytest.approx(64 * 63, rel=1e-5)
    for state in states:
        assert state["x"].min() >= 0
        assert state["x"].max() < 64
        assert state["y"].min() >= 0
        assert state["y"].max() <= 63


def test_the_potential_solves_poissons_equation() -> None:
    mesh = ParticleMesh(seed=5, particles_per_rank=SMALL, threads=1)
    mesh.step()
    states = [mesh.state(rank) for rank in (0, 1)]
    u = np.concatenate([state["potential"] for state in states])
    charge = 1.0 - np.concatenate([state["density"] for state in states]).astype(np.float64)
    assert not u[0].any()
    assert not u[-1].any()
    laplacian = np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u
    laplacian[1:-1] += u[:-2] + u[2:]
    assert np.abs(laplacian + charge)[1:-1].max() < 1e-12 * np.abs(u).max()


def test_one_thread_is_deterministic(tmp_path: Path) -> None:
    settings = Settings(iterations=10, every=10, particles_per_rank=SMALL, threads=1)
    files = run_simulation(tmp_path / "a", settings)
    run_simulation(tmp_path / "b", settings)
    for path in names(files, tmp_path / "a"):
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes()


def test_threads_make_noise_far_below_the_bounds(tmp_path: Path) -> None:
    reference = Settings(threads=1)
    files = names(run_simulation(tmp_path / "reference", reference), tmp_path / "reference")
    differing = 0
    for attempt in range(3):
        run = tmp_path / f"run_{attempt}"
        run_simulation(run, Settings(threads=4))
        for path in files:
            a, b = load(tmp_path / "reference", path), load(run, path)
            difference = np.abs(a.astype(np.float64) - b)
            differing += int((difference > 0).sum())
            assert difference.max() < (1e-5 if "potential" in path else 5e-6), path
    assert differing > 0  # or it would be no demonstration


def test_the_defect_shows_first_where_it_was_planted(tmp_path: Path) -> None:
    good = Settings(threads=1)
    bad = Settings(threads=1, defect="boundary-sign")
    files = names(run_simulation(tmp_path / "good", good), tmp_path / "good")
    run_simulation(tmp_path / "bad", bad)
    changed = [
        path
        for path in files
        if not np.array_equal(load(tmp_path / "good", path), load(tmp_path / "bad", path))
    ]
    assert [path for path in changed if "iter_0040" not in path] == [
        "iter_0030/rank_1/y.npy",
        "iter_0030/rank_1/vy.npy",
    ]
    before = load(tmp_path / "good", "iter_0030/rank_1/vy.npy")
    after = load(tmp_path / "bad", "iter_0030/rank_1/vy.npy")
    height = load(tmp_path / "good", "iter_0030/rank_1/y.npy")
    assert height[before != after].min() > 61.5  # one mesh cell below the wall, and the last push
    assert 0 < (before != after).sum() < 1000


def test_a_run_is_never_mixed_with_another(tmp_path: Path) -> None:
    settings = Settings(iterations=1, every=1, particles_per_rank=10, threads=1)
    run_simulation(tmp_path, settings)
    with pytest.raises(FileExistsError, match="already holds a run"):
        run_simulation(tmp_path, settings)


@pytest.mark.parametrize(
    "arguments", [{"seed": 1, "particles_per_rank": 0, "threads": 1}, {"threads": 0}]
)
def test_impossible_settings_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ParticleMesh(**{"seed": 1, "particles_per_rank": 10, "threads": 1, **arguments})


def test_unknown_ranks_and_defects_are_refused() -> None:
    mesh = ParticleMesh(seed=1, particles_per_rank=10, threads=1)
    with pytest.raises(ValueError, match="rank"):
        mesh.plant_boundary_sign_error(rank=2)
    with pytest.raises(IndexError):
        mesh.state(2)
    with pytest.raises(ValueError, match="no defect 'typo'"):
        Settings(defect="typo")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--iterations", "2", "--every", "2", "--particles-per-rank", "10"]
    simulation.main([str(tmp_path), *small])
    assert (tmp_path / "iter_0002" / "rank_0" / "x.npy").is_file()
    with pytest.raises(SystemExit) as stop:
        simulation.main([str(tmp_path), *small])
    assert stop.value.code == 2
    assert "already holds a run" in capsys.readouterr().err
    (tmp_path / "iter_0099").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    simulation.main([str(tmp_path), *small, "--overwrite"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["iter_0002", "notes.txt"]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("words", [0, 1, 15, 16, 17, 1000, 4099])
def test_read_pass_reads_every_word(words: int, threads: int) -> None:
    data = np.random.default_rng(words).integers(0, 2**64, words, dtype=np.uint64)
    assert read_pass(data, threads) == int(data.sum(dtype=np.uint64))
