"""The change that accepting a check's outputs makes: they are captured, nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.compare.circle import Circle
from ciwrap.compare.combined import refuse_combined
from ciwrap.compare.explaining import explainer
from ciwrap.compare.fit import labels_with_mask, refuse_empty, refuse_unseen_mask
from ciwrap.compare.judge import check_golden
from ciwrap.compare.misspelt import misspelt_words
from ciwrap.compare.outputs import Outputs, recorded_run_of
from ciwrap.compare.work import Work
from ciwrap.errors import (
    CiwrapError,
    NotComparableError,
    ParameterMismatchError,
    PeriodError,
    UsageError,
)
from ciwrap.golden.evidence import capture
from ciwrap.model import EvidencePolicy
from ciwrap.progress import NO_PROGRESS
from ciwrap.review.golden_change import GoldenChange, OldGolden
from ciwrap.structs import replace
from ciwrap.trees.bounds import bound_of
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ciwrap.arrays.values import Labels, Values
    from ciwrap.catalog.catalog import Catalog
    from ciwrap.config import Check
    from ciwrap.golden.store import GoldenStore
    from ciwrap.model import VariableId, VariableResult, VariableSettings
    from ciwrap.progress import Progress
    from ciwrap.review.golden_change import Moved


def capture_change(
    check: Check,
    store: GoldenStore,
    *,
    force: bool = False,
    with_details: bool = True,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> GoldenChange:
    """Captures a check's outputs and finds out what accepting them changes. Writes nothing.

    force: replace a golden even if everything matches it. with_details: whether the change will be
    shown, with what explains how values moved. Raises the errors of reading outputs
    (one is enough: a golden of half the outputs would be none), UsageError, UnsupportedFormatError
    if the golden there is of a newer version.
    """
    if check.ensemble:
        raise UsageError(
            f"the golden of check {check.name!r} is an ensemble, which is captured from many runs",
            remedy=f"ciwrap capture --ensemble {check.name} RUN...",
        )
    recorded = recorded_run_of(check)
    if recorded is not None:
        return _change_of_recorded(check, store, recorded, force=force, resources=resources)
    with Outputs(check) as catalog:
        return change_of_catalog(
            check,
            store,
            catalog,
            force=force,
            with_details=with_details,
            resources=resources,
            progress=progress,
        )


def _change_of_recorded(
    check: Check, store: GoldenStore, run: Path, *, force: bool, resources: Resources
) -> GoldenChange:
    from ciwrap.review.recorded_change import golden_of_recorded, moved_since

    old = OldGolden.of(check.name, store)
    variables = golden_of_recorded(check, run, old)
    if not variables:
        raise _nothing_to_accept(check)
    moved = moved_since(check, run, old, resources)
    return _change(check, store, old, variables, {}, moved, force=force)


def change_of_catalog(
    check: Check,
    store: GoldenStore,
    catalog: Catalog,
    *,
    force: bool = False,
    with_details: bool = True,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> GoldenChange:
    """As `capture_change`, for outputs that have been listed."""
    old = OldGolden.of(check.name, store)
    if catalog.errors:
        raise catalog.errors[0]
    wanted = [
        identity
        for identity in catalog.entries
        if not check.is_ignored(identity) and check.expectation_of(identity) is None
    ]
    if not wanted and check.expected:
        raise NotComparableError(
            f"check {check.name!r} needs no golden: all of its values have 'expect' or 'range'",
            remedy="`ciwrap check` compares them as they are",
        )
    if not wanted:
        raise _nothing_to_accept(check)
    progress.begin(
        f"capturing {check.name}",
        sum(catalog.entries[identity].info.byte_count for identity in wanted),
    )
    try:
        variables = [_capture(check, catalog, identity, resources, progress) for identity in wanted]
    finally:
        progress.end()
    labels = {
        identity: labels_with_mask(
            catalog.entries[identity].info.labels, check.settings_for(identity)
        )
        for identity in wanted
    }

    def moved(
        identity: VariableId, before: _core.GoldenVariable, _: _core.GoldenVariable
    ) -> VariableResult:
        work = Work(resources, explain=explainer if with_details else None)
        return _moved(before, identity, catalog, check, work)

    change = _change(check, store, old, variables, labels, moved, force=force)
    return replace(change, misspelt=tuple(misspelt_words(check, catalog.identities, catalog)))


def _nothing_to_accept(check: Check) -> NotComparableError:
    return NotComparableError(
        f"check {check.name!r} has no variables to accept",
        remedy="fix 'outputs' or 'ignore'",
    )


def _change(
    check: Check,
    store: GoldenStore,
    old: OldGolden,
    variables: Sequence[_core.GoldenVariable],
    labels: Mapping[VariableId, Labels],
    moved: Moved,
    *,
    force: bool,
) -> GoldenChange:
    path = store.path_for(check.name, variables)
    try:
        encoded = _core.encode_golden(variables)
        root = _core.golden_root(encoded).hex()
    except CiwrapError as error:
        error.blame(file=path)
        raise
    change = GoldenChange(
        check=check.name,
        name=check.name,
        path=path,
        variables=tuple(variables),
        root=root,
        byte_count=len(encoded),
        old=old,
        labels=labels,
        ignored=check.ignored_words,
    )
    return change.compared(moved, keeps_matching=not force)


def _capture(
    check: Check,
    catalog: Catalog,
    identity: VariableId,
    resources: Resources,
    progress: Progress,
) -> _core.GoldenVariable:
    info = catalog.entries[identity].info
    settings = check.settings_for(identity, info.dtype)
    refuse_unseen_mask(
        identity,
        settings,
        lambda one: check.settings_for(one).mask,
        lambda one: not check.is_ignored(one),
    )
    values = catalog.values(identity, settings.mask)
    _refuse_incomparable(values, settings, identity)
    found = capture(values, settings, identity, resources=resources, progress=progress).variable
    if settings.combine != "sum" and found.data is None:
        raise ParameterMismatchError(
            f"only a golden that keeps the data can be compared with 'combine: {settings.combine}'",
            variable=identity.text,
            remedy="set 'evidence: data' for it",
        )
    if settings.period and found.data is None:
        fits = f", and they do not fit 'data_budget_bytes' ({settings.data_budget_bytes})"
        raise PeriodError(
            "only a golden that keeps the data can be compared modulo a period"
            f"{fits if settings.evidence is EvidencePolicy.AUTO else ''}",
            variable=identity.text,
            remedy="set 'evidence: data' for it, or 'ignore' it here and use 'ciwrap compare'",
        )
    return found


def _refuse_incomparable(values: Values, settings: VariableSettings, identity: VariableId) -> None:
    """Raises the error that would keep any check from comparing these values with themselves."""
    try:
        refuse_empty(values, settings)
        refuse_combined(values.dtype, settings, identity)
        if settings.period:
            Circle(values.dtype, tuple(values.shape), settings)
    except CiwrapError as error:
        error.blame(variable=identity.text)
        raise


def _moved(
    old: _core.GoldenVariable,
    identity: VariableId,
    catalog: Catalog,
    check: Check,
    work: Work,
) -> VariableResult:
    """The values against the old golden by its own bound: the question is how far they moved, not
    what is asked of them.
    """
    settings = check.settings_for(identity, catalog.entries[identity].info.dtype)
    values = catalog.values(identity, settings.mask)
    if values.is_text:
        # The bytes of a golden text have no bound of their own.
        return check_golden(old, values, settings, work=work)
    if settings.combine != "sum" or (settings.period and old.data is not None):
        # What a check would say of it; its bound alone does not tell.
        settings = replace(settings, bound=bound_of(old.tree.parameters))
        return check_golden(old, values, settings, work=work)
    return check_golden(old, values, None, work=work)
