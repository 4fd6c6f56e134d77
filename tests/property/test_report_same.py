"""200 random runs that differ: JSON, terminal, page and Markdown say of them what NumPy says.

Shares, histograms, counts, ranges and the first divergence, over iterations, ranks and variables.
"""

from __future__ import annotations

import html
import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tiers import examples

from ciwrap.cli.main import run as run_cli

if TYPE_CHECKING:
    from pathlib import Path

ATOL = 1e-6
Place = tuple[int, int, str]
Arrays = dict[Place, tuple[np.ndarray, np.ndarray]]


def random_runs(seed: int) -> Arrays:
    """Both sides of each variable of each checkpoint; some differ in a box of some elements."""
    random = np.random.default_rng(seed)
    iterations = sorted(random.choice(60, random.integers(2, 5), replace=False).tolist())
    ranks = int(random.integers(1, 4))
    shapes = [(40,), (7, 9), (3, 4, 5), (25, 2)]
    names = {name: shapes[int(random.integers(4))] for name in ("u", "v", "w")}
    begin = {name: int(random.integers(0, len(iterations) + 1)) for name in names}
    begin["u"] = min(begin["u"], len(iterations) - 1)
    found: Arrays = {}
    for at, iteration in enumerate(iterations):
        for rank in range(ranks):
            for name, shape in names.items():
                golden = random.normal(size=shape)
                new = golden + random.uniform(-0.4, 0.4, shape) * ATOL
                if at >= begin[name] and (random.random() < 0.7 or (name == "u" and rank == 0)):
                    low = [int(random.integers(extent)) for extent in shape]
                    box = tuple(slice(first, first + 1 + seed % 4) for first in low)
                    new[box] += random.choice([-1, 1]) * ATOL * 10.0 ** random.uniform(0.5, 5)
                    new[tuple(low)] += random.choice([-2, 2]) * ATOL
                found[iteration, rank, name] = golden, new
    return found


class Truth:
    """What NumPy says of one variable of one checkpoint."""

    def __init__(self, golden: np.ndarray, new: np.ndarray) -> None:
        self.moved = np.abs(new - golden)
        self.shares = self.moved / ATOL
        beyond = self.moved > ATOL
        self.size, self.count = golden.size, int(np.count_nonzero(beyond))
        self.where = np.argwhere(beyond)
        self.share = float(self.shares.max())
        self.first = self.where[0].tolist() if self.count else None
        # Class 0: equal; 1 to 33: from 2^(k - 18) to the double of it, open at both ends.
        edges = [0.0, *(2.0 ** (k - 17) for k in range(1, 33)), math.inf]
        self.histogram = [
            int(np.count_nonzero(self.moved == 0)),
            *np.histogram(self.shares[self.moved > 0], edges)[0].tolist(),
        ]


def shown(text: str) -> float:
    return float(text.replace(",", ""))


def plain(text: str) -> str:
    text = re.sub("</?code>", "`", text)
    text = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", text, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(text)).replace("\u00d7", "x").replace("\u00a0", " ")


@pytest.mark.parametrize("seed", range(examples(200)))
def test_all_outputs_say_what_numpy_says(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = random_runs(seed)
    for (iteration, rank, name), sides in arrays.items():
        for side, array in zip("ab", sides, strict=True):
            folder = tmp_path / side / f"iter_{iteration:04d}" / f"rank_{rank}"
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / f"{name}.npy", array)
    target, page_file, summary = (tmp_path / one for one in ("j.json", "r.html", "m.md"))
    command = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), f"--atol={ATOL}"]
    assert run_cli([*command, "--json", str(target), "--report", str(page_file)]) == 1
    terminal = plain(capsys.readouterr().out)
    assert run_cli(["report", str(target), "--markdown", str(summary)]) == 0
    truth = {place: Truth(*sides) for place, sides in arrays.items()}
    bad = sorted(place for place, one in truth.items() if one.count)
    (check,) = json.loads(target.read_text())["checks"]
    check_document(check, truth, bad[0])
    page, markdown = page_file.read_text(), plain(summary.read_text())
    check_first(bad[0], truth, terminal, plain(page), markdown)
    for name in sorted({name for _, _, name in bad}):
        mine = {place: one for place, one in truth.items() if place[2] == name}
        check_variable(name, mine, terminal, page, summary.read_text())
    # What matches everywhere is in no list of what does not.
    for name in {name for _, _, name in truth} - {name for _, _, name in bad}:
        assert f"DIFFER {name}:" not in terminal
        assert not re.search(rf'<tr data-v="differ">(?:(?!</tr>).)*<bdi>{name}</bdi>', page)
        assert f"| {name} |" not in summary.read_text()


