"""Small goldens as lines of the file that they share (`shared_lines`), and back:

    {"environment": {...}}
    {"accepted": {"when": ..., "who": ..., "why": ..., "commit": ...}}
    {"form": {"environment": SUM, "variables": [{"name": ..., "dtype": ..., "atol": ...}], ...}}
    [NAME, FORM, ACCEPTED, DATA]

ACCEPTED is a list where a golden was replaced. DATA is the variables' own bytes in base64 (without
padding), after a `~` deflated where that is shorter. Trees and roots are not kept, since they
follow from the data and the bounds.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from ciwrap import _core
from ciwrap.arrays.dtypes import storage_dtype
from ciwrap.details import Number  # noqa: TC001 - msgspec looks at it
from ciwrap.documents import DocumentError, to_record
from ciwrap.documents.load_json import load_json
from ciwrap.errors import CiwrapError
from ciwrap.golden.manifest import (
    Acceptance,
    BinaryFile,
    Manifest,
    PendingOrigin,
    Record,
    Root,
    rows_of,
)
from ciwrap.golden.shared_lines import json_line, plain, sum_of, table_kind
from ciwrap.model import VariableId
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Beyond some 3 kB the base64 takes more bytes than a pair of files does, and more to read for all.
MOST_DATA_BYTES = 4096
_MOST_RESULT_BYTES = 4 << 20
_DEFLATED = "~"


class _Variable(Record, frozen=True, kw_only=True):
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
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Form(Record, frozen=True):
    """What goldens are of, without their numbers. environment: the sum of an `environment` line."""

    environment: str
    variables: tuple[_Variable, ...]
    ignored: tuple[str, ...] = ()


class _Accepted(Record, frozen=True, kw_only=True):
    """What acceptances of many goldens have in common."""

    when: str
    who: str
    why: str
    commit: str | None = None
    actor: str | None = None
    run: str | None = None


class _Entry(Record, frozen=True, kw_only=True):
    """One acceptance of one golden. by: the sum of an `accepted` line."""

    by: str
    new_root: Root
    old_root: Root | None = None
    share: Number | None = None
    bounds: tuple[str, ...] = ()


class _More(Record, frozen=True, kw_only=True):
    """Of a golden that waits. result: the document of its comparison, deflated, in base64."""

    pending: PendingOrigin
    result: str = ""


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


def tables_of(body: bytes, tables: Mapping[str, bytes]) -> set[str]:
    """The sums of all common lines that a golden's line needs."""
    line = _read_line(body)
    found = {line.form, *(one.by if isinstance(one, _Entry) else one for one in line.entries)}
    if table_kind(tables.get(line.form, b"")) == "form":
        found.add(_table(tables, line.form, "form", _Form).environment)
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


def _read_line(body: bytes) -> _Golden:
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
    line = _read_line(body)
    form: _Form = _table(tables, line.form, "form", _Form)
    variables = _variables(form, _unpack(line.data, MOST_DATA_BYTES))
    encoded = _core.encode_golden(variables)
    root = _core.golden_root(encoded).hex()
    log: list[Acceptance] = []
    for one in line.entries:
        entry = one if isinstance(one, _Entry) else _Entry(by=one, new_root=root)
        common: _Accepted = _table(tables, entry.by, "accepted", _Accepted)
        log.append(_acceptance(entry, common))
    if log and log[-1].new_root != root:
        raise DocumentError("holds other numbers than were accepted")
    if not log and line.more is None:
        raise DocumentError("does not say who accepted it")
    labels = {
        VariableId(one.name, one.iteration, one.rank): tuple(sorted(one.labels.items()))
        for one in form.variables
    }
    manifest = Manifest(
        check=line.name,
        binary=BinaryFile(file_name, root, len(encoded)),
        variables=rows_of(variables, labels),
        environment=dict(_table(tables, form.environment, "environment", dict[str, str])),
        accepted=tuple(log),
        pending=None if line.more is None else line.more.pending,
        ignored=form.ignored,
    )
    result = None
    if line.more is not None and line.more.result:
        result = _unpack(line.more.result, _MOST_RESULT_BYTES).decode()
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
        body = json_line({kind: value}, is_spaced=True)
        tables[sum_of(body)] = body
        return sum_of(body)

    try:
        environment = common("environment", dict(manifest.environment))
        form = common("form", plain(_form_of(variables, manifest, environment)))
        log = [_log_entry(one, manifest, common) for one in manifest.accepted]
        is_first = len(log) == 1 and isinstance(log[0], str)
        body: list[Any] = [manifest.check, form, log[0] if is_first else log, _pack(data)]
        if manifest.pending is not None:
            packed = "" if result is None else _pack(result.encode())
            more = _More(pending=manifest.pending, result=packed)
            body.append(plain(more))
        line = json_line(body)
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
    by = common("accepted", plain(_Accepted(**said)))
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
    return plain(entry)


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
