"""All settings of a variable together mean the same on every road, and what an oracle says.

Each project holds many variables, each with settings of its own. They are held against an oracle in
fractions: checked against goldens, compared as folders and as captured runs, and as arrays in
memory.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle.one_variable import Asked, Told, judge

import ciwrap
from ciwrap.cli.main import run

SEEDS = range(int(os.environ.get("CIWRAP_TEST_SEEDS", "3")))
VARIABLES = 60
ROWS = 12
FLOATS = ("f2", "f4", "f8")
WHOLE = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
OTHERS = ("c8", "c16", "bf2", "?", "S5", "U4")
SHAPES = ((), (1,), (37,), (5, 9), (ROWS, 3), (2, 3, 4), (0,), (3, 0), (150,))
EVIDENCE = ("data", "residues", "tree")


@dataclass
class Case:
    """One variable. golden, new: in the order of ids, if they are aligned."""

    name: str
    golden: Any
    new: Any
    asked: Asked
    said: dict[str, Any]
    masks: tuple[Any, Any] | None
    is_aligned: bool

    @property
    def told(self) -> Told | None:
        return judge(self.golden, self.new, self.asked, self.masks)


def draw(rng: np.random.Generator, name: str, *, is_relaxed: bool = False) -> Case:
    kind = str(rng.choice([*FLOATS, *FLOATS, *WHOLE, *OTHERS]))
    asked, said = draw_settings(rng, kind)
    asked = replace(asked, is_strict=not is_relaxed)
    is_aligned = rng.random() < 0.15
    shape = (ROWS, 3) if is_aligned or asked_components(asked) else SHAPES[rng.integers(len(SHAPES))]
    golden = draw_golden(rng, kind, shape, asked)
    new = move(rng, golden, kind, asked)
    masks = None
    if rng.random() < 0.25 and golden.size and kind != "bf2":
        mask = rng.random(shape) < rng.choice([0.1, 0.5, 0.9])
        masks = (mask, mask)
    if masks is not None:
        said["mask"] = f"mask_{name}"
    if asked.mixed_precision and rng.random() < 0.7:
        other = "f8" if kind == "f4" else "f4"
        with np.errstate(all="ignore"):
            if rng.random() < 0.5:
                golden = golden.astype(other)
            else:
                new = new.astype(other)
    elif golden.dtype.kind in "iufc" and kind != "bf2":
        order = rng.random()
        if order < 0.25:
            golden = golden.astype(golden.dtype.newbyteorder(">"))
        if order < 0.22 or order > 0.99:
            new = new.astype(new.dtype.newbyteorder(">"))
        if is_relaxed and kind != "f2" and rng.random() < 0.2:
            with np.errstate(all="ignore"):
                others = ["c8", "c16"] if kind[0] == "c" else ["f8", "f4", "i8", "i4", "u8", "c16"]
                new = new.astype(str(rng.choice(others)))
    if golden.ndim > 1 and rng.random() < 0.3:
        new = np.asfortranarray(new)
    return Case(name, golden, new, asked, said, masks, is_aligned)


def asked_components(asked: Asked) -> bool:
    return isinstance(asked.period, tuple) and len(asked.period) > 1


def draw_settings(rng: np.random.Generator, kind: str) -> tuple[Asked, dict[str, Any]]:
    """What is asked of a variable of a kind, and the same as ciwrap.yaml says it."""
    is_real, is_whole = kind in FLOATS, kind in WHOLE
    asked: dict[str, Any] = {}
    bounds = ["exact", "atol", "atol", "atol", "rtol", "mixed", "ulps"]
    match str(rng.choice(bounds)):
        case "atol":
            asked["atol"] = float(rng.choice([0.25, 0.3, 0.1, 1.0, 3.5, 1e-3, 1e-300, 5e-324, 1e30]))
        case "rtol":
            asked["rtol"] = float(rng.choice([0.125, 1e-3, 1e-7, 2.0]))
        case "mixed":
            asked["atol"] = float(rng.choice([0.25, 1e-3, 1e-12]))
            asked["rtol"] = float(rng.choice([0.125, 1e-3, 0.5]))
        case "ulps":
            asked["ulps"] = int(rng.choice([1, 3, 40]))
    said = dict(asked)
    if (is_real or is_whole) and not asked.get("ulps") and rng.random() < 0.3:
        asked["combine"] = said["combine"] = str(rng.choice(["both", "either"]))
    elif kind in (*FLOATS, "i4", "u2") and not {"rtol", "ulps"} & asked.keys():
        if rng.random() < 0.6 and asked.get("atol", 0) < 0.4:
            period = [(3.0,), (1.0, 0.0, 2.5), (360.0,)][rng.integers(3)]
            asked["period"] = period if len(period) > 1 else period[0]
            said["period"] = list(period) if len(period) > 1 else period[0]
    if rng.random() < 0.4:
        asked["equal_nan"] = said["equal_nan"] = bool(rng.random() < 0.5)
    if rng.random() < 0.4 and kind not in ("?", "S5", "U4"):
        fills = [(-1.0,), (0.0,), (-999.0, 0.1), (1e20, -2.0), (math.nan, 3.0)][rng.integers(5)]
        if kind == "bf2":
            fills = (-1.0, 2.0)
        asked["fill_values"] = fills
        said["fill_values"] = ["nan" if one != one else one for one in fills]
    if kind in ("f4", "f8") and rng.random() < 0.3:
        asked["mixed_precision"] = said["mixed_precision"] = True
    said["chunk_bytes"] = int(rng.choice([64, 128, 4096]))
    said["residue_levels"] = int(rng.choice([1, 3, 15, 255]))
    return Asked(**asked, is_bfloat16=kind == "bf2"), said


def draw_golden(rng: np.random.Generator, kind: str, shape: Any, asked: Asked) -> Any:
    count = math.prod(shape)
    if kind == "?":
        return (rng.random(count) < 0.5).reshape(shape)
    if kind in ("S5", "U4"):
        return rng.choice(["", "a", "ab", "abc"], count).astype(kind).reshape(shape)
    if kind == "bf2":
        return rng.integers(0, 1 << 16, count).astype("u2").reshape(shape)
    if kind in WHOLE:
        limits = np.iinfo(kind)
        small = rng.integers(max(limits.min, -10), 11, count).astype(kind)
        ends = rng.choice(np.array([limits.min, limits.max], kind), count)
        return np.where(rng.random(count) < 0.9, small, ends).astype(kind).reshape(shape)
    if kind in ("c8", "c16"):
        part = {"c8": "f4", "c16": "f8"}[kind]
        found = np.empty(shape, kind)
        found.real, found.imag = (draw_golden(rng, part, shape, asked) for _ in "ri")
        return found
    values = rng.normal(size=count) * 10.0 ** rng.integers(-3, 4)
    finite = np.finfo(kind)
    odd = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0]
    odd += [float(finite.max), float(finite.smallest_subnormal), *asked.fill_values]
    with np.errstate(all="ignore"):
        found = np.where(rng.random(count) < 0.1, rng.choice(odd, count), values).astype(kind)
    return found.reshape(shape)


def move(rng: np.random.Generator, golden: Any, kind: str, asked: Asked) -> Any:
    """New values: most as they were, some at the bound or a step from it, some odd."""
    share = rng.choice([0.0, 0.02, 0.3, 1.0, 1.0])
    is_gentle = rng.random() < 0.65
    chosen = rng.random(golden.shape) < share
    if kind in ("c8", "c16"):
        part = {"c8": "f4", "c16": "f8"}[kind]
        found = golden.copy()
        found.real = move(rng, golden.real.astype(part), part, asked)
        return found
    if kind in ("?", "S5", "U4", "bf2"):
        moved = draw_golden(rng, kind, golden.shape, asked)
        if kind == "bf2" and is_gentle:
            moved = golden + rng.integers(0, 2, golden.shape).astype("u2")
        return np.where(chosen, moved, golden).astype(golden.dtype)
    if kind in WHOLE:
        step = rng.integers(0, max(2, min(5, int(min(asked.atol, 10)) + (not is_gentle) * 2)), golden.shape)
        with np.errstate(all="ignore"):
            return np.where(chosen, golden + step.astype(kind), golden).astype(kind)
    with np.errstate(all="ignore"):
        wide = golden.astype("f8")
        size = np.abs(wide)
        bound = asked.atol + asked.rtol * size
        if asked.combine != "sum":
            join = np.minimum if asked.combine == "both" else np.maximum
            bound = join(asked.atol, asked.rtol * size)
        factor = rng.choice([0.3, 0.5, 0.8] if is_gentle else [0.5, 1.0, 1.0, 1.01, 3.0], golden.shape)
        sign = rng.choice([-1.0, 1.0], golden.shape)
        moved = (wide + sign * factor * bound).astype(kind)
        if asked.ulps or not (asked.atol or asked.rtol):
            moved = golden
            for _ in range(int(rng.integers(0, asked.ulps + 1 + (not is_gentle)))):
                moved = np.nextafter(moved, golden.dtype.type(9))
        if not is_gentle:
            nudged = np.nextafter(moved, (sign * np.inf).astype(kind))
            moved = np.where(rng.random(golden.shape) < 0.4, nudged, moved)
            odd = rng.choice([math.nan, math.inf, -math.inf, 0.0, *asked.fill_values], golden.shape)
            moved = np.where(rng.random(golden.shape) < 0.1, odd.astype(kind), moved)
        if asked.period:
            periods = np.resize(np.asarray(asked.period, "f8"), golden.shape or (1,))
            turns = rng.integers(-2, 3, golden.shape)
            moved = (moved.astype("f8") + turns * periods.reshape(golden.shape)).astype(kind)
    return np.where(chosen, moved, golden).astype(kind)


def write(folder: Path, cases: list[Case], side: int, rng: np.random.Generator) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    order = rng.permutation(ROWS)
    np.save(folder / "ids.npy", order.astype("i4"))
    for one in cases:
        array = (one.golden, one.new)[side]
        mask = None if one.masks is None else one.masks[side]
        if one.is_aligned:
            array, mask = array[order], None if mask is None else mask[order]
        if one.asked.is_bfloat16:
            (folder / f"{one.name}.bin").write_bytes(array.astype("<u2").tobytes())
            shape = json.dumps(list(array.shape))
            (folder / f"{one.name}.bin.yaml").write_text(f"dtype: bfloat16\nshape: {shape}\n")
        else:
            np.save(folder / f"{one.name}.npy", array)
        if mask is not None:
            np.save(folder / f"mask_{one.name}.npy", mask)


def configure(cases: list[Case], outputs: str, evidence: str, path: str) -> None:
    variables: dict[str, Any] = {}
    for one in cases:
        aligned = {"align_by": "ids"} if one.is_aligned else {}
        # What no digest can tell keeps its data.
        is_beyond = {"combine", "period"} & one.said.keys()
        own = "data" if is_beyond else evidence
        variables[one.name] = {**one.said, **aligned, "evidence": own}
        if one.masks is not None:
            variables[f"mask_{one.name}"] = aligned
    for one in variables.values():
        one.setdefault("align_by", "none")
    strict = {"dtype": cases[0].asked.is_strict}
    check = {"outputs": outputs, "strict": strict, "variables": variables}
    text = json.dumps({"checks": {"c": check}})
    Path(path).write_text(text)


def results(*words: str) -> tuple[int, dict[str, Any]]:
    Path("r.json").unlink(missing_ok=True)
    all_of_them = ("--json-detail", "all") if words[0] == "compare" else ()
    code = run([*words, "--json", "r.json", *all_of_them])
    found = json.loads(Path("r.json").read_text())["checks"][0]["variables"]
    return code, {one["name"]: one for one in found}


def number(value: Any) -> float | None:
    return None if value is None else float(value)


def near(found: float | None, true: float | None) -> bool:
    if found is None or true is None:
        return found is None and true is None
    return found == true or math.isclose(found, true, rel_tol=1e-9, abs_tol=1e-320)


def hold(case: Case, found: dict[str, Any], road: str) -> list[str]:
    """What a result says that is not true."""
    told, wrong = case.told, []

    def claim(is_true: bool, what: str) -> None:
        if not is_true:
            wrong.append(
                f"{road}: {case.name} {case.golden.dtype.str} {case.golden.shape} {case.said}: {what}"
                f"; found {found['verdict']} {found.get('reason')}"
            )

    verdict = found["verdict"]
    if told is None:
        claim(verdict == "not_comparable", "not comparable expected")
        return wrong
    claim(verdict != "not_comparable", "comparable")
    if verdict == "not_comparable":
        return wrong
    count = len(told.differing)
    claim(verdict != "match" or not count, f"a match with {count} differing")
    claim(verdict != "differ" or count > 0, "differs, with none")
    claim(case.masks is None or found["masked_count"] == told.masked, f"masked {told.masked}")
    if found.get("differing_count") is not None:
        claim(found["differing_count"] == count, f"count {found['differing_count']}, not {count}")
    if found.get("differing_count_at_least") is not None:
        claim(found["differing_count_at_least"] <= count, "at least")
    if found.get("differing_count_at_most") is not None:
        claim(found["differing_count_at_most"] >= count, "at most")
    if found.get("first_index") is not None:
        claim(tuple(found["first_index"]) == told.first_index, f"first {told.first_index}")
    elif count and found.get("differing_count") and found["evidence"] == "data":
        claim(case.golden.shape == (), "a first index")
    if verdict == "match" and found.get("drift_share_from") is not None:
        low, high = number(found["drift_share_from"]), number(found["drift_share_to"])
        share = told.largest_share
        slack = 1e-9 * (1 + share)
        claim(low - slack <= share <= high + slack, f"share {share} in {low} to {high}")
    guaranteed = number(found.get("guaranteed_share"))
    if verdict == "suspect" and guaranteed and math.isfinite(told.largest_share):
        claim(told.largest_share > guaranteed * (1 - 1e-6), f"alarm at {told.largest_share}")
    if found["evidence"] != "data":
        return wrong
    claim(verdict == ("differ" if count else "match"), f"{count} differ")
    claim(near(number(found["max_bound_share"]), told.largest_share), f"share {told.largest_share}, not {found['max_bound_share']}")
    if case.golden.dtype.kind in "iufc":
        largest = number(found["max_abs_difference"]) or 0.0
        claim(near(largest, told.largest or 0.0), f"largest {told.largest}, not {largest}")
    for key, true in (
        ("nan_mismatch_count", told.nan_count),
        ("inf_mismatch_count", told.infinity_count),
        ("missing_mismatch_count", told.missing_count),
    ):
        claim(found[key] == true, f"{key} {true}, not {found[key]}")
    return wrong


def hold_all(cases: list[Case], found: dict[str, Any], code: int, road: str) -> list[str]:
    wrong = [text for one in cases for text in hold(one, found[one.name], road)]
    told = [one.told for one in cases]
    if any(one is None for one in told):
        wrong += [] if code == 3 else [f"{road}: exit {code}, something is not comparable"]
    elif any(one.differing for one in told if one):
        wrong += [] if code == 1 else [f"{road}: exit {code}, something differs"]
    return wrong


def by_api(one: Case) -> list[str]:
    """compare_arrays, and goldens of each kind of evidence, where they know all of the settings."""
    said = {k: v for k, v in one.said.items() if k not in ("chunk_bytes", "residue_levels")}
    if one.masks is not None or one.asked.is_bfloat16 or "combine" in said:
        return []
    if "fill_values" in said:
        said["fill_values"] = one.asked.fill_values
    kept = {k: said.pop(k) for k in ("period", "mixed_precision") if k in said}
    # A view whose elements do not lie beside one another.
    golden, new = spread(one.golden), spread(one.new)
    wrong = hold(one, plain(ciwrap.compare_arrays(golden, new, **said, **kept)), "arrays")
    for evidence in EVIDENCE:
        if "period" in kept and evidence != "data":
            continue
        made = ciwrap.make_golden({"x": golden}, **said, evidence=evidence,
            chunk_bytes=one.said["chunk_bytes"], residue_levels=one.said["residue_levels"])
        made = ciwrap.Golden.from_bytes(made.to_bytes())
        result = plain(made.check("x", new, **kept))
        if result["verdict"] == "not_comparable" and evidence != "data" and "mixed_precision" in kept:
            continue
        wrong += hold(one, result, f"golden, {evidence}")
    return wrong


def spread(array: Any) -> Any:
    if array.ndim == 0:
        return array
    wide = np.zeros((2 * array.shape[0], *array.shape[1:]), array.dtype)
    wide[::2] = array
    return wide[::2]


def plain(result: Any) -> dict[str, Any]:
    names = result.__struct_fields__
    found = {name: getattr(result, name) for name in names}
    found["verdict"] = result.verdict.value
    found["evidence"] = None if result.evidence is None else result.evidence.value
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_every_road_says_what_is_true(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(seed)
    is_relaxed = seed % 3 == 1
    cases = [draw(rng, f"v{i}", is_relaxed=is_relaxed) for i in range(VARIABLES)]
    wrong = [text for one in cases if not is_relaxed for text in by_api(one)]
    for evidence in EVIDENCE:
        usable = [one for one in cases if is_acceptable(one, evidence)]
        shutil.rmtree("golden", ignore_errors=True)
        configure(usable, "out", evidence, "ciwrap.yaml")
        write(Path("out"), usable, 0, rng)
        assert run(["accept", "c"]) == 0
        write(Path("out"), usable, 1, rng)
        code, found = results("check", "c")
        if evidence != "data":
            usable = [one for one in usable if found[one.name]["verdict"] != "not_comparable" or not one.asked.mixed_precision]
            code = -1
        wrong += hold_all(usable, found, code, f"check, {evidence}") if code >= 0 else [
            text for one in usable for text in hold(one, found[one.name], f"check, {evidence}")]
    configure(cases, "A", "data", "ciwrap.yaml")
    write(Path("A"), cases, 0, rng)
    write(Path("B"), cases, 1, rng)
    code, found = results("compare", "A", "B", "--check", "c")
    wrong += hold_all(cases, found, code, "compare")
    for name in "AB":
        assert run(["capture", name, "--check", "c", "--settle", "0"]) == 0
    code, found = results("compare", "A", "B", "--check", "c")
    wrong += hold_all(cases, found, code, "captured")
    cases = [one for one in cases if not one.is_aligned]
    configure(cases, "A", "data", "ciwrap.yaml")
    for side, name in enumerate("AB"):
        write(Path(name), cases, side, rng)
        assert run(["capture", name, "--check", "c", "--settle", "0"]) == 0
    for side, other in (("FA", "B"), ("A", "FB"), ("FA", "FB")):
        alone(side), alone(other)
        code, found = results("compare", side, other, "--check", "c")
        wrong += hold_known(cases, found, f"digests, {side} {other}")
    assert not wrong, "\n".join(wrong)


def is_acceptable(one: Case, evidence: str) -> bool:
    """Whether a golden of it can be made: nothing is left out that no golden keeps."""
    del evidence
    return one.masks is None or not one.masks[0].all()


def alone(name: str) -> None:
    """A capture with nothing beside it, if the name says so."""
    if name.startswith("F") and not Path(name).exists():
        Path(name).mkdir()
        shutil.copy(Path(name[1:]) / ".ciwrap.tree", Path(name) / ".ciwrap.tree")


def hold_known(cases: list[Case], found: dict[str, Any], road: str) -> list[str]:
    """What of results is untrue that may leave something open."""
    known = [one for one in cases if found[one.name]["verdict"] != "not_comparable"]
    return [text for one in known for text in hold(one, found[one.name], road)]


@pytest.mark.parametrize("seed", SEEDS)
def test_options_mean_what_the_configuration_means(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1000 + seed)
    names = ("atol", "rtol", "ulps", "mixed_precision")
    lead = draw(rng, "v")
    while set(lead.said) - {*names, "chunk_bytes", "residue_levels"}:
        lead = draw(rng, "v")
    said = {key: lead.said[key] for key in names if key in lead.said}
    words = [f"--{key.replace('_', '-')}" + ("" if value is True else f"={value!r}")
             for key, value in said.items()]
    is_aligned, cases = rng.random() < 0.3, []
    while len(cases) < 15:
        one = draw(rng, f"v{len(cases)}")
        if one.asked.is_bfloat16 or (is_aligned and one.golden.shape[:1] != (ROWS,)):
            continue
        cases.append(replace(one, asked=Asked(**said), said=dict(said), masks=None, is_aligned=is_aligned))
    write(Path("A"), cases, 0, rng)
    write(Path("B"), cases, 1, rng)
    if is_aligned:
        words.append("--align-by=ids")
    else:
        for name in "AB":
            np.save(f"{name}/ids.npy", np.arange(3))
    code, found = results("compare", "A", "B", *words)
    wrong = hold_all(cases, found, code, "folders")
    for one in [] if is_aligned else cases:
        code, own = results("compare", f"A/{one.name}.npy", f"B/{one.name}.npy", *words)
        wrong += hold_all([one], own, code, "files")
        told = one.told
        expected = 3 if told is None else 1 if told.differing else 0
        wrong += [] if code == expected else [f"files: {one.name} exit {code}, not {expected}"]
    bounds = [word for word in words if not word.startswith(("--mixed", "--align"))]
    for name in "AB":
        more = [word for word in words if word not in bounds]
        assert run(["capture", name, *bounds, *more, "--settle", "0"]) == 0
    code, found = results("compare", "A", "B", *words)
    wrong += hold_all(cases, found, code, "captured")
    assert not wrong, "\n".join(wrong)
