"""The published schema of results, compiled once: every document that a test sees is held to it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jsonschema_rs

SCHEMA = json.loads(
    (Path(__file__).parents[1] / "docs/reference/result.schema.json").read_text(encoding="utf-8")
)


@cache
def validator() -> jsonschema_rs.Draft202012Validator:
    """Of a library that compiles schemas: the one in Python takes two hundred times as long.
    `unit/test_report_document.py` holds the two against each other.
    """
    return jsonschema_rs.Draft202012Validator(SCHEMA)
