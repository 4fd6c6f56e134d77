"""The outputs of a check against its golden: every variable of either side gets a verdict."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ciwrap.captures.journals import is_recording, journal_paths
from ciwrap.catalog.catalog import Catalog
from ciwrap.catalog.files import change_since, looked_at
from ciwrap.catalog.rows import Arrangement
from ciwrap.catalog.rules import Rules
from ciwrap.compare.fit import GOLDEN, labels_with_mask, refuse_unseen_mask
from ciwrap.compare.golden_side import GoldenVariables, refuse_other_rows, steps_of
from ciwrap.compare.judge import check_golden
from ciwrap.compare.law import begun, failed_check, not_comparable
from ciwrap.compare.misspelt import misspelt_words
from ciwrap.compare.outcome import Outcome
from ciwrap.compare.pairing import pair_up
from ciwrap.compare.tally import DetailKeeper, check_result
from ciwrap.compare.work import Work
from ciwrap.errors import (
    CiwrapError,
    NotComparableError,
    StillWrittenError,
    VariableIgnoredError,
)
from ciwrap.model import Message, MessageLevel, VariableId, Verdict
from ciwrap.model.commands import command_words
from ciwrap.progress import NO_PROGRESS
from ciwrap.readers.layout import find_outputs
from ciwrap.structs import replace
from ciwrap.trees.bounds import bound_of
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ciwrap.arrays.values import Signature
    from ciwrap.config import Check
    from ciwrap.golden.pair import StoredGolden
    from ciwrap.golden.store import GoldenStore
    from ciwrap.model import CheckResult, VariableResult
    from ciwrap.progress import Progress
    from ciwrap.readers.layout import FoundOutputs


def recorded_run_of(check: Check) -> Path | None:
    """The folder of the recorded run that is the check's output; None if it has files."""
    if len(check.outputs) != 1:
        return None
    path = check.root / check.outputs[0]
    # Not Path.is_dir, which raises where a folder above is closed: whoever reads it says so.
    return path if os.path.isdir(path) and is_recording(path) else None  # noqa: PTH112


def outputs_of(check: Check) -> FoundOutputs:
    """The files of a check. Raises as `find_outputs` does, and NotComparableError for a recorded
    run, which has no data.
    """
    run = recorded_run_of(check)
    if run is not None:
        raise NotComparableError(
            "is a recorded run, which has no data",
            file=run,
            remedy="ciwrap check and ciwrap accept take it as it is",
        )
    return find_outputs(
        check.root,
        check.outputs,
        layout=check.layout,
        format_name=check.format,
        options=check.options,
        exclude=check.exclude,
        formats=check.formats,
    )


def files_of(check: Check) -> Iterator[Path]:
    """A check's files as far as they are there, of all of its runs; what is missing is told of
    when it is checked. Nothing is looked for before the first is asked for.
    """
    recorded = recorded_run_of(check)
    if recorded is not None:
        yield from journal_paths(recorded)
        return
    from ciwrap.compare.ensemble_runs import each_run

    for run in each_run(check):
        with suppress(NotComparableError):
            yield from [file.path for file in outputs_of(run).files if file.path.exists()]


def arrangement_of(check: Check) -> Arrangement | None:
    """How the rows of the check's variables are aligned; None if they are taken as they are.

    What concerns one variable alone (`period`, `mixed_precision`, `mask`) does not count: it is in
    that variable's settings.
    """
    if not check.aligns and check.duplicates == "error":
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
        recorded = recorded_run_of(check)
        if recorded is not None:
            from ciwrap.compare.recorded import check_recorded

            golden = store.read(check.name)
            return check_recorded(check, golden, recorded, resources=resources, progress=progress)
        found = None
        if check.expected and not store.path(check.name).exists():
            # Only what is in the outputs tells whether a golden is needed beside.
            found = outputs_of(check)
            with Catalog(found, arrangement_of(check)) as catalog:
                if not needs_golden(check, catalog):
                    seen = looked_at(found.files)
                    result = check_expected(check, catalog, resources, progress)
                    return _unless_changed(result, seen, found)
        golden = store.read(check.name)
        found = found or outputs_of(check)
        seen = looked_at(found.files)
        with Catalog(found, arrangement_of(check)) as catalog:
            result = check_catalog(check, golden, catalog, resources=resources, progress=progress)
        return _unless_changed(result, seen, found)
    except CiwrapError as error:
        return failed_check(check.name, error, str(store.path(check.name)))


