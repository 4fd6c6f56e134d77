"""Golden files that are wrong in one way each: damaged, or hostile with every digest right."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from . import golden_format as gf
from .golden_cases import variable_of
from .trees import digest

CORRUPT, UNSUPPORTED, TOO_LARGE = "corrupt_file", "unsupported", "too_large"


@dataclass(frozen=True, slots=True)
class Unsound:
    name: str
    description: str
    file: bytes
    says: tuple[str, ...]
    error: str = CORRUPT
    limit: int | None = None


def flipped(file: bytes, at: int, bit: int = 0) -> bytes:
    return file[:at] + bytes([file[at] ^ 1 << bit]) + file[at + 1 :]


def section_offset(file: bytes, variable: str, kind: int) -> int:
    """Where a section of a variable begins."""
    directory, version = gf.check_header(file)
    at = gf.HEADER_BYTES + len(directory)
    entries, _ = gf.read_directory(directory, version)
    for section in range(5):
        for entry in entries:
            record = entry.records[section]
            if section == kind and entry.variable.name == variable:
                assert record
                return at
            at += record[0] if record else 0
    raise ValueError(variable)


def damaged(files: Mapping[str, bytes]) -> Iterator[Unsound]:
    tree, residues, data = files["tree"], files["residues"], files["data_blocks"]
    summaries = files["summaries"]

    def case(name: str, description: str, file: bytes, *says: str) -> Unsound:
        return Unsound(f"damaged_{name}", description, file, says)

    yield case("empty", "no bytes at all", b"", "is empty")
    yield case("not_golden", "a NumPy file", b"\x93NUMPY\x01\x00" + bytes(120), "not a golden file")
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
    yield case("lfs_pointer", "a Git LFS pointer in its place", pointer, "git lfs pull")
    yield case("line_ends", "CR LF turned into LF", tree.replace(b"\r\n", b"\n"), "line endings")
    yield case("cut_magic", "5 bytes", tree[:5], "truncated", "5 bytes")
    yield case("cut_header", "79 bytes", tree[:79], "truncated", "79 bytes", "80")
    yield case(
        "cut_directory", "cut within the directory", tree[:100], "truncated", f"100 of {len(tree)}"
    )
    yield case("cut_end", "the last byte is missing", tree[:-1], "truncated", f"{len(tree) - 1} of")
    yield case("longer", "one byte more", tree + b"\0", "1 bytes after its end")
    for at, what in ((9, "version"), (17, "file_bytes"), (33, "root"), (70, "checksum")):
        yield case(
            f"header_{what}",
            f"a flipped bit in the header ({what})",
            flipped(tree, at),
            "its header does not have the checksum",
        )
    yield case("directory", "a flipped bit in the directory", flipped(tree, 90), "its directory")
    for file, name, kind, what in (
        (tree, "field", 0, "upper tree levels"),
        (tree, "field", 1, "lower tree levels"),
        (residues, "k3", 2, "residues"),
        (summaries, "k15", 3, "summaries"),
        (data, "noise", 4, "data"),
    ):
        at = section_offset(file, name, kind) + 9
        yield case(
            what.replace(" ", "_"),
            f"a flipped bit in the {what} of one variable",
            flipped(file, at, 5),
            f"the {what} of variable '{name}' are damaged",
        )


def reseal_header(file: bytes, offset: int, form: str, value: int) -> bytes:
    head = bytearray(file[:64])
    struct.pack_into("<" + form, head, offset, value)
    return bytes(head) + digest(bytes(head)) + file[80:]


Edit = Callable[[bytes], bytes]
SMALL = "v"  # the name of the variable in the files below


def small(**changes: object) -> gf.Variable:
    """Two float32 scalars; the entry is short, so that offsets in it are easy to state."""
    made = variable_of(SMALL, np.array([1.0, 2.0], dtype="<f4"), atol=0.5)
    return replace(made, **changes)  # type: ignore[arg-type]


def rebuilt(*variables: gf.Variable, edit: Edit = bytes) -> bytes:
    """A file of these variables in this order, the descriptions edited, every digest right."""
    described = [edit(gf.describe(variable)) for variable in variables]
    return gf.assemble(described, [gf.sections(variable) for variable in variables])


def poke(offset: int, form: str, value: float) -> Edit:
    def edit(description: bytes) -> bytes:
        out = bytearray(description)
        struct.pack_into("<" + form, out, offset, value)
        return bytes(out)

    return edit


def splice(start: int, end: int, text: bytes) -> Edit:
    return lambda description: description[:start] + text + description[end:]


# Offsets in the description of `small`: name 3 bytes, two numbers, dtype 4 bytes, one dimension.
NAME, ITERATION, DTYPE, DIMENSIONS, SHAPE = 2, 3, 20, 23, 24
ATOL, RTOL, ULPS, CHUNK, ARITY, REQUESTED, EFFECTIVE, FLAGS, FILLS = (
    32,
    40,
    48,
    56,
    60,
    62,
    63,
    64,
    65,
)


def lying_directories(files: Mapping[str, bytes]) -> Iterator[Unsound]:
    tree = files["tree"]

    def case(name: str, description: str, file: bytes, *says: str, error: str = CORRUPT) -> Unsound:
        return Unsound(f"hostile_{name}", description, file, says, error)

    def edited(name: str, description: str, edit: Edit, *says: str) -> Unsound:
        return case(name, description, rebuilt(small(), edit=edit), f"variable '{SMALL}'", *says)

    newer = reseal_header(tree, 8, "I", 3)
    yield case(
        "newer",
        "format version 3",
        newer,
        "written by a newer ciwrap (format 3)",
        "reads up to 2: upgrade ciwrap",
        error=UNSUPPORTED,
    )
    yield case(
        "version_2",
        "format version 2 without a summary",
        reseal_header(tree, 8, "I", 2),
        "a later format than its variables need",
    )
    yield case("version_0", "format version 0", reseal_header(tree, 8, "I", 0), "no format 0")
    yield case(
        "hash", "another hash", reseal_header(tree, 12, "I", 9), "hash number 9", error=UNSUPPORTED
    )
    yield case("file_bytes", "a length of 2^63", reseal_header(tree, 16, "Q", 1 << 63), "truncated")
    yield case(
        "directory_bytes",
        "a directory longer than the file",
        reseal_header(tree, 24, "Q", 1 << 62),
        f"a directory of {1 << 62} bytes",
    )
    yield case("root", "the root of other variables", reseal_header(tree, 32, "Q", 1), "its root")

    one = rebuilt(small())
    directory = one[80:]
    for name, count, says in (
        ("no_variables", 0, "holds no variables"),
        ("fewer_variables", 2, "is cut off"),
        ("most_variables", (1 << 32) - 1, "is cut off"),
    ):
        lying = struct.pack("<I", count) + directory[4:]
        yield case(
            name,
            f"a variable count of {count}",
            gf.seal_header(len(one), lying, one[32:48]) + lying,
            says,
        )
    longer = directory + b"\0"
    yield case(
        "directory_tail",
        "a byte after the last entry",
        gf.seal_header(len(one) + 1, longer, one[32:48]) + longer,
        "goes on after",
    )

    a, b = small(name="a"), small(name="b")
    yield case("twice", "one variable twice", rebuilt(a, a), "variable 'a' is listed twice")
    yield case("unsorted", "variables out of order", rebuilt(b, a), "not in its place")
    yield case(
        "unsorted_rank",
        "an absent rank after a rank",
        rebuilt(small(rank=0), small()),
        "in its place",
    )

    for name, text, says in (
        ("name_empty", b"", "is empty"),
        ("name_long", b"n" * 4097, "longer than 4096"),
        ("name_overlong", b"\xc0\xaf", "not valid UTF-8"),
        ("name_surrogate", b"\xed\xa0\x80", "not valid UTF-8"),
        ("name_beyond", b"\xf4\x90\x80\x80", "not valid UTF-8"),
        ("name_cut", b"x\xe2\x82", "not valid UTF-8"),
        ("name_newline", b"x\ny", "control character"),
        ("name_escape", b"\x1b[2J", "control character"),
        ("name_c1", b"\xc2\x9b", "control character"),
        ("name_bidi", b"x\xe2\x80\xaey", "control character"),
    ):
        file = rebuilt(small(), edit=splice(0, 3, struct.pack("<H", len(text)) + text))
        yield case(name, f"the name {text[:16]!r}", file, "variable number 1 has a name that", says)

    yield case(
        "iteration",
        "an iteration of 2^64 - 2",
        rebuilt(small(), edit=poke(ITERATION, "Q", (1 << 64) - 1)),
        "has an iteration beyond",
    )
    for name, dtype in (
        ("unknown", b"<q4"),
        ("order", b"|f4"),
        ("one_byte", b"<i1"),
        ("native", b"=f4"),
    ):
        yield edited(
            f"dtype_{name}", f"the dtype {dtype!r}", splice(DTYPE, DTYPE + 3, dtype), "dtype"
        )
    yield edited(
        "dtype_object", "a dtype of Python objects", splice(DTYPE, DTYPE + 3, b"|O8"), "dtype"
    )
    yield edited(
        "dtype_escape",
        "a dtype that would colour the terminal",
        splice(DTYPE, DTYPE + 3, b"<\x1b\x9b"),
        "\\x1b\\x9b",
    )

    many = struct.pack("<B65Q", 65, *[1] * 65)
    yield edited(
        "dimensions", "65 dimensions", splice(DIMENSIONS, ATOL, many), "more than 64 dimensions"
    )
    wrap = struct.pack("<B3Q", 3, 1 << 32, 1 << 31, 2)
    yield edited(
        "shape_wraps",
        "a product of dimensions that wraps around to 0",
        splice(DIMENSIONS, ATOL, wrap),
        "more than 2^62 bytes",
    )
    zero = struct.pack("<B3Q", 3, 0, 1 << 60, 2)
    yield edited(
        "shape_zero",
        "a dimension of 0 beside one that is too large",
        splice(DIMENSIONS, ATOL, zero),
        "more than 2^62 bytes",
    )
    yield edited("shape_larger", "a shape of 2^40 scalars over one leaf", poke(SHAPE, "Q", 1 << 40))

    for name, offset, value in (
        ("nan", ATOL, float("nan")),
        ("inf", RTOL, float("inf")),
        ("negative", ATOL, -1.0),
        ("negative_zero", RTOL, -0.0),
    ):
        yield edited(
            f"bound_{name}", f"an error bound of {value}", poke(offset, "d", value), "error bound"
        )
    yield edited("bound_both", "atol and ulps together", poke(ULPS, "Q", 4), "ULP")
    yield edited("chunk_small", "chunks of 0 bytes", poke(CHUNK, "I", 0), "chunk_bytes")
    yield edited("chunk_large", "chunks of 4 GiB", poke(CHUNK, "I", (1 << 32) - 1), "chunk_bytes")
    yield edited("arity_1", "an arity of 1", poke(ARITY, "H", 1), "arity")
    yield edited("arity_257", "an arity of 257", poke(ARITY, "H", 257), "arity")
    yield edited("levels_even", "4 residue levels", poke(REQUESTED, "B", 4), "residue_levels")
    yield edited("levels_0", "0 residue levels", poke(REQUESTED, "B", 0), "residue_levels")
    yield edited(
        "levels_other",
        "effective residue levels that were not asked for",
        poke(EFFECTIVE, "B", 0),
        "residue levels",
    )
    yield edited("flags", "an unknown flag", poke(FLAGS, "B", 5), "unknown flags")
    for name, fills, says in (
        ("minus_zero", [1 << 31], "canonical form"),
        ("nan", [0x7F800001], "canonical form"),
        ("wide", [1 << 32], "fit"),
        ("twice", [5, 5], "twice"),
        ("many", [*range(1, 18)], "16 fill values"),
    ):
        text = struct.pack(f"<B{len(fills)}Q", len(fills), *fills)
        yield edited(
            f"fill_{name}", f"the fill values {fills[:3]}", splice(FILLS, FILLS + 1, text), says
        )


def unsound(files: Mapping[str, bytes]) -> Iterator[Unsound]:
    """files: the sound vectors by name. All but those of golden_hostile_sections.py."""
    yield from damaged(files)
    yield from lying_directories(files)
