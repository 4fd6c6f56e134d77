"""The schema of records: their types, and what their docstrings say of their fields."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from pathlib import Path
from typing import Annotated, Literal

import jsonschema
import msgspec
import pytest

from ciwrap.base.documents import to_plain, to_record

ROOT = Path(__file__).resolve().parents[2]
Schema = runpy.run_path(str(ROOT / "tools/generate-result-schema"))["Schema"]


class Colour(str, Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Part:
    """One part, which knows: nothing. size: in bytes; None: unknown. first, last: its ends.

    Raises ValueError for nothing. kind: not a field.
    """

    size: int | None = None
    first: Annotated[str, msgspec.Meta(pattern="^a")] = "a"
    last: str = "z"


class Whole(msgspec.Struct, frozen=True):
    """All of it."""

    name: str
    kind: Literal["whole"]
    share: Real | None
    level: float = 0.0
    colour: Colour = Colour.RED
    counts: tuple[int, ...] = ()
    pair: tuple[str, int] | None = None
    parts: tuple[Part, ...] = ()
    words: Mapping[str, str] = msgspec.field(default_factory=dict)
    is_large: bool = False


class Head(msgspec.Struct, frozen=True):
    """version: of the document."""

    version: Literal[1]


ALWAYS = {Part: frozenset({"size"})}


def schema() -> dict[str, object]:
    made = Schema(ALWAYS, {Whole: Head}, {"last": {"minLength": 1}}, {Part: {"maxProperties": 9}})
    reference = made.reference(Whole)
    return {**reference, "$defs": made.definitions}


def test_the_definitions_of_records() -> None:
    definitions = schema()["$defs"]
    assert isinstance(definitions, dict)
    assert definitions["Part"] == {
        "description": "One part, which knows: nothing.",
        "type": "object",
        "additionalProperties": False,
        "required": ["size"],
        "properties": {
            "size": {
                "anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
                "description": "in bytes; null: unknown",
            },
            "first": {"type": "string", "pattern": "^a", "description": "its ends"},
            "last": {"type": "string", "minLength": 1, "description": "its ends"},
        },
        "maxProperties": 9,
    }
    whole = definitions["Whole"]
    assert whole["required"] == ["version", "name", "kind", "share"]
    assert whole["properties"] == {
        "version": {"const": 1, "description": "of the document"},
        "name": {"type": "string"},
        "kind": {"const": "whole"},
        "share": {"anyOf": [{"$ref": "#/$defs/number"}, {"type": "null"}]},
        "level": {"type": "number"},
        "colour": {"enum": ["red", "blue"]},
        "counts": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "pair": {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"type": "integer", "minimum": 0}],
            "items": False,
            "minItems": 2,
        },
        "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
        "words": {"type": "object", "additionalProperties": {"type": "string"}},
        "is_large": {"type": "boolean"},
    }


WHOLE = Whole(
    "x",
    "whole",
    float("inf"),
    0.5,
    Colour.BLUE,
    (1, 2),
    ("a", 1),
    (Part(), Part(3, "ab")),
    {"a": "b"},
)


@pytest.mark.parametrize("record", [WHOLE, Whole("y", "whole", None)])
def test_what_is_written_fits_the_schema_and_comes_back(record: Whole) -> None:
    plain = to_plain(record, ALWAYS)
    jsonschema.Draft202012Validator(schema()).validate({"version": 1, **plain})
    assert to_record(plain, Whole) == record


def test_fields_at_their_default_are_left_out() -> None:
    assert to_plain(Whole("y", "whole", None), ALWAYS) == {
        "name": "y",
        "kind": "whole",
        "share": None,
    }
    assert to_plain(Part(), ALWAYS) == {"size": None}
    assert to_plain((Part(last="y"), float("nan"), Colour.RED), {}) == [
        *({"last": "y"}, "nan", "red"),
    ]


def test_what_has_no_form_in_a_document() -> None:
    with pytest.raises(TypeError, match="object has no form in a document"):
        to_plain(object(), {})
