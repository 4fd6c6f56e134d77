"""Reference implementation of docs/reference/tree-format.md: reads and writes golden files.

Written from that page alone, for clarity and not for speed. It does not derive the effective
residue levels (that is cell-codes.md's business): a writer states them, a reader believes them.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .golden_blocks import FormatError, pack_blocks, require, unpack_blocks
from .trees import digest, levels, packed_per_byte

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAGIC = b"\x89CIW\r\n\x1a\n"
FIRST_VERSION, VERSION = 1, 2
HASH_XXH3_128 = 1
HEADER_BYTES = 80
CROWN_NODES = 256
EQUAL_NAN, HAS_DATA, HAS_SUMMARIES = 1, 2, 4
SUMMARY_BYTES = 80

_DTYPE = re.compile(
    r"(?:\|[iu]1|\|b1|[<>](?:f[248]|bf2|c8|c16|[iu][248])|\|S[1-9]\d{0,7}|[<>]U[1-9]\d{0,7})"
)
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Variable:
    """leaves: 16 bytes each; residues: packed; fill_bits: of one scalar, canonical."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    leaves: bytes
    residues: bytes = b""
    data: bytes | None = None
    summaries: bytes | None = None
    iteration: int | None = None
    rank: int | None = None
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0
    requested_levels: int = 1
    levels: int = 1
    chunk_bytes: int = 4096
    arity: int = 16
    equal_nan: bool = True
    fill_bits: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[int, int, bytes]:
        return (_optional(self.iteration), _optional(self.rank), self.name.encode())

    @property
    def scalar_bytes(self) -> int:
        size = int(self.dtype[3:] if self.dtype[1:3] == "bf" else self.dtype[2:])
        return {"U": 4 * size, "c": size // 2}.get(self.dtype[1], size)

    @property
    def shuffle_unit(self) -> int:
        return {"S": 1, "U": 4}.get(self.dtype[1], self.scalar_bytes)

    @property
    def scalar_count(self) -> int:
        return math.prod(self.shape) * (2 if self.dtype[1] == "c" else 1)

    @property
    def chunk_scalars(self) -> int:
        count = max(1, self.chunk_bytes // self.scalar_bytes)
        return count - count % 2 if self.dtype[1] == "c" and count > 1 else count

    @property
    def leaf_count(self) -> int:
        return max(1, -(-self.scalar_count // self.chunk_scalars))

    @property
    def residue_bytes(self) -> int:
        if self.levels == 1:
            return 0
        p = packed_per_byte(self.levels)
        full, rest = divmod(self.scalar_count, self.chunk_scalars)
        return full * -(-self.chunk_scalars // p) + -(-rest // p)

    @property
    def tree(self) -> list[bytes]:
        """Digests of every level, the root's first."""
        leaves = [self.leaves[i : i + 16] for i in range(0, len(self.leaves), 16)]
        return [b"".join(level) for level in levels(leaves, self.arity)]


def as_allowed(variable: Variable) -> Variable:
    """The variable with the bound that its dtype allows, which is what a writer states."""
    kind = variable.dtype[1:]
    if kind[0] in "fc" or kind == "bf2":
        return variable
    atol = variable.atol if kind[0] in "iu" else 0.0
    return replace(variable, atol=atol, rtol=0.0, ulps=0)


def _optional(value: int | None) -> int:
    return 0 if value is None else value + 1


def level_counts(leaf_count: int, arity: int) -> list[int]:
    counts = [leaf_count]
    while counts[0] > 1:
        counts.insert(0, -(-counts[0] // arity))
    return counts


# --- writing --------------------------------------------------------------------------------------


def describe(variable: Variable) -> bytes:
    v, name, dtype = variable, variable.name.encode(), variable.dtype.encode()
    parts = [
        struct.pack("<H", len(name)) + name,
        struct.pack("<QQ", _optional(v.iteration), _optional(v.rank)),
        struct.pack("<B", len(dtype)) + dtype,
        struct.pack(f"<B{len(v.shape)}Q", len(v.shape), *v.shape),
        struct.pack("<ddQIHBB", v.atol + 0.0, v.rtol + 0.0, v.ulps, v.chunk_bytes, v.arity,
                    v.requested_levels, v.levels),
        struct.pack("<B", EQUAL_NAN * v.equal_nan | HAS_DATA * (v.data is not None)
                    | HAS_SUMMARIES * (v.summaries is not None)),
        struct.pack(f"<B{len(v.fill_bits)}Q", len(v.fill_bits), *v.fill_bits),
        v.tree[0],
    ]  # fmt: skip
    if v.levels > 1:
        parts.append(digest(v.residues))
    if v.summaries is not None:
        parts.append(digest(v.summaries))
    if v.data is not None:
        parts.append(digest(v.data))
    return b"".join(parts)


def crown_levels(counts: Sequence[int]) -> int:
    """How many of the levels below the root belong to the crown."""
    return sum(count <= CROWN_NODES for count in counts[1:])


def sections(variable: Variable) -> list[bytes | None]:
    """Stored bytes of crown, lower, residues, summaries, data; None for those that it lacks."""
    tree = variable.tree
    end = 1 + crown_levels([len(level) // 16 for level in tree])
    return [
        b"".join(tree[1:end]) if len(tree) > 1 else None,
        b"".join(tree[end:]) if len(tree) > end else None,
        pack_blocks(variable.residues, 1) if variable.levels > 1 else None,
        None if variable.summaries is None else pack_blocks(variable.summaries, 8),
        None if variable.data is None else pack_blocks(variable.data, variable.shuffle_unit),
    ]


def seal_header(
    file_bytes: int, directory: bytes, root: bytes, *, version: int = FIRST_VERSION
) -> bytes:
    head = MAGIC + struct.pack("<IIQQ", version, HASH_XXH3_128, file_bytes, len(directory))
    head += root + digest(directory)
    return head + digest(head)


def assemble(
    described: Sequence[bytes],
    stored: Sequence[Sequence[bytes | None]],
    *,
    version: int = FIRST_VERSION,
) -> bytes:
    """A file of these descriptions and sections, every digest right, whatever they hold."""
    count = struct.pack("<I", len(described))
    directory = count
    for description, parts in zip(described, stored, strict=True):
        directory += description
        for part in parts:
            if part is not None:
                directory += struct.pack("<Q", len(part)) + digest(part)
    body = b"".join(parts[kind] or b"" for kind in range(5) for parts in stored)
    size = HEADER_BYTES + len(directory) + len(body)
    root = digest(count + b"".join(described))
    return seal_header(size, directory, root, version=version) + directory + body


def encode(variables: Iterable[Variable]) -> bytes:
    """The file. The order of the variables does not matter."""
    ordered = sorted(variables, key=lambda variable: variable.key)
    has_summaries = any(v.summaries is not None for v in ordered)
    version = VERSION if has_summaries else FIRST_VERSION
    described = [describe(v) for v in ordered]
    return assemble(described, [sections(v) for v in ordered], version=version)


# --- reading --------------------------------------------------------------------------------------


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        require(self.at + count <= len(self.data), "directory: an entry is cut off")
        self.at += count
        return self.data[self.at - count : self.at]

    def numbers(self, form: str) -> tuple[int, ...]:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def number(self, form: str) -> int:
        return self.numbers(form)[0]


@dataclass(frozen=True, slots=True)
class Entry:
    """A directory entry: everything about the variable but its leaves, residues and data."""

    variable: Variable
    root: bytes
    has_data: bool
    residues_digest: bytes | None
    summaries_digest: bytes | None
    data_digest: bytes | None
    records: tuple[tuple[int, bytes] | None, ...]


def check_header(file: bytes) -> tuple[bytes, int]:
    """The directory, verified, and the version; also checks the file's length."""
    require(file[:8] == MAGIC, "wrong magic")
    require(len(file) >= HEADER_BYTES, "truncated in the header")
    require(digest(file[:64]) == file[64:80], "header digest")
    version, hash_id, file_bytes, directory_bytes = struct.unpack_from("<IIQQ", file, 8)
    require(version in (FIRST_VERSION, VERSION), f"format version {version}")
    require(hash_id == HASH_XXH3_128, f"hash {hash_id}")
    require(len(file) == file_bytes, f"{len(file)} bytes instead of {file_bytes}")
    require(directory_bytes <= file_bytes - HEADER_BYTES, "directory length")
    directory = file[HEADER_BYTES : HEADER_BYTES + directory_bytes]
    require(digest(directory) == file[48:64], "directory digest")
    return directory, version


def _bound(bits: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    require(math.isfinite(value) and bits >> 63 == 0, f"bound {value}")
    return value


def _read_description(cursor: _Cursor, version: int) -> tuple[Variable, int]:
    size = cursor.number("H")
    require(1 <= size <= 4096, "name length")
    try:
        name = cursor.take(size).decode()
    except UnicodeDecodeError as error:
        raise FormatError("name is not UTF-8") from error
    require(not _FORBIDDEN.search(name), "control character in a name")
    iteration, rank = cursor.numbers("QQ")
    require(max(iteration, rank) <= 1 << 63, "iteration or rank out of range")
    dtype = cursor.take(cursor.number("B")).decode("latin-1")
    require(_DTYPE.fullmatch(dtype) is not None, f"dtype {dtype!r}")
    dimensions = cursor.number("B")
    require(dimensions <= 64, "more than 64 dimensions")
    shape = cursor.numbers(f"{dimensions}Q")
    atol, rtol = (_bound(bits) for bits in cursor.numbers("QQ"))
    ulps, chunk_bytes, arity, requested, effective, flags = cursor.numbers("QIHBBB")
    fill_bits = cursor.numbers(f"{cursor.number('B')}Q")
    variable = Variable(
        name=name, dtype=dtype, shape=shape, leaves=b"",
        iteration=iteration - 1 if iteration else None, rank=rank - 1 if rank else None,
        atol=atol, rtol=rtol, ulps=ulps, requested_levels=requested, levels=effective,
        chunk_bytes=chunk_bytes, arity=arity, equal_nan=bool(flags & EQUAL_NAN),
        fill_bits=fill_bits,
    )  # fmt: skip
    is_complex = dtype[1] == "c"
    require(variable.scalar_bytes <= 1 << 24, "scalar size")
    element_bytes = variable.scalar_bytes * (2 if is_complex else 1)
    require(element_bytes * math.prod(max(1, n) for n in shape) <= 1 << 62, "shape too large")
    require(flags < (8 if version == VERSION else 4), "unknown flags")
    require(2 <= arity <= 256 and 64 <= chunk_bytes <= 1 << 24, "arity or chunk_bytes")
    for k in (requested, effective):
        require(k == 1 or (k >= 3 and k % 2 == 1), f"residue levels {k}")
    require(effective <= requested, "residue levels")
    require(not ulps or (dtype[1] in "fbc" and dtype[1:] != "b1" and atol == rtol == 0), "ulps")
    _check_fill(variable)
    return variable, flags


def _check_fill(variable: Variable) -> None:
    fill, dtype = variable.fill_bits, variable.dtype
    require(len(fill) <= 16 and len(set(fill)) == len(fill), "fill values")
    require(not fill or (dtype[1] not in "SU" and dtype[1:] != "b1"), "fill values of no number")
    require(all(bits < 1 << 8 * variable.scalar_bytes for bits in fill), "fill value too wide")
    if dtype[1] not in "fc" and dtype[1:] != "bf2":
        return
    mantissa = 7 if dtype[1:3] == "bf" else {2: 10, 4: 23, 8: 52}[variable.scalar_bytes]
    sign = 1 << (8 * variable.scalar_bytes - 1)
    infinity = (sign - 1) >> mantissa << mantissa
    for bits in fill:
        is_nan = bits & (sign - 1) > infinity
        require(bits != sign, "fill value -0")
        require(not is_nan or bits == infinity | 1 << (mantissa - 1), "fill value NaN")


def read_directory(directory: bytes, version: int) -> tuple[list[Entry], bytes]:
    """All entries, and the root of the file that follows from them."""
    cursor = _Cursor(directory)
    count = cursor.number("I")
    require(count >= 1, "no variables")
    described = directory[:4]
    entries: list[Entry] = []
    for _ in range(count):
        start = cursor.at
        variable, flags = _read_description(cursor, version)
        has_data, has_summaries = bool(flags & HAS_DATA), bool(flags & HAS_SUMMARIES)
        root = cursor.take(16)
        residues = cursor.take(16) if variable.levels > 1 else None
        summaries = cursor.take(16) if has_summaries else None
        data = cursor.take(16) if has_data else None
        described += directory[start : cursor.at]
        counts = level_counts(variable.leaf_count, variable.arity)
        crown = crown_levels(counts)
        present = (
            len(counts) > 1,
            len(counts) > 1 + crown,
            residues is not None,
            has_summaries,
            has_data,
        )
        records = tuple((cursor.number("Q"), cursor.take(16)) if has else None for has in present)
        for record, nodes in zip(
            records[:2], (counts[1:][:crown], counts[1:][crown:]), strict=True
        ):
            require(record is None or record[0] == 16 * sum(nodes), "length of a tree section")
        if entries:
            require(entries[-1].variable.key < variable.key, "variables out of order")
        entries.append(Entry(variable, root, has_data, residues, summaries, data, records))
    require(cursor.at == len(directory), "bytes after the last entry")
    is_needed = any(one.summaries_digest is not None for one in entries)
    require(version == FIRST_VERSION or is_needed, "a version that no variable needs")
    return entries, digest(described)


def root(file: bytes) -> bytes:
    entries_root = read_directory(*check_header(file))[1]
    require(file[32:48] == entries_root, "root of the file")
    return entries_root


def decode(file: bytes) -> list[Variable]:
    """All variables, in canonical order. Raises FormatError unless every byte is as specified."""
    directory, version = check_header(file)
    entries, entries_root = read_directory(directory, version)
    require(file[32:48] == entries_root, "root of the file")
    at = HEADER_BYTES + len(directory)
    stored: list[dict[int, bytes]] = [{} for _ in entries]
    for kind in range(5):
        for parts, entry in zip(stored, entries, strict=True):
            record = entry.records[kind]
            if record is None:
                continue
            size, expected = record
            parts[kind] = file[at : at + size]
            at += size
            require(len(parts[kind]) == size, "sections reach beyond the end")
            require(digest(parts[kind]) == expected, f"{entry.variable.name}: section {kind}")
    require(at == len(file), "bytes after the last section")
    return [_assemble(entry, parts) for entry, parts in zip(entries, stored, strict=True)]


def _assemble(entry: Entry, parts: dict[int, bytes]) -> Variable:
    v = entry.variable
    nodes = entry.root + parts.get(0, b"") + parts.get(1, b"")
    leaves = nodes[len(nodes) - 16 * v.leaf_count :]
    residues, summaries, data = b"", None, None
    if entry.residues_digest is not None:
        residues = unpack_blocks(parts[2], v.residue_bytes, 1, f"{v.name}: residues")
        require(digest(residues) == entry.residues_digest, f"{v.name}: residues")
        _check_residues(v, residues)
    if entry.summaries_digest is not None:
        raw = v.leaf_count * SUMMARY_BYTES
        summaries = unpack_blocks(parts[3], raw, 8, f"{v.name}: summaries")
        require(digest(summaries) == entry.summaries_digest, f"{v.name}: summaries")
    if entry.data_digest is not None:
        raw = v.scalar_count * v.scalar_bytes
        data = unpack_blocks(parts[4], raw, v.shuffle_unit, f"{v.name}: data")
        require(digest(data) == entry.data_digest, f"{v.name}: data")
    whole = replace(v, leaves=leaves, residues=residues, summaries=summaries, data=data)
    require(b"".join(whole.tree) == nodes, f"{v.name}: tree")
    return whole


def _check_residues(v: Variable, residues: bytes) -> None:
    p = packed_per_byte(v.levels)
    for size, piece in _chunk_residues(v, residues, p):
        require(max(piece) < v.levels**p, f"{v.name}: residue out of range")
        require(piece[-1] < v.levels ** ((size - 1) % p + 1), f"{v.name}: residue padding")


def _chunk_residues(v: Variable, residues: bytes, p: int) -> Iterator[tuple[int, bytes]]:
    at = 0
    for start in range(0, v.scalar_count, v.chunk_scalars):
        size = min(v.chunk_scalars, v.scalar_count - start)
        yield size, residues[at : at - (-size // p)]
        at -= -size // p
