"""The files of a check against its golden: every variable of either side gets a verdict.

This is the main path of the program: `check_outputs` opens both sides, pairs their variables,
judges each pair, and concludes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ciwrap.catalog.rules import Rules
from ciwrap.compare.fit import GOLDEN, labels_with_mask, refuse_unseen_mask
from ciwrap.compare.golden_side import GoldenVariables, refuse_other_rows, steps_of
from ciwrap.compare.judge import check_golden
from ciwrap.compare.law import begun, failed_check, not_comparable
from ciwrap.compare.misspelt import misspelt_words
from ciwrap.compare.outcome import Outcome
from ciwrap.compare.outputs import Outputs
from ciwrap.compare.pairing import pair_up
from ciwrap.compare.tally import DetailKeeper, check_result
from ciwrap.compare.work import Work
from ciwrap.errors import CiwrapError, VariableIgnoredError
from ciwrap.model import Message, MessageLevel, Verdict
from ciwrap.model.commands import command_words
from ciwrap.progress import NO_PROGRESS
from ciwrap.structs import replace
from ciwrap.trees.bounds import bound_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.arrays.values import Signature
    from ciwrap.catalog.catalog import Catalog
    from ciwrap.config import Check
    from ciwrap.golden.pair import StoredGolden
    from ciwrap.golden.store import GoldenStore
    from ciwrap.model import CheckResult, VariableId, VariableResult


def check_outputs(check: Check, store: GoldenStore, work: Work | None = None) -> CheckResult:
    """Compares the files that lie there now with the check's golden. Writes nothing.

    Raises UsageError for a configuration that cannot be used; everything else is in the result.
    """
    try:
        # Where the configuration says values itself, only the outputs tell if a golden is needed.
        may_be_without = check.expected and not store.path(check.name).exists()
        golden = None if may_be_without else store.read(check.name)
        with Outputs(check) as outputs:
            if golden is None and needs_golden(check, outputs):
                golden = store.read(check.name)
            result = check_catalog(check, golden, outputs, work or Work())
            outputs.refuse_changes()
        return result
    except CiwrapError as error:
        return failed_check(check.name, error, str(store.path(check.name)))


def needs_golden(check: Check, outputs: Catalog) -> bool:
    """Whether any variable of the outputs is judged by a golden."""
    return any(
        check.expectation_of(identity) is None and not check.is_ignored(identity)
        for identity in outputs.identities
    )


def check_catalog(
    check: Check, golden: StoredGolden | None, outputs: Catalog, work: Work
) -> CheckResult:
    """Compares listed outputs with a golden that has been read, and with what the configuration
    says they are; None if they need no golden. Raises UsageError.
    """
    started = time.monotonic()
    reference = GoldenVariables(golden, check)
    rules = Rules(check.settings_for, check.is_ignored, check.strict.variables)
    outcome, both = pair(check, rules, reference, outputs)
    results = DetailKeeper(outcome.results)
    total = sum(outputs.entries[identity].info.byte_count for identity in both)
    work.progress.begin(f"checking {check.name}", total)
    try:
        for identity in both:
            results.add(judge(check, reference, outputs, identity, work))
    finally:
        work.progress.end()
    if check.expected:
        from ciwrap.compare.expected import judge_expected

        for result in judge_expected(check, outputs, work):
            results.add(result)
    if work.explain and any(one.verdict is not Verdict.MATCH for one in outcome.results):
        work.explain().from_elsewhere(
            outcome.results,
            reference.variables,
            outputs,
            lambda first, other: _judge_other(check, reference, outputs, first, other, work),
        )
    return replace(
        conclude(check, rules, golden, reference, outputs, outcome, work),
        seconds=time.monotonic() - started,
    )


def pair(
    check: Check, rules: Rules, reference: GoldenVariables, outputs: Catalog
) -> tuple[Outcome, list[VariableId]]:
    """The variables that both sides hold and that are to be compared; the outcome has the others.

    What the golden holds and the configuration ignores is not comparable: no golden is made of a
    variable that is ignored, so the configuration has left it out since, and whoever reviews
    goldens is to see that.
    """
    outcome = Outcome(errors=list(outputs.errors))
    both = pair_up(outcome, rules, reference, outputs)
    if check.expected:
        # What the configuration says itself is judged by that.
        outcome.extra = [one for one in outcome.extra if check.expectation_of(one.id) is None]
    if outcome.left_out:
        newly, outcome.left_out = outcome.left_out, []
        outcome.results += [newly_ignored(one, reference.signature(one)) for one in newly]
        outcome.ignored = [one for one in outcome.ignored if one not in newly]
    return outcome, both


def newly_ignored(identity: VariableId, signature: Signature) -> VariableResult:
    """The result of a variable that a golden holds and the configuration ignores."""
    error = VariableIgnoredError(
        "the golden holds it, but the configuration ignores it",
        remedy="accept the outputs anew if it is no longer to be checked",
    )
    return not_comparable(begun(identity, signature, None), error)


def judge(
    check: Check, reference: GoldenVariables, outputs: Catalog, identity: VariableId, work: Work
) -> VariableResult:
    """The verdict on a variable that both sides hold. Raises UsageError."""
    entry = outputs.entries[identity]
    golden = reference.variables[identity]
    settings = check.settings_for(identity, golden.tree.parameters.dtype)
    source_path = str(entry.file.path)
    try:
        if settings.mask is not None:
            refuse_unseen_mask(
                identity,
                settings,
                lambda one: check.settings_for(one).mask,
                reference.variables.__contains__,
            )
        values = outputs.values(identity, settings.mask)
        if settings.mask is not None:
            values.labels = labels_with_mask(values.labels, settings)
        order = outputs.order_of(identity)
        if order is not None and order.name != identity.name:
            refuse_other_rows(order, reference.variables, identity)
    except CiwrapError as error:
        begin = begun(
            identity,
            reference.signature(identity),
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
        labels=reference.labels(identity),
        steps=lambda: steps_of(values, reference, identity),
        work=work,
        source_path=source_path,
        aligned_by=None if order is None else order.name,
    )
    if result.verdict is not Verdict.NOT_COMPARABLE:
        work.data_bytes_read += values.byte_count
    return result


def _judge_other(
    check: Check,
    reference: GoldenVariables,
    outputs: Catalog,
    first: VariableResult,
    other: VariableId,
    work: Work,
) -> VariableResult:
    """The values of a result, compared with another variable of the golden."""
    golden = reference.variables[other]
    settings = check.settings_for(first.id, golden.tree.parameters.dtype)
    try:
        values = outputs.values(first.id, settings.mask)
    except CiwrapError:
        return first
    plain = replace(work, progress=NO_PROGRESS, explain=None)
    return check_golden(golden, values, settings, work=plain)


def conclude(
    check: Check,
    rules: Rules,
    golden: StoredGolden | None,
    reference: GoldenVariables,
    outputs: Catalog,
    outcome: Outcome,
    work: Work,
) -> CheckResult:
    """The result of the check, from what was found of its variables."""
    outcome.notes += outputs.notes
    outcome.data_bytes_read, outcome.engine = work.data_bytes_read, work.engine
    result = check_result(check.name, outcome, rules, GOLDEN, explain=work.explain)
    result = replace(
        result,
        messages=(*result.messages, *_messages(check, golden, reference, outputs)),
        excluded_files=len(outputs.found.excluded),
        backend=work.resources.backend_used,
    )
    if golden is None:
        return result
    return replace(
        result,
        golden_path=str(golden.path),
        golden_root=golden.root,
        golden_bytes=golden.byte_count,
        golden_environment=dict(golden.manifest.environment),
    )


def _messages(
    check: Check, golden: StoredGolden | None, reference: GoldenVariables, outputs: Catalog
) -> Iterator[Message]:
    """What is to be told besides of the configuration, the golden and the files."""
    for text in misspelt_words(check, [*reference.identities, *outputs.identities], outputs):
        yield Message(MessageLevel.WARNING, text)
    is_labelled = golden is None or golden.manifest.labels is not None
    if not is_labelled and any(entry.info.labels for entry in outputs.entries.values()):
        yield Message(
            MessageLevel.NOTE,
            "the golden is of an earlier release and says nothing of dimension names and units, so"
            " they were not compared; the next golden that is accepted says them",
        )
    if golden is not None and golden.was_interrupted:
        yield Message(
            MessageLevel.WARNING,
            "an accept was killed at its very end; the golden is whole, and the next"
            f" `{command_words('ciwrap accept', [check.name])}` puts its file in place",
        )
    for text in outputs.found.notes:
        yield Message(MessageLevel.NOTE, text)
