"""Tests of other runners, in small trees of their shape, as checks."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from command_line import call
from e2e.cli_project import environment, validator

if TYPE_CHECKING:
    from pathlib import Path

MATCHERS = """
registry = {}
registry["E"] = GenericMatcher(r"Total energy:", col=3)
registry["F"] = GenericMatcher(r"FREQ| [cm]", col=3, first=True)
registry["A"] = GenericMatcher(r"Moment", col=2, abs_value=True)
registry["R"] = GenericMatcher(r"E\\s+=\\s+(\\S+)", col=1, regex=True)
registry["T"] = TextPresenceMatcher("all {good}")
registry["X"] = Other(print("this must not run"))
"""
TESTS = """
"one.inp" = [{matcher="E", tol=1e-6, ref=-17.5}, {matcher="T"}]
"two.inp" = [{matcher="F", tol=1e-3, ref=0.0}, {matcher="A", file="two.xyz", tol=1e-3, ref=2}]
"run.inp" = []
"odd.inp" = [{matcher="X", tol=1.0, ref=1.0}]
"twice.inp" = [{matcher="E", tol=1e-6, ref=1.0}, {matcher="E", tol=1e-6, ref=2.0}]
"""
ONE = "Total energy: 1.0\nTotal energy: {}\nall {{good}}\n"


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    done = call(*arguments, folder=folder, environment=environment())
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def cp2k(tmp_path: Path) -> Path:
    if sys.version_info < (3, 11):
        pytest.skip("TOML is read with Python 3.11 or later")
    (tmp_path / "matchers.py").write_text(MATCHERS, encoding="utf-8")
    (tmp_path / "QS/regtest").mkdir(parents=True)
    (tmp_path / "QS/regtest/TEST_FILES.toml").write_text(TESTS, encoding="utf-8")
    return tmp_path


def test_cp2k(cp2k: Path) -> None:
    code, out = run(cp2k, "import", "cp2k", ".", "--json", "import.json")
    assert code == 0
    document = json.loads((cp2k / "import.json").read_text(encoding="utf-8"))
    validator().validate(document)
    left = [one["what"] for one in document["not_carried_over"]]
    assert (document["tests"], document["carried_over"]) == (5, 3)
    assert left == ["QS/regtest/run.inp", "QS/regtest/odd.inp"]
    assert "5 tests, 3 carried over whole" in out
    assert "QS/regtest/run.inp: is only run: it compares nothing" in out
    assert "QS/regtest/odd.inp: has the matcher 'X'" in out
    assert "this must not run" not in out
    folder = cp2k / "QS/regtest"
    (folder / "one.inp.out").write_text(ONE.format("-17.50001"), encoding="utf-8")
    assert run(folder, "check", "one")[0] == 0
    (folder / "one.inp.out").write_text(ONE.format("-17.6"), encoding="utf-8")
    assert run(folder, "check", "one")[0] == 1
    (folder / "one.inp.out").write_text(ONE.format("-17.5")[:-11], encoding="utf-8")
    assert run(folder, "check", "one")[0] == 1  # the text is not there
    (folder / "one.inp.out").write_text("Total energy: level\nall {good}\n", encoding="utf-8")
    assert run(folder, "check", "one")[0] == 3
    # The first match counts, and the bound of a reference of 0 is absolute.
    (folder / "two.inp.out").write_text("FREQ| [cm] 1e-4\nFREQ| [cm] 7\n", encoding="utf-8")
    (folder / "two.xyz").write_text("Moment -2.001\n", encoding="utf-8")
    assert run(folder, "check", "two", "two:two.xyz")[0] == 0
    (folder / "two.xyz").write_text("Moment -2.1\n", encoding="utf-8")
    assert run(folder, "check", "two", "two:two.xyz")[0] == 1


def test_nothing_is_replaced_and_a_dry_run_writes_nothing(cp2k: Path) -> None:
    assert run(cp2k, "import", "cp2k", ".", "--dry-run")[0] == 0
    assert not (cp2k / "ciwrap-values.yaml").exists()
    assert run(cp2k, "import", "cp2k", ".", "--output", "out")[0] == 0
    assert (cp2k / "out/QS/regtest/ciwrap.yaml").is_file()
    code, out = run(cp2k, "import", "cp2k", ".", "--output", "out")
    assert code == 2
    assert "already exists" in out


JOBS = """
[pw_si/]
program = PW
inputs_args = ('si.in', '')
[ph_si/]
program = PH
[gone/]
program = PW
[fn/]
program = FN
[no/]
program = NO
[categories]
pw = pw_*
"""
USERS = """
[PW]
extract_program = X/extract-pw.sh
tolerance = ( (1.0e-5, 1.0e-5, 'e1'),
              (1.0e-2, None,   'f1'),
              (1.0e-2, 1.0e-2, 'eh1', False),
              (5.0e-3, None,   'geom') )
