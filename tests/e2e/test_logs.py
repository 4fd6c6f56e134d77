"""Logs through the whole command line: accepted, checked, compared, imported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import call
from e2e.cli_project import environment, validator

DATA = Path(__file__).resolve().parents[1] / "data/logs"
LOG = """\
 ENERGY| Total [{unit}]:   {energy}
 step 1
 E_pot -17.100000 -1.0
 step 2
 E_pot -17.200000 -1.1
 step 3
 E_pot {last} -1.2
 WARNING one
 converged in {count} steps
 DONE
"""
CONFIG = """\
checks:
  run:
    format: log
    outputs: out.log
    values:
      energy: "ENERGY| Total [{unit:text}]: {energy}"
      pot: {match: "E_pot {pot} {*}", step: md, atol: 1e-4}
      cycles: {match: "converged in {cycles:int} steps", atol: 1}
    steps: {md: "step {iteration:int}"}
    counts: {warnings: WARNING}
    require: [DONE]
"""


def text(**given: Any) -> str:
    filled = {"unit": "Ha", "energy": "-17.160123456", "last": "-17.300000", "count": 12, **given}
    return LOG.format(**filled)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ciwrap.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "out.log").write_text(text(), encoding="utf-8")
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    done = call(*arguments, folder=Path.cwd(), environment=environment())
    return done.returncode, done.stdout + done.stderr


def checked(folder: Path, log: str) -> tuple[int, str, dict[str, Any]]:
    (folder / "out.log").write_text(log, encoding="utf-8")
    code, out = run("check", "--json", "o.json")
    document = json.loads((folder / "o.json").read_text(encoding="utf-8"))
    return code, out, {one["name"]: one for one in document["checks"][0]["variables"]}


def test_accept_then_check_then_what_moved_is_told_by_line_and_column(folder: Path) -> None:
    assert run("check")[0] == 3
    assert run("accept")[0] == 0
    code, _, variables = checked(folder, text(last="-17.300050", count=13))
    assert code == 0
    assert {*variables} == {"energy", "pot", "pot.step", "cycles", "warnings"}
    code, out, variables = checked(folder, text(last="-17.301000"))
    assert code == 1
    assert "step 3, line 7, column 8" in out
    assert variables["pot"]["series"] == {
        "count": [3, 3],
        "first_differing": {
            "golden": {"text": "-17.3"},
            "new": {"text": "-17.301000", "line": 7, "column": 8},
            "step": 3,
        },
        "printed_digits": 8,
    }
    assert checked(folder, text(count=14))[0] == 1
    assert checked(folder, text(energy="-17.160123457"))[0] == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            " step 2\n E_pot -17.200000 -1.1\n",
            "",
            "3 matches against 2; only in the golden: step 2",
        ),
        (
            " step 3",
            " step 4",
            "only in the golden: step 3; only in the outputs: step 4 (line 7)",
        ),
        ("[Ha]", "[Ry]", "unit Ha against Ry"),
        ("-17.300000", "*********", "line 7, word 2 is '*********': the number was too long"),
        ("-17.300000", "level", "line 7, word 2 is 'level', not a number"),
        ("ENERGY|", "Energy", "values.energy finds nothing; nearest, line 1"),
        (" DONE\n", "", "no line matches 'DONE'"),
    ],
)
def test_what_cannot_be_compared_is_no_match(folder: Path, old: str, new: str, said: str) -> None:
    assert run("accept")[0] == 0
    log = text()
    assert old in log
    code, out, _ = checked(folder, log.replace(old, new))
    assert code == 3
    assert said in out


def test_one_more_warning_differs(folder: Path) -> None:
    assert run("accept")[0] == 0
    code, out, _ = checked(folder, text() + " WARNING two\n")
    assert (code, "warnings" in out) == (1, True)


@pytest.mark.parametrize("outputs", ['"*.log"', "logs", "logs/{name}.log"])
def test_the_logs_of_a_check_have_their_steps_in_the_golden(folder: Path, outputs: str) -> None:
    logs = folder if "*" in outputs else folder / "logs"
    logs.mkdir(exist_ok=True)
    (folder / "ciwrap.yaml").write_text(CONFIG.replace("out.log", outputs), encoding="utf-8")
    for name in ("out.log", "other.log"):
        (logs / name).write_text(text(), encoding="utf-8")
    assert run("accept")[0] == 0
    code, out = run("check")
    assert (code, out.splitlines()[0]) == (0, "match  all 10 variables"), out
    (logs / "other.log").write_text(text(last="-17.301000"), encoding="utf-8")
    code, out = run("check")
    assert code == 1
    assert "step 3, line 7, column 8" in out
    (logs / "other.log").write_text(text().replace("step 2", "step 4"), encoding="utf-8")
    code, out = run("check")
    assert code == 3
    assert "only in the golden: step 2" in out


def test_the_tables_of_a_check_have_their_steps_in_the_golden(folder: Path) -> None:
    (folder / "ciwrap.yaml").write_text(
        "checks:\n  run: {format: text, outputs: '*.dat', options: {iteration: n}}\n",
        encoding="utf-8",
    )
    for name in ("a.dat", "b.dat"):
        (folder / name).write_text("# n e\n1 1.5\n2 2.5\n", encoding="utf-8")
    assert run("accept")[0] == 0
    code, out = run("check")
    assert (code, out.splitlines()[0]) == (0, "match  all 4 variables"), out
    (folder / "a.dat").write_text("# n e\n1 1.5\n3 2.5\n", encoding="utf-8")
    code, out = run("check")
    assert code == 3
    assert "only in the golden: step 2" in out


def test_a_table_that_is_not_found_is_no_new_variable(folder: Path) -> None:
    table = "checks:\n  run: {format: log, outputs: out.log, tables: {t: {header: A B}}}\n"
    (folder / "ciwrap.yaml").write_text(table, encoding="utf-8")
    (folder / "out.log").write_text("A B\n1 2\n", encoding="utf-8")
    (folder / "other.log").write_text("A\n1 2\n", encoding="utf-8")
    assert run("accept")[0] == 0
    code, out, _ = checked(folder, "A\n1 2\n")
    assert code == 3
    assert "t: out.log: tables.t finds nothing" in out
    assert "but not in the golden" not in out
    for sides in (("out.log", "other.log"), ("other.log", "out.log")):
        (folder / "out.log").write_text("A B\n1 2\n", encoding="utf-8")
        code, out = run("compare", *sides, "--check", "run")
        assert code == 3
        assert "t: other.log: tables.t finds nothing" in out


def test_counts_may_be_let_go(folder: Path) -> None:
    config = CONFIG + "    strict: {count: false}\n"
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    assert run("accept")[0] == 0
    short = text().replace(" step 2\n E_pot -17.200000 -1.1\n", "")
    code, out, variables = checked(folder, short)
    assert code == 0
    assert "not compared: 2 values of steps on one side only" in out
    assert variables["pot"]["element_count"] == 2
    assert variables["pot"]["series"]["count"] == [3, 2]
    # What both have is compared all the same, by step.
    code, _, variables = checked(folder, short.replace("-17.300000", "-17.400000"))
    assert code == 1
    assert variables["pot"]["series"]["first_differing"]["step"] == 3


def test_two_logs_are_paired_by_step(folder: Path) -> None:
    (folder / "b.log").write_text(text(last="-17.31"), encoding="utf-8")
    code, out = run("compare", "out.log", "b.log", "--check", "run")
    assert code == 1
    assert "step 3, line 7, column 8, against line 7, column 8" in out
    shorter = text().replace(" step 1\n E_pot -17.100000 -1.0\n", "")
    (folder / "b.log").write_text(shorter, encoding="utf-8")
    code, out = run("compare", "out.log", "b.log", "--check", "run")
    assert code == 3
    assert "3 matches against 2; only in A: step 1 (line 3)" in out


def test_no_option_makes_two_counts_alike(folder: Path) -> None:
    (folder / "b.log").write_text(text() + " WARNING two\n", encoding="utf-8")
    code, out = run("compare", "out.log", "b.log", "--check", "run", "--atol", "5")
    assert code == 1
    assert "DIFFER  warnings" in out
    assert "of check run" not in out
    assert run("compare", "out.log", "out.log", "--check", "run", "--atol", "5")[0] == 0


def test_expectations_and_ranges_need_no_golden(folder: Path) -> None:
    config = """\
