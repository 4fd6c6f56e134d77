"""ParaView's series (.pvd) and files of blocks (.vtm)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from vtk_xml import EXTENT, blocks, parallel, piece, series

from ciwrap.base.errors import ConfigError, CorruptFileError, UnreadableFileError
from ciwrap.formats.find_outputs import find_outputs
from ciwrap.formats.vtk import VtkReader

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Source

LEFT, RIGHT = (0, 2, 0, 2, 0, 0), (2, 3, 0, 2, 0, 0)


def listed(source: Source) -> list[tuple[str, int | None, int | None]]:
    """What there is of t, by place: called, iteration and rank."""
    infos = [info for info in source.variables if info.name.partition("[")[0].endswith("/t")]
    return [(info.called or info.name, info.iteration, info.rank) for info in infos]


def test_a_series_is_a_history(tmp_path: Path) -> None:
    # In no order; the times are what orders them.
    times = [0.5, 0.0, 2.5]
    names = [piece(tmp_path / f"x{time}.vti", 100 * time) for time in times]
    named = [(f'timestep="{t}" group="" part="0"', n) for t, n in zip(times, names, strict=True)]
    path = series(tmp_path / "x.pvd", named)
    with VtkReader().open(path) as source:
        assert listed(source) == [("point_data/t", number, None) for number in range(3)]
        for number, start in enumerate((0.0, 50.0, 250.0)):
            found = source.read(f"point_data/t[{number}]", 0, 12)
            assert found.tolist() == np.arange(start, start + 12).tolist()
        assert [source.read(f"time[{n}]", 0, 1).item() for n in range(3)] == [0.0, 0.5, 2.5]
        assert source.info("time[2]").called == "time"
        assert source.info("time[2]").iteration == 2
    # What the series names is part of it, and is not an output of its own.
    assert [one.path.name for one in find_outputs(tmp_path, ["."]).files] == ["x.pvd"]


def test_how_iterations_of_a_series_are_numbered(tmp_path: Path) -> None:
    name = piece(tmp_path / "x.vti", 0.0)
    path = series(tmp_path / "x.pvd", [(f'timestep="{time}"', name) for time in (0.5, 2.5)])

    def numbers(**options: Any) -> list[int | None]:
        with VtkReader().open(path, options=options) as source:
            return [iteration for _, iteration, _ in listed(source)]

    assert numbers() == numbers(iterations="time") == [0, 1]
    assert numbers(iteration_variable="time", iteration_step=0.5) == [1, 5]
    assert numbers(iterations="none") == [None, None]
    with pytest.raises(CorruptFileError, match="not a whole number of iterations"):
        numbers(iteration_variable="time")
    with pytest.raises(ConfigError, match="no dimension 'x'"):
        numbers(iterations="x")
    with pytest.raises(ConfigError, match="no variable 'y'"):
        numbers(iteration_variable="y")
    with pytest.raises(ConfigError, match="has no option 'attributes'"):
        numbers(attributes=True)


def test_parts_of_a_series_are_ranks_and_groups_are_names(tmp_path: Path) -> None:
    named = [
        (f'timestep="{time}" part="{part}"', piece(tmp_path / f"{time}{part}.vti", part))
        for time in (0, 1)
        for part in (0, 3)
    ]
    with VtkReader().open(series(tmp_path / "x.pvd", named)) as source:
        wanted = [("point_data/t", time, part) for time in (0, 1) for part in (0, 3)]
        assert listed(source) == wanted
        assert source.read("3/point_data/t[1]", 0, 1).item() == 3
        assert source.read("0/point_data/t[1]", 0, 1).item() == 0
    named = [(f'timestep="0" group="{group}"', named[0][1]) for group in ("", "walls")]
    with VtkReader().open(series(tmp_path / "x.pvd", named)) as source:
        assert listed(source) == [("point_data/t", 0, None), ("walls/point_data/t", 0, None)]


def test_a_series_without_times(tmp_path: Path) -> None:
    named = [(f'part="{n}"', piece(tmp_path / f"{n}.vti", n)) for n in range(2)]
    with VtkReader().open(series(tmp_path / "x.pvd", named)) as source:
        assert listed(source) == [("point_data/t", None, 0), ("point_data/t", None, 1)]
        assert "time[0]" not in [info.name for info in source.variables]


def test_a_series_of_parallel_files(tmp_path: Path) -> None:
    """Captures have to notice every file that changes, however deep it is."""
    (tmp_path / "deep").mkdir()
    named = []
    for time in range(2):
        pieces = {}
        for side, extent in (("a", LEFT), ("b", RIGHT)):
            pieces[piece(tmp_path / f"deep/{side}{time}.vti", 10.0 * time, extent)] = extent
        parallel(tmp_path / f"deep/{time}.pvti", EXTENT, pieces)
        named.append((f"timestep='{time}'", f"deep/{time}.pvti"))
    path = series(tmp_path / "x.pvd", named)
    with VtkReader().open(path) as source:
        wanted = [10, 11, 10, 11, 13, 14, 12, 13, 16, 17, 14, 15]
        assert source.read("point_data/t[1]", 0, 12).tolist() == wanted
    names = {str(one.relative_to(tmp_path)) for one in VtkReader().companions(path)}
    pieces_of_both = ("a0.vti", "b0.vti", "a1.vti", "b1.vti")
    assert names == {f"deep/{name}" for name in ("0.pvti", "1.pvti", *pieces_of_both)}


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ([('timestep="0"', "gone.vti")], "names 'gone.vti', which does not exist"),
        ([('timestep="0"', "")], "names '', which does not exist"),
        ([('part="0"', "x.pvd")], "of itself"),
        ([('timestep="one"', "a.vti")], "timestep that is not a number: 'one'"),
        ([('timestep="nan"', "a.vti")], "timestep that is not a number: 'nan'"),
        ([('timestep="0"', "a.vti"), ("", "a.vti")], "timestep to only some of its files"),
        ([('timestep="0"', "a.vti"), ('timestep="0.0"', "a.vti")], "two files for time 0.0"),
        ([('timestep="0" part="-1"', "a.vti")], "part that is not a number: '-1'"),
        ([('timestep="0" part="9999999999"', "a.vti")], "part that is not a number"),
        ([], "holds no data"),
    ],
)
def test_series_that_cannot_be_read(
    tmp_path: Path, named: list[tuple[str, str]], words: str
) -> None:
    piece(tmp_path / "a.vti", 0.0)
    with pytest.raises(CorruptFileError, match=words) as caught:
        VtkReader().open(series(tmp_path / "x.pvd", named))
    assert "x.pvd" in str(caught.value)


def test_a_series_of_series_with_parts(tmp_path: Path) -> None:
    name = piece(tmp_path / "a.vti", 0.0)
    series(tmp_path / "inner.pvd", [('part="0"', name), ('part="1"', name)])
    with pytest.raises(CorruptFileError, match=r"names 'inner.pvd', .* a series of parts"):
        VtkReader().open(series(tmp_path / "x.pvd", [('timestep="0"', "inner.pvd")]))
    series(tmp_path / "inner.pvd", [('timestep="0"', name), ('timestep="1"', name)])
    with pytest.raises(CorruptFileError, match="which holds several times"):
        VtkReader().open(series(tmp_path / "x.pvd", [('timestep="0"', "inner.pvd")]))


def test_a_pipe_in_a_series_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.vti")
    with pytest.raises((CorruptFileError, UnreadableFileError)):
        VtkReader().open(series(tmp_path / "x.pvd", [('timestep="0"', "a.vti")]))


# --- blocks ---------------------------------------------------------------------------------------


def test_blocks(tmp_path: Path) -> None:
    """Also those within blocks and pieces, and of a file that holds a part of the whole."""
    one = piece(tmp_path / "a.vti", 0.0)
    part = piece(tmp_path / "b.vti", 7.0, LEFT)
    inner = (
        f'<Block index="0"><DataSet index="0" file="{one}"/><DataSet index="1"/>'
        f'<DataSet index="2" file="{part}"/></Block>'
        f'<Block index="3"><Piece index="0"><DataSet index="1" file="{one}"/></Piece></Block>'
    )
    with VtkReader().open(blocks(tmp_path / "x.vtm", inner)) as source:
        shapes = {i.name: i.shape for i in source.variables if i.name.endswith("/t")}
        assert source.read("0/2/point_data/t", 0, 9).tolist() == np.arange(7.0, 16.0).tolist()
    names = ("0/0/point_data/t", "0/2/point_data/t", "3/0/1/point_data/t")
    assert shapes == dict(zip(names, ((12,), (9,), (12,)), strict=True))


def test_blocks_that_cannot_be_read(tmp_path: Path) -> None:
    name = piece(tmp_path / "a.vti", 0.0)
    data = f'<DataSet index="0" file="{name}"/>'
    for inner, words in (
        (data * 2, "two files for its block 0"),
        (data.replace(name, "gone.vti"), "names 'gone.vti', which does not exist"),
        (data.replace(name, "x.vtm"), "of itself"),
    ):
        with pytest.raises(CorruptFileError, match=words):
            VtkReader().open(blocks(tmp_path / "x.vtm", inner))
    field = '<FieldData><DataArray type="Float64" Name="f" format="ascii">1</DataArray></FieldData>'
    with VtkReader().open(blocks(tmp_path / "x.vtm", field + data)) as source:
        assert source.read("field_data/f", 0, 1).tolist() == [1.0]
        assert source.info("0/point_data/t").fault is None
