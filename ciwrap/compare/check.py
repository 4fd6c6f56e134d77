"""The outputs of a check against its golden: every variable of either side gets a verdict."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ciwrap import _core
from ciwrap.arrays.values import as_bytes
from ciwrap.catalog.catalog import Catalog, Entry
from ciwrap.catalog.rows import Arrangement, refuse_other_ids
from ciwrap.compare.special import check_arranged
from ciwrap.compare.tally import Tally, failed_check
from ciwrap.compare.variable import golden_id, not_comparable, reason_of
from ciwrap.errors import AlignmentError, CiwrapError, ExitCode
from ciwrap.model import CheckResult, Evidence, VariableId
from ciwrap.progress import NO_PROGRESS
from ciwrap.readers.layout import find_outputs
from ciwrap.trees.bounds import bound_of
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ciwrap.catalog.rows import RowOrder
    from ciwrap.config import Check
    from ciwrap.golden.store import GoldenStore, StoredGolden
    from ciwrap.progress import Progress
    from ciwrap.readers.layout import FoundOutputs


def outputs_of(check: Check) -> FoundOutputs:
    """The files of a check. Raises as `find_outputs` does."""
    return find_outputs(
        check.root,
        check.outputs,
        layout=check.layout,
        format_name=check.format,
        options=check.options,
        exclude=check.exclude,
    )


def arrangement_of(check: Check) -> Arrangement | None:
    """How the rows of the check's variables are aligned; None if they are taken as they are."""
    if not check.aligns_rows:
        return None
    return Arrangement(check.settings_for, check.duplicates)


def check_outputs(
    check: Check,
    store: GoldenStore,
    *,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> CheckResult:
    """Compares what lies there now with the check's golden. Writes nothing.

    Raises UsageError for a configuration that cannot be used; everything else is in the result.
    """
    try:
        golden = store.read(check.name)
        with Catalog(outputs_of(check), arrangement_of(check)) as catalog:
            return check_catalog(check, golden, catalog, resources=resources, progress=progress)
    except CiwrapError as error:
        if error.exit_code is ExitCode.USAGE:
            raise
        return failed_check(check.name, error, str(store.path(check.name)))


def check_catalog(
    check: Check,
    golden: StoredGolden,
    catalog: Catalog,
    *,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> CheckResult:
    """Compares listed outputs with a golden that has been read. Raises UsageError."""
    tally = Tally(strict_variables=check.strict.variables)
    for error in catalog.errors:
        tally.fail(error)
    for note in catalog.notes:
        tally.warn(note)
    goldens = {golden_id(variable): variable for variable in golden.variables}
    entries = catalog.entries
    everything = sorted({*goldens, *entries})
    wanted = [identity for identity in everything if not check.is_ignored(identity)]
    progress.begin(
        f"checking {check.name}",
        sum(entries[one].info.byte_count for one in wanted if one in goldens and one in entries),
    )
    try:
        for identity in wanted:
            if identity not in entries:
                _note_missing(tally, goldens[identity])
            elif identity not in goldens:
                _note_extra(tally, entries[identity])
            else:
                _compare(check, goldens, entries[identity], catalog, tally, resources, progress)
    finally:
        progress.end()
    for pattern in check.unused_rules(everything):
        tally.warn(
            f"the pattern {pattern!r} under 'variables' or 'ignore' matches no variable;"
            " is it misspelt?"
        )
    if golden.was_interrupted:
        tally.warn(
            "an accept was killed at its very end; the golden is whole, and the next"
            f" `ciwrap accept {check.name}` puts its file in place"
        )
    return tally.result(
        check.name,
        [identity for identity in everything if check.is_ignored(identity)],
        golden_path=str(golden.path),
        golden_root=golden.root,
        golden_bytes=golden.byte_count,
        golden_environment=dict(golden.manifest.environment),
        backend=resources.backend_used,
    )


def _compare(
    check: Check,
    goldens: Mapping[VariableId, _core.GoldenVariable],
    entry: Entry,
    catalog: Catalog,
    tally: Tally,
    resources: Resources,
    progress: Progress,
) -> None:
    source_path = str(entry.file.path)
    golden = goldens[entry.identity]
    settings = check.settings_for(entry.identity, golden.tree.parameters.dtype)
    try:
        values = catalog.values(entry.identity, settings.mask)
        order = catalog.order_of(entry.identity)
        if order is not None and order.name != entry.identity.name:
            refuse_other_rows(order, goldens, entry.identity)
    except CiwrapError as error:
        if error.exit_code is ExitCode.USAGE:
            raise
        tally.add_result(not_comparable(entry.identity, reason_of(error), source_path=source_path))
        return
    compared = check_arranged(
        golden,
        values,
        settings,
        source_path=source_path,
        aligned_by=None if order is None else order.name,
        resources=resources,
        progress=progress,
    )
    tally.add(compared, values.byte_count)


def refuse_other_rows(
    order: RowOrder, goldens: Mapping[VariableId, _core.GoldenVariable], identity: VariableId
) -> None:
    """Raises AlignmentError unless the golden's rows have the ids of these, in their order.

    The golden's id variable tells, whatever is kept of it: ids are compared exactly.
    """
    golden = goldens.get(VariableId(order.name, identity.iteration, identity.rank))
    if golden is None:
        raise AlignmentError(
            f"the golden does not hold its id variable {order.name!r}, so nothing says which rows"
            " it has",
            remedy="do not ignore the id variable, and accept the outputs anew",
        )
    parameters = golden.tree.parameters
    if parameters.dtype[1:] == order.ids.dtype.str[1:] and parameters.kind == "exact":
        ids = order.ids.astype(parameters.dtype)
        if math.prod(golden.shape) == ids.size:
            tree = _core.build_tree(parameters, as_bytes(ids))
            if tree.root == golden.tree.root:
                return
        if golden.data is not None:
            theirs = np.frombuffer(golden.data, dtype=parameters.dtype)
            if np.all(theirs[1:] > theirs[:-1]):
                refuse_other_ids(order.name, theirs, order.ids)
    raise AlignmentError(
        f"the rows cannot be paired by {order.name!r}: the golden has other ids, or was made"
        " without 'align_by'",
        remedy="if these ids are right, accept the outputs anew",
    )


def _note_missing(tally: Tally, golden: _core.GoldenVariable) -> None:
    tally.missing(
        golden_id(golden),
        "is in the golden, but not in the outputs",
        "let the program write it; if it is gone for good, accept the new outputs",
        evidence=Evidence(golden.evidence),
        bound=bound_of(golden.tree.parameters),
        golden_dtype=golden.tree.parameters.dtype,
        golden_shape=tuple(golden.shape),
        golden_root=golden.tree.root.hex(),
    )


def _note_extra(tally: Tally, entry: Entry) -> None:
    tally.extra(
        entry.identity,
        "is in the outputs, but not in the golden",
        "accept the new outputs, or name it under 'ignore'",
        dtype=entry.info.dtype,
        shape=entry.info.shape,
        source_path=str(entry.file.path),
    )
