"""Two files or folders against each other, the data of both at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.catalog.catalog import Catalog
from ciwrap.catalog.rows import refuse_other_ids
from ciwrap.compare.pair import compare_variable
from ciwrap.compare.tally import Tally, failed_check
from ciwrap.compare.variable import not_comparable, reason_of
from ciwrap.errors import CiwrapError, ExitCode
from ciwrap.progress import NO_PROGRESS
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from ciwrap.catalog.rules import Rules
    from ciwrap.model import CheckResult, VariableId
    from ciwrap.progress import Progress
    from ciwrap.readers.layout import FoundOutputs


def compare_runs(
    name: str,
    golden: FoundOutputs,
    new: FoundOutputs,
    rules: Rules,
    *,
    golden_path: str,
    source_path: str,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> CheckResult:
    """Compares two runs variable by variable; raises UsageError, all else is in the result."""
    tally = Tally(strict_variables=rules.strict_variables)
    try:
        with (
            Catalog(golden, rules.arrangement) as ours,
            Catalog(new, rules.arrangement) as theirs,
        ):
            for error in (*ours.errors, *theirs.errors):
                tally.fail(error)
            for note in dict.fromkeys((*ours.notes, *theirs.notes)):
                tally.warn(note)
            ignored = _compare_all(name, ours, theirs, rules, tally, resources, progress)
    except CiwrapError as error:
        if error.exit_code is ExitCode.USAGE:
            raise
        return failed_check(name, error, golden_path)
    return tally.result(
        name,
        ignored,
        golden_path=golden_path,
        source_path=source_path,
        backend=resources.backend_used,
    )


def _compare_all(
    name: str,
    ours: Catalog,
    theirs: Catalog,
    rules: Rules,
    tally: Tally,
    resources: Resources,
    progress: Progress,
) -> list[VariableId]:
    """Compares everything that is not ignored; returns what is."""
    everything = sorted({*ours.entries, *theirs.entries})
    wanted = [identity for identity in everything if not rules.is_ignored(identity)]
    sides = (ours.entries, theirs.entries)
    total = sum(side[one].info.byte_count for side in sides for one in wanted if one in side)
    progress.begin(name, total)
    try:
        for identity in wanted:
            if identity not in theirs.entries:
                tally.missing(identity, "is on the first side only", "write it in both runs")
            elif identity not in ours.entries:
                tally.extra(identity, "is on the second side only", "write it in both runs")
            else:
                _compare_one(identity, ours, theirs, rules, tally, resources, progress)
    finally:
        progress.end()
    return [identity for identity in everything if rules.is_ignored(identity)]


def _compare_one(
    identity: VariableId,
    ours: Catalog,
    theirs: Catalog,
    rules: Rules,
    tally: Tally,
    resources: Resources,
    progress: Progress,
) -> None:
    entry = theirs.entries[identity]
    settings = rules.settings_for(identity, ours.entries[identity].info.dtype)
    try:
        golden = ours.values(identity, settings.mask)
        new = theirs.values(identity, settings.mask)
        orders = ours.order_of(identity), theirs.order_of(identity)
        if orders[0] is not None and orders[1] is not None:
            refuse_other_ids(orders[0].name, orders[0].ids, orders[1].ids)
    except CiwrapError as error:
        if error.exit_code is ExitCode.USAGE:
            raise
        tally.add_result(
            not_comparable(identity, reason_of(error), source_path=str(entry.file.path))
        )
        return
    compared = compare_variable(
        golden,
        new,
        settings,
        identity,
        source_path=str(entry.file.path),
        aligned_by=None if orders[0] is None else orders[0].name,
        resources=resources,
        progress=progress,
    )
    tally.add(compared, golden.byte_count + new.byte_count)