[PH]
extract_program = X/extract-ph.sh
tolerance = (1.0e-3, None, 'freq'), (1.0e-1, 1e-3, 'eps')
[FN]
extract_fn = lib module.read
tolerance = (1.0, None, 'x')
[NO]
tolerance = (1.0, None, 'y')
"""
PW = "!    total energy  =     {} Ry\n     highest occupied level (ev):     {}\n"


def test_testcode(tmp_path: Path) -> None:
    (tmp_path / "jobconfig").write_text(JOBS, encoding="utf-8")
    (tmp_path / "userconfig").write_text(USERS, encoding="utf-8")
    for name in ("pw_si", "ph_si", "fn", "no"):
        (tmp_path / name).mkdir()
    code, out = run(tmp_path, "import", "testcode", ".")
    assert code == 0
    assert "5 tests, 2 carried over whole" in out
    assert "gone: is not a folder" in out
    assert "fn (x): has the label 'x', which a Python function extracts (lib module.read)" in out
    assert "no (y): has the label 'y', and neither extract_cmd nor extract_program" in out
    assert "extract-ph.sh test.out.X > extracted.out.X" in out
    folder = tmp_path / "pw_si"
    values = yaml.safe_load((folder / "ciwrap.yaml").read_text(encoding="utf-8"))
    values = values["checks"]["pw_si"]["values"]
    assert values["e1"] == {"like": "e1", "atol": 1e-5, "rtol": 1e-5, "combine": "both"}
    assert values["eh1"]["combine"] == "either"
    (folder / "benchmark.out.git").write_text(PW.format("-1.0", "6.0"), encoding="utf-8")
    compare = ("compare", "benchmark.out.git", "test.out.1", "--check", "pw_si")
    # Both parts of a bound have to hold, or either of them.
    for energy, level, code in (("-1.000009", "6.05", 0), ("-1.00002", "6.0", 1), ("-1", "6.1", 1)):
        (folder / "test.out.1").write_text(PW.format(energy, level), encoding="utf-8")
        assert run(folder, *compare)[0] == code, (energy, level)


def test_what_a_script_printed(tmp_path: Path) -> None:
    """Labels with their numbers below; nobody but the user runs the script."""
    (tmp_path / "jobconfig").write_text(JOBS, encoding="utf-8")
    (tmp_path / "userconfig").write_text(USERS, encoding="utf-8")
    folder = tmp_path / "ph_si"
    folder.mkdir()
    assert run(tmp_path, "import", "testcode", ".")[0] == 0
    text = (folder / "ciwrap.yaml").read_text(encoding="utf-8")
    assert "extract-ph" not in text, "rules hold no command"
    compare = ("compare", "bench", "test", "--check", "ph_si-extracted")
    (folder / "bench").write_text("freq\n1.5 2.5\n3.5\n\neps\n10.0\nfreq_other\n7\n")
    for new, code in (
        ("freq\n1.5 2.5\n3.5005\n\neps\n10.005\nfreq_other\n8\n", 0),
        ("freq\n1.5\n2.5\n3.5\neps\n10.0\n", 0),
        ("freq\n1.5 2.5\n3.502\neps\n10.0\n", 1),
        ("freq\n1.5 2.5\n3.5\neps\n10.05\n", 1),  # testcode wants both to hold
        ("freq\n1.5 2.5\neps\n10.0\n", 3),
        ("freq\n1.5 2.5\n****\neps\n10.0\n", 3),
        ("freq\n1.5 2.5 x\n3.5\neps\n10.0\n", 3),
        ("eps\n10.0\n", 3),
        ("", 3),
    ):
        (folder / "test").write_text(new)
        found, out = run(folder, *compare)
        assert found == code, (new, out)


LAMMPS = """
tolerance:
  PotEng: {abs: 1e-4, rel: 1e-7}
  Press: {abs: 1e-2, rel: much}
