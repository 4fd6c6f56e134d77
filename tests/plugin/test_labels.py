"""Units and names of dimensions: kept in the golden, compared with it, accepted with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plugin.conftest import summary

if TYPE_CHECKING:
    from plugin.conftest import Suite

HEAD = """
    class Quantity:  # as pint has it
        __module__ = "pint"
        def __init__(self, magnitude, units): self.magnitude, self.units = magnitude, units
    def quantity(values, unit): return Quantity(np.asarray(values, float), unit)

    class DataArray:
        __module__ = "xarray"
        def __init__(self, data, *dims, attrs=None, **coords):
            self.data, self.dims, self.attrs, self._coords = data, dims, attrs or {}, coords
        coords = property(lambda self: self._coords)
"""
CASES = {
    "a unit": (
        "quantity([1, 2], 'km')",
        "quantity([1, 2], 'm')",
        "label 'units': 'm', but the golden has 'km'",
    ),
    "no unit": (
        "quantity([1, 2], 'km')",
        "np.array([1.0, 2.0])",
        "label 'units': none, but the golden has",
    ),
    "a new unit": (
        "np.array([1.0, 2.0])",
        "quantity([1, 2], 'km')",
        "label 'units': 'km', but the golden has none",
    ),
    "names": (
        "DataArray(np.eye(2), 'x', 'y')",
        "DataArray(np.eye(2), 'y', 'x')",
        "dimension names 'y x', but the golden has 'x y'",
    ),
    "a unit in a mapping": (
        "{'a': quantity([1, 2], 'km'), 'b': 1}",
        "{'a': quantity([1, 2], 'm'), 'b': 1}",
        "a: label 'units': 'm', but the golden has 'km'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_label_that_changes_is_not_a_match(suite: Suite, case: str) -> None:
    first, second, says = CASES[case]
    text = HEAD + "    def test_it(ciwrap): ciwrap.check(VALUE, atol=1.0)\n"
    suite.write(text.replace("VALUE", first))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.run().assert_outcomes(passed=1)
    suite.write(text.replace("VALUE", second))
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert summary(result) == "ciwrap: 1 not comparable"
    assert says in result.stdout.str()
    # Reviewed and accepted like any other change.
    done = suite.cli("accept", "--pending", "--reason", "another unit")
    assert done.returncode == 0, done.stderr
    suite.run().assert_outcomes(passed=1)
    suite.write(text.replace("VALUE", first))
    suite.run().assert_outcomes(failed=1)


def test_labels_and_coordinates_are_kept(suite: Suite) -> None:
    suite.write(
        HEAD
        + """
    def test_it(ciwrap):
        time = DataArray(np.arange(2.0), "t", attrs={"units": "s"})
        ciwrap.check(DataArray(np.eye(2), "t", "x", attrs={"units": "K", "title": "a"}, t=time))
    """
    )
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    rows = {row.name: row.labels for row in suite.golden("test_it").manifest.variables}
    assert rows == {
        "array": {"dims": "t x", "units": "K"},
        "coords/t": {"dims": "t", "units": "s"},
    }
    document = suite.document()
    assert document["verdict"] == "match"
    # The title is no label: that it was not compared is said.
    assert document["checks"][0]["attributes"] == "none"


def test_runs_of_one_test_have_labels_too(suite: Suite) -> None:
    suite.write(
        HEAD
        + """
    RUNS = []
    @pytest.mark.ciwrap(repeat=2)
    def test_it(ciwrap):
        RUNS.append(1)
        ciwrap.check(quantity([1.0], "km" if len(RUNS) == 1 else "m"))
    """
    )
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "run 2 of 2 does not match the first run" in result.stdout.str()


def test_a_unit_may_be_meant_to_differ(suite: Suite) -> None:
    suite.write(
        HEAD
        + """
    def test_it(ciwrap):
        ciwrap.check(quantity([1.0], "km"))
        with ciwrap.expect_mismatch():
            ciwrap.check(DataArray(quantity([1.0], "m"), "x", attrs={"title": "a"}))
    """
    )
    result = suite.run("--ciwrap-update=new")
    result.assert_outcomes(passed=1)
    assert summary(result) == "ciwrap: 1 differ as expected, 1 written"