checks:
  run:
    format: log
    outputs: out.log
    values:
      energy: {match: "ENERGY| Total [{unit:text}]: {energy}", expect: -17.16, atol: 1e-3}
      pot: {match: "E_pot {pot} {*}", expect: [-17.1, -17.2, -17.3]}
      cycles: {match: "converged in {cycles:int} steps", range: [null, 20]}
    counts: {warnings: {match: WARNING, range: [1, null]}}
"""
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    assert checked(folder, text())[0] == 0
    assert checked(folder, text(energy="-17.162"))[0] == 1
    assert checked(folder, text(last="-17.4"))[0] == 1
    assert checked(folder, text(count=21))[0] == 1
    assert checked(folder, text(energy="NaN"))[0] == 1
    assert checked(folder, text().replace("WARNING", "x"))[0] == 1
    assert checked(folder, text().replace(" E_pot -17.200000 -1.1\n", ""))[0] == 3
    assert checked(folder, text().replace("converged", "x"))[0] == 3


def test_what_is_expected_is_called_no_golden(folder: Path) -> None:
    config = """\
checks:
  run:
    format: log
    outputs: out.log
    values:
      e: {match: "E = {e}", expect: [1, 10]}
      t: {match: "T = {t}", range: [0, 5]}
      w: {match: "W = {w}", range: [0, 5]}
