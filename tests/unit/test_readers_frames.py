"""XYZ, dumps of LAMMPS and cube files, through the published suite and as programs write them."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from told_by_readers import reader_for

from ciwrap.base.errors import CiwrapError, ConfigError, CorruptFileError
from ciwrap.formats.find_outputs import formats_of, reader_named
from ciwrap.formats.reader import Source
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

TYPES = {"f": "R", "i": "I", "b": "L", "U": "S"}
Found = dict[tuple[str, int | None], Any]


def word(value: Any) -> str:
    return (
        "TF"[value is False]
        if isinstance(value, bool)
        else value or "-"
        if isinstance(value, str)
        else repr(value)
    )


def without_blanks(arrays: Arrays) -> Arrays:
    """Words of a row hold no blanks and are not empty."""
    return {
        name: np.array([one.replace(" ", "_") or "-" for one in array], array.dtype)
        if array.dtype.kind == "U"
        else array
        for name, array in arrays.items()
    }


class TestExtendedXyz(ReaderSuite):
    suffix = ".xyz"
    dtypes = ("<i8", "<f8", "|b1", "<U16")
    shapes = ((0,), (1,), (7,), (1000,))

    def make_reader(self) -> Reader:
        return reader_named("xyz")

    def variables(self, dtype: str, shape: tuple[int, ...]) -> Arrays:
        return without_blanks(super().variables(dtype, shape))

    def write(self, path: Path, variables: Arrays) -> None:
        arrays = without_blanks(variables)
        properties = ":".join(f"{n}:{TYPES[a.dtype.kind]}:1" for n, a in arrays.items())
        rows = zip(*[array.tolist() for array in arrays.values()], strict=True)
        lines = [" ".join(map(word, row)) for row in rows]
        head = [str(len(lines)), f"Properties={properties}"]
        path.write_text("\n".join([*head, *lines]) + "\n")

    def expected(self, variables: Arrays) -> Arrays:
        return {f"{name}[0]": array for name, array in without_blanks(variables).items()}

    def test_bytes_left_over(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        path.write_bytes(path.read_bytes() + b"8 x")
        self.refused(path, arrays, CorruptFileError)


class TestLammps(TestExtendedXyz):
    suffix = ".lammpstrj"
    dtypes = ("<f8",)

    def make_reader(self) -> Reader:
        return reader_named("lammps")

    def write(self, path: Path, variables: Arrays) -> None:
        rows = list(zip(*[array.tolist() for array in variables.values()], strict=True))
        head = f"ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n{len(rows)}\n"
        head += f"ITEM: ATOMS {' '.join(variables)}\n"
        path.write_text(head + "".join(" ".join(map(repr, row)) + "\n" for row in rows))


class TestCube(ReaderSuite):
    suffix = ".cube"
    dtypes = ("<f8",)
    shapes = ((1, 1, 1), (2, 3, 4), (5, 1, 7), (3, 20, 10))
    holds_many = False

    def make_reader(self) -> Reader:
        return reader_named("cube")

    def write(self, path: Path, variables: Arrays) -> None:
        path.write_text(cube(variables["data"]))

    def expected(self, variables: Arrays) -> Arrays:
        return {
            "origin": np.zeros(3),
            "axes": np.eye(3),
            "numbers": np.array([8.0]),
            "charges": np.array([6.0]),
            "positions": np.array([[0.5, 0.25, 1.0]]),
            **variables,
        }


GRID = """\
ITEM: TIMESTEP
0
ITEM: BOX BOUNDS pp pp pp
0 5
0 5
0 5
ITEM: DIMENSION
3
ITEM: GRID SIZE nx ny nz
2 1 1
ITEM: GRID CELLS c_g:grid:data[1]
1
2
"""


def cube(data: Any, atoms: int = 1, more: str = "") -> str:
    head = f"made by a test\nof a field\n{atoms} 0 0 0\n"
    for axis, length in enumerate(data.shape[:3]):
        head += f"{length} " + " ".join(str(float(axis == one)) for one in range(3)) + "\n"
    head += "8 6.0 0.5 0.25 1.0\n" + more
    numbers = [repr(value) for value in data.reshape(-1).tolist()]
    return head + "".join(" ".join(numbers[at : at + 6]) + "\n" for at in range(0, len(numbers), 6))


def opened(path: Path, text: str, **options: Any) -> Source:
    path.write_text(text)
    return reader_for(path).open(path, options=options)


def found(path: Path, text: str, **options: Any) -> Found:
    with opened(path, text, **options) as source:
        return {
            (info.called or info.name, info.iteration): source.read(
                info.name, 0, info.element_count
            ).tolist()
            for info in source.variables
        }


CP2K = """\
       2
 i =        0, time =        0.000, E =        -0.0013545033
 Ar         0.5000000000        0.0000000000        0.0000000000
 Ar         3.8000000000        0.0000000000        0.0000000000
       2
 i =        5, time =        2.500, E =        -0.0013539641
 Ar         0.5024684750        0.0000000000        0.0000000000
 Ar         3.8000000000        0.0000000000        0.0000000000
