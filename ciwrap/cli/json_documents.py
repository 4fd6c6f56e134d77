"""What the commands write with --json, as records: their fields are the documents' fields.

`check`, `run` and `compare` write a `RunResult` (ciwrap.report.document), as does whatever fails;
`accept` and `review` write an `AcceptDocument`, and `repeat` a `RepeatResult`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ciwrap.base.documents import DocumentHead
from ciwrap.golden.manifest import Count, Root
from ciwrap.golden.show import ShownVariable
from ciwrap.model import EnvironmentDifference, RunResult
from ciwrap.runs.capture_index import BoundRow
from ciwrap.runs.sides import ShownCapture
from ciwrap.snapshot.records import Snapshot


class SnapshotDocument(DocumentHead, frozen=True):
    """A snapshot that was taken or shown. identity: its name, a digest of all that it holds."""

    kind: Literal["snapshot"]
    identity: str
    snapshot: Snapshot


class SnapshotDiffDocument(DocumentHead, frozen=True):
    """What differs between two snapshots, the likeliest to change numbers first.

    first, second: their identities. objects_compared: whether objects of both are known.
    differences: golden is the first, run the second.
    """

    kind: Literal["snapshot-diff"]
    exit_code: Literal[0, 1, 3]
    first: str
    second: str
    objects_compared: bool
    differences: tuple[EnvironmentDifference, ...]


class SnapshotRestoreDocument(DocumentHead, frozen=True):
    """What restore wrote.

    files: relative to its folder. not_restorable: what no file brings back.
    """

    kind: Literal["snapshot-restore"]
    identity: str
    files: tuple[str, ...]
    not_restorable: tuple[str, ...]


class SnapshotVerifyDocument(DocumentHead, frozen=True):
    """How the objects of an environment that was built again compare with those of a snapshot.

    equal: how many are the same build. differing, missing, extra: paths of the others, as in the
    snapshot; extra ones are in the new environment alone.
    """

    kind: Literal["snapshot-verify"]
    exit_code: Literal[0, 1, 3]
    identity: str
    equal: int
    differing: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]


class ShowDocument(DocumentHead, frozen=True):
    """The table of a golden."""

    kind: Literal["show"]
    root: Root
    variables: tuple[ShownVariable, ...]


class ShownGolden(msgspec.Struct, frozen=True):
    """One golden of a file that several share."""

    check: str
    root: Root
    variables: tuple[ShownVariable, ...]


class ShowGoldensDocument(DocumentHead, frozen=True):
    """All goldens of a file that the small ones of a test file share."""

    kind: Literal["show-goldens"]
    goldens: tuple[ShownGolden, ...]


class ShowCaptureDocument(DocumentHead, frozen=True):
    """What a capture says of itself, and its table of variables."""

    kind: Literal["show-capture"]
    capture: ShownCapture


class CheckpointFault(msgspec.Struct, frozen=True):
    """Why a checkpoint was left alone. slug: its entry in docs/reference/errors.md."""

    slug: str
    text: str
    file: str | None


class WithoutTree(msgspec.Struct, frozen=True):
    """A variable that has no tree, and why."""

    variable: str
    reason: str


class CapturedBound(msgspec.Struct, frozen=True):
    """What was asked for of some variables. dtype, names: null for whatever there is."""

    atol: float
    rtol: float
    ulps: Count
    equal_nan: bool
    fill_values: tuple[float, ...]
    dtype: str | None
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, row: BoundRow) -> CapturedBound:
        return cls(*msgspec.structs.astuple(row))


class CaptureDocument(DocumentHead, frozen=True):
    """What capture did with each checkpoint of a run.

    identity: a digest of all that the capture holds. captured, kept, dropped: iteration and rank of
    checkpoints; dropped are those that are gone from the run. bounds: of the capture as a whole;
    bounds_from: who asked for them.
    """

    kind: Literal["capture"]
    run: str
    capture: str
    identity: str
    captured: tuple[tuple[int | None, int | None], ...]
    kept: tuple[tuple[int | None, int | None], ...]
    dropped: tuple[tuple[int | None, int | None], ...]
    left_alone: tuple[CheckpointFault, ...]
    without_tree: tuple[WithoutTree, ...]
    bounds_from: str | None
    bounds: tuple[CapturedBound, ...]
    variable_count: Count
    bytes_read: Count
    capture_bytes: Count
    seconds: float
    exit_code: Literal[0, 3]


class Usable(msgspec.Struct, frozen=True):
    """A backend, a read engine or a CPU level.

    reason: why it is not usable. concurrency: threads of a backend. active: whether this CPU level
    is in use.
    """

    name: str
    usable: bool
    reason: str
    concurrency: int | None = None
    active: bool | None = None


class KnownCheck(msgspec.Struct, frozen=True):
    """A check of the configuration."""

    name: str
    has_golden: bool


class FoundConfig(msgspec.Struct, frozen=True):
    """The configuration that doctor found. problem: why it cannot be used."""

    path: str | None
    problem: str | None
    checks: tuple[KnownCheck, ...]


class DoctorDocument(DocumentHead, frozen=True):
    """What doctor found.

    lacking: what cannot be read for want of a package, and the packages.
    """

    kind: Literal["doctor"]
    ciwrap_version: str
    libraries: dict[str, str]
    environment: dict[str, str]
    backends: tuple[Usable, ...]
    io_engines: tuple[Usable, ...]
    cpu_levels: tuple[Usable, ...]
    readers: tuple[str, ...]
    lacking: dict[str, str]
    config: FoundConfig
    warnings: tuple[str, ...]
    errors: tuple[str, ...]


class StarterCheck(msgspec.Struct, frozen=True):
    """A check that init wrote. files: how many its outputs are."""

    name: str
    outputs: tuple[str, ...]
    files: Count


class InitDocument(DocumentHead, frozen=True):
    """What init wrote."""

    kind: Literal["init"]
    path: str
    written: bool
    checks: tuple[StarterCheck, ...]


class DemoDocument(DocumentHead, frozen=True):
    """Both halves of the demonstration."""

    kind: Literal["demo"]
    as_expected: bool
    good: RunResult
    defective: RunResult


class RejectDocument(DocumentHead, frozen=True):
    """What reject did. checks: names of the checks whose pending goldens were removed."""

    kind: Literal["reject"]
    reason: str | None
    checks: tuple[str, ...]


class PruneDocument(DocumentHead, frozen=True):
    """What prune did. unused: paths of goldens that nothing uses. unused_snapshots: of snapshots
    that no golden that stays was made with.
    """

    kind: Literal["prune"]
    dry_run: bool
    unused: tuple[str, ...]
    deleted: tuple[str, ...]
    unused_snapshots: tuple[str, ...]


class FoundValue(msgspec.Struct, frozen=True):
    """What a rule finds. matches: how many, whichever count. first, last: of those that count, as
    text. line: of the first. fault: why it cannot be compared.
    """

    name: str
    matches: Count
    first: str | None
    last: str | None
    line: Count | None
    unit: str | None = None
    fault: str | None = None


class ValuesDocument(DocumentHead, frozen=True):
    """What the rules of a log find in a file."""

    kind: Literal["values"]
    path: str
    values: tuple[FoundValue, ...]
    problems: tuple[str, ...]
