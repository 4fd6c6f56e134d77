"""A run that failed before and passes now is told of: random edits of what is checked, and data.

The golden's outputs stay as they are, kept or accepted anew under the new configuration. If the
check of other outputs turns from any failure to a match, `ciwrap changes` has to say that less is
checked, or may be. It is asked of the states of a working tree, without git.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap.cli.main import run
from ciwrap.studies.changes.find import find_changes
from ciwrap.studies.changes.state import State, Where, WorkingTree, state_of

if TYPE_CHECKING:
    from ciwrap.studies.changes.state import Change

    Check = dict[str, Any]
    Outputs = dict[str, Any]

LONG = os.environ.get("CIWRAP_LONG") == "1"
# 88: a pattern that no golden knows, which was not told of.
SEEDS = range(150) if LONG else (*range(8), 88)
EDITS = 8
ROWS = 6
PATTERNS = ["*", "x", "y", "n", "[xy]", "iter 0 / *", "* / x", "?", "[!x]", "m*", "log/*", "*/t"]
BOUNDS: list[Check] = [
    *({"atol": one} for one in (0, 1e-6, 1e-3, 0.2, 2, 179)),
    *({"rtol": one} for one in (1e-6, 1e-2, 9)),
    *({"ulps": one} for one in (1, 100)),
    {"atol": 1e-3, "rtol": 1e-2},
]
SETTINGS: list[Check] = [
    *BOUNDS,
    *({"combine": one, "atol": 1e-3, "rtol": 1e-2} for one in ("sum", "both", "either")),
    *({"equal_nan": one} for one in (True, False)),
    *({"fill_values": one} for one in ([7], [7, -1], [])),
    *({"align_by": one} for one in ("k", "none")),
    *({"period": one, "atol": 1e-3} for one in (360, 1.5)),
    *({"evidence": one} for one in ("data", "tree", "residues")),
    {"mask": "m"},
    {"up_to_sign": "whole"},
    {"mixed_precision": True},
]
STRICT: list[Check] = [{"dtype": False}, {"shape": False}, {"variables": False}, {"count": False}]


class OfFiles:
    """Arrays in files, of two iterations."""

    def check(self, dice: random.Random) -> Check:
        said = {"outputs": "out/{iteration:d}/{name}.npy"}
        return {**said, **(dice.choice(SETTINGS) if dice.random() < 0.5 else {})}

    def edit(self, dice: random.Random, check: Check) -> None:
        if dice.random() < 0.2:
            check["exclude"] = [f"out/1/{dice.choice('xyn')}.npy"]
        else:
            check.update(dice.choice(SETTINGS))

    def settings(self, dice: random.Random) -> Check:
        return dice.choice(SETTINGS)

    def outputs(self, dice: random.Random) -> Outputs:
        rng = np.random.default_rng(dice.randrange(1 << 30))
        found: Outputs = {}
        for iteration in range(2):
            found |= {
                f"{iteration}/x": rng.choice([1.0, 2.5, 7, -1, np.nan, 359.9], ROWS),
                f"{iteration}/y": rng.choice([1.0, 7, 2], ROWS).astype("f4"),
                f"{iteration}/n": rng.choice([1, 7, 2], ROWS).astype("i4"),
                f"{iteration}/k": rng.permutation(ROWS).astype("i4"),
                f"{iteration}/m": rng.random(ROWS) < 0.3,
            }
        return found

    def spoilt(self, dice: random.Random, outputs: Outputs) -> Outputs:
        name = dice.choice([one for one in outputs if one[-1] != "m"])
        old, at = outputs[name], dice.randrange(ROWS)
        new = old.copy()
        how = dice.choice(("add", "add", "set", "rows", "dtype", "shape", "gone"))
        if how == "add":
            step = dice.choice((1e-7, 1e-4, 0.1, 1, 1.5, 360))
            new[at] += step if old.dtype.kind == "f" else max(1, int(step))
        elif how == "set":
            new[at] = dice.choice((7, -1))
        elif how == "dtype":
            new = np.nan_to_num(old, nan=1.0).astype(dice.choice(("f4", "f8", "i8")))
        elif how == "shape":
            new = old.reshape(2, -1)
        elif how == "gone":
            return {key: one for key, one in outputs.items() if key != name}
        if how == "rows":
            order = dice.sample(range(ROWS), ROWS)
            return {key: one[order] if key[0] == name[0] else one for key, one in outputs.items()}
        return {**outputs, name: new}

    def write(self, outputs: Outputs) -> None:
        shutil.rmtree("out", ignore_errors=True)
        for name, array in outputs.items():
            Path(f"out/{name}.npy").parent.mkdir(parents=True, exist_ok=True)
            np.save(f"out/{name}.npy", array)


class OfLogs:
    """A log, of whose values some have what they have to be in the configuration."""

    def check(self, dice: random.Random) -> Check:
        values = {name: self._value(dice, name) for name in dice.sample("tx", 2)}
        outputs = dice.choice(("out/log.txt", "out/*.txt"))
        more = {"counts": {"w": self._count(dice)}} if dice.random() < 0.5 else {}
        more |= {"forbid": ["NaN"]} if dice.random() < 0.3 else {}
        return {"outputs": outputs, "format": "log", "values": values, **more}

    def edit(self, dice: random.Random, check: Check) -> None:
        how = dice.randrange(5)
        if how < 2:
            name = dice.choice("tx")
            check["values"][name] = self._value(dice, name)
        elif how == 2:
            check["counts"] = {"w": self._count(dice)}
        elif how == 3:
            check.pop(dice.choice(("counts", "forbid", "variables")), None)
        else:
            check.update(dice.choice(BOUNDS))

    def settings(self, dice: random.Random) -> Check:
        return dice.choice(BOUNDS)

    @staticmethod
    def _value(dice: random.Random, name: str) -> Check:
        more = [{}, *BOUNDS, *STATED, {"optional": True}, {"take": "first"}, {"absolute": True}]
        return {"match": f"{name.upper()} = {{{name}}}", **dice.choice(more), **dice.choice(STATED)}

    @staticmethod
    def _count(dice: random.Random) -> Check:
        return {"match": "warn", **dice.choice([{}, {"expect": 0}, {"range": [0, 2]}])}

    def outputs(self, dice: random.Random) -> Outputs:
        lines = [f"{name} = {dice.choice(('1.0', '1.0', '2.0'))}" for name in "TTX"]
        return {"lines": lines}

    def spoilt(self, dice: random.Random, outputs: Outputs) -> Outputs:
        lines = list(outputs["lines"])
        at = dice.randrange(len(lines))
        number = f"{lines[at][0]} = {dice.choice(('1.0000001', '1.5', '5.0', '-1.0', 'nan'))}"
        lines[at : at + 1] = dice.choice([[number], [number], [], [lines[at]] * 2, ["warn NaN"]])
        return {"lines": lines}

    def write(self, outputs: Outputs) -> None:
        Path("out").mkdir(exist_ok=True)
        Path("out/log.txt").write_text("\n".join(["begin", *outputs["lines"], "end"]) + "\n")


# Of all numbers that are stated the same one, so that no other one takes its place: that is told
# as another golden is.
STATED: list[Check] = [{}, {"expect": 1}, {"expect": [1, 1]}, {"range": [0, 1]}, {"range": [0, 9]}]


def edited(dice: random.Random, kind: OfFiles | OfLogs, check: Check) -> Check:
    new: Check = json.loads(json.dumps(check))
    for _ in range(dice.choice((1, 1, 2))):
        how = dice.randrange(8)
        if how < 3:
            kind.edit(dice, new)
        elif how < 5:
            rules = new.setdefault("variables", {})
            rules[dice.choice(PATTERNS)] = kind.settings(dice)
        elif how == 5:
            new["ignore"] = [*new.get("ignore", []), dice.choice(PATTERNS[1:])]
        elif how == 6:
            new["strict"] = dice.choice(STRICT)
        elif "variables" in new:
            rules = list(new["variables"].items())
            dice.shuffle(rules)
            new["variables"] = dict(rules)
    return new


def configure(check: Check) -> None:
    Path("ciwrap.yaml").write_text(json.dumps({"checks": {"c": check}}))


def state() -> State:
    here = Path.cwd()
    return state_of(WorkingTree(here), Where(here, ""))


def checked(capsys: pytest.CaptureFixture[str]) -> int:
    """The exit code; 0, too, where the configuration lets nothing be compared whatever it is."""
    code = run(["check"])
    said = "".join(capsys.readouterr())
    return 0 if "nothing was compared" in said else code


@pytest.mark.parametrize("kind", [OfFiles(), OfLogs()], ids=["files", "logs"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_passes_untold(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: OfFiles | OfLogs,
    seed: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()  # where looking for the configuration ends
    dice = random.Random(seed)
    before, golden = kind.check(dice), kind.outputs(dice)
    configure(before)
    kind.write(golden)
    run(["accept"])
    if isinstance(kind, OfFiles) and run(["check"]) != 0:
        return  # no golden of these can be made, or none that anything matches
    Path("golden").mkdir(exist_ok=True)
    old = state()
    shutil.copytree("golden", "kept")
    for _ in range(EDITS):
        after, new = edited(dice, kind, before), kind.spoilt(dice, golden)
        shutil.rmtree("golden")
        shutil.copytree("kept", "golden")
        configure(before)
        kind.write(new)
        if checked(capsys) == 0:
            continue
        configure(after)
        if run(["check"]) == 0:
            assert_told(find_changes(old, state()), before, after)
        kind.write(golden)
        if run(["accept", "--reason", "cleanup"]) == 0:
            kind.write(new)
            if run(["check"]) == 0:
                assert_told(find_changes(old, state()), before, after)


def assert_told(changes: tuple[Change, ...], before: Check, after: Check) -> None:
    assert any(one.wider is not False for one in changes), (before, after, changes)
