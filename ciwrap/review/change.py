"""The change that accepting outputs or a recorded run makes: first computed, then written.

Writing a golden adds a line to its log, with the CI job that this process runs in.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import Labels, Shaped, Values
from ciwrap.base.errors import (
    AlignmentError,
    CiwrapError,
    CorruptGoldenError,
    GoldenMissingError,
    GoldenToMendError,
    NotComparableError,
    ParameterMismatchError,
    PeriodError,
    UsageError,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.progress import NO_PROGRESS, Progress
from ciwrap.base.repository import git_commit, git_user
from ciwrap.check.check import GoldenSide, misspelt_words
from ciwrap.check.judge import check_golden, in_scale_of_golden
from ciwrap.check.other_bounds import Circle, refuse_combined
from ciwrap.check.two_sides import (
    GOLDEN,
    Work,
    kept_statistics,
    labels_with_mask,
    refuse_empty,
    refuse_unseen_mask,
    with_statistics,
)
from ciwrap.explain.across import explainer
from ciwrap.formats.catalog import Catalog, OtherSide
from ciwrap.golden.manifest import (
    Acceptance,
    BinaryFile,
    Captured,
    Manifest,
    VariableRow,
    capture,
    evidence_rank,
    golden_variable,
    now_text,
    rows_of,
)
from ciwrap.golden.store import GoldenStore, StoredGolden, golden_id, golden_signature, kept_values
from ciwrap.golden.trees import (
    DEFAULT_RESOURCES,
    Resources,
    asked_for,
    bound_of,
    build_tree,
    describe_bound,
    is_other_bound,
    is_wider,
)
from ciwrap.model import EvidencePolicy, VariableId, VariableResult, VariableSettings, Verdict
from ciwrap.project.outputs import Outputs, files_of, recorded_run_of
from ciwrap.recording.recorded_run import RecordedCapture, compare_recorded, refuse_what_needs_data
from ciwrap.runs.capture_index import (
    CapturedVariable,
    StoredTree,
    read_checkpoint,
    read_index,
    read_summaries,
    read_tree,
)
from ciwrap.runs.sides import fitting
from ciwrap.snapshot.difference import (
    describe_environment,
    environment_for_golden,
    environment_of_outputs,
)
from ciwrap.snapshot.store import SnapshotStore

if TYPE_CHECKING:
    from ciwrap.project.settings import Check

# How far a variable moved, of its old and its new golden; None where nobody can tell.
Moved: TypeAlias = (
    "Callable[[VariableId, _core.GoldenVariable, _core.GoldenVariable], VariableResult | None]"
)


class Status(str, Enum):
    """What accepting does to a golden.

    SAME: the new golden is the old one, to the byte. KEPT: every variable matches within its bound
    and nothing was asked for again, so the golden stays; replacing it would let it drift with the
    noise.
    """

    CREATED = "created"
    REPLACED = "replaced"
    SAME = "same"
    KEPT = "kept"

    def __str__(self) -> str:
        return self.value


class VariableChange(Struct, frozen=True):
    """What becomes of one variable.

    old, new: None where the golden has, or had, no such variable. moved: the new values against the
    old golden by its own bound; None where they cannot be compared.
    """

    identity: VariableId
    old: VariableRow | None
    new: VariableRow | None
    has_same_parameters: bool = False
    moved: VariableResult | None = None

    @classmethod
    def between(
        cls,
        identity: VariableId,
        old: _core.GoldenVariable | None,
        new: _core.GoldenVariable | None,
        moved: VariableResult | None,
        labels: tuple[Labels, Labels] = ((), ()),
    ) -> VariableChange:
        """The change between two goldens. labels: the old ones, the new ones."""
        return cls(
            identity,
            None if old is None else VariableRow.of(old, labels[0]),
            None if new is None else VariableRow.of(new, labels[1]),
            old is not None and new is not None and old.tree.parameters == new.tree.parameters,
            moved,
        )

    @property
    def is_described_alike(self) -> bool:
        """Whether all but the root is as before: bound, evidence, labels and the rest."""
        if self.old is None or self.new is None or not self.has_same_parameters:
            return False
        return replace(self.old, root="") == replace(self.new, root="")

    @property
    def is_within(self) -> bool:
        """Whether the values match the old golden, and nothing else is asked of them."""
        matches = self.moved is not None and self.moved.verdict is Verdict.MATCH
        return self.is_described_alike and matches

    @property
    def is_bound_wider(self) -> bool:
        """Whether the new bound, and all that goes with it, lets something pass that the old one
        did not.
        """
        old, new = self.old, self.new
        return old is not None and new is not None and is_wider(old.bound, new.bound)

    @property
    def lowered_evidence(self) -> str | None:
        """`data -> tree`; None if the golden keeps at least what it kept."""
        if self.old is None or self.new is None:
            return None
        is_lower = evidence_rank(self.new.evidence) < evidence_rank(self.old.evidence)
        return f"{self.old.evidence} -> {self.new.evidence}" if is_lower else None

    @property
    def bound_change(self) -> str | None:
        """`atol=1e-6 rtol=0 -> atol=1e-3 rtol=0 (wider)`; None if the bound is as before."""
        if self.old is None or self.new is None or self.old.bound == self.new.bound:
            return None
        return f"{self.old.bound} -> {self.new.bound}{' (wider)' if self.is_bound_wider else ''}"

    @property
    def used_share(self) -> float | None:
        """The share of the old bound that the values moved by at most; None where the old
        evidence cannot tell.
        """
        if self.moved is None:
            return None
        if self.moved.max_bound_share is None and self.moved.verdict is not Verdict.MATCH:
            return None
        return None if self.moved.used_interval is None else self.moved.used_interval[1]


class OldGolden(Struct, frozen=True):
    """The golden that accepting replaces.

    golden: None if there is none, or it cannot be read; problem then says why. log: its acceptances
    so far, also of a golden that is damaged.
    """

    golden: StoredGolden | None
    problem: str | None
    log: tuple[Acceptance, ...]

    @classmethod
    def of(cls, name: str, store: GoldenStore) -> OldGolden:
        """Raises UnsupportedFormatError for a golden of a newer version, GoldenToMendError for one
        that no new golden may replace.
        """
        if not store.contains(name):
            return cls(None, None, ())
        try:
            golden = store.read(name)
        except GoldenToMendError:
            raise
        except CorruptGoldenError as error:
            return cls(None, str(error), store.history(name))
        except GoldenMissingError as error:
            # Half a golden is not a missing one: replacing it takes a reason.
            is_half = store.contains(name)
            return cls(None, str(error) if is_half else None, store.history(name))
        return cls(golden, None, golden.manifest.accepted)

    @property
    def root(self) -> str | None:
        return None if self.golden is None else self.golden.root

    def is_same_as(self, root: str, labels: Mapping[VariableId, Labels]) -> bool:
        """Whether a golden of this root and these labels is this one."""
        if self.golden is None or self.golden.root != root:
            return False
        # A golden of an earlier release says nothing of labels, and stays as it is.
        return self.golden.manifest.labels in (None, labels)

    def status_after(self, changes: Sequence[VariableChange], *, keeps_matching: bool) -> Status:
        """What becomes of it by these changes. keeps_matching: as of `GoldenChange.compared`."""
        if self.golden is None:
            return Status.CREATED if self.problem is None else Status.REPLACED
        is_kept = keeps_matching and all(one.is_within for one in changes)
        return Status.KEPT if is_kept else Status.REPLACED

    def changes_to(
        self,
        variables: Sequence[_core.GoldenVariable],
        labels: Mapping[VariableId, Labels],
        moved: Moved,
    ) -> tuple[VariableChange, ...]:
        """What becomes of each variable. moved: how far one moved that is on both sides."""
        golden = self.golden
        before = {} if golden is None else {golden_id(one): one for one in golden.variables}
        said = labels if golden is None else golden.manifest.labels
        old_labels = labels if said is None else said
        after = {golden_id(one): one for one in variables}
        changes = []
        for identity in sorted({*before, *after}):
            old, new = before.get(identity), after.get(identity)
            result = moved(identity, old, new) if old is not None and new is not None else None
            both = (old_labels.get(identity, ()), labels.get(identity, ()))
            changes.append(VariableChange.between(identity, old, new, result, both))
        return tuple(changes)


class GoldenChange(Struct, frozen=True):
    """A golden that could be written, and what that changes. Nothing is written yet.

    check: what people call it. name: its name in its folder. path: of its binary. labels: of its
    variables, where they have any. ignored: what of the outputs is left out, as patterns. stale:
    why it may be of other code than what lies here. misspelt: a warning for each pattern and
    name of the configuration that has no effect on the outputs.
    """

    check: str
    name: str
    path: Path
    variables: tuple[_core.GoldenVariable, ...]
    root: str
    byte_count: int
    old: OldGolden
    status: Status = Status.SAME
    changes: tuple[VariableChange, ...] = ()
    labels: Mapping[VariableId, Labels] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    stale: str | None = None
    misspelt: tuple[str, ...] = ()

    def compared(self, moved: Moved, *, keeps_matching: bool = False) -> GoldenChange:
        """With its status, and what becomes of each variable.

        moved: how far one moved that is on both sides. keeps_matching: whether a golden stays that
        everything matches, as it does for outputs.
        """
        old = self.old
        if old.is_same_as(self.root, self.labels):
            return replace(self, status=Status.SAME, changes=())
        changes = old.changes_to(self.variables, self.labels, moved)
        return replace(
            self, status=old.status_after(changes, keeps_matching=keeps_matching), changes=changes
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What whoever accepts it should know, a line for each."""
        return self.misspelt if self.stale is None else (self.stale, *self.misspelt)

    @property
    def needs_writing(self) -> bool:
        return self.status in (Status.CREATED, Status.REPLACED)

    @property
    def largest_bound_share(self) -> float | None:
        """Of all variables on both sides; None if one of them cannot be told."""
        shares = [one.used_share for one in self.changes if one.old and one.new]
        known = [share for share in shares if share is not None]
        return max(known) if known and len(known) == len(shares) else None