def check_document(check: Any, truth: dict[Place, Truth], first: Place) -> None:
    told = check["first_divergence"]
    assert (told["iteration"], told["rank"], told["name"]) == first
    assert told["element"]["index"] == truth[first].first
    listed = {(one["iteration"], one["rank"], one["name"]): one for one in check["variables"]}
    assert set(listed) == set(truth)
    for place, one in listed.items():
        wanted = truth[place]
        assert one["verdict"] == ("differ" if wanted.count else "match")
        assert one["differing_count"] == wanted.count
        assert one["first_index"] == wanted.first
        assert one["max_abs_difference"] == pytest.approx(float(wanted.moved.max()), rel=1e-15)
        assert one["max_bound_share"] == pytest.approx(wanted.share, rel=1e-9)
        assert one["bound_share_histogram"] == wanted.histogram
        if "differing_box" in one:
            assert one["differing_box"]["first_index"] == wanted.where.min(axis=0).tolist()
            assert one["differing_box"]["last_index"] == wanted.where.max(axis=0).tolist()


def check_first(
    first: Place, truth: dict[Place, Truth], terminal: str, page: str, markdown: str
) -> None:
    iteration, rank, name = first
    wanted = truth[first]
    index = ", ".join(map(str, wanted.first or ()))
    ranks = {rank for _, rank, _ in truth}
    assert ranks == set(range(len(ranks)))
    place = f"first difference: iter {iteration} / rank {rank} / {name} "
    # Causes may stand between.
    assert f" [{index}]: A " in f" {terminal.partition(place)[2]}"
    for text in (page, markdown):
        said = f"First difference: iteration {iteration}, rank {rank}, `{name}`: "
        count = rf"{re.escape(said)}(all )?([\d,]+)( of ([\d,]+))? values? differs? by more than"
        found = re.search(count, text)
        assert found is not None, said
        assert shown(found[2]) == wanted.count
        assert shown(found[4] or found[2]) == wanted.size


def check_variable(
    name: str, mine: dict[Place, Truth], terminal: str, page: str, summary: str
) -> None:
    """One name over its checkpoints, in the terminal's line, the page's row and Markdown's."""
    bad = {place: one for place, one in mine.items() if one.count}
    count = sum(one.count for one in bad.values())
    iteration, rank, _ = min(bad)
    largest = max(bad, key=lambda place: bad[place].share)
    worst = bad[largest].share
    opening = rf"DIFFER {name}: "
    line = re.search(
        rf"{opening}(.*?; )?([\d,]+) of ([\d,]+) values? differs?(?: there)?;", terminal
    )
    assert line is not None
    assert shown(line[2]) == count
    assert shown(line[3]) == sum(one.size for one in bad.values())
    how_far = r".*?up to ([\d,.e]+) x the bound \(iter (\d+) / rank (\d+)\)"
    said = re.search(opening + how_far, terminal)
    assert said is not None
    assert shown(said[1]) == pytest.approx(worst, rel=6e-3)
    assert (int(said[2]), int(said[3])) == largest[:2]
    row = re.search(rf'<tr data-v="differ">(?:(?!</tr>).)*<bdi>{name}</bdi>.*?</tr>', page, re.S)
    assert row is not None
    cells = [plain(cell).strip() for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row[0], re.S)]
    total = sum(one.size for one in bad.values())
    assert f"iteration {iteration}, rank {rank}" in cells
    assert f"{count:,} of {total:,}" in cells
    (times,) = (cell for cell in cells if cell.endswith(" x"))
    assert shown(times.removesuffix(" x")) == pytest.approx(worst, rel=6e-3)
    line_of = re.search(rf"\| {name} \| (.*) \| (.*) \| (.*) \|", summary)
    assert line_of is not None
    assert line_of[2] == f"{count:,} of {total:,}"
    assert shown(plain(line_of[3]).removesuffix(" x")) == pytest.approx(worst, rel=6e-3)
    # The mini-timeline and the range of the first.
    beats = re.search(r"<title>(\d+) iterations: (.*?)</title>", row[0])
    assert beats is not None
    hit, all_of = {place[0] for place in bad}, {place[0] for place in mine}
    assert int(beats[1]) == len(all_of)
    assert f"{len(hit)} {'differs' if len(hit) == 1 else 'differ'}" in beats[2]
    wanted = bad[min(bad)]
    card = page[page.index(f">{name}</bdi></h3>") :].split("</article>")[0]
    bars = re.findall(r"<title>([^<]* the bound[^<]*|equal): ([\d,]+)</title>", card)
    assert bars
    least = [int(shown(one)) for _, one in bars]
    filled = [one for one in wanted.histogram if one]
    # The bars of the first checkpoint, in order; the worst one's follow where that is another.
    assert least[: len(filled)] == filled
    box = zip(wanted.where.min(axis=0), wanted.where.max(axis=0), strict=True)
    within = re.search(r"all within \[(.*?)\]", plain(row[0]))
    if within is not None:
        for part, (low, high) in zip(within[1].split(", "), box, strict=True):
            if part == ":":
                continue
            ends = [int(end) for end in part.split(":")]
            assert (ends[0], ends[-1] - (len(ends) == 2)) == (low, high)
