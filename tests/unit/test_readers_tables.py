"""Text tables and raw files: what is read, and what is refused with line and column."""

from __future__ import annotations

import csv
import io
import json
import locale
import math
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from told_by_readers import reader_for

from ciwrap.base.errors import (
    CiwrapError,
    ConfigError,
    CorruptFileError,
    DuplicateVariableError,
    OutputMissingError,
    UnreadFileError,
)
from ciwrap.formats.find_outputs import reader_named
from ciwrap.formats.reader import Source
from ciwrap.formats.tables import TextReader, _cells_of, parse_float

if TYPE_CHECKING:
    from pathlib import Path

LEAST, MOST = -(1 << 63), (1 << 63) - 1
Table = dict[str, tuple[str, list[Any]]]


def open_file(path: Path, **options: Any) -> Source:
    return reader_for(path).open(path, options=options)


def table(folder: Path, text: str | bytes, suffix: str = ".csv", **options: Any) -> Table:
    """The columns of a table: dtype and values by name."""
    path = folder / f"t{suffix}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with open_file(path, **options) as source:
        return {
            info.name: (info.dtype, source.read(info.name, 0, info.element_count).tolist())
            for info in source.variables
        }


@pytest.mark.parametrize(
    ("text", "suffix", "expected"),
    [
        ("a,b\n1,2.5\n3,4\n", ".csv", {"a": ("<i8", [1, 3]), "b": ("<f8", [2.5, 4.0])}),
        ("1,x\n2,y\n", ".csv", {"col_0": ("<i8", [1, 2]), "col_1": ("<U16", ["x", "y"])}),
        ("a\tb c\n1\t2\n", ".tsv", {"a": ("<i8", [1]), "b c": ("<i8", [2])}),
        (" 1   2.0 \n\n 3\t4.0\n", ".txt", {"col_0": ("<i8", [1, 3]), "col_1": ("<f8", [2, 4])}),
        ("# made by x\n# t y\n1 2\n", ".dat", {"t": ("<i8", [1]), "y": ("<i8", [2])}),
        ("# one two three\n1 2\n", ".dat", {"col_0": ("<i8", [1]), "col_1": ("<i8", [2])}),
        ("# 3 4\n1 2\n", ".dat", {"col_0": ("<i8", [1]), "col_1": ("<i8", [2])}),
        ("1 2\n# t y\n3 4\n", ".dat", {"col_0": ("<i8", [1, 3]), "col_1": ("<i8", [2, 4])}),
        ("t, y\n1, 2\n", ".txt", {"t": ("<i8", [1]), "y": ("<i8", [2])}),
        ("t;y\n1;2\n", ".dat", {"t": ("<i8", [1]), "y": ("<i8", [2])}),
        ("a,b\r\n1,2\r\n", ".csv", {"a": ("<i8", [1]), "b": ("<i8", [2])}),
        ("\ufeffa,b\n1,2\n", ".csv", {"a": ("<i8", [1]), "b": ("<i8", [2])}),
        ("a,,c\n1,2,3\n", ".csv", {"a": ("<i8", [1]), "col_1": ("<i8", [2]), "c": ("<i8", [3])}),
        ('"b ""q"", c"\n"two\nlines"\n', ".csv", {'b "q", c': ("<U16", ["two\nlines"])}),
        ('a b\n1 "x y"\n', ".dat", {"a": ("<i8", [1]), "b": ("<U16", ["x y"])}),
        ('"1","2.5"\n', ".csv", {"col_0": ("<i8", [1]), "col_1": ("<f8", [2.5])}),
        ("a,b\n", ".csv", {"a": ("<f8", []), "b": ("<f8", [])}),
        ("a,b\nx,\n,y\n", ".csv", {"a": ("<U16", ["x", ""]), "b": ("<U16", ["", "y"])}),
        ("a\n1\n1.5\n9007199254740992\n", ".csv", {"a": ("<f8", [1, 1.5, 2.0**53])}),
        (f"a\n{LEAST}\n{MOST}\n", ".csv", {"a": ("<i8", [LEAST, MOST])}),
        ("a\n" + "x" * 17 + "\n", ".csv", {"a": ("<U32", ["x" * 17])}),
        ("name\nBjörk\n", ".csv", {"name": ("<U16", ["Björk"])}),
        ("a\n007\n+5\n-0\n", ".csv", {"a": ("<i8", [7, 5, 0])}),
    ],
)  # fmt: skip
def test_tables(tmp_path: Path, text: str, suffix: str, expected: Table) -> None:
    assert table(tmp_path, text, suffix) == expected


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1.0D-3", 1e-3), ("1.5d+2", 150.0), ("1Q2", 100.0), ("1.0-103", 1e-103),
        ("-.5+100", -5e99), ("0x1.8p1", 3.0), ("-0X.8P+1", -1.0), ("0x1F", 31.0), ("1.", 1.0),
        (".5", 0.5), ("+1e+05", 1e5), ("5e-324", 5e-324), ("0e-999", 0.0), ("inf", math.inf),
        ("-Infinity", -math.inf), ("+INF", math.inf), (" 2 ", 2.0), ("-0.0", -0.0),
    ],
)  # fmt: skip
def test_spellings_of_numbers(tmp_path: Path, cell: str, value: float) -> None:
    found = table(tmp_path, f"0.5,{cell}\n0.5,{cell}\n")["col_1"][1]
    if isinstance(found[0], float):
        assert [number.hex() for number in found] == [value.hex()] * 2
    else:
        assert found == [value] * 2
    assert parse_float(cell) == value
    assert math.isnan(parse_float("-NaN") or 0.0)


