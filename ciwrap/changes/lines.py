"""Where a configuration says something, so that a warning can point to the line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.config import name_matches
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.changes.state import State
    from ciwrap.config.nodes import Location
    from ciwrap.model import VariableId


class Lines(Struct, frozen=True):
    """Finds lines in the configuration of a state."""

    state: State

    def of_check(self, name: str | None, *keys: str) -> int | None:
        """The line of one of a check's keys, else where the check begins; None for neither."""
        return self._first([*((*self._check(name), key) for key in keys), self._check(name)])

    def of_variable(self, name: str, variable: VariableId, keys: tuple[str, ...]) -> int | None:
        """The line of the last layer that says one of the keys for a variable, else its check's."""
        check = self._check(name)
        section = self.state.checks.get(name)
        rules = [
            rule.pattern
            for rule in (() if section is None else section.rules)
            if name_matches(rule.pattern, variable)
        ]
        layers: list[Location] = [(*check, "variables", one) for one in reversed(rules)]
        layers += [check, ("defaults",)]
        return self._first([*((*layer, key) for layer in layers for key in keys), check])

    def _check(self, name: str | None) -> Location:
        document = self.state.document
        checks = None if document is None else document.value.get("checks")
        if isinstance(checks, list):
            return ("checks", next(self._positions(checks, name), 0))
        return ("checks",) if name is None else ("checks", name)

    @staticmethod
    def _positions(checks: list[dict[str, object]], name: str | None) -> Iterator[int]:
        yield from (number for number, one in enumerate(checks) if one.get("name") == name)

    def _first(self, locations: list[Location]) -> int | None:
        document = self.state.document
        if document is None:
            return None
        found = (document.line_of(one) for one in locations)
        return next((line for line in found if line is not None), None)