def demand_reason(changes: Iterable[GoldenChange], reason: str | None) -> None:
    """Raises UsageError if one of the changes replaces a golden and nobody says why."""
    replaced = [one.check for one in changes if one.status is Status.REPLACED]
    if replaced and reason is None:
        raise UsageError(
            f"replacing the golden of {', '.join(replaced)} needs a reason; nothing was written",
            remedy="add --reason 'why the new numbers are right' (--dry-run shows what changes)",
        )


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


def bounds_change(
    check: Check,
    store: GoldenStore,
    *,
    resources: Resources = DEFAULT_RESOURCES,
) -> GoldenChange:
    """A check's golden with trees and residues for the bounds that are asked for now, and with the
    values that it has. Writes nothing.

    Where the golden keeps no data, its residues or its tree are made of the outputs, which have to
    match it by the old bound and by the new one. Raises ParameterMismatchError if they do not,
    UsageError if there is no golden, and the errors of reading outputs.
    """
    old = OldGolden.of(check.name, store)
    if old.golden is None:
        raise UsageError(
            f"check {check.name!r} has no golden whose bounds could change",
            remedy="accept its outputs without --bounds-only",
        )
    labels = old.golden.manifest.labels or {}
    variables, changes = [], []
    with contextlib.ExitStack() as opened:
        outputs: Catalog | None = None
        for variable in old.golden.variables:
            identity, made = golden_id(variable), variable.tree.parameters
            said = labels.get(identity, ())
            asked_now = check.settings_for(identity, golden_signature(variable, said))
            settings = in_scale_of_golden(variable, kept_statistics(said), asked_now)
            asked = asked_for(made, settings, identity)
            if not is_other_bound(asked, made):
                variables.append(variable)
                continue
            values: Values
            if variable.data is not None:
                values = kept_values(variable)
            else:
                if outputs is None:
                    outputs = opened.enter_context(Outputs(check))
                    _keep_order_of(old, check, outputs)
                values = _outputs_that_match(variable, outputs, settings, Work(resources))
            new = _made_with(asked, variable, values, resources)
            by_old = check_golden(variable, values, None, work=Work(resources))
            variables.append(new)
            changes.append(VariableChange.between(identity, variable, new, by_old, (said, said)))
    encoded = _core.encode_golden(variables)
    return GoldenChange(
        check=check.name,
        name=check.name,
        path=store.path_for(check.name, variables),
        variables=tuple(variables),
        root=_core.golden_root(encoded).hex(),
        byte_count=len(encoded),
        old=old,
        status=Status.REPLACED if changes else Status.SAME,
        changes=tuple(changes),
        labels=labels,
        ignored=old.golden.manifest.ignored,
    )


