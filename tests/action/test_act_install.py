"""The action's installation as GitHub would do it: from its own source, with the package index."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from action.act_runs import Act, commit, missing_tool
from action.test_act_check import workflow

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.long
def test_build_cache_and_use(tmp_path: Path, project: Callable[..., Path]) -> None:
    """Needs a network (Python packages; Kokkos unless CIWRAP_CACHE_DIR has it) and a compiler."""
    if missing_tool():
        pytest.skip(missing_tool())
    act = Act(tmp_path / "machine")
    folder = project(workflow())
    cache = os.environ.get("CIWRAP_CACHE_DIR", os.path.expanduser("~/.cache/ciwrap"))  # noqa: PTH111
    given = {"CIWRAP_CACHE_DIR": cache}
    seconds = []
    # From source; a new machine with the wheel in the cache; a machine that has it installed.
    for again in ("source", "wheel", "installed"):
        if again == "wheel":
            act.forget_environment()
        started = time.monotonic()
        run = act.run(folder, env=given, online=True)
        seconds.append(time.monotonic() - started)
        job = run.job("check")
        assert job.result == "success", job.text[-3000:]
        commit(folder)
    print(
        "the action, installed from source, from the cache, not at all:", *map(round, seconds), "s"
    )
    assert len(list(act.caches.glob("*/ciwrap-*.whl"))) == 1
    assert seconds[0] > seconds[1] > seconds[2]
