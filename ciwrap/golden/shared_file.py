"""Small goldens of tests as lines of a file that they share.

A line is a JSON value, a space, and eight characters of a hash of the value's text, so that damage
of any line is seen. The first line names the format, the last one says that nothing is cut off. A
golden's own line says all that is known of it, but for the environment, which many goldens share,
by its check sum (SUM):

    {"environment": {...}}
    [NAME, {"environment": SUM, "variables": [{"name": ..., "dtype": ..., "atol": ...}]},
     {"when": ..., "who": ..., "why": ..., "commit": ...}, DATA]

The third item is a list where a golden was replaced. A variable of few elements has them as text,
`"values": "0.1 2.5"`, or `["a text"]`. DATA is the bytes of all others, one after the other, in
base64 (without padding), after a `~` deflated where that is shorter. Trees and roots follow from
data and bounds and are not kept. Damage of any line makes all goldens of the file unusable; whole
lines are saved from it by a new golden, unless somebody has to choose first or the file is to be
had elsewhere.

So that git merges what two branches add or change, lines lie far from each other: between them
stand SLOT_COUNT lines that never change (`00`, `01`, ...), and each line lies behind the one that
the hash of its golden's name says. An environment that is not there is unknown: one branch may take
away the last golden that names it, and another one add one.

Files of formats 1 and 2 are read as well, and written anew with the next golden. In format 1,
acceptances and variables (`{"accepted": ...}`, `{"form": ...}`) stood in lines of their own, too;
in both, all data were base64.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field, structs

from ciwrap import _core
from ciwrap.arrays.values import storage_dtype
from ciwrap.base.documents import DocumentError, load_json, to_plain, to_record
from ciwrap.base.errors import (
    CiwrapError,
    CorruptGoldenError,
    GoldenToMendError,
    UnsupportedFormatError,
)
from ciwrap.base.late import hashlib
from ciwrap.golden.manifest import (
    Acceptance,
    BinaryFile,
    Manifest,
    PendingOrigin,
    Record,
    Root,
    rows_of,
)
from ciwrap.golden.places import SHARED_SUFFIX, journal_path
from ciwrap.golden.plain_numbers import Plain, numbers_of, plain_numbers
from ciwrap.golden.store import refuse_pointer
from ciwrap.model import VariableId
from ciwrap.model.variable_result import Number

FORMAT = 3
SLOT_COUNT = 1024
_DIGITS = "0123456789abcdefghijklmnopqrstuv"
SLOTS = [f"{one}{other}".encode() for one in _DIGITS for other in _DIGITS]
_SLOTS = frozenset(SLOTS)
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
    if found.encode() == said:
        return body, found
    if is_of_merge(line):
        raise DocumentError(OF_MERGE)
    if line[:-1] in _SLOTS and line.endswith(b"\r"):
        raise DocumentError(OF_WINDOWS)
    raise DocumentError(OF_WINDOWS if said == found.encode() + b"\r" else "is damaged")


def is_of_merge(line: bytes) -> bool:
    """Whether a line is what git puts between the two sides of a merge."""
    return line.startswith((b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||"))


def slot_of(name: str) -> int:
    """Behind which of the lines that never change a golden or an environment lies."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=2).digest()
    return int.from_bytes(digest, "big") % SLOT_COUNT


def text_of(lines: Mapping[str, bytes]) -> bytes:
    """A whole file of these bodies. lines: by the names of goldens and the sums of environments."""
    slots: list[list[bytes]] = [[] for _ in SLOTS]
    for name in sorted(lines):
        slots[slot_of(name)].append(line_of(lines[name]))
    parts = [line_of(HEADER)]
    for mark, inside in zip(SLOTS, slots, strict=True):
        parts += [mark + b"\n", *inside]
    return b"".join([*parts, line_of(END)])


def version_of(body: bytes) -> int | None:
    """The format that a head line states; None for another line."""
    if not body.startswith(HEAD_START):
        return None
    found = load_json(body).get("ciwrap goldens")
    return found if isinstance(found, int) else None


def journal_head() -> bytes:
    """The first line of a new journal. It tells it from every other one: those that are gone may
    have had its name, its inode and its size. Journals of earlier releases have none.
    """
    return json_line({"ciwrap goldens": FORMAT, "journal": os.urandom(8).hex()})


def mark_of(journal: bytes) -> bytes:
    """The first line of a journal, with its end; b"" if it has no head."""
    line, end, _ = journal.partition(b"\n")
    return line + end if end and line.startswith(HEAD_START) else b""


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


