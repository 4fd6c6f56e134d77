"""`ciwrap repeat --vary`: exactly the factors that change a variable are found."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

import pytest
from e2e.repeated import runs_made, with_program

if TYPE_CHECKING:
    from e2e.cli_project import Outcome, Project

# Eigenvalues depend on how BLAS adds up; a sum over a set on the order in which that is walked,
# which for texts is the hash seed's; a product and a pairwise sum on neither.
NUMERICS = """\
matrix = np.random.default_rng(36).normal(size=(400, 400))
values = np.random.default_rng(37).normal(size=2000)
np.save("out/eigenvalues.npy", np.linalg.eigvalsh(matrix + matrix.T))
words = {repr(value) for value in values.tolist()}
total = 0.0
for word in words:  # not by sum(), which since Python 3.12 loses nothing on the way
    total += float(word)
np.save("out/set_sum.npy", np.array([total]))
np.save("out/product.npy", np.array([np.prod(1 + values[:100] / 100)]))
np.save("out/pairwise_sum.npy", np.array([np.sum(values)]))
"""


def changing(outcome: Outcome) -> dict[str, set[str]]:
    """The factors that change each variable, by its name."""
    found: dict[str, set[str]] = {}
    for one in outcome.document["factors"]:
        names = found.setdefault(one["variable"], set())
        if one["changes"]:
            names.add(one["name"])
    return found


@pytest.mark.skipif(
    platform.machine() != "x86_64" or len(os.sched_getaffinity(0)) < 2,
    reason="OpenBLAS has these kernels on x86-64 only, and two threads on two cores only",
)
def test_exactly_the_right_factors_are_found(project: Project) -> None:
    with_program(project, NUMERICS, in_advance=False)
    outcome = project.run(
        "repeat",
        *("--vary", "OPENBLAS_NUM_THREADS=1,2"),
        *("--vary", "OPENBLAS_CORETYPE=Prescott,Nehalem"),
        *("--vary", "hash-seed"),
        *("--seed", "36"),
        OPENBLAS_NUM_THREADS="1",
    )
    assert outcome.code == 0, outcome
    assert runs_made(project) == 16
    assert changing(outcome) == {
        "eigenvalues": {"OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE"},
        "set_sum": {"hash-seed"},
        "product": set(),
        "pairwise_sum": set(),
    }


SWITCHES = """\
level = sum(1e-9 * 2**n for n in range(5) if os.environ.get(f"S{n}") == "1" and n in (1, 3))
np.save("out/x.npy", x + level)
np.save("out/y.npy", x)
"""


@pytest.mark.parametrize(
    ("design", "runs"), [("full", 64), ("fractional", 32), ("one-at-a-time", 12)]
)
def test_every_design_finds_them(project: Project, design: str, runs: int) -> None:
    factors = "".join(
        f"    f{n}: {{off: {{env: {{S{n}: 0}}}}, on: {{env: {{S{n}: 1}}}}}}\n" for n in range(5)
    )
    with_program(
        project, SWITCHES, more=f"repeat:\n  runs: 4\n  design: {design}\n  factors:\n{factors}"
    )
    names = [word for n in range(5) for word in ("--vary", f"f{n}")]
    plan = project.run("repeat", *names, "--dry-run", json_too=False)
    assert f"{runs} runs, in this order" in plan.out
    if runs > 12:  # the larger plans are those of the unit tests
        return
    outcome = project.run("repeat", *names)
    assert outcome.code == 0, outcome
    assert changing(outcome) == {"x": {"f1", "f3"}, "y": set()}
    sizes = {one["name"]: one.get("max_abs") for one in outcome.document["factors"]
             if one["variable"] == "x"}  # fmt: skip
    assert sizes["f1"] == pytest.approx(2e-9, rel=1e-6)
    assert sizes["f3"] == pytest.approx(8e-9, rel=1e-6)


def test_a_factor_may_have_a_command_of_its_own(project: Project) -> None:
    with_program(
        project,
        'np.save("out/x.npy", x + (1e-9 if sys.argv[1:] == ["other"] else 0))',
        more="repeat:\n  factors:\n"
        "    build: {on: {command: python program.py other}}\n"
        "    quiet: {on: {env: {NOTHING: 1}}}\n",
    )
    outcome = project.run("repeat", "-n", "8", "--vary", "build", "--vary", "quiet")
    assert outcome.code == 0, outcome
    assert changing(outcome) == {"x": {"build"}}
    assert "changes x: " in outcome.out
    assert "does not change x" in outcome.out


def test_the_order_is_random_within_blocks_and_can_be_had_again(project: Project) -> None:
    with_program(project, 'np.save("out/x.npy", x)')
    words = ("repeat", "-n", "16", "--vary", "A=0,1", "--vary", "B=0,1", "--dry-run")
    one, again, other = (
        project.run(*words, "--seed", seed, json_too=False).out for seed in ("1", "1", "2")
    )
    assert one == again
    assert one != other
    lines = [line.split("  ", 2)[2] for line in one.splitlines()[1:]]
    assert lines[0] == "A=off B=off"
    for block in range(4):
        assert len(set(lines[4 * block : 4 * block + 4])) == 4


def test_noise_that_a_factor_makes_larger(project: Project) -> None:
    """Twenty runs a cell, ten times the noise with LOUD on; the noise is seeded by the run."""
    with_program(
        project,
        "size = 1e-9 * (10 if os.environ['LOUD'] == '1' else 1)\n"
        'np.save("out/x.npy", x[:1] + size * noise.normal(size=1))',
    )
    outcome = project.run("repeat", "-n", "40", "--vary", "LOUD=0,1", "--seed", "7")
    assert outcome.code == 0, outcome
    (found,) = outcome.document["factors"]
    assert "changes" not in found
    assert found["off_differing"] == found["off_pairs"] > 0
    assert found["p"] <= 0.05
    assert found["effect"] > 0.5
    assert "acts on x: the differences are larger with it on" in outcome.out
    assert outcome.document["headline"].endswith("; LOUD acts on x")


def test_the_only_cause_of_all_variation_is_named(project: Project) -> None:
    """Ten runs; without NOISY all are equal. A flag, of which no number tells how far it is."""
    with_program(
        project,
        "on = os.environ['NOISY'] == '1'\n"
        'np.save("out/x.npy", x + on * 1e-9 * noise.normal(size=500))\n'
        'np.save("out/y.npy", x - on * 1e-12 * run)\n'
        'np.save("out/flag.npy", on & (np.arange(20) < run))',
    )
    outcome = project.run("repeat", "-n", "10", "--vary", "NOISY=0,1", "--seed", "1")
    assert outcome.code == 0, outcome
    for found in outcome.document["factors"]:
        assert found["p"] <= 0.05, found
        assert (found.get("off_differing", 0), found["on_differing"]) == (0, 10)
    assert "off: 0 of 10 pairs differ, on: 10 of 10 pairs differ" in outcome.out
    assert "NOISY acts on flag, x, y" in outcome.document["headline"]


def test_equal_runs_are_counted_for_each_setting(project: Project) -> None:
    """Ten runs of two settings are five of each, and tell no more than five do."""
    with_program(project, 'np.save("out/x.npy", x)')
    outcome = project.run("repeat", "-n", "10", "--vary", "QUIET=0,1")
    assert "5 equal runs of each setting: a further one differs" in outcome.out
    assert "chance of up to 52.7 %" in outcome.out


def test_no_effect_is_said_with_the_power_to_find_one(project: Project) -> None:
    with_program(project, 'np.save("out/x.npy", x[:1] + 1e-9 * noise.normal(size=1))')
    outcome = project.run("repeat", "-n", "12", "--vary", "QUIET=0,1", "--seed", "7")
    (found,) = outcome.document["factors"]
    assert found["p"] > 0.05
    assert 0 < found["power"] < 1
    assert "no effect on x found (p = " in outcome.out
    assert "so many runs find a five-fold spread in" in outcome.out


def test_too_few_runs_to_show_an_effect(project: Project) -> None:
    with_program(project, 'np.save("out/x.npy", x[:1] + 1e-9 * noise.normal(size=1))')
    outcome = project.run("repeat", "-n", "4", "--vary", "QUIET=0,1", "--seed", "7")
    assert "x: so few runs cannot show an effect, make more" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--vary", "thread"), "did you mean 'threads'?"),
        (("--vary", "something"), "or write VARIABLE=OFF,ON"),
        (("--vary", "X=1"), "there is no factor 'X=1'"),
        (("--vary", "X=1,2,8"), "'X=1,2,8' has 3 values, and a factor has two"),
    ],
)
def test_an_unknown_factor(project: Project, arguments: tuple[str, ...], words: str) -> None:
    with_program(project, 'np.save("out/x.npy", x)')
    outcome = project.run("repeat", *arguments)
    assert outcome.code == 2
    assert words in outcome.err
    assert runs_made(project) == 0


def test_nothing_is_said_of_a_factor_whose_runs_all_failed(project: Project) -> None:
    with_program(project, 'if os.environ["FAST"] == "1": sys.exit(1)\nnp.save("out/x.npy", x)')
    outcome = project.run("repeat", "-n", "4", "--vary", "FAST=0,1")
    assert outcome.code == 3
    assert "x: not known, since no runs that were compared can tell" in outcome.out
    assert "changes" not in outcome.document["factors"][0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["A=1,1"], "the factor 'A=1,1' is the same off and on"),
        (["A=1,2", "A=1,3"], "the factor 'A' is given twice, with other values"),
    ],
)
def test_factors_without_a_meaning(project: Project, given: list[str], words: str) -> None:
    with_program(project, 'np.save("out/x.npy", x)')
    outcome = project.run("repeat", *(word for one in given for word in ("--vary", one)))
    assert outcome.code == 2
    assert words in outcome.err
    assert runs_made(project) == 0


def test_what_runs_took_is_a_result_too(project: Project) -> None:
    """A program that takes 512 MiB more memory with BIG; all outputs are equal."""
    with_program(
        project,
        "data = bytearray((os.environ['BIG'] == '1') << 29)\nnp.save(\"out/x.npy\", x)",
    )
    outcome = project.run(
        "repeat", "-n", "10", "--vary", "BIG=0,1", "--report", "r.html", "--markdown", "s.md"
    )
    costs = {one["name"]: one for one in outcome.document["costs"]}
    assert {"seconds", "cpu_seconds", "minor_faults", "peak_bytes"} <= costs.keys()
    (found,) = costs["peak_bytes"]["factors"]
    assert found["name"] == "BIG"
    assert found["p"] <= 0.05
    assert found["on"] > 1 << 29 > found["off"]
    for text in (
        outcome.out,
        (project.folder / "r.html").read_text(),
        (project.folder / "s.md").read_text(),
    ):
        assert "BIG acts on peak memory (p = " in text
    assert "time: " in outcome.out
    assert "cpu_seconds" in outcome.document["runs"][0]["used"]
