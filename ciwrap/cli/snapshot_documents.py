"""What `ciwrap snapshot` writes with --json, as records."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciwrap.model import EnvironmentDifference
from ciwrap.snapshot.records import Snapshot


class SnapshotDocument(msgspec.Struct, frozen=True):
    """A snapshot that was taken or shown. identity: its name, a digest of all that it holds."""

    schema_version: Literal[1]
    kind: Literal["snapshot"]
    identity: str
    snapshot: Snapshot


class SnapshotDiffDocument(msgspec.Struct, frozen=True):
    """What differs between two snapshots, the likeliest to change numbers first.

    first, second: their identities. objects_compared: whether objects of both are known.
    differences: golden is the first, run the second.
    """

    schema_version: Literal[1]
    kind: Literal["snapshot-diff"]
    exit_code: Literal[0, 1, 3]
    first: str
    second: str
    objects_compared: bool
    differences: tuple[EnvironmentDifference, ...]


class SnapshotRestoreDocument(msgspec.Struct, frozen=True):
    """What restore wrote.

    files: relative to its folder. not_restorable: what no file brings back.
    """

    schema_version: Literal[1]
    kind: Literal["snapshot-restore"]
    identity: str
    files: tuple[str, ...]
    not_restorable: tuple[str, ...]


class SnapshotVerifyDocument(msgspec.Struct, frozen=True):
    """How the objects of an environment that was built again compare with those of a snapshot.

    equal: how many are the same build. differing, missing, extra: paths of the others, as in the
    snapshot; extra ones are in the new environment alone.
    """

    schema_version: Literal[1]
    kind: Literal["snapshot-verify"]
    exit_code: Literal[0, 1, 3]
    identity: str
    equal: int
    differing: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
