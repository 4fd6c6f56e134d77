"""The settings of one variable: each is stated here, once.

A field of VariableSettings gives a setting's name, type and default; its statement, how values are
read, what a person is told of it, and what it means for trees. The configuration's keys, its JSON
Schema, the keywords of pytest's check() and of the Python API, and the table in
docs/reference/configuration.md are made of these statements. SettingArguments repeats the names
for type checkers, which cannot read them off; a test holds the two together.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, TypedDict

from ciwrap.model.forms import (
    BOUND_PART,
    BUDGET,
    CHUNK_BYTES,
    FILL_VALUES,
    FLAG,
    PERIODS,
    RESIDUE_LEVELS,
    TEXT,
    ULPS,
    one_of,
    read_arguments,
    size_text,
)
from ciwrap.model.rules import ErrorBound, EvidencePolicy
from ciwrap.structs import Struct, field, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ciwrap.model.forms import Form

# What `align_by` says of a variable whose rows stay in the file's order.
NO_ALIGNMENT = "none"
# The label by which a golden names the mask of a variable.
MASK_LABEL = "mask"
_BOUND = "bound"


class OnTrees(str, Enum):
    """What a setting means for a variable's trees.

    DECIDES: trees made with another value have other digests. NOTHING: trees tell whatever it is.
    BEYOND: where it is set, the comparison looks at more than the variable's own numbers, and no
    tree tells how it ends.
    """

    DECIDES = "decides"
    NOTHING = "nothing"
    BEYOND = "beyond"


class Setting(Struct, frozen=True):
    """One setting, as people give it.

    form: of its values. help: what it does, in one line of Markdown. in_api: whether it means
    something for one array against another. option: what the option of `ciwrap compare` and
    `capture` is said to be; None without one. field: of VariableSettings; the parts of a bound
    share one. default: if nobody says anything.
    """

    form: Form
    help: str
    on_trees: OnTrees
    in_api: bool = False
    option: str | None = None
    name: str = ""
    field: str = ""
    default: Any = None

    @property
    def default_text(self) -> str:
        """The default as one would write it; `none` where there is nothing to write."""
        if self.default is None or self.default == ():
            return "none"
        if isinstance(self.default, bool):
            return str(self.default).lower()
        if self.form in (CHUNK_BYTES, BUDGET):
            return size_text(self.default)
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


def _stated(
    form: Form, text: str, on_trees: OnTrees, *, in_api: bool = False, option: str | None = None
) -> tuple[Setting, ...]:
    """The statement of a field that is one setting."""
    return (Setting(form, text, on_trees, in_api, option),)


# One field, and three settings: whoever sets one of them sets all.
_BOUND_PARTS = tuple(
    Setting(form, text, OnTrees.DECIDES, in_api=True, option=option, name=name)
    for name, form, text, option in (
        (
            "atol",
            BOUND_PART,
            "the bound: v matches its golden g if abs(v - g) <= atol + rtol * abs(g)",
            "Absolute error bound.",
        ),
        (
            "rtol",
            BOUND_PART,
            "its part that grows with the golden value",
            "Relative error bound (of the values in A).",
        ),
        (
            "ulps",
            ULPS,
            "at most this many representable values apart, in place of `atol` and `rtol`",
            "Bound in units in the last place; excludes others.",
        ),
    )
)
_EVIDENCE_WORDS = tuple(policy.value for policy in EvidencePolicy)


class VariableSettings(Struct, frozen=True):
    """How one variable is captured and compared, with all defaults filled in.

    align_by: None also where the configuration says `none`. strict_dtype, strict_shape: whether
    another dtype or shape is an error at once (a relaxed dtype is compared after an exact
    conversion only); strict_count: whether series of a text need the same number of elements; these
    are a check's.
    """

    bound: ErrorBound = ErrorBound()
    residue_levels: int = 15
    chunk_bytes: int = 4096
    evidence: EvidencePolicy = EvidencePolicy.AUTO
    # The data themselves are the best evidence: exact counts and indices. Within this budget a
    # golden of some dozen variables still is a small commit.
    data_budget_bytes: int = 256 * 1024
    # Residues decide as surely as the data (a tree alone cannot tell noise from a change) at an
    # eighth of float32 and a sixteenth of float64 data, so more may be spent before a tree alone is
    # all that is kept: this holds the residues of some 60 MB of float32, or of 10 million float64.
    residues_budget_bytes: int = 8 * 1024 * 1024
    equal_nan: bool = True
    fill_values: tuple[float | int, ...] = ()
    mask: str | None = None
    align_by: str | None = None
    across_ranks: bool = False
    period: tuple[float, ...] = ()
    mixed_precision: bool = False
    combine: str = "sum"
    strict_dtype: bool = True
    strict_shape: bool = True
    strict_count: bool = True

    @classmethod
    def of(cls, *layers: SettingsLayer, **more: Any) -> VariableSettings:
        """The settings that layers of them make, a later one over an earlier one.

        more: fields that no layer can say.
        """
        for layer in layers:
            more |= layer.said
        return cls(**more)

    @property
    def is_plain(self) -> bool:
        """Whether the bound is their sum, and numbers are compared as they are."""
        return not (self.period or self.mixed_precision or self.combine != "sum")

    @property
    def has_own_trees(self) -> bool:
        """Whether the variable is compared number by number with its namesake, so that trees tell;
        not with a mask, nor in any other way that looks beyond the variable itself.
        """
        return all(getattr(self, one.field) == one.default for one in _BEYOND_TREES)


# By field; those of a check alone have none.
_STATEMENTS = {
    "bound": _BOUND_PARTS,
    "residue_levels": _stated(
        RESIDUE_LEVELS,
        "1, or odd from 3 to 255: how finely a golden's residues tell; 15 costs 4 bits a value"
        " and lets up to 87 % of the bound pass for certain",
        OnTrees.DECIDES,
        in_api=True,
    ),
    "chunk_bytes": _stated(
        CHUNK_BYTES,
        "bytes per leaf of the tree, 64 bytes to 16 MiB",
        OnTrees.DECIDES,
        in_api=True,
    ),
    "evidence": _stated(
        one_of(*_EVIDENCE_WORDS, meaning=EvidencePolicy),
        "what a golden keeps: `data`, `residues`, `tree`, or the first of them that fits its"
        " budget",
        OnTrees.NOTHING,
        in_api=True,
    ),
    "data_budget_bytes": _stated(
        BUDGET,
        "compressed size up to which `auto` keeps a variable's data",
        OnTrees.NOTHING,
    ),
    "residues_budget_bytes": _stated(
        BUDGET,
        "compressed size up to which `auto` keeps its residues",
        OnTrees.NOTHING,
    ),
    "equal_nan": _stated(FLAG, "whether NaN equals NaN", OnTrees.DECIDES, in_api=True),
    "fill_values": _stated(
        FILL_VALUES,
        'up to 16 numbers that mean "missing"; missing equals missing only. They are rounded to'
        " the variable's type; NaN may be among them",
        OnTrees.DECIDES,
        in_api=True,
    ),
    "mask": _stated(
        TEXT,
        "name of a boolean variable of the same shape, iteration and rank, whose true elements"
        " count as zero on both sides; it is itself compared",
        OnTrees.BEYOND,
    ),
    "align_by": _stated(
        TEXT,
        "id variable that orders the rows on both sides; `none` for a variable that has no such"
        " rows",
        OnTrees.BEYOND,
        option="Id variable that puts the rows of both sides in order.",
    ),
    "across_ranks": _stated(
        FLAG,
        "whether the rows of all ranks are aligned together; the result then has no rank",
        OnTrees.NOTHING,  # by itself: what it changes, align_by has begun
        option="Align the rows of all ranks together.",
    ),
    "period": _stated(
        PERIODS,
        "differences are modulo this: a number, or a list with one for each component of the"
        " last axis (0: none); goes with `atol` alone",
        OnTrees.BEYOND,
        in_api=True,
    ),
    "mixed_precision": _stated(
        FLAG,
        "float32 on one side and float64 on the other: both are rounded to float32, and the"
        " bound holds there",
        OnTrees.NOTHING,  # trees are held against each other within one dtype only
        in_api=True,
        option="Compare float32 with float64, both as float32.",
    ),
    "combine": _stated(
        one_of("sum", "both", "either"),
        "how `atol` and `rtol` make one bound: their `sum`; the smaller one, so that `both`"
        " have to hold; or the larger one, so that `either` is enough. Goldens need their data"
        " for the latter two",
        OnTrees.BEYOND,
    ),
}


class SettingArguments(TypedDict, total=False):
    """The settings as keywords, for those who check types; None says nothing."""

    atol: float | None
    rtol: float | None
    ulps: int | None
    residue_levels: int | None
    chunk_bytes: int | None
    evidence: str | None
    data_budget_bytes: int | None
    residues_budget_bytes: int | None
    equal_nan: bool | None
    fill_values: float | Sequence[float] | None
    mask: str | None
    align_by: str | None
    across_ranks: bool | None
    period: float | Sequence[float] | None
    mixed_precision: bool | None
    combine: str | None


def _settings() -> dict[str, Setting]:
    plain = VariableSettings()
    found = {}
    for field_name, stated in _STATEMENTS.items():
        for one in stated:
            name = one.name or field_name
            default = getattr(plain.bound if one.name else plain, name)
            found[name] = replace(one, name=name, field=field_name, default=default)
    return found


# In the order in which they are stated, by name.
SETTINGS: Mapping[str, Setting] = _settings()
BOUND_PARTS = tuple(name for name, one in SETTINGS.items() if one.field == _BOUND)
_BEYOND_TREES = tuple(one for one in SETTINGS.values() if one.on_trees is OnTrees.BEYOND)


class SettingsLayer(Struct, frozen=True):
    """What one place says of a variable's settings, by field of VariableSettings."""

    said: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SettingsLayer:
        """A layer of settings by name, whose values have their forms. Raises InvalidBoundError."""
        said = dict(values)
        parts = {name: said.pop(name) for name in BOUND_PARTS if name in said}
        if parts:
            said[_BOUND] = ErrorBound(**parts)
        if said.get("align_by") == NO_ALIGNMENT:
            said["align_by"] = None
        return cls(said)

    @classmethod
    def from_arguments(
        cls, arguments: Mapping[str, Any], where: str, beside: Iterable[str] = ()
    ) -> SettingsLayer:
        """A layer of keyword arguments; those that are None say nothing.

        where, beside, and what is raised: as in `ciwrap.model.forms.read_arguments`.
        """
        forms = {name: one.form for name, one in SETTINGS.items()}
        return cls.of(read_arguments(arguments, forms, where, beside))

    def over(self, settings: VariableSettings) -> VariableSettings:
        """The settings with what this layer says put over them."""
        return replace(settings, **self.said) if self.said else settings
