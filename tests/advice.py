"""Whether what ciwrap proposes for two runs is safe: no edit of a number passes unless it is told.

    python tests/advice.py FIRST SECOND

FIRST, SECOND: folders with the outputs of two runs of the same command. What `compare` and `init
--runs` propose for their texts is taken, and random digits are changed in the second run: every
change beyond the proposed bound differs, or its line is listed as left out.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ciwrap import _core
from ciwrap.base.errors import CiwrapError
from ciwrap.studies.same_runs import text_noise

EDITS = 30
_NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)?(?:[eEdD][-+]?[0-9]+)?")


def proposals(first: Path, second: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is proposed for two texts, one by one as `compare` does, and in all as `init` does."""
    found = _core.compare_texts(first, second)
    for group in (*found["number_groups"], *found["line_groups"]):
        for one in group["remedies"]:
            yield f"ignore {one}", {"ignore": [one]}
        place = group.get("place", b"").decode()
        if place:
            yield f"place {place}", {"ignore_places": [place]}
    noise = text_noise([first], second)
    if noise.problem is not None:
        return  # `init` leaves the text out
    places = [one.what for one in noise.places]
    how = {"ignore": noise.signs, "ignore_places": places, "rtol": noise.rtol, "atol": noise.atol}
    yield "all of init", how


def _value(number: bytes) -> float:
    return float(number.upper().replace(b"D", b"E"))


def passed_in_silence(text: bytes, how: dict[str, Any], seed: int) -> list[str]:
    """Edits of a text that match, and whose line is not listed as left out."""
    rng = random.Random(seed)
    numbers = list(_NUMBER.finditer(text))
    missed = []
    for number in rng.sample(numbers, min(EDITS, len(numbers))):
        at = rng.choice([n for n in range(*number.span()) if text[n] in b"0123456789"])
        digit = rng.choice([one for one in b"0123456789" if one != text[at]])
        edited = text[:at] + bytes([digit]) + text[at + 1 :]
        old, new = (_value(one[slice(*number.span())]) for one in (text, edited))
        if abs(new - old) <= how.get("rtol", 0.0) * abs(old) + how.get("atol", 0.0):
            continue
        found = _core.compare_texts(text, edited, **how)
        unpaired = found["golden"]["unpaired_lines"]
        if found["differing_count"] or unpaired:
            continue
        line = text.count(b"\n", 0, at) + 1
        if line not in {group["golden"]["line"] for group in found["masked_groups"]}:
            missed.append(f"line {line}: {text.splitlines()[line - 1]!r} at byte {at}")
    return missed


def unsafe(first: Path, second: Path) -> list[str]:
    """What passes in silence under a proposal for two texts."""
    text = second.read_bytes()
    return [
        f"{second.name}: {what}: {one}"
        for number, (what, how) in enumerate(proposals(first, second))
        for one in passed_in_silence(text, how, number)
    ]


def main(arguments: Sequence[str]) -> int:
    first, second = map(Path, arguments)
    found: list[str] = []
    for path in sorted(one for one in first.rglob("*") if one.is_file()):
        other = second / path.relative_to(first)
        try:
            found += unsafe(path, other) if other.exists() else []
        except CiwrapError as error:  # no text
            print(f"{path}: {error.message}")
    print("\n".join(found) or "no edit passes in silence")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
