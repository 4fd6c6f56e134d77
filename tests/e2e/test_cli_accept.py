"""Accepting: reasons, what changed, and a golden that is whole whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
import yaml
from e2e.cli_project import BASE, Project, command, environment

from ciwrap.errors import GoldenMissingError
from ciwrap.golden.store import GoldenStore

if TYPE_CHECKING:
    from pathlib import Path


def manifest_of(project: Project) -> dict:
    return yaml.safe_load((project.folder / "golden" / "mesh.golden.yaml").read_text())


def litter(project: Project) -> list[str]:
    names = {path.name for path in (project.folder / "golden").iterdir()}
    return sorted(names - {"mesh.golden", "mesh.golden.yaml"})


def test_a_first_golden_needs_no_reason(project: Project) -> None:
    outcome = project.accept()
    assert outcome.document["checks"][0]["status"] == "created"
    entry = manifest_of(project)["accepted"][0]
    assert entry["why"] == "first golden"
    assert (entry["old_root"], entry["new_root"]) == (None, manifest_of(project)["binary"]["root"])
    assert project.run("check").code == 0


def test_replacing_needs_a_reason_and_keeps_the_history(project: Project) -> None:
    project.accept()
    first = manifest_of(project)["binary"]["root"]
    moved = BASE.copy()
    moved[3, 7] += 1e-3
    project.save("temperature", moved)
    before = project.snapshot()
    refused = project.run("accept")
    assert refused.code == 2
    assert "--reason" in refused.err
    assert project.snapshot() == before
    outcome = project.accept("--reason", "new heat flux")
    (check,) = outcome.document["checks"]
    assert (check["status"], check["old_root"]) == ("replaced", first)
    changed = {v["name"]: v["change"] for v in check["variables"]}
    assert changed == {"ids": "equal", "temperature": "changed"}
    moved_result = next(v["moved"] for v in check["variables"] if v["name"] == "temperature")
    assert (moved_result["differing_count"], moved_result["first_index"]) == (1, [3, 7])
    assert check["largest_bound_share"] == pytest.approx(1000, rel=1e-3)
    history = manifest_of(project)["accepted"]
    assert [entry["why"] for entry in history] == ["first golden", "new heat flux"]
    assert history[1]["old_root"] == first
    assert history[1]["largest_bound_share"] == pytest.approx(1000, rel=1e-3)
    assert project.run("check").code == 0
    assert litter(project) == []


def test_dry_run_writes_nothing(project: Project) -> None:
    outcome = project.accept("--dry-run")
    assert "would be created" in outcome.out
    assert not (project.folder / "golden").exists()
    project.accept()
    project.save("temperature", BASE + 1)
    before = project.snapshot()
    outcome = project.accept("--dry-run")
    assert outcome.document["dry_run"] is True
    assert "would be replaced" in outcome.out
    assert project.snapshot() == before


def test_what_matches_is_kept_unless_forced(project: Project) -> None:
    project.accept()
    before = project.snapshot()
    project.save("temperature", BASE + 3e-7)
    outcome = project.accept("--reason", "noise")
    assert outcome.document["checks"][0]["status"] == "kept"
    assert "30 % of the bound used" in outcome.out
    assert project.snapshot() == before
    outcome = project.accept("--reason", "noise", "--force")
    assert outcome.document["checks"][0]["status"] == "replaced"
    assert project.accept("--force").document["checks"][0]["status"] == "same"


@pytest.mark.parametrize(
    ("bound", "is_wider"),
    [
        ("atol: 1e-3", True),
        ("atol: 1e-9", False),
        ("atol: 0", False),
        ("ulps: 2", True),
        ("rtol: 1e-9", True),
        ("atol: 1e-6, rtol: 1e-6", True),
    ],
)
def test_a_wider_bound_is_called_so(project: Project, bound: str, is_wider: bool) -> None:
    project.accept()
    project.configure(bound=bound)
    outcome = project.accept("--reason", "another bound")
    found = {v["name"]: v for v in outcome.document["checks"][0]["variables"]}
    assert found["temperature"]["change"] == "redefined"
    assert found["temperature"]["bound_widened"] is is_wider
    assert ("(WIDER)" in outcome.out) is is_wider


def test_another_chunk_size_takes_effect(project: Project) -> None:
    project.accept()
    project.configure(bound="atol: 1e-6, chunk_bytes: 1024")
    assert project.run("check").code == 0
    outcome = project.accept("--reason", "smaller chunks")
    assert outcome.document["checks"][0]["status"] == "replaced"
    shown = project.run("show", "mesh").document
    assert {variable["chunk_bytes"] for variable in shown["variables"]} == {1024}


def test_added_removed_and_redefined_variables(project: Project) -> None:
    project.accept()
    (project.folder / "out" / "ids.npy").unlink()
    project.save("fresh", np.zeros(3))
    project.save("temperature", BASE.astype("f4"))
    outcome = project.accept("--reason", "another model")
    changes = {v["name"]: v["change"] for v in outcome.document["checks"][0]["variables"]}
    assert changes == {"ids": "removed", "fresh": "added", "temperature": "redefined"}
    assert "dtype <f8 -> <f4" in outcome.out
    assert project.run("check").code == 0


def test_a_damaged_golden_can_be_replaced_with_a_reason(project: Project) -> None:
    project.accept()
    project.golden.write_bytes(project.golden.read_bytes()[:-5])
    assert project.run("accept").code == 2
    outcome = project.accept("--reason", "disk fault")
    assert outcome.document["checks"][0]["old_problem"]
    assert [entry["why"] for entry in manifest_of(project)["accepted"]] == [
        "first golden",
        "disk fault",
    ]


def test_all_checks_or_none(project: Project) -> None:
    (project.folder / "ciwrap.yaml").write_text(
        "checks:\n  good: {outputs: out}\n  bad: {outputs: missing}\n"
    )
    outcome = project.run("accept")
    assert outcome.code == 3
    assert not (project.folder / "golden").exists()
    assert project.run("accept", "good").code == 0
    assert project.run("check", "--check", "good").code == 0
    assert project.run("check").code == 3


def test_goldens_are_the_same_bytes_however_made(project: Project) -> None:
    rng = np.random.default_rng(3)
    project.save("noise", rng.normal(size=300_000))
    project.configure(bound="rtol: 1e-9, atol: 1e-12, evidence: residues")
    project.accept()
    first = project.golden.read_bytes()
    for extra in (
        ("--engine", "pread"),
        ("--threads", "1"),
        ("--backend", "serial"),
    ):
        project.golden.unlink()
        project.accept("--reason", "again", "--force", *extra)
        assert project.golden.read_bytes() == first


# --- what must not go wrong
# -------------------------------------------------------------------------


def big(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(700, 400))


def test_killed_at_any_moment_leaves_a_whole_golden(project: Project) -> None:
    """kill -9 at many instants: the old golden or the new one is there, and a next accept works."""
    project.configure(bound="atol: 1e-6, evidence: data")
    roots = set()
    project.save("temperature", big(0))
    started = time.monotonic()
    project.accept()
    seconds = time.monotonic() - started
    store = GoldenStore(project.folder / "golden")
    roots.add(store.read("mesh").root)
    killed = survived = 0
    for round_ in range(24):
        project.save("temperature", big(round_ + 1))
        before = store.read("mesh").root
        process = subprocess.Popen(
            command("accept", "--reason", f"round {round_}"),
            cwd=project.folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(seconds * (0.3 + 0.9 * round_ / 23))
        process.send_signal(signal.SIGKILL)
        code = process.wait()
        killed += code == -signal.SIGKILL
        survived += code == 0
        golden = store.read("mesh")
        assert len(golden.variables) == 2
        if code == 0:
            assert golden.root != before
        elif golden.root != before:
            assert golden.manifest.accepted[-1].why == f"round {round_}"
    assert killed >= 3, (killed, survived)
    project.save("temperature", big(99))
    project.accept("--reason", "the last one")
    assert project.run("check").code == 0
    assert litter(project) == []


# Every step of replacing a pair, by the system call that takes it.
KILL_POINTS = (
    "write_golden",
    "fsync:1",
    "write_text",
    "fsync:2",
    "fsync:3",
    "replace:1",
    "fsync:4",
    "replace:2",
    "fsync:5",
)

KILLER = """
import os, signal, sys
from pathlib import Path
point, _, number = sys.argv.pop(1).partition(":")
counts = {}

