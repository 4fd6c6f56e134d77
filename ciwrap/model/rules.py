"""What is asked: of which variable, within which error bound, kept how."""

from __future__ import annotations

import math
import numbers
import re
from dataclasses import dataclass, field
from enum import Enum
from functools import total_ordering

from ciwrap.errors import InvalidBoundError

# What `align_by` says of a variable whose rows stay in the file's order.
NO_ALIGNMENT = "none"
DEFAULT_CHUNK_BYTES = 4096
DEFAULT_RESIDUE_LEVELS = 15
# Compressed bytes a golden may spend on one variable. The data themselves are the best evidence:
# exact counts and indices; within this budget a golden of some dozen variables still is a small
# commit.
DEFAULT_DATA_BUDGET_BYTES = 256 * 1024
# Residues decide as surely as the data (a tree alone cannot tell noise from a change) at an eighth
# of float32 and a sixteenth of float64 data, so more may be spent before a tree alone is all that
# is kept: this holds the residues of some 60 MB of float32, or of 10 million float64.
DEFAULT_RESIDUES_BUDGET_BYTES = 8 * 1024 * 1024


def number_text(value: float) -> str:
    """The shortest decimal that reads back as the same double: `1e-6`, `0`, `0.25`, `inf`."""
    text = repr(float(value))
    text = re.sub(r"e([+-])0*(\d)", lambda m: f"e{'-' if m[1] == '-' else ''}{m[2]}", text)
    return text.removesuffix(".0")


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """v differs from g unless |v - g| <= atol + rtol |g|, or they are at most `ulps` floats apart.

    (0, 0, 0) asks for equal numbers. ulps excludes atol and rtol. Raises InvalidBoundError for
    anything negative, NaN, infinite or not a number.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        for name in ("atol", "rtol"):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise InvalidBoundError(f"{name} must be a number, not {value!r}")
            plain = float(value)
            if not math.isfinite(plain) or plain < 0:
                raise InvalidBoundError(
                    f"{name} must be finite and not negative, not {number_text(plain)}"
                )
            object.__setattr__(self, name, plain + 0.0)  # -0.0 becomes 0.0
        ulps: object = self.ulps
        if isinstance(ulps, bool) or not isinstance(ulps, numbers.Integral):
            raise InvalidBoundError(f"ulps must be a whole number, not {ulps!r}")
        object.__setattr__(self, "ulps", int(ulps))
        if not 0 <= self.ulps < 1 << 63:
            raise InvalidBoundError(f"ulps must be from 0 to 2^63 - 1, not {self.ulps}")
        if self.ulps and (self.atol or self.rtol):
            raise InvalidBoundError("ulps excludes atol and rtol; give one or the other")

    @property
    def is_exact(self) -> bool:
        return not (self.atol or self.rtol or self.ulps)

    @property
    def text(self) -> str:
        """`atol=1e-6 rtol=0`, or `ulps=4`."""
        if self.ulps:
            return f"ulps={self.ulps}"
        return f"atol={number_text(self.atol)} rtol={number_text(self.rtol)}"

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str) -> ErrorBound:
        """The bound of a text form; parts in any order, missing ones are 0. Raises
        InvalidBoundError.
        """
        found: dict[str, float | int] = {}
        for part in text.split():
            name, sign, value = part.partition("=")
            if name not in ("atol", "rtol", "ulps") or not sign or name in found:
                raise InvalidBoundError(f"{text!r} is no error bound", remedy="write 'atol=1e-6'")
            try:
                found[name] = int(value) if name == "ulps" else float(value)
            except ValueError:
                raise InvalidBoundError(f"{value!r} in {text!r} is no number") from None
        return cls(found.get("atol", 0.0), found.get("rtol", 0.0), int(found.get("ulps", 0)))


@total_ordering
@dataclass(frozen=True, slots=True)
class VariableId:
    """One variable of one checkpoint. Ordered as a history is read: iteration, rank, name; None
    first.
    """

    name: str
    iteration: int | None = None
    rank: int | None = None

    @property
    def sort_key(self) -> tuple[int, int, str]:
        return (
            -1 if self.iteration is None else self.iteration,
            -1 if self.rank is None else self.rank,
            self.name,
        )

    @property
    def text(self) -> str:
        """`iter 10 / rank 0 / x`, without the parts that are None."""
        parts = [] if self.iteration is None else [f"iter {self.iteration}"]
        parts += [] if self.rank is None else [f"rank {self.rank}"]
        return " / ".join([*parts, self.name])

    def __str__(self) -> str:
        return self.text

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, VariableId):
            return NotImplemented
        return self.sort_key < other.sort_key


class Evidence(str, Enum):
    """What a golden holds of a variable, and so what a verdict rests on."""

    DATA = "data"
    RESIDUES = "residues"
    TREE = "tree"

    def __str__(self) -> str:
        return self.value


class EvidencePolicy(str, Enum):
    """What a golden is asked to hold; AUTO takes the best evidence that fits its budget."""

    AUTO = "auto"
    DATA = "data"
    RESIDUES = "residues"
    TREE = "tree"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class VariableSettings:
    """How one variable is captured and compared, with all defaults filled in.

    Budgets are compressed bytes per variable. mask: name of a boolean variable of the same shape,
    rank and iteration whose true elements count as zero on both sides. strict_*: whether another
    dtype or shape is an error at once; a relaxed dtype is compared after an exact conversion only.

    align_by: name of the id variable that orders the rows ("none" as None: the file's order);
    across_ranks: of all ranks together. period: of the values, one number or one for each component
    of the last axis; 0 is no period. mixed_precision: float32 against float64 is compared as
    float32.
    """

    bound: ErrorBound = field(default_factory=ErrorBound)
    residue_levels: int = DEFAULT_RESIDUE_LEVELS
    chunk_bytes: int = DEFAULT_CHUNK_BYTES
    evidence: EvidencePolicy = EvidencePolicy.AUTO
    data_budget_bytes: int = DEFAULT_DATA_BUDGET_BYTES
    residues_budget_bytes: int = DEFAULT_RESIDUES_BUDGET_BYTES
    equal_nan: bool = True
    fill_values: tuple[float | int, ...] = ()
    mask: str | None = None
    align_by: str | None = None
    across_ranks: bool = False
    period: tuple[float, ...] = ()
    mixed_precision: bool = False
    strict_dtype: bool = True
    strict_shape: bool = True