"""
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    (folder / "out.log").write_text("E = 1\nE = 12\nT = 7\nW = 3\n", encoding="utf-8")
    code, out = run("check", "--verbose", "--report=o.html")
    assert code == 1
    assert "1 of 2 values differs" in out
    assert "[1] (line 2, column 5): expected 10.0, new 12.0" in out
    assert "1 of 1 value lies out of the range" in out
    assert "nearest in range 5.0, new 7.0" in out
    assert "match  w [data]: its one value is in the range" in out
    assert "on the evidence of what ciwrap.yaml says of it ('range')" in out
    assert "golden" not in out
    page = (folder / "o.html").read_text(encoding="utf-8")
    assert "It lies out of the range; nearest in range 5.0, new 7.0" in page
    assert "golden 10.0" not in page
    for name, bound in (("e", True), ("t", False)):
        card = page.partition(f'<bdi class="mono">{name}</bdi></h3>')[2].partition("</article>")[0]
        assert ("<dt>error bound</dt>" in card) is bound


@pytest.mark.parametrize("number", ["Infinity", "-inf", "nan"])
@pytest.mark.parametrize("ends", ["[-20, null]", "[null, 20]", "[-20, 20]"])
def test_what_is_no_finite_number_is_in_no_range(folder: Path, ends: str, number: str) -> None:
    value = f'values: {{e: {{match: "Total [Ha]: {{e}}", range: {ends}}}}}'
    config = f"checks: {{run: {{format: log, outputs: out.log, {value}}}}}\n"
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    assert checked(folder, text())[0] == 0
    assert checked(folder, text(energy=number))[0] == 1


@pytest.mark.parametrize(
    ("expected", "code"), [("3", 0), ("[3, 3]", 0), ("[3]", 3), ("[3, 3, 3]", 3), ("[3, 4]", 1)]
)
def test_a_list_holds_one_number_for_each_match(folder: Path, expected: str, code: int) -> None:
    value = f'values: {{e: {{match: "E = {{e}}", expect: {expected}}}}}'
    config = f"checks: {{run: {{format: log, outputs: out.log, {value}}}}}\n"
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    assert checked(folder, "E = 3\nE = 3\n")[0] == code
    assert checked(folder, "E = 3\n")[0] == {"3": 0, "[3]": 0}.get(expected, 3)


def test_nothing_is_to_be_accepted_where_there_is_no_golden(folder: Path) -> None:
    value = 'values: {e: {match: "E = {e}", expect: 3}}'
    config = f"checks: {{run: {{format: log, outputs: out.log, {value}}}}}\n"
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    code, out, _ = checked(folder, "E = 4\n")
    assert (code, "accept" in out) == (1, False)
    run("check", "--report", "o.html")
    assert "ciwrap accept" not in (folder / "o.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("reference", ["expect: 3", "range: [0, 5]"])
def test_a_reference_of_a_name_that_no_variable_will_have(folder: Path, reference: str) -> None:
    value = f'values: {{e: {{match: "E = {{x}} of {{y}}", {reference}}}}}'
    config = f"checks: {{run: {{format: log, outputs: out.log, {value}}}}}\n"
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    code, out = run("check")
    assert code == 2
    assert "ciwrap.yaml:1:" in out
    assert "checks.run.values.e" in out
    assert "write {e}" in out


@pytest.mark.parametrize(
    ("number", "fills"),
    [("-999", "[-999, 0]"), ("nan", "nan"), ("nan", "[nan, 0]"), ("1e20", "[1e20, 5]")],
)
def test_missing_values_are_in_no_range(folder: Path, number: str, fills: str) -> None:
    """Also where the nearest end of the range is a fill value itself."""
    value = f'values: {{e: {{match: "E = {{e}}", range: [0, 5], fill_values: {fills}}}}}'
    (folder / "ciwrap.yaml").write_text(
        f"checks:\n  c:\n    format: log\n    outputs: out.log\n    {value}\n", encoding="utf-8"
    )
    code, _, variables = checked(folder, f"E = {number}\n")
    assert code == 1
    assert variables["e"]["verdict"] == "differ"
    assert checked(folder, "E = 5\n")[0] == 0


def test_a_mask_that_is_not_there_is_told_also_where_a_number_is_expected(folder: Path) -> None:
    value = 'values: {e: {match: "E = {e}", expect: 1, mask: land}}'
    (folder / "ciwrap.yaml").write_text(
        f"checks:\n  c:\n    format: log\n    outputs: out.log\n    {value}\n", encoding="utf-8"
    )
    code, out, _ = checked(folder, "E = 1\n")
    assert code == 3
    assert "e: its mask 'land' is not among the outputs" in out


def test_a_period_makes_no_range_wider(folder: Path) -> None:
    value = 'values: {e: {match: "Total [Ha]: {e}", range: [-20, 0], period: 20}}'
    config = f"checks: {{run: {{format: log, outputs: out.log, {value}}}}}\n"
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    assert checked(folder, text())[0] == 0
    assert checked(folder, text(energy="20.0"))[0] == 1


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("expect: 12", 0),
        ("expect: 12.5", 3),  # never cut to 12
        ("expect: 1e300", 3),
        ("range: [11.5, 12.5]", 0),
        ("range: [12.5, null]", 1),
        ("range: [null, 11.9]", 1),
        ("range: [12.2, 12.8]", 3),
        ("range: [null, 9007199254740993]", 3),  # a double cannot say where that ends
        ("range: [null, 9007199254740991]", 0),
    ],
)
def test_whole_numbers_against_fractions(folder: Path, rule: str, code: int) -> None:
    value = f'values: {{n: {{match: "converged in {{n:int}} steps", {rule}}}}}'
    config = f"checks: {{run: {{format: log, outputs: out.log, {value}}}}}\n"
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    assert checked(folder, text())[0] == code


def test_no_wider_bound_is_offered_for_a_number_outside_of_its_range(folder: Path) -> None:
    """No bound would let it in."""
    value = 'values: {e: {match: "Total [Ha]: {e}", range: [-20, -18]}}'
    config = f"checks: {{run: {{format: log, outputs: out.log, {value}}}}}\n"
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    code, out, _ = checked(folder, "Total [Ha]: -17.25\n")
    assert code == 1
    assert "would match" not in out
    code, out, _ = checked(folder, "Total [Ha]: -18.25\n")
    assert code == 0


def test_a_golden_beside_expectations_counts_whatever_the_outputs_hold(folder: Path) -> None:
    config = """\
