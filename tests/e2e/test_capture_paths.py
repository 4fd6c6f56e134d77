"""Capturing runs whose files have names that a capture cannot hold."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import numpy as np

from ciwrap.cli.main import run as run_cli

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_path_that_is_no_utf8_is_left_alone_and_compared_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [tmp_path / name for name in "AB"]
    files = [run / os.fsdecode(b"gr\xf6sse") / "iter_1" / "x.npy" for run in runs]
    for file in files:
        file.parent.mkdir(parents=True)
        np.save(file, np.arange(10.0))
    layout = ("--layout", "iter_{iteration:d}/{name}")
    assert run_cli(["capture", str(runs[0]), "--settle=0", *layout]) == 3
    assert "is no UTF-8" in capsys.readouterr().out
    assert run_cli(["compare", *map(str, runs), *layout]) == 0
    np.save(files[1], np.arange(10.0) + 1)
    reports = [f"--{kind}={tmp_path / kind}" for kind in ("json", "report")]
    assert run_cli(["compare", *map(str, runs), *layout, *reports]) == 1
    assert json.loads((tmp_path / "json").read_text())["checks"][0]["verdict"] == "differ"
    assert (tmp_path / "report").read_text(encoding="utf-8").rstrip().endswith("</html>")
