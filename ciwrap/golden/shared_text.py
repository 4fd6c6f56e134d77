"""The text of small goldens that share a file: a line each, and each with its own check sum.

A line is a JSON value, a space, and eight characters of a hash of the value's text, so that git can
merge what two branches add, and damage of any line is seen. The first line names the format, the
last one says that nothing is cut off. Between them stand, by kind, what many goldens have in
common, called by its check sum, and then the goldens in the order of their names:

    {"environment": {...}}
    {"accepted": {"when": ..., "who": ..., "why": ..., "commit": ...}}
    {"form": {"environment": SUM, "variables": [{"name": ..., "dtype": ..., "atol": ...}], ...}}
    [NAME, FORM, ACCEPTED, DATA]

ACCEPTED is a list where a golden was replaced. DATA is the variables' own bytes in base64 (without
padding), after a `~` deflated where that is shorter. Trees and
roots are not kept, since they follow from the data and the bounds.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import zlib
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from ciwrap import _core
from ciwrap.arrays.dtypes import storage_dtype
from ciwrap.documents import DocumentError, to_plain, to_record
from ciwrap.documents.load_json import load_json
from ciwrap.errors import CiwrapError
from ciwrap.golden.manifest import (
    Acceptance,
    BinaryFile,
    Manifest,
    PendingOrigin,
    Root,
    rows_of,
)
from ciwrap.model import VariableId
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FORMAT = 1
# Beyond some 3 kB the base64 takes more bytes than a pair of files does, and more to read for all.
MOST_DATA_BYTES = 4096
_MOST_RESULT_BYTES = 4 << 20
_SUM_BYTES = 6
_DEFLATED = "~"
HEADER = (
    f'{{"ciwrap goldens":{FORMAT},"note":"Small goldens of one test file. Do not edit; `ciwrap show'
    ' FILE` prints the numbers."}'
).encode()
END = b'{"end":true}'
HEAD_START = b'{"ciwrap goldens":'
_DROP_START = b'{"drop":'
TABLES = ("environment", "accepted", "form")


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping of which every key is known."""


class _Variable(_Record, frozen=True, kw_only=True):
    """One variable of a form: what its tree is made with. fill_values: as texts."""

    name: str
    iteration: int | None = None
    rank: int | None = None
    dtype: str
    shape: tuple[int, ...]
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0
    equal_nan: bool = True
    fill_values: tuple[str, ...] = ()
    chunk_bytes: int = 4096
    arity: int = 16
    labels: dict[str, str] = {}


class _Form(_Record, frozen=True):
    """What goldens are of, without their numbers. environment: the sum of an `environment` line."""

    environment: str
    variables: tuple[_Variable, ...]
    ignored: tuple[str, ...] = ()


class _Accepted(_Record, frozen=True, kw_only=True):
    """What acceptances of many goldens have in common."""

    when: str
    who: str
    why: str
    commit: str | None = None
    actor: str | None = None
    run: str | None = None


class _Entry(_Record, frozen=True, kw_only=True):
    """One acceptance of one golden. by: the sum of an `accepted` line."""

    by: str
    new_root: Root
    old_root: Root | None = None
    share: float | None = None
    bounds: tuple[str, ...] = ()


class _More(_Record, frozen=True, kw_only=True):
    """Of a golden that waits. result: the document of its comparison, deflated, in base64."""

    pending: PendingOrigin
    result: str = ""


class Drop(_Record, frozen=True):
    """A golden is gone, or has moved into a pair of files if these have the root `moved_to`."""

    drop: str
    moved_to: Root | None = None


class Shared(Struct, frozen=True):
    """A golden of a shared file. result: the document kept with one that waits."""

    manifest: Manifest
    variables: tuple[_core.GoldenVariable, ...]
    byte_count: int
    result: str | None


class Line(Struct, frozen=True):
    """A golden as a line. tables: the common lines that it needs, by their sums. golden: what is
    read out of it.
    """

    body: bytes
    tables: dict[str, bytes]
    golden: Shared


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
        is_merge = is_of_merge(line)
        raise DocumentError("is of a merge that is not resolved" if is_merge else "is damaged")
    return body, found


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


_DECODER = json.JSONDecoder()


def drop_of(body: bytes) -> Drop | None:
    """What a line takes away; None for one of another kind. Raises DocumentError."""
    if not body.startswith(_DROP_START):
        return None
    return to_record(load_json(body), Drop)


def drop_line(drop: Drop) -> bytes:
    return _json(_plain(drop))


def table_kind(body: bytes) -> str | None:
    return next((kind for kind in TABLES if body.startswith(f'{{"{kind}":'.encode())), None)


