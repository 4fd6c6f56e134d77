"""The bound of a capture as a whole: what was asked for when the run was captured.

Trees know the bound that they were made with. That of the capture is one level above: it holds for
checkpoints that were written since, and for those whose captured trees no longer describe them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ciwrap.captures.kept_snapshot import KeptSnapshot
from ciwrap.captures.left_out import LeftOut
from ciwrap.catalog.files import Whole
from ciwrap.errors import UsageError
from ciwrap.model import ErrorBound, VariableSettings
from ciwrap.structs import Struct, field, replace
from ciwrap.trees.bounds import kept_fill_values, settings_text

if TYPE_CHECKING:
    from ciwrap.catalog.rules import Rules
    from ciwrap.model import VariableId

NONE_GIVEN = "none given"


class BoundRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What was asked for of some variables. dtype, names: None for whatever there is."""

    atol: float
    rtol: float
    ulps: Whole
    equal_nan: bool
    fill_values: tuple[float | int, ...] = ()
    dtype: str | None = None
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, settings: VariableSettings) -> BoundRow:
        bound = settings.bound
        return cls(
            bound.atol,
            bound.rtol,
            bound.ulps,
            settings.equal_nan,
            kept_fill_values(settings.fill_values),
        )

    @property
    def text(self) -> str:
        """`atol=1e-6 rtol=0`, or `exact`, and whatever else decides equality."""
        return settings_text(self.over(VariableSettings()))

    def over(self, settings: VariableSettings) -> VariableSettings:
        """The settings with this bound, and all that goes with it.

        Raises InvalidBoundError for a row that cannot have been written by us.
        """
        return replace(
            settings,
            bound=ErrorBound(self.atol, self.rtol, self.ulps),
            equal_nan=self.equal_nan,
            fill_values=self.fill_values,
        )


class CaptureHeader(msgspec.Struct, frozen=True, array_like=True):
    """What a capture is, beside its checkpoints.

    origin: who asked for the bounds (`given`, `check NAME`, `none given`). bounds: what was asked
    for. has_checksums: whether the bytes of all files are known. layout: where iteration and rank
    stand in the paths, if that was said. made_at: of the last change, UTC, ISO 8601. made_by: the
    version of ciwrap that wrote it. snapshot: of the environment, where one is known. left_out:
    what it does not hold of its run.
    """

    origin: str
    chunk_bytes: Whole
    bounds: tuple[BoundRow, ...]
    has_checksums: bool = False
    layout: str | None = None
    made_at: str = ""
    made_by: str = ""
    snapshot: KeptSnapshot | None = None
    left_out: tuple[LeftOut, ...] = ()


class Bounds(Struct):
    """The bounds of a capture, by variable; new ones can be noted.

    by_place: whether variables of one name have bounds of their own at each iteration or rank; the
    names of rows are the texts of identities then.
    """

    origin: str
    _general: BoundRow | None = None
    by_place: bool = False
    _named: dict[tuple[str, str | None], BoundRow] = field(default_factory=dict)

    @classmethod
    def of_header(cls, header: CaptureHeader) -> Bounds:
        found = cls(header.origin)
        for row in header.bounds:
            if row.names is None:
                found._general = row
            for name in row.names or ():
                found._named[name, row.dtype] = row
                found._named.setdefault((name, None), row)
        return found

    @classmethod
    def of_rules(cls, rules: Rules) -> Bounds:
        """Those that rules ask for of every variable alike; of others, once they are noted."""
        settings = rules.general
        general = None if settings is None or _is_combined(settings) else BoundRow.of(settings)
        if not rules.bounds_are_given:
            return cls(NONE_GIVEN, general)
        return cls(rules.bounds_from, general, rules.by_place)

    def settings_for(
        self, settings: VariableSettings, identity: VariableId, dtype: str
    ) -> VariableSettings | None:
        """The settings with the variable's bound; None where the capture says nothing of it."""
        for name in (identity.text, identity.name):
            row = self._named.get((name, dtype)) or self._named.get((name, None))
            if row is not None:
                return row.over(settings)
        return None if self._general is None else self._general.over(settings)

    def note(self, settings: VariableSettings, identity: VariableId, dtype: str) -> None:
        """Takes down what is asked for of a variable, if a row can say it."""
        if _is_combined(settings):
            return
        row = BoundRow.of(settings)
        name = identity.text if self.by_place else identity.name
        known = self._named.get((name, dtype)) or self._general
        if known is None or not _are_same(known.over(settings), settings):
            self._named[name, dtype] = row
            self._named.setdefault((name, None), row)

    @property
    def rows(self) -> tuple[BoundRow, ...]:
        """As a header holds them: variables of one bound together."""
        groups: dict[BoundRow, list[str]] = {}
        for (name, dtype), row in sorted(
            (item for item in self._named.items() if item[0][1] is not None),
            key=lambda item: (item[0][0], item[0][1] or ""),
        ):
            plain = msgspec.structs.replace(row, dtype=dtype, names=None)
            groups.setdefault(plain, []).append(name)
        named = (msgspec.structs.replace(row, names=tuple(names)) for row, names in groups.items())
        return (*(() if self._general is None else (self._general,)), *named)

    def refuse_other(self, asked: VariableSettings, identity: VariableId, dtype: str) -> None:
        """Raises UsageError if something else is asked for than the capture was made with."""
        known = self.settings_for(asked, identity, dtype)
        if known is not None and not _are_same(known, asked):
            raise UsageError(
                f"{settings_text(asked)} is asked for, but the existing capture was made with"
                f" {settings_text(known)}",
                variable=identity.text,
                remedy="leave the bound out to keep it, or begin anew with --rebuild",
            )


def _is_combined(settings: VariableSettings) -> bool:
    """Whether the bound is less than the sum of its parts, which is all that a row can say."""
    return settings.combine != "sum"


def _are_same(one: VariableSettings, other: VariableSettings) -> bool:
    """Whether two settings have one bound; a fill value that is NaN is the same as itself."""
    return repr(BoundRow.of(one)) == repr(BoundRow.of(other))


def rules_with(rules: Rules, bounds: Bounds, whose: str) -> Rules:
    """The rules with a capture's bounds; what the capture says nothing of stays as it was.

    whose: what the bounds are called from then on.
    """

    def settings_for(identity: VariableId, dtype: str) -> VariableSettings:
        settings = rules.settings_for(identity, dtype)
        return bounds.settings_for(settings, identity, dtype) or settings

    return replace(
        rules, settings_for=settings_for, bounds_from=whose, bounds_are_given=True, general=None
    )
