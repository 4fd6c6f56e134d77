"""Texts token by token against edits whose places are known, and against plain Python."""

from __future__ import annotations

import os
import random
import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from printed_log import edit, printed_log
from tiers import examples

from ciwrap import _core
from ciwrap.arrays.values import TEXT_SETS
from ciwrap.base.errors import CiwrapError

if TYPE_CHECKING:
    from collections.abc import Callable

LOGS = Path(__file__).parents[1] / "data" / "logs"
SEED = 20261122
EDITED_LOGS = 1000


def test_the_sets_are_those_of_the_core() -> None:
    assert _core.ignored_text_sets == TEXT_SETS


def _text(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def test_no_edit_is_missed_and_each_has_its_line_and_column() -> None:
    rng = random.Random(SEED)
    logs = [printed_log(rng) for _ in range(20)]
    # Of CIWRAP_REAL_LOGS, a list of paths, all are tried as well; nobody's are kept here but ours.
    real = [*sorted(LOGS.iterdir()), *map(Path, os.environ.get("CIWRAP_REAL_LOGS", "").split())]
    assert len(real) >= 3
    logs += [path.read_text(encoding="utf-8").splitlines() for path in real]
    kinds = set()
    for turn in range(EDITED_LOGS):
        golden = rng.choice(logs)
        edited = edit(rng, golden, rng.choice([1, 1, 2, 4]))
        found = _core.compare_texts(_text(golden), _text(edited.lines))
        case = f"turn {turn}"
        assert found["differing_count"] == len(edited.numbers), case
        assert found["golden"]["unpaired_lines"] == len(edited.golden_only), case
        assert found["new"]["unpaired_lines"] == len(edited.new_only), case
        # A group tells its first place; the others are counted.
        places = [
            (
                group["golden"]["line"],
                group["new"]["line"],
                group["golden"]["column"],
                group["golden"]["text"].decode(),
                group["new"]["text"].decode(),
            )
            for group in found["number_groups"]
        ]
        assert set(places) <= set(edited.numbers), case
        assert sum(one["count"] for one in found["number_groups"]) == len(edited.numbers), case
        if edited.numbers:
            assert edited.numbers[0] in places, case
        lines = {one["golden"]["line"] for one in found["line_groups"] if one["golden"]}
        assert lines <= set(edited.golden_only), case
        lines = {one["new"]["line"] for one in found["line_groups"] if one["new"]}
        assert lines <= set(edited.new_only), case
        kinds |= {bool(edited.numbers), bool(edited.golden_only) * 2, bool(edited.new_only) * 4}
    assert kinds == {False, True, 2, 4}


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=64).map(repr),
    st.integers(-(10**17), 10**17).map(str),
    st.floats(-100, 100).map(lambda x: f"{x:.3f}"),
)


@pytest.mark.parametrize(
    ("golden", "new", "rtol", "share"),
    [("1.7e308", "-1.6e308", 2.0, 33 / 34), ("3e-310", "4e-310", 0.2, 5 / 3)],
)
def test_shares_of_bounds_beyond_the_doubles(
    golden: str, new: str, rtol: float, share: float
) -> None:
    found = _core.compare_texts(f"x {golden}".encode(), f"x {new}".encode(), rtol=rtol)
    assert found["max_bound_share"] == pytest.approx(share, rel=1e-9)


@given(NUMBERS, NUMBERS, st.sampled_from([0.0, 1e-3, 0.5, 1e6]), st.sampled_from([0.0, 1e-9, 0.25]))
@settings(max_examples=examples(400), deadline=None)
def test_numbers_are_held_to_the_contract(g: str, v: str, atol: float, rtol: float) -> None:
    found = _core.compare_texts(f"x {g} y".encode(), f"x {v} y".encode(), atol=atol, rtol=rtol)
    ours, theirs = _exact(g), _exact(v)
    distance = abs(theirs - ours)
    bound = Fraction(atol) + Fraction(rtol) * abs(ours)
    expected = 0 if ours == theirs or distance <= bound else 1
    if "." not in g + v and "e" not in g + v and rtol and distance:
        # Whole numbers that no double holds are compared a hair more strictly.
        assert found["differing_count"] >= expected
        assert found["differing_count"] == expected or distance > bound * Fraction(1 - 1e-14)
    else:
        assert found["differing_count"] == expected
    assert found["number_count"] == 1


