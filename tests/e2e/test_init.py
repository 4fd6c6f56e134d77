"""`ciwrap init`: what lies in a folder, or two runs print alike, becomes a configuration."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from command_line import call
from e2e.cli_project import environment
from git_repository import GitRepository

DATA = Path(__file__).resolve().parents[1] / "data/logs"


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    done = call(*arguments, folder=folder, environment=environment())
    return done.returncode, done.stdout + done.stderr


def log(shift: float, seconds: float, steps: int = 12) -> str:
    energies = "".join(f" Local energy {n}: {-5 - n / 7 + shift:.9f}\n" for n in range(3))
    many = "".join(f" Part {chr(97 + n)} sum = {n + 1 / 3 + shift:.9f}\n" for n in range(15))
    return (
        f" Total energy [a.u.]: {-17.16 + shift:.9f}\n{energies}{many}"
        f" Elapsed time {seconds:.9f} s\n Converged in {steps} steps\n"
        f" Chaotic {1.0 + 1000 * shift:.9f}\n Short 1.25\n"
        f" Pair {1.5 + shift:.9f} {2.5 + shift:.9f}\n"
    )


def test_what_two_runs_print_alike_is_proposed_with_its_noise(tmp_path: Path) -> None:
    (tmp_path / "run1.log").write_text(log(0.0, 1.234567), encoding="utf-8")
    (tmp_path / "run2.log").write_text(log(2e-5, 9.876543, 13), encoding="utf-8")
    assert run(tmp_path, "init", "--logs", "run1.log", "run2.log")[0] == 0
    text = (tmp_path / "ciwrap.yaml").read_text(encoding="utf-8")
    values = yaml.safe_load(text)["checks"]["run1"]["values"]
    assert len(values) == 10
    assert len(re.findall(r"^      # \w+: \{", text, re.MULTILINE)) == 9
    assert values["total_energy_a_u"]["atol"] == pytest.approx(2e-4)
    for absent in ("Elapsed", "Converged", "Chaotic", "Short"):
        assert absent not in text
    assert run(tmp_path, "accept")[0] == 0
    shutil.copy(tmp_path / "run2.log", tmp_path / "run1.log")
    code, out = run(tmp_path, "check")
    assert code == 0, out
    (tmp_path / "run1.log").write_text(log(3e-4, 1.0), encoding="utf-8")
    assert run(tmp_path, "check")[0] == 1


def test_runs_that_print_the_same_get_a_bound_of_some_printed_units(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(log(0.0, 1.0), encoding="utf-8")
    code, out = run(tmp_path, "init", "--logs", "a.log", "a.log", "--dry-run")
    assert code == 0
    values = yaml.safe_load(out)["checks"]["a"]["values"]
    assert {one["atol"] for one in values.values()} == {1.5e-9}
    assert not (tmp_path / "ciwrap.yaml").exists()


@pytest.mark.parametrize("name", ["cp2k.out", "log.lammps", "pyscf.log"])
def test_on_what_real_programs_print(tmp_path: Path, name: str) -> None:
    shutil.copy(DATA / name, tmp_path / name)
    assert run(tmp_path, "init", "--logs", name, name)[0] == 0
    assert run(tmp_path, "values", name)[0] == 0
    assert run(tmp_path, "accept")[0] == 0
    assert run(tmp_path, "check")[0] == 0


def test_what_is_told_of_a_table_is_what_is_found(tmp_path: Path) -> None:
    """A log of LAMMPS with too few digits for anything but its table."""
    text = "Step Temp\n 0 1.5\n 10 2.5\nLoop time of 1\nStep Temp\n 0 9.5\nLoop time of 1\n"
    (tmp_path / "a.log").write_text(text, encoding="utf-8")
    code, out = run(tmp_path, "init", "--logs", "a.log", "a.log")
    assert code == 0
    assert "check a: 1 file, 2 variables" in out
    assert "2 variables" in run(tmp_path, "accept")[1]
    (tmp_path / "a.log").write_text(text.replace("1.5", "1.6"), encoding="utf-8")
    assert run(tmp_path, "check")[0] == 1


def test_mistakes(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("nothing\n", encoding="utf-8")
    code, out = run(tmp_path, "init", "--logs")
    assert (code, "needs the logs of one or two runs" in out) == (2, True)
    for logs in (["a.log"], ["a.log", "a.log"]):
        code, out = run(tmp_path, "init", "--logs", *logs)
        assert (code, "no number that looks like a result" in out) == (3, True)
    code, out = run(tmp_path, "init", "--logs", "a.log", "b.log")
    assert (code, "does not exist" in out) == (3, True)
    code, out = run(tmp_path, "compare", ".", "b.log")
    assert (code, "b.log: does not exist; fix the path" in out) == (3, True)


def test_why_no_number_is_proposed(tmp_path: Path) -> None:
    """The number has enough digits, and nothing that it could be called by."""
    (tmp_path / "a.log").write_text("E = 1.2345678\n", encoding="utf-8")
    code, out = run(tmp_path, "init", "--logs", "a.log", "a.log")
    assert code == 3
    assert "7 digits or more, a word of two letters before it" in out


@pytest.mark.parametrize("target", ["nowhere", "link.npy", "link.csv", "link.bin"])
def test_links_that_lead_nowhere_are_left_out(tmp_path: Path, target: str) -> None:
    (tmp_path / "out").mkdir()
    np.save(tmp_path / "out" / "x.npy", np.arange(3.0))
    for name in ("link.npy", "link.csv", "link.bin"):
        (tmp_path / "out" / name).symlink_to(target)
    for outputs in ([], ["out"]):
        code, out = run(tmp_path, "init", *outputs)
        assert (code, "check x: 1 file" in out) == (0, True), out
        text = (tmp_path / "ciwrap.yaml").read_text(encoding="utf-8")
        assert "#   out/link.npy: " in text
        assert "# Raw numbers" not in text
        (tmp_path / "ciwrap.yaml").unlink()


def test_a_path_that_would_be_taken_for_a_pattern_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "out" / "{x}").mkdir(parents=True)
    for name in ("out/x.npy", "out/{x}/y.npy"):
        np.save(tmp_path / name, np.arange(3.0))
    code, out = run(tmp_path, "init")
    assert (code, "left out: out/{x}/y.npy: a path with a brace" in out) == (0, True), out
    assert run(tmp_path, "accept")[0] == 0


def test_texts_alone_are_compared_token_by_token(tmp_path: Path) -> None:
    (tmp_path / "run.out").write_text("E = 1\n", encoding="utf-8")
    code, out = run(tmp_path, "init")
    assert (code, "check run: 1 file, format: tokens" in out) == (0, True), out
    assert run(tmp_path, "accept")[0] == 0
    (tmp_path / "run.out").write_text("E = 2\n", encoding="utf-8")
    assert run(tmp_path, "check")[0] == 1


def test_texts_with_keys_are_read_by_these_and_the_program_is_none(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('{"energy": 1.5}')
    (tmp_path / "sim.py").write_text("print(1)\n")
    code, out = run(tmp_path, "init", "--", "python", "sim.py")
    assert (code, "check summary: 1 file, format: json" in out) == (0, True), out
    assert "sim" not in yaml.safe_load((tmp_path / "ciwrap.yaml").read_text())["checks"]
    assert run(tmp_path, "accept")[0] == 0
    (tmp_path / "summary.json").write_text('{"energy": 1.6}')
    assert run(tmp_path, "check")[0] == 1


def test_files_that_differ_in_their_suffix_alone_become_checks_of_their_own(tmp_path: Path) -> None:
    """They name the same variables, which one check could not tell apart."""
    names = ("x.extxyz", "x.xyz")
    for name in names:
        (tmp_path / name).write_text("1\nProperties=species:S:1:pos:R:3\nH 0 0 0.5\n")
    for outputs in (names, ()):
        code, out = run(tmp_path, "init", *outputs)
        assert code == 0, out
        checks = yaml.safe_load((tmp_path / "ciwrap.yaml").read_text())["checks"]
        assert checks == {name: {"outputs": name} for name in names}
        assert run(tmp_path, "accept", "--reason", "as it is")[0] == 0
        assert run(tmp_path, "check")[0] == 0
        (tmp_path / "ciwrap.yaml").unlink()


def test_a_program_named_from_this_folder_is_no_output(tmp_path: Path) -> None:
    """As README calls it: `ciwrap init -- ./simulate`."""
    program = tmp_path / "simulate"
    program.write_text("#!/bin/sh\necho E = 1 > run.out\n")
    program.chmod(0o755)
    code, out = run(tmp_path, "init", "--", "./simulate")
    assert (code, "run the program first" in out) == (3, True), out
    subprocess.run(["./simulate"], cwd=tmp_path, check=True)
    assert run(tmp_path, "init", "--", "./simulate")[0] == 0
    assert list(yaml.safe_load((tmp_path / "ciwrap.yaml").read_text())["checks"]) == ["run"]


def test_logs_of_known_programs_have_rules(tmp_path: Path) -> None:
    (tmp_path / "pw.out").write_text(
        "     Program PWSCF v.6.7 starts on\n!    total energy  =  -15.84 Ry\n JOB DONE.\n",
        encoding="utf-8",
    )
    for name in ("cp2k.out", "log.lammps", "pyscf.log"):
        shutil.copy(DATA / name, tmp_path / name)
    assert run(tmp_path, "init")[0] == 0
    checks = yaml.safe_load((tmp_path / "ciwrap.yaml").read_text(encoding="utf-8"))["checks"]
    assert {one["outputs"]: (one["format"], one["use"]) for one in checks.values()} == {
        "cp2k.out": ("log", "cp2k"),
        "log.lammps": ("log", "lammps"),
        "pw.out": ("log", "qe"),
        "pyscf.log": ("log", "pyscf"),
    }
    assert run(tmp_path, "accept")[0] == 0
    assert run(tmp_path, "check")[0] == 0


def test_what_is_left_out_is_told_and_left_out(tmp_path: Path) -> None:
    """A text whose path the tables' pattern fits, a table of words, a file that git tracks."""
    (tmp_path / "out").mkdir()
    for name in ("a", "b"):
        (tmp_path / "out" / f"{name}.txt").write_text("1 2\n3 4\n", encoding="utf-8")
    (tmp_path / "out" / "stdout.txt").write_text("step 1 E = 2\nended\n", encoding="utf-8")
    (tmp_path / "out" / "names.csv").write_text("a,b\nc,d\n", encoding="utf-8")
    (tmp_path / "input.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    for words in (("init", "-q"), ("add", "input.csv")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, env=environment())
    code, out = run(tmp_path, "init")
    assert code == 0, out
    assert "left out: out/names.csv: holds no column of numbers" in out
    assert "left out: 1 text: .txt (1); uncomment" in out
    assert "left out: 1 file that git tracks, taken for inputs" in out
    (check,) = yaml.safe_load((tmp_path / "ciwrap.yaml").read_text(encoding="utf-8"))[
        "checks"
    ].values()
    assert check == {"outputs": "out/{name}.txt", "exclude": ["out/stdout.txt"]}
    assert "4 variables" in run(tmp_path, "accept")[1]


def test_values_of_one_log_are_labelled_by_their_steps(tmp_path: Path) -> None:
    lines = [f"step {n} t= {n / 10} energy = {-76.02676 - n / 3:.7f}\n" for n in range(3)]
    (tmp_path / "a.log").write_text("".join(lines), encoding="utf-8")
    code, out = run(tmp_path, "init", "--logs", "a.log", "--", "./simulate", "a b")
    # A step and a time in each line.
    assert (code, "left out: 6 other numbers of the log; a check with" in out) == (0, True), out
    made = yaml.safe_load((tmp_path / "ciwrap.yaml").read_text(encoding="utf-8"))
    assert made["run"] == "./simulate 'a b'"
    assert made["checks"]["a"]["values"] == {
        "energy": {"match": "^step {iteration:int} {*} energy = {energy}", "atol": 1.5e-7}
    }
    assert run(tmp_path, "accept")[0] == 0
    lines[2] = lines[2].replace("energy = -76", "energy = -77")
    (tmp_path / "a.log").write_text("".join(lines), encoding="utf-8")
    code, out = run(tmp_path, "check")
    assert (code, "at iteration 2" in out or "iteration=2" in out or "step 2" in out) == (
        1,
        True,
    ), out


def test_variables_are_counted_where_files_were_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ciwrap.formats.look.MAX_FILES", 3)
    for number in range(5):
        np.save(tmp_path / f"x_{number}.npy", np.zeros(2))
    done = call("init", folder=tmp_path, environment=environment())
    assert "5 files, 3 variables in the first 3 of them" in done.stdout


@pytest.mark.parametrize("place", [".", "sub/dir"])
def test_ci_files_are_written_once_and_work_where_the_configuration_is(
    tmp_path: Path, place: str
) -> None:
    GitRepository.make(tmp_path)
    folder = tmp_path / place
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "t.csv").write_text("x\n1\n")
    code, out = run(folder, "init", "--ci", "github")
    assert code == 0, out
    assert "wrote .github/workflows/ciwrap.yml" in out
    text = (tmp_path / ".github/workflows/ciwrap.yml").read_text(encoding="utf-8")
    (job,) = yaml.safe_load(text)["jobs"].values()
    step = job["steps"][-1]
    assert step["uses"] == "YOUR_ORGANISATION/ciwrap@v1"
    assert step.get("with", {}).get("working-directory", ".") == place
    # What is there stays, and beside a ciwrap.yaml the other service's file is written alone.
    config = (folder / "ciwrap.yaml").read_text(encoding="utf-8")
    code, out = run(folder, "init", "--ci", "github")
    assert (code, "already exists" in out) == (2, True)
    code, out = run(folder, "init", "--ci", "gitlab")
    assert code == 0, out
    assert (folder / "ciwrap.yaml").read_text(encoding="utf-8") == config
    spec, jobs = yaml.safe_load_all((tmp_path / ".gitlab/ciwrap.yml").read_text(encoding="utf-8"))
    (include,) = yaml.safe_load((tmp_path / ".gitlab-ci.yml").read_text())["include"]
    assert include["local"] == ".gitlab/ciwrap.yml"
    assert include.get("inputs", {}).get("folder", ".") == place
    used = set(re.findall(r"\$\[\[ inputs\.(\w+) \]\]", str(jobs)))
    assert used == set(spec["spec"]["inputs"])


