"""The steps of tools/gpu-check: limits of time, logs, and what is packed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def gpu_steps(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import gpu_steps

    return gpu_steps


def test_a_step_that_hangs_ends_at_its_limit(
    gpu_steps: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = gpu_steps.Steps(tmp_path, step_timeout=1, budget=60)
    assert not steps.run("hang", ["sh", "-c", "echo begun; sleep 60"])
    assert steps.run("after it", ["true"])
    assert steps.failed == ["hang"]
    assert "its time limit" in capsys.readouterr().out
    assert (tmp_path / "hang.log").read_text() == "begun\n"


def test_what_there_is_no_time_for_is_left_out_and_said(gpu_steps: Any, tmp_path: Path) -> None:
    steps = gpu_steps.Steps(tmp_path, step_timeout=60, budget=1)
    assert not steps.run("late", ["true"])
    assert steps.failed == []
    assert steps.left_out == ["late: no time is left"]
    with pytest.raises(SystemExit):
        steps.run("later", ["true"], must=True)


def test_the_budget_ends_a_step_that_runs_into_it(gpu_steps: Any, tmp_path: Path) -> None:
    steps = gpu_steps.Steps(tmp_path, step_timeout=60, budget=gpu_steps.Steps._LEAST + 1)
    begun = time.monotonic()
    assert not steps.run("long", ["sleep", "60"])
    assert time.monotonic() - begun < 30
    assert steps.failed == ["long"]


def test_a_command_that_is_not_there_fails(gpu_steps: Any, tmp_path: Path) -> None:
    steps = gpu_steps.Steps(tmp_path, step_timeout=60, budget=60)
    assert not steps.run("none", [tmp_path / "no-such-command"])
    assert steps.failed == ["none"]


def test_what_is_packed_comes_out_again(gpu_steps: Any, tmp_path: Path) -> None:
    built, other = tmp_path / "built", tmp_path / "other"
    (built / "package").mkdir(parents=True)
    (built / "package" / "x.py").write_text("1")
    (built / "large").write_text("not asked for")
    gpu_steps.pack(tmp_path / "a.tar.gz", built, ["package", "not there"])
    gpu_steps.unpack(tmp_path / "a.tar.gz", other)
    assert [one.relative_to(other).as_posix() for one in sorted(other.rglob("*"))] == [
        "package",
        "package/x.py",
    ]
