"""The text manifest beside a golden file: for people and review, and a second witness of it.

Also how values become what a golden holds of them: the tree, and the best evidence that fits the
budget. The same facts give the same bytes, one line a fact; a key that is not known is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import Labels, Values
from ciwrap.base.documents import DocumentError, to_versioned_record
from ciwrap.base.errors import CiwrapError
from ciwrap.base.late import json
from ciwrap.base.progress import NO_PROGRESS, Progress
from ciwrap.golden.trees import (
    DEFAULT_RESOURCES,
    Resources,
    build_tree,
    describe_bound,
    tree_parameters,
)
from ciwrap.model import EvidencePolicy, VariableId, VariableSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# 2: says the labels of variables, where they have any. 3: says what was ignored, and which CI run
# accepted for whom.
FORMAT_VERSION = 3
_FIRST_WITH_LABELS = 2
# A variable takes some 200 bytes, so this is room for 160,000 of them.
MOST_MANIFEST_BYTES = 32 << 20

# The length as well, since `$` lets a line break pass.
Root = Annotated[
    str, msgspec.Meta(pattern="^[0-9a-f]{32}$", max_length=32, description="hexadecimal digest")
]
PendingKind = Literal["new", "changed"]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping of which every key is known."""


class BinaryFile(Record, frozen=True):
    """The golden file that a manifest is of: its name, its root, its size."""

    file: str
    root: Root
    bytes: Count


class VariableRow(Record, frozen=True, kw_only=True):
    """One variable as the manifest states it.

    Every word must agree with the binary, but for labels, which the binary does not hold: short
    texts about the variable by their names, like its units or the names of its dimensions.
    """

    name: str
    iteration: int | None = None
    rank: int | None = None
    dtype: str
    shape: tuple[int, ...]
    bound: str
    evidence: str
    root: Root
    labels: dict[str, str] = {}

    @property
    def identity(self) -> VariableId:
        return VariableId(self.name, self.iteration, self.rank)

    @staticmethod
    def of(variable: _core.GoldenVariable, labels: Labels = ()) -> VariableRow:
        parameters = variable.tree.parameters
        return VariableRow(
            name=variable.name,
            iteration=variable.iteration,
            rank=variable.rank,
            dtype=parameters.dtype,
            shape=tuple(variable.shape),
            bound=describe_bound(parameters),
            evidence=describe_evidence(variable),
            root=variable.tree.root.hex(),
            labels=dict(labels),
        )


class Acceptance(Record, frozen=True):
    """Who made or replaced a golden, when and why.

    when: UTC, ISO 8601. commit: of the repository the outputs came from. largest_bound_share: how
    much of its bound the variable that moved most used up, against the golden replaced; None where
    the old evidence could not tell. bounds: those that this acceptance changed, a line for each.
    actor, run: who had a CI job accept it, and that job's address; None outside of CI.
    """

    when: str
    who: str
    why: str
    new_root: Root
    commit: str | None = None
    old_root: Root | None = None
    largest_bound_share: float | None = None
    bounds: tuple[str, ...] = ()
    actor: str | None = None
    run: str | None = None


class PendingOrigin(Record, frozen=True):
    """What a golden was made from that nobody has accepted yet.

    kind: `new`, or `changed` against the golden with `base_root`. created: UTC, ISO 8601. commit:
    of the repository whose run made it; None without git.
    """

    kind: PendingKind
    created: str
    commit: str | None = None
    base_root: Root | None = None


class Manifest(Record, frozen=True):
    """What the text beside a golden's binary says of it.

    accepted: oldest first. pending: of a golden that waits to be accepted. ignored: what of the
    outputs the configuration left out when it was made, as patterns.
    """

    check: str
    binary: BinaryFile
    variables: tuple[VariableRow, ...]
    environment: dict[str, str]
    accepted: tuple[Acceptance, ...] = ()
    pending: PendingOrigin | None = None
    ignored: tuple[str, ...] = ()
    format: int = FORMAT_VERSION

    @property
    def says_labels(self) -> bool:
        """Whether a variable without labels has none; one of an earlier format says nothing."""
        return self.labels is not None

    @property
    def labels(self) -> dict[VariableId, Labels] | None:
        """The labels of each variable; None if the manifest is of a format that says none."""
        if self.format < _FIRST_WITH_LABELS:
            return None
        return {row.identity: tuple(sorted(row.labels.items())) for row in self.variables}


def now_text() -> str:
    """This second, as manifests have times."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def rows_of(
    variables: Iterable[_core.GoldenVariable], labels: Mapping[VariableId, Labels]
) -> tuple[VariableRow, ...]:
    """The rows of a golden's variables. labels: of those that have any."""
    return tuple(
        VariableRow.of(one, labels.get(VariableId(one.name, one.iteration, one.rank), ()))
        for one in variables
    )


def describe_evidence(variable: _core.GoldenVariable) -> str:
    """`data`, `tree`, or `residues k=15`."""
    if variable.evidence == "residues":
        return f"residues k={variable.tree.parameters.residue_levels}"
    return variable.evidence


