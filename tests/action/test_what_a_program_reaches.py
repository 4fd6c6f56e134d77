"""docs/explanation/security.md on the program under test, tried by programs that try.

What the page says is out of reach is tested to be so, and what it says is within reach, too: a
sentence that is too good would fail here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from action.act_runs import ROOT

CODE = """\
import sys
from ciwrap.action.github import Runner, run_to_the_end
import os
from pathlib import Path
env = Runner(os.environ).program_environment
sys.exit(run_to_the_end(sys.argv[1:], cwd=Path.cwd(), env=env))
"""
FORGE = """\
import os
print("own:", sorted(name for name in os.environ if name.startswith(("GITHUB_OUT", "CIWRAP_"))))
pid, found = os.getppid(), "nothing"
while pid > 1:
    try:
        text = open(f"/proc/{pid}/environ", "rb").read()
    except OSError:
        text = b""
    for entry in text.split(b"\\0"):
        if entry.startswith(b"GITHUB_OUTPUT="):
            found = "GITHUB_OUTPUT"
            with open(entry.partition(b"=")[2], "a") as stream:
                stream.write("status=match\\n")
    status = open(f"/proc/{pid}/status").read()
    pid = int(status.partition("PPid:")[2].split()[0])
print("of a parent:", found)
"""
DAEMON = """\
import os, sys, time
if os.fork():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
with open(sys.argv[1] + ".new", "w") as stream:
    stream.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(120)
"""


def run_as_step(folder: Path, *command: str) -> str:
    """A program as the step that compares runs it, below a shell that has the step's channels."""
    (folder / "output").write_text("")
    done = subprocess.run(
        ["bash", "-c", '"$@"; exit $?', "step", sys.executable, "-c", CODE, *command],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "GITHUB_OUTPUT": str(folder / "output"),
            "CIWRAP_INPUT_RUN": "x",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_a_program_is_given_no_channel_and_can_take_one(tmp_path: Path) -> None:
    """Its own environment is clean; that of its parents is not, and nothing can hide it."""
    said = run_as_step(tmp_path, sys.executable, "-c", FORGE)
    assert "own: []" in said
    page = " ".join((ROOT / "docs/explanation/security.md").read_text(encoding="utf-8").split())
    # Where the system forbids to look (a hardened kernel), there is nothing to say.
    if "of a parent: GITHUB_OUTPUT" in said:
        assert "status=match" in (tmp_path / "output").read_text()
        assert "A program that means harm can forge the outputs" in page


def test_what_a_program_leaves_behind_is_ended(tmp_path: Path) -> None:
    run_as_step(tmp_path, sys.executable, "-c", DAEMON, str(tmp_path / "pid"))
    pid = int((tmp_path / "pid").read_text())
    state = Path(f"/proc/{pid}/stat")
    alive = state.exists() and state.read_text().rpartition(")")[2].split()[0] not in "ZX"
    assert not alive


def test_the_step_that_runs_a_program_has_no_token() -> None:
    """A program reads the environment of every process of its user: no token may be in one."""
    import yaml

    steps = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    (compare,) = [step for step in steps if step["name"] == "Compare"]
    assert "token" not in str(compare["env"]).lower()
    (write,) = [step for step in steps if step["name"] == "Write"]
    # The one mode that has both steps makes goldens of artifacts then, and runs no program.
    assert "inputs.source != ''" in write["if"]


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_the_programs(tmp_path: Path, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, sys.executable, "-c", f"raise SystemExit({code})"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert done.returncode == code
