"""The few YAML forms a manifest is written in:

one line per fact, the same bytes for the same facts.
"""

from __future__ import annotations

import json
import re

_PLAIN = re.compile(r"[A-Za-z_<>|][A-Za-z0-9_<>|./+=()-]*(?: [A-Za-z0-9_<>|./+=()-]+)*")
# What YAML 1.1 or 1.2 reads as something other than text.
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})
_BLOCK_INDICATOR = re.compile(r"^[<>|]")
# JSON leaves these as they are; a YAML reader refuses them unescaped or takes them for line breaks.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")

Scalar = str | int | float | None


def scalar(value: Scalar) -> str:
    """One value as a YAML flow scalar. Text is left plain where no reader can mistake it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if (
        _PLAIN.fullmatch(value)
        and not _BLOCK_INDICATOR.match(value)
        and value.lower() not in _WORDS
    ):
        return value
    return quoted(value)


def quoted(text: str) -> str:
    """Text in double quotes, which JSON and YAML read alike."""
    return _UNPRINTABLE.sub(
        lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False)
    )


def _number(value: float) -> str:
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    text = repr(value)
    # YAML 1.1 takes 1e-06 for text: it wants a point in the mantissa.
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text
