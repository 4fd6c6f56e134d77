"""Texts compared token by token, through the command line."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from command_line import call
from e2e.cli_project import Outcome, Project, validator

from ciwrap.arrays.values import TEXT_SETS

if TYPE_CHECKING:
    from pathlib import Path

GOLDEN = """\
 PROGRAM STARTED AT 2026-11-22 10:01:17 IN /home/anna/run
 ENERGY| Total energy [a.u.]:   -17.164573910
 MD| Step number 1
 MD| CPU time per MD step [s] 2.555
 done
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.configure("    exclude: ['*.npy']\n    format: tokens\n", bound="atol: 1e-6")
    _write(made, GOLDEN)
    return made


def _write(project: Project, text: str | bytes, name: str = "run.log") -> Path:
    path = project.folder / "out" / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def _compare(tmp_path: Path, golden: bytes, new: bytes, *options: str) -> Outcome:
    """`ciwrap compare` of two files with a suffix that no reader knows."""
    (tmp_path / "a.log").write_bytes(golden)
    (tmp_path / "b.log").write_bytes(new)
    target = tmp_path / "result.json"
    target.unlink(missing_ok=True)
    done = call(
        "compare",
        "a.log",
        "b.log",
        *options,
        "--json",
        str(target),
        folder=tmp_path,
        environment=dict(os.environ),
    )
    document = json.loads(target.read_text()) if target.exists() else None
    if document is not None:
        validator().validate(document)
    return Outcome(done.returncode, done.stdout, done.stderr, document)


def test_two_logs_need_no_preparation(tmp_path: Path) -> None:
    new = GOLDEN.replace("-17.164573910", "-17.164573950").replace("2.555", "15.32")
    found = _compare(tmp_path, GOLDEN.encode(), new.encode(), "--atol", "1e-7")
    assert found.code == 1
    assert "compared token by token" in found.out
    assert (
        '1 x "MD| CPU time per MD step [s] #" number 1, first at 4:31: 2.555 / 15.32' in found.out
    )
    assert "looks like timings: --ignore-tokens times" in found.out
    text = found.variable("a")["text"]
    assert text["places"][0]["golden"] == {"line": 4, "column": 31, "text": "2.555"}
    assert (text["numbers"], text["differing"]) == (9, 1)
    ignored = _compare(
        tmp_path, GOLDEN.encode(), new.encode(), "--atol", "1e-7", "--ignore-tokens", "times"
    )
    assert ignored.code == 0
    assert "1 value masked" in ignored.out


def test_clocks_with_blanks_for_leading_zeros_are_times(tmp_path: Path) -> None:
    """As Quantum ESPRESSO prints them."""
    line = "   This run was terminated on:  {}  30Nov2026\n   E = {}\n"
    golden = line.format("23:15:20", -1.5).encode()
    for clock in ("23: 5: 9", " 9:13: 1", " 0: 0: 0"):
        found = _compare(tmp_path, golden, line.format(clock, -1.5).encode())
        assert "looks like timings: --ignore-tokens times" in found.out
        for energy, code in ((-1.5, 0), (-1.6, 1)):
            new = line.format(clock, energy).encode()
            assert _compare(tmp_path, golden, new, "--ignore-tokens", "times").code == code
    ratio = b"ratio  1: 2: 3\n"
    new = ratio.replace(b"3", b"4")
    assert _compare(tmp_path, ratio, new, "--ignore-tokens", "times").code == 1


def test_a_line_without_partner_is_never_a_match(tmp_path: Path) -> None:
    new = GOLDEN.replace(" done\n", "")
    found = _compare(tmp_path, GOLDEN.encode(), new.encode(), "--atol", "1e9")
    assert found.code == 3
    words = "1 line has no partner on the other side (1 in A, 0 in B)"
    assert words in found.out
    assert found.variable("a")["text"]["unpaired"][0]["golden"]["line"] == 5
    left_out = _compare(tmp_path, GOLDEN.encode(), new.encode(), "--ignore-lines", "done")
    assert left_out.code == 0
    assert left_out.variable("a")["text"]["ignored_lines"] == [1, 0]


