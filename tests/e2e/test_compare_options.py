"""What `compare` can be told on its command line: readers' options, bounds of single variables."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from e2e.history_runs import ciwrap

from ciwrap.cli.main import run as run_cli

if TYPE_CHECKING:
    from pathlib import Path


def tables(folder: Path, first: str, second: str | None = None) -> tuple[Path, Path]:
    paths = folder / "a.csv", folder / "b.csv"
    paths[0].write_text(first)
    paths[1].write_text(first if second is None else second)
    return paths


def verdicts(document: Any) -> dict[str, str]:
    return {one["name"]: one["verdict"] for one in document["checks"][0]["variables"]}


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert run_cli(["compare", *map(str, words)]) == 2
    return capsys.readouterr().err


def test_options_of_readers(tmp_path: Path) -> None:
    pair = tables(tmp_path, "t,p\n0,1.5\n1,\n", "t,p\n0,1.5\n1,2\n")
    assert ciwrap(tmp_path, "compare", *pair)[0] == 1
    assert ciwrap(tmp_path, "compare", *pair, "--option", "empty_is_nan=false")[0] == 3
    pair = tables(tmp_path, "a,b\n1.5,2.5", "a,b\n1.5,2.50")
    assert ciwrap(tmp_path, "compare", *pair)[0] == 0
    assert ciwrap(tmp_path, "compare", *pair, "--option", "final_newline=true")[0] == 3
    pair = tables(tmp_path, "step,e\n0,0\n", "step,e\n0,4e-17\n")
    more = ("--atol", "1e-6", "--option", "types={e: float}")
    assert ciwrap(tmp_path, "compare", *pair, *more)[0] == 0
    pair = tables(tmp_path, "!x\na,b\n1,2\n", "#y\na,b\n1,2\n")
    assert ciwrap(tmp_path, "compare", *pair, "--option", "comment=['!', '#']")[0] == 0


def test_options_go_to_the_readers_that_have_them(tmp_path: Path) -> None:
    """A log beside an array, which has no such option."""
    for name, day in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.log").write_text(f"started 2026-01-0{day}\nE = 1.5\n")
        with h5py.File(tmp_path / name / "x.h5", "w") as file:
            file["x"] = np.arange(3.0)
            file.attrs["z"] = day
    pair = tmp_path / "a", tmp_path / "b"
    assert ciwrap(tmp_path, "compare", *pair, "--ignore-tokens", "dates")[0] == 0
    assert ciwrap(tmp_path, "compare", *pair, "--option", "ignore=dates")[0] == 0
    more = ("--option", "ignore=[dates]", "--option", "attributes=true")
    code, document = ciwrap(tmp_path, "compare", *pair, *more)
    assert (code, verdicts(document)["x/@z"]) == (1, "differ")


def test_mistakes_in_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = tables(tmp_path, "a\n1\n")
    said = refused(capsys, *pair, "--option", "ignore=dates")
    assert "no reader of these files (text) has an option 'ignore'" in said
    assert "--option header" in refused(capsys, *pair, "--option", "header=perhaps")
    assert "lacks a part" in refused(capsys, *pair, "--option", "header")
    assert "write 'NAME=atol=1e-6" in refused(capsys, *pair, "--bound", "CD")
    assert "--bound CD" in refused(capsys, *pair, "--bound", "CD=tol=1")
    assert "--bound CD" in refused(capsys, *pair, "--bound", "CD=atol=-1")
    assert "--strict knows no 'names'" in refused(capsys, *pair, "--strict", "names=no")


def test_bounds_of_single_variables(tmp_path: Path) -> None:
    pair = tables(tmp_path, "CD,CL,a\n1.0,1.0,350.0\n", "CD,CL,a\n1.01,1.01,10.0\n")
    code, document = ciwrap(
        tmp_path,
        "compare",
        *pair,
        *("--rtol", "0.1", "--bound", "CD=rtol=1e-3", "--bound", "a=atol=25 period=360"),
    )
    assert (code, verdicts(document)) == (1, {"CD": "differ", "CL": "match", "a": "match"})
    code, document = ciwrap(tmp_path, "compare", *pair, "--bound", "C*=atol=0.5", "--ignore", "a")
    assert (code, verdicts(document)) == (0, {"CD": "match", "CL": "match"})
    # As in ciwrap.yaml, a later one counts, and the bound is one thing.
    more = ("--bound", "C*=atol=0.5", "--bound", "CL=rtol=1e-9", "--ignore", "a")
    assert verdicts(ciwrap(tmp_path, "compare", *pair, *more)[1])["CL"] == "differ"


def test_patterns_without_effect_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = tables(tmp_path, "CD\n1.0\n")
    (tmp_path / "ciwrap.yaml").write_text(
        "checks: {c: {outputs: a.csv, variables: {Cd: {rtol: 0.1}, CD: {rtol: 1}}}}\n"
    )
    monkeypatch.chdir(tmp_path)
    more = ("--ignore", "CX", "--bound", "CL=atol=1", "--bound", "C*=atol=1", "--check", "c")
    code, document = ciwrap(tmp_path, "compare", *pair, *more)
    told = [one["text"] for one in document["messages"] if one["level"] == "warning"]
    assert code == 0
    assert [one.partition(" matches")[0] for one in told] == [
        "the pattern 'CX' of --ignore",
        "the pattern 'CL' of --bound",
        "the pattern 'Cd' under 'variables' or 'ignore'",
    ]


def test_bounds_over_those_of_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = tables(tmp_path, "CD,CL\n1.0,1.0\n", "CD,CL\n1.01,1.01\n")
    (tmp_path / "ciwrap.yaml").write_text("checks: {c: {outputs: a.csv, rtol: 0.1}}\n")
    monkeypatch.chdir(tmp_path)
    more = ("--check", "c", "--bound", "CD=rtol=1e-3")
    _, document = ciwrap(tmp_path, "compare", *pair, *more)
    assert verdicts(document) == {"CD": "differ", "CL": "match"}


def test_what_a_check_can_say(tmp_path: Path) -> None:
    a, b = tmp_path / "a.npz", tmp_path / "b.npz"
    np.savez(a, x=np.array([1.0, np.nan, -999.0]), m=np.array([False, False, True]))
    np.savez(b, x=np.array([1.0, np.nan, 5.0]), m=np.array([False, False, True]))
    assert ciwrap(tmp_path, "compare", a, b)[0] == 1
    assert ciwrap(tmp_path, "compare", a, b, "--mask", "m")[0] == 3  # which masks itself
    assert ciwrap(tmp_path, "compare", a, b, "--bound", "x=mask=m")[0] == 0
    assert ciwrap(tmp_path, "compare", a, a, "--no-equal-nan")[0] == 1
    _, document = ciwrap(tmp_path, "compare", a, b, "--fill-values", "[-999, 7]")
    (x,) = (one for one in document["checks"][0]["variables"] if one["name"] == "x")
    assert x["missing_mismatch_count"] == 1
    c, d = tmp_path / "c.npy", tmp_path / "d.npy"
    np.save(c, np.arange(4.0, dtype="f4"))
    np.save(d, np.arange(4.0))
    assert ciwrap(tmp_path, "compare", c, d)[0] == 3
    assert ciwrap(tmp_path, "compare", c, d, "--strict", "dtype=false")[0] == 0
    np.savez(b, m=np.array([False, False, True]))
    assert ciwrap(tmp_path, "compare", a, b)[0] == 3
    assert ciwrap(tmp_path, "compare", a, b, "--strict", "variables=false")[0] == 0


def test_logs_of_known_programs_by_their_rules(tmp_path: Path) -> None:
    text = "     Program PWSCF v.6.7 starts on {0}\n!    total energy  =  -15.8{1} Ry\n JOB DONE.\n"
    a, b = tmp_path / "a.out", tmp_path / "b.out"
    a.write_text(text.format("1Jan", 4))
    b.write_text(text.format("2Feb", 4))
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert code == 3
    said = [one["text"] for one in document["checks"][0]["messages"]]
    keys = "(ciwrap.yaml: format: log, use: qe)"
    words = f"a.out is a log of Quantum ESPRESSO: --format '*.out=qe' {keys}"
    assert any(f"{words} compares its values by name" in one for one in said)
    assert ciwrap(tmp_path, "compare", a, b, "--format", "*.out=qe")[0] == 0
    b.write_text(text.format("2Feb", 5))
    code, document = ciwrap(tmp_path, "compare", a, b, "--format", "qe")
    assert (code, verdicts(document)["etot"]) == (1, "differ")
    folders = []
    for run in ("one", "two"):
        folders.append(tmp_path / run)
        folders[-1].mkdir()
        for name in ("pw.out", "log.scf", "ph.out"):
            (folders[-1] / name).write_text(text.format(run, 4))
    _, document = ciwrap(tmp_path, "compare", *folders)
    said = [one["text"] for one in document["checks"][0]["messages"]]
    options = ("--format", "*.out=qe", "--format", "*.scf=qe")
    assert any("--format '*.out=qe'" in one and "--format '*.scf=qe'" in one for one in said)
    assert ciwrap(tmp_path, "compare", *folders, *options)[0] == 0


def test_a_list_of_what_differs_in_two_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = tables(tmp_path, "x\n1\n2\n3\n", "x\n1\n5\n3\n")
    target = tmp_path / "list.csv"
    assert ciwrap(tmp_path, "compare", *pair, "--list", target)[0] == 1
    rows = list(csv.reader(target.read_text().splitlines()))
    assert len(rows) == 2
    assert "5" in rows[1]
    assert "would be written over" in refused(capsys, *pair, "--list", pair[1])
    assert pair[1].read_text() == "x\n1\n5\n3\n"
