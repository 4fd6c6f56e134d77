"""A golden against a run that was recorded while it ran, of which there are trees alone."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from msgspec.structs import replace as with_fields

from ciwrap import _core
from ciwrap.captures.bounds import NONE_GIVEN, CaptureHeader
from ciwrap.captures.container import CaptureFile
from ciwrap.captures.container_writer import CaptureWriter
from ciwrap.captures.fingerprints import files_beside_journals
from ciwrap.captures.in_memory import file_in_memory
from ciwrap.captures.index import (
    CapturedCheckpoint,
    CapturedVariable,
    CaptureIndex,
    MadeWith,
    StoredTree,
    parameters_of,
)
from ciwrap.captures.index_codec import append_checkpoint
from ciwrap.captures.recording import RecordedCapture
from ciwrap.captures.side import Run, open_fingerprint
from ciwrap.catalog.rules import Rules
from ciwrap.compare.check import newly_ignored
from ciwrap.compare.fit import GOLDEN
from ciwrap.compare.golden_side import GoldenVariables
from ciwrap.compare.histories import compare_histories
from ciwrap.compare.law import failed_check
from ciwrap.compare.misspelt import misspelt_words
from ciwrap.compare.outcome import HistoryOptions
from ciwrap.compare.outputs import recorded_run_of
from ciwrap.errors import CiwrapError, UsageError
from ciwrap.golden.variables import golden_id
from ciwrap.model import Message, MessageLevel, VariableSettings, Verdict
from ciwrap.readers.layout import FoundOutputs
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.compare.work import Work
    from ciwrap.config import Check
    from ciwrap.golden.pair import StoredGolden
    from ciwrap.golden.store import GoldenStore
    from ciwrap.model import CheckResult, VariableId


def check_recorded(check: Check, store: GoldenStore, work: Work) -> CheckResult:
    """Compares the recorded run that is a check's output with its golden. Writes nothing.

    Raises UsageError for a configuration that cannot be used; everything else is in the result.
    """
    try:
        golden, run = store.read(check.name), recorded_run_of(check)
        assert run is not None
        return compare_recorded(check, golden, run, work)
    except CiwrapError as error:
        return failed_check(check.name, error, str(store.path(check.name)))


def compare_recorded(
    check: Check,
    golden: StoredGolden,
    run: Path,
    work: Work,
    settings_for: Callable[[VariableId, str], VariableSettings] | None = None,
) -> CheckResult:
    """Compares a recorded run with a check's golden, by trees and residues alone.

    settings_for: of a variable and its dtype; those of the check if not given. Raises UsageError
    for a check that needs data, and the errors of reading the run.
    """
    refuse_what_needs_data(check)
    rules = Rules(
        settings_for or check.settings_for,
        check.is_ignored,
        check.strict.variables,
        bounds_from=f"check {check.name}",
    )
    with (
        closing(golden_run(golden.path, golden.variables, golden.manifest.labels)) as ours,
        closing(open_fingerprint(run, run, RecordedCapture)) as theirs,
    ):
        theirs.faults += files_beside_journals(run, check.exclude, check.root)
        result = compare_histories(
            check.name,
            ours,
            theirs,
            rules,
            HistoryOptions(detail_bytes=0),
            golden_path=str(golden.path),
            source_path=str(run),
            wording=GOLDEN,
            resources=work.resources,
            progress=work.progress,
        )
    known = {golden_id(one) for one in golden.variables}
    known |= {one.id for one in result.variables} | {*result.extra_variables}
    told = misspelt_words(check, known | {*result.ignored_variables})
    warnings = (Message(MessageLevel.WARNING, text) for text in told)
    return replace(
        _with_newly_ignored(result, golden, check),
        messages=(*result.messages, *warnings),
        golden_root=golden.root,
        golden_bytes=golden.byte_count,
        golden_environment=dict(golden.manifest.environment),
    )


def refuse_what_needs_data(check: Check) -> None:
    """Raises UsageError for a check that a recorded run cannot be held against."""
    if check.expected:
        raise UsageError(
            f"check {check.name!r} says what values are ('expect', 'range'), and a recorded run"
            " has none",
            file=check.config_path,
            remedy="leave that to a check of files",
        )


def _with_newly_ignored(result: CheckResult, golden: StoredGolden, check: Check) -> CheckResult:
    """The result, in which what the golden holds and the check ignores is not comparable."""
    ours = GoldenVariables(golden, check)
    found = [one for one in ours.variables if check.is_ignored(one)]
    if not found:
        return result
    told = [newly_ignored(one, ours.signature(one)) for one in found]
    return replace(
        result,
        verdict=Verdict.worst((result.verdict, Verdict.NOT_COMPARABLE)),
        variables=tuple(sorted((*result.variables, *told), key=lambda one: one.id.sort_key)),
        ignored_variables=tuple(one for one in result.ignored_variables if one not in found),
        left_out_variables=tuple(one for one in result.left_out_variables if one not in found),
    )


def trees_of_golden(variable: _core.GoldenVariable) -> tuple[_core.Tree | None, _core.Tree | None]:
    """(plain tree, tree with residues) of a golden's variable, as far as it tells them.

    A golden has one tree; of one that keeps its data both are made.
    """
    tree = variable.tree
    if tree.residues is not None:
        return None, tree
    if variable.data is None:
        return tree, None
    levels = VariableSettings().residue_levels
    fine = parameters_of(with_fields(MadeWith.of(tree.parameters), residue_levels=levels))
    return tree, None if fine.residue_levels == 1 else _core.build_tree(fine, variable.data)


def golden_run(
    path: Path,
    variables: Iterable[_core.GoldenVariable],
    labels: Mapping[VariableId, tuple[tuple[str, str], ...]] | None = None,
) -> Run:
    """A golden as one of two runs, of which there are trees alone. labels: as in its manifest."""
    with file_in_memory() as held:
        with CaptureWriter(held) as writer:
            found: dict[CheckpointKey, list[CapturedVariable]] = {}
            for one in variables:
                captured = _captured(writer, one, labels or {})
                key = (captured.identity.iteration, captured.identity.rank)
                found.setdefault(key, []).append(captured)
            directories = {}
            for key, some in found.items():
                checkpoint = CapturedCheckpoint(key, (), tuple(some))
                directories[key] = append_checkpoint(writer, checkpoint, path)
            writer.commit(b"")
        capture = CaptureFile(held)
    capture.path = path
    return Run(
        path,
        FoundOutputs(()),
        {key: [] for key in directories},
        capture,
        CaptureIndex(CaptureHeader(NONE_GIVEN, 0, ()), directories),
        is_fingerprint=True,
    )


def _captured(
    writer: CaptureWriter,
    one: _core.GoldenVariable,
    labels: Mapping[VariableId, tuple[tuple[str, str], ...]],
) -> CapturedVariable:
    identity = golden_id(one)
    plain, fine = trees_of_golden(one)
    return CapturedVariable(
        identity,
        one.tree.parameters.dtype,
        tuple(one.shape),
        None if plain is None else _stored(writer, plain, has_residues=False),
        None if fine is None else _stored(writer, fine, has_residues=True),
        labels=labels.get(identity, ()),
    )


def _stored(writer: CaptureWriter, tree: _core.Tree, *, has_residues: bool) -> StoredTree:
    residues = None
    if has_residues:  # of an array of nothing none, and they lie there all the same
        residues = writer.append(b"" if tree.residues is None else tree.residues.tobytes())
    digests = writer.append(tree.digests.tobytes())
    return StoredTree(MadeWith.of(tree.parameters), tree.root, digests, residues)
