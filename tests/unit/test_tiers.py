"""What the quick tier of the tests leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiers import slow_ones

if TYPE_CHECKING:
    import pytest

SOURCE = """
import pytest

SLOW = pytest.param(0, marks=pytest.mark.slow)

def test_quick(): pass
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.slow(but=2)
@pytest.mark.parametrize("case", [SLOW, 1, 2, 3, 4])
def test_cases(case): pass
@pytest.mark.parametrize("case", [SLOW, 1])
def test_other_cases(case): pass
"""


def test_slow_ones_are_left_out_but_for_the_first_cases(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = -p no:syrupy -p no:zarr\nmarkers =\n    slow: slow")
    items = pytester.getitems(SOURCE)
    left_out = slow_ones(items)
    assert [item.name for item in items if item not in left_out] == [
        "test_quick", "test_cases[1]", "test_cases[2]", "test_other_cases[1]",
    ]  # fmt: skip