def _unless_changed(result: CheckResult, seen: Any, found: FoundOutputs) -> CheckResult:
    """The result. Raises StillWrittenError if a file has changed since it was looked at."""
    change = change_since(seen, found.files)
    if change is None:
        notes = [Message(MessageLevel.NOTE, text) for text in found.notes]
        return replace(
            result, excluded_files=len(found.excluded), messages=(*result.messages, *notes)
        )
    raise StillWrittenError(
        f"an output was written while it was being compared: {change}",
        remedy="let the program finish first, then check again",
    )


def needs_golden(check: Check, catalog: Catalog) -> bool:
    """Whether any variable of the outputs is judged by a golden."""
    return any(
        check.expectation_of(identity) is None and not check.is_ignored(identity)
        for identity in catalog.identities
    )


def check_expected(
    check: Check, catalog: Catalog, resources: Resources, progress: Progress
) -> CheckResult:
    """Compares listed outputs with what the configuration says they are. Raises UsageError."""
    from ciwrap.compare.expected import judge_expected

    started = time.monotonic()
    work = Work(resources, progress)
    rules = Rules(check.settings_for, check.is_ignored, check.strict.variables)
    outcome = Outcome(errors=list(catalog.errors), notes=list(catalog.notes))
    outcome.results += judge_expected(check, catalog, work)
    outcome.ignored += [one for one in catalog.identities if check.is_ignored(one)]
    told = misspelt_words(check, catalog.identities, catalog)
    result = check_result(check.name, outcome, rules, GOLDEN, messages=told)
    return replace(result, backend=resources.backend_used, seconds=time.monotonic() - started)


