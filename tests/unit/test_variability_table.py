"""Tables of runs: what is read, and one clear line for each thing that cannot be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap.base.errors import CiwrapError, UsageError
from ciwrap.studies.variability.runs import Roles, command_parameters, read_runs, result_rows

if TYPE_CHECKING:
    from pathlib import Path

GOOD = "threads,size,seconds\n" + "".join(
    f"{threads},{size},{threads * size + run / 8}\n"
    for threads in (1, 2, 4)
    for size in (8, 64)
    for run in range(3)
)


COMMAS = "write commas, or tabs in a .tsv file, and quote cells that hold one"
OF_TWO = f"has 1 cell, and the first line names 2 columns; {COMMAS}"
ROWS = "give a row for each run"
CHOSEN = "or say with --value which column was measured"
OF_ONE = f"has 1 cell, and the first line names 1 column; {COMMAS}"
UNIT = "is not a finite number of up to 1e+70; fix it, or give another unit"


def write(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def complaint(path: Path, roles: Roles | None = None) -> str:
    with pytest.raises(CiwrapError) as caught:
        read_runs([path], roles or Roles())
    text = str(caught.value)
    assert "\n" not in text
    return text.removeprefix(f"{path.parent}/")


def test_rows_are_sorted_by_configuration(tmp_path: Path) -> None:
    runs = read_runs([write(tmp_path, GOOD)], Roles())
    assert (runs.parameters, runs.value, runs.has_seconds) == (("threads", "size"), "seconds", True)
    (group,) = runs.groups
    assert group.runs[2.0, 64.0] == [128.0, 128.125, 128.25]
    assert group.seconds == group.runs
    assert list(group.runs)[:2] == [(1.0, 8.0), (1.0, 64.0)]


def test_a_table_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    with pytest.raises(UsageError, match="this table is given twice; leave one out"):
        read_runs([path, link], Roles())
    again = read_runs([path, write(tmp_path, GOOD, "other.csv")], Roles())
    assert len(again.groups[0].runs[2.0, 64.0]) == 6  # rounded times may be the same


def test_texts_are_categories_and_numbers_can_be(tmp_path: Path) -> None:
    path = write(tmp_path, "disk,threads,run,rate\nssd,1,1,5\nhdd,1,1,2\nssd,1,2,6\nhdd,2,1,3\n")
    runs = read_runs([path], Roles())
    assert [group.category for group in runs.groups] == [{"disk": "ssd"}, {"disk": "hdd"}]
    assert (runs.value, runs.ignored, runs.has_seconds) == ("rate", ("run",), False)
    assert runs.groups[0].runs == {(1.0,): [5.0, 6.0]}
    apart = read_runs([path], Roles(value="rate", categories=("run",)))
    assert [group.category for group in apart.groups] == [
        {"disk": "ssd", "run": "1"},
        {"disk": "hdd", "run": "1"},
        {"disk": "ssd", "run": "2"},
    ]


def test_columns_have_the_roles_they_are_given(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,c,took\n1,2,3,4\n1,2,5,6\n")
    runs = read_runs([path], Roles(value="c", seconds="took", ignored=("b",)))
    assert (runs.parameters, runs.value) == (("a",), "c")
    assert runs.groups[0].runs == {(1.0,): [3.0, 5.0]}
    assert runs.groups[0].seconds == {(1.0,): [4.0, 6.0]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t.csv: holds no runs; a first line names the columns, others are runs"),
        ("a,b\n", "t.csv: holds no runs; a first line names the columns, others are runs"),
        (
            "a,b\n1,2\n1,\n",
            "t.csv: b: line 3: the cell is empty; fill it in, or leave out the row",
        ),
        (
            "a,b\n1,2\n,3\n",
            "t.csv: a: line 3: the cell is empty; fill it in, or leave out the row",
        ),
        ("a,b\n1,2\n3\n", f"t.csv: line 3: {OF_TWO}"),
        (
            "a,b\n1,2\neight,3\n",
            "t.csv: a: line 3: 'eight' is not a number; write a number, or make separate maps"  # noqa: ISC004
            " with --category a",
        ),
        ("a,b\n1,2\n1,fast\n", "t.csv: b: line 3: 'fast' is not a number; write a number"),
        ("a,b\n1,2\n1,nan\n", f"t.csv: b: line 3: nan {UNIT}"),
        ("a,b\n1,2\ninf,2\n", f"t.csv: a: line 3: inf {UNIT}"),
        ("a,b\n1,2\n1,1e999\n", f"t.csv: b: line 3: 1e999 {UNIT}"),
        ("a;b\n1;2\n", f"t.csv: line 1: {OF_ONE}"),
        ("a\tb\n1\t2\n", f"t.csv: line 1: {OF_ONE}"),
        ("a,b\n1,2\n1;2\n", f"t.csv: line 3: {OF_TWO}"),
        (
            "a,seconds\n1,2\n1,-2\n",
            "t.csv: seconds: line 3: -2 is negative, and no run takes less than no time; fix it",
        ),
        ("a,b\n1,2\n1,2e300\n", f"t.csv: b: line 3: 2e300 {UNIT}"),
        (
            "1,2\n3,4\n",
            "t.csv: line 1, column 1: '1' names no column; let the first line name the columns",
        ),
        ("a,a\n3,4\n", "t.csv: two columns are called 'a'; rename one"),
        (
            "b,run\n3,1\n",
            "t.csv: no column is left for a parameter; say with --value which one was measured",
        ),
        ('a,b\n1,"2\n', "t.csv: line 2: has a quote that is never closed"),
        (
            "a,run1,run2,run3\n1,2,3,4\n",
            (
                f"t.csv: run1 to run3 look like runs of one configuration, side by side; {ROWS}, as"
                f" pandas.melt makes them, {CHOSEN}"
            ),
        ),
        (
            "a,mean,std\n1,2,3\n",
            (
                "t.csv: std looks like what was worked out of runs, and the runs are needed;"
                f" {ROWS}, {CHOSEN}"
            ),
        ),
    ],
)
def test_what_is_no_table_is_told_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    assert complaint(write(tmp_path, text)) == said


def test_parameters_may_have_numbers_in_their_names(tmp_path: Path) -> None:
    text = "x1,x2,x3,seconds\n1,2,3,4\n"
    assert read_runs([write(tmp_path, text)], Roles()).parameters == ("x1", "x2", "x3")
    wide = write(tmp_path, "a,run1,run2,run3\n1,2,3,4\n", "w.csv")
    assert read_runs([wide], Roles(value="run3", ignored=("run1", "run2"))).parameters == ("a",)


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    for roles in (Roles(value="x"), Roles(seconds="x"), Roles(ignored=("x",))):
        with pytest.raises(UsageError, match="no column 'x'; there are threads, size, seconds"):
            read_runs([path], roles)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    assert complaint(tmp_path / "gone.csv").startswith("gone.csv: does not exist")
    assert "is not a table; give a .csv" in complaint(write(tmp_path, "a", "t.xlsx"))
    assert "is not UTF-8 text" in complaint(_bytes(tmp_path, b"a,b\n\xff,1\n"))
    binary = complaint(_bytes(tmp_path, b"a,b\n\0,1\n"))
    assert binary == "b.csv: is not text (it holds NUL bytes); save it as UTF-8 text"
    other = write(tmp_path, "threads,sizes,seconds\n1,2,3\n", "u.csv")
    with pytest.raises(CiwrapError, match="has the columns threads, sizes, seconds, and"):
        read_runs([write(tmp_path, GOOD), other], Roles())


def _bytes(folder: Path, data: bytes) -> Path:
    path = folder / "b.csv"
    path.write_bytes(data)
    return path


def test_several_tables_are_one_whatever_the_order_of_their_columns(tmp_path: Path) -> None:
    first = write(tmp_path, "a,b,v\n1,2,3\n")
    other = write(tmp_path, "b,v,a\n2,5,1\n", "u.csv")
    assert read_runs([first, other], Roles()).groups[0].runs == {(1.0, 2.0): [3.0, 5.0]}


def test_parquet_is_read_as_text_is(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    columns = {"disk": ["a", "a", "b"], "threads": [1, 1, 2], "rate": [0.5, 0.25, 4.0]}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    runs = read_runs([tmp_path / "t.parquet"], Roles())
    assert [(group.category, group.runs) for group in runs.groups] == [
        ({"disk": "a"}, {(1.0,): [0.5, 0.25]}),
        ({"disk": "b"}, {(2.0,): [4.0]}),
    ]
    columns["threads"][1] = None  # type: ignore[call-overload]
    parquet.write_table(arrow.table(columns), tmp_path / "n.parquet")
    assert complaint(tmp_path / "n.parquet") == (
        "n.parquet: threads: row 2: the cell is empty; fill it in, or leave out the row"
    )
    nested = arrow.table({"x": [[1, 2], [3]], "v": [1, 2]})
    parquet.write_table(nested, tmp_path / "l.parquet")
    assert complaint(tmp_path / "l.parquet").startswith("l.parquet: x: ")


def repeated(**more: Any) -> dict[str, Any]:
    runs = [
        {"number": number, "seed": 1, "factors": {"cache": state}, "seconds": number / 4,
         "exit_code": 0}
        for number, state in enumerate(("off", "on", "on"), 1)
    ]  # fmt: skip
    return {
        "schema_version": 1,
        "kind": "repeat",
        "headline": "x",
        "exit_code": 0,
        "runs": runs,
    } | more


def test_a_result_of_repeat_is_its_runs(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps(repeated()), "threads=4,size=1e3.json")
    names, rows = result_rows(path)
    assert names == ("threads", "size", "cache", "seconds")
    assert rows == [[4, 1000, 0, 0.25], [4, 1000, 1, 0.5], [4, 1000, 1, 0.75]]


def test_a_failed_run_is_never_passed_over(tmp_path: Path) -> None:
    document = repeated()
    document["runs"][1]["exit_code"] = 3
    path = write(tmp_path, json.dumps(document), "t=1.json")
    assert complaint(path) == (
        "t=1.json: run 2 did not end well, so its time says nothing; repeat it"
    )


def test_parameters_stand_in_commands() -> None:
    found = command_parameters("THREADS=4 ./solve --size 1024 --tol=1e-3 -n 5 input8 --name x9")
    assert found == {"THREADS": 4, "size": 1024, "tol": 1e-3, "n": 5}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not a result of repeat or time: it is not JSON"),
        ("{}", "is not a result of repeat or time: it is of another kind; give a file that one of"),
        ('{"kind": "timing"}', "`schema_version` is missing"),
        (json.dumps(repeated(runs=[{"number": 1}])), "`runs[0].seed` is missing"),
    ],
)
def test_what_is_no_result(tmp_path: Path, text: str, said: str) -> None:
    assert said in complaint(write(tmp_path, text, "t=1.json"))


def test_a_result_without_parameters(tmp_path: Path) -> None:
    document = repeated()
    for run in document["runs"]:
        run["factors"] = {}
    assert "put it into the file's name" in complaint(
        write(tmp_path, json.dumps(document), "r.json")
    )


def test_a_hundred_thousand_rows_are_read(tmp_path: Path) -> None:
    values = np.arange(100_000)
    text = "a,b,v\n" + "\n".join(f"{one % 50},{one % 7},{one * 0.5}" for one in values)
    (group,) = read_runs([write(tmp_path, text)], Roles()).groups
    assert len(group.runs) == 350
    assert sum(map(len, group.runs.values())) == 100_000
