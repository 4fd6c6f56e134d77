"""`ciwrap snapshot`, and the snapshots that runs and goldens have."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ciwrap.snapshot.store import SnapshotStore, load_snapshot

if TYPE_CHECKING:
    from e2e.cli_project import Outcome, Project

# It runs until it has been looked at: 0.4 s after it has loaded all that it loads.
SIM = """
import os, sys, time
import numpy as np
import scipy.linalg
a = np.random.default_rng(1).standard_normal((60, 60))
np.save("out/temperature.npy", np.linalg.eigvalsh(a + a.T) + float(os.environ.get("SHIFT", 0)))
np.save("out/ids.npy", np.arange(4))
time.sleep(0.9)
"""
MPI = """
import time
from mpi4py import MPI
import numpy as np, scipy.linalg
total = MPI.COMM_WORLD.allreduce(float(np.linalg.det(np.eye(30))))
if MPI.COMM_WORLD.Get_rank() == 0:
    np.save("out/temperature.npy", np.array([total]))
time.sleep(1.5)
"""


def with_program(project: Project, code: str = SIM, launch: str = "", **env: str) -> None:
    """A project whose command is a program of Python, with variables."""
    (project.folder / "sim.py").write_text(code)
    lines = "".join(f"    {name}: '{value}'\n" for name, value in env.items())
    project.configure(
        f"run:\n  command: {launch} {sys.executable} sim.py\n"
        + (f"  env:\n{lines}" if lines else "")
    )


def saved_with(project: Project, *options: str) -> tuple[Outcome, Any]:
    """Saves a snapshot of the program; also its document."""
    target = project.folder.parent / "saved.json"
    words = ("snapshot", "save", *options, "--json", str(target), "--", sys.executable, "sim.py")
    return project.run(*words, json_too=False), json.loads(target.read_text())


def golden_and_run(project: Project, before: dict[str, str], after: dict[str, str]) -> Outcome:
    """A golden of one environment, then a run whose numbers differ in another."""
    with_program(project, **before)
    assert project.run("run").code == 3  # no golden yet
    project.accept()
    with_program(project, **after, SHIFT="1")
    outcome = project.run("run", "--report", "report.html", "--verbose")
    assert outcome.code == 1, outcome
    return outcome


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def differences(outcome: Outcome) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = outcome.document["checks"][0]["environment_differences"]
    return found


def test_a_run_tells_what_its_program_loaded(project: Project) -> None:
    with_program(project)
    outcome = project.run("run")
    identity = outcome.document["environment"]["snapshot"]
    found = SnapshotStore.of_project(project.folder).load(identity)
    blas = [one for one in found.objects if "openblas" in one.name and one.kind == "maths"]
    assert blas
    assert all(one.build_id or one.sha256 for one in found.objects)
    assert any(one.version and one.version.startswith("OpenBLAS 0.") for one in blas)
    assert any(one.name.startswith("libm") and one.build_id for one in found.objects)
    assert {"numpy", "scipy"} <= set(found.packages)
    shown = project.run("snapshot", "show", identity[:8])
    assert blas[0].path in shown.out
    assert shown.document["snapshot"]["command"].endswith("sim.py")
    # The golden remembers it, and so does a later check of the same outputs.
    project.accept()
    # In quotes only if it could be taken for a number.
    kept = project.golden.with_suffix(".golden.yaml").read_text().replace('"', "")
    assert f"snapshot: {identity}\n" in kept
    assert SnapshotStore.of_goldens(project.folder / "golden").contains(identity)
    check = project.run("check")
    assert check.document["checks"][0]["environment"]["snapshot"] == identity
    # What somebody else has written since is of no known run.
    project.save("ids", [1, 2])
    assert "environment" not in project.run("check").document["checks"][0]


def test_threads_are_ranked_first(project: Project) -> None:
    outcome = golden_and_run(project, {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "2"})
    first = differences(outcome)[0]
    assert (first["name"], first["kind"]) == ("OMP_NUM_THREADS", "threads")
    assert first["prove"] == "ciwrap repeat --vary OMP_NUM_THREADS=1,2"
    assert "OMP_NUM_THREADS differs: golden 1, this run 2" in outcome.out
    assert "because" not in outcome.out
    page = (project.folder / "report.html").read_text()
    assert "ciwrap repeat --vary OMP_NUM_THREADS=1,2" in re.sub(r"<[^>]+>", "", page)


@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="OpenBLAS has these kernels on x86-64 alone"
)
def test_blas_kernels_are_ranked_first(project: Project) -> None:
    outcome = golden_and_run(
        project, {"OPENBLAS_CORETYPE": "Haswell"}, {"OPENBLAS_CORETYPE": "Prescott"}
    )
    (found,) = differences(outcome)
    assert (found["name"], found["kind"]) == ("OPENBLAS_CORETYPE", "cpu")


def libm() -> Path:
    """The mathematics of the C library that this process has."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if Path(line.split()[-1]).name.startswith("libm.so"):
            return Path(line.split()[-1])
    pytest.skip("no libm.so is loaded here")


