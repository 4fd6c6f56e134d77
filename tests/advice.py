"""Whether what ciwrap proposes for two runs is safe: no edit of a number passes unless it is told.

    python tests/advice.py FIRST SECOND
    python tests/advice.py PROJECT

FIRST, SECOND: folders with the outputs of two runs of the same command. What `compare` and `init
--runs` propose for their texts is taken, and random digits are changed in the second run: every
change beyond the proposed bound differs, or its line is listed as left out. For arrays, the lines
that a check advises, and edits beyond them, are what the tests take from here.

PROJECT: a folder that `ciwrap init --runs` has configured and `ciwrap accept` has made goldens of.
Random numbers in the outputs of each check are changed, and what still matches is printed; `ciwrap
check --verbose` says what of it is left out.
"""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from command_line import call
from numpy.typing import NDArray
from optional_libraries import needs

from ciwrap import _core
from ciwrap.base.errors import CiwrapError
from ciwrap.studies.same_runs import text_noise

EDITS = 30
Arrays = Mapping[str, NDArray[Any]]
Settings = Mapping[str, Any]
BOUND = {"atol", "rtol", "ulps"}
# Of these a user chooses: what they need is not in the output.
NOT_WHOLE = ("ID",)
# A new value may lie a whole bound beside its golden, so an edit by two bounds may come back to it.
CLEARLY = 3
_TRIES = 50
_EXCHANGED = 0.25  # so many of the edits
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
    noise = text_noise([first], second, second.parent)
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


def remedies(document: Any) -> dict[str, list[str]]:
    """By variable, the lines that are advised for all of what differs."""
    found: dict[str, list[str]] = {}
    for one in document["checks"][0]["variables"]:
        for told in one.get("explanations", ()):
            line = told.get("remedy")
            is_whole = told["held_count"] == told["differing_count"]
            if line and is_whole and not line.endswith(NOT_WHOLE):
                found.setdefault(one["name"], []).append(line)
    return found


def bound_with(bound: str, line: str) -> dict[str, Any]:
    """The settings of a variable, once the line stands there: an `atol` alone sets `rtol` to 0."""
    said = yaml.safe_load(line if line.startswith("{") else f"{{{line}}}")
    others = set() if said.keys().isdisjoint(BOUND) else BOUND
    known = yaml.safe_load(f"{{{bound}}}")
    return {**{key: value for key, value in known.items() if key not in others}, **said}


def edits(arrays: Arrays, settings: Mapping[str, Settings], seed: int) -> Iterator[tuple[str, Any]]:
    """What was edited, and all arrays with the one edit: a number is another one, clearly beyond
    the settings of its variable, or two such numbers changed places. At most EDITS; fewer where
    most numbers are within the settings.
    """
    random = np.random.default_rng(seed)
    names = sorted(name for name, array in arrays.items() if array.size)
    for _ in range(EDITS):
        name = names[random.integers(len(names))]
        how = settings.get(name, {})
        flat = arrays[name].reshape(-1)
        for _ in range(_TRIES):
            at, other = (int(one) for one in random.integers(flat.size, size=2))
            is_exchange = random.random() < _EXCHANGED and _is_beyond(
                flat[other], flat[at], how, at
            )
            value = flat[other] if is_exchange else _another(flat, at, how, random)
            if _is_beyond(flat[at], value, how, at):
                edited = flat.copy()
                edited[at] = value
                if is_exchange:
                    edited[other] = flat[at]
                said = f"{name}[{at}]: {flat[at]!r} -> {value!r}"
                yield said, {**arrays, name: edited.reshape(arrays[name].shape)}
                break


def _another(values: NDArray[Any], at: int, settings: Settings, random: np.random.Generator) -> Any:
    """A number that could stand there instead."""
    value, kind = values[at], values.dtype.type
    if values.dtype.kind == "U":
        return kind(str(value)[:-1] + str(random.integers(10)))
    made = [-value, kind(0), values[random.integers(values.size)]]
    if values.dtype.kind != "f":
        return [*made, value + kind(1)][random.integers(4)]
    with np.errstate(all="ignore"):
        size = random.choice([-1.0, 1.0]) * 10.0 ** random.uniform(-8, 4)
        made += [kind(np.nan), kind(np.inf)]
        made += [kind(value + size), kind(value * (1 + size))] * 3
        # Parts of a period are no whole ones.
        for period in np.atleast_1d(settings.get("period", [])):
            made += [kind(value + period / part) for part in (2, 3, 4)]
    return made[random.integers(len(made))]


