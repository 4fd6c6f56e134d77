"""What the journal of a recorded run says of checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from ciwrap.captures.index import MadeWith


class RecordedVariable(Struct, frozen=True):
    """A variable as the journal introduces it."""

    name: str
    made_with: MadeWith


class RecordedTree(Struct, frozen=True):
    """One tree: its digests, root first, and residues behind them if it is a fine one.

    offset: where they begin in the journal. against: the fine tree that it was made against.
    max_share: how much of the bound values had moved from there, over chunks that match.
    """

    body: bytes
    offset: int
    against: bytes | None = None
    max_share: float | None = None


class Compared(Struct, frozen=True):
    """How a variable was held against a reference while the program ran.

    reason: why it was not. max_share: of the bound, over chunks that match; None where equality was
    asked for, or no chunk matches.
    """

    reason: str | None
    chunks: int
    suspect_chunks: int
    max_share: float | None


class RecordedState(Struct):
    """A variable at a checkpoint: its trees by kind, or the reason that there are none.

    samples: of chunks that do not match the reference, where their elements lie in the journal, and
    how many bytes they are.
    """

    variable: RecordedVariable
    shape: tuple[int, ...] = ()
    trees: dict[int, RecordedTree] = field(default_factory=dict)
    reason: str | None = None
    compared: Compared | None = None
    samples: dict[int, tuple[int, int]] = field(default_factory=dict)


class RecordedCheckpoint(Struct, frozen=True):
    """All that was recorded at one point of an iteration. attempt: how often the program began."""

    iteration: int
    point: str
    attempt: int
    states: tuple[RecordedState, ...]


class RecordingCost(Struct, frozen=True):
    """What recording took of a process.

    data_bytes: of the arrays that were hashed. seconds: in calls, waiting for the journal included.
    held_bytes: of trees, residues and buffers, at most.
    """

    data_bytes: int
    seconds: float
    held_bytes: int