def test_another_libm_is_ranked_first(project: Project) -> None:
    """A copy of libm with another build ID, found through LD_LIBRARY_PATH."""
    data = bytearray(libm().read_bytes())
    at = data.index(b"GNU\0", data.index(b"\x03\0\0\0GNU\0")) + 4
    data[at] ^= 0xFF
    folder = project.folder / "lib"
    folder.mkdir()
    (folder / "libm.so.6").write_bytes(data)
    outcome = golden_and_run(project, {}, {"LD_LIBRARY_PATH": str(folder)})
    first, *others = differences(outcome)
    assert (first["name"], first["kind"]) == ("libm.so.6", "maths")
    assert first["golden"] != first["run"]
    assert [one["name"] for one in others] == ["LD_LIBRARY_PATH"]
    assert str(folder) not in outcome.out


def test_without_a_snapshot_the_summary_is_compared(project: Project) -> None:
    """As in CI, where `.ciwrap` of the machine that made the golden is not."""
    with_program(project, OMP_NUM_THREADS="1")
    project.run("run")
    project.accept()
    shutil.rmtree(project.folder / "golden/.snapshots")
    shutil.rmtree(project.folder / ".ciwrap")
    with_program(project, OMP_NUM_THREADS="2", SHIFT="1")
    outcome = project.run("run")
    assert [one["name"] for one in differences(outcome)] == ["OMP_NUM_THREADS"]


