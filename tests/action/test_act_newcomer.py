"""As somebody new would do it: from an empty folder to a red check with a report; and our own
repository, checked by `uses: ./`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from action.act_runs import ROOT, commit, git
from action.conftest import SIMULATE

if TYPE_CHECKING:
    from pathlib import Path

    from action.act_runs import Act

# Everything of the workflow that is not its trigger: five lines.
WORKFLOW = """\
on: push
jobs:
  numbers:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - uses: YOUR_ORGANISATION/ciwrap@v1
        with:
          run: python3 simulate.py
"""


def test_from_nothing_to_a_red_check(act: Act, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "simulate.py").write_text(SIMULATE)
    (folder / ".gitignore").write_text("out/\n")
    started = time.monotonic()

    def ciwrap(*arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "ciwrap", *arguments], cwd=folder, check=True)

    # 1: the program has run once; 2: init; 3: accept; 4: the workflow; 5: commit.
    subprocess.run([sys.executable, "simulate.py"], cwd=folder, check=True)
    ciwrap("init")
    ciwrap("accept")
    (folder / ".github/workflows").mkdir(parents=True)
    (folder / ".github/workflows/numbers.yml").write_text(WORKFLOW)
    commit(folder)
    assert act.run(folder).job("numbers").result == "success"

    # 6: a change that moves numbers.
    (folder / "simulate.py").write_text(SIMULATE.replace("i / 7", "i / 7 + 1e-3 * (i == 300)"))
    commit(folder)
    shutil.rmtree(act.artifacts)
    act.artifacts.mkdir()
    job = act.run(folder).job("numbers")
    print(f"from nothing to a red check: {time.monotonic() - started:.1f} s, 6 steps")
    assert job.result == "failure"
    assert job.annotations
    report = (act.artifacts / "ciwrap/report.html").read_text(encoding="utf-8")
    assert "temperature" in report
    # One file, which loads nothing.
    assert re.findall(r"""(?:src|href)=["'](?:https?:)?//""", report) == []


def test_our_own_golden_by_our_own_action(act: Act, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    shutil.copytree(act.action, folder)
    ours = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert "      - uses: ./\n" in ours
    (folder / ".github/workflows").mkdir(parents=True)
    (folder / ".github/workflows/own.yml").write_text(
        WORKFLOW.replace("YOUR_ORGANISATION/ciwrap@v1", "./").partition("        with:")[0]
    )
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    job = act.run(folder).job("numbers")
    assert job.result == "success", job.text
    assert "All numbers match" in job.summary