def evidence_rank(text: str) -> tuple[int, int]:
    """The better evidence decides, the higher: by kind, and residues by how finely they tell."""
    kind, _, levels = text.partition(" k=")
    kinds = ("tree", "residues", "data")
    return kinds.index(kind) if kind in kinds else -1, int(levels) if levels.isdigit() else 0


def dump_manifest(manifest: Manifest) -> str:
    """The manifest's text: the same bytes for the same facts, one line for each variable."""
    binary = manifest.binary
    lines = [
        f"# Golden of check {quoted(manifest.check)}, written by `ciwrap accept`. Do not edit:",
        "# every check compares it with the binary file beside it.",
        f"format: {manifest.format}",
        f"check: {scalar(manifest.check)}",
        "binary:",
        f"  file: {scalar(binary.file)}",
        f"  root: {quoted(binary.root)}",
        f"  bytes: {binary.bytes}",
        "variables:" if manifest.variables else "variables: []",
    ]
    lines += [f"- {_row_text(row)}" for row in manifest.variables]
    if manifest.ignored:
        lines.append("ignored:")
        lines += [f"- {scalar(pattern)}" for pattern in manifest.ignored]
    lines.append("environment:" if manifest.environment else "environment: {}")
    lines += [f"  {scalar(key)}: {scalar(value)}" for key, value in manifest.environment.items()]
    lines.append("accepted:" if manifest.accepted else "accepted: []")
    for entry in manifest.accepted:
        lines += _acceptance_lines(entry)
    if manifest.pending is not None:
        pending = manifest.pending
        lines += [
            "pending:",
            f"  kind: {scalar(pending.kind)}",
            f"  created: {quoted(pending.created)}",
            f"  commit: {scalar(pending.commit)}",
            f"  base_root: {quoted(pending.base_root) if pending.base_root else 'null'}",
        ]
    return "\n".join(lines) + "\n"


def _row_text(row: VariableRow) -> str:
    pairs = [("name", scalar(row.name))]
    if row.iteration is not None:
        pairs.append(("iteration", str(row.iteration)))
    if row.rank is not None:
        pairs.append(("rank", str(row.rank)))
    pairs += [
        ("dtype", quoted(row.dtype)),
        ("shape", f"[{', '.join(map(str, row.shape))}]"),
        ("bound", scalar(row.bound)),
        ("evidence", scalar(row.evidence)),
        ("root", quoted(row.root)),
    ]
    if row.labels:
        labels = (f"{scalar(key)}: {scalar(row.labels[key])}" for key in sorted(row.labels))
        pairs.append(("labels", f"{{{', '.join(labels)}}}"))
    return "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"


def _acceptance_lines(entry: Acceptance) -> list[str]:
    lines = [
        f"- when: {quoted(entry.when)}",
        f"  who: {scalar(entry.who)}",
        f"  why: {scalar(entry.why)}",
        f"  commit: {scalar(entry.commit)}",
        f"  old_root: {quoted(entry.old_root) if entry.old_root else 'null'}",
        f"  new_root: {quoted(entry.new_root)}",
        f"  largest_bound_share: {scalar(entry.largest_bound_share)}",
    ]
    if entry.bounds:
        lines.append("  bounds:")
        lines += [f"  - {scalar(change)}" for change in entry.bounds]
    if entry.actor is not None:
        lines.append(f"  actor: {scalar(entry.actor)}")
    if entry.run is not None:
        lines.append(f"  run: {scalar(entry.run)}")
    return lines


def readable_text(manifest: Manifest) -> str:
    """As `dump_manifest`, once it is sure that the text reads back. Raises DocumentError."""
    text = dump_manifest(manifest)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise DocumentError("would hold text that is not Unicode") from None
    if len(data) > MOST_MANIFEST_BYTES:
        raise DocumentError(f"would have more than {MOST_MANIFEST_BYTES >> 20} MiB")
    if dump_manifest(load_manifest(data)) != text:
        raise DocumentError("would read back otherwise")
    return text


def load_manifest(data: bytes) -> Manifest:
    """Reads a manifest. Raises DocumentError for anything but a whole, well-typed one."""
    from ciwrap.base.yaml_documents import load_yaml

    return to_versioned_record(load_yaml(data), Manifest, FORMAT_VERSION)


# Data and residues are compressed on trial only if they are at most this many times their budget:
# beyond that hardly anything shrinks enough, and both trying and later decoding cost memory.
_TRIAL_FACTOR = 16


class Captured(Struct, frozen=True):
    """A variable ready for a golden.

    stored_bytes: its part of the file. engine: None if not from a file. statistics: to be kept with
    a golden that has no data to tell them; None where no bound is in their scale.
    """

    variable: _core.GoldenVariable
    stored_bytes: int
    engine: str | None = None
    statistics: Mapping[str, float] | None = None