def test_nobody_sees_who_ran_it(project: Project) -> None:
    secret, user, other = "planted-secret-77", "adalovelace", "planted-other-88"
    home = project.folder.parent / user
    (home / "lib").mkdir(parents=True)
    # The program alone has a secret, which another variable of it repeats.
    with_program(project, DEPLOY_TOKEN=f"{other}-1", TZ=f":{other}-1")
    environment = {
        "CI_JOB_TOKEN": secret,
        "OMP_DISPLAY_SECRET": secret,
        "OMP_PLACES": secret,
        "LD_LIBRARY_PATH": f"{home}/lib:/opt/{secret}/lib",
        "https_proxy": f"http://proxy:{other}-2@host:3128",
        "OMP_SCHEDULE": f"{other}-2",
        "PIP_INDEX_URL": f"https://ada:{other}-3@index/simple",
        "LOADEDMODULES": f"gcc/12:{other}-3/1",
        "CIWRAP_CONTAINER_IMAGE": f"https://ada:{other}-4@registry/image:1",
        "CONDA_DEFAULT_ENV": f"/home/{user}/envs/one",
        "HOME": str(home),
        "LOGNAME": user,
        "USER": user,
        "XDG_CACHE_HOME": str(project.folder.parent / "cache"),
    }
    git(project.folder, "init", "-q")
    git(project.folder, "remote", "add", "origin", f"https://ada:{other}-5@example.org/x.git")
    (project.folder / "uv.lock").write_text(f"# https://ada:{other}-6@index/simple\n")
    sim = (sys.executable, "sim.py", f"--token={other}-7", "--password", f"{other}-8")
    told = []
    for words in (
        ("run", "--report", "r.html", "--verbose"),
        ("accept",),
        ("check", "--report", "r.html", "--verbose"),
        ("snapshot", "save", "--", *sim, f"https://ada:{other}-9@host"),
        ("snapshot", "show"),
        ("snapshot", "diff", "golden:mesh"),
        ("snapshot", "restore", "--dry-run"),
        ("time", "--pairs", "1", "--report", "t.html", " ".join(sim), " ".join(sim)),
        ("snapshot", "restore", "--path", "../restored"),
        ("doctor",),
    ):
        outcome = project.run(*words, apart=True, **environment)
        assert outcome.code in (0, 1, 3), outcome
        told.append(outcome.out + outcome.err + repr(outcome.document))
    written = [
        str(load_snapshot(path))
        if ".snapshots" in path.parts or ("snapshots" in path.parts and path.name != "outputs.json")
        else path.read_bytes().decode("utf-8", "replace")
        for path in project.folder.rglob("*")
        if path.is_file()
        and path.suffix != ".npy"
        and ".git" not in path.parts
        # Here the user has written them.
        and path.name not in ("ciwrap.yaml", "uv.lock")
    ]
    assert len(written) > 8
    host = platform.node()
    for text in (*told, *written):
        assert secret not in text
        assert other not in text
        assert f"/{user}" not in text
        # A golden's log says who accepted it, as it is to.
        assert user not in text.replace(f"who: {user}", "")
        assert len(host) < 4 or f'"{host}"' not in text
    assert any("(hidden)" in text for text in written)
    # A copy of a lock file is a copy.
    copied = (project.folder.parent / "restored/uv.lock").read_text()
    assert copied == (project.folder / "uv.lock").read_text()


