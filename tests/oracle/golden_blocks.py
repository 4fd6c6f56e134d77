"""Reference implementation of docs/reference/tree-format.md, section 4: compressed blocks."""

from __future__ import annotations

import struct

import numpy as np
import zstandard

BLOCK_BYTES = 1 << 20
SHUFFLED = 1 << 31
ZSTD_LEVEL = 3


class FormatError(ValueError):
    """The bytes are no golden file."""


def require(condition: bool, what: str) -> None:
    if not condition:
        raise FormatError(what)


def shuffle(block: bytes, unit: int) -> bytes:
    moved: bytes = np.frombuffer(block, np.uint8).reshape(-1, unit).T.tobytes()
    return moved


def unshuffle(block: bytes, unit: int) -> bytes:
    moved: bytes = np.frombuffer(block, np.uint8).reshape(unit, -1).T.tobytes()
    return moved


def pack_blocks(raw: bytes, unit: int) -> bytes:
    table, payload = [], []
    compressor = zstandard.ZstdCompressor(
        level=ZSTD_LEVEL, write_content_size=True, write_checksum=False, write_dict_id=False
    )
    for at in range(0, len(raw), BLOCK_BYTES):
        block = raw[at : at + BLOCK_BYTES]
        choices = [(block, 0), (compressor.compress(block), 0)]
        if unit > 1:
            choices.append((compressor.compress(shuffle(block, unit)), SHUFFLED))
        stored, flag = min(choices, key=lambda choice: len(choice[0]))
        table.append(struct.pack("<I", len(stored) | flag))
        payload.append(stored)
    return b"".join(table + payload)


def unpack_blocks(stored: bytes, raw_bytes: int, unit: int, what: str) -> bytes:
    count = -(-raw_bytes // BLOCK_BYTES)
    require(len(stored) >= 4 * count, f"{what}: block table is cut off")
    table = struct.unpack_from(f"<{count}I", stored)
    at = 4 * count
    blocks = []
    for index, entry in enumerate(table):
        size, shuffled = entry & (SHUFFLED - 1), bool(entry & SHUFFLED)
        wanted = min(BLOCK_BYTES, raw_bytes - index * BLOCK_BYTES)
        piece = stored[at : at + size]
        at += size
        name = f"{what}: block {index}"
        require(1 <= size <= wanted and len(piece) == size, f"{name} has a wrong size")
        require(not shuffled or (size < wanted and unit > 1), f"{name} cannot be shuffled")
        block = piece if size == wanted else _inflate(piece, wanted, name)
        blocks.append(unshuffle(block, unit) if shuffled else block)
    require(at == len(stored), f"{what}: bytes after the last block")
    return b"".join(blocks)


def _inflate(frame: bytes, wanted: int, what: str) -> bytes:
    plain = frame[:4] == b"\x28\xb5\x2f\xfd" and len(frame) > 4 and frame[4] & 0x3F == 0x20
    require(plain, f"{what} is no plain Zstandard frame")
    try:
        size = zstandard.get_frame_parameters(frame).content_size
        require(size == wanted, f"{what} holds {size} bytes, not {wanted}")
        inflater = zstandard.ZstdDecompressor().decompressobj()
        block = inflater.decompress(frame)
    except zstandard.ZstdError as error:
        raise FormatError(f"{what} cannot be decompressed") from error
    complete = inflater.eof and not inflater.unused_data and len(block) == wanted
    require(complete, f"{what} is not one whole frame")
    return block