def tables_of(body: bytes, tables: Mapping[str, bytes]) -> set[str]:
    """The sums of all common lines that a golden's line needs."""
    plain = _plain_golden(body)
    found = {plain.form, *(one.by if isinstance(one, _Entry) else one for one in plain.entries)}
    if table_kind(tables.get(plain.form, b"")) == "form":
        found.add(_table(tables, plain.form, "form", _Form).environment)
    return found


class _Golden(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    name: str
    form: str
    log: str | tuple[str | _Entry, ...]
    data: str
    more: _More | None = None

    @property
    def entries(self) -> tuple[str | _Entry, ...]:
        return (self.log,) if isinstance(self.log, str) else self.log


def _plain_golden(body: bytes) -> _Golden:
    return to_record(load_json(body), _Golden)


def _table(tables: Mapping[str, bytes], name: str, kind: str, record: Any) -> Any:
    body = tables.get(name)
    if body is None or table_kind(body) != kind:
        raise DocumentError(f"names a line {name[:20]!r} with its {kind}, which is not there")
    return _read_table(body, kind, record)


@lru_cache(64)
def _read_table(body: bytes, kind: str, record: Any) -> Any:
    """A common line is read once, however many goldens name it."""
    return to_record(load_json(body)[kind], record)


def decode(body: bytes, tables: Mapping[str, bytes], file_name: str) -> Shared:
    """The golden of a line. file_name: of the shared file. Raises DocumentError."""
    try:
        return _decode(body, tables, file_name)
    except (CiwrapError, ValueError, TypeError) as error:
        # A bound, a type or a shape that the core or NumPy refuses.
        if isinstance(error, DocumentError):
            raise
        raise DocumentError(f"holds what cannot be a golden: {error}") from None


def _decode(body: bytes, tables: Mapping[str, bytes], file_name: str) -> Shared:
    plain = _plain_golden(body)
    form: _Form = _table(tables, plain.form, "form", _Form)
    variables = _variables(form, _unpack(plain.data, MOST_DATA_BYTES))
    encoded = _core.encode_golden(variables)
    root = _core.golden_root(encoded).hex()
    log: list[Acceptance] = []
    for one in plain.entries:
        entry = one if isinstance(one, _Entry) else _Entry(by=one, new_root=root)
        common: _Accepted = _table(tables, entry.by, "accepted", _Accepted)
        log.append(_acceptance(entry, common))
    if log and log[-1].new_root != root:
        raise DocumentError("holds other numbers than were accepted")
    if not log and plain.more is None:
        raise DocumentError("does not say who accepted it")
    labels = {
        VariableId(one.name, one.iteration, one.rank): tuple(sorted(one.labels.items()))
        for one in form.variables
    }
    manifest = Manifest(
        check=plain.name,
        binary=BinaryFile(file_name, root, len(encoded)),
        variables=rows_of(variables, labels),
        environment=dict(_table(tables, form.environment, "environment", dict[str, str])),
        accepted=tuple(log),
        pending=None if plain.more is None else plain.more.pending,
        ignored=form.ignored,
    )
    result = None
    if plain.more is not None and plain.more.result:
        result = _unpack(plain.more.result, _MOST_RESULT_BYTES).decode()
    return Shared(manifest, tuple(variables), len(encoded), result)


def _acceptance(entry: _Entry, common: _Accepted) -> Acceptance:
    said = structs.asdict(common)
    return Acceptance(
        **said,
        new_root=entry.new_root,
        old_root=entry.old_root,
        largest_bound_share=entry.share,
        bounds=entry.bounds,
    )


def _variables(form: _Form, data: bytes) -> list[_core.GoldenVariable]:
    """Data and descriptions as goldens hold them, with their trees. Raises DocumentError."""
    found, start = [], 0
    for one in form.variables:
        parameters = _core.TreeParameters(
            one.dtype,
            atol=one.atol,
            rtol=one.rtol,
            ulps=one.ulps,
            equal_nan=one.equal_nan,
            fill_values=[_fill_value(text) for text in one.fill_values],
            chunk_bytes=one.chunk_bytes,
            arity=one.arity,
        )
        size = storage_dtype(one.dtype).itemsize * prod(one.shape)
        if min(one.shape, default=0) < 0 or size > len(data) - start:
            raise DocumentError("holds fewer numbers than it says")
        part = data[start : start + size]
        start += size
        tree = _core.build_tree(parameters, part, backend="serial", threads=1)
        found.append(
            _core.GoldenVariable(
                one.name, one.shape, tree, iteration=one.iteration, rank=one.rank, data=part
            )
        )
    if start != len(data):
        raise DocumentError("holds more numbers than it says")
    return found


def encode(
    variables: Sequence[_core.GoldenVariable], manifest: Manifest, result: str | None
) -> Line | None:
    """A golden's line; None if it has to have files of its own: because it holds more than a few
    numbers, or does not keep them.
    """
    data = small_data(variables)
    if data is None or len(result or "") > _MOST_RESULT_BYTES // 4:
        return None
    tables: dict[str, bytes] = {}

    def common(kind: str, value: Any) -> str:
        body = _json({kind: value}, is_spaced=True)
        tables[sum_of(body)] = body
        return sum_of(body)

    try:
        environment = common("environment", dict(manifest.environment))
        form = common("form", _plain(_form_of(variables, manifest, environment)))
        log = [_log_entry(one, manifest, common) for one in manifest.accepted]
        is_first = len(log) == 1 and isinstance(log[0], str)
        body: list[Any] = [manifest.check, form, log[0] if is_first else log, _pack(data)]
        if manifest.pending is not None:
            packed = "" if result is None else _pack(result.encode())
            more = _More(pending=manifest.pending, result=packed)
            body.append(_plain(more))
        line = _json(body)
        read = decode(line, tables, manifest.binary.file)
    except (UnicodeEncodeError, DocumentError):
        return None  # the pair says what is wrong with it
    is_same = read.manifest == manifest and read.result == result
    return Line(line, tables, read) if is_same else None


def small_data(variables: Sequence[_core.GoldenVariable]) -> bytes | None:
    """The numbers of a golden that may share a file; None if it may not."""
    parts = []
    for one in variables:
        if one.data is None or one.tree.parameters.requested_residue_levels != 1:
            return None
        parts.append(one.data)
    data = b"".join(parts)
    return data if len(data) <= MOST_DATA_BYTES else None


def _log_entry(one: Acceptance, manifest: Manifest, common: Any) -> Any:
    said = structs.asdict(one)
    own = {key: said.pop(key) for key in ("new_root", "old_root", "largest_bound_share", "bounds")}
    by = common("accepted", _plain(_Accepted(**said)))
    is_first = own["old_root"] is None and own["largest_bound_share"] is None and not own["bounds"]
    if is_first and one is manifest.accepted[-1]:
        return by
    entry = _Entry(
        by=by,
        new_root=one.new_root,
        old_root=one.old_root,
        share=one.largest_bound_share,
        bounds=one.bounds,
    )
    return _plain(entry)


def _form_of(
    variables: Sequence[_core.GoldenVariable], manifest: Manifest, environment: str
) -> _Form:
    rows = []
    for one, row in zip(variables, manifest.variables, strict=True):
        parameters = one.tree.parameters
        rows.append(
            _Variable(
                name=one.name,
                iteration=one.iteration,
                rank=one.rank,
                dtype=parameters.dtype,
                shape=tuple(one.shape),
                atol=parameters.atol,
                rtol=parameters.rtol,
                ulps=parameters.ulps,
                equal_nan=parameters.equal_nan,
                fill_values=tuple(repr(value) for value in parameters.fill_values),
                chunk_bytes=parameters.chunk_bytes,
                arity=parameters.arity,
                labels=row.labels,
            )
        )
    return _Form(environment, tuple(rows), manifest.ignored)


def _fill_value(text: str) -> float | int:
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _pack(data: bytes) -> str:
    deflated = zlib.compress(data, 9)
    is_shorter = len(deflated) < len(data)
    packed = base64.b64encode(deflated if is_shorter else data).decode().rstrip("=")
    return f"{_DEFLATED}{packed}" if is_shorter else packed


def _unpack(text: str, most: int) -> bytes:
    try:
        packed = text.removeprefix(_DEFLATED)
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
        if text.startswith(_DEFLATED):
            stream = zlib.decompressobj()
            data = stream.decompress(data, most + 1)
    except (binascii.Error, zlib.error):
        raise DocumentError("holds data that cannot be unpacked") from None
    if len(data) > most:
        raise DocumentError(f"holds more than {most} bytes of data")
    return data


def _plain(record: _Record | PendingOrigin) -> Any:
    """A record as plain values, without what is at its default."""
    return to_plain(record, {})


def _json(value: Any, *, is_spaced: bool = False) -> bytes:
    """One line of UTF-8. Raises UnicodeEncodeError for half a surrogate pair."""
    separators = (", ", ": ") if is_spaced else (",", ":")
    text = json.dumps(value, ensure_ascii=False, separators=separators, allow_nan=False)
    return text.encode()
