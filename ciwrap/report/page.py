"""What all pages share: layout, style, script, and a policy that forbids everything else."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import datetime, timezone
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from ciwrap.report.text import plural, safe_name
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jinja2

# A word with letters that are written from right to left, without what follows it.
_RIGHT_TO_LEFT = re.compile(r"\S*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]\S*?(?=[:,.)]*(?:\s|$))")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_BRACKETS = re.compile(r"\[[^\[\]]{1,60}\]")
_EQUATION = re.compile(r"\b(new|B) = (.)")
_SHARES = re.compile(r"(?<=[<>]) (?=\d)|(?<=\d) (?=%)")


class PageHead(Struct, frozen=True):
    """What the layout says of every page. kind: of the result. started: for people; started_iso:
    for programs. commit: empty if none is known. version: of ciwrap.
    """

    kind: str
    started: str
    started_iso: str
    version: str
    commit: str = ""


def page_head(
    kind: str, started_at: str, version: str, environment: Mapping[str, str] | None = None
) -> PageHead:
    """The head of the page of one result. environment: where the commit stands, if it is known."""
    commit = safe_name((environment or {}).get("git_commit", ""), 20)
    times = time_words(started_at), safe_name(started_at, 40)
    return PageHead(safe_name(kind), *times, safe_name(version), commit)


def render_page(template: str, head: PageHead, page: object) -> str:
    """A page in the common layout. page: what the template asks for, with a title and a hue."""
    # Our own style and script are the only texts that go into the page unescaped.
    style, script = Markup(_read("report.css")), Markup(_read("report.js") + _read("look.js"))
    assets = {"style": style, "script": script}
    hashes = {"style_hash": _hash(style), "script_hash": _hash(script)}
    return templates().get_template(template).render(head=head, page=page, **assets, **hashes)


@cache
def templates() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_writable,
    )
    environment.filters["nice"] = nice
    environment.filters["counted"] = plural
    return environment


def _writable(value: object) -> object:
    """Half a surrogate pair, which no file can have, as its escape; all else as it is."""
    if isinstance(value, str) and not value.isascii() and _HALF_PAIR.search(value):
        return type(value)(value.encode("utf-8", "backslashreplace").decode("utf-8"))
    return value


def environment_rows(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Facts of a machine by name, for a table of two columns."""
    return tuple(
        (safe_name(key, 80), safe_name(value, 200)) for key, value in sorted(environment.items())
    )


def time_words(text: str) -> str:
    """`21 November 2026, 12:33 UTC`; what is no ISO time stays as it is."""
    try:
        when = datetime.fromisoformat(text).astimezone(timezone.utc)
    except ValueError:
        return safe_name(text, 40)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def nice(text: object) -> Markup:
    """The text as it breaks into lines: indices and shares stay whole, a minus is no hyphen, and a
    name that is written from right to left does not change places with the numbers after it.
    """
    whole = _BRACKETS.sub(lambda match: match[0].replace(" ", "\u00a0"), str(text))
    whole = _SHARES.sub("\u00a0", whole).replace(" x the", "\u00a0\u00d7 the")
    whole = _EQUATION.sub("\\1\u00a0=\u00a0\\2", whole.replace("= -golden", "= \u2212golden"))
    return Markup(_RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", str(escape(whole))))


@cache
def _read(name: str) -> str:
    return (resources.files("ciwrap.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: Markup) -> str:
    return base64.b64encode(hashlib.sha256(str(text).encode()).digest()).decode("ascii")