def _made_with(
    parameters: _core.TreeParameters,
    golden: _core.GoldenVariable,
    values: Values,
    resources: Resources,
) -> _core.GoldenVariable:
    """The golden of these values with other parameters, on the evidence that it has."""
    has_data = golden.data is not None
    built = build_tree(parameters, values, resources=resources, summaries=not has_data)
    return golden_variable(
        golden_id(golden), golden.shape, built.tree, built.summaries, golden.data
    )


def _outputs_that_match(
    golden: _core.GoldenVariable, outputs: Catalog, settings: VariableSettings, work: Work
) -> Values:
    """The outputs in the place of a golden without data, so far as they match it by its own bound
    and by the one that is asked for. Raises ParameterMismatchError.
    """
    identity = golden_id(golden)
    if outputs.errors:
        raise outputs.errors[0]
    if identity not in outputs.entries:
        raise ParameterMismatchError(
            "the golden keeps no data of it, and the outputs do not have it",
            variable=identity.text,
            remedy="run the program that the golden is of, then accept with --bounds-only",
        )
    values = outputs.values(identity, settings.mask)
    bounds = {"its own bound": None, "the bound that is asked for now": settings}
    for words, by in bounds.items():
        result = check_golden(golden, values, by, work=work)
        if result.verdict is not Verdict.MATCH:
            verdict = result.verdict.value.replace("_", " ")
            raise ParameterMismatchError(
                f"the golden keeps no data of it, and by {words} the outputs are not a match, but"
                f" {verdict}",
                variable=identity.text,
                remedy="run the program that the golden is of, then accept with --bounds-only;"
                " or accept new values without it",
            )
    return values


