"""How a run is judged: the settings of each variable, what is ignored, how rows are ordered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model import StrictVariables
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from ciwrap.catalog.rows import Arrangement
    from ciwrap.model import VariableId, VariableSettings


class Rules(Struct, frozen=True):
    """How two runs are judged.

    settings_for: of a variable and its dtype. strict_variables: which of the variables that only
    one side has are not comparable; the others are only told of. arrangement: how rows are aligned
    and which of two copies counts; None: as the files have it. bounds_are_given: whether settings
    hold bounds that somebody asked for; if not, those of a capture take their place. bounds_from:
    who asked for them (`given`, `check NAME`). general: the settings of every variable, where they
    are the same for all that there are and may be. by_place: whether they may be others at another
    iteration or rank.
    """

    settings_for: Callable[[VariableId, str], VariableSettings]
    is_ignored: Callable[[VariableId], bool]
    strict_variables: StrictVariables = StrictVariables.BOTH
    arrangement: Arrangement | None = None
    bounds_are_given: bool = True
    bounds_from: str = "given"
    general: VariableSettings | None = None
    by_place: bool = False