@pytest.mark.parametrize(
    "cell",
    ["1_000", "1,5", "\u0661", "1e", "e5", ".", "-", "0x", "1.0-3", "1d", "nan(1)", "1 2", "***"],
)
def test_what_is_no_number(tmp_path: Path, cell: str) -> None:
    assert parse_float(cell) is None
    with pytest.raises(CorruptFileError, match=r"line 4, column 2: .* is not a number"):
        table(tmp_path, f'a,b\n1,2.5\n\n1,"{cell}"\n')


def test_numbers_that_doubles_hold(tmp_path: Path) -> None:
    """Of whole numbers those that are doubles, and others where somebody says that they may be."""
    cells = ["9007199254740992", "100000000000000000000", "0e-400", "-0.0", "0x0p1", "5e-324"]
    found = table(tmp_path, "a\n1.5\n" + "".join(f"{cell}\n" for cell in cells))
    assert found["a"][1] == [1.5, 2.0**53, 1e20, 0.0, 0.0, 0.0, 5e-324]
    found = table(tmp_path, "a\n9007199254740993\n", types={"a": "float"})
    assert found["a"][1] == [2.0**53]


@pytest.mark.parametrize(
    ("text", "options", "match"),
    [
        ("", {}, "holds no rows"),
        ("# only\n\n", {}, "holds no rows"),
        ("a,b\n1,2\n3\n", {}, "line 3: has 1 cell where 2 .*; if it is no row, set 'comment: "),
        ("a,b\n1,2\n3,4,5\n", {}, "line 3: has 3 cells where 2 are expected"),
        ("a,b\n1,2\n3,x\n", {}, "b: line 3, column 2: 'x' is not a number"),
        ("a,b\n1,2\n3,\n", {"empty_is_nan": False}, "line 3, column 2: '' is empty"),
        ("a\n1\n1e999\n", {}, "line 3, column 1: '1e999' is beyond the range"),
        ("a\n1.5\n1e-400\n", {}, "line 3, column 1: '1e-400' is beyond the range"),
        ("a\n1.5\n1.0D-400\n", {}, "line 3, column 1: '1.0D-400' is beyond the range"),
        ("a\n1.5\n0x0.1p-2000\n", {}, "line 3, column 1: '0x0.1p-2000' is beyond the range"),
        ("a\n1.5\n9007199254740993\n", {}, "line 3, column 1: .* that a double does not hold"),
        ("a\nnan\n-9007199254740993\n", {}, "line 3, column 1: .* that a double does not hold"),
        ("a\n1\n9223372036854775808\n", {}, "column 1: .* fit 64 bits .*column: text"),
        ("a\n1\n" + "9" * 5000 + "\n", {}, "does not fit 64 bits"),
        ("a\n1.5\n2\n", {"types": {"a": "int"}}, "line 2, column 1: '1.5' is not a whole number"),
        ("a\nx\n", {"types": {"a": "float"}}, "line 2, column 1: 'x' is not a number"),
        ("a,b\n1,2", {"final_newline": True}, "line 2: the last line has no line break"),
        ('a,b\n1,"2\n3,4\n', {}, "line 2: has a quote that is never closed"),
        ('a,b\n1,"2"x\n', {}, "line 2: has a quote within a cell"),
        ('a b\n1 "2"x\n', {"delimiter": "space"}, "line 2: has a quote within a cell"),
        ("a,b\n1,\0\n", {}, "NUL bytes.*format: raw"),
        (b"a,b\n1,\xff\n", {}, "not UTF-8 text"),
        ("1,2\n3,4\n", {"types": {"a": "int"}}, "there is no column 'a' .known: col_0, col_1"),
        ("a\n1\n", {"types": {"a": "str"}}, "'str' is not a column type"),
        ("a\n1\n", {"delimiter": "::"}, "must be one character"),
        ("a\n1\n", {"delimiter": '"'}, "must be one character"),
    ],
)
def test_tables_that_are_refused(
    tmp_path: Path, text: str | bytes, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(CiwrapError, match=match) as caught:
        table(tmp_path, text, **options)
    assert isinstance(caught.value, (CorruptFileError, ConfigError))
    assert str(caught.value).startswith(str(tmp_path / "t.csv"))


def test_options_of_tables(tmp_path: Path) -> None:
    assert table(tmp_path, "a,b\n1,\n,2\n", empty_is_nan=True)["b"][1][1] == 2
    assert table(tmp_path, "a\n1\n2", final_newline=False) == {"a": ("<i8", [1, 2])}
    assert table(tmp_path, "a\n1\n", header="no") == {"col_0": ("<U16", ["a", "1"])}
    assert table(tmp_path, "1\n2\n", header="yes") == {"1": ("<i8", [2])}
    assert table(tmp_path, "1\n2\n", header=True) == {"1": ("<i8", [2])}
    assert table(tmp_path, "% no\na\n1\n", comment="%") == {"a": ("<i8", [1])}
    assert table(tmp_path, "#a\n#b\n", comment="") == {"#a": ("<U16", ["#b"])}
    assert table(tmp_path, "a|b\n1|2\n", delimiter="|")["b"] == ("<i8", [2])
    assert table(tmp_path, "a b\n1 2\n", delimiter=" ")["b"] == ("<i8", [2])
    assert table(tmp_path, "a\n1\n", types={"a": "float"}) == {"a": ("<f8", [1.0])}
    assert table(tmp_path, "a\n1\n", types={"a": "text"}) == {"a": ("<U16", ["1"])}


def test_empty_cells_that_are_nan_make_a_column_of_floats(tmp_path: Path) -> None:
    rows = "".join(f"{n},\n" for n in range(200_000)) + "7,8\n"  # more than a block of empty cells
    found = table(tmp_path, "a,b\n" + rows, empty_is_nan=True)["b"]
    assert found[0] == "<f8"
    assert math.isnan(found[1][0])
    assert found[1][-1] == 8


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(DuplicateVariableError, match="two columns have this name"):
        table(tmp_path, "a,a\n1,2\n")
    with pytest.raises(DuplicateVariableError):
        table(tmp_path, "col_1,\n1,2\n")


WORDS = st.characters(exclude_characters="\0\r", exclude_categories=["Cs"])


@given(
    st.lists(
        st.tuples(
            st.floats(),
            st.integers(-(1 << 63), (1 << 63) - 1),
            st.text(
                st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), min_size=1
            ),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_what_the_csv_module_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, int, str]]
) -> None:
    import csv

    path = tmp_path_factory.mktemp("csv") / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(["number", "whole", "word"])
        writer.writerows(rows)
    types = {"number": "float", "whole": "int", "word": "text"}
    with open_file(path, types=types, comment="") as source:
        columns = [source.read(name, 0, len(rows)).tolist() for name in types]
    assert [value.hex() for value in columns[0]] == [row[0].hex() for row in rows]
    assert columns[1] == [row[1] for row in rows]
    assert columns[2] == [row[2] for row in rows]