def _exact(text: str) -> Fraction:
    """The double nearest to the text; whole numbers as they are."""
    return Fraction(int(text)) if text.lstrip("-").isdigit() else Fraction(float(text))


@given(st.binary(max_size=3000), st.binary(max_size=3000), st.booleans())
@settings(max_examples=examples(300), deadline=None)
def test_any_bytes_give_a_result_or_an_error(golden: bytes, new: bytes, all_sets: bool) -> None:
    ignore = _core.ignored_text_sets if all_sets else ()
    if b"\0" in golden + new:
        with pytest.raises(CiwrapError, match="NUL byte"):
            _core.compare_texts(golden, new, ignore=ignore)
        return
    found = _core.compare_texts(golden, new, ignore=ignore)
    for side, text in (("golden", golden), ("new", new)):
        assert found[side]["line_count"] == len(text.split(b"\n")) - (text[-1:] in (b"", b"\n"))
        assert found["pair_count"] + found[side]["unpaired_lines"] == found[side]["line_count"]


@given(st.lists(st.sampled_from(["a 1", "a 2", "b", "", "c 3 4", "x y"]), max_size=40))
@settings(max_examples=examples(200), deadline=None)
def test_a_line_that_is_gone_is_never_a_match(lines: list[str]) -> None:
    for at in range(len(lines)):
        shorter = lines[:at] + lines[at + 1 :]
        found = _core.compare_texts(_text(lines), _text(shorter) if shorter else b"", atol=1e9)
        assert found["golden"]["unpaired_lines"] - found["new"]["unpaired_lines"] == 1