def test_lines_that_would_fit_with_a_set_say_so(tmp_path: Path) -> None:
    new = GOLDEN.replace("/home/anna/run", "/scratch/bert/x")
    found = _compare(tmp_path, GOLDEN.encode(), new.encode())
    assert found.code == 3
    assert "looks like paths: --ignore-tokens paths" in found.out
    assert _compare(tmp_path, GOLDEN.encode(), new.encode(), "--ignore-tokens", "paths").code == 0


WALLS = b"""\
 wall shear stress = 5.0
 wall temperature = 310.2 K
 k = 2.5e+03 s^-1
 E = -76.026 H
 U 4.08572E-05-1.30075E-02-2.73575E-03
"""


TIMED = b"""\
 Total CalculiX Time: 0.13
 step 1 E = -76.026 took 0.51
 step 2 E = -76.027 took 0.52
 Elapsed: 3.2 s
"""


def test_a_place_is_left_out_and_nothing_else_of_its_line(tmp_path: Path) -> None:
    new = TIMED.replace(b"0.13", b"0.15").replace(b"0.51", b"0.61").replace(b"3.2 s", b"3.3 s")
    found = _compare(tmp_path, TIMED, new, "--verbose")
    assert found.code == 1
    hints = [one["place"] for one in found.variable("a")["text"]["places"]]
    assert hints == [
        "Total CalculiX Time: {}",
        "step # E = # took {}",
        "Elapsed: {} s",
    ]
    assert "to leave it out: --ignore-places 'Total CalculiX Time: {}'" in found.out
    assert "looks like timings: --ignore-tokens times" in found.out
    options = ("--ignore-places", hints[0], "--ignore-places", "step # E = # took {}")
    options += ("--ignore-tokens", "times", "--verbose")
    found = _compare(tmp_path, TIMED, new, *options)
    assert found.code == 0
    # Lines that are equal to the byte are compared.
    masked = [
        (one["by"], one["template"], one["lines"], one["numbers"])
        for one in found.variable("a")["text"]["masked"]
    ]
    assert masked == [
        ("ignore_places", "Total CalculiX Time: ...", 1, 1),
        ("ignore_places", "step # E = # took ...", 1, 1),
        ("times", "Elapsed: ...", 1, 1),
    ]
    assert 'left out by times: 1 number in 1 line "Elapsed: ...", first at 4:11' in found.out
    found = _compare(tmp_path, TIMED, new.replace(b"-76.026", b"-76.021"), *options)
    assert (found.code, found.variable("a")["text"]["differing"]) == (1, 1)


def test_lines_that_are_left_out_are_listed(tmp_path: Path) -> None:
    golden, new = b"a 1\nnote 2 3\nnote 4\n", b"a 1\nnote 5\n"
    found = _compare(tmp_path, golden, new, "--ignore-lines", "note *")
    [masked] = found.variable("a")["text"]["masked"]
    assert (masked["by"], masked["template"]) == ("ignore_lines", "note *")
    assert (masked["lines"], masked["numbers"]) == (2, 3)


def test_no_set_is_proposed_for_results_and_none_covers_them(tmp_path: Path) -> None:
    new = WALLS.replace(b"5.0", b"6.5").replace(b"310.2", b"450.0").replace(b"2.5e", b"9.9e")
    new = new.replace(b"76.0", b"70.0").replace(b"1.30075", b"7.77777")
    found = _compare(tmp_path, WALLS, new)
    assert (found.code, "looks like" in found.out) == (1, False)
    assert found.variable("a")["text"]["differing"] == 5
    sets = [word for name in TEXT_SETS for word in ("--ignore-tokens", name)]
    found = _compare(tmp_path, WALLS, new, *sets)
    assert (found.code, found.variable("a")["text"]["ignored"]) == (1, 0)


def test_a_number_that_may_be_part_of_a_longer_one_says_so(tmp_path: Path) -> None:
    found = _compare(tmp_path, b"F = 1,995 N\n", b"F = 1,999 N\n", "--atol", "10")
    assert found.code == 1
    assert "may be part of a longer number, so it has to be written alike" in found.out
    assert found.variable("a")["text"]["places"][0]["is_part"]