"""


def test_xyz_as_cp2k_writes_it(tmp_path: Path) -> None:
    """Energies of the comment are results, too."""
    values = found(tmp_path / "t.xyz", CP2K, iteration_variable="i")
    assert values["E", 5] == [-0.0013539641]
    assert values["time", 0] == [0.0]
    assert values["species", 0] == ["Ar", "Ar"]
    assert values["pos", 5] == [0.502468475, 0, 0, 3.8, 0, 0]
    assert {step for _, step in found(tmp_path / "t.xyz", CP2K)} == {0, 1}
    with pytest.raises(ConfigError, match="there is no key 'j' with one value for each"):
        opened(tmp_path / "t.xyz", CP2K, iteration_variable="j")


def test_extended_xyz(tmp_path: Path) -> None:
    text = (
        '1\nLattice="1 0 0 0 1 0 0 0 1" Properties=species:S:1:pos:R:3:id:I:1:fixed:L:1'
        ' energy=-1.5 pbc="T T F" virial={1.0 2.0}\nH 0 0.5 1D-1 7 T\n\n'
    )
    assert found(tmp_path / "t.extxyz", text) == {
        ("Lattice", 0): [1, 0, 0, 0, 1, 0, 0, 0, 1],
        ("energy", 0): [-1.5],
        ("pbc", 0): ["T T F"],
        ("virial", 0): [1, 2],
        ("species", 0): ["H"],
        ("pos", 0): [0, 0.5, 0.1],
        ("id", 0): [7],
        ("fixed", 0): [True],
    }


DUMP = """\
ITEM: TIMESTEP
50
ITEM: NUMBER OF ATOMS
2
ITEM: BOX BOUNDS pp pp ff
0.0 6.5
0.0 6.5
-1.0 1.0
ITEM: ATOMS id type element x c_pe
2 1 Ar 0.5 -6.5
1 1 Ar 0.25 -6.0
"""


def test_a_dump_of_lammps(tmp_path: Path) -> None:
    text = DUMP + DUMP.replace("50\n", "100\n", 1)
    values = found(tmp_path / "t.lammpstrj", text)
    assert values["id", 50] == [2, 1]
    assert values["element", 100] == ["Ar", "Ar"]
    assert values["c_pe", 50] == [-6.5, -6.0]
    assert [values[f"box.{name}", 50] for name in ("xlo", "xhi", "zlo")] == [[0], [6.5], [-1]]
    with opened(tmp_path / "t.lammpstrj", text) as source:
        assert source.info("box.zhi[0]").labels == (("boundary", "pp pp ff"),)
    (tmp_path / "dump.50").write_text(text)
    assert formats_of(tmp_path / "dump.50") == ("lammps",)


def test_a_cube_of_several_orbitals(tmp_path: Path) -> None:
    data = np.arange(2 * 2 * 3 * 2.0).reshape(2, 2, 3, 2)
    with opened(tmp_path / "t.cube", cube(data, -1, "2 11 12\n")) as source:
        assert source.info("data").shape == (2, 2, 3, 2)
        assert source.read("data", 0, 24).tolist() == data.reshape(-1).tolist()
        assert source.read("orbitals", 0, 2).tolist() == [11, 12]
        assert source.info("axes").labels == (("units", "bohr"),)


def test_a_cube_without_a_last_line_break(tmp_path: Path) -> None:
    """As ASE and GPAW write it. What lost a digit is cut off."""
    numbers = [f"{number:e}" for number in np.sin(np.arange(30.0)).tolist()]
    head = cube(np.zeros((2, 3, 5))).partition("8 6.0")[0] + "8 6.0 0.5 0.25 1.0\n"
    with opened(tmp_path / "t.cube", head + "\n".join(numbers)) as source:
        assert source.read("data", 0, 30).tolist() == list(map(float, numbers))
    for cut in range(1, len(numbers[-1])):
        with (
            opened(tmp_path / "t.cube", head + "\n".join(numbers)[:-cut]) as source,
            pytest.raises(CiwrapError, match="no line break"),
        ):
            source.read("data", 0, 30)
    # Numbers of any length say nothing of the last one.
    shortest = " ".join(str(number / 8) for number in range(30))
    with (
        opened(tmp_path / "t.cube", head + shortest) as source,
        pytest.raises(CiwrapError, match="no line break"),
    ):
        source.read("data", 0, 30)


@pytest.mark.parametrize(
    ("suffix", "text", "message"),
    [
        (".xyz", "2\n\nH 0 0 0\n", "line 4 is where the file ends, before it should"),
        (".xyz", "1\n\nH 0 0 0", "line 3 is where the file ends, before it should"),
        (".xyz", "two\n\nH 0 0 0\n", "line 1 is 'two' where a number of rows"),
        (".xyz", "1\n\nH 0 0\n", "line 3 has 3 words where an atom and x, y, z are expected"),
        (".xyz", "2\n\nH 0 0 0\nH 0 0\n", "line 4 has 3 words where 4 are expected"),
        (".xyz", "1\n\nH 0 0 ****\n", "line 3 holds '****', which is not a number"),
        (".xyz", "1\nProperties=pos:R\nH 0 0 0\n", "line 2 has Properties"),
        (".xyz", "999999999999\n\n", "line 1 is '999999999999'"),
        (".lammpstrj", DUMP.replace("2 1 Ar", "2 Ar"), "line 10 has 4 words where 5"),
        (".lammpstrj", DUMP.replace("2 1 Ar", "2.5 1 Ar"), "line 10 holds '2.5', which is no"),
        (".lammpstrj", DUMP + "1 1 Ar 0.25 -6.0\n", "where 'ITEM: ' is expected"),
        (".lammpstrj", DUMP.replace("x c_pe", "x x"), "names a column twice"),
        # A run that was broken off within the head of a frame, and went on.
        (".lammpstrj", "ITEM: TIMESTEP\n0\n" + DUMP, "line 3 is a second 'TIMESTEP' of one frame"),
        (
            ".lammpstrj",
            DUMP.replace("0.0 6.5", "0 1 2 3 4", 1),
            "hold numbers (2 or 3 or 4 of them)",
        ),
        (".lammpstrj", "ITEM: TIME\n0.5 7\n" + DUMP, "line 2 should hold numbers (1 of them)"),
        (".cube", cube(np.zeros((2, 2, 2)))[:-4], "no line break"),
        (".cube", cube(np.zeros((2, 2, 2))) + "1.0\n", "holds more than the 8 numbers"),
        (".cube", cube(np.zeros((2, 2, 2))).replace("2 1.0", "3 1.0"), "holds 8 of the 12"),
        (".cube", cube(np.zeros((2, 2, 2))).replace("2 1.0", "99 1.0"), "claims"),
        (".cube", cube(np.zeros((2, 2, 2))).replace("2 0.0 1.0", "-2 0.0 1.0"), "below 0"),
        (".lammpstrj", GRID, "is a dump of a grid, which is not read"),
        (
            ".lammpstrj",
            DUMP.replace("ITEM: ATOMS", "ITEM: ENTRIES"),
            "rows of 'ENTRIES', and not 'ATOMS'",
        ),
    ],
)
def test_damage_names_the_line(tmp_path: Path, suffix: str, text: str, message: str) -> None:
    path = tmp_path / f"t{suffix}"
    with pytest.raises(CiwrapError) as caught:
        found(path, text)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


def test_one_frame_is_held_at_a_time(tmp_path: Path) -> None:
    rows = "".join(f"H {n}.5 0 0\n" for n in range(2000))
    (tmp_path / "t.xyz").write_text(f"2000\n\n{rows}" * 40)
    tracemalloc.start()
    try:
        with reader_for(tmp_path / "t.xyz").open(tmp_path / "t.xyz") as source:
            total = sum(
                source.read(info.name, 0, info.element_count).size for info in source.variables
            )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == 40 * 2000 * 4
    assert peak < 40 * 2000 * 24  # the positions of all frames alone


def test_words_of_a_comment_are_taken_whole(tmp_path: Path) -> None:
    """A decimal comma ended the number, and what stood behind it was not compared."""
    text = "1\nF=1,5 G=(1,2) i=3,time=1.5, E = -2\nH 0 0 0\n"
    values = found(tmp_path / "t.xyz", text)
    assert {name: one for (name, _), one in values.items() if name not in ("species", "pos")} == {
        "F": ["1,5"], "G": ["(1,2)"], "i": [3.0], "time": [1.5], "E": [-2.0],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("comment", "facts"),
    [
        ('info="_JSON {\\"a\\": 1.5}" E=2', {"info": ['_JSON {\\"a\\": 1.5}'], "E": [2.0]}),
        ('"my key"=1.5', {"my key": [1.5]}),
        ("m=[[[1, 2], [3, 4]]]", {"m": [1.0, 2.0, 3.0, 4.0]}),
        ('d={"a": {"b": 1}, "c": 2}', {"d": ['"a": {"b": 1}, "c": 2']}),
        ("E=[1, 2 done", {"E": ["[1, 2 done"]}),
        ("made today k+1=5 E=1", {"E": [1.0], "comment": ["k+1=5"]}),
        ('E=0{0, F=1.5{eV} G=a"b"', {"E": ["0{0"], "F": ["1.5{eV}"], "G": ['a"b"']}),
        ("E=1,F=2", {"E": [1.0], "F": [2.0]}),
        ('comment=a #k = "b c" E=', {"comment": ["a"], "comment.2": ['#k = "b c" E=']}),
    ],
)
def test_all_that_a_comment_says_of_keys(
    tmp_path: Path, comment: str, facts: dict[str, Any]
) -> None:
    """What stood behind an escaped quotation mark, or deeper in brackets, was not compared, nor
    were keys of other characters.
    """
    values = found(tmp_path / "t.xyz", f"1\n{comment}\nH 0 0 0\n")
    assert {name: one for (name, _), one in values.items() if name not in ("species", "pos")} == (
        facts
    )


def test_words_that_are_longer_than_what_is_read(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match="has more than the 16 characters that are read"):
        found(tmp_path / "t.xyz", "1\nc\nSeventeenLetters1 0 0 0\n")
    frame = "ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n1\nITEM: ATOMS x\n0\n"
    units = [
        found(tmp_path / "t.lammpstrj", f"ITEM: UNITS\nseventeen letters{at}\n{frame}")
        for at in range(2)
    ]
    assert units[0] != units[1]


@pytest.mark.parametrize("number", ["- 1.5", "-   1.5", "1.5 E+05", "\u2212 1.5"])
def test_the_number_of_a_key_keeps_what_stands_apart(tmp_path: Path, number: str) -> None:
    """Nothing of it is left out; as a text it equals itself alone."""
    path = tmp_path / "t.xyz"
    text = f"1\nk = 1, E = {number}, b=3 -2\nH 0 0 1\n"
    with opened(path, text) as source:
        assert source.read("E[0]", 0, 1).tolist() == [number]
        assert source.read("b[0]", 0, 1).tolist() == [3.0]