def test_what_numpy_writes_is_read_back(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(50, 3))
    np.savetxt(tmp_path / "t.txt", values, fmt="%.17g", header="a b c")
    with open_file(tmp_path / "t.txt") as source:
        for number, name in enumerate("abc"):
            assert source.read(name, 0, 50).tolist() == values[:, number].tolist()


def test_the_locale_does_not_matter(tmp_path: Path) -> None:
    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
        except locale.Error:
            continue
        try:
            assert table(tmp_path, "a\n1.5\n") == {"a": ("<f8", [1.5])}
        finally:
            locale.setlocale(locale.LC_NUMERIC, before)


def test_a_large_table_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ciwrap.formats import tables as text
    from ciwrap.formats import tables as text_rows

    monkeypatch.setattr(text, "_MEMORY_BYTES", 1 << 16)
    monkeypatch.setattr(text_rows, "BLOCK_BYTES", 1 << 13)
    path = tmp_path / "t.csv"
    count = 30_000
    path.write_text("n,x,w\n" + "".join(f"{n},{n}.5,w{n % 7}\n" for n in range(count)))
    tracemalloc.start()
    try:
        with open_file(path) as source:
            sums = [
                sum(float(piece.sum()) for piece in source.slabs(name, 1 << 14)) for name in "nx"
            ]
            words = source.read("w", count - 2, 2).tolist()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sums == [count * (count - 1) / 2, count * (count - 1) / 2 + count / 2]
    assert words == [f"w{n % 7}" for n in (count - 2, count - 1)]
    assert peak < 2 << 20


