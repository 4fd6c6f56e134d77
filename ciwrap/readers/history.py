"""Iterations inside one file: groups that are numbered, and axes that go through time."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.errors import ConfigError, CorruptFileError
from ciwrap.late import numpy as np
from ciwrap.readers.attributes import AttributeRule
from ciwrap.readers.base import CheckedReader, Source
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

OPTION_NAMES = ("iterations", "iteration_variable", "iteration_step")
_ITERATION = re.compile(
    r"(?:iterations?|iter|time_?steps?|steps?|time|frames?|cycles?|checkpoints?)"
    r"[ _#.\-]*(\d{1,18})",
    re.IGNORECASE,
)
_RANK = re.compile(r"(?:ranks?|procs?|processors?|pe)[ _#.\-]*(\d{1,9})", re.IGNORECASE)
_TIME_NAME = re.compile(r"time|times|t|step|steps|timestep|record|frame|iteration|iter", re.I)
# How far a time may be from a whole number of steps.
_NEAR = 1e-6


class IterationRule(Struct, frozen=True):
    """How a file's iterations are found.

    axis: "auto", "none", or the name of the dimension. variable: whose values number them; None:
    they are counted from 0, or as the file's groups say. step: what one iteration adds to that
    variable.
    """

    axis: str = "auto"
    variable: str | None = None
    step: float = 1.0

    @property
    def is_on(self) -> bool:
        return self.axis != "none"

    @staticmethod
    def of(options: Mapping[str, Any], path: Path) -> IterationRule:
        """The rule that `options` give. Raises ConfigError."""
        axis = options.get("iterations", "auto")
        variable = options.get("iteration_variable")
        step = options.get("iteration_step", 1.0)
        for key, value in (("iterations", axis), ("iteration_variable", variable)):
            if not (isinstance(value, str) and value) and not (
                value is None and key != "iterations"
            ):
                raise ConfigError("must be text", file=path, key=f"options.{key}")
        is_number = isinstance(step, (int, float)) and not isinstance(step, bool)
        if not is_number or not 0 < step < math.inf:
            raise ConfigError("must be a number above 0", file=path, key="options.iteration_step")
        if axis == "none" and variable is not None:
            raise ConfigError(
                "has no meaning beside 'iterations: none'",
                file=path,
                key="options.iteration_variable",
            )
        return IterationRule(axis, variable, float(step))

    def numbers(self, values: Any, path: Path, variable: str) -> list[int]:
        """Iterations from the values of a variable. Raises CorruptFileError if they are none."""
        found = np.asarray(values).reshape(-1)
        if found.dtype.kind not in "iuf":
            raise CorruptFileError(
                f"is of type {found.dtype} and cannot number iterations",
                file=path,
                variable=variable,
            )
        numbers: list[int] = []
        for value in found.tolist():
            steps = value / self.step if self.step != 1.0 or isinstance(value, float) else value
            if not math.isfinite(steps) or abs(steps - round(steps)) > _NEAR * max(1.0, abs(steps)):
                raise CorruptFileError(
                    f"{value!r} is not a whole number of iterations",
                    file=path,
                    variable=variable,
                    remedy="give 'iteration_step' (what one iteration adds), or leave"
                    " 'iteration_variable' out to count from 0",
                )
            numbers.append(round(steps))
        if any(number < 0 for number in numbers):
            raise CorruptFileError("an iteration is negative", file=path, variable=variable)
        return numbers

    def along(
        self,
        axis: str | None,
        length: int,
        values_of: Callable[[str], Any],
        path: Path,
        *,
        kind: str = "variable",
    ) -> list[int]:
        """The iterations along an axis of that length.

        values_of: the values of the variable of that name, None if there is none. kind: what the
        format calls a variable. Raises ConfigError if there is not one value for each step, and as
        `numbers` does.
        """
        name = self.variable
        if name is None:
            return list(range(length))
        values = values_of(name)
        if values is None or np.asarray(values).size != length:
            raise ConfigError(
                f"there is no {kind} {name!r} with one value for each of the {length} steps along"
                f" {axis!r}",
                file=path,
                key="options.iteration_variable",
            )
        return self.numbers(values, path, name)


class Place(Struct, frozen=True):
    """Where in a history something stands, and what it is called there."""

    called: str
    iteration: int | None = None
    rank: int | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """As `Listing.add` takes it."""
        return {"called": self.called, "iteration": self.iteration, "rank": self.rank}


class HistoryReader(CheckedReader):
    """A reader of files that name their variables and may hold a history of them.

    How iterations are found, and which attributes are compared, is asked for in the same way
    whatever the format is.
    """

    option_names: ClassVar[tuple[str, ...]] = (*OPTION_NAMES, "attributes")

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        rule = IterationRule.of(options, path)
        return self.open_history(path, rule, AttributeRule.of(options, path))

    @abstractmethod
    def open_history(self, path: Path, rule: IterationRule, attributes: AttributeRule) -> Source:
        """As `open`, once the options are known to be right."""


def place_of(groups: Sequence[str], name: str, *, digits_after: Sequence[str] = ()) -> Place:
    """The place of `name` within nested groups such as iter_0010/rank_2.

    digits_after: the groups below which a name of digits alone is an iteration (openPMD's `data`).
    """
    iteration: int | None = None
    rank: int | None = None
    rest: list[str] = []
    for number, group in enumerate(groups):
        found = _ITERATION.fullmatch(group)
        if found is None and digits_after and tuple(groups[:number]) == tuple(digits_after):
            found = re.fullmatch(r"(\d{1,18})", group)
        other = _RANK.fullmatch(group)
        if found is not None and iteration is None:
            iteration = int(found[1])
        elif other is not None and rank is None:
            rank = int(other[1])
        else:
            rest.append(group)
    return Place("/".join([*rest, name]), iteration, rank)


def time_axis(
    rule: IterationRule, names: Iterable[str], unlimited: Sequence[str], timed: Iterable[str] = ()
) -> str | None:
    """The dimension that goes through time; None if there is none.

    names: of all dimensions. unlimited: those that can grow. timed: those whose coordinate says
    that it is time. Only the unlimited ones, else those named like time, else `timed`, are taken,
    and only if that leaves no choice.
    """
    if not rule.is_on:
        return None
    known = list(names)
    if rule.axis != "auto":
        return rule.axis if rule.axis in known else None
    called = [name for name in known if _TIME_NAME.fullmatch(name)]
    for choice in ([name for name in unlimited if name in called], unlimited, called, list(timed)):
        if len(choice) == 1:
            return choice[0]
    return None
