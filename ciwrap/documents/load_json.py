"""JSON of which nothing is trusted, as plain values."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn

from ciwrap.documents.doubles import double_of
from ciwrap.documents.records import DocumentError

# A value takes some 70 bytes of memory, however few it takes in the text.
MOST_VALUES = 4_000_000
_MOST_DIGITS = 40


def load_json(data: bytes, *, most_values: int = MOST_VALUES, takes_constants: bool = False) -> Any:
    """The plain values of a document.

    Refuses keys given twice, NaN and infinities, numbers beyond a double's range or of more than 40
    characters, and nesting beyond what Python's stack takes. The caller limits the bytes.
    takes_constants: whether NaN, Infinity and -Infinity are numbers, as Python's own writer has
    them. Raises DocumentError.
    """
    if data.count(b",") + data.count(b"[") + data.count(b"{") > most_values:
        raise DocumentError(f"holds more than {most_values} values")
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_int=_integer,
            parse_float=double_of,
            parse_constant=float if takes_constants else _constant,
        )
    except UnicodeDecodeError:
        raise DocumentError("is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise DocumentError(f"is not JSON: {error.msg} in line {error.lineno}") from None
    except RecursionError:
        raise DocumentError("is nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(name for name, _ in pairs)
        name, _ = times.most_common(1)[0]
        raise DocumentError(f"has the key {name[:100]!r} twice")
    return found


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise DocumentError("holds a number that is too long")
    return int(text)


def _constant(text: str) -> NoReturn:
    raise DocumentError(f"holds {text}, which JSON does not know")
