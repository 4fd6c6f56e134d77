"""What a golden of residues tells of which elements moved stands on the page, too."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

import numpy as np

from ciwrap.cli.main import run as run_cli
from ciwrap.model import ErrorBound, Evidence, VariableResult, Verdict
from ciwrap.model.variable_result import MovedElement
from ciwrap.report.digest_words import by_digests_lines, by_digests_sentence

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CONFIG = """\
version: 1
checks:
  c: {outputs: out, atol: 1e-6, evidence: residues}
"""


def test_the_page_names_the_element_that_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "ciwrap.yaml").write_text(CONFIG)
    values = np.random.default_rng(1).normal(size=(10, 10))
    np.save("out/x.npy", values)
    assert run_cli(["accept"]) == 0
    values[2, 3] += 2e-6
    np.save("out/x.npy", values)
    assert run_cli(["check", "-v", "--report", "r.html", "--json", "r.json"]) == 1
    (variable,) = json.loads((tmp_path / "r.json").read_text())["checks"][0]["variables"]
    assert (variable["differing_count"], variable["verdict"]) == (1, "differ")
    page = (tmp_path / "r.html").read_text()
    text = html.unescape(re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.S))
    text = re.sub(r"\s+", " ", text.replace("\u00a0", " "))
    assert "How much [2, 3] moved by 1.9" in text
    assert "The value that is known to have moved" in text
    assert "The first 0 of" not in text
    # Its map is of chunks.
    assert "block matches block that may differ" in text
    assert "within the bound beyond it" not in text
    # Nothing is known of any drift.
    assert "||" not in capsys.readouterr().out


def test_the_element_that_is_told_as_differing_is_beyond_its_bound() -> None:
    moved = (
        MovedElement((3,), "1.0", "1.0", "1.0", share_from=0.8, share_to=0.9, is_beyond=False),
        MovedElement((700,), "2.0", "1.0", "1.0", share_from=4.0, share_to=4.1, is_beyond=True),
    )
    variable = VariableResult(
        "x",
        Verdict.DIFFER,
        evidence=Evidence.RESIDUES,
        bound=ErrorBound(1e-6),
        element_count=1500,
        chunk_count=3,
        suspect_chunks=3,
        solved_chunks=2,
        moved_elements=moved,
        differing_count_at_least=1,
        differing_count_at_most=513,
    )
    said = by_digests_sentence(variable)
    assert "; [700] moved by 4" in said
    assert any(line.startswith("value [3]") for line in by_digests_lines(variable))
    assert not any(line.startswith("value [700]") for line in by_digests_lines(variable))