checks:
  alone:
    format: log
    outputs: out.log
    values: {e: {line: ENERGY, column: 4, expect: -17.160123456}}
  run:
    format: log
    outputs: out.log
    values:
      energy: {match: "ENERGY| Total [{unit:text}]: {energy}", expect: -17.16, atol: 1e-3}
      pot: {match: "E_pot {pot} {*}", optional: true}
"""
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    code, out = run("check", "run")
    assert (code, "there is no golden" in out) == (3, True)
    code, out = run("accept")  # of the one that needs a golden
    assert code == 0, out
    assert not (folder / "golden/alone.golden").exists()
    assert run("check")[0] == 0
    # What the golden holds may not vanish because a rule is optional.
    (folder / "out.log").write_text(text().replace("E_pot", "x"), encoding="utf-8")
    assert run("check")[0] == 3
    # An expectation takes the golden's place.
    (folder / "out.log").write_text(text(), encoding="utf-8")
    closed = config.replace("optional: true", "range: [-18, -17]")
    (folder / "ciwrap.yaml").write_text(closed, encoding="utf-8")
    assert run("check")[0] == 0
    code, out = run("accept", "alone")
    assert (code, "needs no golden" in out) == (3, True)


@pytest.mark.parametrize(
    ("combine", "new", "code"),
    [("both", "100.5", 1), ("either", "100.5", 0), ("sum", "101.05", 0), ("either", "101.05", 1)],
)
def test_how_two_bounds_make_one(folder: Path, combine: str, new: str, code: int) -> None:
    config = f"""\
