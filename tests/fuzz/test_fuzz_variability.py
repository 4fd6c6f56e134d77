"""Tables and maps of variability that nobody wrote: read whole, or refused in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap.base.errors import CiwrapError

pytest.importorskip("scipy", reason="SciPy is not installed")

from ciwrap.studies.variability.fit import KIND, FittedMap, MapFile, StoredMap, read_map, write_map
from ciwrap.studies.variability.predictors import Kernel
from ciwrap.studies.variability.runs import Axis, Roles, read_runs

if TYPE_CHECKING:
    from pathlib import Path

QUIET = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
CELLS = st.sampled_from(
    [
        "1",
        "2.5",
        "-3",
        "",
        "nan",
        "1e999",
        "x",
        "a b",
        '"',
        '"1,2"',
        "0x1",
        "\u0663",
        "1_0",
        "#",
        "run",
    ]
)


def check_one_line(error: CiwrapError) -> None:
    assert str(error).isprintable()


@QUIET
@given(rows=st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6))
def test_any_table_is_read_or_refused(tmp_path: Path, rows: list[list[str]]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(map(",".join, rows)), encoding="utf-8")
    try:
        runs = read_runs([path], Roles())
    except CiwrapError as error:
        check_one_line(error)
        return
    values = [one for group in runs.groups for runs_ in group.runs.values() for one in runs_]
    assert values
    assert np.all(np.isfinite(values))


@QUIET
@given(data=st.binary(max_size=80))
def test_any_bytes_are_no_map(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(data)
    with pytest.raises(CiwrapError):
        read_map(path)


def whole_map() -> MapFile:
    generator = np.random.default_rng(1)
    points = [(float(a), float(b)) for a in (1, 2, 8) for b in (0, 1, 2, 3)]
    one = StoredMap(
        category={"disk": "ssd"},
        axes=(Axis("a", 1.0, 8.0, True), Axis("b", 0.0, 3.0, False)),
        fixed={"nodes": 4.0},
        points=tuple(points),
        runs=tuple(tuple((10 + generator.normal(size=4)).tolist()) for _ in points),
        seconds=tuple((0.5, 0.25) for _ in points),
        predictor="Delaunay log",
        error=0.1,
        floor=0.05,
        residuals=tuple(0.01 * number for number in range(12)),
        kernel=Kernel((0.5, 1.0), 1.0, 0.1),
        mean_kernel=Kernel((0.5, 1.0), 1.0, 0.1),
        notes=(),
    )
    return MapFile(1, KIND, "seconds", 0, (one,), "2026-11-22", "0.1.0")


def ask(maps: MapFile) -> None:
    """Asks a map about the middle of its axes, as `predict` and `plan` do."""
    for stored in maps.maps:
        fitted = FittedMap(stored)
        point = np.array([(axis.low + axis.high) / 2 for axis in stored.axes])
        found = fitted.predict(point, 0.5)
        assert found.sigma > 0
        assert np.isfinite(found.sigma)
        assert np.all(fitted.process.variances(np.full((1, len(point)), 0.5)) >= 0)


def test_a_map_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    write_map(whole_map(), str(path))
    found = read_map(path)
    assert found.maps == whole_map().maps
    ask(found)
