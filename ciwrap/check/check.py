"""The files of a check against its golden: the main path of the program.

`check_outputs` opens both sides, pairs their variables, judges each pair, and concludes. In place
of a golden there may be values that ciwrap.yaml states.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import Values, as_bytes
from ciwrap.base.errors import (
    AlignmentError,
    CiwrapError,
    DtypeMismatchError,
    UnsupportedDtypeError,
    VariableIgnoredError,
    VariableMissingError,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.progress import NO_PROGRESS
from ciwrap.check.findings import DetailKeeper, check_result, unless_nothing
from ciwrap.check.judge import check_golden, compare_values
from ciwrap.check.two_sides import (
    GOLDEN,
    Findings,
    Work,
    failed_check,
    labels_with_mask,
    not_comparable,
    pair_up,
    refuse_unseen_mask,
    uncompared,
    without_statistics,
)
from ciwrap.formats.catalog import OtherSide, Rules
from ciwrap.golden.store import golden_id, golden_signature, kept_values
from ciwrap.golden.trees import bound_of
from ciwrap.model import ErrorBound, Message, MessageLevel, VariableId, Verdict
from ciwrap.model.results import command_words
from ciwrap.project.outputs import Outputs
from ciwrap.project.settings import unused_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Labels, Signature, StoredSteps
    from ciwrap.formats.catalog import Catalog
    from ciwrap.formats.rows import RowOrder
    from ciwrap.golden.store import GoldenStore, StoredGolden
    from ciwrap.model import CheckResult, VariableResult, VariableSettings
    from ciwrap.project.settings import Check, Expectation


class GoldenSide:
    """What a golden holds, as one side of a comparison."""

    def __init__(self, golden: StoredGolden | None, check: Check) -> None:
        self._labels = None if golden is None else golden.manifest.labels
        variables = () if golden is None else golden.variables
        self.variables = {golden_id(variable): variable for variable in variables}
        self.identities = set(self.variables)
        if check.expected:
            # What the configuration now says itself is no concern of the golden any more.
            self.identities = {one for one in self.variables if check.expectation_of(one) is None}

    def labels(self, identity: VariableId) -> Labels | None:
        """None if the golden does not say."""
        return None if self._labels is None else self._labels.get(identity, ())

    def signature(self, identity: VariableId) -> Signature:
        labels = without_statistics(self.labels(identity) or ())
        return golden_signature(self.variables[identity], labels)

    def arrays(self, wanted: Sequence[VariableId]) -> list[NDArray[Any]]:
        """Some variables, by which rows of outputs are paired. Raises AlignmentError."""
        for one in wanted:
            found = self.variables.get(one)
            keeps = "does not hold" if found is None else f"keeps the {found.evidence} alone of"
            if found is None or found.data is None:
                raise AlignmentError(
                    f"rows are paired by {one.name!r}, and the golden {keeps} it",
                    remedy=f"set 'evidence: data' for {one.name!r} and accept the outputs anew",
                )
        return [kept_values(self.variables[one]).array() for one in wanted]

    def fault_of(self, identity: VariableId) -> None:  # noqa: ARG002 - what it holds can be read
        return None

    def path_of(self, identity: VariableId) -> None:  # noqa: ARG002 - it is not in the outputs
        return None


def steps_of(values: Values, ours: GoldenSide, identity: VariableId) -> StoredSteps:
    """The steps that a golden has for a series of a text. Raises AlignmentError."""
    from ciwrap.check.texts import stored_steps

    assert values.series is not None
    return stored_steps(values.series, ours.variables, identity, values.element_count)


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
        if golden.data is not None:
            theirs = np.frombuffer(golden.data, dtype=parameters.dtype)
            if np.all(theirs[1:] > theirs[:-1]):
                order.refuse_other_ids(theirs, GOLDEN.sides)
                return
        elif math.prod(golden.shape) == ids.size and _tells_ids_apart(parameters, ids):
            tree = _core.build_tree(parameters, as_bytes(ids))
            if tree.root == golden.tree.root:
                return
    raise AlignmentError(
        f"the rows cannot be paired by {order.name!r}: the golden has other ids, or was made"
        " without 'align_by'",
        remedy="if these ids are right, accept the outputs anew",
    )


def _tells_ids_apart(parameters: _core.TreeParameters, ids: NDArray[Any]) -> bool:
    """Whether no other ids have the tree of these: all fill values are one to a tree."""
    fills = [*parameters.fill_values]
    return len(fills) < 2 or not np.isin(ids, fills).any()


def misspelt_words(
    check: Check, identities: Iterable[VariableId], catalog: Catalog | None = None
) -> list[str]:
    """A warning for each pattern and name of the configuration that has no effect on these.

    catalog: of the outputs, if they are files; of what could not be read nobody knows what it has.
    """
    identities = [*identities]
    where = "under 'variables' or 'ignore'"
    found = [*unused_words(check.variable_patterns, identities, where)]
    if catalog is None or not catalog.errors:
        until = check.until_iteration
        if until is not None and identities and all(one.iteration is None for one in identities):
            found.append(
                f"'until_iteration: {until}' has no effect, since no variable has an iteration"
            )
        layers = (*check.layers, *(rule.settings for rule in check.rules))
        is_across = any(one.given.get("across_ranks") for one in layers)
        if is_across and not any(one.given.get("align_by") for one in layers):
            found.append("'across_ranks' has no effect, since no variable has 'align_by'")
    if catalog is not None and not catalog.errors:
        found += [_unused(key, pattern) for key, pattern in catalog.found.unused]
        if any(file.options for file in catalog.found.files):
            found += [
                f"'{option}: {name}' has no effect, since no file has iterations of its own; is it"
                " misspelt?"
                for option, name in _idle_options(catalog)
            ]
    return found


def _unused(key: str, pattern: str) -> str:
    if key == "layout":
        return "'layout' has no effect, since 'outputs' says where all of it stands"
    does = "leaves out" if key == "exclude" else "matches"
    return f"the pattern {pattern!r} under {key!r} {does} no file of the outputs; is it misspelt?"


def _idle_options(catalog: Catalog) -> list[tuple[str, str]]:
    """The options on iterations inside files that name something, where no file has any."""
    asked: dict[tuple[str, str], bool] = {}
    for entry in catalog.entries.values():
        is_used = entry.file.iteration is None and entry.info.iteration is not None
        for option in ("iterations", "iteration_variable"):
            name = entry.file.options.get(option)
            if name not in (None, "auto", "none"):
                asked[option, name] = asked.get((option, name), False) or is_used
    return [one for one, is_used in asked.items() if not is_used]


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
    reference = GoldenSide(golden, check)
    outputs.keep_order_of(OtherSide(reference.arrays, GOLDEN.sides))
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
        for result in judge_expected(check, outputs, work):
            results.add(result)
    if work.explain and any(one.verdict is not Verdict.MATCH for one in outcome.results):
        work.explain().from_elsewhere(
            outcome.results,
            reference.variables,
            outputs,
            lambda first, other: _compare_with_other(check, reference, outputs, first, other, work),
        )
    return replace(
        conclude(check, rules, golden, reference, outputs, outcome, work),
        seconds=time.monotonic() - started,
    )


def pair(
    check: Check, rules: Rules, reference: GoldenSide, outputs: Catalog
) -> tuple[Findings, list[VariableId]]:
    """The variables that both sides hold and that are to be compared; the outcome has the others.

    What the golden holds and the configuration ignores is not comparable: no golden is made of a
    variable that is ignored, so the configuration has left it out since, and whoever reviews
    goldens is to see that.
    """
    outcome = Findings(errors=list(outputs.errors))
    both = pair_up(outcome, rules, reference, outputs)
    if check.expected:
        # What the configuration says itself is judged by that.
        outcome.extra = [one for one in outcome.extra if check.expectation_of(one.id) is None]
    if outcome.left_out:
        newly, outcome.left_out = outcome.left_out, []
        outcome.results += [ignored_but_in_golden(one, reference.signature(one)) for one in newly]
        outcome.ignored = [one for one in outcome.ignored if one not in newly]
    return outcome, both


def ignored_but_in_golden(identity: VariableId, signature: Signature) -> VariableResult:
    """The result of a variable that a golden holds and the configuration ignores."""
    error = VariableIgnoredError(
        "the golden holds it, but the configuration ignores it",
        remedy="accept the outputs anew if it is no longer to be checked",
    )
    return not_comparable(uncompared(identity, signature, None), error)


def judge(
    check: Check, reference: GoldenSide, outputs: Catalog, identity: VariableId, work: Work
) -> VariableResult:
    """The verdict on a variable that both sides hold. Raises UsageError."""
    entry = outputs.entries[identity]
    golden = reference.variables[identity]
    settings = check.settings_for(identity, reference.signature(identity))
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
        if order is not None and order.name != identity.name and not order.is_matched:
            refuse_other_rows(order, reference.variables, identity)
    except CiwrapError as error:
        begin = uncompared(
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


def _compare_with_other(
    check: Check,
    reference: GoldenSide,
    outputs: Catalog,
    first: VariableResult,
    other: VariableId,
    work: Work,
) -> VariableResult:
    """The values of a result, compared with another variable of the golden."""
    golden = reference.variables[other]
    settings = check.settings_for(first.id, reference.signature(other))
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
    reference: GoldenSide,
    outputs: Catalog,
    outcome: Findings,
    work: Work,
) -> CheckResult:
    """The result of the check, from what was found of its variables."""
    outcome.notes += outputs.notes
    outcome.attributes_left_out = outputs.attributes_left_out
    outcome.data_bytes_read, outcome.engine = work.data_bytes_read, work.engine
    result = check_result(check.name, outcome, rules, GOLDEN, explain=work.explain)
    result = result if outputs.is_in_memory else unless_nothing(result)
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
    check: Check, golden: StoredGolden | None, reference: GoldenSide, outputs: Catalog
) -> Iterator[Message]:
    """What is to be reported besides of the configuration, the golden and the files."""
    for text in misspelt_words(check, [*reference.identities, *outputs.identities], outputs):
        yield Message(MessageLevel.WARNING, text)
    is_labelled = golden is None or golden.manifest.labels is not None
    if not is_labelled and any(entry.info.labels for entry in outputs.entries.values()):
        yield Message(
            MessageLevel.NOTE,
            "the golden is of an earlier release, which kept no dimension names and units, so"
            " they were not compared; the next golden that is accepted keeps them",
        )
    if golden is not None and golden.was_interrupted:
        yield Message(
            MessageLevel.WARNING,
            "an accept was killed at its very end; the golden is whole, and the next"
            f" `{command_words('ciwrap accept', [check.name])}` puts its file in place",
        )
    for text in outputs.found.notes:
        yield Message(MessageLevel.NOTE, text)


def judge_expected(check: Check, catalog: Catalog, work: Work) -> list[VariableResult]:
    """The verdicts on all values that the check says something of itself.

    One that is not there is not comparable. Raises UsageError for bounds that the values cannot
    have.
    """
    results = []
    for identity in catalog.identities:
        expected = check.expectation_of(identity)
        if expected is not None and not check.is_ignored(identity):
            results.append(_judge(check, catalog, identity, expected, work))
    found = {result.name.rpartition("/")[2] for result in results}
    ignored = {one.name.rpartition("/")[2] for one in catalog.identities if check.is_ignored(one)}
    for name in check.expected:
        if name not in found | ignored:
            error = VariableMissingError("is expected, but not in the outputs")
            results.append(not_comparable(uncompared(VariableId(name), None, None), error))
    return results


def _judge(
    check: Check, catalog: Catalog, identity: VariableId, expected: Expectation, work: Work
) -> VariableResult:
    info = catalog.entries[identity].info
    settings = check.settings_for(identity, info)
    path = catalog.path_of(identity)
    begin = uncompared(identity, None, info.signature, bound=settings.bound, source_path=path)
    try:
        if np.dtype(info.dtype).kind not in "iuf":
            raise UnsupportedDtypeError("is text, and a number is expected")
        _refuse_fractions(expected, info.dtype)
        new = catalog.values(identity, settings.mask)
        reference = _Expected(new, expected)
        if expected.values is not None:
            result = compare_values(reference, new, settings, identity, work=work, source_path=path)
            return replace(result, expectation="expect")
        exact = _exact(settings)
        result = compare_values(reference, new, exact, identity, work=work, source_path=path)
        # A range has no bound that could be wider, and its nearest numbers tell of no cause.
        return replace(result, expectation="range", explanations=())
    except CiwrapError as error:
        return not_comparable(begin, error)


def _exact(settings: VariableSettings) -> VariableSettings:
    # On a circle a number far outside of the range would be the image of one of its ends. A missing
    # value would match an end that is a fill value as well.
    exact = settings.with_bound(ErrorBound())
    return replace(exact, combine="sum", up_to_sign="none", period=(), fill_values=())


class _Expected(Values):
    """What the values have to be: numbers, or the nearest ones of a range."""

    def __init__(self, new: Values, expected: Expectation) -> None:
        self.dtype = new.dtype
        self.labels = new.labels
        self._new = new
        self._expected = expected
        numbers = expected.values
        is_one = new.shape == () and numbers is not None and len(numbers) == 1
        is_each = expected.is_each and not is_one
        self.shape = (len(numbers),) if numbers is not None and is_each else new.shape
        self._numbers = None if not is_each else np.asarray(numbers, dtype=self.dtype)

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        if self._numbers is not None:
            return self._numbers[first_element : first_element + count]
        if self._expected.values is not None:
            return np.full(count, self._expected.values[0], dtype=self.dtype)
        values = self._new.read(first_element, count)
        if values.dtype.kind != "f":
            limits = np.iinfo(values.dtype)
            low, high = _whole_range(self._expected, values.dtype)
            whole: NDArray[Any] = np.clip(values, max(low, limits.min), min(high, limits.max))
            return whole
        # What is infinite, or no number, is in no range, of which one end may be open.
        finite = np.finfo(values.dtype)
        least = max(self._expected.low, float(finite.min))
        nearest = np.clip(values, least, min(self._expected.high, float(finite.max)))
        return np.where(np.isnan(nearest), least, nearest).astype(values.dtype)


def _whole_range(expected: Expectation, dtype: np.dtype[Any]) -> tuple[int, int]:
    """The whole numbers of a range that the dtype holds."""
    limits = np.iinfo(dtype)
    low = math.ceil(expected.low) if math.isfinite(expected.low) else int(limits.min)
    high = math.floor(expected.high) if math.isfinite(expected.high) else int(limits.max)
    return low, high


def _refuse_fractions(expected: Expectation, dtype: str) -> None:
    """Raises DtypeMismatchError if whole numbers are found where others are expected."""
    if np.dtype(dtype).kind == "f":
        return
    for number in expected.values or ():
        if not math.isfinite(number) or number != round(number) or abs(number) >= 1 << 53:
            raise DtypeMismatchError(
                f"is a whole number, but {number:g} is expected",
                remedy="fix 'expect', or take it as a number: {name} in place of {name:int}",
            )
    if expected.values is None:
        ends = [one for one in (expected.low, expected.high) if math.isfinite(one)]
        if any(abs(one) >= 1 << 53 for one in ends):
            raise DtypeMismatchError(
                "is a whole number, and a range that ends beyond 2^53 is rounded",
                remedy="fix 'range', or take it as a number: {name} in place of {name:int}",
            )
        limits = np.iinfo(dtype)
        low, high = _whole_range(expected, np.dtype(dtype))
        if low > high or low > limits.max or high < limits.min:
            raise DtypeMismatchError(
                "is a whole number, and none lies within the range", remedy="fix 'range'"
            )
