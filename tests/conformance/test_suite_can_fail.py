"""The property suite against a stand-in for the core: passes if whole, fails if broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from oracle import stand_in

TESTS = Path(__file__).resolve().parent.parent
SUITE = ("test_diff_trees.py", "test_drift.py", "test_trees.py", "test_codes.py")


def run_suite(broken: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "oracle.stand_in",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:ciwrap",  # the package's own plugin, which needs all of the package
        ]
        + [f"property/{name}" for name in SUITE],
        cwd=TESTS,
        env={
            **os.environ,
            "CIWRAP_STAND_IN": broken,
            "CIWRAP_LONG": "",
            "CIWRAP_FULL": "1",
            "PYTHONPATH": str(TESTS),
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
def test_a_whole_stand_in_passes() -> None:
    result = run_suite("none")
    assert result.returncode == 0, result.stdout[-3000:]
    assert " passed" in result.stdout


@pytest.mark.long
@pytest.mark.parametrize("broken", stand_in.BROKEN)
def test_a_broken_stand_in_is_caught(broken: str) -> None:
    result = run_suite(broken)
    assert result.returncode == 1, result.stdout[-3000:]
    assert "1 failed" in result.stdout