# Beyond some 3 kB the base64 takes more bytes than a pair of files does, and more to read for all.
MOST_DATA_BYTES = 4096
_MOST_RESULT_BYTES = 4 << 20
_DEFLATED = "~"


class _Variable(Record, frozen=True, kw_only=True):
    """One variable of a form: what its tree is made with. fill_values: as texts. values: None where
    they are in the line's data.
    """

    name: str
    iteration: int | None = None
    rank: int | None = None
    dtype: str
    shape: tuple[int, ...]
    values: Plain | None = None
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0
    equal_nan: bool = True
    fill_values: tuple[str, ...] = ()
    chunk_bytes: int = 4096
    arity: int = 16
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Form(Record, frozen=True):
    """What a golden is of, without its numbers. environment: the sum of an `environment` line."""

    environment: str
    variables: tuple[_Variable, ...]
    ignored: tuple[str, ...] = ()


class _Accepted(Record, frozen=True, kw_only=True):
    """Who accepted a golden, when and why."""

    when: str
    who: str
    why: str
    commit: str | None = None
    actor: str | None = None
    run: str | None = None


class _Entry(Record, frozen=True, kw_only=True):
    """One acceptance of a golden. by: in format 1 the sum of a line. new_root: None for that of the
    golden as it is.
    """

    by: str | _Accepted
    new_root: Root | None = None
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
    """A golden as a line. tables: the environment that it names, by its sum. golden: what is read
    out of it.
    """

    body: bytes
    tables: dict[str, bytes]
    golden: Shared


def own_line(body: bytes, tables: Mapping[str, bytes]) -> tuple[bytes, str]:
    """A golden's line as this format has it, and the sum of its environment. Raises DocumentError
    for one of format 1 whose common lines are not there.
    """
    line = _read_line(body)
    form, entries = _form(line, tables), _entries(line, tables)
    if not isinstance(line.form, str):
        return body, form.environment
    log = [plain(one) for one in entries]
    said = log[0]["by"] if log and isinstance(line.log, str) else log
    items = [line.name, plain(form), said, line.data]
    return json_line(items if line.more is None else [*items, plain(line.more)]), form.environment


class _Golden(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    name: str
    form: str | _Form
    log: str | _Accepted | tuple[str | _Entry, ...]
    data: str
    more: _More | None = None


def _form(line: _Golden, tables: Mapping[str, bytes]) -> _Form:
    found = line.form
    return _table(tables, found, "form", _Form) if isinstance(found, str) else found


def _entries(line: _Golden, tables: Mapping[str, bytes]) -> list[_Entry]:
    """The acceptances of a golden, with their facts."""
    log = line.log if isinstance(line.log, tuple) else (line.log,)
    found = []
    for one in log:
        entry = one if isinstance(one, _Entry) else _Entry(by=one)
        if isinstance(entry.by, str):
            facts = _table(tables, entry.by, "accepted", _Accepted)
            entry = structs.replace(entry, by=facts)
        found.append(entry)
    return found


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
    form = _form(line, tables)
    variables = _variables(form, _unpack(line.data, MOST_DATA_BYTES))
    encoded = _core.encode_golden(variables)
    root = _core.golden_root(encoded).hex()
    log: list[Acceptance] = []
    for entry in _entries(line, tables):
        assert isinstance(entry.by, _Accepted)
        log.append(
            Acceptance(
                **structs.asdict(entry.by),
                new_root=entry.new_root or root,
                old_root=entry.old_root,
                largest_bound_share=entry.share,
                bounds=entry.bounds,
            )
        )
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
        environment=_environment(tables, form.environment),
        accepted=tuple(log),
        pending=None if line.more is None else line.more.pending,
        ignored=form.ignored,
    )
    result = None
    if line.more is not None and line.more.result:
        result = _unpack(line.more.result, _MOST_RESULT_BYTES).decode()
    return Shared(manifest, tuple(variables), len(encoded), result)


def _environment(tables: Mapping[str, bytes], name: str) -> dict[str, str]:
    """Where a golden was made; {} where another branch has taken that line away."""
    if name not in tables:
        return {}
    return dict(_table(tables, name, "environment", dict[str, str]))


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
        if one.values is None:
            part = data[start : start + size]
            start += size
        else:
            part = numbers_of(one.values, one.dtype)
        if min(one.shape, default=0) < 0 or size != len(part):
            raise DocumentError("holds other numbers than it says")
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
    if not is_small(variables) or len(result or "") > _MOST_RESULT_BYTES // 4:
        return None
    try:
        environment = json_line({"environment": dict(manifest.environment)}, is_spaced=True)
        tables = {sum_of(environment): environment}
        form_of, packed = _form_of(variables, manifest, sum_of(environment))
        form = plain(form_of)
        log = [_log_entry(one) for one in manifest.accepted]
        first = _Entry(by=log[0].by, new_root=manifest.binary.root) if log else None
        said = log[0].by if len(log) == 1 and log[0] == first else log
        body: list[Any] = [manifest.check, form, to_plain(said, {}), _pack(packed)]
        if manifest.pending is not None:
            more = _More(
                pending=manifest.pending,
                result="" if result is None else _pack(result.encode()),
            )
            body.append(plain(more))
        line = json_line(body)
        read = decode(line, tables, manifest.binary.file)
    except (UnicodeEncodeError, DocumentError):
        return None  # the pair says what is wrong with it
    is_same = read.manifest == manifest and read.result == result
    return Line(line, tables, read) if is_same else None