def test_a_gitlab_pipeline_that_is_there_is_not_touched(tmp_path: Path) -> None:
    GitRepository.make(tmp_path)
    (tmp_path / "t.csv").write_text("x\n1\n")
    (tmp_path / ".gitlab-ci.yml").write_text("stages: [test]\n")
    code, out = run(tmp_path, "init", "--ci", "gitlab")
    assert code == 0, out
    assert ".gitlab-ci.yml is there already; add to it:\ninclude:\n  - local:" in out
    assert (tmp_path / ".gitlab-ci.yml").read_text() == "stages: [test]\n"


def test_ci_files_need_git_and_a_dry_run_writes_none(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    code, out = run(tmp_path, "init", "--ci", "github")
    assert (code, "not in a git work tree" in out) == (2, True)
    assert not (tmp_path / "ciwrap.yaml").exists()
    GitRepository.make(tmp_path)
    code, out = run(tmp_path, "init", "--ci", "github", "--dry-run")
    assert code == 0
    assert "# --- .github/workflows/ciwrap.yml\n" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == [".git", "t.csv"]


PROGRAM = """
import pathlib
count = pathlib.Path(".count")
n = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(n))
x = float(pathlib.Path("input.txt").read_text())
pathlib.Path("run.log").write_text(
    f"Started 2026-11-22 10:01:{n:02d}\\nE = {x:.4f} H\\nstep 1 E = {x:.4f} took {0.5 * n}\\n"
)
pathlib.Path("t.csv").write_text(f"x,wall\\n{x + n * 1e-13!r},{n * 3.7}\\n{3.0},{n / 7}\\n")
pathlib.Path("same.blob").write_bytes(b"\\0same")
pathlib.Path("other.blob").write_bytes(bytes([0, n]))
pathlib.Path("same.bin").write_bytes(b"\\0" * 12)
pathlib.Path("other.bin").write_bytes(bytes([0, n]))
pathlib.Path("longer.log").write_text("warning\\n" * n + "ended\\n")
pathlib.Path("empty.txt").write_text("")
pathlib.Path(f"once{n // 2}.log").write_text("of the first run, or of two\\n")
pathlib.Path("restart.log").write_text("read\\n" if n > 1 else "new\\nguess\\n")
with open("appended.log", "a") as log:
    log.write(f"x = {x}\\n" * 3)
"""


def test_what_runs_of_a_command_print_anew_is_proposed(tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("1.5\n", encoding="ascii")
    command = ["--", "python3", "-c", PROGRAM]
    code, out = run(tmp_path, "init", "--runs", "3", *command)
    assert code == 0, out
    checks = yaml.safe_load((tmp_path / "ciwrap.yaml").read_text(encoding="utf-8"))["checks"]
    assert checks["run"]["options"] == {
        "ignore": ["dates", "times"],
        "ignore_places": ["step # E = # took {}"],
    }
    assert checks["t"]["ignore"] == ["wall"]
    assert 1e-13 < float(checks["t"]["variables"]["x"]["atol"]) < 1e-11
    outputs = {"run.log", "t.csv", "same.blob", "same.bin"}
    assert {one["outputs"] for one in checks.values()} == outputs
    assert [one["format"] for one in checks.values() if "same" in one["outputs"]] == ["bytes"] * 2
    for words in (
        "longer.log: the runs differ",
        "other.blob: the runs differ, in bytes",
        "other.bin: nothing says which dtype and shape it has",
        "empty.txt: it is empty",
        "appended.log: each run appends to it; have the command remove it first",
        "once0.log: not every run wrote it",
        "restart.log: only the first run differs, so the command may go on",
        "1 file that the command does not write, taken for inputs",
    ):
        assert words in out
    assert run(tmp_path, "accept")[0] == 0
    assert run(tmp_path, "run")[0] == 0
    (tmp_path / "input.txt").write_text("1.5001\n", encoding="ascii")
    assert run(tmp_path, "run")[0] == 1


KEYED_PROGRAM = """
import pathlib, sys
kept = pathlib.Path(".count")
n = int(kept.read_text()) + 1 if kept.exists() else 1
kept.write_text(str(n))
energy = -15.84 * (1.01 if "defect" in pathlib.Path("input.txt").read_text() else 1)
pathlib.Path("r.json").write_text(f'{{"energy": {energy + n * 1e-12!r}, "seconds": {n * 3.7}}}')
pathlib.Path("r.yaml").write_text(f"id: 'run {n}'\\nenergy: {energy!r}\\n")
pathlib.Path("pw.out").write_text(
    "     Program PWSCF v.6.7 starts on\\n"
    f"!    total energy  =  {energy:.8f} Ry\\n  WALL {n} s\\n JOB DONE.\\n"
)
"""


def test_texts_with_keys_and_known_logs_are_read_by_them_in_runs_too(tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("as it is", encoding="ascii")
    code, out = run(tmp_path, "init", "--runs", "3", "--", "python3", "-c", KEYED_PROGRAM)
    assert code == 0, out
    checks = yaml.safe_load((tmp_path / "ciwrap.yaml").read_text(encoding="utf-8"))["checks"]
    assert "left out: numbers of 1 log that 'use: qe' does not name; a check with" in out
    found = {one["outputs"]: (one["format"], one.get("ignore")) for one in checks.values()}
    assert found == {
        "r.json": ("json", ["seconds"]),
        "r.yaml": ("yaml", ["id"]),
        "pw.out": ("log", None),
    }
    bounds = {one["outputs"]: one.get("variables") for one in checks.values()}
    assert 1e-12 < float(bounds["r.json"]["energy"]["atol"]) < 1e-10
    assert run(tmp_path, "accept")[0] == 0
    assert run(tmp_path, "run")[0] == 0
    (tmp_path / "input.txt").write_text("defect", encoding="ascii")
    assert run(tmp_path, "run")[0] == 1


def test_a_variable_that_is_all_noise_is_told_with_what_to_do(tmp_path: Path) -> None:
    program = (
        "import numpy as np; draw = np.random.default_rng().normal\n"
        "np.savez('out.npz', drawn=draw(size=50), kept=np.arange(50.0) + 1e-12 * draw(size=50))"
    )
    code, out = run(tmp_path, "init", "--runs", "2", "--", sys.executable, "-c", program)
    assert code == 0, out
    told = "1 variable under 'ignore', which the runs change too far for a bound: drawn; to compare"
    assert f"left out: {told}" in out
    text = (tmp_path / "ciwrap.yaml").read_text(encoding="utf-8")
    assert f"#   {told}" in text
    assert "give them an 'atol' under 'variables'" in text
    (check,) = yaml.safe_load(text)["checks"].values()
    assert (check["ignore"], list(check["variables"])) == (["drawn"], ["kept"])


TIMED_PROGRAM = """
import pathlib
kept = pathlib.Path(".count")
n = int(kept.read_text()) + 1 if kept.exists() else 1
kept.write_text(str(n))
energy = float(pathlib.Path("input.txt").read_text())
bar = "-" * n
pathlib.Path("gpaw.txt").write_text(
    f"Kinetic:  +12.345678\\nFree energy:  {energy:.6f}\\n\\nTiming:          incl.  excl.\\n"
    f"Forces:         {0.5 * n:.3f}  0.1 {3 * n:.1f}% |{bar}|\\nOther:  0.000  0.000   0.0% |\\n"
    f"Total:          {0.5 * n:.3f} 100.0%\\n\\nMemory usage: 110.87 MiB\\n"
)
"""


def test_energies_beside_a_table_of_times_stay_compared(tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("-9.432099", encoding="ascii")
    code, out = run(tmp_path, "init", "--runs", "2", "--", "python3", "-c", TIMED_PROGRAM)
    assert code == 0, out
    assert run(tmp_path, "accept")[0] == 0
    assert run(tmp_path, "run")[0] == 0
    (tmp_path / "input.txt").write_text("-9.432098", encoding="ascii")
    code, out = run(tmp_path, "run")
    assert (code, "1 of 2 numbers" in out) == (1, True), out


def test_runs_that_fail_or_are_missing(tmp_path: Path) -> None:
    assert run(tmp_path, "init", "--runs", "2")[0] == 2
    assert run(tmp_path, "init", "--runs", "2", "--logs", "a.log", "--", "true")[0] == 2
    code, out = run(tmp_path, "init", "--runs", "2", "--", "false")
    assert (code, "so nothing was proposed" in out) == (3, True)
    assert not (tmp_path / "ciwrap.yaml").exists()


def test_a_file_that_is_no_table_though_its_suffix_says_so_has_its_format_named(
    tmp_path: Path,
) -> None:
    """A dump of LAMMPS in `dump.txt`: what is proposed has to work."""
    lines = ["ITEM: TIMESTEP", "0", "ITEM: NUMBER OF ATOMS", "1", "ITEM: BOX BOUNDS pp pp pp"]
    lines += ["0 1", "0 1", "0 1", "ITEM: ATOMS id x y z", "1 0.1 0.2 0.3"]
    (tmp_path / "dump.txt").write_text("\n".join([*lines, ""]), encoding="ascii")
    for outputs in ((), ("dump.txt",)):
        assert run(tmp_path, "init", *outputs)[0] == 0
        checks = yaml.safe_load((tmp_path / "ciwrap.yaml").read_text(encoding="utf-8"))["checks"]
        assert checks["dump"] == {"outputs": "dump.txt", "format": "lammps"}
        assert run(tmp_path, "accept", "--reason", "as it is")[0] == 0
        assert run(tmp_path, "check")[0] == 0
        (tmp_path / "ciwrap.yaml").unlink()


def test_files_beyond_the_most_checks_are_counted(tmp_path: Path) -> None:
    for number in range(32):
        folder = tmp_path / f"part {chr(97 + number % 26)}{number // 26}"
        folder.mkdir()
        (folder / "out.blob.csv").write_text("a,b\n1,2\n", encoding="ascii")
    code, out = run(tmp_path, "init")
    assert (code, "left out: 2 files beyond the first 30 checks" in out) == (0, True)


def test_folders_of_times_become_iterations_of_one_check(tmp_path: Path) -> None:
    """As OpenFOAM names them; a text among them has its own options beside the step."""
    program = """
import pathlib
for n in range(3):
    folder = pathlib.Path(f"{n * 0.0125:g}")
    folder.mkdir(exist_ok=True)
    x = float(pathlib.Path("input.txt").read_text())
    (folder / "x.csv").write_text(f"a\\n{x + n}\\n")
    (folder / "time").write_text(f"clock 12:30:01 value {x * n}\\n")
"""
    (tmp_path / "input.txt").write_text("1.5", encoding="ascii")
    code, out = run(tmp_path, "init", "--runs", "2", "--", "python3", "-c", program)
    assert code == 0, out
    checks = yaml.safe_load((tmp_path / "ciwrap.yaml").read_text(encoding="utf-8"))["checks"]
    assert {one["outputs"]: one["options"] for one in checks.values()} == {
        "{iteration}/{name}.csv": {"iteration_step": 0.0125},
        "{iteration}/time": {"iteration_step": 0.0125, "ignore": ["times"]},
    }
    assert run(tmp_path, "accept")[0] == 0
    assert run(tmp_path, "run")[0] == 0
    (tmp_path / "0.025/x.csv").write_text("a\n9\n", encoding="ascii")
    code, out = run(tmp_path, "check")
    assert (code, "x/a: in iteration 2 only" in out) == (1, True)
