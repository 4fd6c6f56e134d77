"""The conformance vectors of the golden file: sound ones, and every way of being unsound.

    python -m oracle.golden_vectors FOLDER        (from tests/)

writes them, with vectors.json that describes them. All numbers in them are exact (integers and
divisions by powers of two), so the files are the same wherever they are made.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import golden_format as gf
from .golden_cases import variable_of
from .golden_hostile import unsound
from .golden_hostile_sections import bombs, lying_sections

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = "golden file, format versions 1 and 2 (docs/reference/tree-format.md)"
MADE_BY = "tests/oracle/golden_vectors.py, which does not import ciwrap"


@dataclass(frozen=True, slots=True)
class Vector:
    """error: the code that reading must fail with, None for a sound file.

    is_earlier: as an earlier build wrote it; it is read, but not written like that any more.
    """

    name: str
    description: str
    file: bytes
    error: str | None = None
    says: tuple[str, ...] = ()  # what the message must hold
    limit: int | None = None  # max_decoded_bytes to read with
    is_earlier: bool = False


def noise(count: int, seed: int = 1) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers in [-1, 1), exact multiples of 2^-31 from a multiplicative generator."""
    state, out = seed, []
    for _ in range(count):
        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        out.append(((state >> 32) - (1 << 31)) / (1 << 31))
    return np.array(out, dtype=np.float64)


def of_every_dtype() -> Iterator[gf.Variable]:
    values = noise(40) * 100
    for name in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"):
        for order in "<>" if name[1] != "1" else "|":
            array = (
                np.abs(values).astype(order + name)
                if name[0] == "u"
                else values.astype(order + name)
            )
            exact = name[0] not in "fi"
            bound: dict[str, Any] = {} if exact else {"atol": 2.0, "residue_levels": 5}
            yield variable_of(f"{order}{name}", array, keep_data=True, **bound)
    for name in ("c8", "c16"):
        pair = (values + 1j * values[::-1]).astype("<" + name)
        yield variable_of(
            f"complex {name}", pair, rtol=0.125, atol=0.5, residue_levels=3, chunk_bytes=64
        )
    bfloat = (values.astype("<f4").view("<u4") >> 16).astype("<u2")
    yield variable_of("bfloat16", bfloat.tobytes(), dtype="<bf2", ulps=3, residue_levels=15)
    yield variable_of("bytes", np.array([b"one", b"two", b"three"]), keep_data=True)
    yield variable_of(
        "unicode", np.array(["eins", "zwei", "dr\u00e4i"], dtype="<U5"), keep_data=True
    )
    yield variable_of("unicode, swapped", np.array(["a", "b"], dtype=">U2"), keep_data=True)


def history() -> Iterator[gf.Variable]:
    for iteration in (None, 0, 1, 10):
        for rank in (None, 0, 2):
            for name in ("x", "xy", "\u03b8/\u6e29\u5ea6", "\U0001f30a"):
                yield variable_of(
                    name, noise(3, seed=len(name)).astype("<f4"), iteration=iteration, rank=rank
                )


def with_specials() -> Iterator[gf.Variable]:
    values = noise(64)
    values[[3, 17]] = np.nan
    values[5], values[6], values[7] = np.inf, -np.inf, -1e30
    yield variable_of("nan is never equal", values, equal_nan=False, chunk_bytes=64, arity=2)
    yield variable_of(
        "masked", values, atol=0.25, residue_levels=3, fill_values=(-1e30, 0.0, float("nan"))
    )
    yield variable_of("integer fill", np.arange(-8, 8), fill_values=(-1, 7), atol=1)


