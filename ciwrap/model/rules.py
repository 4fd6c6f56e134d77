"""What is asked: of which variable, within which error bound, kept how."""

from __future__ import annotations

import math
import re
from enum import Enum
from functools import total_ordering

from ciwrap.errors import InvalidBoundError
from ciwrap.model.forms import BOUND_PART, ULPS, FormError
from ciwrap.structs import Struct, force_setattr


def number_text(value: float) -> str:
    """The shortest decimal that reads back as the same double: `1e-6`, `0`, `0.25`, `inf`."""
    text = repr(float(value))
    if "e" not in text:
        return text.removesuffix(".0")
    return re.sub(r"e(-?)\+?0*(?=\d)", r"e\1", text).removesuffix(".0")


def two_digits_above(value: float) -> float:
    """A number of two digits above a positive one, which may be rounded itself; inf where no double
    is above it.
    """
    from decimal import ROUND_CEILING, Context, Decimal

    above = math.nextafter(value, math.inf)
    if math.isinf(above):
        return above
    exact = Decimal(above)
    step = Decimal((0, (1,), exact.adjusted() - 1))
    # A context of our own: the caller's may round to fewer digits, or raise.
    return float(exact.quantize(step, ROUND_CEILING, Context(prec=28)))


class ErrorBound(Struct, frozen=True):
    """v differs from g unless |v - g| <= atol + rtol |g|, or they are at most `ulps` floats apart.

    (0, 0, 0) asks for equal numbers. ulps excludes atol and rtol. Raises InvalidBoundError for
    anything negative, NaN, infinite or not a number.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        name = ""
        try:
            for name, form in (("atol", BOUND_PART), ("rtol", BOUND_PART), ("ulps", ULPS)):
                force_setattr(self, name, form.from_python(getattr(self, name)))
        except FormError as error:
            raise InvalidBoundError(f"{name} {error.message}") from None
        if self.ulps and (self.atol or self.rtol):
            raise InvalidBoundError("ulps excludes atol and rtol; give one or the other")

    @property
    def is_exact(self) -> bool:
        return not (self.atol or self.rtol or self.ulps)

    def is_wider_than(self, other: ErrorBound) -> bool:
        """Whether this bound lets something pass that the other one does not."""
        if self.is_exact or other.is_exact:
            return other.is_exact and not self.is_exact
        if bool(self.ulps) != bool(other.ulps):
            return True
        return self.ulps > other.ulps or self.atol > other.atol or self.rtol > other.rtol

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
                raise InvalidBoundError(
                    f"{text!r} is not an error bound", remedy="write 'atol=1e-6'"
                )
            try:
                found[name] = int(value) if name == "ulps" else float(value)
            except ValueError:
                raise InvalidBoundError(f"{value!r} in {text!r} is not a number") from None
        return cls(found.get("atol", 0.0), found.get("rtol", 0.0), int(found.get("ulps", 0)))


@total_ordering
class VariableId(Struct, frozen=True):
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
