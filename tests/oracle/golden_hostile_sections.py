"""Golden files that are hostile in their sections: blocks, frames, residues, trees, bombs."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import zstandard

from . import golden_format as gf
from .golden_blocks import BLOCK_BYTES, SHUFFLED
from .golden_cases import variable_of
from .golden_hostile import TOO_LARGE, Unsound, flipped, rebuilt, reseal_header
from .trees import digest

if TYPE_CHECKING:
    from collections.abc import Iterator


def blocks(*pieces: tuple[int, bytes]) -> bytes:
    """A section of these table entries and stored bytes."""
    table = b"".join(struct.pack("<I", entry) for entry, _ in pieces)
    return table + b"".join(piece for _, piece in pieces)


def frame(raw: bytes, *, checksum: bool = False, content_size: bool = True) -> bytes:
    return zstandard.ZstdCompressor(
        level=3, write_content_size=content_size, write_checksum=checksum
    ).compress(raw)


def lying_sections() -> Iterator[Unsound]:
    zeros = variable_of("zeros", np.zeros(1000), keep_data=True, atol=1.0, residue_levels=15)
    raw = zeros.data
    assert raw is not None
    plain = frame(raw)

    def case(name: str, description: str, file: bytes, *says: str) -> Unsound:
        return Unsound(f"hostile_{name}", description, file, says)

    def stored(kind: int, section: bytes, variable: gf.Variable = zeros) -> bytes:
        parts = gf.sections(variable)
        parts[kind] = section
        return gf.assemble([gf.describe(variable)], [parts])

    def data(name: str, description: str, section: bytes, *says: str) -> Unsound:
        return case(name, description, stored(4, section), "the data of variable 'zeros'", *says)

    size = len(plain)
    yield data("block_table", "a data section of 3 bytes", b"\1\2\3", "block table that is cut off")
    yield data("block_none", "a block of no bytes", blocks((0, b"")), "size is wrong")
    yield data(
        "block_larger",
        "a block larger than it may be",
        blocks((8001, raw + b"\0")),
        "size is wrong",
    )
    yield data(
        "block_beyond",
        "a block that reaches beyond its section",
        blocks((size + 1, plain)),
        "size is wrong",
    )
    yield data(
        "block_tail",
        "bytes after the last block",
        blocks((size, plain)) + b"\0",
        "after their last block",
    )
    yield data(
        "block_flag",
        "a stored block marked as shuffled",
        blocks((8000 | SHUFFLED, raw)),
        "cannot be shuffled",
    )
    for name, description, bad in (
        ("frame_noise", "a block of noise", bytes(range(7, 207))),
        ("frame_checksum", "a frame with a checksum", frame(raw, checksum=True)),
        ("frame_unsized", "a frame without content size", frame(raw, content_size=False)),
        ("frame_shorter", "a frame of fewer bytes", frame(raw[:-1])),
        ("frame_bomb", "a frame of 64 MiB", frame(bytes(1 << 26))),
        ("frame_two", "two frames", frame(raw[:4000]) + frame(raw[4000:])),
        (
            "frame_skippable",
            "a skippable frame before the real one",
            b"\x50\x2a\x4d\x18\0\0\0\0" + plain,
        ),
        ("frame_cut", "a frame that is cut off", plain[:-1]),
    ):
        yield data(name, description, blocks((len(bad), bad)), "not a plain zstd frame")
    # A frame header for 8000 bytes, then a last block of the reserved type.
    reserved = plain[:7] + b"\x07\0\0"
    yield data(
        "frame_reserved",
        "a frame with a block of the reserved type",
        blocks((len(reserved), reserved)),
    )
    other = frame(b"\1" * 8000)
    yield data(
        "data_other",
        "data that are not those the directory describes",
        blocks((len(other), other)),
        "once decompressed",
    )

    packed = bytearray(zeros.residues)
    yield case(
        "residue_shuffled",
        "a shuffled block of residues",
        stored(2, blocks((len(frame(zeros.residues)) | SHUFFLED, frame(zeros.residues)))),
        "the residues of variable 'zeros'",
        "cannot be shuffled",
    )
    packed[7] = 225
    yield case(
        "residue_range",
        "a residue byte of 225 at k = 15",
        rebuilt(replace(zeros, residues=bytes(packed))),
        "residues that are out of range",
    )
    odd = variable_of("odd", np.zeros(21), atol=1.0, residue_levels=15, chunk_bytes=72)
    for name, at in (("middle", 4), ("last", 11)):
        tail = bytearray(odd.residues)
        tail[at] = 15 * 3
        yield case(
            f"residue_padding_{name}",
            f"a residue behind the end of a chunk ({name})",
            rebuilt(replace(odd, residues=bytes(tail))),
            "residues that are out of range",
        )

    tall = variable_of("tall", np.arange(4000.0), chunk_bytes=64)
    crown, lower = gf.sections(tall)[:2]
    assert crown is not None
    assert lower is not None
    yield case(
        "tree_node",
        "a node that is not what its children give",
        gf.assemble([gf.describe(tall)], [[flipped(crown, 40), lower, None, None, None]]),
        "variable 'tall' has a tree",
        "level 2",
    )
    yield case(
        "tree_leaf",
        "a leaf that its parent does not have",
        gf.assemble([gf.describe(tall)], [[crown, flipped(lower, 16 * 333), None, None, None]]),
        "variable 'tall' has a tree",
        "level 2",
    )
    never = variable_of("never", np.full(64, np.nan), chunk_bytes=64, equal_nan=False)
    parts = gf.sections(never)
    assert parts[0] is not None
    hidden = bytes(16) + parts[0][16:]
    yield case(
        "tree_short",
        "a tree section of one digest less",
        gf.assemble([gf.describe(tall)], [[crown, lower[16:], None, None, None]]),
        "length does not follow",
    )
    root_of_noise = gf.describe(never)[:-16] + bytes(16)
    yield case(
        "tree_never",
        "a root over leaves that match nothing, which is not itself such",
        gf.assemble([root_of_noise], [[hidden, *parts[1:]]]),
        "level 0",
    )
    file = gf.encode([tall])
    gap = file + b"\0"
    yield case(
        "gap",
        "a byte that belongs to no section",
        reseal_header(gap, 16, "Q", len(gap)),
        "1 bytes that belong to no variable",
    )
    yield case(
        "beyond",
        "sections that reach beyond the end",
        reseal_header(file[:-1], 16, "Q", len(file) - 1),
        "would reach beyond its end",
    )


def bombs() -> Iterator[Unsound]:
    count = 16
    zeros = variable_of("zeros", b"", dtype="|u1", keep_data=True, chunk_bytes=1 << 24)
    leaf = digest(bytes(count * BLOCK_BYTES))
    whole = replace(
        zeros, shape=(count * BLOCK_BYTES,), leaves=leaf, data=bytes(count * BLOCK_BYTES)
    )
    yield Unsound(
        "hostile_bomb",
        "16 MiB of zeros in a kilobyte, with a limit of 1 MiB",
        gf.encode([whole]),
        ("more than 1048576 bytes", "variable 'zeros'"),
        TOO_LARGE,
        1 << 20,
    )
    huge = replace(zeros, shape=(1 << 33,), leaves=leaf * 512, data=b"")
    parts = [*gf.sections(huge)[:2], None, None, bytes(100)]
    yield Unsound(
        "hostile_bomb_empty",
        "a shape of 8 GiB over a data section of 100 bytes",
        gf.assemble([gf.describe(huge)], [parts]),
        ("block table",),
    )
