"""What is proposed for two runs of a program leaves nothing out in silence."""

from __future__ import annotations

from pathlib import Path

import advice
import pytest

from ciwrap.studies.same_runs import text_noise

FIRST, SECOND = (Path(__file__).parents[1] / "data/two_runs" / one for one in ("first", "second"))


@pytest.mark.parametrize("name", ["flow.log", "rows.out", "scf.out"])
def test_no_edit_passes_that_is_not_listed(name: str) -> None:
    assert list(advice.proposals(FIRST / name, SECOND / name))
    assert advice.unsafe(FIRST / name, SECOND / name) == []


def test_physics_is_never_proposed() -> None:
    noise = text_noise([FIRST / "scf.out"], SECOND / "scf.out", SECOND)
    places = " ".join(one.what for one in noise.places)
    assert noise.problem is None
    for word in ("wall", "energy", "constant", "dipole"):
        assert word not in places