def wrap(function, name):
    def wrapped(*arguments, **options):
        counts[name] = counts.get(name, 0) + 1
        if name == point and counts[name] == int(number or 1):
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return wrapped

from ciwrap import _core
from ciwrap.golden import store
_core.write_golden = wrap(_core.write_golden, "write_golden")
store.write_text = wrap(store.write_text, "write_text")
os.fsync = wrap(os.fsync, "fsync")
Path.replace = wrap(Path.replace, "replace")
from ciwrap.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize("point", KILL_POINTS)
@pytest.mark.parametrize("is_first", [True, False])
def test_killed_at_each_step(project: Project, point: str, is_first: bool) -> None:
    store = GoldenStore(project.folder / "golden")
    old = None
    if not is_first:
        project.accept()
        old = store.read("mesh").root
        project.save("temperature", BASE + 1)
    arguments = command("accept", "--reason", "new")
    done = subprocess.run(
        [arguments[0], "-c", KILLER, point, *arguments[3:]],
        cwd=project.folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    is_new = KILL_POINTS.index(point) > KILL_POINTS.index("replace:1")
    if is_new:
        golden = store.read("mesh")
        assert golden.root != old
        assert golden.was_interrupted == (point in ("fsync:4", "replace:2"))
        assert project.run("check").code == 0
    elif is_first:
        with pytest.raises(GoldenMissingError):
            store.read("mesh")
    else:
        assert store.read("mesh").root == old
    project.save("temperature", BASE + 2)
    reason = () if is_first and not is_new else ("--reason", "after the crash")
    project.accept(*reason)
    assert litter(project) == []
    assert project.run("check").code == 0


def test_an_interrupted_accept_is_told_of_and_completed(project: Project) -> None:
    project.accept()
    folder = project.folder / "golden"
    (folder / "mesh.golden").rename(folder / "mesh.golden.next")
    outcome = project.run("check")
    assert outcome.code == 0
    assert "an accept was killed" in outcome.out
    project.save("temperature", BASE + 1)
    project.accept("--reason", "x")
    assert litter(project) == []


def test_disk_full_leaves_the_old_golden_and_no_litter(project: Project) -> None:
    project.configure(bound="atol: 1e-6, evidence: data")
    project.accept()
    before = project.snapshot()
    project.save("temperature", big(1))

    def limit() -> None:
        # Like a full disk for whatever writes more than 64 KiB: an error, not a signal.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))

    done = subprocess.run(
        command("accept", "--reason", "too big"),
        cwd=project.folder,
        env=environment(),
        capture_output=True,
        text=True,
        preexec_fn=limit,
        check=False,
    )
    assert done.returncode == 3, done
    assert len([line for line in done.stderr.splitlines() if line]) == 1
    assert "could not be written" in done.stderr
    assert project.snapshot() == before
    assert litter(project) == []


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Path:
    """A file system of 256 KiB; an ordinary folder where nobody may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("tmpfs cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_really_full_disk(project: Project, tiny_disk: Path) -> None:
    project.configure(bound="atol: 1e-6, evidence: data")
    project.accept("--golden-dir", str(tiny_disk / "golden"))
    before = {path.name: path.read_bytes() for path in (tiny_disk / "golden").iterdir()}
    project.save("temperature", big(1))
    outcome = project.run("accept", "--reason", "x", "--golden-dir", str(tiny_disk / "golden"))
    assert outcome.code == 3, outcome
    assert len(outcome.error_lines) == 1
    assert "could not be written" in outcome.err
    after = {path.name: path.read_bytes() for path in (tiny_disk / "golden").iterdir()}
    assert after == before
    # Not one byte left, not even for the lock's note: checking still works.
    with contextlib.suppress(OSError), (tiny_disk / "filler").open("wb", buffering=0) as stream:
        while True:
            stream.write(b"\0" * 512)
    project.save("temperature", BASE)
    assert project.run("check", "--golden-dir", str(tiny_disk / "golden")).code == 0


def test_a_golden_folder_that_cannot_be_made(project: Project) -> None:
    project.accept()
    project.save("temperature", BASE + 1)
    (project.folder / "elsewhere").write_text("a file where the folder should be")
    outcome = project.run("accept", "--golden-dir", "elsewhere/golden")
    assert outcome.code == 3
    assert "elsewhere" in outcome.err


def test_two_accepts_at_once(project: Project) -> None:
    """The second waits, then fails clearly; nothing is torn."""
    project.accept()
    project.save("temperature", BASE + 1)
    store = GoldenStore(project.folder / "golden")
    with store.locked():
        before = project.snapshot()
        started = time.monotonic()
        outcome = project.run("accept", "--reason", "second")
        assert time.monotonic() - started >= 9
        assert outcome.code == 3
        assert f"process {os.getpid()}" in outcome.err
        assert len(outcome.error_lines) == 1
        # Checking needs no lock.
        assert project.run("check").code == 1
        assert project.snapshot() == before
    assert project.accept("--reason", "third").code == 0
    assert litter(project) == []


def test_many_accepts_at_once_take_turns(project: Project) -> None:
    project.accept()
    project.save("temperature", BASE + 1)
    processes = [
        subprocess.Popen(
            command("accept", "--force", "--reason", f"number {number}"),
            cwd=project.folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    store = GoldenStore(project.folder / "golden")
    # Whoever reads meanwhile finds a whole golden, always.
    while any(process.poll() is None for process in processes):
        assert len(store.read("mesh").variables) == 2
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, errors
    assert litter(project) == []
    assert len(manifest_of(project)["accepted"]) == 2


def test_ctrl_c_during_accept(project: Project) -> None:
    project.accept()
    before = project.snapshot()
    project.save("temperature", np.random.default_rng(1).normal(size=(3000, 3000)))
    process = subprocess.Popen(
        command("accept", "--reason", "x"),
        cwd=project.folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lock = project.folder / "golden" / ".ciwrap.lock"
    deadline = time.monotonic() + 60
    while not lock.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    # Interrupted while an import was running exec(), CPython ends by the signal itself at exit,
    # although the exception was handled; shells show 130 for either.
    assert process.returncode in (130, -signal.SIGINT), error
    assert "interrupted" in error
    assert "Traceback" not in error
    assert project.snapshot() == before
    assert litter(project) == []