def check_catalog(
    check: Check,
    golden: StoredGolden,
    catalog: Catalog,
    *,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> CheckResult:
    """Compares listed outputs with a golden that has been read. Raises UsageError."""
    started = time.monotonic()
    work = Work(resources, progress)
    rules = Rules(check.settings_for, check.is_ignored, check.strict.variables)
    outcome = Outcome(errors=list(catalog.errors))
    ours = GoldenVariables(golden, check)
    both = pair_up(outcome, rules, ours, _Judged(check, catalog) if check.expected else catalog)
    if outcome.left_out:
        _refuse_newly_ignored(outcome, ours)
    progress.begin(
        f"checking {check.name}", sum(catalog.entries[one].info.byte_count for one in both)
    )
    keeper = DetailKeeper(outcome.results)
    try:
        for identity in both:
            keeper.add(_compare(work, check, ours, catalog, identity))
    finally:
        progress.end()
    if check.expected:
        from ciwrap.compare.expected import judge_expected

        for one in judge_expected(check, catalog, work):
            keeper.add(one)
    if any(one.verdict is not Verdict.MATCH for one in outcome.results):
        from ciwrap.compare.across_ranks import explain_ranks, parts_of_golden

        _explain_first(outcome.results, work, check, ours, catalog)
        explain_ranks(
            outcome.results, lambda first: parts_of_golden(ours.variables, catalog, first)
        )
    outcome.notes += catalog.notes
    outcome.data_bytes_read, outcome.engine = work.data_bytes_read, work.engine
    result = check_result(check.name, outcome, rules, GOLDEN)
    return replace(
        result,
        messages=(*result.messages, *_warnings(check, golden, ours, catalog)),
        golden_path=str(golden.path),
        golden_root=golden.root,
        golden_bytes=golden.byte_count,
        golden_environment=dict(golden.manifest.environment),
        backend=resources.backend_used,
        seconds=time.monotonic() - started,
    )


def _explain_first(
    results: list[VariableResult],
    work: Work,
    check: Check,
    ours: GoldenVariables,
    catalog: Catalog,
) -> None:
    """Says of the first difference if its numbers are those of another iteration of the golden."""
    from ciwrap.compare.over_checkpoints import first_difference, with_other_iteration

    at = first_difference(results)
    if at is None:
        return
    first = results[at]

    def judge(other: VariableId) -> VariableResult:
        golden = ours.variables[other]
        settings = check.settings_for(first.id, golden.tree.parameters.dtype)
        try:
            values = catalog.values(first.id, settings.mask)
        except CiwrapError:
            return first
        plain = replace(work, progress=NO_PROGRESS, with_details=False)
        return check_golden(golden, values, settings, work=plain)

    results[at] = with_other_iteration(first, ours.variables, judge)


def _refuse_newly_ignored(outcome: Outcome, ours: GoldenVariables) -> None:
    """Makes what the golden holds and the configuration ignores not comparable.

    No golden is made of a variable that is ignored. So the configuration has left it out since, and
    whoever reviews goldens is to see that: accepting takes it out of the golden.
    """
    newly = set(outcome.left_out)
    outcome.results += [newly_ignored(one, ours.signature(one)) for one in outcome.left_out]
    outcome.ignored = [one for one in outcome.ignored if one not in newly]
    outcome.left_out = []


def newly_ignored(identity: VariableId, signature: Signature) -> VariableResult:
    """The result of a variable that a golden holds and the configuration ignores."""
    error = VariableIgnoredError(
        "the golden holds it, but the configuration ignores it",
        remedy="accept the outputs anew if it is no longer to be checked",
    )
    return not_comparable(begun(identity, signature, None), error)


class _Judged:
    """The outputs that a golden judges."""

    def __init__(self, check: Check, catalog: Catalog) -> None:
        self.signature = catalog.signature
        self.path_of = catalog.path_of
        self.fault_of = catalog.fault_of
        self.identities = {
            identity for identity in catalog.identities if check.expectation_of(identity) is None
        }


def _warnings(
    check: Check, golden: StoredGolden, ours: GoldenVariables, theirs: Catalog
) -> Iterator[Message]:
    for text in misspelt_words(check, [*ours.identities, *theirs.identities], theirs):
        yield Message(MessageLevel.WARNING, text)
    if golden.manifest.labels is None and any(
        entry.info.labels for entry in theirs.entries.values()
    ):
        yield Message(
            MessageLevel.NOTE,
            "the golden is of an earlier release and says nothing of dimension names and units, so"
            " they were not compared; the next golden that is accepted says them",
        )
    if golden.was_interrupted:
        yield Message(
            MessageLevel.WARNING,
            "an accept was killed at its very end; the golden is whole, and the next"
            f" `{command_words('ciwrap accept', [check.name])}` puts its file in place",
        )


def _compare(
    work: Work, check: Check, ours: GoldenVariables, catalog: Catalog, identity: VariableId
) -> VariableResult:
    entry = catalog.entries[identity]
    golden = ours.variables[identity]
    settings = check.settings_for(identity, golden.tree.parameters.dtype)
    source_path = str(entry.file.path)
    try:
        refuse_unseen_mask(
            identity,
            settings,
            lambda one: check.settings_for(one).mask,
            ours.variables.__contains__,
        )
        values = catalog.values(identity, settings.mask)
        values.labels = labels_with_mask(values.labels, settings)
        order = catalog.order_of(identity)
        if order is not None and order.name != identity.name:
            refuse_other_rows(order, ours.variables, identity)
    except CiwrapError as error:
        begin = begun(
            identity,
            ours.signature(identity),
            entry.info.signature,
            bound=bound_of(golden.tree.parameters),
            settings=settings,
            source_path=source_path,
        )
        return not_comparable(begin, error)
    result = check_golden(
        golden,
        values,
        settings,
        labels=ours.labels(identity),
        steps=lambda: steps_of(values, ours, identity),
        work=work,
        source_path=source_path,
        aligned_by=None if order is None else order.name,
    )
    if result.verdict is not Verdict.NOT_COMPARABLE:
        work.data_bytes_read += values.byte_count
    return result
