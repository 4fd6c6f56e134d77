"""Which lines of a text are in a section, by the templates that logs have for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.base.errors import ConfigError
from ciwrap.formats.log import Listening
from ciwrap.formats.log_lines import hand_out
from ciwrap.formats.log_template import Template
from ciwrap.formats.reader import InputFile
from ciwrap.model.settings import FormError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.arrays.values import SectionPlace
    from ciwrap.formats.log_lines import Line

Range = tuple[int, int]
_LAST_LINE = (1 << 63) - 1
_HELD = Path("the text")


class _Held:
    """Bytes, read as an `InputFile` is."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_some(self, offset: int, byte_count: int) -> bytes:
        return self._data[offset : offset + byte_count]

    def close(self) -> None:
        """Nothing is open."""


class _Edge(Listening):
    """Notes the lines at which a section opens, or closes."""

    def __init__(
        self, template: str, path: Path, edges: list[tuple[int, bool]], *, opens: bool
    ) -> None:
        try:
            pattern = Template(template)
        except FormError as error:
            raise ConfigError(
                f"{template!r} {error.message}", key="options.ignore_places.section"
            ) from None
        super().__init__(pattern, path)
        self._edges = edges
        self._opens = opens

    def take(self, line: Line) -> None:
        self._edges.append((line.number, self._opens))


def section_ranges(text: Any, sections: Sequence[SectionPlace]) -> list[list[Range]]:
    """The lines of each section of a text (a path, or its bytes): ranges counted from 1, with their
    last lines. The line that a section begins with is in it, the one that ends it is not.

    Raises ConfigError for what is no template, and as `hand_out` does.
    """
    each: list[list[tuple[int, bool]]] = [[] for _ in sections]
    path = Path(text) if isinstance(text, (str, Path)) else None
    listeners: list[Any] = []
    for one, edges in zip(sections, each, strict=True):
        if one.end is not None:
            listeners.append(_Edge(one.end, path or _HELD, edges, opens=False))
        listeners.append(_Edge(one.start, path or _HELD, edges, opens=True))
    file: Any = _Held(bytes(text)) if path is None else InputFile(path)
    try:
        hand_out(file, path or _HELD, listeners)
    finally:
        file.close()
    return [_ranges_between(edges) for edges in each]


def _ranges_between(edges: Sequence[tuple[int, bool]]) -> list[Range]:
    found: list[Range] = []
    first: int | None = None
    for line, opens in edges:
        if opens and first is None:
            first = line
        elif not opens and first is not None:
            found.append((first, line - 1))
            first = None
    return found if first is None else [*found, (first, _LAST_LINE)]
