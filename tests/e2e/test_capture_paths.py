"""Capturing runs whose files have names that a capture cannot hold, or lie behind links."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ciwrap.cli.main import run as run_cli

if TYPE_CHECKING:
    from pathlib import Path


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
    assert "is not UTF-8" in capsys.readouterr().out
    assert run_cli(["compare", *map(str, runs), *layout]) == 0
    np.save(files[1], np.arange(10.0) + 1)
    reports = [f"--{kind}={tmp_path / kind}" for kind in ("json", "report")]
    assert run_cli(["compare", *map(str, runs), *layout, *reports]) == 1
    assert json.loads((tmp_path / "json").read_text())["checks"][0]["verdict"] == "differ"
    assert (tmp_path / "report").read_text(encoding="utf-8").rstrip().endswith("</html>")


def test_a_run_of_links_to_folders_has_data(tmp_path: Path) -> None:
    """As where a program writes to scratch: its capture is no fingerprint that is believed."""
    scratch, runs = tmp_path / "scratch", [tmp_path / name for name in "AB"]
    scratch.mkdir()
    runs[1].joinpath("iter_1").mkdir(parents=True)
    runs[0].mkdir()
    (runs[0] / "iter_1").symlink_to(scratch)
    (scratch / "again").symlink_to(runs[0])  # leads back
    for folder in (scratch, runs[1] / "iter_1"):
        np.save(folder / "x.npy", np.arange(10.0))
    words = ["compare", *map(str, runs)]
    assert run_cli(["capture", str(runs[0]), "--settle=0"]) == 0
    assert run_cli(words) == 0
    np.save(scratch / "x.npy", np.arange(10.0) + 1)
    assert run_cli(words) == 1
    assert run_cli([*words, "--no-captures"]) == 1


def test_what_lies_behind_a_link_in_a_store_is_looked_at(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    runs = [tmp_path / name for name in "AB"]
    for run in runs:
        (run / "iter_1").mkdir(parents=True)
        group = zarr.open_group(run / "iter_1/s.zarr", mode="w")
        for name in "xy":
            group[name] = np.arange(10.0) + 1
    (runs[0] / "iter_1/s.zarr/y").rename(tmp_path / "y")
    (runs[0] / "iter_1/s.zarr/y").symlink_to(tmp_path / "y")
    for run in runs:
        assert run_cli(["capture", str(run), "--settle=0"]) == 0
    words = ["compare", *map(str, runs)]
    assert run_cli(words) == 0
    zarr.open_array(tmp_path / "y", mode="r+")[3] = 77.0
    assert run_cli(words) == 1