def _change_of_recorded(
    check: Check, store: GoldenStore, run: Path, *, force: bool, resources: Resources
) -> GoldenChange:
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
    _keep_order_of(old, check, catalog, may_be_other=True)
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
    infos = {identity: catalog.entries[identity].info for identity in wanted}
    if not any(one.element_count for one in infos.values()) and not catalog.is_in_memory:
        raise NotComparableError(
            f"check {check.name!r} has nothing to compare: no variable of its outputs has values",
            remedy="has the program run, and written its results?",
        )
    progress.begin(f"capturing {check.name}", sum(one.byte_count for one in infos.values()))
    try:
        found = {one: _capture(check, catalog, one, resources, progress) for one in wanted}
    finally:
        progress.end()
    variables = [one.variable for one in found.values()]
    labels = {
        one: _labels(infos[one].labels, check.settings_for(one), found[one]) for one in wanted
    }

    def moved(
        identity: VariableId, before: _core.GoldenVariable, _: _core.GoldenVariable
    ) -> VariableResult:
        work = Work(resources, explain=explainer if with_details else None)
        return _moved(before, identity, catalog, check, work)

    change = _change(check, store, old, variables, labels, moved, force=force)
    told = [*misspelt_words(check, catalog.identities, catalog), *_of_nan_alone(variables)]
    return replace(change, misspelt=tuple(told))


def _keep_order_of(
    old: OldGolden, check: Check, catalog: Catalog, *, may_be_other: bool = False
) -> None:
    """Has rows that are paired by coordinates stand as in the golden. may_be_other: or as they are
    where these are another mesh.
    """
    if old.golden is not None:
        golden = GoldenSide(old.golden, check)
        catalog.keep_order_of(OtherSide(golden.arrays, GOLDEN.sides, may_be_other))


def _of_nan_alone(variables: Iterable[_core.GoldenVariable]) -> Iterator[str]:
    """A warning for each variable whose kept data are NaN alone, which any run of NaN matches."""
    for one in variables:
        dtype = one.tree.parameters.dtype
        if one.data is None or dtype[1:] not in ("f2", "f4", "f8", "c8", "c16"):
            continue
        values = np.frombuffer(one.data, dtype=dtype)
        if values.size and bool(np.isnan(values).all()):
            yield f"{golden_id(one).text} is NaN everywhere: a run of which nothing came matches it"


def _labels(labels: Labels, settings: VariableSettings, captured: Captured) -> Labels:
    """What the golden says of the variable: also its mask, and the scale of its bound."""
    with_mask = labels_with_mask(labels, settings)
    if captured.statistics is None:
        return with_mask
    return with_statistics(with_mask, captured.statistics)