def test_a_table_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n2\n3\n")
    with open_file(path) as source:
        path.write_text("a\n1\n222\n")
        with pytest.raises(CorruptFileError, match="changes while it is read"):
            source.read("a", 0, 3)
        path.write_text("a\n1\n2\n")
        with pytest.raises(CorruptFileError, match="ends after 6 bytes"):
            source.read("a", 0, 3)


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ciwrap.formats import tables as text_rows

    monkeypatch.setattr(text_rows, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(text_rows, "BLOCK_BYTES", 500)
    with pytest.raises(CorruptFileError, match="line 2: is longer"):
        table(tmp_path, "a\n" + "1" * 5000 + "\n")
    with pytest.raises(CorruptFileError, match="line 2: has a quote that is never closed"):
        table(tmp_path, 'a\n"' + "1\n" * 5000)


# --- raw files ---


def raw(path: Path, **options: Any) -> list[Any]:
    with open_file(path, **options) as source:
        info = source.variables[0]
        return [info.name, info.dtype, info.shape, source.read(info.name, 0, info.element_count)]


@pytest.mark.parametrize(
    ("options", "dtype", "shape"),
    [
        ({"dtype": "float32"}, "<f4", (6,)),
        ({"dtype": "f4", "shape": [2, 3]}, "<f4", (2, 3)),
        ({"dtype": "<f8", "shape": [-1]}, "<f8", (3,)),
        ({"dtype": ">i2", "shape": [-1, 4]}, ">i2", (3, 4)),
        ({"dtype": "int16", "byte_order": "big", "shape": (3, -1)}, ">i2", (3, 4)),
        ({"dtype": "bfloat16", "shape": 12}, "<bf2", (12,)),
        ({"dtype": ">bf2"}, ">bf2", (12,)),
        ({"dtype": "complex64"}, "<c8", (3,)),
        ({"dtype": "bool"}, "|b1", (24,)),
        ({"dtype": "S8"}, "|S8", (3,)),
        ({"dtype": "float64", "offset": 8}, "<f8", (2,)),
        ({"dtype": "float64", "offset": 16, "shape": []}, "<f8", ()),
        ({"dtype": "float64", "offset": 24}, "<f8", (0,)),
        ({"dtype": "float", "shape": [0, 5], "offset": 24}, "<f8", (0, 5)),
    ],
)
def test_raw_files(
    tmp_path: Path, options: dict[str, Any], dtype: str, shape: tuple[int, ...]
) -> None:
    path = tmp_path / "x.bin"
    data = bytes(range(24))
    path.write_bytes(data)
    name, found_dtype, found_shape, values = raw(path, **options)
    assert (name, found_dtype, found_shape) == ("x", dtype, shape)
    assert values.tobytes() == data[options.get("offset", 0) :]


@pytest.mark.parametrize(
    ("options", "kind", "match"),
    [
        ({"dtype": "float64", "shape": [2]}, CorruptFileError, "24 bytes, which is not 0 and 2 "),
        ({"dtype": "float64", "shape": [4]}, CorruptFileError, "still writing"),
        ({"dtype": "float64", "offset": 25}, CorruptFileError, "not 25 and n values"),
        ({"dtype": "float64", "shape": [-1, 2]}, CorruptFileError, "nx2 values"),
        ({"dtype": "float64", "shape": [-1, 0]}, CorruptFileError, "nx0 values"),
        ({"dtype": "float64", "shape": []}, CorruptFileError, "one values"),
        ({"shape": [3]}, ConfigError, "dtype: is required"),
        ({"dtype": "float63"}, ConfigError, "'float63' is not a dtype"),
        ({"dtype": "O"}, ConfigError, "Python objects"),
        ({"dtype": "M8[s]"}, ConfigError, "no defined comparison"),
        ({"dtype": "f4,f4"}, ConfigError, "must be a plain one"),
        ({"dtype": "<f4", "byte_order": "big"}, ConfigError, "contradicts"),
        ({"dtype": "f4", "byte_order": "middle"}, ConfigError, "must be little or big"),
        ({"dtype": "f4", "shape": [-2]}, ConfigError, "whole numbers from 0"),
        ({"dtype": "f4", "shape": [-1, -1]}, ConfigError, "one may be -1"),
        ({"dtype": "f4", "shape": ["3"]}, ConfigError, "whole numbers"),
        ({"dtype": "f4", "offset": True}, ConfigError, "a whole number from 0"),
        ({"dtype": "f4", "size": 3}, ConfigError, "no option 'size'"),
    ],
)
def test_raw_files_that_are_refused(
    tmp_path: Path, options: dict[str, Any], kind: type[CiwrapError], match: str
) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(24))
    with pytest.raises(kind, match=match):
        raw(path, **options)


