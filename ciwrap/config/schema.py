"""What ciwrap.yaml may hold: the one place that names its keys.

The descriptions end up in the JSON Schema, which editors show.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping  # noqa: TC003 - pydantic reads annotations when it runs
from typing import Annotated, Any, Union

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from ciwrap.config.scalars import (
    AnyText,
    BoundPart,
    Budget,
    ByteOrder,
    ChunkBytes,
    ColumnType,
    DuplicatesWord,
    EvidenceWord,
    FillValues,
    Flag,
    FormatVersion,
    HeaderWord,
    JsonForm,
    Length,
    Offset,
    Periods,
    ResidueLevels,
    Seconds,
    StepSize,
    Text,
    Texts,
    Ulps,
    command_words,
    lengths,
    refusal,
    shown,
)

OWN_FORMATS = ("npy", "npz", "raw", "text", "hdf5", "netcdf", "zarr",
    "parquet", "safetensors", "dcd", "gromacs", "fits", "vtk",
    "adios2", "veloc",
)  # fmt: skip


class Section(BaseModel):
    """A mapping with known keys; anything else is an error that offers the nearest one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, value: Any) -> Any:
        if isinstance(value, cls):
            return value
        value = cls.from_short_form(value)
        if value is None:
            raise refusal("is empty; fill it in or remove it", at_key=True)
        if not isinstance(value, dict):
            raise refusal(f"must be a mapping of keys to values, not {shown(value)}")
        for key in value:
            if key not in cls.model_fields:
                near = difflib.get_close_matches(key, list(cls.model_fields), 1, 0.5)
                known = "" if near else f" (known here: {', '.join(cls.model_fields)})"
                raise refusal(
                    f"unknown key{known}", keys=[key], suggestion=near[0] if near else None
                )
            if value[key] is None:
                raise refusal("is empty; fill it in or remove it", keys=[key])
        return value

    @classmethod
    def from_short_form(cls, value: Any) -> Any:
        """A section may be written shorter; this gives its long form."""
        return value


class BoundSection(Section):
    """Settings that apply to values."""

    atol: BoundPart | None = Field(None, description="absolute part of the error bound")
    rtol: BoundPart | None = Field(
        None,
        description="relative part of the error bound: |v - g| <= atol + rtol |g|",
    )
    ulps: Ulps | None = Field(
        None, description="bound in representable values; excludes atol and rtol"
    )
    residue_levels: ResidueLevels | None = Field(
        None, description="1 (plain tree) or odd, 3 to 255; 15 costs 4 bits a value"
    )
    chunk_bytes: ChunkBytes | None = Field(
        None, description="bytes per chunk, 64 to 16 MiB; also as '4 KiB'"
    )
    evidence: EvidenceWord | None = Field(None, description="what a golden keeps of each variable")
    data_budget_bytes: Budget | None = Field(
        None, description="compressed size up to which evidence 'auto' keeps the data"
    )
    residues_budget_bytes: Budget | None = Field(
        None, description="compressed size up to which evidence 'auto' keeps residues"
    )
    equal_nan: Flag | None = Field(None, description="whether NaN equals NaN")
    fill_values: FillValues | None = Field(
        None, description="values that mean 'missing'; missing equals missing only"
    )
    mask: Text | None = Field(
        None, description="boolean variable whose true elements count as zero on both sides"
    )
    align_by: Text | None = Field(
        None, description="id variable that orders the rows on both sides; 'none' for none"
    )
    across_ranks: Flag | None = Field(
        None, description="whether the rows of all ranks are aligned together"
    )
    period: Periods | None = Field(
        None, description="period of the values: a number, or one for each component (0: none)"
    )
    mixed_precision: Flag | None = Field(
        None, description="compare float32 with float64, both rounded to float32"
    )

    @model_validator(mode="after")
    def _exclude_ulps(self) -> BoundSection:
        if self.ulps:
            for name in ("atol", "rtol"):
                if getattr(self, name):
                    raise refusal("ulps excludes atol and rtol", keys=["ulps"], other_key=name)
        return self


class RunSection(Section):
    """A command to run before checking."""

    command: Annotated[
        str | tuple[str, ...],
        BeforeValidator(command_words),
        JsonForm(
            anyOf=[
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ]
        ),
    ] = Field(description="a text for the shell, or a list of words without one")
    working_dir: Text = Field(".", description="where it runs, from the configuration's folder")
    timeout_seconds: Seconds | None = Field(None, description="after which it is ended")
    env: Mapping[str, AnyText] = Field(
        default_factory=dict, description="environment variables to set"
    )

    @classmethod
    def from_short_form(cls, value: Any) -> Any:
        return {"command": value} if isinstance(value, (str, list)) else value


