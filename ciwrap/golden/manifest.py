"""The text manifest beside a golden file:

for people, for review, and a second witness of the binary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from ciwrap.golden.yaml_text import quoted, scalar
from ciwrap.trees.bounds import describe_bound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ciwrap import _core

FORMAT_VERSION = 1
LARGEST_BYTES = 256 << 20

_T = TypeVar("_T")


class ManifestError(ValueError):
    """What is wrong with a manifest, in one line without its path."""


@dataclass(frozen=True, slots=True)
class VariableRow:
    """One variable as the manifest states it; every word must agree with the binary."""

    name: str
    iteration: int | None
    rank: int | None
    dtype: str
    shape: tuple[int, ...]
    bound: str
    evidence: str
    root: str

    @staticmethod
    def of(variable: _core.GoldenVariable) -> VariableRow:
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
        )


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Who made or replaced a golden, when and why.

    when: UTC, ISO 8601. commit: of the repository the outputs came from. largest_bound_share: how
    much of its bound the variable that moved most used up, against the golden replaced; None where
    the old evidence could not tell. bounds: those that this acceptance changed, a line for each.
    """

    when: str
    who: str
    why: str
    new_root: str
    commit: str | None = None
    old_root: str | None = None
    largest_bound_share: float | None = None
    bounds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """Where a golden comes from that nobody has accepted yet.

    kind: `new`, or `changed` against the golden with `base_root`. created: UTC, ISO 8601. commit:
    of the repository whose run made it; None without git.
    """

    kind: str
    created: str
    commit: str | None = None
    base_root: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the text beside a golden's binary says of it.

    binary_root: hexadecimal. accepted: oldest first. proposal: of a golden that waits.
    """

    check: str
    binary_name: str
    binary_root: str
    binary_bytes: int
    variables: tuple[VariableRow, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    accepted: tuple[Acceptance, ...] = ()
    proposal: Proposal | None = None


def describe_evidence(variable: _core.GoldenVariable) -> str:
    """`data`, `tree`, or `residues k=15`."""
    if variable.evidence == "residues":
        return f"residues k={variable.tree.parameters.residue_levels}"
    return variable.evidence


def dump_manifest(manifest: Manifest) -> str:
    """The manifest's text: the same bytes for the same facts, one line for each variable."""
    lines = [
        f"# Golden of check {quoted(manifest.check)}, written by `ciwrap accept`. Do not edit:",
        "# every check holds it against the binary file beside it.",
        f"format: {FORMAT_VERSION}",
        f"check: {scalar(manifest.check)}",
        "binary:",
        f"  file: {scalar(manifest.binary_name)}",
        f"  root: {quoted(manifest.binary_root)}",
        f"  bytes: {manifest.binary_bytes}",
        "variables:" if manifest.variables else "variables: []",
    ]
    lines += [f"- {_row_text(row)}" for row in manifest.variables]
    lines.append("environment:" if manifest.environment else "environment: {}")
    lines += [f"  {scalar(key)}: {scalar(value)}" for key, value in manifest.environment.items()]
    lines.append("accepted:" if manifest.accepted else "accepted: []")
    for entry in manifest.accepted:
        lines += [
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
    if manifest.proposal is not None:
        proposal = manifest.proposal
        lines += [
            "pending:",
            f"  kind: {scalar(proposal.kind)}",
            f"  created: {quoted(proposal.created)}",
            f"  commit: {scalar(proposal.commit)}",
            f"  base_root: {quoted(proposal.base_root) if proposal.base_root else 'null'}",
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
    return "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"


def load_manifest(text: str) -> Manifest:
    """Reads a manifest. Raises ManifestError for anything but a whole, well-typed one."""
    try:
        raw = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise ManifestError(f"it is not valid YAML{where} (a merge conflict left in it?)") from None
    except (RecursionError, ValueError, OverflowError):
        raise ManifestError("it is not valid YAML") from None
    top = _mapping(raw, "the manifest")
    version = _take(top, "format", int, "")
    if version > FORMAT_VERSION:
        raise ManifestError(
            f"it has format {version}, this ciwrap reads up to {FORMAT_VERSION}; update ciwrap"
        )
    if version < 1:
        raise ManifestError(f"there is no format {version}")
    binary = _mapping(top.get("binary"), "`binary`")
    return Manifest(
        check=_take(top, "check", str, ""),
        binary_name=_take(binary, "file", str, "binary."),
        binary_root=_take(binary, "root", str, "binary."),
        binary_bytes=_take(binary, "bytes", int, "binary."),
        variables=tuple(
            _load_row(item, f"variables[{position}]")
            for position, item in enumerate(_sequence(top.get("variables"), "`variables`"))
        ),
        environment={
            str(key): str(value)
            for key, value in _mapping(top.get("environment"), "`environment`").items()
        },
        accepted=tuple(
            _load_acceptance(item, f"accepted[{position}]")
            for position, item in enumerate(_sequence(top.get("accepted"), "`accepted`"))
        ),
        proposal=_load_proposal(top.get("pending")),
    )


def _load_row(raw: Any, where: str) -> VariableRow:
    item = _mapping(raw, where)
    shape = _sequence(item.get("shape"), f"{where}.shape")
    if not all(isinstance(extent, int) and not isinstance(extent, bool) for extent in shape):
        raise ManifestError(f"`{where}.shape` must be a list of integers")
    return VariableRow(
        name=_take(item, "name", str, f"{where}."),
        iteration=_take_optional(item, "iteration", int, where),
        rank=_take_optional(item, "rank", int, where),
        dtype=_take(item, "dtype", str, f"{where}."),
        shape=tuple(shape),
        bound=_take(item, "bound", str, f"{where}."),
        evidence=_take(item, "evidence", str, f"{where}."),
        root=_take(item, "root", str, f"{where}."),
    )


def _load_acceptance(raw: Any, where: str) -> Acceptance:
    item = _mapping(raw, where)
    share = item.get("largest_bound_share")
    if share is not None and (isinstance(share, bool) or not isinstance(share, (int, float))):
        raise ManifestError(f"`{where}.largest_bound_share` must be a number")
    return Acceptance(
        when=_take(item, "when", str, f"{where}."),
        who=_take(item, "who", str, f"{where}."),
        why=_take(item, "why", str, f"{where}."),
        new_root=_take(item, "new_root", str, f"{where}."),
        commit=_take_optional(item, "commit", str, where),
        old_root=_take_optional(item, "old_root", str, where),
        largest_bound_share=None if share is None else float(share),
        bounds=_load_texts(item.get("bounds"), f"{where}.bounds"),
    )


def _load_proposal(raw: Any) -> Proposal | None:
    if raw is None:
        return None
    item = _mapping(raw, "`pending`")
    return Proposal(
        kind=_take(item, "kind", str, "pending."),
        created=_take(item, "created", str, "pending."),
        commit=_take_optional(item, "commit", str, "pending"),
        base_root=_take_optional(item, "base_root", str, "pending"),
    )


def _load_texts(raw: Any, where: str) -> tuple[str, ...]:
    items = [] if raw is None else _sequence(raw, where)
    if not all(isinstance(item, str) for item in items):
        raise ManifestError(f"`{where}` must be a list of texts")
    return tuple(items)


def _take(item: Mapping[str, Any], key: str, kind: type[_T], prefix: str) -> _T:
    value = item.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        words = {str: "text", int: "an integer"}
        raise ManifestError(f"`{prefix}{key}` must be {words.get(kind, kind.__name__)}")
    return value


def _take_optional(item: Mapping[str, Any], key: str, kind: type[_T], where: str) -> _T | None:
    return None if item.get(key) is None else _take(item, key, kind, f"{where}.")


def _mapping(value: Any, where: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise ManifestError(f"{where} must be a mapping")
    return value


def _sequence(value: Any, where: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ManifestError(f"{where} must be a list")
    return value