def sound() -> Iterator[Vector]:
    def made(name: str, description: str, *variables: gf.Variable) -> Vector:
        return Vector(name, description, gf.encode(variables))

    yield made(
        "scalar", "one 0-d float64, exact: no section at all", variable_of("pi", np.array(3.140625))
    )
    empty = np.zeros((3, 0, 2), dtype="<f4")
    yield made(
        "empty",
        "zero scalars, with residues and with data",
        variable_of("residues", empty, atol=1.0, residue_levels=15),
        variable_of("data", empty, keep_data=True),
    )
    yield made(
        "tree",
        "313 leaves at arity 16: a crown of two levels, a lower section of one",
        variable_of("field", noise(5000).astype("<f4"), atol=2.0**-7, chunk_bytes=64),
    )
    yield made(
        "crown_full",
        "arity 256: exactly 256 leaves, so there is no lower section",
        variable_of("field", noise(2048), chunk_bytes=64, arity=256),
    )
    yield made(
        "crown_over",
        "one leaf more: the crown has one level of two nodes",
        variable_of("field", noise(2049), chunk_bytes=64, arity=256),
    )
    rows = noise(4001).astype("<f4")
    yield made(
        "residues",
        "three numbers of residue levels; chunks that do not fill their last byte",
        variable_of("k15", rows, atol=2.0**-10, residue_levels=15, chunk_bytes=100),
        variable_of("k3", rows, rtol=2.0**-10, residue_levels=3, chunk_bytes=68),
        variable_of("k255", rows.astype("<f8"), ulps=1 << 40, residue_levels=255),
        variable_of("k capped by ulps", rows, ulps=2, residue_levels=15),
    )
    special = rows[:70].copy()
    special[[3, 40]], special[5], special[6], special[7] = np.nan, np.inf, -np.inf, -9.0
    special[64] = 0.0
    yield made(
        "summaries",
        "format 2: summaries beside residues, and beside a tree alone",
        variable_of(
            "k15", rows, atol=2.0**-10, residue_levels=15, chunk_bytes=100, keep_summaries=True
        ),
        variable_of("none kept", rows, atol=2.0**-10, chunk_bytes=400),
        variable_of(
            "special",
            special,
            rtol=2.0**-10,
            fill_values=(-9.0,),
            chunk_bytes=64,
            keep_summaries=True,
        ),
        variable_of("steps", special, ulps=9, chunk_bytes=64, keep_summaries=True),
        variable_of("whole", np.arange(-70, 70), atol=3, chunk_bytes=64, keep_summaries=True),
    )
    yield made(
        "data_blocks",
        "data of more than one block: shuffled, plain and stored ones",
        variable_of("count", np.arange(140_000), keep_data=True),
        variable_of("few values", noise(8)[np.arange(2000) * 7 % 11 % 8], keep_data=True),
        variable_of("noise", (noise(400, seed=7) * 2**31).astype("<i4"), keep_data=True),
    )
    yield made("dtypes", "every dtype in both byte orders", *of_every_dtype())
    yield made(
        "history", "iterations, ranks and names, given out of order", *reversed([*history()])
    )
    yield made(
        "specials", "NaN, infinities, fill values; leaves that match nothing", *with_specials()
    )
    yield Vector(
        "earlier_idle_bounds",
        "parts of bounds that mean nothing for their dtypes, stated as they were asked for",
        gf.encode(with_idle_bounds()),
        is_earlier=True,
    )


def with_idle_bounds() -> Iterator[gf.Variable]:
    counts = np.arange(40)
    yield variable_of("rtol", counts.astype("<i4"), rtol=2.0**-10, keep_data=True)
    yield variable_of(
        "atol and rtol", counts.astype(">i8"), atol=2.0, rtol=0.5, residue_levels=5, keep_data=True
    )
    yield variable_of("fraction", counts.astype("|u1"), atol=3.75, rtol=1.0, residue_levels=3)
    yield variable_of("flags", counts % 3 == 0, atol=2.0**996, keep_data=True)
    yield variable_of("bytes", np.array([b"one", b"two"]), rtol=2.0, keep_data=True)
    yield variable_of("unicode", np.array(["eins", "zwei"], dtype=">U4"), atol=1.0)
    yield variable_of("float", noise(5), atol=0.5, rtol=0.25)


def vectors() -> list[Vector]:
    found = [*sound()]
    by_name = {vector.name: vector.file for vector in found}
    found.extend(
        Vector(case.name, case.description, case.file, case.error, case.says, case.limit)
        for case in [*unsound(by_name), *lying_sections(), *bombs()]
    )
    return found


def variable_summary(v: gf.Variable) -> dict[str, Any]:
    evidence = "data" if v.data is not None else "residues" if v.levels > 1 else "tree"
    return {
        "name": v.name,
        "iteration": v.iteration,
        "rank": v.rank,
        "dtype": v.dtype,
        "shape": list(v.shape),
        "atol": v.atol,
        "rtol": v.rtol,
        "ulps": v.ulps,
        "residue_levels": v.levels,
        "leaf_count": v.leaf_count,
        "root": v.tree[0].hex(),
        "evidence": evidence,
    }


def summary(vector: Vector) -> dict[str, Any]:
    out: dict[str, Any] = {
        "file": f"{vector.name}.golden",
        "description": vector.description,
        "bytes": len(vector.file),
        "sha256": hashlib.sha256(vector.file).hexdigest(),
    }
    if vector.limit is not None:
        out["max_decoded_bytes"] = vector.limit
    if vector.error is not None:
        return out | {"error": vector.error, "message_holds": list(vector.says)}
    stated = gf.decode(vector.file)
    out |= {"root": gf.root(vector.file).hex()}
    if vector.is_earlier:
        out |= {"root_written_anew": gf.root(gf.encode(map(gf.as_allowed, stated))).hex()}
    return out | {"variables": [variable_summary(v) for v in stated]}


def index(found: list[Vector]) -> str:
    document = {
        "format": FORMAT,
        "made_by": MADE_BY,
        "compressor": "Zstandard 1.5.7, level 3",
        "vectors": [summary(vector) for vector in found],
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def main() -> None:
    folder = Path(sys.argv[1])
    found = vectors()
    for vector in found:
        (folder / f"{vector.name}.golden").write_bytes(vector.file)
    (folder / "vectors.json").write_text(index(found))


if __name__ == "__main__":
    main()