def test_a_command_that_names_its_program_by_a_path_verifies_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ran the program of the old environment, and said that all objects were the same."""
    for name in ("v1", "v2"):
        (project.folder / name / "bin").mkdir(parents=True)
        shutil.copy("/bin/sleep", project.folder / name / "bin/sleep")
    saved = project.run("snapshot", "save", "--", "v1/bin/sleep", "0.5", json_too=False)
    assert saved.code == 0, saved
    monkeypatch.setenv("PATH", f"{project.folder}/v2/bin:{os.environ['PATH']}")
    refused = project.run("snapshot", "restore", "--verify", json_too=False)
    assert refused.code == 2, refused
    assert "runs v1/bin/sleep, whatever environment is active, and not" in refused.err
    assert "give the command after --, with sleep alone" in refused.err
    words = ("snapshot", "restore", "--verify", "last", "--", "sleep", "0.5")
    assert project.run(*words, json_too=False).code in (0, 1)
    monkeypatch.setenv("PATH", f"{project.folder}/v1/bin:{os.environ['PATH']}")
    assert project.run("snapshot", "restore", "--verify", json_too=False).code == 0
    listed = project.run("snapshot", "restore", "--dry-run", json_too=False).out
    assert "what the command names by a path: v1/bin/sleep" in listed
    assert "COPY . ." in listed


def test_an_environment_is_verified_object_by_object(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    with_program(project)
    saved, document = saved_with(project, "--keep-files")
    assert saved.code == 0, saved
    assert "objects seen" in saved.out
    same = project.run("snapshot", "restore", "--verify")
    assert same.code == 0, same
    assert same.document["equal"] == len(document["snapshot"]["objects"])
    words = ("snapshot", "restore", "--verify", "last", "--", "/bin/sleep", "0.3")
    other = project.run(*words, json_too=False)
    assert other.code == 1, other
    assert "not seen" in other.out
    failed = project.run(
        "snapshot", "restore", "--verify", "last", "--", "/bin/false", json_too=False
    )
    assert failed.code == 3
    # Recipes and kept files; a second time the same; never over something else.
    for _ in range(2):
        restored = project.run("snapshot", "restore", "--path", "back")
        shutil.rmtree(project.folder / "back/files")
        assert restored.code == 0, restored
    assert any(name.startswith("files/objects/") for name in restored.document["files"])
    assert "kernel: Linux" in restored.out
    (project.folder / "back/restore.sh").write_text("mine")
    refused = project.run("snapshot", "restore", "--path", "back", json_too=False)
    assert refused.code == 2
    assert "nothing is overwritten" in refused.err
    assert (project.folder / "back/restore.sh").read_text() == "mine"


def test_save_and_diff_and_their_exit_codes(project: Project) -> None:
    with_program(project)
    dry = project.run("snapshot", "save", "--dry-run")
    assert dry.code == 0
    assert not (project.folder / ".ciwrap").exists()
    assert project.run("snapshot", "show", json_too=False).code == 2
    first = project.run("snapshot", "save", apart=True, OMP_NUM_THREADS="1").document["identity"]
    same = project.run("snapshot", "diff", first, apart=True, OMP_NUM_THREADS="1")
    assert same.code == 3, "no objects are known, so nothing was compared"
    project.run("snapshot", "save", apart=True, OMP_NUM_THREADS="2")
    other = project.run("snapshot", "diff", first)
    assert other.code == 1
    assert other.out.startswith("OMP_NUM_THREADS differs: 1  ->  2  (thread settings)")
    # What is seen may differ where the machine is busy; one file for each that does.
    kept = {saved_with(project, "--path", "kept")[1]["identity"] for _ in range(2)}
    identity = min(kept)
    assert {path.name[:32] for path in (project.folder / "kept").iterdir()} == kept
    assert project.run("snapshot", "diff", identity, identity, "--path", "kept").code == 0
    path = next((project.folder / "kept").glob(f"{identity}*"))
    path.write_bytes(path.read_bytes()[:-7])
    damaged = project.run("snapshot", "show", str(path), json_too=False)
    assert damaged.code == 3
    assert "not a snapshot" in damaged.err
    assert project.run("snapshot", "show", "golden:mesh", json_too=False).code == 3
    assert project.run("snapshot", "restore", "--verify", "--dry-run", json_too=False).code == 2
    failed = project.run("snapshot", "save", "--", "/bin/false", json_too=False)
    assert failed.code == 3
    assert "the command '/bin/false' ended with exit code 1, so there is no snapshot" in failed.err


def test_a_command_that_is_given_runs_in_this_folder(project: Project) -> None:
    """`working_dir` is where the configured one runs."""
    (project.folder / "build").mkdir()
    path = project.folder / "ciwrap.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}run: {{command: 'true', working_dir: build}}\n", encoding="utf-8")
    command = ("--", sys.executable, "-c", "import os; os.mkdir('made')")
    assert project.run("snapshot", "save", *command, json_too=False).code == 0
    assert (project.folder / "made").is_dir()


def test_a_killed_run_leaves_no_half_snapshot(project: Project) -> None:
    with_program(project, SIM + "time.sleep(30)")
    process = project.begin("run")
    time.sleep(2)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    with_program(project)
    assert project.run("run").code == 3
    found = list((project.folder / ".ciwrap/snapshots").glob("*.json.*"))
    assert len(found) == 1
    assert load_snapshot(found[0]).seen == "program"


def test_a_program_with_mpi(project: Project) -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed (pip install mpi4py mpich)")
    mpiexec = Path(sys.executable).parent / "mpiexec"
    if not mpiexec.exists():
        pytest.skip("no mpiexec beside this Python (pip install mpich)")
    with_program(project, MPI, launch=f"{mpiexec} -n 2")
    identity = project.run("run").document["environment"]["snapshot"]
    found = SnapshotStore.of_project(project.folder).load(identity)
    kinds = {one.kind for one in found.objects}
    assert {"mpi", "maths", "runtime"} <= kinds
    (library,) = (one for one in found.objects if one.name.startswith("libmpi.so"))
    assert library.version is not None
    assert "MPICH" in library.version
    assert {"numpy", "scipy", "mpi4py", "mpich"} <= set(found.packages)
    assert os.environ.get("PMI_SIZE") is None
    assert found.variables["PMI_SIZE"] == "2"


def test_a_run_that_wrote_nothing_did_not_make_the_outputs(accepted: Project) -> None:
    """They are those of the run before, whose environment they keep."""
    notes = accepted.folder / ".ciwrap/snapshots/outputs.json"
    with_program(accepted)
    accepted.run("run")
    before = notes.read_text()
    assert '"mesh"' in before
    assert accepted.run("run", "--command", "true").code == 3
    assert notes.read_text() == before


def test_objects_can_be_left_alone(project: Project) -> None:
    with_program(project)
    text = (project.folder / "ciwrap.yaml").read_text()
    (project.folder / "ciwrap.yaml").write_text(f"{text}snapshot: {{objects: false}}\n")
    outcome = project.run("run")
    assert "snapshot" not in outcome.document["environment"]
    assert not (project.folder / ".ciwrap/snapshots").exists()


def test_captures_carry_the_snapshot_of_their_run(project: Project) -> None:
    """Also where the captures are all that is left of the runs."""
    for name, threads in (("a", "1"), ("b", "2")):
        with_program(project, OMP_NUM_THREADS=threads, SHIFT=threads)
        identity = project.run("run").document["environment"]["snapshot"]
        assert project.run("capture", "out", "-o", f"../{name}.tree").code == 0
        shown = project.run("show", f"../{name}.tree").document["capture"]
        assert shown["snapshot"] == identity
    assert f"environment: snapshot {identity}" in project.run("show", "../b.tree").out
    shutil.rmtree(project.folder / ".ciwrap")
    found = project.run("snapshot", "diff", "../a.tree", "../b.tree")
    assert found.code == 1
    assert found.out.startswith("OMP_NUM_THREADS differs: 1  ->  2  (thread settings)")
    assert found.document["differences"][0]["prove"] == "ciwrap repeat --vary OMP_NUM_THREADS=1,2"
    compared = project.run("compare", "../a.tree", "../b.tree")
    assert compared.code in (1, 3)
    said = "their captures tell of different environments: OMP_NUM_THREADS is 1 in A, 2 in B"
    assert said in compared.out
    same = project.run("compare", "../b.tree", "../b.tree")
    assert "different environments" not in same.out
    # Of outputs that no known run made, the capture knows where it was made, and no program.
    project.save("temperature", [1.0, 2.0])
    assert project.run("capture", "out", "-o", "../c.tree").code == 0
    assert project.run("snapshot", "show", "../c.tree").document["snapshot"]["seen"] == "nothing"
    assert "different environments" not in project.run("compare", "../a.tree", "../c.tree").out
    # Nothing new: the snapshot of what was captured stays.
    before = project.run("show", "../b.tree").document["capture"]["snapshot"]
    assert before == identity


def test_kept_repeats_and_their_ensemble_know_their_run(project: Project) -> None:
    """Folders that `repeat --keep` has moved are known by what lies in them."""
    code = SIM.replace('os.environ.get("SHIFT", 0)', "time.time() % 1").replace("0.9", "0.5")
    with_program(project, code)
    repeated = project.run("repeat", "-n", "3", "--keep")
    assert repeated.code == 0, repeated
    runs = {one["folder"]: one["snapshot"] for one in repeated.document["runs"]}
    assert len(runs) == 3
    for folder, identity in runs.items():
        assert project.run("capture", f"{folder}/out", "-o", "../r.tree", "--rebuild").code == 0
        assert project.run("show", "../r.tree").document["capture"]["snapshot"] == identity
    made = project.run("capture", "--ensemble", "mesh", *runs, "--reason", "x")
    assert made.code == 0, made
    golden = json.loads(Path(project.folder / made.document["golden_path"]).read_text())
    assert golden["environment"]["snapshot"] == runs[next(iter(runs))]
    kept = SnapshotStore.of_goldens(project.folder / "golden")
    assert kept.load(golden["environment"]["snapshot"]).seen == "program"