def _nothing_to_accept(check: Check) -> NotComparableError:
    text = f"check {check.name!r} has no variables to accept"
    return NotComparableError(text, remedy="fix 'outputs' or 'ignore'")


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
) -> Captured:
    info = catalog.entries[identity].info
    settings = check.settings_for(identity, info)
    refuse_unseen_mask(
        identity,
        settings,
        lambda one: check.settings_for(one).mask,
        lambda one: not check.is_ignored(one),
    )
    values = catalog.values(identity, settings.mask)
    _refuse_incomparable(values, settings, identity)
    found = capture(values, settings, identity, resources=resources, progress=progress)
    if found.variable.data is None and catalog.pairs_others(identity):
        raise AlignmentError(
            "only a golden that keeps its data can pair rows by it",
            variable=identity.text,
            remedy="set 'evidence: data' for it",
        )
    for key, value, plain in (
        ("combine", settings.combine, "sum"),
        ("up_to_sign", settings.up_to_sign, "none"),
    ):
        if value != plain and found.variable.data is None:
            raise ParameterMismatchError(
                f"only a golden that keeps the data can be compared with '{key}: {value}'",
                variable=identity.text,
                remedy="set 'evidence: data' for it",
            )
    if settings.period and found.variable.data is None:
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
    settings = check.settings_for(identity, catalog.entries[identity].info)
    values = catalog.values(identity, settings.mask)
    is_duration = settings.scale is not None and settings.scale.is_duration
    if values.is_text or (is_duration and old.data is not None):
        # The bytes of a golden text have no bound of their own.
        return check_golden(old, values, settings, work=work)
    is_beyond = settings.period or settings.up_to_sign != "none"
    if settings.combine != "sum" or (is_beyond and old.data is not None):
        # What a check would say of it; its bound alone does not tell.
        settings = settings.with_bound(bound_of(old.tree.parameters))
        return check_golden(old, values, settings, work=work)
    return check_golden(old, values, None, work=work)


class CiJob(Struct, frozen=True):
    """actor: the account that started the job. run: the job's address. None where nobody says."""

    actor: str | None = None
    run: str | None = None


