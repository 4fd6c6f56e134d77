"""All settings of a variable together mean the same on every road, and what an oracle says.

Each project holds many variables, each with settings of its own. They are compared with an oracle
in fractions: checked against goldens, compared as folders and as captured runs, and as arrays in
memory.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle.one_variable import Asked
from oracle.variable_cases import ROWS, Case, draw

import ciwrap
from ciwrap.cli.main import run

LONG = os.environ.get("CIWRAP_LONG") == "1"
SEEDS = range(60 if LONG else 3)
VARIABLES = 60 if LONG else 30
EVIDENCE = ("data", "residues", "tree")


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
                f"{road}: {case.name} {case.golden.dtype.str} {case.golden.shape} {case.said}:"
                f" {what}; found {found['verdict']} {found.get('reason')}"
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
    if case.masks is not None:
        # Where the masks differ, the count of either one would be half of the truth.
        is_known = np.array_equal(*case.masks)
        masked = told.masked if is_known else None
        claim(found.get("masked_count") == masked, f"masked {masked}")
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
    if verdict == "undecided" and guaranteed and math.isfinite(told.largest_share):
        claim(told.largest_share > guaranteed * (1 - 1e-6), f"alarm at {told.largest_share}")
    if found["evidence"] != "data":
        return wrong
    claim(verdict == ("differ" if count else "match"), f"{count} differ")
    claim(
        near(number(found["max_bound_share"]), told.largest_share),
        f"share {told.largest_share}, not {found['max_bound_share']}",
    )
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
        made = ciwrap.make_golden(
            {"x": golden},
            **said,
            evidence=evidence,
            chunk_bytes=one.said["chunk_bytes"],
            residue_levels=one.said["residue_levels"],
        )
        made = ciwrap.Golden.from_bytes(made.to_bytes())
        result = plain(made.check("x", new, **kept))
        if (
            result["verdict"] == "not_comparable"
            and evidence != "data"
            and "mixed_precision" in kept
        ):
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
        wrong += by_golden([one for one in cases if is_acceptable(one)], evidence, rng)
    wrong += by_runs(cases, rng)
    wrong += by_captures_alone([one for one in cases if not one.is_aligned], rng)
    assert not wrong, "\n".join(wrong)


def by_golden(cases: list[Case], evidence: str, rng: np.random.Generator) -> list[str]:
    """Accepted, and checked."""
    shutil.rmtree("golden", ignore_errors=True)
    configure(cases, "out", evidence, "ciwrap.yaml")
    write(Path("out"), cases, 0, rng)
    assert run(["accept", "c"]) == 0
    write(Path("out"), cases, 1, rng)
    code, found = results("check", "c")
    road = f"check, {evidence}"
    if evidence == "data":
        return hold_all(cases, found, code, road)
    # Digests of float64 say nothing of float32.
    mixed = [one for one in cases if one.asked.mixed_precision]
    others = [one for one in cases if not one.asked.mixed_precision]
    return [
        *hold_known(mixed, found, road),
        *(text for one in others for text in hold(one, found[one.name], road)),
    ]


def by_runs(cases: list[Case], rng: np.random.Generator) -> list[str]:
    """Two folders, then with their captures."""
    configure(cases, "A", "data", "ciwrap.yaml")
    write(Path("A"), cases, 0, rng)
    write(Path("B"), cases, 1, rng)
    code, found = results("compare", "A", "B", "--check", "c")
    wrong = hold_all(cases, found, code, "compare")
    for name in "AB":
        assert run(["capture", name, "--check", "c", "--settle", "0"]) == 0
    code, found = results("compare", "A", "B", "--check", "c")
    return wrong + hold_all(cases, found, code, "captured")


def by_captures_alone(cases: list[Case], rng: np.random.Generator) -> list[str]:
    """Captures of which one run, or either, is gone."""
    configure(cases, "A", "data", "ciwrap.yaml")
    wrong = []
    for side, name in enumerate("AB"):
        write(Path(name), cases, side, rng)
        assert run(["capture", name, "--check", "c", "--settle", "0"]) == 0
    for side, other in (("FA", "B"), ("A", "FB"), ("FA", "FB")):
        alone(side)
        alone(other)
        _, found = results("compare", side, other, "--check", "c")
        wrong += hold_known(cases, found, f"digests, {side} {other}")
    return wrong


def is_acceptable(one: Case) -> bool:
    """Whether a golden of it can be made: its mask leaves something to compare."""
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
    # Shares of what whole numbers are allowed are told as of 2^64, beyond which none differ.
    while set(lead.said) - {*names, "chunk_bytes", "residue_levels"} or lead.asked.atol > 1e18:
        lead = draw(rng, "v")
    said = {key: lead.said[key] for key in names if key in lead.said}
    words = [
        f"--{key.replace('_', '-')}" + ("" if value is True else f"={value!r}")
        for key, value in said.items()
    ]
    is_aligned, cases = rng.random() < 0.3, []
    while len(cases) < 15:
        one = draw(rng, f"v{len(cases)}")
        if one.asked.is_bfloat16 or (is_aligned and one.golden.shape[:1] != (ROWS,)):
            continue
        cases.append(
            replace(one, asked=Asked(**said), said=dict(said), masks=None, is_aligned=is_aligned)
        )
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
        if one.golden.size:
            wrong += hold_all([one], own, code, "files")
        told = one.told
        is_nothing = one.golden.size == 0  # of one file there is nothing else
        expected = 3 if told is None or is_nothing else 1 if told.differing else 0
        wrong += [] if code == expected else [f"files: {one.name} exit {code}, not {expected}"]
    bounds = [word for word in words if not word.startswith(("--mixed", "--align"))]
    for name in "AB":
        more = [word for word in words if word not in bounds]
        assert run(["capture", name, *bounds, *more, "--settle", "0"]) == 0
    code, found = results("compare", "A", "B", *words)
    wrong += hold_all(cases, found, code, "captured")
    assert not wrong, "\n".join(wrong)
