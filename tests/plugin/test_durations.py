"""Arrays of durations, which are compared exactly unless a duration is their bound."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import ciwrap
from ciwrap.base.errors import UsageError
from ciwrap.model import Verdict

if TYPE_CHECKING:
    from plugin.conftest import Suite


def compared(golden: Any, new: Any, atol: Any) -> Any:
    return ciwrap.compare_arrays(golden, new, atol=atol)


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
@pytest.mark.parametrize(
    "atol", [np.timedelta64(2, "ms"), datetime.timedelta(milliseconds=2), "2 ms", "2000 us"]
)
def test_a_bound_in_any_unit(unit: str, atol: Any) -> None:
    golden = np.array([1000, -5000, 0], "m8[ms]").astype(f"m8[{unit}]")
    bound = int(np.timedelta64(2, "ms") // np.timedelta64(1, unit))
    assert compared(golden, golden + bound, atol).verdict is Verdict.MATCH
    found = compared(golden, golden - (bound + 1), atol)
    assert (found.verdict, found.differing_count) == (Verdict.DIFFER, 3)
    assert found.max_abs_difference == bound + 1
    assert found.bound_scale in ("2 ms", "2000 us")


def test_what_is_no_time_equals_itself_alone() -> None:
    least = np.array([np.iinfo("i8").min + 1], "m8[s]")
    missing = np.array(["NaT"], "m8[s]")
    assert compared(missing, missing, "9 D").verdict is Verdict.MATCH
    assert compared(missing, least, "9 D").missing_mismatch_count == 1
    assert compared(least, missing, "9 D").verdict is Verdict.DIFFER


def test_other_units_are_other_arrays() -> None:
    golden = np.array([1000], "m8[ms]")
    found = compared(golden, golden.astype("m8[us]"), "2 ms")
    assert found.verdict is Verdict.NOT_COMPARABLE


@pytest.mark.parametrize(
    ("array", "atol", "words"),
    [
        (np.array([1], "m8[ms]"), 2, "holds durations (timedelta64[ms]), for which atol=2 rtol=0"),
        (np.array([1.0]), "2 ms", "a duration, atol: 2 ms, is a bound for arrays of timedelta64"),
        (np.array([1], "M8[ms]"), "2 ms", "is a bound for arrays of timedelta64 alone"),
        (np.array([1], "m8[ms]"), "2 parsecs", "must be a number"),
        (np.array([1], "m8[ms]"), np.timedelta64(-2, "ms"), "must be finite and not negative"),
        (np.array([1], "m8[ms]"), np.timedelta64(2, "Y"), "must be a duration in one of"),
        (np.array([1], "m8[ms]"), np.timedelta64("NaT", "ms"), "must be finite and not negative"),
    ],
)
def test_what_is_no_bound(array: Any, atol: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        compared(array, array, atol)
    assert words in str(caught.value)


def test_a_duration_is_no_relative_bound() -> None:
    golden = np.array([1], "m8[ms]")
    with pytest.raises(UsageError, match="must be a number, not the duration"):
        ciwrap.compare_arrays(golden, golden, rtol=np.timedelta64(2, "ms"))  # type: ignore[arg-type]


def test_durations_within_their_bound(suite: Suite) -> None:
    suite.write(
        """
    import datetime
    from pathlib import Path

    def test_t(ciwrap):
        shift = int(Path("shift").read_text())
        times = np.array([1000 + shift, 5], "m8[ms]")
        ciwrap.check(times, "dt", atol=np.timedelta64(2, "ms"))
        bounds = {"dt": datetime.timedelta(milliseconds=2)}
        ciwrap.check({"x": 1.0, "dt": times}, "both", atol=1e-6, bounds=bounds)
    """
    )
    shift = suite.root / "shift"
    shift.write_text("0")
    suite.run("--ciwrap-update=new")
    shift.write_text("2")
    suite.run().assert_outcomes(passed=1)
    shift.write_text("3")
    suite.run().assert_outcomes(failed=1)


def test_a_number_is_no_bound_of_theirs(suite: Suite) -> None:
    suite.write(
        """
    @pytest.mark.parametrize("said", [{"atol": 2}, {"rtol": 0.1}, {"bounds": {"dt": 2}}])
    def test_t(ciwrap, said):
        ciwrap.check(np.array([1000], "m8[ms]"), "dt", **said)
    """
    )
    result = suite.run()
    result.assert_outcomes(failed=3)
    assert "holds durations (timedelta64[ms]), for which atol=2 rtol=0 is no bound" in str(
        result.stdout
    )
