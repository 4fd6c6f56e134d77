"""What a capture does not hold of its run is told wherever the capture stands for the run."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from e2e.history_runs import ciwrap

from ciwrap.runs import capture as capture_module

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def written(run: Path) -> Path:
    for iteration in (1, 2):
        folder = run / f"iter_{iteration}"
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", np.arange(10.0))
    return run


def messages(document: Any) -> str:
    return "\n".join(one["text"] for one in document["checks"][0]["messages"])


def test_a_file_that_no_reader_knows(tmp_path: Path) -> None:
    """A capture holds its digest: equal bytes match, other bytes are no match, and no difference of
    numbers either.
    """
    for name, byte in (("a", b"1"), ("b", b"2"), ("c", b"1")):
        run = written(tmp_path / name)
        (run / "odd.xyzzy").write_bytes(b"\0" + byte)
        (run / "run.log").write_text("E = 1.5\n")
        tree = tmp_path / f"{name}1.tree"
        assert ciwrap(tmp_path, "capture", run, "--settle=0", "-o", tree)[0] == 0
    first, second = tmp_path / "a1.tree", tmp_path / "b1.tree"
    for one, other in (
        (first, second),
        (first, tmp_path / "b"),
        (tmp_path / "a", second),
        (tmp_path / "a", tmp_path / "b"),
    ):
        code, document = ciwrap(tmp_path, "compare", one, other)
        assert (code, document["verdict"]) == (3, "not_comparable")
        (odd,) = (one for one in document["checks"][0]["variables"] if "odd" in one["name"])
        assert "differs in bytes, and no reader knows what they mean" in odd["reason"]
        assert "--format '*.xyzzy=READER'" in odd["reason"]
    assert ciwrap(tmp_path, "compare", first, tmp_path / "c1.tree")[0] == 0
    assert ciwrap(tmp_path, "compare", first, tmp_path / "c", "--ignore", "run.log")[0] == 0
    # Of two texts captures tell that they are equal, and no more.
    (tmp_path / "c" / "run.log").write_text("E = 1.50\n")
    ciwrap(tmp_path, "capture", tmp_path / "c", "--settle=0", "-o", tmp_path / "c1.tree")
    code, document = ciwrap(tmp_path, "compare", first, tmp_path / "c1.tree")
    assert (code, document["coverage"]["compared_variables"]) == (3, 3)
    assert ciwrap(tmp_path, "compare", tmp_path / "a", tmp_path / "c")[0] == 0


def test_what_was_captured_in_the_end_is_not_left_out(tmp_path: Path) -> None:
    """A checkpoint that was still written when the run was captured first."""
    run, target = written(tmp_path / "a"), tmp_path / "a1.tree"
    (run / "iter_2" / "x.npy").write_bytes(b"not yet")
    assert ciwrap(tmp_path, "capture", run, "--settle=0", "-o", target)[0] == 3
    assert ciwrap(tmp_path, "compare", target, target, "--common")[0] == 3
    np.save(run / "iter_2" / "x.npy", np.arange(10.0))
    assert ciwrap(tmp_path, "capture", run, "--settle=0", "-o", target)[0] == 0
    assert ciwrap(tmp_path, "compare", target, target)[0] == 0


def test_a_capture_that_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there matches; that there was more to capture is told."""
    run, target = written(tmp_path / "a"), tmp_path / "a1.tree"
    old = time.time() - 100
    for path in run.glob("iter_*/x.npy"):
        os.utime(path, (old, old))
    make, seen = capture_module.TreeMaker.make, []

    def interrupted(self: Any, *arguments: Any) -> Any:
        seen.append(arguments)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return make(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(capture_module, "_COMMIT_SECONDS", -1.0)
        patch.setattr(capture_module.TreeMaker, "make", interrupted)
        assert ciwrap(tmp_path, "capture", run, "-o", target)[0] == 130
    code, document = ciwrap(tmp_path, "compare", target, target)
    assert (code, document["coverage"]["compared_variables"]) == (3, 1)
    assert "does not hold all of its run: the capture did not come to its end" in messages(document)
    assert ciwrap(tmp_path, "capture", run, "-o", target)[0] == 0
    assert ciwrap(tmp_path, "compare", target, target)[0] == 0


def test_all_of_a_checkpoint_with_a_file_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No capture holds its other files either, and what holds none of them has to say so."""
    for name in ("a", "b"):
        run = written(tmp_path / name)
        (run / "iter_2" / "bad.npy").write_bytes(b"no array")
        code, document = ciwrap(
            tmp_path, "capture", run, "--settle=0", "-o", tmp_path / f"{name}1.tree"
        )
        assert code == 3
        (told,) = document["left_alone"]
        assert "so nothing of its checkpoint is captured" in told["text"]
    assert "so nothing of its checkpoint is captured" in capsys.readouterr().out
    code, document = ciwrap(tmp_path, "compare", tmp_path / "a1.tree", tmp_path / "b1.tree")
    assert code == 3
    told = messages(document)
    assert told.count("so nothing of its checkpoint is captured") == 2
    # What is there alone has no such neighbours.
    np.save(tmp_path / "a" / "iter_2" / "bad.npy", np.arange(3.0))
    (tmp_path / "a" / "iter_1" / "x.npy").write_bytes(b"no array")
    code, document = ciwrap(
        tmp_path, "capture", tmp_path / "a", "--settle=0", "-o", tmp_path / "a1.tree"
    )
    (told,) = document["left_alone"]
    assert "nothing of its checkpoint" not in told["text"]