@pytest.mark.parametrize("engine", ["io_uring", "pread"])
def test_files_and_bytes_tell_the_same(engine: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    rng = random.Random(SEED)
    golden = printed_log(rng, 2000)
    edited = edit(rng, golden, 12)
    paths = tmp_path / "a.log", tmp_path / "b.log"
    for path, lines in zip(paths, (golden, edited.lines), strict=True):
        path.write_bytes(_text(lines))
    try:
        from_files = _core.compare_texts(*paths, engine=engine)
    except CiwrapError as error:
        if error.code != "not_available":
            raise
        pytest.skip(str(error))
    assert from_files == _core.compare_texts(_text(golden), _text(edited.lines))
    assert from_files["differing_count"] == len(edited.numbers)


@pytest.mark.parametrize(
    ("golden", "new", "atol"),
    [
        ("G1 X10.05", "G1 X10.5", 0.0),  # a word, and what follows its point
        ("v1.2.3", "v1.2.03", 0.0),
        ("total......12.05", "total......12.5", 0.0),
        ("total......05", "total......5", 0.0),
        ("x.05", "x.5", 0.0),
        ("E.05", "E.5", 0.0),
        ("_.05", "_.5", 0.0),
        ("v.05.5", "v.5.5", 0.0),
        ("1.2.9", "1.2.10", 1.0),
        ("x 3,05", "x 3,5", 0.0),  # a decimal comma
        ("x -0,5", "x 0,5", 0.0),
        ("x 3,1", "x 4,2", 1.0),
        ("x 1,5e3", "x 1,05e3", 0.0),
        ("cells 1,995", "cells 2,995", 10.0),  # thousands
        ("cells -1,995", "cells 1,995", 1e3),
        ("cells 1,234,567", "cells 2,234,567", 10.0),
        ("cells 1,995.5", "cells 2,995.5", 10.0),
        ("cells 1'995", "cells 2'995", 10.0),
        ("h 0x1.8p3", "h 0x1.08p3", 0.0),
        ("h 0x1p30", "h 0x1p31", 1.0),
        ("h 0x1.8p-30", "h 0x1.8p-31", 1.0),
        ("h 0x1.8p+30", "h 0x1.8p+31", 1.0),
        ("h -0x1F", "h 0x1F", 0.0),
        ("x 1.5 10^3", "x 1.5 10^4", 1.0),
        ("x 1.5*10**-3", "x 1.5*10**-2", 1.0),
        ("x 10^{-3}", "x 10^{-2}", 1.0),
        ("dec -00:30:15", "dec 00:30:15", 0.0),
        ("dec -0:30", "dec +0:30", 0.0),
        ("dec -00 30 15", "dec 00 30 15", 0.0),
        ("x 2d+10", "x 3d+10", 1.0),  # exponents that do not belong to the number as it is read
        ("x 2D10", "x 3D10", 1.0),
        ("x 2q+3", "x 2q+4", 1.0),
        ("x 1.0+05", "x 1.0+06", 1.0),
        ("x 1.0+5", "x 1.0+6", 1.0),
        ("x 1.0+0005", "x 1.0+0006", 1.0),
        ("x -1.0+5", "x 1.0+5", 3.0),
        ("x 1.5(3)e+5", "x 1.6(3)e+5", 1.0),
        ("x 1.5(3)e+5", "x 1.5(3)e+6", 1.0),
        ("x 1.5 E+5", "x 1.6 E+5", 1.0),
        ("x 1.5 E-5", "x 1.5 E-6", 1.0),
        ("x 1.5  d+5", "x 1.5  d+6", 1.0),
        ("x 1.5e\u22125", "x 1.6e+5", 1.0),
        ("x 15e\u2212", "x 15e\u22121", 0.0),
        ("x 1.5 E\u22125", "x 1.5 E\u22126", 1.0),
        ("x 1.0-5", "x 1.0 -5", 10.0),  # one number or two
        ("x 1.-5", "x 1.-6", 10.0),
        ("x = -0,995 y", "x = 0,995 y", 0.0),  # a sign, and thousands, in the middle of a line
        ("F = 1,234.5 N", "F = 2,234.5 N", 2.0),
        ("F = 1.234,5 N", "F = 2.234,5 N", 2.0),
        ("F = 1'234.5 N", "F = 2'234.5 N", 2.0),
        ("-0°30", "0°30", 0.0),
        ("-0d30m", "0d30m", 0.0),
        ("dec -1:30", "dec 1:30", 2.0),
        ("dec -0 30 15 N", "dec 0 30 15 N", 0.0),
        ("x 1.5 x 10^3", "x 1.7 x 10^3", 1.0),
        ("x 1.5\u00b710^3", "x 1.7\u00b710^3", 1.0),
        ("3*0.5", "4*0.5", 1.0),
        ("x 2**8", "x 2**9", 1.0),
        ("x 2**(8)", "x 2**(9)", 1.0),
        ("x 1.5 \u00d7 10^3", "x 1.7 \u00d7 10^3", 1.0),
        ("x 1.5 * 10^3", "x 1.7 * 10^3", 1.0),
        ("x 1.5 Q+5", "x 1.6 Q+5", 1.0),
        ("h 0x1.8P+3", "h 0x1.8P+4", 1.0),
        ("v1.2.3", "v2.2.3", 1.0),
        ("1.2.3", "2.2.3", 1.0),
        ("x 1e-400", "x 2e-400", 0.0),
        ("x 1e-400", "x 0", 0.0),
    ],
)
def test_parts_of_longer_numbers_hide_no_difference(golden: str, new: str, atol: float) -> None:
    for ours, theirs in ((golden, new), (new, golden)):
        found = _core.compare_texts(ours.encode(), theirs.encode(), atol=atol)
        unpaired = found["golden"]["unpaired_lines"]
        assert found["differing_count"] or unpaired, (ours, theirs)
        same = _core.compare_texts(ours.encode(), (ours + " ").encode(), atol=atol)
        assert not same["differing_count"], ours


@pytest.mark.parametrize(
    ("golden", "new", "atol"),
    [
        ("at (1, 2)", "at (2, 3)", 1.0),
        ("at (1.5,2.5)", "at (2.5,3.5)", 1.0),
        ("at 1,2,3", "at 2,3,4", 1.0),
        ("10,0.5,3.2", "11,1.5,3.2", 1.0),
        ("Total.......12.5", "Total.......12.75", 0.5),
        ("total......-9", "total......-10", 1.0),
        ("avg.9.5", "avg.10.5", 1.0),
        ("x 1.5(3)", "x 1.6(3)", 0.2),
        ("x 0.125-12.5-100.25", "x 0.125-12.75-100.5", 0.5),
        ("rows 3-5", "rows 3-6", 1.0),
        ("x 5 eV", "x 6 eV", 1.0),
        ("x 5 e", "x 6 e", 1.0),
        ("x 0.5 - 3", "x 0.6 - 3", 0.2),
        ("grid 10x8", "grid 11x8", 1.0),
        ("Total.......12.5", "Total.......12.50", 0.0),
        ("t -0", "t 0", 0.0),
        ("t -0.0", "t 0.0", 0.0),
        ("dec -01:30", "dec -01:31", 1.0),
    ],
)
def test_numbers_of_their_own_are_held_to_the_bound_alone(
    golden: str, new: str, atol: float
) -> None:
    found = _core.compare_texts(golden.encode(), new.encode(), atol=atol)
    assert found["golden"]["unpaired_lines"] == found["differing_count"] == 0


@pytest.mark.parametrize(
    ("golden", "new"),
    [
        ("cells 1,995", "cells 1,999"),
        ("cells 12,345,678", "cells 12,345,679"),
        ("x 3,05", "x 4,05"),
        ("No.5", "No.6"),
        ("total......9", "total......10"),
        ("x 2d-10", "x 3d-10"),
        ("x 1.0-05", "x 1.5-05"),
        ("x 1.5 E+5", "x 1.6 E+5"),
        ("orbital 3d-4s", "orbital 3d-5s"),
    ],
)
def test_what_may_be_a_part_of_a_number_has_to_be_written_alike(golden: str, new: str) -> None:
    """Whatever the bound: nobody knows what one of them is a part of."""
    found = _core.compare_texts(golden.encode(), new.encode(), atol=1e9)
    assert found["differing_count"] == 1
    assert found["number_groups"][0]["is_part"]


EXPONENTS = [
    lambda m, e: f"{m}d{e:+d}",
    lambda m, e: f"{m}Q{e}",
    lambda m, e: f"{m}.5{e:+03d}",
    lambda m, e: f"{m}.{e:+d}",
    lambda m, e: f"{m}.5(12)e{e:+d}",
    lambda m, e: f"{m}(3)D{e}",
    lambda m, e: f"{m}.5 E{e:+d}",
    lambda m, e: f"{m}.5e{e:+d}".replace("-", "\u2212"),
]


@given(
    st.sampled_from(EXPONENTS),
    *(st.integers(1, 12) for _ in range(2)),
    *(st.integers(-12, 12) for _ in range(2)),
    st.sampled_from([0.0, 1e-6, 0.5, 20.0, 1e6]),
    st.sampled_from([0.0, 1e-3, 0.25]),
)
@settings(max_examples=examples(600), deadline=None)
def test_exponents_in_any_notation_hide_no_difference(
    form: Callable[[int, int], str], m: int, n: int, e: int, f: int, atol: float, rtol: float
) -> None:
    golden, new = f"x {form(m, e)} y", f"x {form(n, f)} y"
    ours, theirs = (
        Fraction(f"{number}{'.5' if '.5' in text else ''}e{exponent}")
        for text, number, exponent in ((golden, m, e), (new, n, f))
    )
    found = _core.compare_texts(golden.encode(), new.encode(), atol=atol, rtol=rtol)
    is_match = not found["differing_count"] and not found["golden"]["unpaired_lines"]
    if abs(theirs - ours) > Fraction(atol) + Fraction(rtol) * ours:
        assert not is_match
    if golden == new:
        assert is_match


def test_what_is_ignored_is_no_part_of_a_number() -> None:
    golden, new = b"2026-11-22,5 x", b"2026-11-23,5 x"
    found = _core.compare_texts(golden, new, ignore=("dates",))
    assert (found["differing_count"], found["ignored_count"]) == (0, 3)


RUN_TOGETHER = st.lists(
    st.tuples(
        st.floats(-1e6, 1e6),
        st.sampled_from([".5E", ".6f", ".3f", ".2E", "+.4E"]),
        st.sampled_from(["", "", "-", "+", " ", ","]),
    ),
    min_size=1,
    max_size=6,
)
WORDS = st.sampled_from(
    [
        "wall temperature",
        "shear stress",
        "E =",
        "k",
        "sat",
        "dec",
        "mar",
        "sun",
        "node",
        "host",
        "time",
        "step",
        "t:",
        "at",
        "x.y.z",
    ]
)
UNITS = st.sampled_from(["", " s", " s^-1", " H", " h", " ns", " MB", " K", " m/s", " wall", " d"])


@given(RUN_TOGETHER, WORDS, UNITS, st.data())
@settings(max_examples=examples(600), deadline=None)
def test_no_set_covers_what_can_be_read_as_a_number(
    numbers: list[tuple[float, str, str]], word: str, unit: str, data: st.DataObject
) -> None:
    """Columns that ran together, Fortran's exponents, any unit: a changed digit is a difference."""
    columns = "".join(f"{mark}{value:{form}}" for value, form, mark in numbers).replace("E", "D")
    digits = [at for at, c in enumerate(columns) if c.isdigit()]
    at = data.draw(st.sampled_from(digits))
    other = data.draw(st.sampled_from([c for c in "0123456789" if c != columns[at]]))
    changed = columns[:at] + other + columns[at + 1 :]
    golden, new = (f"{word} {text}{unit} x 1\n".encode() for text in (columns, changed))
    found = _core.compare_texts(golden, new, ignore=TEXT_SETS)
    assert found["ignored_count"] == 0
    plain = _core.compare_texts(golden, new)
    assert found["differing_count"] == plain["differing_count"]
    assert not any(one["remedies"] for one in found["number_groups"] + found["line_groups"])


@given(
    st.lists(st.sampled_from(["head", "x {}", "{} {}", "{}", "E = {} at {}"]), max_size=60),
    st.integers(0, 3),
    st.randoms(use_true_random=False),
)
@settings(max_examples=examples(300), deadline=None)
def test_texts_of_the_same_templates_are_partners_line_by_line(
    templates: list[str], span: int, rng: random.Random
) -> None:
    """Each number is compared with the one in its place, whatever both say."""
    sides = []
    for _ in range(2):
        lines = [one.format(*(rng.randint(0, span) for _ in range(2))) for one in templates]
        sides.append(lines)
    found = _core.compare_texts(*map(_text, sides))
    assert found["golden"]["unpaired_lines"] == found["new"]["unpaired_lines"] == 0
    numbers = [
        (ours, theirs)
        for golden, new in zip(*sides, strict=True)
        for ours, theirs in zip(golden.split(), new.split(), strict=True)
    ]
    assert found["differing_count"] == sum(ours != theirs for ours, theirs in numbers)


@given(
    st.lists(
        st.sampled_from(["E = {} eV", "t {}", "{} took {}", "{} {}", "x{{}} # {}", "at 1.5,{}"]),
        min_size=1,
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
@settings(max_examples=examples(300), deadline=None)
def test_a_place_leaves_out_one_number_of_one_template(
    templates: list[str], rng: random.Random
) -> None:
    """Every other difference is found with the place as without it."""
    sides = [
        _text([one.format(*(f"{rng.randint(1, 99)}.5" for _ in range(2))) for one in templates])
        for _ in range(2)
    ]
    plain = _core.compare_texts(*sides)
    for group in plain["number_groups"]:
        if not group["place"]:
            continue
        found = _core.compare_texts(*sides, ignore_places=(group["place"].decode(),))
        assert found["differing_count"] == plain["differing_count"] - group["count"]
        [masked] = found["masked_groups"]
        assert (masked["by"], masked["number_count"] >= group["count"]) == ("ignore_places", True)
        assert masked["golden"]["line"] <= group["golden"]["line"]
        assert found["golden"]["unpaired_lines"] == found["new"]["unpaired_lines"] == 0


_DECIMAL = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?")


def test_no_edit_passes_that_is_not_listed_as_left_out() -> None:
    """With every set: any digit, also of words, in logs of programs and in our own."""
    rng = random.Random(SEED)
    logs = [path.read_bytes() for path in sorted(LOGS.iterdir())]
    logs += [_text(printed_log(rng)), *(_text(TIMED) for _ in range(3))]
    passed = 0
    for turn in range(EDITED_LOGS):
        golden = rng.choice(logs)
        at = rng.choice([i for i, c in enumerate(golden) if chr(c).isdigit()])
        digit = rng.choice([c for c in b"0123456789" if c != golden[at]])
        new = golden[:at] + bytes((digit,)) + golden[at + 1 :]
        found = _core.compare_texts(golden, new, ignore=TEXT_SETS)
        if found["differing_count"] or found["golden"]["unpaired_lines"]:
            continue
        begin = golden.rfind(b"\n", 0, at) + 1
        line = golden.count(b"\n", 0, at) + 1
        is_listed = any(one["golden"]["line"] == line for one in found["masked_groups"])
        # Of a line of which parts are left out, no number beside them may pass.
        numbers_there = _core.text_places(golden[begin:].split(b"\n")[0], ignore=TEXT_SETS)
        assert not any(
            begin + one["offset"] <= at < begin + one["offset"] + one["size"]
            and one["left_out_by"] is None
            for one in numbers_there
            if is_listed
        ), f"turn {turn}"
        numbers = [
            [float(one.replace(b"D", b"E")) for one in _DECIMAL.findall(text[begin : at + 20])]
            for text in (golden, new)
        ]
        assert is_listed or numbers[0] == numbers[1], f"turn {turn}: {golden[begin : at + 20]!r}"
        passed += is_listed
    assert passed > EDITED_LOGS // 50


TIMED = [
    "started 2026-11-22 10:01:17.125 on host: n7.site.org (10.0.0.17), pid 417",
    "wall temperature 310.2 K, wall shear stress 5.0, k = 2.5e+03 s^-1",
    "scf : 0.05s CPU 1m02.10s WALL ( 7 calls), 12.5 MB",
    "Elapsed time: 3.2 s, dt = 0.5 s, memory used: 12.5 MB in /home/anna/run_3",
    " -1         3 4.08572E-05-1.30075E-02-2.73575E-03",
    "2 H s 0.5 p 3.25 h 1013 mb",
]


@given(
    st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=1, max_size=40),
    st.lists(st.integers(0, 5), max_size=8),
    st.sampled_from(["", "# {}", "{} {}"]),
    st.integers(0, 3),
    st.integers(0, 1),
)
def test_what_a_section_leaves_out_is_what_stands_in_its_lines(
    rows: list[tuple[int, int, int, int]],
    lengths: list[int],
    place: str,
    later: int,
    skipped: int,
) -> None:
    """Rows without a word, in the same order on both sides, and lines before those of one side."""
    ranges, covered, at = [], set(), 1 + skipped
    for length in lengths:
        if length:
            ranges.append((at, at + length - 1))
            covered |= set(range(at, at + length))
        at += length + 2
    golden = "".join(f"{a} {b}\n" for a, b, _, _ in rows)
    new = "".join(f"head {n}\n" for n in range(later))
    new += "".join(f"{c} {d}\n" for _, _, c, d in rows)
    moved = [(first + later, last + later) for first, last in ranges]
    found = _core.compare_texts(
        golden.encode(),
        new.encode(),
        ignore_lines=["head *"],
        sections=[(place, ranges, moved)],
    )
    left_out = {"": (0, 1), "# {}": (1,), "{} {}": (0, 1)}[place]
    differing = sum(
        (row[column] != row[column + 2]) and not (number in covered and column in left_out)
        for number, row in enumerate(rows, 1)
        for column in (0, 1)
    )
    unpaired = [found[side]["unpaired_lines"] for side in ("golden", "new")]
    assert (found["differing_count"], unpaired) == (differing, [0, 0])
