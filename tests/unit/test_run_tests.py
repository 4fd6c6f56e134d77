"""tools/run-tests loses no test, whichever way the process that runs it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
FILES = {
    "passes": "def test_one(): pass\ndef test_two(): pass\n",
    "skips": "import pytest\ndef test_one(): pytest.skip('no reason')\ndef test_two(): pass\n",
    "is_skipped": "import pytest\npytest.skip('not here', allow_module_level=True)\n",
    "is_empty": "",
}


def write(folder: Path, files: dict[str, str]) -> None:
    (folder / "tests/unit").mkdir(parents=True)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -ra\n")
    for name, text in files.items():
        (folder / f"tests/unit/test_{name}.py").write_text(text)


def run_tests(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, what was printed, and the log."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, str(TOOLS / "run-tests"), "--workers=2", "log", *arguments],
        cwd=folder,
        env={**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout, (folder / "log").read_text()


def closing(log: str) -> str:
    found = re.fullmatch(r"(.*) in \d+\.\d\ds", log.rstrip().rpartition("\n")[2])
    assert found is not None, log
    return found[1]


def test_all_files_are_run_and_skips_are_told(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    code, told, log = run_tests(tmp_path)
    assert code == 0, told
    assert closing(log) == "3 passed, 2 skipped"
    assert set(re.findall(r"^SKIPPED \[1\] .*: (.*)$", log, re.M)) == {"no reason", "not here"}
    check = subprocess.run(
        [sys.executable, str(TOOLS / "check-skips"), "log"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert check.returncode == 1
    lines = [line.partition(" (")[0] for line in check.stderr.splitlines()]
    assert sorted(lines) == [
        f"1 tests skipped for an unknown reason: {why}" for why in ("no reason", "not here")
    ]


def test_failures_crashes_and_what_cannot_be_imported(tmp_path: Path) -> None:
    ends = {
        "fails": "def test_one(): assert 'a sentence' == 1\n",
        "dies": "import os\ndef test_one(): os._exit(0)\n",
        "is_wrong": "import nothing_like_this\n",
    }
    write(tmp_path, {**FILES, **ends})
    code, told, log = run_tests(tmp_path)
    assert code == 1
    assert closing(log) == "1 failed, 1 error, 3 passed, 2 skipped"
    failed = re.findall(r"^  FAILED .*test_(\w+)\.py: (.*) in \d+ s$", told, re.M)
    assert dict(failed) == {"fails": "1 failed", "dies": "no tests", "is_wrong": "1 error"}
    assert "a sentence" in told
    assert "nothing_like_this" in told


def test_arguments_choose_tests(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    code, told, log = run_tests(tmp_path, "-k", " or ".join(["two"] * 50))
    assert (code, closing(log)) == (0, "2 passed, 1 skipped, 2 deselected"), told
    code, told, log = run_tests(tmp_path, "tests/unit/test_skips.py::test_two")
    assert (code, closing(log)) == (0, "1 passed"), told
    assert run_tests(tmp_path, "-k", "three")[0] == 1
    assert run_tests(tmp_path, "--no-such-option")[0] == 1
