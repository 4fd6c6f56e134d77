"""Plotfiles of AMReX, through the published suite and as AMReX lays them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from told_by_readers import told

from ciwrap.base.errors import CiwrapError
from ciwrap.formats.find_outputs import find_in, reader_named
from ciwrap.formats.look import survey
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

TYPES = {
    "<f8": "8, (64 11 52 0 1 12 0 1023)),(8, (8 7 6 5 4 3 2 1)",
    ">f8": "8, (64 11 52 0 1 12 0 1023)),(8, (1 2 3 4 5 6 7 8)",
    "<f4": "4, (32 8 23 0 1 9 0 127)),(4, (4 3 2 1)",
    ">f4": "4, (32 8 23 0 1 9 0 127)),(4, (1 2 3 4)",
}
Box = tuple[tuple[int, ...], tuple[int, ...]]


def text_of(box: Box) -> str:
    """A box as AMReX writes it, x first; its corners here have z first."""
    first, last = (",".join(map(str, corner[::-1])) for corner in box)
    return f"(({first}) ({last}) ({','.join('0' * len(box[0]))}))"


def write_level(folder: Path, fields: Arrays, low: Any, boxes: list[Box], ghosts: int = 0) -> None:
    """A level of these boxes, two to a file; `fields` begin at the corner `low`."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [b"" for _ in boxes[::2]]
    places, least, most = [], [], []
    for number, (first, last) in enumerate(boxes):
        place = tuple(slice(a - o, b - o + 1) for a, b, o in zip(first, last, low, strict=True))
        inner = [np.ascontiguousarray(array[place]) for array in fields.values()]
        stored = [np.pad(one, ghosts, constant_values=-9) for one in inner]
        around = (tuple(a - ghosts for a in first), tuple(b + ghosts for b in last))
        head = f"FAB (({TYPES[inner[0].dtype.str]})){text_of(around)} {len(inner)}\n"
        places.append(f"FabOnDisk: Cell_D_{number // 2:05d} {len(files[number // 2])}\n")
        files[number // 2] += head.encode() + b"".join(one.tobytes() for one in stored)
        least.append("".join(f"{one.min():.16e}," for one in inner) + "\n")
        most.append("".join(f"{one.max():.16e}," for one in inner) + "\n")
    for number, data in enumerate(files):
        (folder / f"Cell_D_{number:05d}").write_bytes(data)
    count = len(boxes)
    extremes = "\n".join(f"{count},{len(fields)}\n{''.join(one)}" for one in (least, most))
    grown = f"({','.join([str(ghosts)] * len(low))})" if ghosts else "0"
    (folder / "Cell_H").write_text(
        f"1\n1\n{len(fields)}\n{grown}\n({count} 0\n"
        + "".join(text_of(box) + "\n" for box in boxes)
        + f")\n{count}\n{''.join(places)}\n{extremes}\n"
    )


def write_plotfile(path: Path, levels: list[tuple[Arrays, Any, list[Box]]], **facts: Any) -> None:
    """A plotfile. levels: of each the fields, the corner where they begin, and the boxes."""
    fields, low, boxes = levels[0]
    axes = len(low)
    high = np.max([last for _, last in boxes], axis=0)
    count = len(levels)
    domains = [
        text_of(((0,) * axes, tuple((2**level * (high + 1) - 1).tolist())))
        for level in range(count)
    ]
    text = f"HyperCLaw-V1.1\n{len(fields)}\n" + "".join(f"{name}\n" for name in fields)
    # Some programs write the ratios of all levels that there may be, here one more.
    text += f"{axes}\n0.25\n{count - 1}\n{'0 ' * axes}\n{'1 ' * axes}\n{'2 ' * count}\n"
    text += f"{' '.join(domains)} \n{'7 ' * count}\n"
    text += "".join(f"{0.5**level} " * axes + "\n" for level in range(count)) + "0\n0\n"
    for level, (arrays, corner, parts) in enumerate(levels):
        text += f"{level} {len(parts)} 0.25\n7\n" + "0 1\n" * (axes * len(parts))
        text += f"Level_{level}/Cell\n"
        write_level(path / f"Level_{level}", arrays, corner, parts, **facts)
    (path / "Header").write_text(text)


def halves(shape: tuple[int, ...]) -> list[Box]:
    """Boxes that are divided along the first axis, if that is long enough."""
    last = tuple(length - 1 for length in shape)
    if shape[0] == 1:
        return [((0,) * len(shape), last)]
    cut = shape[0] // 2
    return [
        ((cut, *[0] * (len(shape) - 1)), last),
        ((0,) * len(shape), (cut - 1, *last[1:])),
    ]


class TestData(ReaderSuite):
    suffix = ""
    dtypes = tuple(TYPES)
    shapes = ((7,), (3, 5), (4, 1, 6), (1, 1, 1))
    damaged = "Level_0/Cell_D_00000"
    fuzz_examples = 60
    slowly = 5

    def make_reader(self) -> Reader:
        return reader_named("amrex")

    def part(self, path: Path) -> Path:
        return path / self.damaged

    def write(self, path: Path, variables: Arrays) -> None:
        """Several types cannot be in one plotfile."""
        first = next(iter(variables.values()))
        arrays = {name: one.astype(first.dtype) for name, one in variables.items()}
        write_plotfile(path, [(arrays, (0,) * first.ndim, halves(first.shape))])

    def expected(self, variables: Arrays) -> Arrays:
        first = next(iter(variables.values()))
        axes, corners = first.ndim, np.zeros((2, 3), "<i8")
        corners[1, 3 - axes :] = np.array(first.shape) - 1
        return {
            "time": np.array(0.25),
            "low": np.zeros(axes),
            "high": np.ones(axes),
            "steps": np.array([7]),
            "coordinates": np.array(0),
            "Level_0/domain": corners,
            "Level_0/cell_size": np.ones(axes),
            "Level_0/extent": corners,
            **{f"Level_0/{name}": one.astype(first.dtype) for name, one in variables.items()},
        }


class TestHeader(TestData):
    fixed_size = False  # the last name of a level, and numbers, may be shorter
    damaged = "Header"
    slowly = 7


class TestHeaderOfLevel(TestData):
    fixed_size = False
    damaged = "Level_0/Cell_H"
    slowly = 7


FIELD = np.arange(64.0).reshape(8, 8) / 3
WHOLE: list[Box] = [((0, 0), (7, 7))]
QUARTERS: list[Box] = [((0, 0), (3, 3)), ((4, 0), (7, 3)), ((0, 4), (3, 7)), ((4, 4), (7, 7))]


def test_how_a_level_is_divided_is_no_difference(tmp_path: Path) -> None:
    fields = {"rho": FIELD, "x_velocity": FIELD + 1}
    write_plotfile(tmp_path / "a", [(fields, (0, 0), WHOLE)])
    write_plotfile(tmp_path / "b", [(fields, (0, 0), QUARTERS)])
    write_plotfile(tmp_path / "c", [(fields, (0, 0), QUARTERS[::-1])], ghosts=2)
    found = told(tmp_path / "a", "amrex")
    assert found["Level_0/rho"] == ("<f8", (8, 8), (("dims", "y x"),), FIELD.reshape(-1).tolist())
    assert found == told(tmp_path / "b", "amrex") == told(tmp_path / "c", "amrex")


def test_what_a_level_does_not_cover(tmp_path: Path) -> None:
    fine = np.arange(64.0).reshape(8, 8) * 7
    boxes: list[Box] = [((4, 6), (7, 9)), ((8, 10), (11, 13))]
    path = tmp_path / "plt00007"
    write_plotfile(path, [({"rho": FIELD}, (0, 0), QUARTERS), ({"rho": fine}, (4, 6), boxes)])
    with reader_named("amrex").open(path) as source:
        read = {one.name: source.read(one.name, 0, one.element_count) for one in source.variables}
    assert read["Level_1/extent"].tolist() == [0, 4, 6, 0, 11, 13]
    assert read["Level_1/domain"].tolist() == [0, 0, 0, 0, 15, 15]
    is_covered = read["Level_1/covered"].reshape(8, 8)
    assert is_covered[:4, :4].all()
    assert is_covered[4:, 4:].all()
    assert is_covered.sum() == 32
    values = read["Level_1/rho"].reshape(8, 8)
    assert np.array_equal(values[is_covered], fine[is_covered])
    assert np.isnan(values[~is_covered]).all()
    assert "Level_0/covered" not in read


def test_a_plotfile_is_one_output_wherever_it_lies(tmp_path: Path) -> None:
    for step in (0, 10):
        path = tmp_path / "run" / f"plt{step:05d}"
        write_plotfile(path, [({"rho": FIELD}, (0, 0), QUARTERS)])
    (path / "job_info").write_text("Job run at 29 Nov 2026")
    (path / "electrons").mkdir()
    files = find_in(tmp_path / "run").files
    assert [(one.label, one.reader.name) for one in files] == [
        ("plt00000", "amrex"),
        ("plt00010", "amrex"),
    ]
    (alone,) = find_in(path).files
    assert alone.reader.name == "amrex"
    by_step = find_in(tmp_path / "run", outputs=["plt{iteration:d}"]).files
    assert [one.iteration for one in by_step] == [0, 10]
    assert [one.path.name for one in survey(tmp_path / "run").candidates] == [
        "plt00000",
        "plt00010",
    ]
    found = told(path, "amrex")
    assert found["electrons"] == "is in a plotfile, but is not one of its fields"
    assert "job_info" not in found


def test_a_checkpoint_is_no_plotfile(tmp_path: Path) -> None:
    write_plotfile(tmp_path / "chk", [({"rho": FIELD}, (0, 0), WHOLE)])
    header = tmp_path / "chk" / "Header"
    header.write_text("Checkpoint version: 1\n" + header.read_text())
    assert {one.reader.name for one in find_in(tmp_path / "chk").files} == {"tokens", "bytes"}


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("Header", "Level_0/Cell", "../../Cell", "names '../../Cell' as the data of Level_0"),
        ("Header", "Level_0/Cell", "Level_0/Cell 1", "has more after its end"),
        ("Header", "\n2\n0.25", "\n4\n0.25", "as many fields as it says|cannot be read"),
        ("Header", "0.25\n0\n", "0.25x\n0\n", "'0.25x', which is not a number"),
        ("Level_0/Cell_H", "1\n1\n1\n0", "2\n1\n1\n0", "not of version 1; set vismf"),
        ("Level_0/Cell_H", "1\n1\n1\n0", "1\n1\n2\n0", "other fields than the plotfile"),
        ("Level_0/Cell_H", "((4,4) (7,7)", "((4,3) (7,7)", "another box, or type"),
        ("Level_0/Cell_H", "((4,4) (7,7)", "((4,4) (7,8)", "another box, or type"),
        ("Level_0/Cell_H", "Cell_D_00001 0", "Cell_D_00001 8", "no box of 1 fields at byte 8"),
        ("Level_0/Cell_H", "4,1\n", "", "ends too early"),
        ("Level_0/Cell_D_00000", " 1\n", " 2\n", "no box of 1 fields"),
        ("Level_0/Cell_D_00000", "64 11", "64 15", "no box of 1 fields"),
    ],
)
def test_what_does_not_follow_the_format(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    path = tmp_path / "plt"
    write_plotfile(path, [({"rho": FIELD}, (0, 0), QUARTERS)])
    data = (path / file).read_bytes()
    assert old.encode() in data
    (path / file).write_bytes(data.replace(old.encode(), new.encode(), 1))
    with pytest.raises(CiwrapError, match=message):
        told(path, "amrex")


def test_boxes_that_overlap(tmp_path: Path) -> None:
    path = tmp_path / "plt"
    write_plotfile(path, [({"rho": FIELD}, (0, 0), [*QUARTERS[:3], ((3, 4), (7, 7))])])
    with pytest.raises(CiwrapError, match="is on boxes that overlap"):
        told(path, "amrex")