def test_sidecars(tmp_path: Path) -> None:
    path = tmp_path / "x.raw"
    path.write_bytes(bytes(24))
    with pytest.raises(UnreadFileError, match=r"write a description beside it \(NAME\.yaml\)"):
        raw(path)
    (tmp_path / "x.raw.json").write_text(json.dumps({"dtype": ">f4", "shape": [3, 2]}))
    assert raw(path)[1:3] == [">f4", (3, 2)]
    (tmp_path / "x.raw.yaml").write_text("dtype: f8\nshape: [3]\n")
    assert raw(path)[1:3] == ["<f8", (3,)]
    assert raw(path, dtype="i4")[1:3] == ["<i4", (6,)]
    path.unlink()
    with pytest.raises(OutputMissingError):
        raw(path)


@pytest.mark.parametrize(
    ("suffix", "text", "match"),
    [
        (".yaml", "dtype: [", "is not a description"),
        (".yaml", "- f4\n", "must hold a mapping"),
        (".yaml", "dtype: f4\nshap: [3]\n", "no option 'shap'"),
        (".yaml", "!!python/object/apply:os.getcwd []\n", "is not a description"),
        (".yaml", "dtype: f4\nshape: [&a [x, x], *a]\n", "is not a description"),
        (".json", "{", "is not a description"),
        (".json", "[" * 100_000, "is not a description"),
        (".json", '{"dtype": 3}', "dtype: is required"),
        (".yaml", "dtype: f4\n# " + "x" * (1 << 20), "too large"),
    ],
    ids=range(9),
)
def test_sidecars_that_are_refused(tmp_path: Path, suffix: str, text: str, match: str) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(24))
    (tmp_path / f"x.bin{suffix}").write_text(text)
    with pytest.raises(CiwrapError, match=match) as caught:
        raw(path)
    assert f"x.bin{suffix}" in str(caught.value)


