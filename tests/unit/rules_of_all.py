"""Rules for two runs that ask the same of every variable."""

from __future__ import annotations

from ciwrap.formats.catalog import Rules
from ciwrap.model import ErrorBound, VariableSettings

SETTINGS = VariableSettings(bound=ErrorBound(1e-3))
RULES = Rules(lambda *_: SETTINGS, lambda _: False, general=SETTINGS)
# Nobody asked for a bound: that of a capture takes its place.
NOT_GIVEN = Rules(lambda *_: SETTINGS, lambda _: False, bounds_are_given=False, general=SETTINGS)