class StrictSection(Section):
    """Which mismatches make a check not comparable."""

    dtype: Flag = Field(True, description="another dtype")
    shape: Flag = Field(True, description="another shape")
    variables: Flag = Field(True, description="variables missing or extra")


class RegionSection(Section):
    """A region of a VELOC checkpoint."""

    dtype: Text = Field(description="such as float64")
    shape: Annotated[tuple[Length, ...], BeforeValidator(lengths)] | None = Field(
        None, description="lengths; one may be -1"
    )
    name: Text | None = Field(None, description="what the variable is called")

    @classmethod
    def from_short_form(cls, value: Any) -> Any:
        return {"dtype": value} if isinstance(value, str) else value


class OptionsSection(Section):
    """Options of ciwrap's own readers."""

    dtype: Text | None = Field(None, description="raw: such as float32, '>f8', bfloat16")
    shape: (
        Annotated[
            tuple[Length, ...],
            BeforeValidator(lengths),
        ]
        | None
    ) = Field(None, description="raw: lengths; one may be -1 (as the file's size says)")
    offset: Offset | None = Field(None, description="raw: bytes before the array")
    byte_order: ByteOrder | None = Field(None, description="raw: little (default) or big")
    delimiter: AnyText | None = Field(None, description="text: between columns; 'space' for blanks")
    header: HeaderWord | None = Field(
        None, description="text: whether the first line names columns"
    )
    comment: AnyText | None = Field(None, description="text: what comment lines begin with")
    types: Mapping[str, ColumnType] | None = Field(None, description="text: types of columns")
    empty_is_nan: Flag | None = Field(None, description="text: read empty cells as NaN")
    final_newline: Flag | None = Field(
        None, description="text: a last line without a line break is an error (true)"
    )
    iterations: Text | None = Field(
        None, description="files with a history: 'auto', 'none', or the dimension that is time"
    )
    iteration_variable: Text | None = Field(
        None, description="files with a history: the variable whose values number the iterations"
    )
    iteration_step: StepSize | None = Field(
        None, description="files with a history: what one iteration adds to that variable"
    )
    attributes: Flag | None = Field(
        None, description="compare attributes, too, where the format has them (false)"
    )
    regions: Mapping[str, RegionSection] | None = Field(
        None, description="veloc: dtype, and name and shape, of each region by its id"
    )


class CheckSection(BoundSection):
    """One check."""

    outputs: Texts = Field(
        description="files, folders, globs, or templates such as out/iter_{iteration:d}/{name}.npy"
    )
    exclude: Texts = Field((), description="files to leave out, as globs")
    layout: Text | None = Field(
        None, description="where iteration, rank and name are in a path, if 'outputs' does not say"
    )
    format: Text | None = Field(None, description="the reader, if the suffix does not tell")
    options: (
        Annotated[
            Mapping[str, Any],
            # Foreign readers have options of their own; see `loading.schema`.
            JsonForm(type="object"),
        ]
        | None
    ) = Field(None, description="options of the reader")
    run: RunSection | None = Field(None, description="a command of this check's own")
    ignore: Texts = Field((), description="variables to leave out, as names or globs")
    duplicates: DuplicatesWord | None = Field(
        None, description="which counts of what was written twice: an error, the first, the last"
    )
    strict: StrictSection | None = Field(None, description="which mismatches are errors")
    variables: Mapping[str, BoundSection] = Field(
        default_factory=dict,
        description="settings by name or glob; of several that match, the last counts, and a name"
        " before any glob",
    )


class NamedCheckSection(CheckSection):
    """One check of a list."""

    name: Text = Field(description="the check's name")


def _checks_tag(value: Any) -> str:
    return "list" if isinstance(value, (list, tuple)) else "mapping"


class ConfigSection(Section):
    """ciwrap.yaml"""

    version: FormatVersion = Field(1, description="version of this format")
    golden_dir: Text = Field("golden", description="folder of the goldens")
    defaults: BoundSection | None = Field(None, description="settings for all checks")
    run: RunSection | None = Field(None, description="the command that makes the outputs")
    checks: Annotated[
        Union[  # noqa: UP007 - X | Y cannot hold discriminated tags
            Annotated[Mapping[str, CheckSection], Tag("mapping")],
            Annotated[tuple[NamedCheckSection, ...], Tag("list")],
        ],
        Discriminator(_checks_tag),
    ] = Field(description="the checks, by name")


__all__ = ["OWN_FORMATS", "BoundSection", "ConfigSection", "OptionsSection"]