def test_raw_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.dat"
    path.write_bytes(bytes(24))
    with reader_named("raw").open(path, name="rho", options={"dtype": "f4"}) as source:
        assert source.variables[0].name == "rho"


ENER = """\
#     Step Nr.          Time[fs]        Kin.[a.u.]          Temp[K]            Pot.[a.u.]        Cons Qty[a.u.]        UsedTime[s]
         0            0.000000         0.004275135         300.000000000        -0.001236112         0.003039023         0.000000000
         1            0.500000         0.004275093         299.997066447        -0.001236071         0.003039022         0.000611782
"""  # noqa: E501 - as CP2K 2023.1 prints it


def test_a_name_of_two_words_between_two_blanks(tmp_path: Path) -> None:
    found = table(tmp_path, ENER, ".dat")
    names = "Step Nr.,Time[fs],Kin.[a.u.],Temp[K],Pot.[a.u.],Cons Qty[a.u.],UsedTime[s]"
    assert list(found) == names.split(",")
    assert found["Temp[K]"] == ("<f8", [300.0, 299.997066447])
    without_mark = "Step Nr.  Kin. E\n 1  2.5\n 2  3.5\n"
    assert table(tmp_path, without_mark, ".dat") == {
        "Step Nr.": ("<i8", [1, 2]),
        "Kin. E": ("<f8", [2.5, 3.5]),
    }


def test_a_row_of_empty_cells_is_a_row_whatever_parts_them(tmp_path: Path) -> None:
    for delimiter, suffix in ((",", ".csv"), ("\t", ".tsv")):
        text = "a,b\n1,2\n,\n\n3,4\n".replace(",", delimiter)
        with pytest.raises(CorruptFileError, match="line 3, column 1: '' is empty"):
            table(tmp_path, text, suffix, empty_is_nan=False)
        found = table(tmp_path, text, suffix)
        assert len(found["a"][1]) == 3
        assert len(table(tmp_path, text.replace("1", "x").replace("2", "y"), suffix)["a"][1]) == 3
        with pytest.raises(CorruptFileError, match="the last line has no line break"):
            table(tmp_path, f"1{delimiter}2\n{delimiter}", suffix, final_newline=True)
    # Blanks around white space between columns are none.
    assert table(tmp_path, "1 2\n \t \n3 4\n", ".dat")["col_0"] == ("<i8", [1, 3])


def test_several_marks_of_comments_and_lines_that_are_skipped(tmp_path: Path) -> None:
    text = '@ legend "x"\n# t y\n! and this\n1 2\n@ end\n3 4\n'
    marks = ["@", "!", "#"]
    found = table(tmp_path, text.replace("! and this\n", ""), ".dat", comment=marks)
    assert found == {"t": ("<i8", [1, 3]), "y": ("<i8", [2, 4])}
    found = table(tmp_path, text, ".dat", comment=marks)
    assert list(found) == ["and", "this"]  # the last one before the first row
    text = "made by 12, on Monday\n1 2\nt y\n3 4\n5 x\n"
    with pytest.raises(CorruptFileError, match=r"line 5, column 2: 'x' is not a number"):
        table(tmp_path, text, ".dat", skip_rows=2)
    assert table(tmp_path, text[:-4], ".dat", skip_rows=2) == {
        "t": ("<i8", [3]),
        "y": ("<i8", [4]),
    }
    for wrong in (-1, True, "2"):
        with pytest.raises(ConfigError, match="skip_rows"):
            table(tmp_path, text, ".dat", skip_rows=wrong)