overrides:
  in.melt: {PotEng: {abs: 1.0, rel: 1.0}}
skip: [in.slow]
nugget: 1.0
"""
THERMO = "Step PotEng Press\n0 -1.0 2.0\n10 {} 2.0\nLoop time of 1\n"


def test_lammps(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(LAMMPS, encoding="utf-8")
    code, out = run(tmp_path, "import", "lammps", "config.yaml")
    assert code == 0
    assert "3 tests, 0 carried over whole" in out
    assert "in.slow: is skipped there" in out
    assert "tolerance.Press and 1 more: gives no number for 'rel'" in out
    assert "stricter" in out
    for name, value, code in (
        ("a.log", "-1.0", 0),
        ("b.log", "-1.00005", 1),
    ):
        (tmp_path / "a.log").write_text(THERMO.format("-1.0"), encoding="utf-8")
        (tmp_path / name).write_text(THERMO.format(value), encoding="utf-8")
        assert run(tmp_path, "compare", "a.log", name, "--check", "logs")[0] == code
    assert run(tmp_path, "compare", "a.log", "b.log", "--check", "melt")[0] == 0


@pytest.mark.parametrize(
    ("kind", "name", "text", "said"),
    [
        ("cp2k", "x", "", "there is no matchers.py"),
        ("cp2k", "matchers.py", "registry[", "is not Python"),
        ("cp2k", "matchers.py", "", "there is no TEST_FILES.toml"),
        ("testcode", "x", "", "there is no jobconfig"),
        ("lammps", "config.yaml", "a: [", "is not YAML"),
        ("lammps", "config.yaml", "a: 1", "holds no 'tolerance'"),
    ],
)
def test_trees_of_another_shape(tmp_path: Path, kind: str, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    path = name if kind == "lammps" else "."
    code, out = run(tmp_path, "import", kind, path)
    assert code == 2
    assert said in out


def test_a_folder_that_two_sections_name(tmp_path: Path) -> None:
    """The second one does not take the place of the first one unseen."""
    jobs = "[a_*]\nprogram = PW\n[a_b]\nprogram = PH\n"
    (tmp_path / "jobconfig").write_text(jobs, encoding="utf-8")
    users = "[PW]\nextract_program = extract-pw.sh\ntolerance = (1e-5, None, 'e1'), 5\n"
    users += "[PH]\nextract_program = x.sh\ntolerance = (1e-3, None, 'freq')\n"
    (tmp_path / "userconfig").write_text(users, encoding="utf-8")
    (tmp_path / "a_b").mkdir()
    code, out = run(tmp_path, "import", "testcode", ".")
    assert code == 0, out
    assert "a_b: is named by two sections, of which the first counts" in out
    assert "has a tolerance without a label" in out
    text = (tmp_path / "a_b/ciwrap.yaml").read_text(encoding="utf-8")
    assert "like: e1" in text
    assert "freq" not in text


def tree_of(folder: Path, section: str, tolerance: str) -> Path:
    tree = folder / "tree"
    (tree / "a").mkdir(parents=True)
    (folder / "outside").mkdir()
    (tree / "jobconfig").write_text(f"[{section}]\nprogram = P\n", encoding="utf-8")
    programs = f"[P]\nextract_program = extract-pw.sh\ntolerance = {tolerance}\n"
    (tree / "userconfig").write_text(programs, encoding="utf-8")
    return tree


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("/abs/x", "lies outside the folder"),
        ("../outside", "lies outside the folder"),
        ("a/../../outside", "lies outside the folder"),
        ("/", "lies outside the folder"),
        (".", "1 test, 1 carried over whole"),
        ("./a/", "1 test, 1 carried over whole"),
        ("[a", "is not a folder"),
    ],
)
def test_folders_of_any_name(tmp_path: Path, section: str, said: str) -> None:
    tree = tree_of(tmp_path, section, "(1e-5, None, 'e1')")
    code, out = run(tree, "import", "testcode", ".")
    assert (code, said in out) == (0, True), out
    assert not [*(tmp_path / "outside").iterdir()]


@pytest.mark.parametrize(
    ("tolerance", "said"),
    [
        (f"(1{'0' * 400}, None, 'e1')", "not a bound"),
        ("(-1e-5, None, 'e1')", "not a bound"),
        ("(1e-5, 1e999, 'e1')", "not a bound"),
        ("(True, None, 'e1')", "not a bound"),
        ("(1e-5, 1j, 'e1')", "not a bound"),
        ("(1e-5, None)", "without a label"),
        ("((1e-5, None, ''),)", "not a value name"),
        ("((1e-5, None, 'a b'),)", "not a value name"),
        ("((1e-5, None, 'a/b'),)", "not a value name"),
        ("()", "has no tolerance"),
        ("{1: 2}", "not a plain tuple"),
    ],
)
def test_tolerances_that_say_nothing(tmp_path: Path, tolerance: str, said: str) -> None:
    tree = tree_of(tmp_path, "a", tolerance)
    code, out = run(tree, "import", "testcode", ".")
    assert (code, "0 carried over whole" in out, said in out) == (0, True, True), out
    assert not (tree / "a/ciwrap.yaml").exists()


def test_a_list_of_tolerances_is_as_good_as_a_tuple(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, "a", "[(1e-5, None, 'e1')]")
    assert run(tree, "import", "testcode", ".")[0] == 0
    assert "atol: 1.0e-05" in (tree / "a/ciwrap.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("bound", ["-1", ".nan", ".inf", "true", f"1{'0' * 400}", "[1]", "x"])
def test_tolerances_of_lammps_that_are_none(tmp_path: Path, bound: str) -> None:
    text = f"tolerance: {{PotEng: {{abs: {bound}, rel: 1e-7}}}}\n"
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    code, out = run(tmp_path, "import", "lammps", "c.yaml")
    assert (code, "gives no number for 'abs'" in out) == (0, True), out
    assert "atol" not in (tmp_path / "ciwrap.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("skip: in.slow", ("2 tests, 1 carried", "in.slow: is skipped there")),
        ("skip: 3", ("skip: is not a list of tests",)),
        ("overrides: [in.melt]", ("overrides: is not a mapping of tests",)),
        ("nugget: 1e-3", ("|golden| + 0.001",)),
        ("nugget: .nan", ("nugget: is not a number",)),
        ("overrides: {'in.{a}': {}}", ("overrides.in.{a}: has a name that reads as a template",)),
    ],
)
def test_lammps_of_another_shape(tmp_path: Path, more: str, said: tuple[str, ...]) -> None:
    text = f"tolerance: {{PotEng: {{abs: 1, rel: 1e-7}}}}\n{more}\n"
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    code, out = run(tmp_path, "import", "lammps", "c.yaml")
    assert code == 0, out
    assert all(part in out for part in said), out
    assert run(tmp_path, "check")[0] == 3  # its configuration can be read: the logs are not there


def test_overrides_take_no_other_checks_place(tmp_path: Path) -> None:
    text = "tolerance: {PotEng: {abs: 1, rel: 1e-7}}\noverrides:\n"
    for name, bound in (("in.logs", 2), ("in.melt", 3), ("melt", 4)):
        text += f"  {name}: {{PotEng: {{abs: {bound}, rel: 1e-7}}}}\n"
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    assert run(tmp_path, "import", "lammps", "c.yaml")[0] == 0
    made = yaml.safe_load((tmp_path / "ciwrap.yaml").read_text(encoding="utf-8"))["checks"]
    found = {name: one["variables"]["thermo.PotEng"]["atol"] for name, one in made.items()}
    assert found == {"logs": 1, "logs_2": 2, "melt": 3, "melt_2": 4}


@pytest.mark.parametrize(
    ("matcher", "test", "said"),
    [
        ('"E:"', "", "has the matcher 'E', whose column is not a whole number"),
        ('"E:", col="x"', "", "has the matcher 'E', whose column is not a whole number"),
        ('"E:", col=1', ", file=['a']", "names a file that is not a path"),
        ('"E:", col=1', ", file='{a}'", "names a file that is not a path"),
    ],
)
def test_cp2k_of_another_shape(cp2k: Path, matcher: str, test: str, said: str) -> None:
    (cp2k / "matchers.py").write_text(f'r["E"] = GenericMatcher({matcher})\n', encoding="utf-8")
    test = f'"a.inp" = [{{matcher="E", tol=1e-6, ref=1.0{test}}}]\n'
    (cp2k / "QS/regtest/TEST_FILES.toml").write_text(test, encoding="utf-8")
    code, out = run(cp2k, "import", "cp2k", ".")
    assert (code, said in out) == (0, True), out
    assert "1 test, 0 carried over whole" in out
