"""Without what Linux alone has, as on macOS: the same results, or an error that says what is
missing.

The whole suites run so, too: `PYTHONPATH=tests/without_linux pytest tests/unit`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call_apart
from recorded_runs import need_library, recording

from ciwrap.base.errors import ExitCode

WITHOUT = Path(__file__).parents[1] / "without_linux"
CONFIG = """
version: 1
run: {{command: "{python} program.py", timeout_seconds: 60}}
checks:
  data:
    outputs: {output}
    atol: 1e-9
"""


def environment() -> dict[str, str]:
    paths = [str(WITHOUT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def ciwrap(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return call_apart(*words, folder=folder, environment=environment())


def told(done: subprocess.CompletedProcess[str]) -> str:
    """Standard output and errors, on one line as they were before they were wrapped."""
    return " ".join((done.stdout + done.stderr).split())


def test_they_are_taken_away() -> None:
    """Else all that follows would test nothing."""
    program = (
        "import os; from ciwrap.formats.apart import can_copy;"
        "from ciwrap.snapshot.take import can_look;"
        "print(hasattr(os, 'posix_fadvise'), can_copy(), can_look(), open('/proc/self/stat'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("No such file or directory: '/proc/self/stat'")
    alone = program.replace(", open('/proc/self/stat')", "")
    words = subprocess.run(
        [sys.executable, "-c", alone],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert words.stdout.split() == ["False", "False", "False"]


@pytest.mark.parametrize("name", ["out.npy", "out.mat", "out.h5"])
def test_runs_are_checked(name: str, tmp_path: Path) -> None:
    """Formats that are read here, and in a process of their own."""
    pytest.importorskip({"out.mat": "scipy", "out.h5": "h5py"}.get(name, "numpy"))
    writes = {
        "out.npy": "np.save('out.npy', x)",
        "out.mat": "scipy.io.savemat('out.mat', {'x': x})",
        "out.h5": "h5py.File('out.h5', 'w').create_dataset('x', data=x)",
    }[name]
    imports = {"out.mat": "import scipy.io", "out.h5": "import h5py"}.get(name, "")
    program = tmp_path / "program.py"
    text = f"import numpy as np\n{imports}\nx = np.arange(3000.) / 7\n"
    program.write_text(f"{text}{writes}\n")
    (tmp_path / "ciwrap.yaml").write_text(CONFIG.format(python=sys.executable, output=name))
    assert ciwrap(tmp_path, "run").returncode == ExitCode.NOT_COMPARABLE  # no golden yet
    accepted = ciwrap(tmp_path, "accept", "--reason", "new")
    assert accepted.returncode == ExitCode.MATCH, told(accepted)
    assert ciwrap(tmp_path, "run").returncode == ExitCode.MATCH
    program.write_text(f"{text}x[1234] += 1e-6\n{writes}\n")
    differs = ciwrap(tmp_path, "run")
    assert differs.returncode == ExitCode.DIFFER, told(differs)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:200])
    damaged = ciwrap(tmp_path, "check")
    assert damaged.returncode == ExitCode.NOT_COMPARABLE, told(damaged)
    assert name in told(damaged)


CRASHING = """
import os, signal, sys
from functools import partial
from pathlib import Path
from ciwrap.base.errors import CorruptFileError
from ciwrap.formats.apart import SourceApart
import crashes
try:
    SourceApart(Path("a file"), partial(crashes.now, {number}), 0)
except CorruptFileError as error:
    print(error)
"""


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_a_process_started_anew_that_crashes_is_a_damaged_file(number: int, tmp_path: Path) -> None:
    (tmp_path / "crashes.py").write_text(
        "import os\n"
        "def now(number):\n"
        "    print('noise', flush=True)\n"
        "    os.kill(os.getpid(), number)\n"
    )
    (tmp_path / "main.py").write_text(CRASHING.format(number=int(number)))
    done = subprocess.run(
        [sys.executable, "main.py"],
        cwd=tmp_path,
        # By its name, since a script's own folder may not be on the path (PYTHONSAFEPATH).
        env={**environment(), "PYTHONPATH": f"{tmp_path}:{environment()['PYTHONPATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    name = signal.Signals(number).name
    assert done.stdout.strip() == (
        f"a file: is damaged: the library that reads it crashes ({name}); write it again"
    )


def test_snapshots_say_that_no_objects_are_known(tmp_path: Path) -> None:
    saved = ciwrap(tmp_path, "snapshot", "save", "--", sys.executable, "-c", "pass")
    assert saved.returncode == 0, told(saved)
    assert "no objects are known: this system does not say what processes have loaded" in told(
        saved
    )
    shown = json.loads(ciwrap(tmp_path, "snapshot", "show", "--json", "-").stdout)
    assert (shown["snapshot"]["seen"], shown["snapshot"].get("objects", [])) == ("nothing", [])
    verified = ciwrap(tmp_path, "snapshot", "restore", "last", "--verify")
    assert verified.returncode == ExitCode.NOT_COMPARABLE, told(verified)
    assert "this system does not say what processes have loaded" in told(verified)


def test_cores_that_cannot_be_chosen_are_said_to_be_so(tmp_path: Path) -> None:
    done = ciwrap(tmp_path, "time", "--reserve-core", "--pairs", "2", "true", "true")
    assert done.returncode == ExitCode.USAGE, told(done)
    assert "this system does not let a program choose its cores" in told(done)


def test_recorded_runs_are_compared(tmp_path: Path) -> None:
    need_library()
    program = (
        "import sys, numpy as np, ciwrap\n"
        "with ciwrap.Recorder('walk') as r:\n"
        "    for n in range(3):\n"
        "        r.record(n, x=np.arange(2000.) * n + (n == 2) * float(sys.argv[1]))\n"
    )
    for name, by in (("a", "0"), ("b", "0"), ("c", "1")):
        subprocess.run(
            [sys.executable, "-c", program, by], env=recording(tmp_path / name), check=True
        )
    assert ciwrap(tmp_path, "compare", "a", "b").returncode == ExitCode.MATCH
    differs = ciwrap(tmp_path, "compare", "a", "c")
    assert differs.returncode == ExitCode.DIFFER, told(differs)