def test_every_number_changed_is_a_difference(tmp_path: Path) -> None:
    """By position, although many lines say what another one says on the other side."""
    golden = "".join(f"{i}\n" for i in range(10)).encode()
    new = "".join(f"{i}\n" for i in range(1, 11)).encode()
    found = _compare(tmp_path, golden, new)
    assert found.code == 1
    assert "10 of 10 numbers differ" in found.out


def test_nothing_compared_is_no_match(tmp_path: Path) -> None:
    all_lines = _compare(tmp_path, b"a 1\n", b"a 2\n", "--ignore-lines", "a *")
    assert (all_lines.code, "every line is left out" in all_lines.out) == (3, True)
    numbers = _compare(tmp_path, b"elapsed 1.5 s\n", b"elapsed 2.5 s\n", "--ignore-tokens", "times")
    assert (numbers.code, "is left out, so none was compared" in numbers.out) == (3, True)


def test_lines_that_are_equal_to_the_byte_may_count_as_compared(tmp_path: Path) -> None:
    same = _compare(tmp_path, b"elapsed 1.5 s\n", b"elapsed 1.5 s\n", "--ignore-tokens", "times")
    assert same.code == 0
    assert "compared 1 variable, 1 value\n" in same.out
    same = _compare(tmp_path, b"a 1\n", b"a 1\n", "--ignore-lines", "a *")
    assert "compared 1 variable, 1 value\n" in same.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--ignore-tokens", "tims"), "is not one of dates, times"),
        (("--ignore-lines", "*"), "leaves out every line"),
        (("--ignore-places", "E = #"), "is no place in a line"),
        (("--ignore-places", "{}"), "is no place in a line"),
        (("--ulps", "2"), "means nothing for a text"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    found = _compare(tmp_path, b"a 1\n", b"a 1\n", *options)
    assert found.code == 2
    assert words in found.err


def test_combined_bounds_are_refused(tmp_path: Path) -> None:
    """Their sum would let pass what one of them does not."""
    check = "{outputs: out, format: tokens, atol: 1e-3, rtol: 1e-3, combine: both}"
    (tmp_path / "ciwrap.yaml").write_text(f"checks: {{c: {check}}}\n")
    found = _compare(
        tmp_path, b"a 1.0\n", b"a 1.0015\n", "--config", f"{tmp_path}/ciwrap.yaml", "--check", "c"
    )
    assert (found.code, "'combine' means nothing for a text" in found.err) == (2, True)


@pytest.mark.parametrize("paths", [("a.log", "b.log"), ("b.log", "a.log"), ("b.log", "c.log")])
def test_a_log_that_is_not_there_is_told_as_such(tmp_path: Path, paths: tuple[str, str]) -> None:
    """Whatever the other one's suffix is."""
    (tmp_path / "a.log").write_text(GOLDEN)
    done = call("compare", *paths, folder=tmp_path, environment=dict(os.environ))
    assert done.returncode == 3
    assert done.stderr.startswith("error: b.log: does not exist; ")


def test_what_is_no_text(tmp_path: Path) -> None:
    assert _compare(tmp_path, b"a\0b", b"a 1\n").code in (2, 3)
    late = b"a 1\n" * 40_000 + b"\0"
    found = _compare(tmp_path, late, late, "--format", "tokens")
    assert (found.code, "holds a NUL byte" in found.out) == (3, True)
    long_line = b"1 " * (1 << 20)
    found = _compare(tmp_path, long_line, long_line, "--format", "tokens")
    assert (found.code, "line 1 is longer than 1 MiB" in found.out) == (3, True)


def test_latin_1_is_told(tmp_path: Path) -> None:
    golden = "Größe 1.5 µm\n".encode("latin-1")
    found = _compare(tmp_path, golden, golden.replace(b"1.5", b"1.7"))
    assert found.code == 1
    assert "is not UTF-8" in found.out
    assert found.variable("a")["text"]["places"][0]["golden"]["column"] == 7
    utf8 = "Größe 1.5 µm\n".encode()
    found = _compare(tmp_path, utf8, utf8.replace(b"1.5", b"1.7"))
    assert "is not UTF-8" not in found.out
    assert found.variable("a")["text"]["places"][0]["golden"]["column"] == 7


def test_a_golden_keeps_the_text(project: Project) -> None:
    assert project.run("accept").code == 0
    assert project.run("check").code == 0
    _write(project, GOLDEN.replace("-17.164573910", "-17.164573911"))
    assert project.run("check").code == 0
    _write(project, GOLDEN.replace("-17.164573910", "-17.164593910"))
    found = project.run("check")
    assert found.code == 1
    place = found.variable("run.log")["text"]["places"][0]
    assert (place["golden"]["text"], place["new"]["text"]) == ("-17.164573910", "-17.164593910")
    hint = "to leave it out: ignore_places: ['ENERGY| Total energy [a.u.]: {}']"
    assert hint in project.run("check", "--verbose").out
    assert project.run("accept", "--reason", "new").code == 0
    assert project.run("check").code == 0
    _write(project, GOLDEN.replace(" done\n", ""))
    found = project.run("check")
    assert found.code == 3
    words = "(1 in the golden, 0 in the outputs), as line 5 in the golden"
    assert words in found.variable("run.log")["reason"]


def test_a_fingerprint_tells_equal_bytes_alone(project: Project) -> None:
    project.configure(
        "    exclude: ['*.npy']\n    format: tokens\n    evidence: tree\n", bound="atol: 1e-6"
    )
    assert project.run("accept").code == 0
    found = project.run("check")
    assert found.code == 0
    assert found.variable("run.log")["evidence"] == "tree"
    _write(project, GOLDEN.replace("-17.164573910", "-17.164573911"))
    found = project.run("check")
    assert found.code == 3
    assert "evidence: data" in found.out


def test_options_of_a_check(project: Project) -> None:
    project.configure(
        "    exclude: ['*.npy']\n    format: tokens\n"
        "    options: {ignore: [times, dates, paths], ignore_lines: ['done']}\n",
        bound="atol: 1e-6",
    )
    assert project.run("accept").code == 0
    new = GOLDEN.replace("2026-11-22 10:01:17", "2027-01-02 11:00:00").replace("done", "well done")
    new = new.replace("/home/anna/run", "/tmp/x").replace("2.555", "7.1")
    _write(project, new)
    found = project.run("check")
    assert found.code == 3  # the other word at the end
    _write(project, new.replace("well done", "done"))
    found = project.run("check")
    assert found.code == 0
    assert found.variable("run.log")["text"]["ignored"] == 7


def test_pages_show_places(project: Project, tmp_path: Path) -> None:
    assert project.run("accept").code == 0
    _write(project, GOLDEN.replace("2.555", "2.755").replace("done", "gone"))
    page, summary = tmp_path / "page.html", tmp_path / "summary.md"
    found = project.run("check", "--report", str(page), GITHUB_STEP_SUMMARY=str(summary))
    assert found.code == 3
    html = page.read_text()
    for words in ("4:31", "2.555", "2.755", "no partner", "ignore: [times]"):
        assert words in html
    options = "    options: {ignore: [times], ignore_lines: [' done']}\n"
    project.configure("    exclude: ['*.npy']\n    format: tokens\n" + options, bound="atol: 1e-6")
    _write(project, GOLDEN.replace("2.555", "2.755"))
    assert project.run("check", "--report", str(page)).code == 0
    assert "(left out by times)" in page.read_text()


def test_two_runs_of_logs(tmp_path: Path) -> None:
    for name, value in (("x", "1.0"), ("y", "1.5")):
        for rank in range(2):
            folder = tmp_path / name / f"rank_{rank}"
            folder.mkdir(parents=True)
            (folder / "out.log").write_text(f"value {value if rank else 1.0}\n")
    done = call(
        *("compare", "x", "y", "--format", "tokens"),
        folder=tmp_path,
        environment=dict(os.environ),
    )
    assert done.returncode == 1
    assert "match  1 of 2 arrays" in done.stdout
    assert "1.0 / 1.5" in done.stdout


def test_captures_do_not_judge_texts_by_their_bytes(tmp_path: Path) -> None:
    for name, value in (("x", "1.00"), ("y", "1.01")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "out.log").write_text(f"value {value}\n")
        done = call(
            *("capture", name, "--format", "tokens", "--atol", "0.1"),
            folder=tmp_path,
            environment=dict(os.environ),
        )
        assert done.returncode == 0, done.stderr
    done = call(
        *("compare", "x", "y", "--format", "tokens", "--atol", "0.1"),
        folder=tmp_path,
        environment=dict(os.environ),
    )
    assert done.returncode == 0, done.stdout


def test_logs_beside_arrays_in_a_folder(tmp_path: Path) -> None:
    for name, value in (("x", "1.0"), ("y", "1.5")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "out.log").write_text(f"value 3\nElapsed: {value} s\n")
        np.save(tmp_path / name / "u.npy", np.arange(5.0))
    words = ("compare", "x", "y", "--format", "*.log=tokens")
    done = call(*words, folder=tmp_path, environment=dict(os.environ))
    assert done.returncode == 1, done.stdout
    assert "1.0 / 1.5" in done.stdout
    done = call(*words, "--ignore-tokens", "times", folder=tmp_path, environment=dict(os.environ))
    assert done.returncode == 0, done.stdout
    done = call("compare", "x", "y", folder=tmp_path, environment=dict(os.environ))
    assert done.returncode == 1, done.stdout
    assert "compared token by token, as texts that no reader knows: .log (1)" in done.stdout


def test_a_number_that_the_end_of_a_text_may_cut_is_not_compared(tmp_path: Path) -> None:
    """What is left of -17.1601 may be within the bound."""
    whole, cut = b"E = -17.1601\n", b"E = -17.1"
    found = _compare(tmp_path, whole, cut, "--atol", "1")
    assert found.code == 3
    assert "in B the text ends with its last number, without a line break" in found.out
    assert _compare(tmp_path, cut, whole, "--atol", "1").code == 3
    assert _compare(tmp_path, cut, cut + b"6", "--atol", "1").code == 0
    assert _compare(tmp_path, whole, b"E = -17.1 eV", "--atol", "1").code == 3
    assert _compare(tmp_path, b"E = 1 eV", b"E = 1 eV\n").code == 0


TABLES = b"""\
Step Energy Time
1 -76.026 0.51
2 -76.027 0.52

E = -76.027 H
Timing:
 scf | 0.5 |--|
 xc  | 0.1 |-|
=====
done after 2 steps
"""


def test_a_section_can_be_left_out_or_a_place_in_it_alone(tmp_path: Path) -> None:
    """A column of times in rows without words, and a table of times whose bars change."""
    new = TABLES.replace(b"0.51", b"0.73").replace(b"0.5 |--|\n", b"0.8 |---|\n other | 1 |\n")
    assert _compare(tmp_path, TABLES, new).code == 3
    column = '{place: "# # {}", section: {start: "^Step Energy", end: "E = "}}'
    table = '{section: {start: "^Timing:", end: "====="}}'
    option = ("--option", f"ignore_places=[{column}, {table}]")
    found = _compare(tmp_path, TABLES, new, *option, "--verbose")
    assert found.code == 0, found
    masked = [
        (one["by"], one["template"], one["lines"], one["numbers"])
        for one in found.variable("a")["text"]["masked"]
    ]
    assert masked == [
        ("ignore_places", "# # ...", 2, 2),
        ("ignore_places", "^Timing: ... =====", 4, 2),
    ]
    assert 'left out by ignore_places: 2 numbers in 4 lines "^Timing: ... ====="' in found.out
    for changed in (
        new.replace(b"-76.026", b"-76.021"),
        new.replace(b"2 steps", b"3 steps"),
        new.replace(b"E = -76.027", b"E = -76.026"),
    ):
        found = _compare(tmp_path, TABLES, changed, *option)
        assert (found.code, found.variable("a")["text"]["differing"]) == (1, 1)
    # A section that only one side has hides nothing: its lines have no partner.
    found = _compare(tmp_path, TABLES, new.replace(b"=====", b"-----"), *option)
    assert found.code == 3


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ('{place: "# #", section: {start: a}}', "names no number"),
        ('{place: "# {}", section: {start: "{"}}', "'{' has a single brace"),
        ('{place: "# {}"}', "section: is required"),
        ("{section: {end: a}}", "start: is required"),
    ],
)
def test_a_section_that_means_nothing(tmp_path: Path, place: str, words: str) -> None:
    found = _compare(tmp_path, TABLES, TABLES + b"1 2\n", "--option", f"ignore_places=[{place}]")
    assert (found.code in (2, 3), words in found.out + found.err) == (True, True), found