def test_a_column_of_steps(tmp_path: Path) -> None:
    path = tmp_path / "t.dat"
    path.write_text("# step e\n0 1.5\n20 2.5\n20 3.5\n")
    with open_file(path, iteration="step") as source:
        facts = source.facts("e")
        assert facts is not None
        assert facts.steps is not None
        assert (facts.steps.tolist(), facts.steps_name) == ([0, 20, 20], "step")
        assert all(info.in_text for info in source.variables)
    with open_file(path) as source:
        assert source.facts("e") is None
    path.write_text("# time e\n0.0 1.5\n0.5 2.5\n")
    with open_file(path, iteration="time", iteration_step=0.5) as source:
        facts = source.facts("e")
        assert facts is not None
        assert facts.steps is not None
        assert facts.steps.tolist() == [0, 1]
    with pytest.raises(CorruptFileError, match=r"0\.5 is not a whole number of iterations"):
        open_file(path, iteration="time")
    with pytest.raises(ConfigError, match=r"there is no column 'it' .known: time, e"):
        open_file(path, iteration="it")
    path.write_text("# step e\n-1 1.5\n")
    with pytest.raises(CorruptFileError, match="an iteration is negative"):
        open_file(path, iteration="step")
    path.write_text("# step e\n1e300 1.5\n")
    with pytest.raises(CorruptFileError, match=r"a step of 2\^62 or more"):
        open_file(path, iteration="step")


@pytest.mark.parametrize(
    "text",
    [
        "Starting the solver\nstep 1 done\nstep 2 done\n",
        " Step 1 energy 0.5\n Step 2 energy 0.25\n",
        "Hello\nworld\n",
        "Hello, world\nThis, is text\n",
    ],
)
def test_free_text_of_equally_many_words_is_not_taken_for_a_table(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(UnreadFileError, match="may be a text and no table; 'format: tokens'"):
        table(tmp_path, text, ".txt")
    assert table(tmp_path, text, ".txt", header="no")
    with pytest.raises(CorruptFileError, match="if it is not a table, set 'format: tokens'"):
        table(tmp_path, "a text\nof three words\n", ".txt")


def test_words_are_a_table_where_something_says_so(tmp_path: Path) -> None:
    for text, suffix in (
        ("name x\nH 1\n", ".tsv"),
        ("# name x\nH 1\n", ".dat"),
        ('name x\n"H" 1\n', ".dat"),
    ):
        delimiter = text.replace(" ", "\t") if suffix == ".tsv" else text
        assert [one[0] for one in table(tmp_path, delimiter, suffix).values()] == ["<U16", "<i8"]


def test_decimal_commas_are_not_taken_for_two_columns(tmp_path: Path) -> None:
    """As two columns of whole numbers 1,05 would equal 1,5, and -0,5 would equal 0,5."""
    for text in ("1,05\n2,5\n", "-0,5\n0,7\n", "1,5e-3\n", "3,5\r\n4,5\r\n"):
        with pytest.raises(UnreadFileError, match="decimal comma"):
            table(tmp_path, text, ".dat")
        assert [*table(tmp_path, text, ".dat", delimiter="comma")] == ["col_0", "col_1"]
        assert [*table(tmp_path, text, ".csv")] == ["col_0", "col_1"]
    for text in ("0,0\n1,0.5\n", "1, 5\n", "a,b\n1,5\n", "# a,b\n1,5\n", "1,2,3\n", "1,-5\n"):
        assert len(table(tmp_path, text, ".dat")) == text.splitlines()[-1].count(",") + 1


@pytest.mark.parametrize("other", ["12", "é"])
def test_a_zero_never_loses_its_minus(tmp_path: Path, other: str) -> None:
    """A declination of -00 30 is not one of 00 30."""
    rows = f"-00,30,{other}\n"
    with pytest.raises(
        CorruptFileError, match=r"line 2, column 1: '-00' has a minus that a number would lose"
    ):
        table(tmp_path, f"d,m,s\n{rows}")
    told = table(tmp_path, f"d,m,s\n{rows}", types={"d": "text"})
    assert told["d"][1] == ["-00"]
    with pytest.raises(OverflowError, match="has a minus that a number would lose"):
        parse_float("-00")
    assert table(tmp_path, "d,m\n-0,-01\n")["m"] == ("<i8", [-1])


QUOTED = st.lists(st.text(alphabet='ab" ,;\t', max_size=5), min_size=2, max_size=5)


@given(QUOTED, st.sampled_from([",", ";", "\t"]), st.lists(st.sampled_from(["", "  "])))
def test_cells_in_quotes_are_those_of_the_csv_module(
    cells: list[str], mark: str, blanks: list[str]
) -> None:
    """With blanks beside the quotes, or without them."""
    text = io.StringIO()
    csv.writer(text, delimiter=mark, quoting=csv.QUOTE_ALL).writerow(cells)
    (row,) = csv.reader([text.getvalue()], delimiter=mark, strict=True)
    beside = (blanks + [""] * len(cells))[: len(cells)]
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in row]
    padded = mark.join(f"{one}{cell}{one}" for one, cell in zip(beside, quoted, strict=True))
    found = [(q.replace('""', '"'), b, s) for q, b, s in _cells_of(mark).findall(padded)]
    assert found == [(cell, "", "") for cell in cells]