def is_small(variables: Sequence[_core.GoldenVariable]) -> bool:
    """Whether a golden may share a file: it keeps its numbers, and they are few."""
    byte_count = 0
    for one in variables:
        if one.data is None or one.tree.parameters.requested_residue_levels != 1:
            return False
        byte_count += len(one.data)
    return byte_count <= MOST_DATA_BYTES


def _log_entry(one: Acceptance) -> _Entry:
    said = structs.asdict(one)
    for key in ("new_root", "old_root", "largest_bound_share", "bounds"):
        del said[key]
    return _Entry(
        by=_Accepted(**said),
        new_root=one.new_root,
        old_root=one.old_root,
        share=one.largest_bound_share,
        bounds=one.bounds,
    )


def _form_of(
    variables: Sequence[_core.GoldenVariable], manifest: Manifest, environment: str
) -> tuple[_Form, bytes]:
    """What a golden is of, with the numbers that people can read; and the bytes of the others."""
    rows, others = [], []
    for one, row in zip(variables, manifest.variables, strict=True):
        parameters = one.tree.parameters
        data = one.data or b""
        values = plain_numbers(data, parameters.dtype)
        if values is None:
            others.append(data)
        rows.append(
            _Variable(
                name=one.name,
                iteration=one.iteration,
                rank=one.rank,
                dtype=parameters.dtype,
                shape=tuple(one.shape),
                values=values,
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
    return _Form(environment, tuple(rows), manifest.ignored), b"".join(others)


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


MOST_FILE_BYTES = 256 << 20
_ALL = ", so none of the goldens in it can be used"
# Of each test's golden several questions are asked, one after the other.
_MOST_DECODED = 1024
_REMEDY = (
    "take the file from a commit where it is whole; or run the tests and accept what then waits:"
    " goldens whose own lines are whole stay as they are"
)
# Of lines that say what somebody has to do before any golden is written.
_REMEDIES = {
    OF_MERGE: ("delete the marks of the merge, and of two lines of one golden the wrong one"),
    OF_WINDOWS: (
        f"add the line `*{SHARED_SUFFIX} text eol=lf` to .gitattributes, delete the file, and"
        " take it from git again"
    ),
}
_REMEDY_NONE = "take the file from a commit where it is whole, or delete it"


class State(Struct):
    """What a shared file and its journal say together.

    path: of the shared file. goldens: the lines of goldens by their names. tables: what they have
    in common, by check sums. put: names that the journal has put here. moved: those that may lie in
    a pair of files by now, with the root that pair has if they do. fault: the damage that makes all
    unusable: the first, or the first that somebody has to mend. byte_count: of file and journal.
    decoded: goldens that were looked at last, by their lines.
    """

    path: Path
    goldens: dict[str, bytes] = field(default_factory=dict)
    tables: dict[str, bytes] = field(default_factory=dict)
    put: set[str] = field(default_factory=set)
    moved: dict[str, str] = field(default_factory=dict)
    fault: CiwrapError | None = None
    byte_count: int = 0
    decoded: dict[bytes, Shared] = field(default_factory=dict)

    # --- goldens

    def golden_of(self, body: bytes) -> Shared:
        """The golden of a line. Raises CorruptGoldenError; from then on all are unusable."""
        known = self.decoded.get(body)
        if known is not None:
            return known
        try:
            found = decode(body, self.tables, self.path.name)
        except DocumentError as error:
            what = f"the line of {golden_name(body)!r} {error.message}"
            self._note(what, self.path)
            raise damaged(self.path, what) from None
        self.keep_decoded(body, found)
        return found

    def keep_decoded(self, body: bytes, golden: Shared) -> None:
        if len(self.decoded) >= _MOST_DECODED:
            self.decoded.pop(next(iter(self.decoded)))
        self.decoded[body] = golden

    # --- faults

    def _note(self, what: str, path: Path, remedy: str | None = None) -> None:
        """Notes damage. remedy: of what somebody has to mend, which counts before all else."""
        if remedy is not None and not isinstance(self.fault, GoldenToMendError):
            self.fault = GoldenToMendError(f"{what}{_ALL}", file=path, remedy=remedy)
        elif self.fault is None:
            self.fault = damaged(path, what)

    # --- lines

    def take_file(self, data: bytes) -> None:
        """Takes the whole file. Raises GoldenToMendError, UnsupportedFormatError."""
        if not data:
            return
        refuse_pointer(data, self.path)
        lines = data.split(b"\n")
        if not lines[0].startswith(HEAD_START):
            self._note("line 1 is not the head of a file of goldens", self.path)
        for number, line in enumerate(lines[:-1], 1):
            if line not in _SLOTS:
                self._take_line(line, number, self.path)
        is_whole = lines[-1] == b"" and len(lines) > 2 and lines[-2].startswith(END)
        if not is_whole:
            self._note("it is cut off", self.path)
        if not self.tables and not self.goldens and self.fault is not None:
            # No line of it could be saved.
            self._note("it is not a file of goldens, or a part of one", self.path, _REMEDY_NONE)

    def take_journal(self, data: bytes) -> int:
        """Takes what is new of the journal, up to the last line that has an end; returns how many
        bytes these are. Raises UnsupportedFormatError.
        """
        whole = data.rpartition(b"\n")[0]
        for number, line in enumerate(whole.split(b"\n") if whole else [], 1):
            self._take_line(line, number, journal_path(self.path))
        return len(whole) + 1 if whole else 0

    def _take_line(self, line: bytes, number: int, path: Path) -> None:
        try:
            body, name = body_of(line)
            self._take(body, name, is_journal=path != self.path)
        except DocumentError as error:
            self._note(f"line {number} {error.message}", path, _REMEDIES.get(error.message))

    def _take(self, body: bytes, name: str, *, is_journal: bool) -> None:
        version = version_of(body)
        if version is not None and version > FORMAT:
            raise UnsupportedFormatError(
                f"has format {version}, this ciwrap reads up to {FORMAT}",
                file=self.path,
                remedy="update ciwrap",
            )
        golden = golden_name(body)
        if golden is not None:
            known = self.goldens.get(golden)
            if known not in (None, body) and not is_journal:
                raise DocumentError(f"is a second golden of {golden!r}")
            self.goldens[golden] = body
            if is_journal:
                self.put.add(golden)
                self.moved.pop(golden, None)
        elif table_kind(body) is not None:
            if self.tables.setdefault(name, body) != body:
                raise DocumentError("has the check sum of another line")
        elif (drop := drop_of(body)) is not None:
            self._drop(drop)
        elif version is None and body != END:
            raise DocumentError("is of no kind that this release knows")

    def _drop(self, drop: Drop) -> None:
        self.put.discard(drop.drop)
        if drop.moved_to is not None:
            self.moved[drop.drop] = drop.moved_to
        else:
            self.goldens.pop(drop.drop, None)
            self.moved.pop(drop.drop, None)

    # --- what a new file needs

    def whole_text(self) -> bytes:
        """The file of these goldens, with their environments. Raises CorruptGoldenError."""
        lines: dict[str, bytes] = {}
        for name, body in self.goldens.items():
            try:
                lines[name], environment = own_line(body, self.tables)
            except DocumentError as error:
                raise damaged(self.path, f"the line of {name!r} {error.message}") from None
            if environment in self.tables:
                lines[f"\0{environment}"] = self.tables[environment]
        return text_of(lines)


class SharedFile(Struct, frozen=True):
    """The goldens of a file and its journal, by the order of names. put, moved: as in State."""

    goldens: list[Shared]
    put: set[str]
    moved: dict[str, str]


def read_shared(data: bytes, path: Path) -> list[Shared]:
    """All goldens of a file's bytes, in the order of their names; path: for messages. Raises
    CorruptGoldenError, UnsupportedFormatError.
    """
    return read_with_journal(data, b"", path).goldens


def read_with_journal(data: bytes, journal: bytes, path: Path) -> SharedFile:
    """As `read_shared`, with what a journal beside the file says."""
    state = State(path)
    state.take_file(data)
    state.take_journal(journal)
    if state.fault is not None:
        raise state.fault
    goldens = [state.golden_of(state.goldens[name]) for name in sorted(state.goldens)]
    return SharedFile(goldens, state.put, state.moved)


def damaged(path: Path, what: str) -> CorruptGoldenError:
    return CorruptGoldenError(f"{what}{_ALL}", file=path, remedy=_REMEDY)
