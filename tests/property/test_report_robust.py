"""A result from somebody else's workflow may hold anything: it is refused, or rendered."""

from __future__ import annotations

import copy
import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from test_report_document import full_result

from ciwrap.base.documents import DocumentError
from ciwrap.report.document import from_document, to_document
from ciwrap.report.exports import render_junit, render_sarif
from ciwrap.report.markdown import render_annotations, render_markdown
from ciwrap.report.page import render_html

if TYPE_CHECKING:
    from ciwrap.model import RunResult

ODD_NUMBERS = (-1, 0, 1, -(10**30), 10**30, 0.5, -3.7, 1e308, -1e308, 5e-324, "nan", "inf", "-inf")
ODD_TEXTS = ("", "\x00\ud800\u202e", "</script><script>", "A" * 20_000, "$(id)", "%s{0}", "AAAA")


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the document has numbers, texts, lists."""
    found = [path] if path else []
    if isinstance(node, dict):
        for key, value in node.items():
            found += places(value, (*path, key))
    elif isinstance(node, list):
        for position, value in enumerate(node):
            found += places(value, (*path, position))
    return found


def changed(document: Any, path: tuple[Any, ...], source: random.Random) -> None:
    """Puts something else of the same kind there, or cuts or repeats a list."""
    node = document
    for key in path[:-1]:
        node = node[key]
    old = node[path[-1]]
    if isinstance(old, bool):
        node[path[-1]] = not old
    elif isinstance(old, (int, float)):
        node[path[-1]] = source.choice(ODD_NUMBERS)
    elif isinstance(old, str):
        node[path[-1]] = source.choice(ODD_TEXTS)
    elif isinstance(old, list):
        node[path[-1]] = source.choice(([], old * 2, old[:1], old * 50))
    elif old is None:
        node[path[-1]] = source.choice((0, 1.5, "x"))


def history() -> RunResult:
    """A full result in which every variable has three iterations on two ranks."""
    run = full_result()
    (check,) = run.checks
    variables = tuple(
        replace(variable, iteration=iteration, rank=rank)
        for variable in check.variables
        for iteration in (1, 2, 5)
        for rank in (0, 1)
    )
    return replace(run, checks=(replace(check, variables=variables),))


DOCUMENTS = [json.loads(json.dumps(to_document(run))) for run in (full_result(), history())]


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
@example(14424, 1)  # half a surrogate pair in a card
@example(2715, 4)  # a share below zero
@example(11702, 1)  # a box in an array without elements
def test_changed_documents_are_refused_or_rendered(seed: int, count: int) -> None:
    source = random.Random(seed)
    document = copy.deepcopy(source.choice(DOCUMENTS))
    for _ in range(count):
        changed(document, source.choice(places(document)), source)
    try:
        run = from_document(document)
    except DocumentError:
        return
    page = render_html(run)
    assert page.count("<script>") == 1
    render_markdown(run)
    render_annotations(run)
    ElementTree.fromstring(render_junit(run))
    json.loads(render_sarif(run))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("share_maps", [{"column_axis": 0, "rows": 10**6, "columns": 10**6, "classes": ""}]),
        ("share_maps", [{"column_axis": 0, "rows": -1, "columns": -1, "classes": "AA=="}]),
        ("share_maps", [{"column_axis": 0, "rows": 1, "columns": 2, "classes": "AA=="}]),
        ("share_maps", [{"column_axis": 0, "rows": 1, "columns": 1, "classes": "<b>"}]),
        ("chunk_map", {"chunk_elements": 0, "chunk_count": 1, "chunks_per_cell": 1, "runs": []}),
    ],
)
def test_maps_that_lie_are_refused(part: str, value: Any) -> None:
    document = copy.deepcopy(DOCUMENTS[0])
    document["checks"][0]["variables"][0]["details"][part] = value
    with pytest.raises(DocumentError):
        from_document(document)