checks:
  run: {{format: log, outputs: out.log, atol: 1, rtol: 1e-3, combine: {combine},
        values: {{e: "E {{e}}"}}}}
"""
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    (folder / "out.log").write_text("E 100.0\nE 1.0\n", encoding="utf-8")
    assert run("accept")[0] == 0
    assert checked(folder, f"E {new}\nE 1.0\n")[0] == code


def test_a_bound_finer_than_what_is_printed_is_told(folder: Path) -> None:
    finer = CONFIG.replace("atol: 1e-4", "atol: 1e-14")
    (folder / "ciwrap.yaml").write_text(finer, encoding="utf-8")
    assert run("accept")[0] == 0
    code, out, _ = checked(folder, text())
    assert code == 0
    assert "pot: the bound 1e-14 is finer than the 8 printed digits" in out


def test_a_bound_is_told_as_it_is_written(folder: Path) -> None:
    finer = CONFIG.replace("atol: 1e-4", "rtol: 1e-9")
    (folder / "ciwrap.yaml").write_text(finer, encoding="utf-8")
    assert run("accept")[0] == 0
    assert "pot: the bound 1e-9 is finer than the 8 printed digits" in checked(folder, text())[1]


@pytest.mark.parametrize(("bound", "new"), [("atol: 0.1", "1"), ("rtol: 0.2", "1")])
@pytest.mark.parametrize("evidence", ["data", "residues"])
def test_no_bound_is_too_fine_for_numbers_that_match_within_it(
    folder: Path, bound: str, new: str, evidence: str
) -> None:
    rule = f'{{match: "E = {{e}}", {bound}, evidence: {evidence}}}'
    config = f"checks: {{run: {{format: log, outputs: out.log, values: {{e: {rule}}}}}}}\n"
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    (folder / "out.log").write_text("E = 1.04\n", encoding="utf-8")
    assert run("accept")[0] == 0
    code, out, _ = checked(folder, f"E = {new}\n")
    assert (code, "is finer than" in out) == (0, False), out
    (folder / "old.log").write_text("E = 1.04\n", encoding="utf-8")
    code, out = run("compare", "old.log", "out.log", "--check", "run")
    assert (code, "is finer than" in out) == (0, False), out
    (folder / "old.log").write_text("E = 1.00\n", encoding="utf-8")
    code, out = run("compare", "old.log", "out.log", "--check", "run")
    assert (code, "is finer than" in out) == (0, False), out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{pot} {*}", "{pot", "single brace"),
        ("step: md", "step: mdd", "there are no steps 'mdd'"),
        ("format: log", "format: text", "needs 'format: log'"),
        ("atol: 1}", "atol: 1, colum: 3}", "did you mean 'column'"),
        ("require: [DONE]", "use: cp3k", "must be one of cp2k, lammps, pyscf, qe"),
        ("require: [DONE]", "include: [x.yaml]", "there is no file 'x.yaml' to include"),
    ],
)
def test_mistakes_in_rules_are_told_with_their_line(
    folder: Path, old: str, new: str, said: str
) -> None:
    assert old in CONFIG
    (folder / "ciwrap.yaml").write_text(CONFIG.replace(old, new), encoding="utf-8")
    code, out = run("check")
    assert code == 2
    assert said in out
    assert re.search(r"ciwrap.yaml:\d+", out)


def test_included_values_and_what_is_like_them(folder: Path) -> None:
    (folder / "ours.yaml").write_text(
        'values: {energy: "ENERGY| Total [{unit:text}]: {energy}"}\n'
        "patterns: {P: {line: E_pot, column: 2, take: last}, Q: {line: nowhere, column: 1}}\n",
        encoding="utf-8",
    )
    config = """\
checks:
  run: {format: log, outputs: out.log, include: ours.yaml,
        values: {pot: {like: P, expect: -17.3, rtol: 1e-9}}}
