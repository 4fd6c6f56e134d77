"""Two runs whose rows are aligned by ids that are not the same on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.history_runs import ciwrap

if TYPE_CHECKING:
    from pathlib import Path


def write(run: Path, ids: list[int], values: list[float]) -> None:
    folder = run / "iter_0001"
    folder.mkdir(parents=True)
    np.save(folder / "id.npy", np.array(ids))
    np.save(folder / "x.npy", np.array(values))


@pytest.mark.parametrize("ignored", [(), ("--ignore=id",)])
def test_rows_of_other_ids_are_not_held_against_each_other(
    tmp_path: Path, ignored: tuple[str, ...]
) -> None:
    """Though their numbers are the same, one by one."""
    write(tmp_path / "A", [3, 1, 2], [0.3, 0.1, 0.2])
    write(tmp_path / "B", [2, 4, 1], [0.2, 0.3, 0.1])
    code, document = ciwrap(
        tmp_path, "compare", tmp_path / "A", tmp_path / "B", "--align-by", "id", *ignored
    )
    assert code == 3
    found = {one["name"]: one for one in document["checks"][0]["variables"]}
    assert found["x"]["verdict"] == "not_comparable"
    assert "cannot be paired by 'id'" in found["x"]["reason"]
    assert "1 only in A (3), 1 only in B (4)" in found["x"]["reason"]


def test_rows_of_the_same_ids_are(tmp_path: Path) -> None:
    write(tmp_path / "A", [3, 1, 2], [0.3, 0.1, 0.2])
    write(tmp_path / "B", [2, 3, 1], [0.2, 0.3, 0.1])
    arguments = ("compare", tmp_path / "A", tmp_path / "B", "--align-by", "id")
    assert ciwrap(tmp_path, *arguments)[0] == 0
    assert ciwrap(tmp_path, *arguments[:3])[0] == 1
