"""Lines of a file that small goldens share, whatever they hold: each with its own check sum.

A line is a JSON value, a space, and eight characters of a hash of the value's text, so that git can
merge what two branches add, and damage of any line is seen. The first line names the format, the
last one says that nothing is cut off. Between them stand, by kind, what many goldens have in
common, called by its check sum, and then the goldens in the order of their names. What a golden's
line says is in `shared_text`.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from typing import TYPE_CHECKING, Any

from ciwrap.documents import DocumentError, to_plain, to_record
from ciwrap.documents.load_json import load_json
from ciwrap.golden.manifest import Record, Root

if TYPE_CHECKING:
    from collections.abc import Iterable

    import msgspec

FORMAT = 1
_SUM_BYTES = 6
HEADER = (
    f'{{"ciwrap goldens":{FORMAT},"note":"Small goldens of one test file. Do not edit; `ciwrap show'
    ' FILE` prints the numbers."}'
).encode()
END = b'{"end":true}'
HEAD_START = b'{"ciwrap goldens":'
# What is wrong with a line that somebody has to mend.
OF_MERGE = "is of a merge that is not resolved"
OF_WINDOWS = "ends as on Windows (as git makes lines end with core.autocrlf)"
_DROP_START = b'{"drop":'
TABLES = ("environment", "accepted", "form")
_DECODER = json.JSONDecoder()


class Drop(Record, frozen=True):
    """A golden is gone, or has moved into a pair of files if these have the root `moved_to`."""

    drop: str
    moved_to: Root | None = None


def sum_of(body: bytes) -> str:
    digest = hashlib.blake2b(body, digest_size=_SUM_BYTES).digest()
    return base64.urlsafe_b64encode(digest).decode()


def line_of(body: bytes) -> bytes:
    return b"%b %b\n" % (body, sum_of(body).encode())


def body_of(line: bytes) -> tuple[bytes, str]:
    """A line's value, as text, and its sum. Raises DocumentError for a damaged one."""
    body, _, said = line.rpartition(b" ")
    found = sum_of(body)
    if found.encode() != said:
        raise DocumentError(_what_is_wrong(line))
    return body, found


def _what_is_wrong(line: bytes) -> str:
    if is_of_merge(line):
        return OF_MERGE
    body, _, said = line.rpartition(b" ")
    return OF_WINDOWS if said == sum_of(body).encode() + b"\r" else "is damaged"


def is_of_merge(line: bytes) -> bool:
    """Whether a line is what git puts between the two sides of a merge."""
    return line.startswith((b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||"))


def text_of(lines: Iterable[bytes]) -> bytes:
    """A whole file of these bodies."""
    return b"".join(line_of(body) for body in (HEADER, *lines, END))


def version_of(body: bytes) -> int | None:
    """The format that a head line states; None for another line."""
    if not body.startswith(HEAD_START):
        return None
    found = load_json(body).get("ciwrap goldens")
    return found if isinstance(found, int) else None


def golden_name(body: bytes) -> str | None:
    """The golden that a line is of; None for another line. Raises DocumentError."""
    if not body.startswith(b"["):
        return None
    name = None
    # Only a text is looked at here: lists in lists without end would be the end of the reader.
    if body.startswith(b'["'):
        with contextlib.suppress(ValueError):
            name, _ = _DECODER.raw_decode(body.decode(), 1)
    if not isinstance(name, str) or not name:
        raise DocumentError("has no name")
    return name


def drop_of(body: bytes) -> Drop | None:
    """What a line takes away; None for one of another kind. Raises DocumentError."""
    if not body.startswith(_DROP_START):
        return None
    return to_record(load_json(body), Drop)


def drop_line(drop: Drop) -> bytes:
    return json_line(plain(drop))


def table_kind(body: bytes) -> str | None:
    return next((kind for kind in TABLES if body.startswith(f'{{"{kind}":'.encode())), None)


def plain(record: msgspec.Struct) -> Any:
    """A record as plain values, without what is at its default."""
    return to_plain(record, {})


def json_line(value: Any, *, is_spaced: bool = False) -> bytes:
    """One line of UTF-8. Raises UnicodeEncodeError for half a surrogate pair."""
    separators = (", ", ": ") if is_spaced else (",", ":")
    text = json.dumps(value, ensure_ascii=False, separators=separators, allow_nan=False)
    return text.encode()
