"""The JSON Schema of the documents that commands write, made of the types of what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap import details
from ciwrap.documents.schema import Schema
from ciwrap.model import VariableResult
from ciwrap.report.document import ALWAYS, BESIDE, SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ROOT = {"pattern": "^[0-9a-f]{32}$"}
# What fields of these names are held to besides their types.
_NAMES: Mapping[str, Mapping[str, Any]] = {
    "root": _ROOT,
    "golden_root": _ROOT,
    "exit_code": {"minimum": -64},  # a command that a signal ended
    "bound_share_histogram": {
        "minItems": details.SHARE_CLASSES,
        "maxItems": details.SHARE_CLASSES,
    },
    "runs": {"maxItems": details.MOST_RUNS},
    "tree_levels": {"maxItems": details.MOST_LEVELS},
    "worst_elements": {"maxItems": details.MOST_WORST},
    "share_maps": {"maxItems": details.MOST_MAPS},
    "explanations": {"maxItems": details.MOST_EXPLANATIONS},
}


def _if_verdict(verdict: str, then: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"if": {"properties": {"verdict": {"const": verdict}, **more}}, "then": then}


# What a verdict asks of a variable's other fields, as the record itself does when it is made.
_CONDITIONS: Mapping[type, Mapping[str, Any]] = {
    VariableResult: {
        "allOf": [
            _if_verdict(
                "match",
                {
                    "properties": {
                        "differing_count": {"const": 0},
                        "evidence": {"type": "string"},
                        "element_count": {"type": "integer"},
                    }
                },
            ),
            _if_verdict(
                "not_comparable",
                {"required": ["reason"], "properties": {"reason": {"minLength": 1}}},
            ),
            _if_verdict(
                "suspect",
                {"required": ["differing_count_at_least", "differing_count_at_most"]},
            ),
            _if_verdict(
                "differ",
                {"required": ["differing_count_at_least", "differing_count_at_most"]},
                differing_count={"const": None},
            ),
        ]
    }
}


def document_schema(kinds: Sequence[type]) -> dict[str, Any]:
    """The schema of a document that is one of several kinds of records."""
    schema = Schema(ALWAYS, BESIDE, _NAMES, _CONDITIONS)
    references = [schema.reference(kind) for kind in kinds]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"ciwrap JSON documents, schema version {SCHEMA_VERSION}",
        "description": (
            "What every command writes with --json. Later releases of schema version"
            f" {SCHEMA_VERSION} may add fields, never change or remove one; a reader should pass"
            " over what it does not know."
        ),
        "anyOf": references,
        "$defs": schema.definitions,
    }
