"""The example with SciPy does what its page says: its goldens hold under one and two threads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "scipy"


def test_goldens_hold_under_both_thread_counts() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "noise.py"), "1", "2"],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": "-p no:cacheprovider"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = re.findall(r"^\| (test_[^|]*) \|", done.stdout, re.MULTILINE)
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    assert names == re.findall(r"^\| (test_[^|]*) \|", page, re.MULTILINE)
    assert len(names) == 22