"""
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    code, out = run("values", "out.log")
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert [row[0] for row in rows] == ["name", "energy", "pot"]
    # The last one is taken, and how many there are is told.
    assert rows[2][1:4] == ["3", "-17.3", "-17.3"]
    (folder / "ciwrap.yaml").write_text(config.replace("like: P", "like: R"), encoding="utf-8")
    assert run("check")[0] == 2


def test_values_prints_what_is_found_and_ends_with_3_if_something_is_not(folder: Path) -> None:
    code, out = run("values", "out.log")
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert rows["pot"] == ["3", "-17.1", "-17.3", "3"]
    assert rows["energy"] == ["1", "-17.160123456", "-17.160123456", "Ha", "1"]
    (folder / "out.log").write_text("nothing\n", encoding="utf-8")
    code, out = run("values", "out.log", "--json", "values.json")
    assert code == 3
    document = json.loads((folder / "values.json").read_text(encoding="utf-8"))
    validator().validate(document)
    faults = {one["name"]: one.get("fault") for one in document["values"]}
    assert faults["pot"] == "values.pot finds nothing"
    assert faults["warnings"] is None
    assert "values.pot finds nothing" in out


@pytest.mark.parametrize(
    ("name", "use", "expected"),
    [
        ("cp2k.out", "cp2k", {"energy": 4, "md_potential": 3, "scf_steps": 4}),
        ("log.lammps", "lammps", {"thermo.Step": 8, "thermo.Press": 8}),
        ("pyscf.log", "pyscf", {"scf": 1, "scf_cycle": 8, "ccsd": 1, "ccsd_t": 1, "mp2": 1}),
    ],
)
def test_shipped_rules_find_what_real_programs_print(
    name: str, use: str, expected: dict[str, int]
) -> None:
    code, out = run("values", str(DATA / name), "--use", use)
    assert code == 0, out
    found = {line.split()[0]: line.split()[1] for line in out.splitlines()[1:]}
    assert {key: found[key] for key in expected} == {
        key: str(count) for key, count in expected.items()
    }


def test_every_run_in_a_log_of_lammps_counts(folder: Path) -> None:
    """Runs after `reset_timestep 0`, and runs appended to one log, have the same steps."""
    (folder / "ciwrap.yaml").write_text(
        "checks: {melt: {format: log, outputs: log.lammps, use: lammps}}\n", encoding="utf-8"
    )
    log = folder / "log.lammps"
    one = "   Step  Temp\n  0  {}\n  10  2.5\nLoop time of 1 on 1 procs\n"
    log.write_text(one.format(1.44) + one.format(3.0), encoding="utf-8")
    assert run("accept")[0] == 0
    log.write_text(one.format(9.99) + one.format(3.0), encoding="utf-8")
    code, out = run("check")
    assert (code, "first at [0] (step 0, line 2, column 6)" in out) == (1, True), out
    log.write_text(one.format(3.0), encoding="utf-8")
    code, out = run("check")
    assert (code, "4 matches against 2" in out) == (3, True), out


# As LAMMPS printed it in 2022, and prints it now; `line multi` repeats the step of `custom step`.
BLOCKS = """\
---------------- Step        0 ----- CPU =      0.0000 (sec) ----------------
Step     =              0 Temp     =         1.4400 PotEng   =        -6.7734
Press    =        -3.7262
------------ Step             50 ----- CPU =  0.001693532 (sec) -------------
Temp     = 1.49095            PotEng   = -4.5351222         Press    = 6.4803941
Loop time of 1 on 1 procs
Pair = 0.5
"""


def test_a_log_of_lammps_in_blocks(folder: Path) -> None:
    """The blocks of `thermo_style multi` are rows of the table; their times are not compared."""
    (folder / "ciwrap.yaml").write_text(
        "checks: {melt: {format: log, outputs: log.lammps, use: lammps}}\n", encoding="utf-8"
    )
    log = folder / "log.lammps"
    log.write_text(BLOCKS, encoding="utf-8")
    assert run("accept")[0] == 0
    code, out = run("values", "log.lammps", "--use", "lammps")
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [
        ["thermo.Step", "2"],
        ["thermo.Temp", "2"],
        ["thermo.PotEng", "2"],
        ["thermo.Press", "2"],
    ]
    log.write_text(BLOCKS.replace("0.001693532", "0.7"), encoding="utf-8")
    assert run("check")[0] == 0
    log.write_text(BLOCKS.replace("-4.5351222", "-4.5351223"), encoding="utf-8")
    code, out = run("check")
    assert (code, "first at [1] (step 50, line 5, column 42)" in out) == (1, True), out
    log.write_text(BLOCKS.replace("50 -----", "60 -----"), encoding="utf-8")
    assert run("check")[0] == 3
    log.write_text(BLOCKS.replace("50 -----", "5x -----"), encoding="utf-8")
    code, out = run("check")
    assert (code, "line 4, word 3 is '5x', not a" in out) == (3, True), out


def test_runs_of_lammps_that_are_not_read_are_told(folder: Path) -> None:
    run_in_another_style = (
        "---\nkeywords: ['Step', 'Temp', 'TotEng', ]\ndata:\n  - [0, 1.44, -4.6218, ]\n...\n"
    )
    (folder / "ciwrap.yaml").write_text(
        "checks: {melt: {format: log, outputs: log.lammps, use: lammps}}\n", encoding="utf-8"
    )
    one = "   Step  Temp\n  0  1.44\nLoop time of 1 on 1 procs\n"
    (folder / "log.lammps").write_text(one, encoding="utf-8")
    assert run("accept")[0] == 0
    (folder / "log.lammps").write_text(one + run_in_another_style, encoding="utf-8")
    code, out = run("check")
    assert code == 3
    assert "which 'forbid' rules out" in out


def test_units_of_qe_are_never_mixed(folder: Path) -> None:
    config = "checks: {scf: {format: log, outputs: out.log, use: qe}}\n"
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    log = """\
!    total energy              =     -15.79449593 Ry
          k = 0.0000 0.0000 0.0000 (   113 PWs)   bands (ev):

    -5.6701   4.6465   5.9568   5.9568

     highest occupied, lowest unoccupied level (ev):     6.2539    6.8221
     convergence has been achieved in   6 iterations
   JOB DONE.