def _is_beyond(old: Any, new: Any, settings: Settings, at: int) -> bool:
    if not isinstance(old, np.floating):
        return bool(old != new)
    if not np.isfinite(new):
        return bool(np.isfinite(old))
    with np.errstate(all="ignore"):
        moved, size = abs(float(new) - float(old)), abs(float(old))
        periods = np.atleast_1d(settings.get("period", 0.0))
        period = float(periods[at % periods.size])
        if period:
            moved = abs(moved - np.rint(moved / period) * period)
        width = float(settings.get("atol", 0.0)) + float(settings.get("rtol", 0.0)) * size
        is_short = settings.get("mixed_precision", False)
        step = float(np.spacing(np.float32(size) if is_short else np.abs(old)))
        return bool(moved > CLEARLY * max(width, (1 + settings.get("ulps", 0)) * step))


def matching_edits(project: Path) -> Iterator[str]:
    """Edits of a number in an output under which its check matches, of EDITS for each check."""
    checks = yaml.safe_load((project / "ciwrap.yaml").read_text())["checks"]
    for name, check in checks.items():
        pattern = re.sub(r"\{[^}]*\}", "*", check["outputs"])
        left_out = {*check.get("exclude", ()), "ciwrap.yaml"}
        paths = [one for one in sorted(project.glob(pattern)) if one.name not in left_out]
        chance = random.Random(name)
        for path in [one for one in paths for _ in range(-(-EDITS // len(paths)))]:
            kept = path.read_bytes()
            said = _edited(path, chance)
            done = call("check", name, folder=project, environment=dict(os.environ))
            path.write_bytes(kept)
            if said and done.returncode == 0:
                yield f"{name}: {path.name}: {said}"


def _edited(path: Path, chance: random.Random) -> str:
    """Changes one number of a file: an element of HDF5 or NetCDF 4, else a digit of a text, or a
    double at a multiple of 8 bytes. What, in words; '' if it has none.
    """
    data = path.read_bytes()
    if data.startswith(b"\x89HDF"):
        return _edited_element(path, chance)
    if b"\0" not in data:
        numbers = list(_NUMBER.finditer(data))
        at = chance.choice(numbers).start() if numbers else 0
        path.write_bytes(data[:at] + str((data[at] - ord("0") + 1) % 10).encode() + data[at + 1 :])
        line = data.count(b"\n", 0, at)
        return repr(data.splitlines()[line]) if numbers else ""
    doubles = np.frombuffer(data[: len(data) // 8 * 8], "<f8").copy()
    plain = np.flatnonzero((abs(doubles) > 1e-9) & (abs(doubles) < 1e9))
    if not plain.size:
        return ""
    at = chance.choice(plain.tolist())
    doubles[at] *= 1.001
    path.write_bytes(doubles.tobytes() + data[doubles.nbytes :])
    return f"{doubles[at]!r} at byte {8 * at}"


def _edited_element(path: Path, chance: random.Random) -> str:
    with needs("h5py").File(path, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        # What stands for a dimension without a variable holds no values.
        arrays = [
            one
            for one in map(file.get, names)
            if getattr(one, "dtype", None) in ("<f8", "<f4", "<i4", "<i8")
            and one.size
            and not bytes(one.attrs.get("NAME", b"")).startswith(b"This is a netCDF dimension")
        ]
        if not arrays:
            return ""
        array = chance.choice(arrays)
        at = tuple(map(chance.randrange, array.shape))
        array[at] = array[at] * 1.001 if array[at] and array.dtype.kind == "f" else array[at] + 1
        return f"{array.name}{list(at)}"


def main(arguments: Sequence[str]) -> int:
    if len(arguments) == 1:
        print("\n".join(matching_edits(Path(arguments[0]).resolve())) or "no edit matches")
        return 0
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
