"""What several runs say of a text and of an array: signs, places and bounds, or why none do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import yaml

from ciwrap.arrays.values import SectionPlace
from ciwrap.studies.same_runs import Noise, file_noise, text_lines, text_noise

if TYPE_CHECKING:
    from pathlib import Path


def _of_texts(folder: Path, *texts: str) -> Noise:
    paths = [folder / str(number) for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="ascii")
    return text_noise(paths[:-1], paths[-1], folder)


def test_a_place_that_only_a_third_run_shows_is_left_out(tmp_path: Path) -> None:
    first, third = (f"E = -1.5\nstep 1 took {took}\n" for took in ("0.00", "0.01"))
    noise = _of_texts(tmp_path, first, third, first)
    assert [one.what for one in noise.places] == ["step # took {}"]
    assert (noise.problem, noise.rtol, noise.atol) == (None, 0.0, 0.0)
    assert _of_texts(tmp_path, first, first, first) == Noise()


def test_a_date_is_a_sign_even_if_the_runs_were_too_quick_for_it(tmp_path: Path) -> None:
    text = "started on 2031/03/01 at 11:01:11.556\nE = -1.5\n"
    assert _of_texts(tmp_path, text, text).signs == ("dates", "times")


def test_paths_are_a_sign_where_the_folder_of_the_runs_is_named(tmp_path: Path) -> None:
    """As in a warning of Python. Other paths with numbers are the same everywhere."""
    for text, signs in (
        (f"{tmp_path}/r.py: this will change\n", ("paths",)),
        ("wrote ./ez-000020.h5 by /usr/share/psp/01h.psp\n", ()),
    ):
        assert _of_texts(tmp_path, text, text).signs == signs


@pytest.mark.parametrize(
    ("first", "second", "bounds"),
    [
        ("E = 1.000000000015", "E = 1.00000000002", (1e-10, 0.0)),
        ("E = 1.5\nz = 1e-15", "E = 1.5\nz = 3e-15", (0.0, 2e-14)),
        ("E = 1.5\nz = 1e-15\nq = 2e-13", "E = 1.5\nz = 3e-15\nq = 2e-13", None),
        ("# 1.5", "# 2.5", None),  # no words, so no place
        ("E = 1.5", "E = 1.5\nwarning", None),
        ("E = 1.5", "E = nan", None),
    ],
)
def test_bounds_of_texts(
    tmp_path: Path, first: str, second: str, bounds: tuple[float, float] | None
) -> None:
    noise = _of_texts(tmp_path, first + "\n", second + "\n")
    assert noise.places == ()
    if bounds is None:
        assert noise.problem is not None
        assert noise.atol == 0.0
    else:
        assert (noise.problem, noise.rtol, noise.atol) == (None, *bounds)


def _with_times(energy: float, bar: str, time: float, behind: str) -> str:
    rows = f"{'-' * 20}\nForces:  {time}  0.1% |{bar}|\nOther:  0.000  0.0% ||\n{'-' * 20}\n"
    return f"title\n\nE: {energy}\n\nTiming:  incl.  excl.\n{rows}\n{behind}"


def test_a_table_of_times_is_left_out_by_its_heading(tmp_path: Path) -> None:
    """As GPAW prints it: its bars are words, so that its rows have no partner."""
    behind = "Converged: 12 steps\n"
    one = _with_times(-1.5, "--", 0.5, behind)
    noise = _of_texts(tmp_path, one, _with_times(-1.5, "---", 0.7, behind))
    assert noise == Noise(sections=(SectionPlace("", "^Timing:", "^Converged:"),))
    assert yaml.safe_load("\n".join(text_lines(noise))) == {
        "options": {"ignore_places": [{"section": {"start": "^Timing:", "end": "^Converged:"}}]}
    }
    at_end = [_with_times(-1.5, bar, 0.5, "") for bar in ("--", "---")]
    assert _of_texts(tmp_path, *at_end).sections == (SectionPlace("", "^Timing:"),)


def test_no_table_is_left_out_that_has_partners_or_no_name(tmp_path: Path) -> None:
    one = _with_times(-1.5, "--", 0.5, "")
    same_bars = _of_texts(tmp_path, one, _with_times(-1.5, "--", 0.7, ""))
    assert same_bars.sections == ()
    assert [place.what for place in same_bars.places] == ["Forces: {} # % |--|"]
    other = _with_times(-1.5, "---", 0.5, "")
    for heading in ("Energies:", "Timing of 3 ranks:"):
        texts = [text.replace("Timing:", heading) for text in (one, other)]
        noise = _of_texts(tmp_path, *texts)
        assert (noise.sections, noise.problem is None) == ((), False)
    # What differs outside of it is no reason to leave it out.
    assert _of_texts(tmp_path, one, one.replace("title", "another title")).sections == ()


def test_a_bound_of_an_array_is_a_thousandth_of_its_spread_at_most(tmp_path: Path) -> None:
    one, two = tmp_path / "a.npz", tmp_path / "b.npz"
    x = np.linspace(-1.0, 1.0, 100)
    count = np.arange(3)
    np.savez(one, fine=x, wide=x, count=count, steps=count)
    np.savez(two, fine=x + 1e-7, wide=x + 1e-3, count=count, steps=count + 1)
    noise = file_noise([one, two], one)
    assert list(noise.bounds) == ["fine"]
    assert 1e-6 <= noise.bounds["fine"] <= 2e-6
    assert sorted(change.what for change in noise.variables) == ["steps", "wide"]
    np.savez(two, fine=x[:50])
    assert file_noise([one], two).problem == "the runs write other variables"