def test_columns_of_fixed_width_may_touch(tmp_path: Path) -> None:
    """As Fortran prints them; a shorter line has empty cells, and nothing may go on behind them."""
    path = tmp_path / "f.dat"
    path.write_text("  n       x       y\n  1 1.5E+00-2.5E+00\n 12-1.5E+00\n", encoding="ascii")
    options = {"widths": [3, 8, 8]}
    with TextReader().open(path, options=options) as source:
        assert [one.name for one in source.variables] == ["n", "x", "y"]
        assert source.read("n", 0, 2).tolist() == [1, 12]
        assert source.read("x", 0, 2).tolist() == [1.5, -1.5]
        assert source.read("y", 0, 1).tolist() == [-2.5]
    path.write_text("  1 1.5E+00-2.5E+00 7\n", encoding="ascii")
    with pytest.raises(CorruptFileError, match="has more after its last column"):
        TextReader().open(path, options=options)
    for wrong in ({"widths": [0]}, {"widths": 3}, {"widths": [3], "delimiter": "comma"}):
        with pytest.raises(ConfigError):
            TextReader().open(path, options=wrong)


# As SU2 writes its tables: every row ends with a comma, the header does not.
CLOSED = '"PointID", "x", "name"\n' + "".join(f"{n}, {n / 3!r}, p{n}, \n" for n in range(4))


def test_rows_that_end_with_a_comma_that_the_header_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {
        "PointID": ("<i8", [0, 1, 2, 3]),
        "x": ("<f8", [n / 3 for n in range(4)]),
        "name": ("<U16", [" p0", " p1", " p2", " p3"]),
    }
    assert table(tmp_path, CLOSED) == expected
    monkeypatch.setattr("ciwrap.formats.tables.BLOCK_BYTES", 60)  # the core reads the later ones
    assert table(tmp_path, CLOSED) == expected


@pytest.mark.parametrize("block_bytes", [60, 1 << 18])
@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("p3, ", "p3", "line 5: has 3 cells where 3 and an empty one are expected"),
        ("p3, ", "p3, 7", "line 5: has 4 cells where 3 and an empty one are expected"),
        ("p3, ", "p3, ,", "line 5: has 5 cells where 3 and an empty one are expected"),
        ("p0, ", "p0", "line 3: has 4 cells where 3 are expected"),
    ],
)
def test_only_some_rows_end_with_a_comma(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    block_bytes: int,
    old: str,
    new: str,
    match: str,
) -> None:
    monkeypatch.setattr("ciwrap.formats.tables.BLOCK_BYTES", block_bytes)
    with pytest.raises(CorruptFileError, match=match):
        table(tmp_path, CLOSED.replace(old, new))
