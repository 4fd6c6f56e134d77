"""What accepting changes, as tables: bounds, drift, status, reasons, and the lines of the log."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from golden_pairs import write
from msgspec import structs
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.base.errors import UsageError
from ciwrap.golden.manifest import VariableRow
from ciwrap.golden.places import Place
from ciwrap.golden.store import GoldenStores
from ciwrap.model import ErrorBound, VariableId, VariableResult, Verdict
from ciwrap.review.accept import likeness
from ciwrap.review.change import (
    FIRST_REASON,
    GoldenChange,
    OldGolden,
    Origin,
    Status,
    VariableChange,
    demand_reason,
    write_change,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


X = VariableId("x")
MATCH = VariableResult("x", Verdict.MATCH, differing_count=0, element_count=1)
DIFFER = VariableResult("x", Verdict.DIFFER, differing_count=1, element_count=1)


def golden(atol: float = 1e-3, value: float = 1.0, size: int = 10, **more: Any) -> Any:
    array = np.full(size, value)
    parameters = _core.TreeParameters("<f8", atol=atol, **more)
    tree = _core.build_tree(parameters, array)
    return _core.GoldenVariable("x", array.shape, tree, data=array.tobytes())


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On a machine whose clock shows another time than UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


# --- of one variable


@pytest.mark.parametrize(
    ("old", "new", "is_wider"),
    [
        (ErrorBound(1e-3), ErrorBound(1e-3), False),
        (ErrorBound(1e-3), ErrorBound(2e-3), True),
        (ErrorBound(2e-3), ErrorBound(1e-3), False),
        (ErrorBound(0, 1e-3), ErrorBound(0, 2e-3), True),
        (ErrorBound(1e-3, 1e-3), ErrorBound(1e-4, 2e-3), True),
        (ErrorBound(1e-3, 1e-3), ErrorBound(2e-3, 1e-4), True),
        (ErrorBound(1e-3, 1e-3), ErrorBound(1e-3, 1e-4), False),
        (ErrorBound(ulps=4), ErrorBound(ulps=5), True),
        (ErrorBound(ulps=5), ErrorBound(ulps=4), False),
        (ErrorBound(ulps=4), ErrorBound(ulps=4), False),
        # Neither of the two lets all pass that the other does.
        (ErrorBound(ulps=4), ErrorBound(1e-3), True),
        (ErrorBound(1e-3), ErrorBound(ulps=4), True),
        (ErrorBound(), ErrorBound(1e-3), True),
        (ErrorBound(), ErrorBound(ulps=1), True),
        (ErrorBound(1e-3), ErrorBound(), False),
        (ErrorBound(ulps=1), ErrorBound(), False),
        (ErrorBound(), ErrorBound(), False),
        (None, ErrorBound(1e-3), False),
        (ErrorBound(1e-3), None, False),
    ],
)
def test_a_bound_that_lets_more_pass_is_wider(
    old: ErrorBound | None, new: ErrorBound | None, is_wider: bool
) -> None:
    rows = [
        None if bound is None else golden(bound.atol, rtol=bound.rtol, ulps=bound.ulps)
        for bound in (old, new)
    ]
    assert VariableChange.between(X, *rows, None).is_bound_wider is is_wider


@pytest.mark.parametrize(
    ("old", "new", "is_wider"),
    [
        ({"equal_nan": False}, {}, True),
        ({}, {"equal_nan": False}, False),
        ({}, {"fill_values": [7.0]}, True),
        ({"fill_values": [7.0]}, {}, True),
        ({"fill_values": [7.0], "atol": 0}, {"atol": 0}, False),
        ({"fill_values": [7.0]}, {"fill_values": [7.0, 8.0]}, True),
        ({"fill_values": [7.0]}, {"fill_values": [7.0]}, False),
    ],
)
def test_what_goes_with_a_bound_may_let_more_pass(old: Any, new: Any, is_wider: bool) -> None:
    change = VariableChange.between(X, golden(**old), golden(**new), None)
    assert change.is_bound_wider is is_wider
    assert (change.bound_change or "").endswith("(wider)") is is_wider


def test_a_change_of_the_bound_in_words() -> None:
    def said(old: Any, new: Any) -> str | None:
        return VariableChange.between(X, old, new, None).bound_change

    assert said(golden(1e-3), golden(1e-2)) == "atol=0.001 rtol=0 -> atol=0.01 rtol=0 (wider)"
    assert said(golden(1e-2), golden(1e-3)) == "atol=0.01 rtol=0 -> atol=0.001 rtol=0"
    assert said(golden(1e-3), golden(1e-3, 2.0)) is None
    assert said(None, golden()) is None
    assert said(golden(), None) is None


def test_what_becomes_of_a_variable() -> None:
    old, new = golden(1e-3), golden(1e-2, 2.0)
    labels = ((("units", "m"),), (("units", "s"),))
    change = VariableChange.between(X, old, new, DIFFER, labels)
    assert change == VariableChange(
        X,
        VariableRow.of(old, labels[0]),
        VariableRow.of(new, labels[1]),
        False,
        DIFFER,
    )
    gone = VariableChange.between(X, old, None, None)
    assert gone == VariableChange(X, VariableRow.of(old), None, False)
    extra = VariableChange.between(X, None, new, None)
    assert extra == VariableChange(X, None, VariableRow.of(new), False)


@pytest.mark.parametrize(
    ("old", "new", "labels", "is_alike"),
    [
        (golden(), golden(), ((), ()), True),
        (golden(), golden(value=2.0), ((), ()), True),
        (golden(), golden(1e-2), ((), ()), False),
        (golden(), golden(equal_nan=False), ((), ()), False),
        (golden(), golden(size=11), ((), ()), False),
        (golden(), golden(), ((("units", "m"),), ()), False),
        (golden(), None, ((), ()), False),
        (None, golden(), ((), ()), False),
    ],
)
def test_described_alike_is_all_but_the_values(
    old: Any, new: Any, labels: Any, is_alike: bool
) -> None:
    assert VariableChange.between(X, old, new, None, labels).is_described_alike is is_alike


@pytest.mark.parametrize(
    ("moved", "share"),
    [
        (None, None),
        (replace(DIFFER, max_bound_share=5.0, max_drift_share=0.1), 5.0),
        (replace(MATCH, max_bound_share=0.0, max_drift_share=0.1), 0.0),
        (replace(MATCH, max_drift_share=0.1), 0.1),
        (replace(DIFFER, max_drift_share=0.1), None),
    ],
)
def test_how_far_values_moved(moved: VariableResult | None, share: float | None) -> None:
    assert VariableChange(X, None, None, moved=moved).used_share == share


# --- of a golden


def change_of(*changes: VariableChange, status: Status = Status.REPLACED, **more: Any) -> Any:
    from pathlib import Path

    known: dict[str, Any] = {
        "check": "c",
        "name": "c",
        "path": Path("golden/c.golden"),
        "status": status,
        "variables": (),
        "changes": changes,
        "root": "00",
        "byte_count": 0,
        "old": OldGolden(None, None, ()),
        **more,
    }
    return GoldenChange(**known)


def test_the_largest_share_is_told_if_all_are_known() -> None:
    def moved(share: float | None) -> VariableChange:
        result = replace(MATCH, max_bound_share=share)
        return VariableChange.between(X, golden(), golden(), result)

    extra = VariableChange.between(X, None, golden(), None)
    gone = VariableChange.between(X, golden(), None, None)
    assert change_of(moved(0.5), moved(2.0), moved(1.0), extra, gone).largest_bound_share == 2.0
    assert change_of(moved(0.5), moved(None)).largest_bound_share is None
    assert change_of(extra, gone).largest_bound_share is None
    assert change_of().largest_bound_share is None


def test_what_differs_in_more_than_numbers_does_not_change_alike() -> None:
    """One answer for several is for those of which the one that was shown tells all."""

    def between(old: Any, new: Any, **more: Any) -> Any:
        return likeness(change_of(VariableChange.between(X, old, new, DIFFER), **more))

    plain = between(golden(), golden(value=2.0))
    assert between(golden(value=3.0), golden(value=4.0)) == plain
    assert between(golden(size=20), golden(value=2.0, size=20)) == plain
    assert between(golden(), golden(value=2.0), stale="of another commit") != plain
    shorter = between(golden(), golden(size=5))
    assert between(golden(), golden(size=5, value=2.0)) == shorter
    assert between(golden(), golden(size=9)) != shorter
    assert between(golden(), golden(atol=1e-3, fill_values=[7.0])) != shorter


def test_who_replaces_a_golden_says_why() -> None:
    for status in Status:
        one = change_of(status=status)
        assert one.needs_writing is (status in (Status.CREATED, Status.REPLACED))
        demand_reason([one], "why")
        demand_reason([one], "")
        if status is not Status.REPLACED:
            demand_reason([one], None)
    some = [change_of(check=name) for name in ("a", "b")]
    with pytest.raises(UsageError, match=r"replacing the golden of a, b needs a reason"):
        demand_reason([some[0], change_of(status=Status.CREATED), some[1]], None)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    return GoldenStores(tmp_path / "golden").at(Place("", ""))


def test_what_lies_there_already(store: Any) -> None:
    missing = OldGolden.of("c", store)
    assert missing == OldGolden(None, None, ())
    assert missing.root is None
    write(store, "c", 1.0)
    there = OldGolden.of("c", store)
    assert there.golden is not None
    assert (there.problem, there.root) == (None, there.golden.root)
    assert [entry.why for entry in there.log] == ["because of 1.0"]
    store.path("c").write_bytes(b"no golden")
    damaged = OldGolden.of("c", store)
    assert (damaged.golden, damaged.root, damaged.log) == (None, None, there.log)
    assert "c.golden" in str(damaged.problem)
    # Half a golden is not a missing one.
    store.path("c").unlink()
    half = OldGolden.of("c", store)
    assert (half.golden, half.log) == (None, there.log)
    assert "c.golden: the golden file is missing" in str(half.problem)
    for one in (damaged, half):
        assert one.status_after((), keeps_matching=True) is Status.REPLACED
    assert missing.status_after((), keeps_matching=True) is Status.CREATED


def test_the_same_golden_has_the_same_root_and_labels(store: Any) -> None:
    write(store, "c", 1.0)
    old = OldGolden.of("c", store)
    assert old.golden is not None
    root = old.golden.root
    none: dict[VariableId, Any] = {X: ()}
    assert old.is_same_as(root, none)
    assert not old.is_same_as("00" * 16, none)
    assert not old.is_same_as(root, {X: (("units", "m"),)})
    assert not OldGolden(None, None, ()).is_same_as(root, none)


@pytest.mark.parametrize(
    ("old", "new", "moved", "force", "status"),
    [
        (golden(), golden(), MATCH, False, Status.KEPT),
        (golden(), golden(), MATCH, True, Status.REPLACED),
        (golden(), golden(), DIFFER, False, Status.REPLACED),
        (golden(), golden(), None, False, Status.REPLACED),
        (golden(), golden(1e-2), MATCH, False, Status.REPLACED),
        (golden(), None, None, False, Status.REPLACED),
        (None, golden(), None, False, Status.REPLACED),
    ],
)
def test_a_golden_within_its_bound_is_kept(
    store: Any, old: Any, new: Any, moved: Any, force: bool, status: Status
) -> None:
    write(store, "c", 1.0)
    there = OldGolden.of("c", store)
    within = VariableChange.between(X, golden(), golden(), MATCH)
    change = VariableChange.between(X, old, new, moved)
    assert there.status_after((change,), keeps_matching=not force) is status
    assert there.status_after((within, change), keeps_matching=not force) is status


def test_variables_on_either_side_are_changes(store: Any) -> None:
    write(store, "c", 1.0)
    old = OldGolden.of("c", store)
    assert old.golden is not None
    (before,) = old.golden.variables
    asked = []

    def moved(identity: VariableId, one: Any, other: Any) -> VariableResult:
        asked.append((identity, one, other))
        return MATCH

    def named(name: str) -> Any:
        array = np.full(10, 1.0)
        return _core.GoldenVariable(name, array.shape, before.tree, data=array.tobytes())

    after, more = named("x"), named("w")
    labels = {VariableId("w"): (("units", "m"),)}
    assert old.changes_to([after, more], labels, moved) == (
        VariableChange.between(VariableId("w"), None, more, None, ((), (("units", "m"),))),
        VariableChange.between(X, before, after, MATCH),
    )
    assert asked == [(X, before, after)]
    assert old.changes_to([], {}, moved) == (VariableChange.between(X, before, None, None),)
    first = OldGolden(None, None, ()).changes_to([more], labels, moved)
    assert [(one.identity.name, one.old) for one in first] == [("w", None)]


def test_the_line_in_the_log(store: Any, elsewhere: None) -> None:
    write(store, "c", 1.0)
    old = OldGolden.of("c", store)
    moved = replace(DIFFER, max_bound_share=5.0)
    labels = (("units", "m"),)
    new = golden(1e-2, 2.0)
    wider = VariableChange.between(X, golden(1e-3), new, moved)
    change = change_of(
        wider,
        path=store.path("c"),
        variables=(new,),
        old=old,
        root=_core.golden_root(_core.encode_golden([new])).hex(),
        labels={X: labels},
    )
    with store.locked():
        write_change(change, store, "why", Origin("c0ffee", {"cpu": "y"}, "ada"))
    manifest = store.read("c").manifest
    assert manifest.check == "c"
    assert manifest.environment == {"cpu": "y"}
    assert manifest.labels == {X: labels}
    first, entry = manifest.accepted
    assert first.why == "because of 1.0"
    assert (entry.who, entry.why, entry.commit) == ("ada", "why", "c0ffee")
    assert (entry.old_root, entry.new_root) == (old.root, change.root)
    assert entry.largest_bound_share == 5.0
    assert entry.bounds == ("x: atol=0.001 rtol=0 -> atol=0.01 rtol=0 (wider)",)
    when = datetime.strptime(entry.when, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    assert abs((datetime.now(timezone.utc) - when).total_seconds()) < 3600
    # What it said of its variables is compared with what is said now ...
    old = OldGolden.of("c", store)
    assert old.golden is not None
    now: dict[VariableId, Any] = {X: (("units", "s"),)}
    (again,) = old.changes_to([new], now, lambda *_: moved)
    assert again == VariableChange.between(X, new, new, moved, (labels, now[X]))
    # ... unless it is of a release that said nothing.
    manifest = structs.replace(manifest, format=1)
    earlier = replace(old, golden=replace(old.golden, manifest=manifest))
    (again,) = earlier.changes_to([new], now, lambda *_: moved)
    assert again == VariableChange.between(X, new, new, moved, (now[X], now[X]))
    with store.locked():
        write_change(
            change_of(path=store.path("d"), name="d", variables=(new,), root=change.root),
            store,
            None,
            Origin(None, {}, "ada"),
        )
    (entry,) = store.read("d").manifest.accepted
    assert (entry.why, entry.old_root, entry.bounds) == (FIRST_REASON, None, ())
    assert entry.largest_bound_share is None