"""
    (folder / "out.log").write_text(log, encoding="utf-8")
    assert run("accept")[0] == 0
    code, out, variables = checked(folder, log)
    assert code == 0
    assert variables["bands"]["element_count"] == 4
    assert {"etot", "homo_lumo.homo", "homo_lumo.lumo", "scf_iterations"} <= {*variables}
    code, out, _ = checked(folder, log.replace("-15.79449593 Ry", "-214.8950458 eV"))
    assert code == 3
    assert "unit Ry against eV" in out


def test_a_number_that_the_end_of_a_file_may_cut_is_not_compared(folder: Path) -> None:
    """What is left of it may be within the bound, as -17.16 is of -17.1601."""
    rule = '{e: {match: "E = {e}", atol: 1}}'
    config = f"checks: {{run: {{format: log, outputs: out.log, values: {rule}}}}}"
    (folder / "ciwrap.yaml").write_text(config, encoding="utf-8")
    (folder / "out.log").write_text("E = -17.17\nE = -17.1601\n", encoding="utf-8")
    assert run("accept")[0] == 0
    (folder / "other.log").write_text("E = -17.17\nE = -17.1", encoding="utf-8")
    code, out = run("compare", "out.log", "other.log", "--check", "run")
    assert code == 3
    assert "in B the text ends with its last number, without a line break" in out
    code, out = run("compare", "other.log", "out.log", "--check", "run")
    assert code == 3
    assert "in A the text ends with its last number" in out
    # A program that writes no line break at its end is compared with itself.
    assert run("compare", "other.log", "other.log", "--check", "run")[0] == 0
    (folder / "out.log").write_text("E = -17.17\nE = -17.1", encoding="utf-8")
    code, out = run("check")
    assert code == 3
    assert "in the outputs the text ends with its last number" in out
    assert run("accept", "--reason", "no line break")[0] == 0
    assert run("check")[0] == 0
    (folder / "out.log").write_text("E = -17.17\nE = -17.1 Ha", encoding="utf-8")
    code, out = run("check")
    assert code == 3
    assert "in the golden the text ends with its last number" in out
    (folder / "other.log").write_text("E = -17.17\n", encoding="utf-8")
    code, out = run("compare", "other.log", "out.log", "--check", "run")
    assert (code, "1 match against 2; only in B: match 2 (line 2)" in out) == (
        3,
        True,
    )