def capture(
    values: Values,
    settings: VariableSettings,
    identity: VariableId,
    *,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> Captured:
    """Captures a variable by its evidence policy.

    `auto` takes the first that fits its budget, in compressed bytes of the golden: the data, the
    residues, and else the tree alone. Values are read once, or twice if the first choice did not
    fit; once more for a bound in their scale. Raises UsageError for settings the dtype cannot have,
    and the errors of reading.
    """
    if settings.scale is not None:
        from ciwrap.golden.scale import in_scale, in_scale_of, statistics_of

        if settings.scale.is_duration:
            exact = in_scale_of(values, settings, identity)
            return capture(values, exact, identity, resources=resources, progress=progress)
        statistics = statistics_of(values, settings, identity)
        scaled = in_scale(settings, statistics, identity)
        found = capture(values, scaled, identity, resources=resources, progress=progress)
        return found if found.variable.data is not None else replace(found, statistics=statistics)
    policy = settings.evidence
    data_trial = policy is EvidencePolicy.DATA or (
        policy is EvidencePolicy.AUTO
        and values.byte_count <= _TRIAL_FACTOR * settings.data_budget_bytes
    )
    if data_trial:
        found = _with_data(values, settings, identity, resources, progress)
        if policy is EvidencePolicy.DATA or found.stored_bytes <= settings.data_budget_bytes:
            return found
    plain = tree_parameters(values.dtype, settings, variable=identity.text)
    if policy is not EvidencePolicy.TREE:
        fine = tree_parameters(
            values.dtype, settings, residue_levels=settings.residue_levels, variable=identity.text
        )
        if fine.residue_levels > 1 and (
            policy is EvidencePolicy.RESIDUES
            or _packed_bytes(fine, values) <= _TRIAL_FACTOR * settings.residues_budget_bytes
        ):
            found = _with_tree(fine, values, identity, resources, progress)
            fits = found.stored_bytes <= settings.residues_budget_bytes
            if fits or policy is EvidencePolicy.RESIDUES:
                return found
    return _with_tree(plain, values, identity, resources, progress)


def _with_data(
    values: Values,
    settings: VariableSettings,
    identity: VariableId,
    resources: Resources,
    progress: Progress,
) -> Captured:
    parameters = tree_parameters(values.dtype, settings, variable=identity.text)
    data = values.read_all()
    progress.advance(len(data))
    try:
        tree = _core.build_tree(
            parameters, data, backend=resources.backend, threads=resources.threads
        )
        variable = golden_variable(identity, values.shape, tree, data=data)
        return Captured(variable, len(_core.encode_golden([variable])))
    except CiwrapError as error:
        error.blame(variable=identity.text)
        raise


def golden_variable(
    identity: VariableId,
    shape: tuple[int, ...],
    tree: _core.Tree,
    summaries: NDArray[np.int64] | None = None,
    data: bytes | None = None,
) -> _core.GoldenVariable:
    """What a golden keeps of the variable: its tree, and the summaries of its chunks or its data.

    Raises UsageError for parts that do not belong together.
    """
    return _core.GoldenVariable(
        identity.name,
        shape,
        tree,
        iteration=identity.iteration,
        rank=identity.rank,
        data=data,
        summaries=summaries,
    )


def _with_tree(
    parameters: _core.TreeParameters,
    values: Values,
    identity: VariableId,
    resources: Resources,
    progress: Progress,
) -> Captured:
    built = build_tree(parameters, values, resources=resources, progress=progress, summaries=True)
    try:
        variable = golden_variable(identity, values.shape, built.tree, built.summaries)
        return Captured(variable, len(_core.encode_golden([variable])), built.engine)
    except CiwrapError as error:
        error.blame(variable=identity.text)
        raise


def _packed_bytes(parameters: _core.TreeParameters, values: Values) -> int:
    """About how many bytes the packed residues take (cell-codes.md, section 8)."""
    packed = 1
    while parameters.residue_levels ** (packed + 1) <= 256:
        packed += 1
    return values.element_count * parameters.scalars_per_element // packed


_PLAIN = re.compile(r"[A-Za-z_<>|][A-Za-z0-9_<>|./+=()-]*(?: [A-Za-z0-9_<>|./+=()-]+)*")
# What YAML 1.1 or 1.2 reads as something other than text.
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})
_BLOCK_INDICATOR = re.compile(r"^[<>|]")
# JSON leaves these as they are; a YAML reader refuses them unescaped or takes them for line breaks.
# Compiled when it is first used, which takes a while.
_UNPRINTABLE = "[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"

Scalar = str | int | float | None


def scalar(value: Scalar) -> str:
    """One value as a YAML flow scalar. Text is left plain where no reader can mistake it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if (
        _PLAIN.fullmatch(value)
        and not _BLOCK_INDICATOR.match(value)
        and value.lower() not in _WORDS
    ):
        return value
    return quoted(value)


def quoted(text: str) -> str:
    """Text in double quotes, which JSON and YAML read alike."""
    plain = json.dumps(text, ensure_ascii=False)
    return re.sub(_UNPRINTABLE, lambda match: f"\\u{ord(match[0]):04x}", plain)


def _number(value: float) -> str:
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    text = repr(value)
    # YAML 1.1 takes 1e-06 for text: it wants a point in the mantissa.
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text