def ci_job(environment: Mapping[str, str]) -> CiJob:
    """The job as GitHub Actions, GitLab CI or Jenkins describe it to the programs they run."""
    if environment.get("GITHUB_ACTIONS") == "true":
        parts = [environment.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY")]
        number = environment.get("GITHUB_RUN_ID")
        run = "/".join([*map(str, parts), "actions/runs", str(number)])
        is_known = all(parts) and bool(number)
        return CiJob(environment.get("GITHUB_ACTOR") or None, run if is_known else None)
    if environment.get("GITLAB_CI") == "true":
        return CiJob(
            environment.get("GITLAB_USER_LOGIN") or None, environment.get("CI_JOB_URL") or None
        )
    return CiJob(environment.get("BUILD_USER_ID") or None, environment.get("BUILD_URL") or None)


FIRST_REASON = "first golden"


class Origin(Struct, frozen=True):
    """Where outputs come from, and who accepts them. commit: None without git."""

    commit: str | None
    environment: Mapping[str, str]
    who: str


def origin_here(folder: Path, environment: Mapping[str, str] | None = None) -> Origin:
    """The origin of outputs that were made here and now. folder: within the repository.

    environment: what they were made with, where that is known; else it is what is here.
    """
    known = describe_environment(folder) if environment is None else environment
    return Origin(git_commit(folder), known, git_user(folder))


def origin_of(check: Check, root: Path, snapshots: SnapshotStore | None) -> Origin:
    """The origin of a check's outputs: what `ciwrap run` made them with, if nothing has written
    them since; else what is here.

    root: the project's folder, where runs leave their snapshots. snapshots: where the one of these
    outputs is kept; None for nowhere.
    """
    files = files_of(check)
    if snapshots is None:
        return origin_here(root, environment_of_outputs(root, files))
    return origin_here(root, environment_for_golden(root, files, snapshots))


def write_change(
    change: GoldenChange, store: GoldenStore, reason: str | None, origin: Origin
) -> StoredGolden:
    """Writes a golden. The caller holds `store.locked()`, and has held it since `change.old` was
    read.

    reason: for the log; None only for a first golden. Raises WriteFailedError, UsageError.
    """
    ci = ci_job(os.environ)
    entry = Acceptance(
        when=now_text(),
        who=origin.who,
        why=FIRST_REASON if reason is None else reason,
        commit=origin.commit,
        old_root=change.old.root,
        new_root=change.root,
        largest_bound_share=change.largest_bound_share,
        bounds=tuple(
            f"{one.identity.text}: {one.bound_change}"
            for one in change.changes
            if one.bound_change is not None
        ),
        actor=ci.actor,
        run=ci.run,
    )

    def make_manifest(root: str, byte_count: int) -> Manifest:
        return Manifest(
            check=change.name,
            binary=BinaryFile(change.path.name, root, byte_count),
            variables=rows_of(change.variables, change.labels),
            environment=dict(origin.environment),
            accepted=(*change.old.log, entry),
            ignored=change.ignored,
        )

    return store.write(change.name, change.variables, make_manifest)


def golden_of_recorded(check: Check, run: Path, old: OldGolden) -> list[_core.GoldenVariable]:
    """What a golden keeps of a recorded run: its residues as far as they are there and asked for,
    else its digests. old: the golden that it replaces.

    Raises NotComparableError for a run that is not all there, or without residues that it needs,
    StillWrittenError for one that still runs or was killed, ParameterMismatchError for other bounds
    than the check's, and the errors of reading journals.
    """
    refuse_what_needs_data(check)
    with RecordedCapture(run) as capture:
        capture.refuse_parts("record the run to its end", check.is_ignored)
        wanted = [
            one
            for directory in read_index(capture).checkpoints.values()
            for one in read_checkpoint(capture, directory).variables
            if not capture.leaves_out(one.identity, check.is_ignored)
        ]
        wanted.sort(key=lambda one: one.identity.sort_key)
        has_residues = {
            golden_id(one)
            for one in (() if old.golden is None else old.golden.variables)
            if one.evidence == "residues"
        }
        return [
            _golden_variable(check, capture, one, needs_residues=one.identity in has_residues)
            for one in wanted
        ]


def moved_since(
    check: Check, run: Path, old: OldGolden, resources: Resources
) -> Callable[[VariableId, _core.GoldenVariable, _core.GoldenVariable], VariableResult | None]:
    """How far each variable of a recorded run moved from the old golden, by that golden's bounds;
    None where trees do not tell.
    """
    found: dict[VariableId, VariableResult] = {}
    if old.golden is not None:
        bounds = {one.name: bound_of(one.tree.parameters) for one in old.golden.variables}

        def settings_for(identity: VariableId, what: Shaped) -> VariableSettings:
            settings = check.settings_for(identity, what)
            old_bound = bounds.get(identity.name)
            return settings if old_bound is None else settings.with_bound(old_bound)

        result = compare_recorded(check, old.golden, run, Work(resources), settings_for)
        found = {one.id: one for one in result.variables}
    return lambda identity, _old, _new: found.get(identity)


def _golden_variable(
    check: Check, capture: RecordedCapture, one: CapturedVariable, *, needs_residues: bool
) -> _core.GoldenVariable:
    identity = one.identity
    settings = check.settings_for(identity, one.signature)
    if one.any_tree is None:
        raise NotComparableError(
            f"was not recorded: {one.reason}", file=capture.path, variable=identity.text
        )
    fit = fitting(one, settings, identity)
    if fit is None or not settings.has_own_trees:
        made = describe_bound(one.any_tree.parameters)
        raise ParameterMismatchError(
            f"was recorded with {made}, and the check asks for something else",
            file=capture.path,
            variable=identity.text,
            remedy=f"record it with `ciwrap record --check {check.name}`",
        )
    stored = _wanted(fit, settings.evidence)
    if stored is fit.plain and needs_residues and settings.evidence is EvidencePolicy.AUTO:
        raise NotComparableError(
            "the golden keeps residues of it, and this run has none of its own",
            file=capture.path,
            variable=identity.text,
            remedy="record it with --residues, or set 'evidence: tree'",
        )
    if stored is None:
        raise NotComparableError(
            f"a recorded run does not have the evidence {settings.evidence.value!r}",
            file=capture.path,
            variable=identity.text,
            remedy="record it with --residues, or set 'evidence: auto'",
        )
    tree, summaries = read_tree(capture, one, stored), read_summaries(capture, one, stored)
    return golden_variable(identity, one.shape, tree, summaries)


def _wanted(one: CapturedVariable, policy: EvidencePolicy) -> StoredTree | None:
    """The tree that a golden of this evidence keeps; None if the run does not have it."""
    if policy is EvidencePolicy.DATA:
        return None
    if policy is EvidencePolicy.TREE:
        return one.plain
    if policy is EvidencePolicy.RESIDUES and one.any_tree is not None:
        is_exact = one.any_tree.parameters.kind == "exact"
        return one.plain if is_exact else one.fine
    return one.fine or one.plain
